"""Ask until a reply can be used: the target until it gives a final answer, a judge until its verdict can be read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeVar

from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Image, Message, Text, assistant, system, user
from skillgit_envs.answers import extract, in_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillgit.plugin.environment import Judge, Target

T = TypeVar("T")

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

    A reply without an answer tag is followed by a request to check it, as long as there are turns left; the
    conversation is kept, so that every turn sees the task. ``review`` replaces that request, with the answer so far for
    ``{answer}``; the target then sees nothing else, not even the task.
    """
    message = Message(role="user", parts=(Text(text=question), *images))
    messages, turns = [system(prompt), message], [message.turn()]
    while True:
        reply = await target.chat(messages)
        turns.append(Turn(role="assistant", content=reply.text))
        if in_tag(reply.text) is not None or len(turns) >= 2 * max_turns:
            return Trajectory(item_id=item_id, turns=tuple(turns), answer=extract(reply.text))
        again = review.replace("{answer}", extract(reply.text)) if review else AGAIN
        messages = [messages[0], user(again)] if review else [*messages, assistant(reply.text), user(again)]
        turns.append(Turn(role="user", content=again))


async def ask_judge(judge: Judge, instructions: str, question: str, read: Callable[[str], T], *, form: str) -> T:
    """Return what ``read`` makes of the judge's reply; one that cannot be read is sent back once with the reason.

    ``read`` raises a ValueError with that reason; ``form`` says in words what a reply has to be. A second useless reply
    is an EnvironmentFaultError, not a score.
    """
    messages = [system(instructions), user(question)]
    for _ in range(2):
        reply = await judge.chat(messages)
        try:
            return read(reply.text)
        except ValueError as error:
            reason = str(error)
            messages += [assistant(reply.text), user(f"This reply cannot be used: {reason}. Reply with {form} only.")]
    raise EnvironmentFaultError(f"the judge's reply cannot be used: {reason}", hint="choose another judge")


def material(texts: Mapping[str, object]) -> str:
    """Return texts each between tags of its name, none of which it can end itself."""
    closing = re.compile(rf"</(?=\s*(?:{'|'.join(map(re.escape, texts))})\b)")
    inert = {name: closing.sub(r"<\\/", str(text)) for name, text in texts.items()}
    return "\n\n".join(f"<{name}>\n{text}\n</{name}>" for name, text in inert.items())
