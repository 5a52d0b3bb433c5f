"""``skillgit doctor``: what this machine has, and whether the models of a configuration can be reached."""

from __future__ import annotations

import asyncio
import platform
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from time import monotonic

from skillgit.app.setup.basis import name_warnings
from skillgit.app.setup.estimate import largest_prompts
from skillgit.app.setup.models import PromptRoom, answering, context_of, look, room
from skillgit.app.setup.plan import Bound, Plan, cap_notes, total_of
from skillgit.app.setup.planner import row_of, tokens_of
from skillgit.app.setup.preflight import NAME_JUDGE, lacks_judge
from skillgit.app.setup.run_setup import Setup, set_up
from skillgit.app.setup.servers import looked_at
from skillgit.app.setup.skill_tasks import load_for_skill
from skillgit.app.train.starting_point import first_skill
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.client import Calls
from skillgit.calls.ledger import Ledger
from skillgit.calls.pricing import context_table, find_price, price_table
from skillgit.calls.retries_and_limits import CallPolicy
from skillgit.calls.route import QUESTION, Route
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.finding import UNREACHABLE, Finding, exit_code
from skillgit.domain.skill import Skill
from skillgit.errors import BudgetError, ConfigError, ExitCode, RepositoryNotFoundError, ServiceError
from skillgit.plugin.backend import Price
from skillgit.plugin.call_records import parameters_json
from skillgit.store.git_binary import git_version
from skillgit.store.history_reader import runs

