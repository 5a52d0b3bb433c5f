"""An event as a commit message, and back: ``decode(encode(event)) == event`` for every kind of event.

The guidance and memory of a slow update are long texts with line breaks. They stand in the tree of their commit, so
they are handed to ``decode`` as ``SlowText``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict, assert_never

from skillgit.domain.event import (
    EVENT_NAMES,
    Accepted,
    Edited,
    Event,
    MakesVersion,
    Measured,
    Origin,
    Rejected,
    Reverted,
    RunFinished,
    RunOutcome,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
    event_name,
    event_origin,
)
from skillgit.errors import DataError, InvariantError, TrailerError
from skillgit.store import message
from skillgit.store.trailers import format_block, format_token, parse_block
from skillgit.store.usual import read_candidate
from skillgit.store.values import (
    format_appendix,
    format_cost,
    format_edit,
    format_measurement,
    format_models,
    format_origin,
    format_patch,
    format_placebo,
    format_spent,
    format_start,
    format_verdict,
    read_appendix,
    read_cost,
    read_edit,
    read_gauge,
    read_measurement,
    read_models,
    read_origin,
    read_patch,
    read_placebo,
    read_summary,
    read_verdict,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from skillgit.domain.appendix import AppendixCounts
    from skillgit.domain.evaluation import EvaluationSummary
    from skillgit.domain.event import Change, Cost, EditRecord, Measurement, Models, PatchCounts
    from skillgit.domain.gate import Verdict
    from skillgit.store.message import Body
    from skillgit.store.trailers import Block

_TREE = re.compile(r"[0-9a-f]{40}")
_KINDS = {name: kind for kind, name in EVENT_NAMES.items() if kind is not Edited}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowText:
    """The texts of a slow update as they stand in the tree of its commit."""

    guidance: str
    memory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What a commit message says: the event and the id of its evidence tree, empty without evidence."""

    event: Event
    evidence: str


def encode(event: Event, evidence: str) -> str:
    """Return the commit message of ``event``, whose evidence is the tree ``evidence``.

    Raises:
        InvariantError: It is an edit, which is told by a commit of its author.
        TrailerError: A trailer would be longer than the format allows.
    """
    parts = (message.subject(event), message.body(event), format_block(_trailers(event, evidence)))
    text = "\n\n".join(filter(None, parts)) + "\n"
    # A model's JSON may hold half of a surrogate pair, which no commit can.
    return text.encode(errors="replace").decode()


def _trailers(event: Event, evidence: str) -> Iterator[tuple[str, str]]:
    yield "Event", event_name(event)
    yield "Run", event.run
    yield "Skill", format_token(event.skill)
    yield "Epoch", str(event.epoch)
    if not isinstance(event, RunStarted):
        yield "Step", str(event.step)
    taken = (event.number, event.of) if isinstance(event, Accepted | Rejected) else ()
    yield "Origin", format_origin(event_origin(event), *taken)
    if isinstance(event, MakesVersion | Measured):
        yield "Version", str(event.version)
    if not isinstance(event, Skipped | Measured | RunFinished):
        yield "Base", str(0 if isinstance(event, RunStarted) else event.base)
    yield from _own_trailers(event)
    if not isinstance(event, SlowMerged | Edited):
        yield "Models", format_models(event.models)
        yield "Cost", format_cost(event.cost)
        yield from (("Spent", format_spent(part)) for part in event.cost.parts)
    yield "Evidence", evidence


