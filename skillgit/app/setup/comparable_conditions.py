"""Under which conditions outcomes were measured, and what differs between two of them apart from the text of the skill.

Outcomes of two texts compare where everything else was the same: target model, judge, environment, items, and the
parameters that decide what models answer. The seed only chooses among draws of one distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from skillgit.app.recorded.run_record import ENVIRONMENT, start_document, started
from skillgit.app.setup.config.resolved import measuring_settings, read_document
from skillgit.app.setup.run_setup import Setup
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.conditions import Aspect, Difference
from skillgit.domain.evaluation import Split
from skillgit.domain.event import NOBODY
from skillgit.domain.event_kinds import EventKind
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
    files = read_evidence(workspace.repo, read_commit(workspace.repo, first.commit).evidence, (CONFIG,)) or {}
    parameters = None
    with suppress(KeyError, SkillgitError):
        parameters = measuring_settings(read_document(files[CONFIG], first.run))
    return Conditions(
        target=models.target,
        judge=models.judge,
        environment=run.environment,
        version=start.environment,
        items=item_queries.item_sets(workspace.index, row.run, split.value),
        seed=getattr(start.evaluation, "seed", None),
        parameters=parameters,
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
    """Return what differs, the text aside, what matters most first; what one side does not know is not compared."""
    pairs: list[tuple[Aspect, str, str]] = []
    if a.target != b.target:
        pairs.append((Aspect.TARGET, a.target, b.target))
    # a judge without the digest of its parameters is compared by its name
    has_digests = "@" in a.judge and "@" in b.judge
    if a.judge != b.judge and (has_digests or a.judge.partition("@")[0] != b.judge.partition("@")[0]):
        pairs.append((Aspect.JUDGE, a.judge or "none", b.judge or "none"))
    for role in _DECIDING:
        then, now = a.servers.get(role), b.servers.get(role)
        # another name is said already
        if then is not None and now is not None and then != now and _names(then) == _names(now):
            pairs.append((Aspect.SERVER, _place(then, now), _place(now, then)))
    if a.environment != b.environment:
        pairs.append((Aspect.ENVIRONMENT, a.environment, b.environment))
    elif a.version != b.version:
        pairs.append((Aspect.ENVIRONMENT, f"{a.environment} {a.version}", f"{b.environment} {b.version}"))
    if a.items and b.items and a.items != b.items:
        pairs.append((Aspect.ITEMS, f"set {' '.join(sorted(a.items))}", f"set {' '.join(sorted(b.items))}"))
    if a.parameters is not None and b.parameters is not None:
        for key in sorted(a.parameters.keys() | b.parameters.keys()):
            first, second = (
                "none" if value is None or value == "" else str(value)
                for value in (a.parameters.get(key), b.parameters.get(key))
            )
            # two environments have options of their own
            is_own = a.environment != b.environment and key.startswith("env.")
            if first != second and not is_own:
                pairs.append((Aspect.PARAMETERS, f"{key}={first}", f"{key}={second}"))
    if a.seed is not None and b.seed is not None and a.seed != b.seed:
        pairs.append((Aspect.SEED, str(a.seed), str(b.seed)))
    return tuple(Difference(aspect=aspect, a=then, b=now) for aspect, then, now in pairs)


def _names(model: ServedModel) -> tuple[str, str]:
    return model.backend, model.model


def _place(model: ServedModel, counterpart: ServedModel) -> str:
    """Return where ``model`` is, and where ``counterpart`` is at the same place, what its server says of it."""
    if model.address != counterpart.address:
        return model.place or f"{model.backend} without an address"
    facts = dict(model.facts)
    words = ", ".join(f"{name} {facts.get(name, 'not given')}" for name in differing_facts(model, counterpart))
    return f"{model.place} with {words}"


def environment_change(repo: Repo, start: Recorded, setup: Setup) -> str:
    """Return what keeps outcomes of ``setup`` from being compared with a run's, in a sentence; empty if nothing."""
    # Another version of an installed package is not a change where the environment's own digest is the same: that is
    # its author's word for it.
    event, task = start.event, setup.task
    if event.kind is not EventKind.RUN_STARTED or event.environment == task.digest:
        return ""
    document = start_document(repo, start.evidence, ENVIRONMENT)
    plugin, now = document.get("plugin"), task.source
    if isinstance(plugin, dict) and now is not None:
        if plugin.get("code") != now.code:
            return f"the source of environment {task.environment.info.name} has changed since run {event.run} began"
        if not now.code and plugin.get("name") == now.name and document.get("own") == own_digest(task.environment):
            return ""
    return f"the environment is not the one that run {event.run} was trained with"
