"""The edits of one version taken back: later ones stay, the gate decides, and what cannot be is said."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from asking import ask
from program import git, refs, skillgit

from skillgit.app.interventions.requests import RevertRequest
from skillgit.app.interventions.revert import revert, take_back
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.proposal import changed_lines
from skillgit.errors import SkillgitError, UsageError
from skillgit.store.history_reader import read_commit, skill_at


def taken_back(user, repository, revision, eyes, **terms):
    return ask(revert, user(repository), RevertRequest(revision=revision, **terms), eyes)


def versions(repository, run: str) -> list[str]:
    rows = json.loads(skillgit("log", run, "--json", cwd=repository).out)["events"][::-1]
    return [f"{run}/v{row['version']}" for row in rows if row["version"]]


def changes(before, after) -> Counter[tuple[str, str]]:
    return Counter((change.sign, change.text) for change in changed_lines(before, after))


@pytest.mark.parametrize("run", ["one", "two"])
def test_exactly_the_lines_of_the_version_go_and_those_of_later_ones_stay(user, repository, run):
    reverted = 0
    with Workspace(user(repository)) as workspace:
        path = workspace.index.skill_path(run)
        head = skill_at(workspace.repo, event_in(workspace, f"{run}/head").commit, path)
        for name in versions(repository, run):
            row = event_in(workspace, name)
            after = skill_at(workspace.repo, row.commit, path)
            before = skill_at(workspace.repo, read_commit(workspace.repo, row.commit).parents[0], path)
            try:
                made = take_back(workspace, row, head, f"{run}/head")
            except SkillgitError:
                continue
            reverted += 1
            own = changes(before, after)
            assert changes(made.skill, head) - own == Counter()
            assert made.title.startswith(f"{row.label}, ")
            if row.is_head:
                assert made.skill == before
    assert reverted


def test_a_version_is_taken_back_and_the_commit_tells_so(
    user, repository, eyes, *, document, trailers, evidence, sound
):
    newest = versions(repository, "two")[-1]
    done = taken_back(user, repository, newest, eyes)
    commit = done.event.commit
    told = trailers(repository, commit)
    assert told["Skillgit-Origin"] == f"revert number=1 of={newest}"
    assert document(repository, commit) == document(repository, f"{newest}~1")
    assert git("log", "-1", "--format=%s", commit, cwd=repository).out.startswith(
        f"revert: {newest.partition('/')[2]}, "
    )
    assert evidence(repository, commit, "patch.json")["edits"]
    assert done.accepted == (git("rev-parse", "run/two", cwd=repository).out.strip() == commit)
    if not done.accepted:
        assert done.branch.endswith("-revert-1")
    sound(repository)


def test_a_reverted_revert_is_the_text_from_before(user, repository, eyes, *, document, by_hand, sound):
    before = document(repository, "run/two")
    rule = "- Never answer in a language that nobody asked for."
    by_hand(repository, "two", f"{before}\n{rule}\n")
    first = skillgit("revert", "two/head", "-q", "--json", cwd=repository)
    told = json.loads(first.out)
    assert (told["schema"], told["accepted"]) == ("skillgit.revert/2", True), "the rule changed no score"
    assert document(repository, "run/two").rstrip() == before.rstrip()
    taken_back(user, repository, "two/head", eyes)
    assert rule in document(repository, "run/two")
    sound(repository)


def test_a_dry_run_plans_and_writes_nothing(user, repository, eyes):
    before = refs(repository)
    plan = taken_back(user, repository, versions(repository, "two")[-1], eyes, dry_run=True)
    assert plan.command == "revert"
    assert refs(repository) == before


def test_lines_that_changed_again_are_named_and_nothing_is_written(user, repository, eyes, document, by_hand):
    by_hand(repository, "two", document(repository, "run/two") + "\n- Say it in one word.\n")
    edited = versions(repository, "two")[-1]
    by_hand(repository, "two", document(repository, "run/two").replace("in one word", "in two words"))
    before = refs(repository)
    with pytest.raises(SkillgitError, match=r"later versions changed what .* did: SKILL.md line") as caught:
        taken_back(user, repository, edited, eyes)
    assert f"'- Say it in two words.' now and nothing before {edited.removeprefix('two/')}" in caught.value.message
    assert caught.value.hint.startswith("skillgit revert --to two/v")
    assert refs(repository) == before


def test_the_first_version_has_no_edits(user, repository, eyes):
    with pytest.raises(UsageError, match="two/v0 is the first version of its run") as caught:
        taken_back(user, repository, "two/v0", eyes)
    assert caught.value.hint.startswith("skillgit revert --to two/v0 ")


def test_what_is_gone_already_is_said(user, repository, eyes, document, by_hand):
    text = document(repository, "run/two")
    by_hand(repository, "two", f"{text}\n- Say it in one word.\n")
    edited = versions(repository, "two")[-1]
    by_hand(repository, "two", text)
    with pytest.raises(SkillgitError, match=f"has nothing of {edited} that could be taken back"):
        taken_back(user, repository, edited, eyes)


def test_frontmatter_stays_and_that_is_said(user, repository, eyes, document, by_hand):
    text = document(repository, "run/two")
    by_hand(repository, "two", text.replace("---\n", "---\nlicense: MIT\n", 1))
    with pytest.raises(SkillgitError, match="the frontmatter stays, which belongs to people"):
        taken_back(user, repository, "two/head", eyes)


def test_the_old_use_is_led_to_restore(repository):
    refused = skillgit("revert", "one/v0", "--gate", cwd=repository, code=2)
    assert "hint: skillgit revert --to one/v0 --gate makes its text the newest version" in refused.err
