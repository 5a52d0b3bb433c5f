"""``skillgit doctor``: what this machine has, and whether the models of a configuration can be reached."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sqlite3
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.estimate import largest_prompts
from skillgit.app.setup.models import context_of, look, room
from skillgit.app.setup.plan import Bound, Plan, cap_notes, total_of
from skillgit.app.setup.planner import row_of, tokens_of
from skillgit.app.setup.setup import set_up
from skillgit.app.train.starting_point import first_skill
from skillgit.app.workspace.workspace import open_workspace
from skillgit.calls.pipeline import QUESTION
from skillgit.calls.pricing import context_table, find_price, price_table
from skillgit.domain.cost import Caps, Cost
from skillgit.errors import BackendError, BudgetError, ConfigError, ExitCode, RepositoryNotFoundError
from skillgit.plugin.request_json import parameters_json
from skillgit.store.git_binary import git_version
from skillgit.store.history_reader import runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.setup.models import PromptRoom
    from skillgit.app.setup.setup import Setup
    from skillgit.app.workspace.context import Context
    from skillgit.calls.pipeline import Route
    from skillgit.domain.skill import Skill
    from skillgit.plugin.backend import Price, Probe, Reply

REPLY_TOKENS = 2048
"""Tokens that the answer to the question may have: few, and enough for a model that thinks first."""
_PARAMETERS = frozenset({"temperature", "reasoning_effort", "top_p", "seed", "stop"})
_PROGRAMS = (
    ("bubblewrap", ("bwrap",), "keeps commands of agents and programs of environments apart"),
    ("libreoffice", ("soffice", "libreoffice"), "computes spreadsheets"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that some environments and backends use.

    Attributes:
        path: Where it is; empty if it is not installed.
    """

    name: str
    path: str
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What this machine has.

    Attributes:
        git: The version of git; empty if there is none.
    """

    python: str
    system: str
    git: str
    sqlite: str
    programs: tuple[Program, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The repository around the working directory."""

    path: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleHealth:
    """What is known of a role's model.

    Attributes:
        place: Where calls go: a server or a program; empty if the backend does not tell.
        credential: As whom calls are made; never a secret.
        answers: Whether the model answered; absent if it was not asked.
        answered_by: The name that the provider gives the model that answered.
        counted: Whether the provider counted the tokens; absent if nothing was answered.
        parameters: What the configuration says of how the model answers, such as its temperature.
        error: Why the model cannot be called; empty if nothing speaks against it.
        is_local: Whether the model is on this machine, so that there is nothing to ask.
        price: What a million tokens cost; absent if that is not known.
        price_source: Who says so: ``configuration``, ``backend`` or ``table``; empty if nobody does.
        room: How the longest prompt compares with what the model takes.
    """

    role: str
    backend: str
    model: str
    place: str = ""
    version: str = ""
    credential: str = ""
    answers: bool | None = None
    latency_ms: int | None = None
    answered_by: str = ""
    counted: bool | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)
    error: str = ""
    hint: str = ""
    is_local: bool
    price: Price | None
    price_source: str
    room: PromptRoom | None = None
    fit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """Everything that was found.

    Attributes:
        repository: The repository; absent outside of one.
        config: The configuration; empty if none was named.
        notes: What the user should know of the configuration.
    """

    machine: Machine
    repository: Found | None
    config: str
    roles: tuple[RoleHealth, ...]
    prices_of: str
    contexts_of: str
    notes: tuple[str, ...]
    exit_code: ExitCode


def doctor(
    context: Context,
    config: str | None,
    overrides: tuple[str, ...] = (),
    *,
    call: bool = True,
    caps: Caps | None = None,
    dry_run: bool = False,
) -> Checkup | Plan:
    """Return what this machine has and, with a configuration, how its models are.

    Args:
        config: A configuration file, or the name of a shipped one; None looks at the machine only.
        overrides: ``section.key=value``; later ones win.
        call: Whether each model that is not on this machine is asked one tiny question.
        caps: What these questions may cost; None for whatever they cost.
        dry_run: Whether to plan them and look at nothing.

    Returns:
        What was found; for a dry run the plan.
    """
    setup = set_up(load_config(context, config, overrides)) if config is not None else None
    roles: tuple[RoleHealth, ...] = ()
    plan = _plan(setup, caps or Caps(), call=call)
    if dry_run:
        return plan
    _check_caps(plan, caps or Caps())
    if setup is not None:
        skill = first_skill(context, setup.config, setup.task.environment)
        roles = asyncio.run(_examined(setup, skill, call=call))
    return Checkup(
        machine=_machine(context),
        repository=_repository(context),
        config=config or "",
        roles=roles,
        prices_of=price_table().date.isoformat(),
        contexts_of=context_table().date.isoformat(),
        notes=setup.config.notes if setup is not None else (),
        exit_code=ExitCode.SERVICE if any(role.error for role in roles) else ExitCode.OK,
    )


