"""Aggregate: patches of many analysts become one, level by level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.domain.edit import Patch, Source
from skillgit.engine.batches import chunks
from skillgit.engine.concurrency import both, ordered
from skillgit.engine.progress import Stage
from skillgit.engine.rendering import conversation, memory_section, patches_section, skill_section
from skillgit.engine.replies import PatchReply, ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.engine.reflect import Reflection
    from skillgit.engine.session import Session


async def aggregate(session: Session, state: RunState, skill: Skill, reflection: Reflection, *, step: int) -> Patch:
    """Merge the analysts' patches; without any edits the result is empty.

    Failures and successes are merged apart, at the same time, in batches of ``gradient.merge_batch_size`` until one
    patch is left of each; a final merge joins the two. A merge whose reply cannot be used keeps all edits, failures
    first.
    """
    session.monitor.stage(Stage.AGGREGATE)
    failure, success = await both(
        _merge_group(session, state, skill, reflection.failure, source=Source.FAILURE, step=step),
        _merge_group(session, state, skill, reflection.success, source=Source.SUCCESS, step=step),
    )
    if not failure.edits or not success.edits:
        return failure if failure.edits else success
    sections = (patches_section([failure], "failure", 0), patches_section([success], "success", 0))
    merged = await _merge(session, state, skill, sections, Source.MIXED, draw=(step, "final"))
    return merged or _concatenated([failure, success])


async def _merge_group(
    session: Session, state: RunState, skill: Skill, patches: Sequence[Patch], *, source: Source, step: int
) -> Patch:
    remaining = [patch for patch in patches if patch.edits]
    level = 0
    while len(remaining) > 1:
        level += 1
        draw = (step, source.value, level)
        remaining = await _merge_level(session, state, skill, remaining, source, draw=draw)
    return remaining[0] if remaining else Patch()


async def _merge_level(
    session: Session,
    state: RunState,
    skill: Skill,
    patches: list[Patch],
    source: Source,
    *,
    draw: tuple[int, str, int],
) -> list[Patch]:
    async def one(numbered: tuple[int, list[Patch]]) -> Patch:
        number, group = numbered
        if len(group) == 1:
            return group[0]
        sections = (patches_section(group, source.value, draw[-1]),)
        merged = await _merge(session, state, skill, sections, source, draw=(*draw, number))
        return merged or _concatenated(group)

    groups = list(enumerate(chunks(patches, session.settings.gradient.merge_batch_size)))
    return await ordered(one, groups, limit=session.settings.gradient.analyst_workers, each=session.monitor.tick)


async def _merge(
    session: Session,
    state: RunState,
    skill: Skill,
    sections: tuple[str, ...],
    source: Source,
    *,
    draw: tuple[str | int, ...],
) -> Patch | None:
    messages = conversation("merge", "", (skill_section(skill), memory_section(state.optimizer_memory), *sections))
    reply = await ask(session, "merge", messages, PatchReply, draw=draw)
    return reply.patch(source) if reply is not None else None


def _concatenated(patches: Sequence[Patch]) -> Patch:
    """Return all edits in order under the first patch's title, for when a merge failed."""
    edits = tuple(edit for patch in patches for edit in patch.edits)
    reasoning = "\n\n".join(patch.reasoning for patch in patches if patch.reasoning)
    return replace(patches[0], edits=edits, reasoning=reasoning)
