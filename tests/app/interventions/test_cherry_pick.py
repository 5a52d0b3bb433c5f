from __future__ import annotations

import json
import re

import pytest
from asking import ask
from program import git, refs, skillgit

from skillgit.app.history.show import show
from skillgit.app.interventions.cherry_pick import apply_again, cherry_pick, recorded_edits
from skillgit.app.interventions.requests import CherryPickRequest
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.edit import apply, title_of
from skillgit.errors import BudgetError, ConfigError, RunLockedError, SkillgitError, UsageError
from skillgit.store.history_reader import read_commit, skill_at
from skillgit.store.lock import RunLock
from skillgit.store.repo import Repo


def pick(user, repository, revision, eyes, onto="one", **terms):
    request = CherryPickRequest(revision=revision, run=onto, **terms)
    return ask(cherry_pick, user(repository), request, eyes)


def test_edits_that_pass_the_gate_of_the_other_run_become_its_next_version(user, repository, eyes, document):
    picked = pick(user, repository, "one/v2", eyes, onto="two")
    assert picked.accepted, picked
    assert (picked.event.version, picked.event.score) == (picked.base + 1, picked.verdict.score)
    before, after = (
        set(document(repository, f"two/v{number}").splitlines()) for number in (picked.base, picked.base + 1)
    )
    brought = set(document(repository, "one/v2").splitlines()) - set(document(repository, "one/v1").splitlines())
    assert after > before
    assert after - before <= brought
    assert ask(show, user(repository), f"two/v{picked.event.version}").row.score == picked.verdict.score
    assert [name for name, _ in eyes.results] == [f"v{picked.base}"]


def test_the_commit_tells_where_the_edits_come_from(repository, trailers, evidence, sound):
    skillgit("cherry-pick", "one/v2", "--run", "two", "-q", cwd=repository)
    told = trailers(repository, "run/two")
    assert told["Skillgit-Origin"] == "cherry-pick number=1 of=one/v2"
    assert told["Skillgit-Gate"].startswith("accept")
    assert f"two/v{told['Skillgit-Base']}" in git("tag", "--merged", "run/two", cwd=repository).out
    assert len(git("log", "-1", "--format=%P", "run/two", cwd=repository).out.split()) == 1
    rows = evidence(repository, "run/two", "selection.json")
    assert len(rows) == 20
    score = re.search(r" score=(\S+)", told["Skillgit-Gate"]).group(1)
    assert sum(row["hard"] for row in rows) / 20 == pytest.approx(float(score))
    assert {edit["status"] for edit in evidence(repository, "run/two", "patch.json")["edits"]} == {"applied"}
    sound(repository)


def test_what_the_gate_refuses_stands_on_a_side_branch_and_the_run_stays(user, repository, eyes, document):
    before = git("rev-parse", "run/two", cwd=repository).out
    picked = pick(user, repository, "one/r1", eyes, onto="two")
    assert not picked.accepted
    assert picked.branch == "rejected/two/0006-cherry-pick-1"
    assert git("rev-parse", "run/two", cwd=repository).out == before
    assert document(repository, picked.branch) != document(repository, "run/two")
    assert picked.evaluation.unneeded > 0, "the gate stops as soon as it can only refuse"
    assert pick(user, repository, "one/r1", eyes, onto="two").branch == "rejected/two/0006-cherry-pick-2"
    skillgit("fsck", "--deep", cwd=repository)


def test_edits_that_do_not_apply_are_named(user, repository, eyes):
    with pytest.raises(SkillgitError, match=r"one/v3 does not apply to two/v\d: SKILL.md line \d+ has") as caught:
        pick(user, repository, "one/v3", eyes, onto="two")
    assert "skillgit merge" in caught.value.hint


def test_what_stands_there_already_is_told_and_nothing_is_written(user, repository, eyes):
    before = refs(repository)
    with pytest.raises(SkillgitError, match="already has what one/v1 changed"):
        pick(user, repository, "one/v1", eyes)
    with pytest.raises(UsageError, match="changed no rule"):
        pick(user, repository, "two/v0", eyes)
    assert refs(repository) == before