def _own_trailers(event: Event) -> Iterator[tuple[str, str]]:
    """Yield the trailers that not every kind has."""
    match event:
        case RunStarted():
            yield "Config", format_token(event.config)
            yield "Splits", format_token(event.splits)
            yield "Env", format_token(event.environment)
            yield "Fork-Of", format_token(event.fork_of)
            yield "Eval", format_start(event.evaluation, event.gauge)
        case Accepted() | Rejected():
            yield from (("Edit", format_edit(edit)) for edit in event.edits)
            yield "Patch", format_patch(event.patch)
            yield "Appendix", format_appendix(event.appendix)
            yield from _measured(event.evaluation, event.verdict)
        case Skipped():
            yield "Patch", format_patch(event.patch)
        case SlowProposed() | SlowMerged() | Measured():
            yield from _measured(event.evaluation, event.verdict)
        case Reverted():
            yield "Target", str(event.target)
            yield from _measured(event.evaluation, event.verdict)
        case Edited():
            raise InvariantError(f"v{event.version} is an edit, which only its author can commit", hint="git commit")
        case RunFinished():
            yield "Outcome", event.outcome.value
            yield from (("Eval", format_measurement(evaluation)) for evaluation in event.evaluations)
            yield "Placebo", format_placebo(event.placebo)
        case _:
            assert_never(event)


def _measured(evaluation: Measurement | None, verdict: Verdict | None) -> Iterator[tuple[str, str]]:
    if evaluation is not None:
        yield "Eval", format_measurement(evaluation)
    if verdict is not None:
        yield "Gate", format_verdict(verdict)


def decode(text: str, slow: SlowText | None = None) -> Decoded:
    """Return what the commit message ``text`` says.

    Args:
        text: The whole message.
        slow: The texts from the commit's tree, for a slow-proposed event.

    Raises:
        TrailerError: The message is not that of an event.
        FormatVersionError: A newer skillgit wrote it.
    """

    def given(skill: str) -> SlowText:
        if slow is None:
            raise TrailerError(
                f"the slow update of {skill} was read without the texts of its tree", hint="skillgit fsck"
            )
        return slow

    return decode_with(text, given)


def decode_with(text: str, read_slow: Callable[[str], SlowText]) -> Decoded:
    """Return what the commit message ``text`` says; like :func:`decode`, for those who do not know its kind yet.

    Args:
        text: The whole message.
        read_slow: Reads the texts of a slow update from the commit's tree, given the path of the skill.
    """
    usual = read_candidate(text)
    return Decoded(event=usual[0], evidence=usual[1]) if usual is not None else decode_exactly(text, read_slow)


def decode_exactly(text: str, read_slow: Callable[[str], SlowText]) -> Decoded:
    """Do the same for messages of every kind and form; see :func:`decode_with`."""
    block = parse_block(text)
    try:
        event = _event(block, message.read_body(text), read_slow)
    except (ValueError, DataError) as error:
        raise TrailerError(f"the commit's trailers cannot be read: {error}", hint="skillgit fsck") from error
    evidence = block.one("Evidence")
    if evidence and _TREE.fullmatch(evidence) is None:
        raise TrailerError(f"'{evidence}' is not the id of an evidence tree", hint="skillgit fsck")
    return Decoded(event=event, evidence=evidence)


def _kind(block: Block) -> type[Event]:
    kind = _KINDS.get(block.one("Event"))
    if kind is None:
        raise TrailerError(f"there is no event '{block.one('Event')}'", hint="install a newer skillgit")
    return kind


class _Common(TypedDict):
    run: str
    skill: str
    epoch: int
    title: str
    why: str


class _Candidate(TypedDict):
    step: int
    base: int
    edits: tuple[EditRecord, ...]
    changes: tuple[Change, ...]
    patch: PatchCounts
    origin: Origin
    number: int
    of: str
    appendix: AppendixCounts | None
    evaluation: EvaluationSummary
    verdict: Verdict
    fixed: tuple[str, ...]
    broken: tuple[str, ...]


class _Paid(TypedDict):
    models: Models
    cost: Cost


def _event(block: Block, body: Body, read_slow: Callable[[str], SlowText]) -> Event:
    kind = _kind(block)
    common = _Common(
        run=block.token("Run"),
        skill=block.token("Skill"),
        epoch=block.integer("Epoch"),
        title=body.title,
        why=body.why,
    )
    if kind is SlowProposed:
        return _slow_proposed(block, body, common, read_slow(common["skill"]))
    return _READERS[kind](block, body, common)


def _accepted(block: Block, body: Body, common: _Common) -> Accepted:
    return Accepted(**common, **_candidate(block, body), **_paid(block), version=block.integer("Version"))


