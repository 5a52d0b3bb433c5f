"""Under which conditions outcomes were measured, and what differs between two of them apart from the text of the skill.

Outcomes of two texts compare where everything else was the same: target model, judge, environment, items, and the
parameters that decide what models answer. The seed only chooses among draws of one distribution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.app.recorded.run_record import ENVIRONMENT, start_document, started
from skillgit.app.setup.config.resolved import measuring_settings, read_document
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.conditions import Aspect, Difference
from skillgit.domain.evaluation import Split
from skillgit.domain.event import NOBODY, RunStarted
from skillgit.domain.served_model import ServedModel, differing_facts
from skillgit.errors import SkillgitError
from skillgit.index import item_queries, queries
from skillgit.index.rows import LogRow
from skillgit.plugin.environment import asks_judge
from skillgit.plugin.plugin_identity import own_digest
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import read_evidence
from skillgit.store.history_reader import read_commit
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from skillgit.app.setup.run_setup import Setup

CONFIG = "config.json"
_DECIDING = ("target", "judge")  # roles whose models decide outcomes


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What decides outcomes, apart from the text."""

    target: str  # the model that works on the items, as `backend/model`
    judge: str  # the model that scores, perhaps with `@` and the digest of its parameters; empty where none is asked
    environment: str
    version: str  # the digest of the environment
    items: frozenset[str]  # digests of the item sets that were measured; empty where that is not known
    seed: int | None  # the seed; None where that is not known
    parameters: Mapping[str, object] | None  # settings that may change answers, by key; None if unknown here
    # who answers the roles that decide outcomes, by role; without those of which no server is known
    servers: Mapping[str, ServedModel] = field(default_factory=dict)


def of_event(workspace: Workspace, row: LogRow, split: Split) -> Conditions | None:
    """Return the conditions under which the event in ``row`` was measured; None where its run's start is not here."""
    start = started(workspace, row.run)
    first = queries.row_of_version(workspace.index, row.run, 0)
    run = queries.run_row(workspace.index, row.run, {})
    if start is None or first is None or run is None:
        return None
    models = getattr(read_commit(workspace.repo, row.commit).event, "models", NOBODY)
    models = start.models if models == NOBODY else models
    return Conditions(
        target=models.target,
        judge=models.judge,
        environment=run.environment,
        version=start.environment,
        items=item_queries.item_sets(workspace.index, row.run, split.value),
        seed=getattr(start.evaluation, "seed", None),
        parameters=_recorded_parameters(workspace, first),
        servers={model.role: model for model in start.served if model.role in _DECIDING},
    )


def of_setup(setup: Setup, split: Split) -> Conditions:
    """Return the conditions under which ``setup`` measures."""
    environment = setup.task.environment
    return Conditions(
        target=setup.routes["target"].name,
        judge=setup.routes["judge"].name if asks_judge(environment) else "",
        environment=environment.info.name,
        version=setup.task.digest,
        items=frozenset({setup.task.item_set(split)}),
        seed=setup.config.values.train.seed,
        parameters=measuring_settings(setup.config.document),
        servers={role: route.served for role, route in setup.routes.items() if role in _DECIDING},
    )


def differences(a: Conditions, b: Conditions) -> tuple[Difference, ...]:
    """Return what differs, the text aside, what matters most first; what one side does not know is not a difference."""
    return tuple(_differences(a, b))


def _differences(a: Conditions, b: Conditions) -> Iterator[Difference]:
    if a.target != b.target:
        yield Difference(aspect=Aspect.TARGET, a=a.target, b=b.target)
    if not _same_judge(a.judge, b.judge):
        yield Difference(aspect=Aspect.JUDGE, a=a.judge or "none", b=b.judge or "none")
    for role in _DECIDING:
        then, now = a.servers.get(role), b.servers.get(role)
        # another name is said already
        if then is not None and now is not None and then != now and _names(then) == _names(now):
            yield Difference(aspect=Aspect.SERVER, a=_place(then, now), b=_place(now, then))
    if (a.environment, a.version) != (b.environment, b.version):
        same = a.environment == b.environment
        names = (f"{side.environment} {side.version}" if same else side.environment for side in (a, b))
        yield Difference(aspect=Aspect.ENVIRONMENT, a=next(names), b=next(names))
    if a.items and b.items and a.items != b.items:
        sets = (f"set {' '.join(sorted(side.items))}" for side in (a, b))
        yield Difference(aspect=Aspect.ITEMS, a=next(sets), b=next(sets))
    if a.parameters is not None and b.parameters is not None:
        own = "" if a.environment == b.environment else "env."  # two environments have options of their own
        first, second = (
            {key: value for key, value in side.items() if not own or not key.startswith(own)}
            for side in (a.parameters, b.parameters)
        )
        yield from _other_parameters(first, second)
    if a.seed is not None and b.seed is not None and a.seed != b.seed:
        yield Difference(aspect=Aspect.SEED, a=str(a.seed), b=str(b.seed))


def _names(model: ServedModel) -> tuple[str, str]:
    return model.backend, model.model


def _place(model: ServedModel, counterpart: ServedModel) -> str:
    """Return where ``model`` is, and where ``counterpart`` is at the same place, what its server says of it."""
    if model.address != counterpart.address:
        return model.place or f"{model.backend} without an address"
    facts = dict(model.facts)
    words = ", ".join(f"{name} {facts.get(name, 'not given')}" for name in differing_facts(model, counterpart))
    return f"{model.place} with {words}"


def _same_judge(a: str, b: str) -> bool:
    """Say whether two judges are the same; one without the digest of its parameters is compared by its name."""
    if "@" in a and "@" in b:
        return a == b
    return a.partition("@")[0] == b.partition("@")[0]


def _other_parameters(a: Mapping[str, object], b: Mapping[str, object]) -> Iterator[Difference]:
    for key in sorted(a.keys() | b.keys()):
        if _said(a.get(key)) != _said(b.get(key)):
            values = (f"{key}={_said(side.get(key))}" for side in (a, b))
            yield Difference(aspect=Aspect.PARAMETERS, a=next(values), b=next(values))


def _said(value: object) -> str:
    return "none" if value is None or value == "" else str(value)


def _recorded_parameters(workspace: Workspace, first: LogRow) -> Mapping[str, object] | None:
    tree = read_commit(workspace.repo, first.commit).evidence
    files = read_evidence(workspace.repo, tree, (CONFIG,)) or {}
    try:
        return measuring_settings(read_document(files[CONFIG], first.run))
    except (KeyError, SkillgitError):
        return None


def environment_change(repo: Repo, start: Recorded, setup: Setup) -> str:
    """Return what keeps outcomes of ``setup`` from being compared with a run's, in a sentence; empty if nothing."""
    # Another version of an installed package is not a change where the environment's own digest is the same: that is
    # its author's word for it.
    event, task = start.event, setup.task
    if not isinstance(event, RunStarted) or event.environment == task.digest:
        return ""
    document = start_document(repo, start.evidence, ENVIRONMENT)
    plugin, now = document.get("plugin"), task.source
    if isinstance(plugin, dict) and now is not None:
        if plugin.get("code") != now.code:
            return f"the source of environment {task.environment.info.name} has changed since run {event.run} began"
        if not now.code and plugin.get("name") == now.name and document.get("own") == own_digest(task.environment):
            return ""
    return f"the environment is not the one that run {event.run} was trained with"