def _plan(setup: Setup | None, caps: Caps, *, call: bool) -> Plan:
    """Return the plan of the questions: one for each model that is not on this machine."""
    remote = {
        role: route
        for role, route in (setup.routes if setup is not None and call else {}).items()
        if route.backend.info.needs_network
    }
    tokens = (tokens_of(QUESTION[0].text), 1)
    rows = [row_of(route, role, "check-up", (1, Bound.EXACTLY), tokens, seconds=None) for role, route in remote.items()]
    total = total_of(rows)
    facts = {"config": setup.config.name} if setup is not None else {}
    return Plan(command="doctor", facts=facts, stages=tuple(rows), total=total, notes=cap_notes(caps, total))


def _check_caps(plan: Plan, caps: Caps) -> None:
    total = plan.total
    if caps.max_usd is not None and total.unpriced:
        raise ConfigError(
            f"max_usd cannot be kept: the price of {', '.join(total.unpriced)} is not known",
            hint="give the model's price in the configuration, or cap max_tokens or max_calls instead",
        )
    cost = Cost(calls=total.calls, tokens_in=total.tokens_in, tokens_out=total.tokens_out, usd=total.usd or 0.0)
    if cap := caps.exceeded_by(cost):
        raise BudgetError(f"the check-up takes {plan.sentence}, which is over {cap}", hint="raise it, or add --no-call")


def _machine(context: Context) -> Machine:
    path = context.environ.get("PATH")
    programs = (
        Program(
            name=name,
            path=next(filter(None, (shutil.which(program, path=path) for program in names)), ""),
            purpose=purpose,
        )
        for name, names, purpose in _PROGRAMS
    )
    return Machine(
        python=platform.python_version(),
        system=platform.platform(terse=True),
        git=git_version(),
        sqlite=sqlite3.sqlite_version,
        programs=tuple(programs),
    )


def _repository(context: Context) -> Found | None:
    try:
        with open_workspace(context) as workspace:
            return Found(path=str(workspace.repo.common_dir), runs=len(runs(workspace.repo)))
    except RepositoryNotFoundError:
        return None


async def _examined(setup: Setup, skill: Skill, *, call: bool) -> tuple[RoleHealth, ...]:
    prompts = largest_prompts(setup.config.values.method, setup.task, skill)
    contexts = setup.config.values.model.context_window
    try:
        tasks = [_health(_start(setup, role), route, call=call) for role, route in setup.routes.items()]
        healths = await asyncio.gather(*tasks)
        return tuple([await _with_room(health, setup.routes[health.role], prompts, contexts) for health in healths])
    finally:
        for route in setup.routes.values():
            await route.backend.aclose()


def _start(setup: Setup, role: str) -> RoleHealth:
    """Return what is known of a role without looking."""
    route = setup.routes[role]
    source = ""
    if route.price is not None:
        has_own_price = find_price(route.model, declarations=route.backend.info.prices) != find_price(route.model)
        source = "backend" if has_own_price else "table"
    return RoleHealth(
        role=role,
        backend=route.backend_name,
        model=route.model,
        parameters={
            name: value
            for name, value in parameters_json(route.request(())).items()
            if name in _PARAMETERS and value not in (None, "")
        },
        is_local=not route.backend.info.needs_network,
        price=route.price,
        price_source="configuration" if route.model in setup.config.values.model.prices else source,
    )


async def _health(health: RoleHealth, route: Route, *, call: bool) -> RoleHealth:
    try:
        health = _seen(health, await look(route))
        if not call or health.is_local:
            return health
        loop = asyncio.get_running_loop()
        began = loop.time()
        limit = min(route.max_output_tokens, REPLY_TOKENS)
        reply = await route.attempt(replace(route, max_output_tokens=limit).request(QUESTION))
        return _answered(health, reply, loop.time() - began)
    except BackendError as error:
        return replace(health, answers=False if call else None, error=error.message, hint=error.hint)


def _seen(health: RoleHealth, probe: Probe | None) -> RoleHealth:
    if probe is None:
        return health
    return replace(health, place=probe.place, version=probe.version, credential=probe.detail)


def _answered(health: RoleHealth, reply: Reply, seconds: float) -> RoleHealth:
    is_counted = reply.counted and reply.usage.tokens_in > 0 and reply.usage.tokens_out > 0
    return replace(health, answers=True, latency_ms=round(1000 * seconds), answered_by=reply.model, counted=is_counted)


async def _with_room(health: RoleHealth, route: Route, prompts: dict[str, int], contexts: dict[str, int]) -> RoleHealth:
    if health.error or health.is_local:
        return health
    available = room(route, prompts[health.role], await context_of(route, contexts))
    return replace(health, room=available, fit=available.fit)