def _rejected(block: Block, body: Body, common: _Common) -> Rejected:
    return Rejected(**common, **_candidate(block, body), **_paid(block))


def _skipped(block: Block, _: Body, common: _Common) -> Skipped:
    return Skipped(
        **common,
        **_paid(block),
        step=block.integer("Step"),
        patch=read_patch(block.needed("Patch")),
        origin=read_origin(block.value("Origin"))[0],
    )


def _run_finished(block: Block, _: Body, common: _Common) -> RunFinished:
    return RunFinished(
        **common,
        **_paid(block),
        step=block.integer("Step"),
        outcome=RunOutcome(block.one("Outcome")),
        evaluations=tuple(read_summary(value) for value in block.values("Eval")),
        placebo=read_placebo(block.value("Placebo")),
    )


def _run_started(block: Block, _: Body, common: _Common) -> RunStarted:
    return RunStarted(
        **common,
        **_paid(block),
        config=block.token("Config"),
        splits=block.token("Splits"),
        environment=block.token("Env"),
        fork_of=block.token("Fork-Of"),
        evaluation=read_measurement(block.required("Eval")),
        gauge=read_gauge(block.required("Eval")),
    )


def _candidate(block: Block, body: Body) -> _Candidate:
    origin, number, of = read_origin(block.value("Origin"))
    return _Candidate(
        step=block.integer("Step"),
        base=block.integer("Base"),
        edits=tuple(read_edit(value) for value in block.values("Edit")),
        changes=body.changes,
        patch=read_patch(block.needed("Patch")),
        origin=origin,
        number=number,
        of=of,
        appendix=read_appendix(block.value("Appendix")),
        evaluation=read_summary(block.required("Eval")),
        verdict=read_verdict(block.required("Gate")),
        fixed=body.fixed,
        broken=body.broken,
    )


def _slow_proposed(block: Block, body: Body, common: _Common, slow: SlowText) -> SlowProposed:
    evaluation, verdict = block.value("Eval"), block.value("Gate")
    return SlowProposed(
        **common,
        **_paid(block),
        step=block.integer("Step"),
        base=block.integer("Base"),
        guidance=slow.guidance,
        memory=slow.memory,
        evaluation=None if evaluation is None else read_summary(evaluation),
        verdict=None if verdict is None else read_verdict(verdict),
        fixed=body.fixed,
        broken=body.broken,
    )


def _slow_merged(block: Block, _: Body, common: _Common) -> SlowMerged:
    return SlowMerged(
        **common,
        step=block.integer("Step"),
        version=block.integer("Version"),
        base=block.integer("Base"),
        evaluation=read_measurement(block.required("Eval")),
        verdict=read_verdict(block.required("Gate")),
    )


def _reverted(block: Block, body: Body, common: _Common) -> Reverted:
    verdict = block.value("Gate")
    return Reverted(
        **common,
        **_paid(block),
        step=block.integer("Step"),
        version=block.integer("Version"),
        base=block.integer("Base"),
        target=block.integer("Target"),
        evaluation=read_measurement(block.required("Eval")),
        verdict=None if verdict is None else read_verdict(verdict),
        fixed=body.fixed,
        broken=body.broken,
    )


def _measurement(block: Block, body: Body, common: _Common) -> Measured:
    return Measured(
        **common,
        **_paid(block),
        step=block.integer("Step"),
        version=block.integer("Version"),
        evaluation=read_summary(block.required("Eval")),
        verdict=read_verdict(block.required("Gate")),
        fixed=body.fixed,
        broken=body.broken,
    )


def _paid(block: Block) -> _Paid:
    cost = read_cost(block.value("Cost"), block.all("Spent"))
    return _Paid(models=read_models(block.one("Models")), cost=cost)


_READERS: dict[type[Event], Callable[[Block, Body, _Common], Event]] = {
    RunStarted: _run_started,
    Accepted: _accepted,
    Rejected: _rejected,
    Skipped: _skipped,
    SlowMerged: _slow_merged,
    Reverted: _reverted,
    Measured: _measurement,
    RunFinished: _run_finished,
}