STAGE = "check-up"
REPLY_TOKENS = 2048  # tokens that the answer to the question may have: few, and enough for a model that thinks first
_PARAMETERS = frozenset({"temperature", "reasoning_effort", "top_p", "seed", "stop"})
_PROGRAMS = (
    ("bubblewrap", ("bwrap",), "keeps commands of agents and programs of environments apart"),
    ("libreoffice", ("soffice", "libreoffice"), "computes spreadsheets"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    name: str
    path: str  # where it is; empty if it is not installed
    purpose: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    python: str
    system: str
    git: str  # the version of git; empty if there is none
    sqlite: str
    programs: tuple[Program, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    path: str
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleHealth:
    role: str
    backend: str
    model: str
    place: str = ""  # where calls go: a server or a program; empty if the backend does not tell
    model_backend: str = ""  # the backend that answers the questions of an agent; empty for all that ask by themselves
    model_place: str = ""  # where that one's calls go
    version: str = ""
    credential: str = ""  # as whom calls are made; never a secret
    answers: bool | None = None  # whether the model answered; absent if it was not asked
    latency_ms: int | None = None
    answered_by: str = ""  # the name that the provider gives the model that answered
    counted: bool | None = None  # whether the provider counted the tokens; absent if nothing was answered
    parameters: Mapping[str, object] = field(default_factory=dict)
    fault: Finding | None = None  # why the model cannot be called; None if nothing speaks against it
    is_local: bool  # whether the model is on this machine, so that there is nothing to ask
    price: Price | None  # what a million tokens cost; absent if that is not known
    price_source: str  # who says so: ``configuration``, ``backend`` or ``table``; empty if none does
    room: PromptRoom | None = None  # how the longest prompt compares with what the model takes
    fit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    machine: Machine
    repository: Found | None  # the repository; absent outside of one
    config: str  # the configuration; empty if none was named
    roles: tuple[RoleHealth, ...]
    prices_of: str
    contexts_of: str
    notes: tuple[str, ...]  # what the user should know of the configuration

    @property
    def findings(self) -> tuple[Finding, ...]:
        return tuple(role.fault for role in self.roles if role.fault is not None)

    @property
    def exit_code(self) -> ExitCode:
        return exit_code(self.findings)


def doctor(
    workspace: Workspace,
    config: str | None,
    overrides: tuple[str, ...] = (),
    *,
    call: bool = True,
    caps: Caps | None = None,
    dry_run: bool = False,
) -> Checkup | Plan:
    """Return what this machine has and, with a configuration, how its models are; for a dry run the plan of that.

    ``config`` is a configuration file, or the name of a shipped one; None looks at the machine only. ``overrides`` are
    ``section.key=value``; later ones win. Each model that is not on this machine is asked one tiny question if ``call``
    says so; ``caps`` are what these may cost.
    """
    setup = set_up(load_for_skill(workspace, config, overrides)) if config is not None else None
    if setup is not None:
        setup.strategy.check(setup.config.values.method, setup.routes["optimizer"])
        if not dry_run:
            setup = replace(setup, routes=looked_at(setup.routes))
    plan = _plan(setup, caps or Caps(), call=call)
    if dry_run:
        return plan
    _check_caps(plan, caps or Caps())
    roles: tuple[RoleHealth, ...] = ()
    notes: tuple[str, ...] = ()
    if setup is not None:
        skill = first_skill(workspace, setup.config, setup.task.environment)
        with Ledger.in_memory() as ledger:
            door = _door(workspace.context, setup, ledger, caps or Caps())
            roles = asyncio.run(_examined(setup, skill, door, call=call))
        notes = tuple(dict.fromkeys((*setup.config.notes, *name_warnings(setup))))
    path = workspace.context.environ.get("PATH")
    programs = [
        Program(name=name, path=next(filter(None, (shutil.which(word, path=path) for word in words)), ""), purpose=text)
        for name, words, text in _PROGRAMS
    ]
    machine = Machine(
        python=platform.python_version(),
        system=platform.platform(terse=True),
        git=git_version(),
        sqlite=sqlite3.sqlite_version,
        programs=tuple(programs),
    )
    repository = None
    with suppress(RepositoryNotFoundError):
        repository = Found(path=str(workspace.repo.common_dir), runs=len(runs(workspace.repo)))
    return Checkup(
        machine=machine,
        repository=repository,
        config=config or "",
        roles=roles,
        prices_of=price_table().date.isoformat(),
        contexts_of=context_table().date.isoformat(),
        notes=notes,
    )


def _door(context: Context, setup: Setup, ledger: Ledger, caps: Caps) -> Calls:
    """Return the door to the models that are not on this machine."""
    door = Calls(
        routes={role: _shortened(route) for role, route in setup.routes.items() if _is_remote(route)},
        ledger=ledger,
        caps=caps,
        sleep=asyncio.sleep,
        random=Random(context.entropy(8)),  # noqa: S311 - jitter of retries
        policy=CallPolicy(attempts=1),
        remark=context.remark,
        environ=context.environ,
    )
    door.enter(f"doctor-{context.entropy(8).hex()}/call", Cost())
    return door


def _is_remote(route: Route) -> bool:
    return answering(route).backend.info.needs_network


def _shortened(route: Route) -> Route:
    return replace(route, max_output_tokens=min(route.max_output_tokens, REPLY_TOKENS))


def _plan(setup: Setup | None, caps: Caps, *, call: bool) -> Plan:
    routes = setup.routes if setup is not None and call else {}
    remote = {role: answering(route) for role, route in routes.items() if _is_remote(route)}
    tokens = (tokens_of(QUESTION[0].text), 1)
    rows = [row_of(route, role, STAGE, (1, Bound.EXACTLY), tokens, seconds=None) for role, route in remote.items()]
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


async def _examined(setup: Setup, skill: Skill, door: Calls, *, call: bool) -> tuple[RoleHealth, ...]:
    prompts = largest_prompts(setup.config.values.method, setup.task, skill)
    contexts = setup.config.values.model.context_window
    try:
        tasks = [_health(_start(setup, role), route, door, call=call) for role, route in setup.routes.items()]
        healths = await asyncio.gather(*tasks)
        if problem := lacks_judge(setup):
            *healths, judge = healths  # its role is the last one
            healths = [*healths, replace(judge, answers=None, fault=_fault("judge", problem, NAME_JUDGE))]
        for number, health in enumerate(healths):
            if health.fault is None and not health.is_local:
                route = setup.routes[health.role]
                available = room(route, prompts[health.role], await context_of(route, contexts))
                healths[number] = replace(health, room=available, fit=available.fit)
        return tuple(healths)
    finally:
        await door.aclose()
        for route in setup.routes.values():
            await route.backend.aclose()


def _start(setup: Setup, role: str) -> RoleHealth:
    agent = setup.routes[role]
    route = answering(agent)
    source = ""
    if route.price is not None:
        has_own_price = find_price(route.model, declarations=route.backend.info.prices) != find_price(route.model)
        source = "backend" if has_own_price else "table"
    return RoleHealth(
        role=role,
        backend=agent.backend_name,
        model=route.model,
        model_backend="" if agent.inner is None else agent.inner.backend_name,
        parameters={
            name: value
            for name, value in parameters_json(route.request(())).items()
            if name in _PARAMETERS and value not in (None, "")
        },
        is_local=not route.backend.info.needs_network,
        price=route.price,
        price_source="configuration" if route.model in setup.config.values.model.prices else source,
    )


async def _health(health: RoleHealth, route: Route, door: Calls, *, call: bool) -> RoleHealth:
    try:
        if (probe := await look(route)) is not None:
            health = replace(health, place=probe.place, version=probe.version, credential=probe.detail)
        if route.inner is not None and (probe := await look(route.inner)) is not None:
            health = replace(health, model_place=probe.place, credential=probe.detail)
        if not call or health.is_local:
            return health
        began = monotonic()
        reply = await door.call(health.role, STAGE, QUESTION, draw=(health.role,))
        health = replace(health, answers=True, latency_ms=round(1000 * (monotonic() - began)))
        if route.inner is not None:  # what an agent says of its model and its tokens is not looked at
            return health
        is_counted = reply.counted and reply.usage.tokens_in > 0 and reply.usage.tokens_out > 0
        return replace(health, answered_by=reply.model, counted=is_counted)
    except ServiceError as error:
        fault = _fault(health.role, error.message, error.hint)
        return replace(health, answers=False if call else None, fault=fault)


def _fault(role: str, sentence: str, hint: str) -> Finding:
    return Finding(rule=UNREACHABLE, path=role, sentence=sentence, hint=hint)
