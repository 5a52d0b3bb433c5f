"""Reflections on an epoch and appendices in history: written, read back, checked."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import pytest
from sample_run import DOCUMENT, RUN, Sample, as_json, candidate, clock_from, evaluation, transitions

from skillgit.app.upkeep.run_checks import check_run
from skillgit.domain.edit import Edit, Op
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import BudgetSource, Origin
from skillgit.domain.protected_regions import AppendixCounts, with_appendix
from skillgit.errors import ConcurrentWriteError
from skillgit.store import history_reader, refs
from skillgit.store.event_writer import RunWriter

STEP, BASE = transitions()[1], 1
CURRENT = evaluation("1 2 3 5 6 7")


def reflection(passed: str, *, base: Sample = STEP) -> Sample:
    made = candidate(
        base.skill,
        (Edit(op=Op.APPEND, content="- Look back."),),
        step=1,
        epoch=1,
        base=BASE,
        measured=evaluation(passed),
        current=CURRENT,
        best=0.6,
        title="look back",
    )
    patch = replace(made.event.patch, by=BudgetSource.META)
    return replace(made, event=replace(made.event, origin=Origin.META, patch=patch))


def skipped(epoch: int = 1) -> Sample:
    patch = replace(STEP.event.patch, by=BudgetSource.META, ranked=0)
    event = Event(kind=EventKind.SKIPPED,
        run=RUN, skill=STEP.event.skill, epoch=epoch, step=1, title="nothing", patch=patch, origin=Origin.META,
        models=STEP.event.models, cost=STEP.event.cost,
    )  # fmt: skip
    return Sample(event=event, evidence={})


def write(repo, *samples: Sample) -> list[object]:
    writer = RunWriter(repo, RUN, clock_from(count()))
    return [writer.append(found.event, found.skill, found.evidence) for found in (*transitions()[:2], *samples)]


@pytest.mark.parametrize("passed", ["1 2", "1 2 3 4 5 6 7 8"])
def test_a_reflection_is_written_read_back_and_sound(repo, passed) -> None:
    made = reflection(passed)

    recorded = write(repo, made)[-1]

    assert recorded.event == made.event
    assert check_run(repo, RUN) == []
    branch = refs.rejected_branch(RUN, 1, "meta") if "8" not in passed else refs.run_branch(RUN)
    assert repo.tip(branch) == recorded.commit
    assert recorded.branch == branch
    assert history_reader.read_run(repo, RUN)[-1] == recorded


def test_a_reflection_follows_its_step_and_stands_before_the_slow_update(repo) -> None:
    write(repo, skipped())
    slow = replace(transitions()[4].event, step=1, epoch=1, base=1)

    assert check_run(repo, RUN) == []
    assert STEP.event.order(1) < skipped().event.order(1) < slow.order(1)


def test_an_epoch_is_reflected_on_once(repo) -> None:
    with pytest.raises(ConcurrentWriteError):
        write(repo, skipped(), reflection("1 2"))


def test_a_clone_reads_reflections_from_its_remote(repo, git) -> None:
    write(repo, reflection("1 2"))
    name = refs.rejected_branch(RUN, 1, "meta")
    git("update-ref", name.replace("refs/heads/", "refs/remotes/origin/"), name)
    git("update-ref", "-d", name)
    line = refs.run_branch(RUN)
    git("update-ref", line.replace("refs/heads/", "refs/remotes/origin/"), line)

    assert history_reader.read_run(repo, RUN)[-1].event.origin is Origin.META


def test_a_budget_that_does_not_belong_to_a_reflection_is_found(repo) -> None:
    made = reflection("1 2")
    patch = replace(made.event.patch, by=BudgetSource.SCHEDULE)
    write(repo, replace(made, event=replace(made.event, patch=patch)))

    assert [problem.sentence for problem in check_run(repo, RUN)] == [
        "the reflection on epoch 1 and its edit budget do not belong together"
    ]


def reminded(notes: list[str], *, told: list[str] | None = None) -> Sample:
    patch = json.loads(STEP.evidence["patch.json"]) | {"appendix": notes if told is None else told}
    skill = STEP.skill.with_text(DOCUMENT, with_appendix(STEP.skill.document, notes))
    event = replace(STEP.event, appendix=AppendixCounts(added=len(notes), total=len(notes)))
    return Sample(event=event, skill=skill, evidence={**STEP.evidence, "patch.json": as_json(patch)})


def test_an_appendix_that_follows_from_its_evidence_is_sound(repo) -> None:
    writer = RunWriter(repo, RUN, clock_from(count()))
    for found in (transitions()[0], reminded(["mind the gap", "and the step"])):
        recorded = writer.append(found.event, found.skill, found.evidence)

    assert recorded.event.appendix == AppendixCounts(added=2, total=2)
    assert check_run(repo, RUN) == []


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (["mind the hole"], "the patch in the evidence, applied to v0, does not give the committed skill"),
        (["mind the gap", "more"], "the appendix in the evidence is not that of the commit"),
    ],
)
def test_an_appendix_that_does_not_follow_from_its_evidence_is_found(repo, told, said) -> None:
    writer = RunWriter(repo, RUN, clock_from(count()))
    for found in (transitions()[0], reminded(["mind the gap"], told=told)):
        writer.append(found.event, found.skill, found.evidence)

    assert [problem.sentence for problem in check_run(repo, RUN)] == [said]
