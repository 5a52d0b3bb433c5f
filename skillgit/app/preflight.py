"""What has to hold before a run begins: keys, programs, contexts, and that every model answers.

Models are asked what they take and whether they answer at the same time, since a new run waits for both. The tiny calls
go through the door under a draw of their own: they are in the ledger and part of what the run's first
event costs, and a run that goes on does not repeat them. Nothing that a run decides depends on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.reach import context_of, look, room
from skillgit.calls.canary import QUESTION
from skillgit.engine.concurrency import ordered, side_by_side
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from skillgit.app.reach import Context, Room
    from skillgit.app.setup import Setup
    from skillgit.calls.door import Calls
    from skillgit.calls.route import Route
    from skillgit.domain.skill import Skill

    Reached: TypeAlias = Mapping[str, Context]
    """Role to what its model takes."""
    Reaching: TypeAlias = asyncio.Future[Reached]

STAGE = "preflight"


def asked_roles(setup: Setup) -> tuple[str, ...]:
    """Return the roles whose models are asked before a run: those that are not on this machine."""
    if not setup.config.values.train.preflight:
        return ()
    return tuple(role for role, route in setup.routes.items() if route.backend.info.needs_network)


async def reach(setup: Setup, calls: Calls) -> Reached:
    """Look for the model of every role that is not on this machine, and let it answer once.

    Nothing is spent before all keys, logins and programs are known to be there.

    Raises:
        BackendError: One is missing, or a model does not answer.
    """
    roles = asked_roles(setup)
    await ordered(lambda role: look(setup.routes[role]), roles, limit=len(setup.routes))
    contexts = setup.config.values.model.contexts
    found, _ = await side_by_side(
        ordered(lambda role: context_of(setup.routes[role], contexts), roles, limit=len(setup.routes)),
        ask_each(setup, calls, roles),
    )
    return dict(zip(roles, found, strict=True))


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