def test_without_evidence_lines_are_merged_and_conflicts_are_named(user, repository, eyes):
    git("update-ref", "-d", "refs/skillgit/evidence/two", cwd=repository)
    git("gc", "-q", "--prune=now", cwd=repository)
    with pytest.raises(SkillgitError, match=r"two/v1 does not apply to one/v\d: SKILL.md line \d+ has '.*' here"):
        pick(user, repository, "two/v1", eyes)


def test_lines_that_no_patch_can_bring_keep_the_history_sound(repository, document, by_hand, evidence, sound):
    skillgit("fork", "one/head", "three", cwd=repository)
    before = document(repository, "run/one")
    assert before.endswith("<!-- /skillgit:slow -->\n"), "no edit can name the place behind a region"
    by_hand(repository, "one", f"{before}\n\nName the year alone.\n")
    done = skillgit("cherry-pick", "one/head", "--run", "three", "--json", "-q", cwd=repository, code=1)
    commit = json.loads(done.out)["event"]["commit"]
    assert document(repository, commit) == document(repository, "run/one")
    assert evidence(repository, commit, "patch.json")["lines"] is True
    sound(repository)


def test_a_run_that_is_being_trained_is_left_alone(user, repository, eyes):
    context = user(repository)
    with (
        RunLock(Repo.discover(repository), "two", context.clock),
        pytest.raises(RunLockedError) as caught,
    ):
        pick(user, repository, "one/v2", eyes, onto="two")
    assert caught.value.exit_code == 4


def test_a_cap_writes_nothing_and_the_same_command_goes_on(user, repository, eyes):
    before = refs(repository)
    with pytest.raises(BudgetError) as caught:
        pick(user, repository, "one/v2", eyes, onto="two", max_calls=5)
    assert "costs nothing" in caught.value.hint
    assert refs(repository) == before
    whole = pick(user, repository, "one/v2", eyes, onto="two")
    assert whole.cost.calls == 20, "what was paid for before counts, and is not paid twice"


def test_another_configuration_than_that_of_the_run_is_refused(user, repository, eyes):
    before = refs(repository)
    with pytest.raises(ConfigError, match="nothing can be judged for run two: the items are not those of run two"):
        pick(user, repository, "one/v2", eyes, onto="two", config="demo")
    assert refs(repository) == before


def test_the_command_says_what_happened_and_exits_with_1_on_a_refusal(repository):
    done = skillgit("cherry-pick", "one/v2", "--run", "two", cwd=repository)
    assert "accepted" in done.out
    assert "next" in done.out
    refused = skillgit("cherry-pick", "one/r1", "--run", "two", "--json", "-q", cwd=repository, code=1)
    told = json.loads(refused.out)
    assert (told["schema"], told["accepted"], told["of"]) == ("skillgit.cherry-pick/1", False, "one/r1")
    assert refused.err == ""
    missing = skillgit("cherry-pick", "v99", cwd=repository, code=3)
    assert "hint:" in missing.err


def test_the_hint_never_compares_a_version_with_itself(repository):
    newest = git("describe", "--tags", "--abbrev=0", "--match", "one/v*", "run/one", cwd=repository).out.strip()
    itself = skillgit("cherry-pick", newest, "--run", "one", cwd=repository, code=1).err
    assert f"{newest} already has what {newest} changed" in itself
    assert f"hint: skillgit show {newest} " in itself


@pytest.mark.parametrize("kept", [(), (0,), (1,), (0, 1)])
def test_the_title_names_what_was_brought_and_nothing_that_stood_there(user, repository, kept):
    with Workspace(user(repository)) as workspace:
        rows = [event_in(workspace, f"one/v{number}") for number in range(1, 4)]
        row, edits = next((row, found) for row in rows if len(found := recorded_edits(workspace, row)) > 1)
        base = skill_at(workspace.repo, read_commit(workspace.repo, row.commit).parents[0], "skills/searchqa")
        head = apply(base, [edit for place, edit in enumerate(edits) if place not in kept]).skill
        if not kept:
            with pytest.raises(SkillgitError, match="already has what"):
                apply_again(workspace, row, head, "one/v0")
            return
        made = apply_again(workspace, row, head, "one/v0")
        brought = [edit for place, edit in enumerate(edits) if place in kept]
        whole = len(brought) == len(edits)
        assert made.title == (row.title if whole else title_of(brought))
        assert ("that were missing" in made.why) == (not whole)
