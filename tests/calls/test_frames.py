"""How many functions a question passes between an environment and the backend that answers it."""

from __future__ import annotations

import asyncio
import inspect
import sys
from pathlib import Path

import pytest
from scripted import ScriptedBackend, door

import skillgit
from skillgit.engine.rollout import RoleConversation
from skillgit.errors import RetryableBackendError
from skillgit.plugin.backend import user

ROOT = Path(skillgit.__file__).parents[1]
MOST = 8


def name(frame):
    path = Path(frame.f_code.co_filename)
    return f"{path.relative_to(ROOT)}:{frame.f_lineno} {frame.f_code.co_qualname}" if ROOT in path.parents else ""


def suspended(task):
    """Yield the frames of a task that waits, the outermost first."""
    coroutine = task.get_coro()
    while inspect.iscoroutine(coroutine):
        yield coroutine.cr_frame
        coroutine = coroutine.cr_await


def running():
    """Return the coroutines on the stack, the outermost first."""
    frame, frames = sys._getframe(), []
    while frame is not None:
        frames += [frame] if frame.f_code.co_flags & inspect.CO_COROUTINE else []
        frame = frame.f_back
    return frames[::-1]


@pytest.mark.parametrize("again", [False, True], ids=["first", "again"])
def test_a_question_passes_few_functions_between_chat_and_the_backend(again):
    way = []

    async def answer(_):
        if again and len(backend.requests) == 1:
            raise RetryableBackendError("503")
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        way.extend(name(frame) for task in tasks for frame in suspended(task))
        way.extend(map(name, running()))
        return "yes"

    async def scenario():
        task = asyncio.create_task(conversation.chat([user("right?")]))
        return (await asyncio.wait_for(asyncio.shield(task), 60)).text

    backend = ScriptedBackend(answer)
    facts = {"purpose": "rollout", "stage": "rollout", "seed": 1, "item": "i"}
    conversation = RoleConversation(calls=door(backend), role="target", **facts)
    assert asyncio.run(scenario()) == "yes"
    frames = [frame for frame in way if frame.startswith("skillgit/")]
    assert len(frames) <= MOST - 1, "\n".join(frames)  # and the backend's complete
