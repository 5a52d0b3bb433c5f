"""Select: of the merged edits, as many as the edit budget allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.edit import Patch
from skillgit.engine.progress import Stage
from skillgit.engine.rendering import (
    budget_section,
    conversation,
    edits_section,
    history_section,
    memory_section,
    skill_section,
)
from skillgit.engine.replies import RankReply, ask

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.engine.session import Session


async def select(session: Session, state: RunState, skill: Skill, patch: Patch, *, step: int, budget: int) -> Patch:
    """Return ``patch`` cut to ``budget`` edits.

    Within the budget nothing is asked. Over it, the optimizer ranks; numbers that name no edit or name one twice do not
    count. If nothing usable comes back, the edits with the most support are kept.
    """
    if len(patch.edits) <= budget:
        return patch
    session.monitor.stage(Stage.SELECT, 1)
    messages = conversation(
        "rank",
        "",
        (
            skill_section(skill),
            memory_section(state.optimizer_memory),
            history_section(state.memory),
            budget_section(budget),
            edits_section(patch.edits),
        ),
    )
    reply = await ask(session, "rank", messages, RankReply, draw=(step,))
    chosen = _usable(reply, len(patch.edits))[:budget] if reply is not None else []
    if reply is None or not chosen:
        by_support = sorted(patch.edits, key=lambda edit: -edit.support)
        return Patch(edits=tuple(by_support[:budget]), reasoning=patch.reasoning, title=patch.title)
    return Patch(
        edits=tuple(patch.edits[number] for number in chosen),
        reasoning=reply.reasoning or patch.reasoning,
        title=reply.title or patch.title,
    )


def _usable(reply: RankReply, edits: int) -> list[int]:
    return [number for number in dict.fromkeys(reply.selected) if 0 <= number < edits]
