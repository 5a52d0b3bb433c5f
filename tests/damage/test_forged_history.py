"""What a forger changes is found, though every commit, ref and evidence after it was made to fit."""

from __future__ import annotations

import json
import re
from contextlib import suppress

import pytest
from asking import ask
from forgery import (
    added,
    everywhere,
    evidence_changed,
    forge,
    raw_message,
    reparented,
    replaced,
    smuggled,
    without,
    written_anew,
)
from sample_run import PATH, RUN
from soaking import sampled

from skillgit.app.history.log import log
from skillgit.app.history.run_list import run_list
from skillgit.app.history.status import status
from skillgit.app.upkeep.fsck import fsck
from skillgit.app.upkeep.run_checks import check_run
from skillgit.errors import SkillgitError
from skillgit.store import refs

FIRST, ONE, TWO, SKIPPED, PROPOSED, MERGED, FOUR, FIVE, LAST = range(9)


def rows(change):
    """Return a change of the first row of a table of items."""

    def changed(content: bytes) -> bytes:
        listed = json.loads(content)
        change(listed)
        return json.dumps(listed).encode()

    return changed


def patch_text(content: bytes) -> bytes:
    return content.replace(b"the question asks for", b"you like best")


def two_starts(patient) -> None:
    first = patient.repo.commit(patient.commit(FIRST)).message
    forge(patient, SKIPPED, message=lambda _: first)


MESSAGES = {
    "a score": (replaced(ONE, "score=0.6 ", "score=0.7 "), "the gate compared score=0.7, and the evaluation says 0.6"),
    "a gate's digit": (
        replaced(ONE, "current=0.4 ", "current=0.3 "),
        "the gate compared current=0.3, and the evaluation says 0.4",
    ),
    "the best score": (
        replaced(FOUR, "best=0.7 ", "best=0.5 "),
        "the gate compared best=0.5, and the evaluation says 0.7",
    ),
    "a p-value": (
        replaced(ONE, "p=0.3125", "p=0.01"),
        "the gate says p=0.01, which does not follow from fixed=3 broken=1",
    ),
    "a decision": (
        replaced(ONE, "Gate: accept_new_best", "Gate: reject"),
        "the decision reject does not follow from its numbers",
    ),
    "a refusal": (
        replaced(FIVE, "Gate: reject ", "Gate: accept "),
        "the decision accept does not follow from its numbers",
    ),
    "the score everywhere": (
        lambda patient: forge(
            patient, ONE, message=lambda text: text.replace("hard=0.6 ", "hard=0.8 ").replace("score=0.6", "score=0.8")
        ),
        "and its items say n=10 scored=10 hard=0.6",
    ),
    "a soft score": (
        replaced(ONE, "hard=0.6 soft=0.7 ", "hard=0.6 soft=0.9 "),
        "the evaluation says n=10 scored=10 hard=0.6 soft=0.9, and its items say",
    ),
    "which items": (
        replaced(ONE, "fixed: q05, q06, q07", "fixed: q05, q06, q08"),
        "the message lists other items as fixed: q07, q08",
    ),
    "a version": (replaced(FOUR, "Skillgit-Version: 3", "Skillgit-Version: 4"), "v4 follows v2"),
    "a base": (
        replaced(FOUR, "Skillgit-Base: 2", "Skillgit-Base: 1"),
        "it was made of v1 besides the version before it",
    ),
    "a step that stands twice": (replaced(SKIPPED, "Skillgit-Step: 3", "Skillgit-Step: 2"), "step 2 follows step 2"),
    "the run": (replaced(SKIPPED, f"Run: {RUN}", "Run: other"), f"an event of run other is on run {RUN}"),
    "the skill": (replaced(LAST, f"Skill: {PATH}", "Skill: skills/b"), "changes skills/b, not skills/demo"),
    "the format": (replaced(ONE, "Skillgit-Format: 1", "Skillgit-Format: 9"), "format 9"),
    "the kind": (replaced(ONE, "Event: accepted", "Event: praised"), "there is no event 'praised'"),
    "the block": (replaced(ONE, "Skillgit-Epoch: 1\n", "Skillgit-Epoch: 1\nand prose\n"), "breaks the trailer block"),
    "a number that is none": (replaced(ONE, "Skillgit-Step: 1", "Skillgit-Step: one"), "not an integer"),
    "a trailer twice": (
        replaced(ONE, "Skillgit-Step: 1\n", "Skillgit-Step: 1\nSkillgit-Step: 1\n"),
        "the commit has 2 trailers Skillgit-Step",
    ),
    "an edit": (replaced(ONE, "support=4", "support=9"), "the edits in the evidence are not those of the commit"),
    "the anchor of an edit": (
        replaced(ONE, "anchor=0da5122a", "anchor=00000000"),
        "the edits in the evidence are not those of the commit",
    ),
    "an edit budget": (replaced(ONE, "ranked=1", "ranked=7"), "chose 7 of its proposals with an edit budget of 4"),
    "the splits": (
        replaced(FIRST, "Splits: 747fbb95a62a", "Splits: 000000000000"),
        "the splits in the evidence have the digest 747fbb95a62a, and the commit says 000000000000",
    ),
    "two beginnings": (two_starts, "step 2 follows step 0"),
    "a number that no database holds": (
        replaced(FOUR, "Skillgit-Version: 3", "Skillgit-Version: 99999999999999999999"),
        "not an integer",
    ),
    "a cost that no sum holds": (replaced(ONE, " out=", f" out={10**12}"), "is not an integer from 0"),
    "a cost that is no number": (replaced(ONE, " usd=", " usd=nan x="), "is not a number"),
    "evidence that is an option": (
        replaced(SKIPPED, "Skillgit-Evidence: ", "Skillgit-Evidence: --output="),
        "is not the id of an evidence tree",
    ),
    "an encoding that nobody knows": (
        raw_message(LAST, lambda content: content.replace(b"\n\n", b"\nencoding klingon\n\n", 1)),
        "run/demo-20261121-abcd does not lead to it any more",
    ),
    "a time that is not a date": (
        raw_message(
            LAST, lambda content: re.sub(rb"(\ncommitter .*> )\d+", rb"\g<1>9999999999999999", content, count=1)
        ),
        "has a time that is not a date",
    ),
    "NUL in a message": (
        raw_message(LAST, lambda content: content.replace(b"improved", b"im\0proved", 1)),
        "run/demo-20261121-abcd does not lead to it any more",
    ),
    "bytes that are not UTF-8": (
        raw_message(LAST, lambda content: content.replace(b"improved", b"\xff\xfe", 1)),
        "run/demo-20261121-abcd does not lead to it any more",
    ),
}

