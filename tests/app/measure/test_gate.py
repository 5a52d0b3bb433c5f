from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder
from program import git, refs, skillgit
from trained_runs import RUN, Quiet, small_run, user

from skillgit.app.measure.pull_request_gate import gate
from skillgit.app.measure.pull_request_verdicts import compare, conclusion
from skillgit.app.measure.requests import GateRequest
from skillgit.app.setup.plan import Bound
from skillgit.calls.client import Calls
from skillgit.domain.evaluation import PERFECT, Evaluation, Split
from skillgit.domain.gate_decision import GateRule
from skillgit.domain.gate_policies import PAIRED, STRICT
from skillgit.domain.ids import text_digest
from skillgit.errors import (
    BudgetError,
    ExitCode,
    FatalBackendError,
    ProviderFailureError,
    RevisionNotFoundError,
    UsageError,
)

if TYPE_CHECKING:
    from pathlib import Path

SKILL = "skills/searchqa/SKILL.md"
OTHER = "skills/other/SKILL.md"
WHO = ("-c", "user.name=P", "-c", "user.email=p@example.org")
FEW = ("evaluation.sel_env_num=5",)


@pytest.fixture
def repository(tmp_path_factory, tmp_path) -> Path:
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


def text_of(repository: Path, revision: str) -> str:
    return git("show", f"{revision}:{SKILL}", cwd=repository).out


def branch(repository: Path, name: str, start: str, files: dict[str, str | None]) -> str:
    """Make a branch with one commit that sets ``files``, or removes those without a text, and return the commit."""
    tree = repository.parent / f"tree-{name}"
    git("worktree", "add", "-q", "-b", name, tree, start, cwd=repository)
    for path, text in files.items():
        if text is None:
            git("rm", "-rq", path, cwd=tree)
        else:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
            git("add", path, cwd=tree)
    git(*WHO, "commit", "-q", "-m", f"Change by hand on {name}", cwd=tree)
    git("worktree", "remove", tree, cwd=repository)
    return git("rev-parse", name, cwd=repository).out.strip()


def judged(repository: Path, base: str, head: str, *, watcher: Quiet | None = None, **request):
    return ask(gate, user(repository), GateRequest(base=base, head=head, **request), watcher or Quiet())


def without_ledger(repository: Path) -> None:
    for file in (repository / ".git/skillgit").glob("ledger.db*"):
        file.unlink()


def notes_of(repository: Path, revision: str) -> list[dict[str, object]]:
    listed = git("notes", "--ref=skillgit/evals", "show", revision, cwd=repository).out
    return [json.loads(line) for line in listed.splitlines()]


def test_versions_are_compared_by_what_their_run_recorded(repository):
    before, watcher = refs(repository), Quiet()
    found = judged(repository, f"{RUN}/v1", f"{RUN}/v2", watcher=watcher)
    (one,) = found.skills
    assert (found.exit_code, one.word, found.cost.calls, watcher.results) == (ExitCode.OK, "passes", 0, [])
    assert (one.base.recorded, one.head.recorded, one.base.missing) == (20, 20, 0)
    assert (one.base.version, one.head.version) == (f"{RUN}/v1", f"{RUN}/v2")
    compared = one.compared
    assert (one.base.score, one.head.score, compared.n) == (0.2, 0.45, 20)
    kinds = (compared.fixed, compared.broken, compared.stable_pass, compared.stable_fail, compared.missing)
    assert sum(map(len, kinds)) == 20
    assert compared.delta == pytest.approx((len(compared.fixed) - len(compared.broken)) / 20)
    assert (compared.fixed[0].before, compared.fixed[0].after) == (0.0, 1.0)
    assert refs(repository) == before
    back = judged(repository, f"{RUN}/v2", f"{RUN}/v1")
    assert (back.exit_code, back.skills[0].word) == (ExitCode.NO, "fails")
    assert [pair.item for pair in back.skills[0].compared.broken] == [pair.item for pair in compared.fixed]


