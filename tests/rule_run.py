"""A run whose rules have lives: made by two edits, tried again, reworded, removed, brought back, added to by a person.

====  ===========  ==================================================================
step  becomes      what happens to the rules of ``SKILL.md``
====  ===========  ==================================================================
0     v0           READ and METRES are the seed's
1     v1           UNITS replaces METRES (failures of t1 and t2), DATES is added (success on t3)
2     r2           TRIED, much like DATES, is refused
3     v2           DATES becomes DATES_EXACTLY
4     v3           READ goes
4     v4           revert to v2: READ comes back
4     v5           a person adds TABLES
====  ===========  ==================================================================
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import pygit2
from sample_run import PATH, RUN, as_json, candidate, clock_from, evaluation, seed_skill, started

from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.domain.event import Event, Inherited
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.skill import DOCUMENT
from skillgit.store import history_reader, refs, tree
from skillgit.store.event_writer import RunWriter

if TYPE_CHECKING:
    from sample_run import Sample

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo

READ = "Read the question again before answering."
METRES = "Always answer in metres."
UNITS = "Answer in the unit that the question asks for, and say it."
DATES = "Give dates as day, month and year, in this order."
TRIED = "Give dates as day, month and year."
DATES_EXACTLY = "Give dates as day, month and year, in exactly this order."
TABLES = "In tables, quote the row that you rely on."
PERSON = "Ada \x1b[31mLovelace"

_ROLLOUT = (
    ("t1", 0.0, "324 m", 'expected "1,063 ft"', "How tall is the tower in feet?"),
    ("t2", 0.0, "\x1b[2Jseven", 'expected "7 kg"', "How heavy is it?"),
    ("t3", 1.0, "4 May 1871", "correct", "When did it burn?"),
)


def write_rule_run(repo: Repo) -> list[Recorded]:
    """Write the run into ``repo`` and return its events, the person's commit left out."""
    writer = RunWriter(repo, RUN, clock_from(count()))
    records: list[Recorded] = []
    first = started()
    records.append(writer.append(first.event, first.skill, first.evidence))
    scores = [
        evaluation(passed) for passed in ("1 2 3 4", "1 2 3 5 6 7", "1 2 3 5", "1 2 3 4 5 6 7", "1 2 3 4 5 6 7 8")
    ]
    v1 = _step(_first_edits(), seed_skill(), 1, 0, scores[1], scores[0], 0.4, "answer in the unit, say dates in full")
    r2 = _step((_added(TRIED),), v1.skill, 2, 1, scores[2], scores[1], 0.6, "dates in full")
    v2 = _step((_reworded(DATES, DATES_EXACTLY),), v1.skill, 3, 1, scores[3], scores[1], 0.6, "dates in exact order")
    drop = Edit(op=Op.DELETE, anchor=f"- {READ}", support=2, source=EditSource.SUCCESS)
    v3 = _step((drop,), v2.skill, 4, 2, scores[4], scores[3], 0.7, "stop reading twice")
    records += [writer.append(sample.event, sample.skill, sample.evidence) for sample in (v1, r2, v2, v3)]
    back = Event(kind=EventKind.REVERTED,
        run=RUN, skill=PATH, epoch=1, step=4, version=4, base=3, target=2, title="back to the text of v2",
        evaluation=Inherited(version=2),
    )  # fmt: skip
    records.append(writer.append(back, v2.skill, {}))
    edit_by_hand(repo, f"- {TABLES}\n")
    return records


def _first_edits() -> tuple[Edit, ...]:
    units = Edit(op=Op.REPLACE, anchor=f"- {METRES}", content=f"- {UNITS}", support=2, items=("t1", "t2"))
    return units, replace(_added(DATES), support=1, source=EditSource.SUCCESS, items=("t3",))


def _added(text: str) -> Edit:
    return Edit(op=Op.APPEND, content=f"- {text}", support=3)


def _reworded(old: str, new: str) -> Edit:
    return Edit(op=Op.REPLACE, anchor=f"- {old}", content=f"- {new}", support=1)


def _step(edits, skill, step, base, measured, current, best, title) -> Sample:  # noqa: PLR0917 - of one run
    made = candidate(
        skill, edits, step=step, epoch=1, base=base, measured=measured, current=current, best=best, title=title,
        why="Two of three rollouts were wrong.",
    )  # fmt: skip
    return replace(made, evidence={**made.evidence, **_rollouts(), "patch.json": _with_items(made, edits)})


def _with_items(made: Sample, edits: tuple[Edit, ...]) -> bytes:
    document = json.loads(made.evidence["patch.json"])
    for row, edit in zip(document["edits"], edits, strict=True):
        row["items"] = list(edit.items)
    return as_json(document)


def _rollouts() -> dict[str, bytes]:
    rows, files = [], {}
    for item, hard, answer, feedback, question in _ROLLOUT:
        path = f"rollout/trajectories/{item}.json"
        asked = f"A text about it.\n\n<question>\n{question}\n</question>"
        files[path] = as_json({"id": item, "turns": [{"role": "user", "content": asked}]})
        rows.append(
            {"id": item, "task_type": "x", "hard": hard, "soft": hard, "answer": answer, "feedback": feedback,
             "trajectory": path}
        )  # fmt: skip
    findings = [
        {"pattern": "the unit is missing", "count": 2, "items": ["t1", "t2"]},
        {"pattern": "the tower is too tall", "count": 1, "items": ["t1"]},
    ]
    told = {"findings": findings, "unusable_replies": 0}
    return {**files, "rollout.json": as_json(rows), "findings.json": as_json(told)}


def edit_by_hand(repo: Repo, addition: str) -> str:
    """Append to the skill as a person does, with a commit without trailers on the run's branch; return the commit."""
    tip = repo.tip(refs.run_branch(RUN))
    assert tip is not None
    skill = history_reader.skill_at(repo, tip, PATH)
    text = skill.document + addition
    made = tree.with_skill(repo, repo.commit(tip).tree, PATH, skill.with_text(DOCUMENT, text))
    person = pygit2.Signature(PERSON, "ada@example.com", 1_795_300_000, 0)
    return str(repo.raw.create_commit(refs.run_branch(RUN), person, person, "Quote rows\n", made.id, [tip]))
