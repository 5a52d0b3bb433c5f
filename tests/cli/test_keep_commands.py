from __future__ import annotations

import json

import cli_sample as sample
import pytest

from skillgit.app.upkeep.fsck import Checked
from skillgit.app.upkeep.maintenance import GcRequest, Tidied
from skillgit.app.upkeep.run_checks import Replay, Replayed
from skillgit.domain.finding import REPAIR, Finding
from skillgit.errors import ExitCode

MOVED = Finding(run="a", commit=sample.oid("abc"), sentence="a/v1 points to commit 1, not to 2", hint=REPAIR)
DIFFERS = Replayed(
    commit=sample.oid("9f1c2ab"),
    kind="accepted",
    label="v7",
    title="answer in the unit",
    gate=True,
    patch=True,
    screening=False,
    differing=("the gate says p=0.5, and its items give p=0.25",),
    lacking=(),
)
SAME = Replayed(
    commit=sample.oid("1b22c07"),
    kind="rejected",
    label="r8",
    title="one-word answers",
    gate=False,
    patch=True,
    screening=False,
    differing=(),
    lacking=("gate, without its items",),
)


def replayed(*events: Replayed, index: bool = True) -> Replay:
    return Replay(run="a", events=events, differing=(), index=index, history="f" * 64)


def test_fsck_names_the_command_that_mends(skillgit, fake):
    fake("upkeep.fsck.fsck", Checked(runs=1, commits=9, problems=(MOVED,)))
    ended = skillgit("fsck")
    assert ended.code == ExitCode.NO
    assert ended.err == "hint: skillgit fsck --repair\n"


def test_fsck_tells_what_it_mended(skillgit, fake):
    calls = fake("upkeep.fsck.fsck", Checked(runs=1, commits=9, problems=(), mended=("a: moved a/v1 to commit 2",)))
    ended = skillgit("fsck", "--repair")
    assert calls == [(None, {"deep": False, "repair": True})]
    assert ended.code == ExitCode.OK
    assert ended.text == ("mended: a: moved a/v1 to commit 2\nchecked 1 run, 9 events: no problems\n")
    document = json.loads(skillgit("fsck", "--repair", "--json").out)
    assert document["mended"] == ["a: moved a/v1 to commit 2"]


def test_replay_names_what_differs_and_what_it_could_not_make_again(skillgit, fake):
    fake("upkeep.run_checks.replay", replayed(DIFFERS, SAME))
    ended = skillgit("replay", "a")
    assert ended.code == ExitCode.NO
    assert ended.text.splitlines() == [
        "differs  v7  9f1c2ab  gate patch  answer in the unit",
        "  the gate says p=0.5, and its items give p=0.25",
        "same     r8  1b22c07       patch  not again: gate, without its items",
        "",
        "a: 2 events made again, 1 came out otherwise",
        "asked again: 1 gate · applied again: 2 patches · 1 not, for want of evidence",
        f"history {'f' * 64}",
    ]


def test_replay_of_a_sound_run_is_quiet_if_asked(skillgit, fake):
    fake("upkeep.run_checks.replay", replayed(SAME))
    ended = skillgit("replay", "-q")
    assert ended.code == ExitCode.OK
    assert ended.text.startswith("a: 1 event made again, nothing came out otherwise\n")


def test_an_index_that_differs_is_told_apart_from_commits_that_do(skillgit, fake):
    fake("upkeep.run_checks.replay", replayed(SAME, index=False))
    ended = skillgit("replay", "-q")
    assert ended.code == ExitCode.NO
    assert "the index differs" in ended.text
    assert "the commits agree with each other" in ended.text


def test_replay_for_machines(skillgit, fake):
    fake("upkeep.run_checks.replay", replayed(DIFFERS, SAME))
    document = json.loads(skillgit("replay", "--json").out)
    assert (document["schema"], document["same"], document["history"]) == ("skillgit.replay/1", False, "f" * 64)
    assert [event["label"] for event in document["events"]] == ["v7", "r8"]
    assert skillgit("replay", "--plain").text.splitlines()[1].split("\t")[1:5] == ["r8", "rejected", "false", "true"]


@pytest.mark.parametrize(
    ("done", "arguments", "told"),
    [
        (Tidied(run="a", folded=2, attic=2), (), "a  folded 2 candidates; undo: skillgit gc --unfold a\n"),
        (Tidied(run="a", folded=1), ("--dry-run",), "a  would fold 1 candidate; undo: skillgit gc --unfold a\n"),
        (Tidied(run="a", unfolded=3), (), "a  gave back 3 branches\n"),
        (Tidied(run="a", attic=3), (), "a  nothing to do, 3 candidates in the attic\n"),
        (Tidied(run="a", left="it has not finished"), (), "a  left as it is: it has not finished\n"),
        (Tidied(run="a", dropped=4, freed=999), (), "a  dropped the evidence of 4 events, 999 bytes uncompressed\n"),
        (Tidied(run="a", dropped=1, freed=2500), ("--dry-run",), "a  would drop the evidence of 1 event, 2.5 kB"),
    ],
)
def test_gc_tells_what_became_of_each_run(skillgit, fake, done, arguments, told):
    fake("upkeep.maintenance.gc", (done,))
    ended = skillgit("gc", "--fold", *arguments)
    assert ended.text.startswith(told)
    assert ended.code == ExitCode.OK


def test_gc_hands_on_what_it_was_asked(skillgit, fake):
    calls = fake("upkeep.maintenance.gc", ())
    assert skillgit("gc", "a", "b", "--evidence-older", "30").text == "there are no runs yet\n"
    assert calls == [(GcRequest(runs=("a", "b"), evidence_older="30"), {})] or calls == [
        (GcRequest(runs=("a", "b"), evidence_older="30"),)
    ]


def test_gc_for_machines(skillgit, fake):
    fake("upkeep.maintenance.gc", (Tidied(run="a", folded=2, attic=2),))
    document = json.loads(skillgit("gc", "--fold", "--json").out)
    assert (document["schema"], document["runs"][0]["folded"]) == ("skillgit.gc/1", 2)
