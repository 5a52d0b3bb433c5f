"""Ask the target until its reply holds a final answer; the conversation is kept, so that every turn sees the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.plugin.backend import Image, Message, Text, assistant, system, user
from skillgit_envs.answer_tag import extract, in_tag

if TYPE_CHECKING:
    from skillgit.plugin.environment import Target

AGAIN = "Check your work against the task. Then give the final answer between <answer> and </answer>."


async def until_answered(
    target: Target,
    item_id: str,
    prompt: str,
    question: str,
    *,
    max_turns: int = 1,
    images: tuple[Image, ...] = (),
    review: str = "",
) -> Trajectory:
    """Return what happened when the target was asked ``question`` under the system prompt ``prompt``.

    A reply without an answer tag is followed by a request to check it, as long as there are turns left.

    Args:
        max_turns: Replies at most.
        review: What is asked instead of that request, with the answer so far in the place of ``{answer}``; the target
            sees nothing else then, the task included.
    """
    pictures = f"\n[{len(images)} picture{'s' if len(images) > 1 else ''}]" if images else ""
    message = Message(role="user", parts=(Text(text=question), *images)) if images else user(question)
    messages, turns = [system(prompt), message], [Turn(role="user", content=question + pictures)]
    while True:
        reply = await target.chat(messages)
        turns.append(Turn(role="assistant", content=reply.text))
        if in_tag(reply.text) is not None or len(turns) >= 2 * max_turns:
            return Trajectory(item_id=item_id, turns=tuple(turns), answer=extract(reply.text))
        again = review.replace("{answer}", extract(reply.text)) if review else AGAIN
        messages = [messages[0], user(again)] if review else [*messages, assistant(reply.text), user(again)]
        turns.append(Turn(role="user", content=again))
