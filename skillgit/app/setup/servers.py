"""What the servers of a setup say about their models, asked once a command, and whether that is what a run recorded.

Everything that is kept of a measurement goes by this identity: answers in the ledger, outcomes in notes and in events.
So no answer of one server counts for another one, wherever it would be taken in place of a new one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from skillgit.app.setup.config.typed_values import ROLES
from skillgit.calls.ledger import Ledger
from skillgit.calls.route import Route, with_inner
from skillgit.domain.event import Event
from skillgit.domain.served_model import ServedModel, compact_facts, differing_facts, may_be_same_model
from skillgit.engine.concurrency import ordered
from skillgit.errors import BackendError, ConfigError
from skillgit.plugin.backend import AsksServer
from skillgit.plugin.redaction import redact


def identified_routes(
    routes: Mapping[str, Route], ledger: Path, from_history: Callable[[ServedModel], ServedModel | None]
) -> dict[str, Route]:
    """Return ``routes`` with what their servers say about their models.

    A server that does not answer now is taken for what it was when it last answered, as far as the ledger, or else
    ``from_history``, knows: what it answered can be used while it is down, and :func:`check_servers` looks again once
    it has answered a call.
    """
    ways = _ways(routes.values())
    if not ways:
        return dict(routes)
    facts = asyncio.run(_facts_of(ways))
    with Ledger.read(ledger) as record:
        servers = {
            server: with_facts(server, answer)
            if answer is not None
            else replace(record.last_served(server) or from_history(server) or server, is_assumed=True)
            for server, answer in facts.items()
        }
    return {role: _with_servers(route, servers) for role, route in routes.items()}


async def check_servers(routes: Mapping[str, Route]) -> None:
    """Look again at servers that did not answer; a ConfigError if one is not what it was taken for."""
    ways = {server: way for server, way in _ways(routes.values()).items() if server.is_assumed}
    for server, answer in (await _facts_of(ways)).items():
        if answer is not None and (now := with_facts(server, answer)) != server:
            change = f"serves another model than when it was last looked at: {difference(server, now)}"
            if not server.facts:
                change = f"did not say what it serves when this command began, and does now: {now.description}"
            hint = "type the command again, so that all of its answers are those of one model"
            raise ConfigError(f"{server.phrase} {change}", hint=hint)


def with_facts(server: ServedModel, facts: Mapping[str, object]) -> ServedModel:
    public = {name: redact(value) if isinstance(value, str) else value for name, value in facts.items()}
    name = str(public.get("name") or "")
    other_name = "" if may_be_same_model(server.model, name) else name
    return replace(server, facts=compact_facts(public), answers_as=other_name, is_assumed=False)


def looked_at(routes: Mapping[str, Route]) -> dict[str, Route]:
    """Return ``routes`` with what those of their servers that answer now say about their models."""
    facts = asyncio.run(_facts_of(_ways(routes.values())))
    servers = {server: with_facts(server, answer) for server, answer in facts.items() if answer is not None}
    return {role: _with_servers(route, servers) for role, route in routes.items()}


def difference(then: ServedModel, now: ServedModel) -> str:
    """Return what differs between two models, in words; the facts where their servers have the same address."""
    if (then.backend, then.model, then.address) != (now.backend, now.model, now.address):
        return f"{then.description} then, {now.description} now"
    first, second = dict(then.facts), dict(now.facts)
    words = (
        f"{name} was {first.get(name, 'not given')} and is {second.get(name, 'not given')}"
        for name in differing_facts(then, now)
    )
    return ", ".join(words)


def _ways(routes: Iterable[Route]) -> dict[ServedModel, tuple[Route, AsksServer]]:
    """Return the models whose servers are asked what they serve, each with a way to it."""
    return {
        route.server: (route, route.backend)
        for route in with_inner(routes)
        if route.server is not None and not route.server.is_pinned and isinstance(route.backend, AsksServer)
    }


async def _facts_of(
    ways: Mapping[ServedModel, tuple[Route, AsksServer]],
) -> dict[ServedModel, Mapping[str, object] | None]:
    facts = await ordered(_facts, list(ways.values()), limit=len(ways) or 1)
    return dict(zip(ways, facts, strict=True))


async def _facts(way: tuple[Route, AsksServer]) -> Mapping[str, object] | None:
    route, backend = way
    try:
        async with route.guarded():
            return await backend.served_facts(route.model)
    except BackendError:
        return None  # a call says why, and what to do about it


def _with_servers(route: Route, servers: Mapping[ServedModel, ServedModel]) -> Route:
    inner = None if route.inner is None else _with_servers(route.inner, servers)
    server = None if route.server is None else servers.get(route.server, route.server)
    return replace(route, server=server, inner=inner)


def other_servers(start: Event, routes: Mapping[str, Route]) -> tuple[ServedModel, ServedModel] | None:
    """Return the first role's model that the run was not begun with, then and now; None if all are the same.

    What a run of an older skillgit did not record is not compared.
    """
    for role, route in routes.items():
        then = start.served_as(role)
        if then is not None and then != route.served:
            return then, route.served
    return None


def check_address(run: str, start: Event, routes: Mapping[str, Route]) -> None:
    """Raise a ConfigError if ``run`` asked an address that a variable named, and without it another one is asked."""
    for role, route in routes.items():
        then, now = start.served_as(role), route.served
        if (
            then is None
            or not then.variable
            or then.address == now.address
            or os.environ.get(then.variable, "").strip()
        ):
            continue
        raise _unset(run, role, then, f"{now.place or now.backend} would be asked")


@contextmanager
def as_variables_named(run: str, start: Event) -> Iterator[None]:
    """Let an error of a backend that lacks its address say which one a variable named when ``run`` began."""
    try:
        yield
    except ConfigError as error:
        for role in ROLES:
            then = start.served_as(role)
            if then is not None and then.variable and not os.environ.get(then.variable, "").strip():
                raise _unset(run, role, then, "there is no other address") from error
        raise


def _unset(run: str, role: str, then: ServedModel, otherwise: str) -> ConfigError:
    return ConfigError(
        f"the {role} of run {run} is {then.phrase}, an address that {then.variable} named; the variable is not set"
        f" here, and {otherwise}",
        hint=f"export {then.variable}={then.address}",
    )