CONTENTS = {
    "a skill that its patch does not give": (
        smuggled(TWO, f"{PATH}/references/units.md", b"smuggled\n"),
        "the patch in the evidence, applied to v1, does not give the committed skill",
    ),
    "a file beside the skill": (
        smuggled(ONE, "bin/tool", b"smuggled\n"),
        "the commit changes 'bin/tool', which is not part of skills/demo",
    ),
    "a change without an event": (
        smuggled(SKIPPED, f"{PATH}/SKILL.md", b"smuggled\n"),
        "the commit changes files, though its event changes nothing",
    ),
    "a change at the end": (
        smuggled(LAST, f"{PATH}/SKILL.md", b"smuggled\n"),
        "the commit changes files, though its event changes nothing",
    ),
    "the text of a merge": (
        smuggled(MERGED, f"{PATH}/references/units.md", b"smuggled\n"),
        "the skill is not that of its first parent with the guidance of the second",
    ),
    "frontmatter": (
        smuggled(ONE, f"{PATH}/SKILL.md", b"---\nname: Demo Skill\ndescription: d\n---\n# Demo\n"),
        "v1: 'Demo Skill' cannot name a skill",
    ),
    "a skill without a document": (
        smuggled(ONE, f"{PATH}/SKILL.md", None),
        "the skill cannot be read",
    ),
    "a patch": (evidence_changed(ONE, "patch.json", patch_text), "applied to v0, does not give the committed skill"),
    "a patch that is not JSON": (
        evidence_changed(ONE, "patch.json", lambda content: content[:-9]),
        "patch.json in the evidence cannot be read",
    ),
    "a patch that is a list": (written_anew(ONE, "patch.json", b"[]"), "patch.json in the evidence cannot be read"),
    "items of another shape": (
        written_anew(ONE, "selection.json", b"[1]"),
        "selection.json in the evidence cannot be read",
    ),
    "an item's score": (
        evidence_changed(ONE, "selection.json", rows(lambda listed: listed[0].update(hard=0.0))),
        "the evaluation says n=10 scored=10 hard=0.6",
    ),
    "two items' scores": (
        evidence_changed(
            ONE, "selection.json", rows(lambda listed: (listed[0].update(hard=0.0), listed[7].update(hard=1.0)))
        ),
        "the message lists other items as fixed: q08",
    ),
    "an item that is gone": (
        evidence_changed(ONE, "selection.json", rows(lambda listed: listed.pop())),
        "and its items say n=9",
    ),
}

