from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from skillgit.app.exchange.pull import Cloned, FetchedRef, Joined, Joining, Pulled, folder_of
from skillgit.app.exchange.push import Pushed, RefState, RefusalCause, SentRef
from skillgit.app.exchange.requests import PushRequest
from skillgit.errors import ExitCode

OLD, NEW = "a" * 40, "b" * 40
URL = "https://example.org/skills.git"


def sent(ref: str, run: str = "demo", **more: object) -> SentRef:
    return SentRef(ref=ref, run=run, **({"state": RefState.PUSHED, "new": NEW} | more))


PUSHED = Pushed(
    remote="origin",
    url=URL,
    dry_run=False,
    refs=(
        sent("refs/heads/main", "", state=RefState.UP_TO_DATE, old=NEW),
        sent("refs/heads/run/demo", old=OLD),
        sent("refs/tags/demo/v0"),
        sent("refs/tags/demo/v1"),
        sent("refs/heads/rejected/demo/0002"),
        sent("refs/notes/skillgit/evals", ""),
        sent("refs/skillgit/attic/demo", state=RefState.REJECTED, cause=RefusalCause.HOST, reason="no", optional=True),
    ),
    warnings=("origin did not take it",),
)
PULLED = Pulled(
    remote="origin",
    url=URL,
    dry_run=False,
    main=Joined(run="", state=Joining.FORWARD, moved=1),
    runs=(
        Joined(run="demo", state=Joining.DIVERGED, reason="run/demo went on here and on origin"),
        Joined(run="other", state=Joining.NEW, moved=7, note="a note"),
    ),
    notes=True,
    heads={"demo": 3},
)


def test_push_tells_refs_of_one_kind_together(skillgit, fake):
    calls = fake("exchange.push.push", PUSHED)
    ended = skillgit("push", "origin", "demo", "--rejected", "branches", "--evidence", "--no-verify")
    assert ended.text == (
        f"push to origin, {URL}\n"
        "  main   up to date\n"
        "  demo   pushed      run, 2 tags, 1 rejected candidate\n"
        "  notes  pushed\n"
        "  demo   rejected    attic: no\n"
    )
    assert (ended.code, ended.err) == (ExitCode.OK, "warning: origin did not take it\n")
    assert calls[0][0] == PushRequest(
        remote="origin", runs=("demo",), rejected_mode="branches", evidence=True, verify=False, dry_run=False
    )


def test_push_for_machines(skillgit, fake):
    fake("exchange.push.push", PUSHED)
    document = json.loads(skillgit("push", "--json").out)
    assert (document["schema"], document["remote"], len(document["refs"])) == ("skillgit.push/1", "origin", 7)
    assert document["refs"][6]["state"] == "rejected"
    rows = [line.split("\t") for line in skillgit("push", "--plain").text.splitlines()]
    assert rows[1] == ["refs/heads/run/demo", "demo", "pushed", OLD, NEW, "", ""]


@pytest.mark.parametrize(
    ("cause", "reason", "code", "hint"),
    [
        (RefusalCause.MOVED, "it moved", ExitCode.CONFLICT, "skillgit pull origin, then push again"),
        (
            RefusalCause.HOST,
            "hook declined",
            ExitCode.SERVICE,
            "its host has rules of its own; its answer is above",
        ),
        (
            RefusalCause.HOST,
            "branch limit exceeded",
            ExitCode.SERVICE,
            "skillgit gc --fold makes one hidden ref of the branches of rejected candidates",
        ),
    ],
)
def test_push_ends_with_the_reason_that_a_ref_was_refused(cause, reason, code, hint, *, skillgit, fake):
    lost = sent("refs/heads/run/demo", state=RefState.REJECTED, cause=cause, reason=reason)
    fake("exchange.push.push", Pushed(remote="origin", url=URL, dry_run=False, refs=(lost,), warnings=()))
    ended = skillgit("push")
    assert ended.code == code
    assert f"rejected  run: {reason}\n" in ended.text
    assert ended.err.endswith(f"hint: {hint}\n")


def test_pull_tells_each_run_and_ends_with_the_one_that_diverged(skillgit, fake):
    fake("exchange.pull.pull", PULLED)
    ended = skillgit("pull")
    assert ended.text == (
        f"pull from origin, {URL}\n"
        "  main   went forward\n"
        "  demo   diverged      run/demo went on here and on origin\n"
        "  other  new           7 refs; a note\n"
        "  notes  joined\n"
    )
    assert ended.code == ExitCode.CONFLICT
    assert "hint: skillgit fork demo/v3 NAME keeps your line as a run of its own" in ended.err


def test_a_dry_run_of_pull_names_what_is_new_there(skillgit, fake):
    fetched = (
        FetchedRef(ref="refs/heads/run/demo", run="demo", old=OLD, new=NEW),
        FetchedRef(ref="refs/heads/rejected/demo/0002", run="demo", old="", new=NEW),
        FetchedRef(ref="refs/heads/main", run="", old="", new=NEW),
    )
    run = Joined(run="demo", state=Joining.FORWARD, moved=3)
    would = replace(PULLED, dry_run=True, main=None, runs=(run,), notes=False, fetched=fetched)
    fake("exchange.pull.pull", would)
    assert skillgit("pull", "-n").text == (
        f"would pull from origin, {URL}\n"
        "  demo  went forward  3 refs\n"
        "new there\n"
        "  demo  run, 1 rejected candidate\n"
        "  1 other ref\n"
    )
    rows = json.loads(skillgit("pull", "-n", "--json").text)["fetched"]
    assert rows[0] == {"ref": "refs/heads/run/demo", "run": "demo", "old": OLD, "new": NEW}
    fake("exchange.pull.pull", replace(would, fetched=()))
    assert "new there" not in skillgit("pull", "-n").text


def test_clone_names_the_folder(skillgit, fake):
    fake("exchange.pull.clone", Cloned(path=Path("/home/user/skills"), pulled=PULLED))
    assert skillgit("clone", URL).text.startswith(f"cloned {URL} into /home/user/skills\n  main   went forward\n")


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("https://example.org/a/skills.git", "skills"),
        ("https://example.org/a/skills/", "skills"),
        ("git@example.org:a/skills.git", "skills"),
        ("git@example.org:skills.git", "skills"),
        ("ssh://example.org:22/skills", "skills"),
        ("/srv/skills/.git", "skills"),
        ("../skills", "skills"),
    ],
)
def test_a_clone_is_called_as_git_calls_it(url, folder):
    assert folder_of(url) == folder
