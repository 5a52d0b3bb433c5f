"""A small run made by hand: every kind of event but reverted, with numbers and evidence that keep all invariants.

``transitions()`` returns it as the engine would hand it over; ``write_run(repo)`` puts it into a repository. The story:

====  ==============  =================  ==================================================
step  event           becomes            selection (10 items)
====  ==============  =================  ==================================================
0     run-started     v0                 4 of 10
1     accepted        v1, new best       6 of 10: fixed q05 q06 q07, broken q04
2     rejected        r2                 5 of 10: broken q07
3     skipped         -                  no usable patch
3     slow-proposed   epoch 2            7 of 10: fixed q04
3     slow-merged     v2, new best       7 of 10
4     accepted        v3, new best       8 of 10: fixed q08
5     rejected        r5                 8 of 10, a tie
5     run-finished    improved           test: v0 0.5, v3 0.7
====  ==============  =================  ==================================================
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from once import copy_folder
from pygit2.enums import FileMode

from skillgit.domain.cost import Cost
from skillgit.domain.edit import Edit, EditSource, Op, apply
from skillgit.domain.evaluation import Evaluation, Scored, Split
from skillgit.domain.event import Event, Models, RunOutcome
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import GateRule, decide, flips
from skillgit.domain.proposal import Change, EditRecord, PatchCounts
from skillgit.domain.protected_regions import with_slow_guidance
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.store import tree
from skillgit.store.event_writer import RunWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo

RUN = "demo-20261121-abcd"
PATH = "skills/demo"
MODELS = Models(target="offline/student", optimizer="offline/teacher")
START = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
ITEMS = tuple(f"q{number:02d}" for number in range(1, 11))
GUIDANCE = "Prefer the shortest answer\nthat the source supports."
MEMORY = "Rules about units help.\n\nRules about style do not."
DOCUMENT_TEXT = """---
name: demo
description: Answer questions about short texts.
---
# Demo

