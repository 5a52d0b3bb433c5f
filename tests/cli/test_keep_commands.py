from __future__ import annotations

import json

import cli_sample as sample
import pytest

from skillgit.app.upkeep.fsck import Checked, RemadeRun
from skillgit.app.upkeep.maintenance import Tidied
from skillgit.app.upkeep.requests import GcRequest
from skillgit.domain.finding import REPAIR, Finding
from skillgit.errors import ExitCode

MOVED = Finding(run="a", commit=sample.oid("abc"), sentence="a/v1 points to commit 1, not to 2", hint=REPAIR)
LACKING = RemadeRun(
    run="a",
    events=2,
    gates=1,
    patches=2,
    screenings=0,
    lacking=("r8: gate, without its items",),
    history="f" * 64,
)


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
    assert ended.text == ("repaired: a: moved a/v1 to commit 2\nchecked 1 run, 9 events: no problems\n")
    document = json.loads(skillgit("fsck", "--repair", "--json").out)
    assert document["mended"] == ["a: moved a/v1 to commit 2"]


def test_a_deep_check_says_what_it_made_again_and_what_it_could_not(skillgit, fake):
    fake("upkeep.fsck.fsck", Checked(runs=1, commits=2, problems=(), remade=(LACKING,)))
    ended = skillgit("fsck", "a", "--deep")
    assert ended.code == ExitCode.OK
    assert ended.text.splitlines() == [
        "a: 2 events made again, nothing came out otherwise",
        "  asked again: 1 gate · applied again: 2 patches · 1 not, for want of evidence",
        "  not again: r8: gate, without its items",
        f"  history {'f' * 64}",
        "checked 1 run, 2 events: no problems",
    ]
    document = json.loads(skillgit("fsck", "--deep", "--json").out)
    assert document["remade"][0]["lacking"] == ["r8: gate, without its items"]


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
