"""What ``propose`` leaves: one commit with its evidence, or a reason; and who else is at work at the same time."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder, once
from program import git, refs
from town_host import TOWN as EVENTS
from town_host import make_host, tasks
from trained_runs import user

from skillgit.app.attribution.provenance import blame
from skillgit.app.attribution.why import why
from skillgit.app.interventions.fork import fork
from skillgit.app.measure.pull_request_gate import gate
from skillgit.app.measure.requests import GateRequest
from skillgit.app.proposals.proposal import Upshot, task_counts
from skillgit.app.proposals.propose import plan_propose, propose
from skillgit.app.proposals.pull_request import Publication
from skillgit.app.proposals.requests import ProposeRequest
from skillgit.app.train.doctor import doctor
from skillgit.app.train.requests import SkillTraining
from skillgit.app.train.train import train
from skillgit.app.workspace.revision import default_run
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import ConfigError, ExitCode, NotFoundError, RevisionNotFoundError, UsageError
from skillgit.store.lock import ProposalLock
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from pathlib import Path

TOWN = "skills/town/SKILL.md"
LEARNED = "answer with this year"  # in the rule that the best version gains
BRANCH = "refs/heads/propose/town"


class Quiet:
    """A watcher that remembers remarks and, at the first event, does what it is given to do."""

    def __init__(self, meanwhile=None) -> None:
        self.remarks: list[str] = []
        self._meanwhile = meanwhile

    def progress(self, progress) -> None: ...

    def happened(self, event, commit) -> None:
        del event, commit
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()

    def remark(self, text) -> None:
        self.remarks.append(text)


def proposed(repository: Path, *skills: str, meanwhile=None, host: Path | None = None, **request):
    """Return the report on ``skills`` as a user in the repository gets it, with the host's program on the PATH."""
    context = user(repository)
    if host is not None:
        environ = {"PATH": f"{host / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        context = type(context)(directory=repository, environ=environ, clock=context.clock, entropy=context.entropy)
    request = ProposeRequest(skills=skills, pull_request=host is not None, **request)
    if host is not None:
        return propose(context, request, Quiet(meanwhile))
    plan = plan_propose(context, request)
    report = propose(context, request, Quiet(meanwhile))
    # for every state of a proposal, and every error before the first call, a dry run says and ends as the run does
    for proposal in report.proposals:
        if proposal.answer in {Upshot.STANDS, Upshot.NOTHING_NEW}:
            assert plan.facts[proposal.skill.rpartition("/")[2]] == proposal.sentence
    assert (plan.exit_code is ExitCode.USAGE) == (report.exit_code is ExitCode.USAGE)
    return report


def edit(repository: Path, old: str, new: str, *, branch: str = "main") -> None:
    """Commit a change of the skill town as a person does."""
    file = repository / TOWN
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    git("commit", "-qm", "Edit by hand", "--", TOWN, cwd=repository)
    assert git("branch", "--show-current", cwd=repository).out.strip() == branch


@pytest.fixture(scope="session")
def filled(two_skills, tmp_path_factory) -> Path:
    def fill(folder: Path) -> None:
        report = proposed(copy_folder(two_skills, folder / "repository"), "town")
        assert [proposal.answer for proposal in report.proposals] == [Upshot.PROPOSED]

    return once(tmp_path_factory, "one-proposal", fill) / "repository"


@pytest.fixture
def one(filled, tmp_path) -> Path:
    """A repository with a proposal of the skill town."""
    return copy_folder(filled, tmp_path / "one")


def test_it_is_one_commit_that_changes_one_skill_and_says_why(filled, two_skills):
    assert git("rev-list", "main..propose/town", cwd=filled).out.count("\n") == 1
    assert git("diff", "--name-only", "main...propose/town", cwd=filled).out.split() == [TOWN]
    message = git("log", "-1", "--format=%B", "propose/town", cwd=filled).out
    for line in (
        "propose town: hard 1.0000, was 0.0000",
        "- gain: +1.0000, 95 % +0.1310 to +1.0000, p 0.0312 one-sided, n 5, test split",
        "- gate: paired at 0.05",
        "- items: 10 train, 5 selection, 5 test",
        "- tasks: 20 reviewed",
    ):
        assert line in message.splitlines()
    trailers = git("log", "-1", "--format=%(trailers:key=Skillgit-Proposed,valueonly)", "propose/town", cwd=filled).out
    assert (
        git("rev-parse", f"{trailers.strip()}:skills/town", "propose/town:skills/town", cwd=filled).out.split()
        == [git("rev-parse", "propose/town:skills/town", cwd=filled).out.strip()] * 2
    )
    before = refs(two_skills)
    assert {name: oid for name, oid in refs(filled).items() if name in before} == before
    assert git("status", "--porcelain", cwd=filled).out == ""


def test_nothing_new_spends_nothing_and_moves_nothing(one):
    before = refs(one)
    report = proposed(one, "town")
    assert (report.proposals[0].answer, report.exit_code, report.cost.calls) == (Upshot.STANDS, ExitCode.OK, 0)
    git("branch", "-D", "propose/town", cwd=one)
    report = proposed(one, "town")
    assert (report.proposals[0].answer, report.exit_code) == (Upshot.NOTHING_NEW, ExitCode.OK)
    assert "declined" in report.proposals[0].sentence
    git("update-ref", BRANCH, before[BRANCH], cwd=one)
    git("merge", "-q", "--ff-only", "propose/town", cwd=one)
    taken = proposed(one, "town").proposals[0]
    assert (taken.answer, taken.commit) == (Upshot.NOTHING_NEW, "")
    git("branch", "-D", "propose/town", cwd=one)
    assert proposed(one, "town").proposals[0].answer is Upshot.NOTHING_NEW
    assert not [name for name in refs(one).keys() - before.keys() if "run/" in name]


def test_a_rule_that_was_merged_still_has_its_story(one):
    git("merge", "-q", "--ff-only", "propose/town", cwd=one)
    message = git("log", "-1", "--format=%B", cwd=one).out
    story = ask(why, user(one), LEARNED, "main")
    assert (story.here, story.origin.run, story.origin.version) == (True, proposed(one, "town").proposals[0].run, 1)
    assert story.failures
    assert [row.run for row in ask(blame, user(one), "main").lines if LEARNED in row.text] == [story.origin.run]
    with pytest.raises(NotFoundError, match=f"no rule of town in run {story.origin.run}, now or before"):
        ask(why, user(one), "no such words anywhere")
    # whoever writes the trailer below another text has forged nothing
    edit(one, LEARNED, f"{LEARNED}, in ink")
    git("commit", "-q", "--amend", "-m", message, cwd=one)
    forgery = ask(why, user(one), LEARNED, "main")
    assert (forgery.origin, forgery.rule.text.count("in ink")) == (None, 1)
    # where the newest run trains another skill, the way to this one is said
    proposed(one, "county")
    with pytest.raises(NotFoundError, match="no rule of county") as missing:
        ask(why, user(one), "no such words anywhere")
    assert missing.value.hint == f"skillgit why 'no such words anywhere' --rev {story.origin.run}"


def test_a_lost_pin_is_made_good_from_history(one):
    pin = Repo.discover(one).private_dir / "proposals" / "town.json"
    before, pinned = refs(one), pin.read_bytes()
    for content in (None, b"", b"[]", b'{"answer": "away"}', b"\xff"):
        pin.unlink(missing_ok=True) if content is None else pin.write_bytes(content)
        report = proposed(one, "town")
        assert (report.proposals[0].answer, report.cost.calls) == (Upshot.STANDS, 0)
    git("branch", "-D", "propose/town", cwd=one)
    pin.unlink()
    report = proposed(one, "town")
    assert (report.proposals[0].answer, report.cost.calls) == (Upshot.PROPOSED, 0)
    assert refs(one).keys() == before.keys()
    assert pin.read_bytes() == pinned


def test_what_was_edited_meanwhile_is_kept_and_measured_with_the_version(repository):
    (repository / "skills/county/SKILL.md").write_text("not committed")
    report = proposed(repository, "town", meanwhile=lambda: edit(repository, "from the text.", "from the text alone."))
    proposal = report.proposals[0]
    assert (proposal.answer, proposal.is_merged, report.exit_code) == (Upshot.PROPOSED, True, ExitCode.OK)
    assert git("rev-parse", "propose/town~", cwd=repository).out == git("rev-parse", "main", cwd=repository).out
    text = git("show", f"propose/town:{TOWN}", cwd=repository).out
    assert "from the text alone." in text
    assert LEARNED in text
    assert "measured again" in git("log", "-1", "--format=%B", "propose/town", cwd=repository).out
    assert (repository / "skills/county/SKILL.md").read_text() == "not committed"
    # a gate on the pull request finds every outcome recorded
    judged = GateRequest(base="main", head="propose/town", split="test", rule="paired", recorded_only=True)
    assert ask(gate, user(repository), judged, Quiet()).exit_code is ExitCode.OK


def test_an_edit_of_the_same_lines_leaves_the_proposal_on_its_pin(repository):
    pinned = git("rev-parse", "main", cwd=repository).out
    ours = "Be brief.\n\n- Say when, in words.\n"
    report = proposed(repository, "town", meanwhile=lambda: edit(repository, "Be brief.\n", ours))
    assert report.proposals[0].answer is Upshot.PROPOSED
    assert not report.proposals[0].is_merged
    assert "conflict" in report.proposals[0].sentence
    assert git("rev-parse", "propose/town~", cwd=repository).out == pinned
    assert "conflict" in git("log", "-1", "--format=%B", "propose/town", cwd=repository).out


def test_of_two_that_score_the_same_the_one_that_can_be_merged_stands(one):
    # a run of a person's is the default one, whatever is proposed after it
    (run,) = (name.rpartition("/")[2] for name in refs(one) if name.startswith("refs/heads/run/"))
    fork(user(one), f"{run}/v0", "by-hand")
    edit(one, "Be brief.\n", "Be brief.\n\n- Say when, in words.\n")
    before = refs(one)[BRANCH]
    report = proposed(one, "town")
    assert report.proposals[0].answer is Upshot.PROPOSED, report
    with Workspace(user(one)) as workspace:
        assert [default_run(each) for each in (workspace, workspace.of_skill("skills/town"))] == ["by-hand"] * 2
    assert refs(one)[BRANCH] == report.proposals[0].commit != before
    assert git("rev-parse", "propose/town~", cwd=one).out == git("rev-parse", "main", cwd=one).out
    # another run for the same text scores no higher, and has its turn once the branch is gone
    (one / "tasks/town.jsonl").write_text(tasks(asked="In which year?"))
    report = proposed(one, "town")
    assert report.proposals[0].answer is Upshot.BEHIND
    assert "once propose/town is deleted" in report.proposals[0].hint
    assert proposed(one, "town").proposals[0].answer is Upshot.NOTHING_NEW
    git("branch", "-D", "propose/town", cwd=one)
    report = proposed(one, "town")
    assert (report.proposals[0].answer, report.cost.calls) == (Upshot.PROPOSED, 0)


@pytest.mark.soak
def test_an_edit_that_is_the_version_needs_no_proposal(filled, repository):
    text = git("show", f"propose/town:{TOWN}", cwd=filled).out
    report = proposed(repository, "town", meanwhile=lambda: edit(repository, (repository / TOWN).read_text(), text))
    assert report.proposals[0].answer is Upshot.NO_BETTER
    assert BRANCH not in refs(repository)


@pytest.mark.soak
def test_where_both_cannot_be_measured_together_the_pin_holds(repository):
    calls = proposed(copy_folder(repository, repository.parent / "unedited"), "town").cost.calls
    edit_now = lambda: edit(repository, "from the text.", "from the text alone.")  # noqa: E731
    report = proposed(repository, "town", meanwhile=edit_now, max_calls=calls)
    proposal = report.proposals[0]
    assert (proposal.answer, proposal.is_merged) == (Upshot.PROPOSED, False)
    assert "was not measured" in proposal.sentence


def test_few_tasks_cannot_tell(repository):
    (repository / "tasks/town.jsonl").write_text(tasks(8))
    report = proposed(repository, "town")
    proposal = report.proposals[0]
    assert (proposal.answer, report.exit_code) == (Upshot.CANNOT_TELL, ExitCode.UNDERPOWERED)
    assert BRANCH not in refs(repository)
    report = proposed(repository, "town")
    assert (report.proposals[0].answer, report.cost.calls, report.exit_code) == (
        Upshot.NOTHING_NEW,
        0,
        ExitCode.OK,
    )


def test_where_one_fails_the_others_go_on(repository):
    (repository / "tasks/county.jsonl").write_text('{"question": "When?", "answer": "1871", "status": "draft"}\n')
    report = proposed(repository)
    assert [proposal.answer for proposal in report.proposals] == [Upshot.FAILED, Upshot.PROPOSED]
    assert report.exit_code is ExitCode.USAGE
    (repository / "tasks/county.jsonl").write_text(tasks(asked="In which year?"))
    (repository / "tasks/town.jsonl").write_text(tasks(asked="In which year?"))
    plan = plan_propose(user(repository), ProposeRequest())
    assert "county" in plan.facts
    assert {"baseline, county", "baseline, town"} <= {row.stage for row in plan.stages}


@pytest.mark.soak
def test_caps_are_for_all_skills_and_the_same_command_goes_on(repository, two_skills, tmp_path):
    whole = proposed(copy_folder(two_skills, tmp_path / "whole")).cost.calls
    first = proposed(repository, max_calls=whole - 4)
    assert [proposal.answer for proposal in first.proposals] == [Upshot.PROPOSED, Upshot.UNFINISHED]
    assert (first.exit_code, first.cost.calls <= whole - 4) == (ExitCode.BUDGET, True)
    second = proposed(repository, max_calls=whole - 4)
    assert [proposal.answer for proposal in second.proposals] == [Upshot.STANDS, Upshot.PROPOSED]
    assert first.cost.calls + second.cost.calls == whole


def test_a_cap_that_is_too_small_is_told_as_it_was_typed(repository):
    failure = proposed(repository, "town", max_calls=1).proposals[0]
    least = int(failure.hint.split()[3])
    assert failure.sentence == f"a cap of 1 call does not pay for one step: it takes {least - 1} more"
    # of a greater sum two were bought before
    overrides = ("env.data_path=tasks/town.jsonl",)
    request = SkillTraining(config="tasks/default", overrides=overrides, run="new", max_calls=3, cap=1)
    with pytest.raises(ConfigError, match=f"cap of 1 call does not .* takes {least - 3} more") as error:
        train(user(repository), request, Quiet())
    assert error.value.hint.startswith(f"raise --max-calls to {least - 2} or more")


def test_criteria_for_a_judge_need_one(repository):
    rows = [{"question": f"Write to {name}.", "rubric": "It is polite."} for name in EVENTS]
    (repository / "tasks/town.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    failure = proposed(repository, "town").proposals[0]
    assert (failure.answer, failure.cost.calls) == (Upshot.FAILED, 0)
    assert "cannot judge" in failure.sentence
    assert failure.hint == "name one with model.judge_backend and model.judge"
    overrides = ("env.data_path=tasks/town.jsonl", "env.skill_init=skills/town")
    checkup = ask(doctor, user(repository), "tasks/default", overrides)
    assert [role.role for role in checkup.roles if role.fault and role.fault.sentence == failure.sentence] == ["judge"]


def test_two_processes_do_not_work_on_one_skill(repository):
    context = user(repository)
    with ProposalLock(Repo.discover(repository), "town", context.clock):
        report = proposed(repository, "town")
    assert (report.proposals[0].answer, report.exit_code) == (Upshot.FAILED, ExitCode.CONFLICT)
    assert report.proposals[0].sentence.startswith("a proposal of town is being made by process")


def test_a_branch_with_work_of_a_person_stays(one):
    git("checkout", "-q", "propose/town", cwd=one)
    edit(one, "Be brief.", "Be very brief.", branch="propose/town")
    git("checkout", "-q", "main", cwd=one)
    before = refs(one)[BRANCH]
    (one / "tasks/town.jsonl").write_text(tasks(asked="In which year?"))
    report = proposed(one, "town")
    assert (report.proposals[0].answer, report.exit_code) == (Upshot.FAILED, ExitCode.CONFLICT)
    assert refs(one)[BRANCH] == before


@pytest.mark.soak
def test_a_branch_that_is_checked_out_stays(one):
    git("checkout", "-q", "propose/town", cwd=one)
    message = git("log", "-1", "--format=%B", cwd=one).out.replace("-propose-", "-propose-0")
    git("reset", "-q", "--hard", "main", cwd=one)
    edit(one, "Be brief.", "Be kind.", branch="propose/town")
    git("commit", "-q", "--amend", "-m", message, cwd=one)
    before = refs(one)[BRANCH]
    (one / "tasks/town.jsonl").write_text(tasks(asked="In which year?"))
    report = proposed(one, "town")
    assert (report.proposals[0].answer, report.exit_code) == (Upshot.FAILED, ExitCode.CONFLICT)
    assert "is checked out in" in report.proposals[0].sentence
    assert refs(one)[BRANCH] == before


@pytest.fixture
def machines(repository, tmp_path) -> tuple[Path, Path, Path]:
    """A host and two clones of it."""
    host = make_host(repository, tmp_path)
    other = tmp_path / "other"
    git("clone", "-q", host / "origin.git", other, cwd=tmp_path)
    return host, repository, other


def test_the_second_machine_learns_what_the_first_did(machines):
    host, first, second = machines
    of_a_fork = {"url": "https://host/fork", "state": "OPEN", "isCrossRepository": True}
    (host / "propose_town.json").write_text(json.dumps([of_a_fork]))
    report = proposed(first, "town", host=host)
    assert (report.proposals[0].answer, report.proposals[0].url) == (
        Upshot.PROPOSED,
        "https://host/propose/town",
    )
    before = refs(host / "origin.git")
    report = proposed(second, "town", host=host)
    proposal = report.proposals[0]
    assert (proposal.answer, proposal.url, report.cost.calls) == (
        Upshot.STANDS,
        "https://host/propose/town",
        0,
    )
    # with another task it is another run, whose version is no better than the one that is proposed
    (second / "tasks/town.jsonl").write_text(tasks(asked="In which year?"))
    report = proposed(second, "town", host=host)
    assert (report.proposals[0].answer, report.exit_code) == (Upshot.BEHIND, ExitCode.NO)
    assert refs(host / "origin.git") == before
    assert BRANCH not in refs(second)
    assert (host / "log").read_text() == "created propose/town\n"


@pytest.mark.soak
def test_a_better_proposal_takes_the_place_of_another_machines(machines):
    host, first, second = machines
    proposed(first, "town", host=host)
    # what stands is made another run's, whose text brings nothing
    message = git("log", "-1", "--format=%B", "propose/town", cwd=first).out.replace("-propose-", "-propose-0")
    git("checkout", "-qb", "worse", "main", cwd=first)
    edit(first, "Be brief.", "Be kind.", branch="worse")
    git("commit", "-q", "--amend", "-m", message, cwd=first)
    git("push", "-q", "--force", "origin", "worse:propose/town", cwd=first)
    report = proposed(second, "town", host=host)
    assert (report.proposals[0].answer, report.exit_code) == (Upshot.PROPOSED, ExitCode.OK)
    assert refs(host / "origin.git")[BRANCH] == refs(second)[BRANCH] == report.proposals[0].commit
    assert (host / "log").read_text() == "created propose/town\nedited https://host/propose/town\n"


@pytest.mark.soak
def test_a_branch_that_moves_while_it_is_pushed_is_looked_at_again(machines, monkeypatch):
    host, first, second = machines
    push, races = Publication.push, []

    def raced(self, workspace, branch, commit, old):
        monkeypatch.setattr(Publication, "push", push)
        races.append(proposed(first, "town", host=host))
        return push(self, workspace, branch, commit, old)

    monkeypatch.setattr(Publication, "push", raced)
    report = proposed(second, "town", host=host)
    assert report.proposals[0].commit == refs(host / "origin.git")[BRANCH] == races[0].proposals[0].commit
    assert (host / "log").read_text() == "created propose/town\n"


@pytest.mark.soak
def test_without_gh_nothing_is_pushed_and_the_commands_are_said(machines):
    host, first, _ = machines
    (host / "bin" / "gh").unlink()
    report = proposed(first, "town", host=host)
    proposal = report.proposals[0]
    assert (proposal.answer, report.exit_code) == (Upshot.PROPOSED, ExitCode.NOT_FOUND)
    assert proposal.hint == ("git push origin propose/town, then gh pr create --head propose/town --base main --fill")
    assert BRANCH not in refs(host / "origin.git")
    assert BRANCH in refs(first)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"skills": ("away",)}, NotFoundError),
        ({"skills": ("../town",)}, NotFoundError),
        ({"branch": "one"}, UsageError),
        ({"skills": ("town",), "branch": "main"}, UsageError),
        ({"skills": ("town",), "branch": "run/NAME"}, UsageError),
        ({"skills": ("town",), "branch": "a..b"}, UsageError),
        ({"base": "away"}, RevisionNotFoundError),
        ({"pull_request": True}, NotFoundError),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_refused_before_anything_is_spent(request_, error, two_skills):
    with pytest.raises(error):
        propose(user(two_skills), ProposeRequest(**request_), Quiet())


