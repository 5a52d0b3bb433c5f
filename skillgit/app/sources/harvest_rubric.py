"""Criteria for drafts that no command checks, written by the judge's model from what is in the draft."""

from __future__ import annotations

import asyncio
from importlib.resources import files
from random import Random
from typing import TYPE_CHECKING

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.models import find_routes
from skillgit.app.setup.plan import Bound, Plan, cap_notes, total_of
from skillgit.app.setup.planner import row_of, tokens_of
from skillgit.calls.client import Calls
from skillgit.calls.ledger import Ledger
from skillgit.engine.questions import UnusableReplyError, parse
from skillgit.engine.reply_schemas import ReplyModel
from skillgit.errors import FatalBackendError
from skillgit.plugin.backend import Message, system, user

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.sources.harvest_drafts import HarvestedDraft
    from skillgit.app.sources.harvest_redaction import SessionRedactor
    from skillgit.app.workspace.context import Context
    from skillgit.domain.cost import Caps, Cost

_ROLE = "judge"
_REPLY_TOKENS = 250  # that criteria are taken to have
_MOST_CRITERIA = 5


class _Criteria(ReplyModel):
    """What the model says."""

    criteria: list[str]


class RubricWriter:
    """Asks the judge's model for criteria, one question for each draft, under caps."""

    def __init__(self, context: Context, config: str, overrides: tuple[str, ...], caps: Caps) -> None:
        self._context, self._caps = context, caps
        self._routes = find_routes(load_config(context, config, overrides), (_ROLE,))

    def plan(self, drafts: Sequence[HarvestedDraft], facts: dict[str, str]) -> Plan:
        """Return what asking would take; drafts for which a command turns out to be proved are not asked about."""
        tokens = sum(tokens_of(message.text) for draft in drafts for message in _messages(draft))
        count = (len(drafts), Bound.AT_MOST)
        row = row_of(self._routes[_ROLE], _ROLE, "rubric", count, (tokens, len(drafts) * _REPLY_TOKENS), seconds=None)
        total = total_of((row,))
        return Plan(
            command="tasks harvest", facts=facts, stages=(row,), total=total, notes=cap_notes(self._caps, total)
        )

    def write(self, drafts: Sequence[HarvestedDraft], redactor: SessionRedactor) -> tuple[Cost, list[str]]:
        """Give each draft the criteria of the model; a draft for which it gives none keeps its own, with a reason."""
        with Ledger.in_memory() as ledger:
            calls = Calls(
                routes=self._routes,
                ledger=ledger,
                caps=self._caps,
                sleep=asyncio.sleep,
                random=Random(self._context.entropy(8)),  # noqa: S311 - jitter of retries
            )
            reasons = asyncio.run(_asked(calls, drafts, redactor))
            return calls.spent(), reasons


def _messages(draft: HarvestedDraft) -> list[Message]:
    prompt = (files(__package__) / "prompts" / "rubric.md").read_text(encoding="utf-8")
    criteria = draft.row["criteria"]
    material = "\n\n".join(map(str, criteria)) if isinstance(criteria, list) else ""
    return [system(prompt), user(f"<request>\n{draft.row['prompt']}\n</request>\n\n<outcome>\n{material}\n</outcome>")]


async def _asked(calls: Calls, drafts: Sequence[HarvestedDraft], redactor: SessionRedactor) -> list[str]:
    reasons = []
    try:
        for draft in drafts:
            reply = await calls.call(_ROLE, "rubric", _messages(draft), draw=("rubric", draft.id))
            try:
                criteria = [redactor.text(text) for text in parse(reply.text, _Criteria).criteria if text.strip()]
            except UnusableReplyError as error:
                reasons.append(f"{draft.id} keeps its own criteria: {error}")
                continue
            draft.row["criteria"] = criteria[:_MOST_CRITERIA] or draft.row["criteria"]
    except FatalBackendError as error:
        error.hint = "criteria need a language model: -o model.judge_backend=… -o model.judge=…"
        raise
    finally:
        await calls.aclose()
    return reasons
