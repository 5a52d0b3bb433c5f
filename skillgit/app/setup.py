"""From a resolved configuration to what a run needs: environment, items, models, seed skill."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillgit.app.routes import find_routes
from skillgit.domain.evaluation import Split
from skillgit.domain.gate import NoRegression
from skillgit.domain.ids import short_digest
from skillgit.engine.artifacts import json_file
from skillgit.engine.prompts import FILES, prompts_digest
from skillgit.engine.session import Task, setup_digest
from skillgit.errors import ConfigError
from skillgit.plugin.environment import asks_judge
from skillgit.plugin.registry import find_environment, policy_code

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from skillgit.app.config import ResolvedConfig
    from skillgit.calls.door import Route
    from skillgit.domain.trajectory import Item
    from skillgit.engine.settings import GateSettings
    from skillgit.plugin.backend import Price


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a configuration stands for.

    Attributes:
        config: The configuration.
        task: The environment and its items.
        routes: Role to the way to its model.
        pinned: Ids of the items that may not score lower.
    """

    config: ResolvedConfig
    task: Task
    routes: Mapping[str, Route]
    pinned: frozenset[str] = frozenset()

    @property
    def config_digest(self) -> str:
        """Identify what the run does: configuration, optimizer's prompts, pinned items, a policy of yours."""
        pinned = [sorted(self.pinned)] if self.pinned else []
        files = self.config.values.optimizer.trainable
        prompts = prompts_digest(FILES) if files.beyond_document else prompts_digest()
        policy = policy_code(self.config.values.gate.policy)
        return short_digest([self.config.digest, prompts, *pinned, *filter(None, [policy])])

    @property
    def splits_digest(self) -> str:
        """Identify the items of all splits."""
        return short_digest({split.value: self.task.item_set(split) for split in Split})

    @property
    def digest(self) -> str:
        """Identify everything that decides an outcome besides item, skill and draw."""
        return setup_digest(self.task, lambda role: self.routes[role].fingerprint)

    @property
    def prices(self) -> dict[str, Price | None]:
        """Role to the price of its model, if that is known."""
        return {role: route.price for role, route in self.routes.items()}

    def evidence(self) -> dict[str, bytes]:
        """Return the files behind the digests of a run's first event."""
        splits = {
            split.value: [{"id": item.id, "digest": item.digest} for item in items]
            for split, items in self.task.items.items()
        }
        return {
            "config.json": json_file(self.config.document),
            "splits.json": json_file(splits),
            "environment.json": json_file(self._environment()),
            **({"pinned.json": json_file(sorted(self.pinned))} if self.pinned else {}),
        }

    def _environment(self) -> dict[str, object]:
        """Return what ``run_start`` compares setups by."""
        task, info = self.task, self.task.environment.info
        return {
            "name": info.name,
            "digest": task.digest,
            "own": task.environment.digest,
            "plugin": asdict(task.source) if task.source is not None else None,
            "scorer": info.scorer,
            "setup": self.digest,
        }


def set_up(config: ResolvedConfig) -> Setup:
    """Load the environment, its items and the backends that ``config`` names.

    Raises:
        ConfigError: The number of train items is not the one that the configuration promises.
        DataError: The items cannot be used.
        NotFoundError: There is no such environment or backend.
    """
    found = find_environment(config.values.env.name, config.root)
    environment = found.cls(config.options, config.root)
    evaluation = config.values.evaluation
    limits = {Split.TRAIN: 0, Split.SELECTION: evaluation.sel_env_num, Split.TEST: evaluation.test_env_num}
    items: dict[Split, tuple[Item, ...]] = {
        split: tuple(environment.items(split))[: limit or None] for split, limit in limits.items()
    }
    promised, there = config.values.train.train_size, len(items[Split.TRAIN])
    if promised not in {0, there}:
        raise ConfigError(
            f"train.train_size is {promised}, but there are {there} train items",
            hint="set it to 0 to take the items as they are",
        )
    pinned = _pinned(config.values.gate, {item.id for item in items[Split.SELECTION]})
    task = Task(environment=environment, items=items, source=found.source)
    roles = ("target", "optimizer", *(("judge",) if asks_judge(environment) else ()))
    return Setup(config=config, task=task, routes=find_routes(config, roles), pinned=pinned)


def _pinned(gate: GateSettings, known: AbstractSet[str]) -> frozenset[str]:
    """Return the ids in the file of pinned items; blank lines and what follows a ``#`` are passed over.

    Raises:
        ConfigError: The file cannot be read, or names an item that is not in the selection split.
    """
    if gate.no_regression is not NoRegression.PINNED:
        return frozenset()
    try:
        lines = Path(gate.pinned).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        raise ConfigError(f"gate.pinned cannot be read: {gate.pinned}", hint="check the path and its UTF-8") from error
    found = [line.partition("#")[0].strip() for line in lines]
    strangers = [item for item in found if item and item not in known]
    if strangers:
        raise ConfigError(
            f"gate.pinned names '{strangers[0]}', which is no selection item",
            hint="one id on a line, of items of the selection split",
        )
    return frozenset(item for item in found if item)