@pytest.mark.soak
def test_changed_tasks_make_another_run_of_what_was_begun(repository):
    first = proposed(repository, "town", max_calls=25).proposals[0]
    assert (first.answer, first.error) == (Upshot.UNFINISHED, ExitCode.BUDGET)
    (repository / "tasks/town.jsonl").write_text(tasks(asked="In which year?"))
    second = proposed(repository, "town").proposals[0]
    assert second.answer is Upshot.PROPOSED
    assert second.run != first.run


@pytest.mark.soak
def test_a_runner_that_keeps_the_ledger_alone_gets_on_with_the_same_cap_each_time(two_skills, tmp_path):
    whole = proposed(copy_folder(two_skills, tmp_path / "whole"), "town").cost.calls
    spendings = []
    for night in range(9):
        runner = copy_folder(two_skills, tmp_path / f"runner-{night}")
        if night:
            ledger = tmp_path / f"runner-{night - 1}" / ".git/skillgit"
            shutil.copytree(ledger, runner / ".git/skillgit", dirs_exist_ok=True)
        report = proposed(runner, "town", max_calls=whole // 2)
        spendings.append(report.cost.calls)
        if report.exit_code is ExitCode.OK:
            break
    assert report.proposals[0].answer is Upshot.PROPOSED
    assert sum(spendings) == whole
    assert max(spendings) <= whole // 2


def test_sessions_are_counted_and_named_by_nothing_else(tmp_path):
    rows = [
        {"question": "When?", "answer": "1871", "status": "reviewed", "group": "0" * 16, "origin": {"agent": agent}}
        for agent in ("claude", "codex", "claude", "an agent of @someone")
    ]
    file = tmp_path / "town.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"question": "Where?", "answer": "here"}]))
    assert task_counts(file) == "5 reviewed: 2 from sessions of claude, 1 from sessions of codex, 2 written"
    assert task_counts(None) == task_counts(tmp_path / "away.jsonl") == ""
