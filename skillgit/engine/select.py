"""Select: of the merged proposals, as many as the edit budget allows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from skillgit.engine.dialect import dialect
from skillgit.engine.drafts import best_supported
from skillgit.engine.history import history_section
from skillgit.engine.progress import Stage
from skillgit.engine.rendering import (
    budget_section,
    conversation,
    memory_section,
    proposals_section,
    skill_section,
)
from skillgit.engine.replies import RankReply, ask

if TYPE_CHECKING:
    from skillgit.domain.skill import Skill
    from skillgit.domain.state import RunState
    from skillgit.engine.drafts import Draft
    from skillgit.engine.session import Session


async def select(
    session: Session, state: RunState, skill: Skill, draft: Draft, *, step: int, budget: int | None
) -> Draft:
    """Return ``draft`` cut to ``budget`` proposals; None is no limit, and 0 leaves nothing.

    Within the budget nothing is asked. Over it, the optimizer ranks; numbers that name no proposal or name one twice do
    not count. If nothing usable comes back, the proposals with the most support are kept.
    """
    if budget is None or len(draft.proposals) <= budget:
        return draft
    if budget == 0:
        return replace(draft, proposals=())
    session.monitor.stage(Stage.SELECT, 1)
    messages = conversation(
        dialect(session).rank,
        "",
        (
            skill_section(skill, session.settings.optimizer),
            memory_section(state.optimizer_memory),
            history_section(state.memory, session.settings.gradient.max_history_tokens),
            budget_section(budget),
            proposals_section(draft.proposals),
        ),
    )
    reply = await ask(session, "rank", messages, RankReply, draw=(step,))
    chosen = _usable(reply, len(draft.proposals)) if reply is not None else []
    if reply is None or not chosen:
        return best_supported(draft, budget, "rank")
    ranked = replace(
        draft,
        proposals=tuple(draft.proposals[number] for number in chosen),
        reasoning=reply.reasoning,
        title=reply.title,
        cut=False,
    )
    return ranked.limited(budget)


def _usable(reply: RankReply, proposals: int) -> list[int]:
    return [number for number in dict.fromkeys(reply.selected) if 0 <= number < proposals]
