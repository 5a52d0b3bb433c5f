"""Compress: the optimizer says the same in fewer words, in one call; what is protected stays as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.edit import EditSource
from skillgit.domain.rewrite import Suggestion, SuggestionType, Template
from skillgit.engine.rendering import conversation, template_section
from skillgit.engine.replies import ReplyModel, RewriteReply, UnusableReplyError, ask, keeps_protected
from skillgit.engine.rewrite import put_together

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.domain.skill import Skill
    from skillgit.engine.rewrite import RewriteResult
    from skillgit.engine.session import Session

STAGE = "compress"


async def compress(session: Session, skill: Skill, *, draw: tuple[str | int, ...]) -> RewriteResult | None:
    """Return ``skill`` in fewer words; None if no reply could be used or nothing can be shorter.

    Args:
        draw: The place in the run that the call belongs to; another one asks anew.
    """
    messages = conversation(STAGE, "", (template_section(skill),))
    reply = await ask(session, STAGE, messages, RewriteReply, draw=draw, check=_shortens(skill))
    if reply is None or not reply.body.strip():
        return None
    wish = Suggestion(type=SuggestionType.COMPRESS, title=reply.title, instruction=reply.title, source=EditSource.META)
    candidate = put_together(skill, reply.body, [wish], title=reply.title, reasoning=reply.reasoning)
    return candidate if candidate.application.skill.digest != skill.digest else None


def _shortens(skill: Skill) -> Callable[[ReplyModel], None]:
    """Return a check of replies: the new text keeps what is protected and is shorter than the old one."""
    whole, length = keeps_protected(skill), len(Template.of(skill.document).body)

    def check(reply: ReplyModel) -> None:
        whole(reply)
        if isinstance(reply, RewriteReply) and len(reply.body.strip("\n")) >= length:
            raise UnusableReplyError(
                f"body: it has {len(reply.body)} characters, and the text that stands has {length}"
            )

    return check
