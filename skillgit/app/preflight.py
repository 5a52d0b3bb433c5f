"""What has to hold before a run begins: keys, programs, contexts, and that every model answers.

Models are asked what they take and whether they answer at the same time, since a new run waits for both. The tiny calls
go through the door under a draw of their own: they are in the ledger and part of what the run's first
event costs, and a run that goes on does not repeat them. Nothing that a run decides depends on them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from skillgit.app.reach import context_of, look, room
from skillgit.calls.canary import QUESTION
from skillgit.engine.concurrency import ordered, side_by_side
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from skillgit.app.reach import Context, Room
    from skillgit.app.setup import Setup
    from skillgit.calls.door import Calls
    from skillgit.calls.route import Route
    from skillgit.domain.skill import Skill
    from skillgit.plugin.backend import Probe

    Reached: TypeAlias = Mapping[str, Context]
    """Role to what its model takes."""
    Reaching: TypeAlias = asyncio.Future[Reached]

STAGE = "preflight"
Out = TypeVar("Out")


def asked_roles(setup: Setup) -> tuple[str, ...]:
    """Return the roles whose models are asked before a run: those that are not on this machine."""
    if not setup.config.values.train.preflight:
        return ()
    return tuple(role for role, route in setup.routes.items() if route.backend.info.needs_network)


@dataclass(frozen=True, slots=True)
class Found:
    """What is being found out about the models of a run without a call.

    Attributes:
        looking: Ends once all keys, logins and programs are known to be there.
        contexts: Role to what its model takes.
    """

    looking: asyncio.Future[list[Probe | None]]
    contexts: asyncio.Future[Reached]


def find(setup: Setup) -> Found:
    """Begin to look for the model of every role that is not on this machine; nothing is spent."""
    roles = asked_roles(setup)
    looking = in_background(ordered(lambda role: look(setup.routes[role]), roles, limit=len(setup.routes)))
    return Found(looking, in_background(_contexts(setup, roles, looking)))


def in_background(work: Coroutine[object, object, Out]) -> asyncio.Future[Out]:
    """Begin ``work``. Whoever waits for it hears of its failure; if nobody comes, something else has failed before."""
    future = asyncio.ensure_future(work)
    future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return future


async def _contexts(setup: Setup, roles: Sequence[str], looking: asyncio.Future[list[Probe | None]]) -> Reached:
    await looking
    known = setup.config.values.model.contexts
    found = await ordered(lambda role: context_of(setup.routes[role], known), roles, limit=len(setup.routes))
    return dict(zip(roles, found, strict=True))


async def reach(setup: Setup, calls: Calls, found: Found) -> Reached:
    """Let the model of every role that is not on this machine answer once, if what it needs is there.

    Raises:
        BackendError: A key, a login or a program is missing, or a model does not answer.
    """
    await asyncio.wait({found.looking})
    if found.looking.exception() is not None:
        return await found.contexts
    contexts, _ = await side_by_side(found.contexts, ask_each(setup, calls, asked_roles(setup)))
    return contexts


async def preflight(
    setup: Setup, calls: Calls, skill: Skill, reaching: Reaching, remark: Callable[[str], None]
) -> None:
    """Check that every model was reached and that the longest prompts fit.

    Args:
        setup: The configuration and the ways to its models.
        calls: The door.
        skill: The skill that the run starts with.
        reaching: A :func:`reach` that has begun.
        remark: Is told what may become a problem.

    Raises:
        BackendError: A model does not answer.
        ConfigError: The longest prompt cannot fit into a model's context.
    """
    from skillgit.app.estimate import largest_prompts  # noqa: PLC0415 - loaded while servers are reached

    prompts = largest_prompts(setup.config.values.method, setup.task, skill) if asked_roles(setup) else {}
    reached = await reaching
    for role, context in reached.items():
        route = setup.routes[role]
        found = room(route, prompts[role], context)
        if found.fit == "too long":
            raise _too_long(role, route, found)
        if found.fit == "near":
            remark(_near(role, route, found))
    await ask_each(setup, calls, reached)  # from the ledger now, so that the first event is charged with it


async def ask_each(setup: Setup, calls: Calls, roles: Iterable[str]) -> None:
    """Let the models of ``roles`` answer once, all at the same time.

    Raises:
        BackendError: One does not.
    """
    remote = asked_roles(setup)
    asked = [role for role in roles if role in remote]
    await ordered(lambda role: calls.call(role, STAGE, QUESTION, draw=(STAGE, role)), asked, limit=len(setup.routes))


def _too_long(role: str, route: Route, found: Room) -> ConfigError:
    return ConfigError(
        f"the longest prompt of the {role} has about {found.prompt:,} tokens, but {route.name} takes {found.context:,}",
        hint="take shorter items or another model; if a number is wrong, set model.contexts, or train.preflight=false",
    )


def _near(role: str, route: Route, found: Room) -> str:
    return (
        f"The longest prompt of the {role} has about {found.prompt:,} tokens and its reply may have {found.reply:,}; "
        f"{route.name} takes {found.context:,} in all, so that some calls may be refused."
    )