def test_a_text_made_by_hand_is_measured_once_and_the_base_not_at_all(repository):
    head = branch(repository, "change", "main", {SKILL: text_of(repository, f"{RUN}/v2") + "\n- Be kind.\n"})
    watcher = Quiet()
    (one,) = judged(repository, "main", "change", watcher=watcher).skills
    assert watcher.results == [("searchqa at change", "selection")]
    assert (one.base.recorded, one.head.recorded, one.head.missing) == (20, 0, 20)
    assert (one.cost.calls, one.noted) == (20, 1)
    assert (one.base.score, one.head.score, one.word) == (0.1, 0.45, "passes")
    (note,) = notes_of(repository, head)
    assert (note["kind"], note["skill"], note["n"], len(note["outcomes"])) == ("evaluation", "skills/searchqa", 20, 20)
    without_ledger(repository)
    (again,) = judged(repository, "main", "change").skills
    assert (again.head.recorded, again.cost.calls, again.noted, again.compared) == (20, 0, 0, one.compared)


def test_a_text_is_known_in_whatever_commit_it_stands(repository):
    branch(repository, "picked", "main", {SKILL: text_of(repository, f"{RUN}/v2")})
    (one,) = judged(repository, "main", "picked").skills
    assert (one.head.recorded, one.head.version, one.head.score, one.cost.calls) == (20, "", 0.45, 0)


def test_what_was_recorded_under_other_conditions_does_not_count(repository):
    plan = judged(repository, f"{RUN}/v0", f"{RUN}/v2", overrides=("model.target=agent",), dry_run=True)
    assert (plan.known, plan.total.calls) == (0, 40)
    (few,) = judged(repository, f"{RUN}/v0", f"{RUN}/v2", overrides=FEW).skills
    assert (few.items, few.head.recorded, few.cost.calls) == (5, 5, 0), "items with the same content count"


def test_a_note_on_other_items_does_not_count(repository):
    head = branch(repository, "change", "main", {SKILL: text_of(repository, f"{RUN}/v2") + "\n- Be kind.\n"})
    judged(repository, "main", "change")
    (note,) = notes_of(repository, head)
    for changed in ({"item_set": "0000"}, {"skill": "skills/other"}, {"environment": "0000"}, {"judge": "a/b"}):
        line = json.dumps(note | changed)
        git(*WHO, "notes", "--ref=skillgit/evals", "add", "-f", "-m", line, head, cwd=repository)
        plan = judged(repository, "main", "change", dry_run=True)
        assert plan.facts["searchqa"] == "20 of 40 outcomes recorded", changed
    git(*WHO, "notes", "--ref=skillgit/evals", "add", "-f", "-m", json.dumps(note), head, cwd=repository)
    plan = judged(repository, "main", "change", dry_run=True)
    assert (plan.facts["searchqa"], plan.known, plan.total.calls) == ("40 of 40 outcomes recorded", 40, 0)


def test_only_recorded_outcomes_may_be_wanted(repository):
    branch(repository, "change", "main", {SKILL: text_of(repository, f"{RUN}/v2") + "\n- Be kind.\n"})
    before = refs(repository)
    found = judged(repository, "main", "change", recorded_only=True)
    (one,) = found.skills
    assert (found.exit_code, one.word, one.cost.calls) == (ExitCode.UNDERPOWERED, "incomplete", 0)
    assert one.reason == "20 of 20 items have no score on both sides, and only recorded outcomes were wanted"
    assert len(one.compared.missing) == 20
    assert refs(repository) == before


def test_what_it_costs_is_told_and_nothing_spent(repository):
    branch(repository, "change", "main", {SKILL: text_of(repository, "main") + "\n- Be kind.\n"})
    before = refs(repository)
    plan = judged(repository, "main", "change", dry_run=True)
    assert (plan.total.calls, plan.total.bound, plan.total.usd) == (20, Bound.EXACTLY, 0.0)
    assert refs(repository) == before
    found = judged(repository, "main", "change")
    assert found.cost.calls == plan.total.calls


def test_a_head_that_changes_no_skill_passes(repository):
    branch(repository, "readme", "main", {"README.md": "Words.\n"})
    found = judged(repository, "main", "readme")
    assert (found.skills, found.exit_code) == ((), ExitCode.OK)


def test_what_only_the_base_changed_is_no_change_of_the_head(repository):
    branch(repository, "readme", "main", {"README.md": "Words.\n"})
    branch(repository, "ahead", "main", {SKILL: text_of(repository, f"{RUN}/v2")})
    assert judged(repository, "ahead", "readme").skills == ()
    branch(repository, "both", "main", {SKILL: text_of(repository, f"{RUN}/v1")})
    (one,) = judged(repository, "ahead", "both").skills
    assert (one.word, one.base.score, one.head.score) == ("fails", 0.45, 0.2)
    assert "ahead changed this skill too" in one.warnings[0]


