"""What was measured after its run counts where the run has nothing to say, if the same items were measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder
from program import git
from trained_runs import RUN, Quiet, small_run, user

from skillgit.app.history.diff.items import items
from skillgit.app.history.diff.stat import stat
from skillgit.app.history.item import item_story
from skillgit.app.measure.eval import evaluate
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.measure.verify import verify
from skillgit.errors import NotFoundError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def edited(tmp_path_factory, tmp_path) -> tuple[Path, str]:
    """A run whose newest version somebody edited by hand, and that version."""
    folder = copy_folder(small_run(tmp_path_factory), tmp_path / "repository")
    git("checkout", "-q", f"run/{RUN}", cwd=folder)
    (document,) = folder.glob("skills/*/SKILL.md")
    document.write_text(f"{document.read_text()}\nBy hand.\n")
    git("-c", "user.name=U", "-c", "user.email=u@x", "commit", "-qam", "by hand", cwd=folder)
    git("checkout", "-q", "--detach", cwd=folder)
    return folder, "head"


def measure(folder: Path, revision: str, **request: object) -> None:
    ask(evaluate, user(folder), EvalRequest(revisions=(revision,), **request), Quiet())


def rewrite_note(folder: Path, commit: str, line: str) -> None:
    person = ("-c", "user.name=U", "-c", "user.email=u@x")
    git(*person, "notes", "--ref=skillgit/evals", "add", "-f", "-m", line, commit, cwd=folder)


def test_the_hint_of_a_comparison_leads_to_one(edited):
    folder, head = edited
    with pytest.raises(NotFoundError, match=r"v\d+ was not measured on single items") as caught:
        ask(items, user(folder), "best", head)
    assert "skillgit eval" in caught.value.hint
    assert ask(stat, user(folder), "best", head).fixed is None
    measure(folder, head)
    found = ask(items, user(folder), "best", head)
    assert len(found.rows) == 20
    assert not found.missing
    assert any("a note tells it" in note for note in found.notes)
    assert {row.task_type for row in found.rows} == {
        row.task_type for row in ask(items, user(folder), "v0", "best").rows
    }
    told = ask(stat, user(folder), "best", head)
    assert (told.fixed, told.broken) == (len(found.fixed), len(found.broken))
    newest = ask(item_story, user(folder), RUN, found.rows[0].item).attempts[-1]
    assert newest.outcome is not None
    assert newest.outcome.noted


def test_other_items_of_the_same_names_do_not_count(edited):
    folder, head = edited
    measure(folder, head)
    commit = git("rev-parse", f"run/{RUN}", cwd=folder).out.strip()
    note = json.loads(git("notes", "--ref=skillgit/evals", "show", commit, cwd=folder).out)
    other = json.dumps(note | {"item_set": "0123456789ab"})
    rewrite_note(folder, commit, other)
    with pytest.raises(NotFoundError, match="was not measured on single items"):
        ask(items, user(folder), "best", head)


def test_the_hint_of_a_verification_leads_to_one(edited):
    folder, head = edited
    asked = EvalRequest(revisions=(head,), sample=5)
    with pytest.raises(NotFoundError, match="no score of head on the selection split is recorded") as caught:
        ask(verify, user(folder), asked, Quiet())
    assert caught.value.hint == "skillgit eval head --split selection"
    measure(folder, head)
    found = ask(verify, user(folder), asked, Quiet())
    assert (found.verdict.word, found.claim.n, found.claim.paired) == ("consistent", 20, True)
    assert "a note tells it" in found.claim.remark


def test_a_sample_is_no_claim_of_the_whole(edited):
    folder, head = edited
    measure(folder, head)
    asked = EvalRequest(revisions=(head,), sample=5)
    ask(verify, user(folder), asked, Quiet())
    commit = git("rev-parse", f"run/{RUN}", cwd=folder).out.strip()
    lines = git("notes", "--ref=skillgit/evals", "show", commit, cwd=folder).out.splitlines()
    (sample,) = [line for line in lines if "sampled_of" in line]
    rewrite_note(folder, commit, sample)
    with pytest.raises(NotFoundError, match="no score of head"):
        ask(verify, user(folder), asked, Quiet())
