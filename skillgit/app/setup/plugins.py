"""``skillgit plugins``: what is installed, and what each plug-in says of itself."""

from __future__ import annotations

import ast
import json
import sys
from dataclasses import dataclass
from enum import StrEnum
from inspect import cleandoc
from pathlib import Path
from typing import Any

from skillgit.app.workspace.context import Context
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.errors import NotFoundError, SkillgitError, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.plugin import registry
from skillgit.plugin.backend import BackendInfo
from skillgit.plugin.environment import EnvironmentInfo

with loaded_on_use():  # the list does without the engine
    from skillgit.app.setup.config import schema
    from skillgit.engine import strategy as engine_strategy


class PluginKind(StrEnum):
    ENVIRONMENT = "environment"
    BACKEND = "backend"
    STRATEGY = "strategy"


_GROUPS = {
    PluginKind.ENVIRONMENT: registry.ENVIRONMENTS,
    PluginKind.BACKEND: registry.BACKENDS,
    PluginKind.STRATEGY: registry.STRATEGIES,
}


@dataclass(frozen=True, kw_only=True)
class InstalledPlugin:
    kind: PluginKind
    name: str
    reference: str
    info: Any | None = None  # what it says of itself, by its kind; absent if it cannot be loaded
    error: str = ""  # why it cannot be loaded; empty if it can


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


def every_plugin(context: Context) -> tuple[InstalledPlugin, ...]:
    """Return all that is installed, kind by kind and by name."""
    return tuple(entry for kind in PluginKind for entry in listed(context, kind))


def listed(context: Context, kind: PluginKind) -> tuple[InstalledPlugin, ...]:
    """Return the installed plug-ins of a kind by name, each with what it says of itself or why it cannot load.

    The summaries of strategies are read from their source, which is not executed.
    """
    entries = []
    for plugin in registry.installed(_GROUPS[kind]):
        info: object | None = None
        error = ""
        try:
            if kind is PluginKind.STRATEGY:
                info = StrategyInfo(summary=_written_summary(*plugin.reference.split(":")[:2]))
            else:
                info = _info(context, kind, plugin.name)
        except SkillgitError as failure:
            error = failure.message
        entries.append(InstalledPlugin(kind=kind, name=plugin.name, reference=plugin.reference, info=info, error=error))
    return tuple(entries)


def kinds_of(context: Context, name: str) -> tuple[PluginKind, ...]:
    """Return of which kinds there is a plug-in called ``name``, or at ``path/to/file.py:Class``."""
    if ".py:" in name:
        cls = registry.load_from_file(name, context.directory)
        info = getattr(cls, "info", None)
        if isinstance(info, EnvironmentInfo):
            return (PluginKind.ENVIRONMENT,)
        if isinstance(info, BackendInfo):
            return (PluginKind.BACKEND,)
        if isinstance(cls, type) and issubclass(cls, engine_strategy.Strategy):
            return (PluginKind.STRATEGY,)
        problem = f"{name} has to be the class of an environment, a backend or a strategy"
        raise UsageError(problem, hint="docs/extending.md shows one of each")
    names = {kind: [plugin.name for plugin in registry.installed(group)] for kind, group in _GROUPS.items()}
    kinds = tuple(kind for kind, group in names.items() if name in group)
    if not kinds:
        every = [plugin for group in names.values() for plugin in group]
        hint = did_you_mean(name, every, otherwise="skillgit plugins lists all that is installed")
        raise NotFoundError(f"there is no plug-in '{name}'", hint=hint)
    return kinds


def plugin_named(context: Context, kind: PluginKind, name: str) -> InstalledPlugin:
    """Return one plug-in, installed or at ``path/to/file.py:Class``, and load nothing else."""
    info, plugins = _info(context, kind, name), registry.installed(_GROUPS[kind])
    reference = next((plugin.reference for plugin in plugins if plugin.name == name), name)
    return InstalledPlugin(kind=kind, name=name, reference=reference, info=info)


def _info(context: Context, kind: PluginKind, name: str) -> object:
    if kind is PluginKind.ENVIRONMENT:
        return registry.environment_info(name, context.directory)
    if kind is PluginKind.BACKEND:
        return registry.load_backend(name, context.directory).info
    cls = registry.find_strategy(name, context.directory).cls
    instance = engine_strategy.strategy_of(cls, name)
    return StrategyInfo(
        summary=instance.summary,
        description=cleandoc(cls.__doc__ or "").replace("``", ""),
        keys=tuple(map(_setting, instance.keys)),
    )


def _setting(key: str) -> StrategySetting:
    sections = schema.SECTIONS
    section, _, name = key.partition(".")
    field = sections[section].model_fields.get(name) if section in sections else None
    if field is None:
        raise UsageError(f"there is no key {key}, which the strategy names", hint="fix the keys of the strategy")
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