- Read the question again before answering.
- Always answer in metres.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One transition: what ``RunWriter.append`` takes."""

    event: Event
    skill: Skill | None = None
    evidence: Mapping[str, bytes]


def clock_from(minutes: Iterator[int]) -> Callable[[], datetime]:
    """Return a clock that shows ``START`` plus the next of ``minutes`` at each look."""
    return lambda: START + timedelta(minutes=next(minutes))


def seed_skill(name: str = "demo") -> Skill:
    """Return the skill that the run starts from: two text files and an executable script."""
    files = {
        DOCUMENT: DOCUMENT_TEXT.replace("name: demo", f"name: {name}").encode(),
        "references/units.md": b"# Units\n\n1 ft = 0.3048 m\n",
        "scripts/convert.sh": b"#!/bin/sh\nexit 0\n",
    }
    return Skill(name, files, frozenset({"scripts/convert.sh"}))


def evaluation(passed: str, split: Split = Split.SELECTION) -> Evaluation:
    """Return the evaluation under which the items whose numbers stand in ``passed`` are solved.

    ``passed`` holds item numbers, parted by spaces; an unsolved item gets 0.25 for trying.
    """
    solved = {int(number) for number in passed.split()}
    outcomes = {
        item: Scored(1.0, 1.0) if number in solved else Scored(0.0, 0.25) for number, item in enumerate(ITEMS, start=1)
    }
    return Evaluation(split=split, item_set="4be1", outcomes=outcomes, seed=42)


def rows(measured: Evaluation) -> bytes:
    """Return ``measured`` as the rows of ``selection.json``."""
    found = [
        {"id": item, "task_type": "default", "hard": outcome.hard, "soft": outcome.soft, "answer": "", "feedback": ""}
        for item, outcome in measured.scored.items()
    ]
    return as_json(found)


def as_json(value: object) -> bytes:
    """Return ``value`` as the engine writes evidence."""
    return f"{json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)}\n".encode()


def cost(step: int) -> Cost:
    """Return what a step cost."""
    return Cost(calls=10 + step, tokens_in=1000, tokens_out=100 * step, usd=0.1 + step / 7, seconds=12.5)


def candidate(
    skill: Skill,
    edits: tuple[Edit, ...],
    *,
    step: int,
    epoch: int,
    base: int,
    measured: Evaluation,
    current: Evaluation,
    best: float,
    title: str,
    why: str = "",
    run: str = RUN,
    path: str = PATH,
) -> Sample:
    """Return the transition of a gated step: accepted if the gate says so, else rejected."""
    done = apply(skill, edits)
    assert len(done.applied) == len(edits)
    rule = GateRule()
    verdict = decide(rule, measured, current, best)
    pairs = flips(measured, current, rule.metric, rule.soft_weight)
    facts = {
        "run": run,
        "skill": path,
        "epoch": epoch,
        "step": step,
        "base": base,
        "title": title,
        "why": why,
        "edits": tuple(EditRecord.of(edit) for edit in edits),
        "changes": tuple(Change(sign="+" if edit.content else "-", text=edit.content or edit.anchor) for edit in edits),
        "patch": PatchCounts(merged=len(edits) + 2, ranked=len(edits), applied=len(edits), skipped=0, budget=4),
        "evaluation": measured.summary(),
        "verdict": verdict,
        "fixed": pairs.fixed,
        "broken": pairs.broken,
        "models": MODELS,
        "cost": cost(step),
    }
    event = (
        Event(kind=EventKind.ACCEPTED, **facts, version=base + 1)
        if verdict.decision.accepted
        else Event(kind=EventKind.REJECTED, **facts)
    )
    listed = [
        {
            "op": edit.op.value,
            "file": edit.file,
            "anchor": edit.anchor,
            "content": edit.content,
            "support": edit.support,
            "source": edit.source.value,
            "status": "applied",
            "detail": "",
        }
        for edit in edits
    ]
    evidence = {
        "patch.json": as_json({"title": title, "reasoning": why, "edits": listed}),
        "selection.json": rows(measured),
        "rollout.json": rows(evaluation("1 2")),
    }
    return Sample(event=event, skill=done.skill, evidence=evidence)


def started(run: str = RUN, path: str = PATH, skill: Skill | None = None) -> Sample:
    """Return the first transition of a run."""
    measured = evaluation("1 2 3 4")
    event = Event(
        kind=EventKind.RUN_STARTED,
        run=run,
        skill=path,
        title="train demo on a toy environment",
        config="c0ffee",
        splits="747fbb95a62a",
        environment="e4f",
        models=MODELS,
        evaluation=measured.summary(),
        cost=cost(0),
    )
    evidence = {
        "selection.json": rows(measured),
        "config.json": as_json({"train": {"num_epochs": 2, "batch_size": 4}, "evaluation": {"gate_metric": "hard"}}),
        "splits.json": as_json({"train": [{"id": "t1", "digest": "00"}], "selection": [], "test": []}),
        "environment.json": as_json({"digest": "e4f", "name": "toy", "version": "1"}),
    }
    return Sample(event=event, skill=skill or seed_skill(path.rpartition("/")[2]), evidence=evidence)


def transitions(run: str = RUN, path: str = PATH) -> list[Sample]:
    """Return the whole run."""
    common = {"run": run, "skill": path}
    first = started(run, path)
    seed, v0 = first.skill, evaluation("1 2 3 4")
    assert seed is not None
    units = Edit(
        op=Op.REPLACE,
        anchor="- Always answer in metres.",
        content="- Answer in the unit the question asks for, and say it.",
        support=4,
    )
    v1 = evaluation("1 2 3 5 6 7")
    why = "Six of forty rollouts lost points on unit mismatch (q17, q22, q31).\n\nThe old rule caused four of them."
    here = {"run": run, "path": path}
    one = candidate(
        seed, (units,), step=1, epoch=1, base=0, measured=v1, current=v0, best=0.4, why=why,
        title="answer in the unit the question asks for", **here,
    )  # fmt: skip
    assert one.skill is not None
    drop = Edit(
        op=Op.DELETE, anchor="- Read the question again before answering.", support=2, source=EditSource.SUCCESS
    )
    two = candidate(
        one.skill, (drop,), step=2, epoch=1, base=1, measured=evaluation("1 2 3 5 6"), current=v1, best=0.6,
        title="stop reading the question twice", **here,
    )  # fmt: skip
    nothing = PatchCounts(merged=0, ranked=0, applied=0, skipped=3, budget=3)
    three = Event(
        kind=EventKind.SKIPPED,
        **common,
        epoch=2,
        step=3,
        title="no usable patch",
        patch=nothing,
        models=MODELS,
        cost=cost(3),
    )
    v2 = evaluation("1 2 3 4 5 6 7")
    proposed = Event(kind=EventKind.SLOW_PROPOSED,
        **common, epoch=2, step=3, base=1, title="guidance of epoch 2", why="Long answers lose.", guidance=GUIDANCE,
        memory=MEMORY, evaluation=v2.summary(), verdict=decide(GateRule(), v2, v1, 0.6), fixed=("q04",), models=MODELS,
        cost=cost(3),
    )  # fmt: skip
    merged = Event(kind=EventKind.SLOW_MERGED,
        **common, epoch=2, step=3, version=2, base=1, title="merge guidance of epoch 2", evaluation=v2.summary(),
        verdict=decide(GateRule(), v2, v1, 0.6),
    )  # fmt: skip
    guided = one.skill.with_text(DOCUMENT, with_slow_guidance(one.skill.document, GUIDANCE))
    slow_evidence = {"selection.json": rows(v2), "comparison.json": as_json([])}
    return [
        first,
        one,
        two,
        Sample(event=three, evidence={"rollout.json": rows(v1)}),
        Sample(event=proposed, evidence=slow_evidence),
        Sample(event=merged, skill=guided, evidence={}),
        *_last_epoch(guided, v2, common, here),
    ]


def _last_epoch(skill: Skill, v2: Evaluation, common: dict[str, str], here: dict[str, str]) -> Iterator[Sample]:
    quote = Edit(op=Op.APPEND, content="- Quote the span that you rely on.", support=5)
    v3 = evaluation("1 2 3 4 5 6 7 8")
    four = candidate(
        skill, (quote,), step=4, epoch=3, base=2, measured=v3, current=v2, best=0.7, title="quote the span", **here
    )
    yield four
    assert four.skill is not None
    style = Edit(op=Op.APPEND, file="references/units.md", content="Write numbers with commas.", support=1)
    yield candidate(
        four.skill, (style,), step=5, epoch=3, base=3, measured=v3, current=v3, best=0.8, title="write commas", **here
    )
    tested = {0: evaluation("1 2 3 4 5", Split.TEST), 3: evaluation("1 2 3 4 5 6 7", Split.TEST)}
    tests = tuple(found.summary(version) for version, found in tested.items())
    finished = Event(kind=EventKind.RUN_FINISHED,
        **common, epoch=3, step=5, title="improved from 0.4 to 0.8", outcome=RunOutcome.IMPROVED, evaluations=tests,
        models=MODELS, cost=cost(5),
    )  # fmt: skip
    yield Sample(event=finished, evidence={f"test-v{version}.json": rows(found) for version, found in tested.items()})


def write_run(repo: Repo, run: str = RUN, path: str = PATH, *, start: str = "", events: int = 99) -> list[Recorded]:
    """Write the first ``events`` events of the run into ``repo``, on the commit ``start``, and return them.

    What was written into an equal repository before is copied: tests by the hundred begin like this.
    """
    tips = tuple(sorted((name, str(repo.raw.references[name].target)) for name in repo.raw.references))
    settings = (Path(repo.raw.path) / "config").read_text()  # say who signs
    key = (run, path, start, events, tips, settings, os.environ.get("XDG_STATE_HOME"))
    if key in _WRITTEN:
        folder, records = _WRITTEN[key]
        copy_folder(folder.name, Path(repo.raw.path))
        return list(records)
    records = append_run(repo, run, path, start, events)
    _WRITTEN[key] = folder, _ = TemporaryDirectory(prefix="skillgit-sample-"), tuple(records)
    for name in ("objects", "refs", "logs", "skillgit"):
        if (written := Path(repo.raw.path) / name).exists():
            copy_folder(written, Path(folder.name) / name)
    for lock in Path(folder.name).rglob("*.lock"):
        lock.unlink()
    return records


_WRITTEN: dict[tuple[object, ...], tuple[TemporaryDirectory[str], tuple[Recorded, ...]]] = {}
"""What a run is written into, to the folders with the result and its events."""


def append_run(repo: Repo, run: str, path: str = PATH, start: str = "", events: int = 99) -> list[Recorded]:
    """Write the run event by event, as ``write_run`` does for the first repository of a kind."""
    writer = RunWriter(repo, run, clock_from(count()))
    return [
        writer.append(sample.event, sample.skill, sample.evidence, start=start)
        for sample in transitions(run, path)[:events]
    ]


def with_file(repo, root, path, content):
    """Return the tree ``root`` with the file ``path`` set to ``content``."""
    blob = None if content is None else (repo.raw.create_blob(content), FileMode.BLOB)
    return tree.edited(repo, root, {path: blob})
