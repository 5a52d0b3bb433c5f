"""From a resolved or recorded configuration to the environment, items, models and seed skill of a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from shlex import quote

from skillgit.app.setup.config.resolved import ResolvedConfig
from skillgit.app.setup.models import ESTIMATED, find_routes
from skillgit.app.setup.skill_tasks import TASKS_ENVIRONMENT
from skillgit.app.workspace.skills_here import ADD, TASKS
from skillgit.calls.client import Route
from skillgit.domain.evaluation import Split
from skillgit.domain.gate_decision import PINNED_TYPE, GateRule, NoRegression
from skillgit.domain.ids import short_digest
from skillgit.domain.served_model import Provenance
from skillgit.domain.trajectory import Item
from skillgit.engine.evidence_files import json_file
from skillgit.engine.method_settings import GateSettings
from skillgit.engine.prompt_sections import FILES, prompts_digest
from skillgit.engine.search import Task, setup_digest
from skillgit.engine.strategy import Strategy, strategy_of
from skillgit.errors import ConfigError
from skillgit.plugin.backend import Price
from skillgit.plugin.environment import Environment, asks_judge, asks_target_once, check_machine, is_processor_bound
from skillgit.plugin.plugin_identity import own_digest
from skillgit.plugin.registry import Loaded, find_environment, find_strategy, policy_code
from skillgit.plugin.skill_library import InstallsSkills


@dataclass(frozen=True, kw_only=True)  # no slots: the strategy is loaded when it is asked for
class Setup:
    config: ResolvedConfig
    task: Task
    routes: Mapping[str, Route]  # role to the way to its model
    pins: frozenset[str] = frozenset()  # ids of the items that may not score lower
    run: str = ""  # the run that lent its configuration; empty where another one was named
    reason: str = ""  # why it is this run; empty where the command works on the run itself

    @cached_property
    def strategy(self) -> Strategy:
        """How the run finds candidates."""
        return strategy_of(self._strategy.cls, self.config.values.train.strategy)

    @property
    def strategy_code(self) -> str:
        """The digest of the strategy's code where that comes from files of someone's own; else empty."""
        return self._strategy.source.code

    @cached_property
    def _strategy(self) -> Loaded[type]:
        return find_strategy(self.config.values.train.strategy, self.config.root)

    @property
    def config_digest(self) -> str:
        """Identify what the run does: configuration, optimizer's prompts, pinned items, and a gate policy's code.

        The code of a strategy is recorded separately: a broken one can be repaired, and the run continues with it.
        """
        pins = [sorted(self.pins)] if self.pins else []
        files = self.config.values.optimizer.trainable
        prompts = prompts_digest(*([FILES] if files.beyond_document else ()), *self.strategy.prompts)
        policy = policy_code(self.config.values.gate.policy)
        return short_digest([self.config.digest, prompts, *pins, *filter(None, [policy])])

    @property
    def splits_digest(self) -> str:
        return short_digest({split.value: self.task.item_set(split) for split in Split})

    @property
    def digest(self) -> str:
        """Identify everything that decides an outcome, apart from item, skill and draw."""
        return setup_digest(self.task, lambda role: self.routes[role].fingerprint)

    @property
    def digest_by_name(self) -> str:
        """The digest as it was before servers were looked at: what it identifies may have been asked of any server."""
        return setup_digest(self.task, lambda role: self.routes[role].by_name.fingerprint)

    def measured(self, digest: str) -> Provenance:
        """Say whether what bears the digest of a setup was measured by this one."""
        if digest == self.digest:
            return Provenance.SAME
        return Provenance.UNKNOWN if digest in {"", self.digest_by_name} else Provenance.OTHER

    @property
    def prices(self) -> dict[str, Price | None]:
        return {role: route.price for role, route in self.routes.items()}

    @property
    def rule(self) -> GateRule:
        """How the gate compares."""
        return self.config.values.method.rule(self.pins)

    @property
    def asked_roles(self) -> tuple[str, ...]:
        """The roles whose models are asked before a run: those that are not on this machine."""
        if not self.config.values.train.preflight:
            return ()
        return tuple(role for role, route in self.routes.items() if route.backend.info.needs_network)

    def evidence(self, *, fresh: bool = False) -> dict[str, bytes]:
        """Return the files behind the digests of a run's first event, which asks again if it is ``fresh``."""
        splits = {
            split.value: [{"id": item.id, "digest": item.digest} for item in items]
            for split, items in self.task.items.items()
        }
        task, info = self.task, self.task.environment.info
        environment = {
            "name": info.name,
            "digest": task.digest,
            "own": own_digest(task.environment),
            "plugin": asdict(task.source) if task.source is not None else None,
            "scorer": info.scorer,
            "setup": self.digest,
            **({"strategy": self.strategy_code} if self.strategy_code else {}),
            **({"fresh": True} if fresh else {}),
        }
        return {
            "config.json": json_file(self.config.document),
            "splits.json": json_file(splits),
            "environment.json": json_file(environment),
            **({"pinned.json": json_file(sorted(self.pins))} if self.pins else {}),
        }