TESTED = "Skillgit-Eval: split=test version=3"
ENDS = {
    "a score on the test split": (
        replaced(LAST, "hard=0.7 ", "hard=0.9 "),
        "the evaluation of v3 says n=10 scored=10 hard=0.9 soft=0.775, and its items say n=10 scored=10 hard=0.7",
    ),
    "an outcome on the test split": (
        evidence_changed(LAST, "test-v3.json", rows(lambda listed: listed[0].update(hard=0.0))),
        "the evaluation of v3 says n=10 scored=10 hard=0.7",
    ),
    "outcomes of the test split that are gone": (
        evidence_changed(LAST, "test-v3.json", lambda _: None),
        "the evidence lacks 'test-v3.json', and the commit has the score of v3",
    ),
    "outcomes of the test split that are not JSON": (
        evidence_changed(LAST, "test-v3.json", lambda content: content[:-9]),
        "test-v3.json in the evidence cannot be read",
    ),
    "a test score that is gone": (
        replaced(LAST, TESTED, "Reviewed-by: nobody"),
        "the evidence has 'test-v3.json', and the commit has no score of v3",
    ),
    "a test score of a version that there is not": (
        replaced(LAST, TESTED, "Skillgit-Eval: split=test version=7"),
        "the run ends with a score of v7, which it does not have",
    ),
    "a test score of another version": (
        replaced(LAST, TESTED, "Skillgit-Eval: split=test version=2"),
        "the first, the best and the last, which are v0, v3",
    ),
    "a test score of other items": (
        replaced(LAST, f"{TESTED} set=4be1", f"{TESTED} set=4be2"),
        "the scores at the end of the run are not all of the same items and the same seed",
    ),
    "a test score on another split": (
        replaced(LAST, TESTED, TESTED.replace("test", "selection")),
        "the run ends with a score on the split selection, and not on test",
    ),
    "a test score that stands twice": (
        replaced(LAST, "split=test version=0", "split=test version=3"),
        "the run ends with two scores of one version",
    ),
}


def another_evidence(named):
    """Damage: the commit of an event names the evidence ``named`` of the history, or none."""

    def damage(patient) -> None:
        line = f"Skillgit-Evidence: {patient.history[ONE].evidence}"
        other = f"Skillgit-Evidence: {patient.history[FOUR].evidence}" if named else "Reviewed-by: nobody"
        forge(patient, ONE, message=lambda text: text.replace(line, other))

    return damage


CUT = {
    "evidence cut off": (another_evidence(named=False), "of it, and the commit names none"),
    "evidence of another event": (another_evidence(named=True), "of it, and the commit names other evidence"),
    "the items of an accepted candidate": (
        without(ONE, "selection.json"),
        "the evidence lacks 'selection.json', which accepted always has",
    ),
    "the patch of a refused candidate": (
        without(TWO, "patch.json"),
        "the evidence lacks 'patch.json', which rejected always has",
    ),
    "the rollouts of a step": (
        without(FOUR, "rollout.json"),
        "the evidence lacks 'rollout.json', which accepted always has",
    ),
    "the items of guidance": (
        without(PROPOSED, "selection.json"),
        "the evidence lacks 'selection.json', which slow-proposed always has",
    ),
    "the configuration": (without(FIRST, "config.json"), "the evidence lacks 'config.json', which run-started always"),
    "the splits": (without(FIRST, "splits.json"), "the evidence lacks 'splits.json', which run-started always has"),
    "the environment": (without(FIRST, "environment.json"), "the evidence lacks 'environment.json', which run-started"),
}


PLAN = {
    "a configuration that is not JSON": (
        written_anew(FIRST, "config.json", b"x"),
        "config.json in the evidence cannot",
    ),
    "a configuration without sections": (
        written_anew(FIRST, "config.json", b'{"train": 7}'),
        "config.json in the evid",
    ),
    "splits that are a list": (written_anew(FIRST, "splits.json", b"[]"), "splits.json in the evidence cannot be read"),
    "splits without rows": (written_anew(FIRST, "splits.json", b'{"train": 7}'), "splits.json in the evidence cannot"),
    "no splits": (written_anew(FIRST, "splits.json", b"{}"), "and the commit says 747fbb95a62a"),
    "an environment that is a list": (
        written_anew(FIRST, "environment.json", b"[]"),
        "environment.json in the evidence cannot be read",
    ),
    "an environment without a digest": (
        written_anew(FIRST, "environment.json", b"{}"),
        "the environment in the evidence has no digest, and the commit says e4f",
    ),
    "another environment": (
        written_anew(FIRST, "environment.json", b'{"digest": "e4e"}'),
        "the environment in the evidence has the digest e4e, and the commit says e4f",
    ),
    "rollouts that are not JSON": (
        written_anew(ONE, "rollout.json", b"{"),
        "rollout.json in the evidence cannot be read",
    ),
    "rollouts of another shape": (
        written_anew(ONE, "rollout.json", b"[1]"),
        "rollout.json in the evidence cannot be read",
    ),
    "a trajectory that is not there": (
        written_anew(ONE, "rollout.json", b'[{"id": "q01", "hard": 1, "soft": 1, "trajectory": "rollout/x.json"}]'),
        "rollout.json in the evidence names 'rollout/x.json', which it lacks",
    ),
}