def test_a_base_with_the_full_score_is_no_want_of_items():
    full = Evaluation(split=Split.SELECTION, item_set="", outcomes={f"q{n}": PERFECT for n in range(40)}, seed=0)
    for policy in (STRICT, PAIRED):
        rule = GateRule(policy=policy)
        word, reason, code = conclusion(rule, compare(rule, full, full, {}), recorded_only=False)
        assert (word, code) == ("fails", ExitCode.NO)
        assert reason.startswith("the base has the full score")


@pytest.mark.parametrize("items", [3, 5, 8, 40, 400])
@pytest.mark.parametrize("left", [1, 2, 3])
def test_the_number_of_items_is_named_as_the_lack_only_where_more_of_the_same_would_help(items, left):
    solved = {f"q{n}": replace(PERFECT, hard=float(n >= left), soft=float(n >= left)) for n in range(items)}
    base = Evaluation(split=Split.SELECTION, item_set="", outcomes=solved, seed=0)
    word, reason, _ = conclusion(
        GateRule(policy=PAIRED), compare(GateRule(policy=PAIRED), base, base, {}), recorded_only=False
    )
    if items < 5:
        assert (word, reason) == (
            "underpowered",
            f"{items} items are too few for the paired test at alpha 0.05 to find any gain",
        )
    else:
        assert (word, "are too few" in reason) == ("underpowered", False)
        assert (
            f"the base scores {1 - left / items:.4f} on {items} items, and what is left to gain is too little" in reason
        )


def test_a_tie_passes_only_where_no_loss_is_enough(repository):
    branch(repository, "same", "main", {SKILL: text_of(repository, "main") + "\n"})
    (strict,) = judged(repository, "main", "same").skills
    assert (strict.word, strict.policy, strict.reason) == (
        "fails",
        "strict",
        "the head scores the same, and the rule wants more",
    )
    (enough,) = judged(repository, "main", "same", rule="not-worse").skills
    assert (enough.word, enough.policy, enough.cost.calls) == ("passes", "not-worse", 0)


def test_items_that_are_too_few_for_the_paired_test_are_told(repository):
    found = judged(repository, f"{RUN}/v0", f"{RUN}/v2", rule="paired", overrides=("evaluation.sel_env_num=4",))
    (one,) = found.skills
    assert (found.exit_code, one.word) == (ExitCode.UNDERPOWERED, "underpowered")
    assert "4 items are too few" in one.reason
    (enough,) = judged(repository, f"{RUN}/v0", f"{RUN}/v2", rule="paired").skills
    assert (enough.word, enough.compared.verdict.p <= 0.05) == ("passes", True)


def test_the_test_split_has_what_the_run_recorded_at_its_end(repository):
    (one,) = judged(repository, f"{RUN}/v0", f"{RUN}/best", split="test").skills
    assert (one.items, one.base.recorded, one.head.recorded, one.cost.calls) == (8, 8, 8, 0)


def test_a_skill_that_goes_needs_no_score_and_one_that_comes_is_compared_with_none(repository):
    gone = judged(repository, "main", branch(repository, "gone", "main", {"skills/searchqa": None}))
    assert [(one.word, one.change) for one in gone.skills] == [("removed", "removed")]
    assert gone.exit_code is ExitCode.OK
    text = text_of(repository, f"{RUN}/v2").replace("name: searchqa", "name: other")
    branch(repository, "come", "main", {OTHER: text})
    unknown = judged(repository, "main", "come")
    assert [(one.skill, one.word) for one in unknown.skills] == [("skills/other", "not measured")]
    assert unknown.exit_code is ExitCode.UNDERPOWERED
    (one,) = judged(repository, "main", "come", configs=("demo",), overrides=FEW).skills
    assert (one.change, one.base.name, one.base.commit, one.config) == ("added", "none", "", "demo")
    assert (one.base.missing, one.head.missing, one.noted) == (5, 5, 1)


def two_changes(repository: Path) -> None:
    text = text_of(repository, f"{RUN}/v2")
    other = text.replace("name: searchqa", "name: other")
    branch(repository, "two", "main", {SKILL: f"{text}\n- Be kind.\n", OTHER: other})