def set_up(config: ResolvedConfig, *, gates: bool = True) -> Setup:
    """Load the environment, its items and the backends that ``config`` names.

    Without ``gates`` nothing is pinned: what only measures has no use for the settings of the gate.
    """
    plugin = find_environment(config.values.env.name, config.root)
    environment = plugin.cls(config.options, config.root)
    check_machine(environment)
    evaluation = config.values.evaluation
    limits = {Split.TRAIN: 0, Split.SELECTION: evaluation.sel_env_num, Split.TEST: evaluation.test_env_num}
    items: dict[Split, tuple[Item, ...]] = {
        split: tuple(environment.items(split))[: limit or None] for split, limit in limits.items()
    }
    expected_size, there = config.values.train.train_size, len(items[Split.TRAIN])
    if expected_size not in {0, there}:
        problem = f"train.train_size is {expected_size}, but there are {there} train items"
        raise ConfigError(problem, hint="set it to 0 to take the items as they are")
    types = {item.id: item.task_type for item in items[Split.SELECTION]}
    pins = _pinned(config.values.gate, types) if gates else frozenset[str]()
    task = Task(environment=environment, items=items, source=plugin.source)
    if config.values.model.target_batch and not asks_target_once(environment, items.values()):
        problem = (
            f"model.target_batch is true, and {environment.info.name} may ask the target several times for an item"
        )
        hint = "each answer would wait for a batch of its own: -o model.target_batch=false"
        raise ConfigError(problem, hint=hint)
    roles = ("target", "optimizer", *(("judge",) if asks_judge(environment) else ()))
    if config.values.calls.executor == "process" and not is_processor_bound(environment):
        note = f"{environment.info.name} does not say that it is processor-bound: worker processes may gain nothing"
        config = replace(config, notes=(*config.notes, note))
    routes = find_routes(config, roles)
    target = routes["target"].backend.info
    if isinstance(environment, InstallsSkills) and environment.installs_skills and not target.installs_skills:
        problem = f"{environment.info.name} wants an agent that loads skills as target, and {target.name} is none"
        raise ConfigError(problem, hint="set model.target_backend to claude_code_exec, codex_exec or another agent")
    if target.estimates_tokens and config.values.method.rule().counts_tokens:
        config = replace(config, notes=(*config.notes, ESTIMATED.format(routes["target"].name)))
    return Setup(config=config, task=task, routes=routes, pins=pins)


def _pinned(gate: GateSettings, items: Mapping[str, str]) -> frozenset[str]:
    """Return the pinned ones of ``items``, id to task type: those of a type, or those that a file names.

    Blank lines of the file and what follows a ``#`` are passed over.
    """
    if gate.no_regression is not NoRegression.PINNED:
        return frozenset()
    if gate.pinned.startswith(PINNED_TYPE):
        name = gate.pinned.removeprefix(PINNED_TYPE).strip()
        pins = frozenset(item for item, task_type in items.items() if task_type == name)
        if not pins:
            raise ConfigError(
                f"gate.pinned names the task type '{name}', and no selection item is of it",
                hint=f"the selection items are of the types {', '.join(sorted(set(items.values())))}",
            )
        return pins
    try:
        lines = Path(gate.pinned).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise ConfigError(f"gate.pinned cannot be read: {gate.pinned}", hint="check the path and its UTF-8") from error
    names = [line.partition("#")[0].strip() for line in lines]
    strangers = [item for item in names if item and item not in items]
    if strangers:
        problem = f"gate.pinned names '{strangers[0]}', which is not a selection item"
        raise ConfigError(problem, hint="one id on a line, of items of the selection split")
    return frozenset(item for item in names if item)


def refuse_samples(config: ResolvedConfig, environment: Environment, skill: str, work: str) -> None:
    """Refuse to do ``work`` with a skill of the user's on the samples of an environment for data of the user's."""
    options, info = config.options, environment.info
    is_sample = "data_path" in options and not options["data_path"] and not options.get("split_dir")
    if is_sample and info.public is None and skill != environment.seed_skill().name:
        add = ADD.format(quote(f"{TASKS}/{skill}.jsonl"))
        begin = f"{add} begins a file of its tasks; or " if info.name == TASKS_ENVIRONMENT else ""
        raise ConfigError(
            f"{info.name} has no data, and {skill} would be {work} on the samples that come with it",
            hint=f"{begin}name your own: -o env.data_path=FILE",
        )