NEVER = {
    f"{trailer.partition(':')[0]} on {kind}": (
        added(place, f"Skillgit-{trailer}"),
        f"the commit has the trailer Skillgit-{trailer.partition(':')[0]}, which {kind} never has",
    )
    for place, kind, trailer in (
        (TWO, "rejected", "Version: 2"),
        (TWO, "rejected", "Target: 0"),
        (SKIPPED, "skipped", "Base: 1"),
        (SKIPPED, "skipped", "Eval: split=selection set=4be1 n=10 scored=10 hard=1.0 soft=1.0 seed=42"),
        (PROPOSED, "slow-proposed", "Edit: op=append file=SKILL.md support=1 source=failure"),
        (MERGED, "slow-merged", "Cost: calls=5000 in=1 out=1 usd=9999.0 seconds=1"),
        (ONE, "accepted", f"Fork-Of: {RUN}/v0"),
        (LAST, "run-finished", "Gate: accept"),
        (FIRST, "run-started", "Outcome: improved"),
    )
}
SPENT = "Skillgit-Spent: role=target stage=selection calls={} in=1000 out=100 usd={} seconds=1.0"
USD = 0.1 + 1 / 7
SEQUENCE = {
    "an epoch at the end": (
        replaced(LAST, "Epoch: 3", "Epoch: 9"),
        "run-finished names epoch 9 after a step of epoch 3",
    ),
    "an epoch that is left out": (
        replaced(FOUR, "Epoch: 3", "Epoch: 4"),
        "step 4 is of epoch 4, and the step before it of epoch 2",
    ),
    "a step of an epoch that had ended": (
        replaced(FOUR, "Epoch: 3", "Epoch: 2"),
        "step 4 is of epoch 2, which had ended before it",
    ),
    "an outcome": (replaced(LAST, "Outcome: improved", "Outcome: ceiling"), "and its scores say improved"),
    "an outcome that nobody records": (
        replaced(LAST, "Outcome: improved", "Outcome: stopped"),
        "the run ends as stopped, and its scores say improved",
    ),
    "the score of a merge": (
        everywhere(MERGED, ("soft=0.775", "soft=0.8")),
        "the score of the merge is not that of the guidance that was proposed",
    ),
    "the gate of a merge": (
        everywhere(MERGED, ("fixed=1 broken=0 p=0.5", "fixed=2 broken=1 p=0.5")),
        "the gate of the merge is not that of the guidance that was proposed",
    ),
    "other items": (replaced(ONE, "set=4be1", "set=4be2"), "the score is one of 10 items, the set 4be2"),
    "another seed": (replaced(ONE, "seed=42", "seed=43"), "measured with seed 43, and the run began with seed 42"),
    "another split": (
        replaced(ONE, "Eval: split=selection", "Eval: split=train"),
        "the gate's score is one on the split train, and not on selection",
    ),
    "a start at another version": (
        replaced(FIRST, "Skillgit-Version: 0", "Skillgit-Version: 1"),
        "a run starts with Skillgit-Version 0, and this one with 1",
    ),
    "a fork of nothing": (
        added(FIRST, "Skillgit-Fork-Of: ghost/v3"),
        "it is a fork of ghost/v3, and its parent is another commit",
    ),
    **{
        f"a fork of {source}": (
            added(FIRST, f"Skillgit-Fork-Of: {source}"),
            f"it is a fork of {source!r}, which is the address of no version",
        )
        for source in ("../../x/v999", "v3", f"{RUN}/r2", f"{RUN}/v", f"{RUN}/v{'9' * 40}", "main", "Up/v1")
    },
    **{
        f"a candidate of {source}": (
            added(TWO, f"Skillgit-Origin: cherry-pick number=1 of={source}"),
            f"it was taken from {source!r}, which is the address of no event",
        )
        for source in ("../../x/v999", "r3", f"{RUN}/x3")
    },
    "edits that are counted": (
        replaced(ONE, "applied=1", "applied=2"),
        "the commit says that 2 edits were applied, and lists 1 of them",
    ),
    "edits that were left": (
        replaced(ONE, "skipped=0", "skipped=1"),
        "the commit says applied=1 skipped=1, and the evidence says applied=1 skipped=0",
    ),
    "a cost of other parts": (
        added(ONE, SPENT.format(7, USD)),
        "the commit says that it cost calls=11, and its parts add up to 7",
    ),
    "a price of other parts": (added(ONE, SPENT.format(11, 9.5)), "and its parts add up to 9.5"),
    "a cost below nothing": (
        everywhere(ONE, (f"usd={0.1 + 1 / 7!r}", "usd=-1.0")),
        "the commit has a cost that is negative or not a number",
    ),
}