def test_each_of_several_skills_is_judged_by_its_own_configuration(repository):
    two_changes(repository)
    with pytest.raises(UsageError, match="it is not clear which skill --config demo is for: other, searchqa") as caught:
        judged(repository, "main", "two", configs=("demo",))
    assert caught.value.hint == "name it: --config other=demo"
    found = judged(repository, "main", "two", configs=("other=demo", "elsewhere=demo"), overrides=FEW)
    assert [(one.skill, one.config) for one in found.skills] == [
        ("skills/other", "demo"),
        ("skills/searchqa", f"run {RUN}"),
    ]
    assert found.cost.calls == sum(one.cost.calls for one in found.skills) == 10, (
        "one text is asked once, whatever its name"
    )
    lines = notes_of(repository, "two")
    assert sorted(line["skill"] for line in lines) == ["skills/other", "skills/searchqa"]
    without_ledger(repository)
    again = judged(repository, "main", "two", configs=("other=demo",), overrides=FEW)
    assert again.cost.calls == 5, "the arm without a skill has no commit that could keep a note"


def test_a_cap_holds_for_all_skills_together_and_what_was_measured_is_kept(repository):
    two_changes(repository)
    request = {"configs": ("other=demo",), "overrides": FEW}
    with pytest.raises(BudgetError):
        judged(repository, "main", "two", max_calls=7, **request)
    assert [line["skill"] for line in notes_of(repository, "two")] == ["skills/other"]
    assert judged(repository, "main", "two", max_calls=3, **request).cost.calls == 3


def test_a_provider_that_is_down_is_no_verdict(repository, monkeypatch):
    branch(repository, "change", "main", {SKILL: text_of(repository, "main") + "\n- Be kind.\n"})

    async def down(*_, **__):
        raise ProviderFailureError("the provider is down", hint="")

    monkeypatch.setattr(Calls, "call", down)
    with pytest.raises(ProviderFailureError):
        judged(repository, "main", "change")


def test_items_that_cannot_be_evaluated_are_no_verdict_either(repository, monkeypatch):
    branch(repository, "change", "main", {SKILL: text_of(repository, "main") + "\n- Be kind.\n"})
    call = Calls.call

    async def partly(self, role, stage, messages, *, draw, **options):
        if int(text_digest(draw[2]), 16) % 4 == 0:
            raise FatalBackendError("the context is too long", hint="")
        return await call(self, role, stage, messages, draw=draw, **options)

    monkeypatch.setattr(Calls, "call", partly)
    found = judged(repository, "main", "change")
    (one,) = found.skills
    assert (found.exit_code, one.word) == (ExitCode.SERVICE, "incomplete")
    assert 0 < one.head.scored < 18
    assert "could not be evaluated" in one.reason


def test_a_clone_judges_with_the_evidence_or_with_a_configuration(repository, tmp_path):
    head = branch(repository, "picked", "main", {SKILL: text_of(repository, f"{RUN}/v2")})
    git("clone", "-q", repository.as_uri(), tmp_path / "clone", cwd=tmp_path)
    clone = tmp_path / "clone"
    with pytest.raises(UsageError, match="the configuration of run small is not here"):
        judged(clone, "origin/main", head)
    alike = ("evaluation.sel_env_num=20", "evaluation.test_env_num=8")
    plan = judged(clone, "origin/main", head, configs=("demo",), overrides=alike, dry_run=True)
    assert (plan.known, plan.total.calls) == (0, 40)
    git("fetch", "-q", "origin", "refs/skillgit/*:refs/skillgit/*", cwd=clone)
    (known,) = judged(clone, "origin/main", head, recorded_only=True).skills
    assert (known.word, known.base.recorded, known.head.recorded) == ("passes", 20, 20)


def test_a_run_whose_configuration_is_not_here_lends_none_and_no_older_run_takes_its_place(repository, tmp_path):
    """A colleague's run, pulled without its evidence."""
    clone = tmp_path / "clone"
    git("clone", "-q", repository, clone, cwd=tmp_path)
    skillgit("pull", cwd=clone)
    skillgit("fork", f"{RUN}/v1", "theirs", cwd=clone)
    git("push", "-q", "origin", "refs/heads/run/theirs", "refs/heads/best/theirs", "refs/tags/theirs/v0", cwd=clone)

    with pytest.raises(UsageError, match="the configuration of run theirs is not here") as refused:
        judged(repository, "main", "theirs/v0", recorded_only=True)

    assert "--config CONFIG" in refused.value.hint


def test_a_revision_that_is_not_there_is_an_error(repository):
    with pytest.raises(RevisionNotFoundError):
        judged(repository, "main", "nowhere")
