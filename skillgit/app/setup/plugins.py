"""``skillgit plugins``, and ``envs``, ``backends`` and ``strategies`` of one kind each: what is installed."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from inspect import cleandoc
from pathlib import Path
from typing import Any, Generic, TypeVar

from skillgit.app.workspace.context import Context
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.errors import NotFoundError, SkillgitError, UsageError
from skillgit.plugin import registry
from skillgit.plugin.backend import BackendInfo
from skillgit.plugin.environment import EnvironmentInfo

Info = TypeVar("Info")


@dataclass(frozen=True, kw_only=True)  # no slots: Python 3.11 cannot make a frozen one through a generic alias
class PluginEntry(Generic[Info]):
    name: str
    reference: str
    info: Info | None  # what it says of itself; absent if it was not loaded
    error: str  # why it cannot be loaded; empty if it can, or was not tried


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategySetting:
    key: str
    default: str  # as it is written in a configuration
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StrategyInfo:
    summary: str
    description: str = ""
    keys: tuple[StrategySetting, ...] = ()  # the settings on which it depends


EnvironmentEntry = PluginEntry[EnvironmentInfo]
BackendEntry = PluginEntry[BackendInfo]
StrategyEntry = PluginEntry[StrategyInfo]


class PluginKind(StrEnum):
    ENVIRONMENT = "environment"
    BACKEND = "backend"
    STRATEGY = "strategy"


_GROUPS = {
    PluginKind.ENVIRONMENT: registry.ENVIRONMENTS,
    PluginKind.BACKEND: registry.BACKENDS,
    PluginKind.STRATEGY: registry.STRATEGIES,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledPlugin:
    """A plug-in of any kind, with what it says of itself."""

    kind: PluginKind
    name: str
    reference: str
    info: object | None
    error: str

    @classmethod
    def of(cls, kind: PluginKind, entry: PluginEntry[Any]) -> InstalledPlugin:
        return cls(kind=kind, name=entry.name, reference=entry.reference, info=entry.info, error=entry.error)


def every_plugin(context: Context) -> tuple[InstalledPlugin, ...]:
    """Return all that is installed, kind by kind and by name."""
    entries: dict[PluginKind, tuple[PluginEntry[Any], ...]] = {
        PluginKind.ENVIRONMENT: environments(context),
        PluginKind.BACKEND: backends(context),
        PluginKind.STRATEGY: strategies(),
    }
    return tuple(InstalledPlugin.of(kind, entry) for kind, group in entries.items() for entry in group)


def kinds_of(context: Context, name: str) -> tuple[PluginKind, ...]:
    """Return of which kinds there is a plug-in called ``name``, or at ``path/to/file.py:Class``."""
    if ".py:" in name:
        cls = registry.load_backend(name, context.directory)  # it loads whatever class is there
        marks = {PluginKind.BACKEND: "complete", PluginKind.STRATEGY: "propose"}
        kind = next((kind for kind, mark in marks.items() if hasattr(cls, mark)), PluginKind.ENVIRONMENT)
        return (kind,)
    names = {kind: [plugin.name for plugin in registry.installed(group)] for kind, group in _GROUPS.items()}
    kinds = tuple(kind for kind, group in names.items() if name in group)
    if not kinds:
        every = [known for group in names.values() for known in group]
        hint = did_you_mean(name, every, otherwise="skillgit plugins lists all that is installed")
        raise NotFoundError(f"there is no plug-in '{name}'", hint=hint)
    return kinds


def environments(context: Context, *, details: bool = True) -> tuple[EnvironmentEntry, ...]:
    """Return the installed environments by name, with ``details`` what each says of itself or why it cannot load."""
    return _listed(registry.ENVIRONMENTS, partial(environment, context), details=details)


def backends(context: Context, *, details: bool = True) -> tuple[BackendEntry, ...]:
    """Return the installed backends by name, with ``details`` what each says of itself or why it cannot load."""
    return _listed(registry.BACKENDS, partial(backend, context), details=details)


def environment(context: Context, name: str) -> EnvironmentEntry:
    """Return one environment, installed or at ``path/to/file.py:Class``, and load nothing else."""
    info = registry.load_environment(name, context.directory).info
    return EnvironmentEntry(name=name, reference=_reference(registry.ENVIRONMENTS, name), info=info, error="")


def backend(context: Context, name: str) -> BackendEntry:
    """Return one backend, installed or at ``path/to/file.py:Class``, and load nothing else."""
    info = registry.load_backend(name, context.directory).info
    return BackendEntry(name=name, reference=_reference(registry.BACKENDS, name), info=info, error="")


def strategies() -> tuple[StrategyEntry, ...]:
    """Return the installed strategies by name; their summaries are read from their source, which is not executed."""
    return tuple(
        StrategyEntry(
            name=plugin.name,
            reference=plugin.reference,
            info=StrategyInfo(summary=_written_summary(*plugin.reference.split(":")[:2])),
            error="",
        )
        for plugin in registry.installed(registry.STRATEGIES)
    )


def strategy(context: Context, name: str) -> StrategyEntry:
    """Return one strategy, installed or at ``path/to/file.py:Class``, and load nothing else."""
    from skillgit.engine.strategy import strategy_of  # noqa: PLC0415 - the list does without the engine

    cls = registry.find_strategy(name, context.directory).cls
    instance = strategy_of(cls, name)
    info = StrategyInfo(
        summary=instance.summary,
        description=cleandoc(cls.__doc__ or "").replace("``", ""),
        keys=tuple(map(_setting, instance.keys)),
    )
    return StrategyEntry(name=name, reference=_reference(registry.STRATEGIES, name), info=info, error="")


def _setting(key: str) -> StrategySetting:
    from skillgit.app.setup.config.schema import SECTIONS  # noqa: PLC0415 - as above

    section, _, name = key.partition(".")
    field = SECTIONS[section].model_fields.get(name) if section in SECTIONS else None
    if field is None:
        raise UsageError(f"there is no key {key}, which the strategy names", hint="mend the keys of the strategy")
    default = json.dumps(field.get_default(call_default_factory=True), ensure_ascii=False)
    return StrategySetting(key=key, default=default, meaning=field.description or "")


def _written_summary(module: str, name: str) -> str:
    """Return the ``summary`` of a class as its source states it; empty where it is not a plain text."""
    try:
        tree = ast.parse(Path(_source_file(module)).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ""
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    for statement in (statement for cls in classes for statement in cls.body):
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id="summary")], value=ast.Constant(value=str(text)))
                | ast.AnnAssign(target=ast.Name(id="summary"), value=ast.Constant(value=str(text)))
            ):
                return text
    return ""


def _source_file(module: str) -> str:
    """Return the file of ``module``; unlike ``importlib.util.find_spec``, this imports no package around it."""
    spec, names = None, module.split(".")
    for length in range(1, len(names) + 1):
        name, folders = ".".join(names[:length]), spec.submodule_search_locations if spec is not None else None
        specs = (finder.find_spec(name, folders) for finder in sys.meta_path)
        spec = next(filter(None, specs), None)
        if spec is None:
            break
    return (spec.origin if spec is not None else None) or ""


def _listed(group: str, load: Callable[[str], PluginEntry[Info]], *, details: bool) -> tuple[PluginEntry[Info], ...]:
    entries = []
    for plugin in registry.installed(group):
        entry: PluginEntry[Info] = PluginEntry(name=plugin.name, reference=plugin.reference, info=None, error="")
        try:
            entries.append(replace(entry, info=load(plugin.name).info) if details else entry)
        except SkillgitError as error:
            entries.append(replace(entry, error=error.message))
    return tuple(entries)


def _reference(group: str, name: str) -> str:
    return next((plugin.reference for plugin in registry.installed(group) if plugin.name == name), name)