PARENTS = {
    "a rejected candidate elsewhere": (
        reparented(TWO, FIRST),
        "it was proposed on v1, and its parent is not the commit of v1",
    ),
    "a merge the wrong way round": (
        reparented(MERGED, PROPOSED, SKIPPED),
        f"belongs to slow/{RUN}, and run/{RUN} leads through it",
    ),
    "a merge of one parent": (
        reparented(MERGED, SKIPPED),
        "a slow merge has the run and the slow line as parents, and this commit has others",
    ),
    "guidance elsewhere": (reparented(PROPOSED, ONE), "its parent is neither the guidance before it nor v0"),
    "a version that is left out": (reparented(SKIPPED, FIRST), "step 3 follows step 0"),
    "an event with two parents": (reparented(FOUR, MERGED, FIRST), "the commit has 2 parents"),
}
TABLES = {
    "messages": MESSAGES,
    "contents": CONTENTS,
    "ends": ENDS,
    "cut": CUT,
    "plan": PLAN,
    "never": NEVER,
    "sequence": SEQUENCE,
    "parents": PARENTS,
}
FORGED = {name: forgery for table in TABLES.values() for name, forgery in table.items()}
DEEP = {
    "which items",
    "frontmatter",
    "two items' scores",
    "rollouts that are not JSON",
    "rollouts of another shape",
    "a trajectory that is not there",
}
"""What is found by a deep look alone."""


def one_by_one(patient, table):
    """Carry out the forgeries of a table, each on the sound history; yield its name and what gives it away."""
    sound = patient.repo.tips()
    for name, (damage, said) in table.items():
        damage(patient)
        yield name, said
        for ref in patient.repo.tips().keys() - sound.keys():
            patient.repo.raw.references.delete(ref)
        for ref, oid in sound.items():
            patient.set_ref(ref, oid)


@pytest.mark.parametrize("table", TABLES)
def test_every_forgery_is_found(table, patient, context):
    missed = {}
    for name, said in one_by_one(patient, TABLES[table]):
        found = fsck(context, None, deep=True).problems if name in DEEP else check_run(patient.repo, RUN)
        told = [problem.sentence for problem in found]
        if not any(said in sentence for sentence in told):
            missed[name] = told
    assert missed == {}
    assert check_run(patient.repo, RUN) == []


@pytest.mark.parametrize("name", sampled(FORGED, 12))
def test_a_forgery_cannot_be_mended(name, patient, context):
    damage, said = FORGED[name]
    damage(patient)
    told = [problem.sentence for problem in fsck(context, None, deep=True).problems]
    assert any(said in sentence for sentence in told), told
    assert fsck(context, None, deep=True, repair=True).problems


def test_no_message_is_an_internal_error(patient, context):
    for _ in one_by_one(patient, MESSAGES):
        for use_case in (run_list, status, log):
            with suppress(SkillgitError):
                ask(use_case, context)


def test_an_amended_commit_is_found_by_the_evidence_that_names_the_old_one(patient, context):
    patient.git("checkout", "-q", f"run/{RUN}")
    patient.git("commit", "-q", "--amend", "--allow-empty", "-m", "run: much better (improved)\n\n" + _block(patient))
    problem, way_back = fsck(context, None).problems
    assert problem.commit == way_back.commit == patient.commit(LAST)
    assert problem.sentence == f"it was an event of the run, and run/{RUN} does not lead to it any more"
    assert f"git branch -f run/{RUN} {patient.commit(LAST)[:12]} brings it back" in way_back.sentence


def _block(patient) -> str:
    return patient.repo.commit(patient.commit(LAST)).message.rstrip().rpartition("\n\n")[2]


def test_a_sound_history_has_no_problems_however_deep_one_looks(patient, context):
    assert fsck(context, None, deep=True).problems == ()
    assert refs.run_branch(RUN) in patient.repo.tips()
