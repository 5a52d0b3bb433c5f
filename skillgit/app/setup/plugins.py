"""``skillgit envs`` and ``skillgit backends``: what is installed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from skillgit.errors import SkillgitError
from skillgit.plugin import registry
from skillgit.plugin.backend import BackendInfo
from skillgit.plugin.environment import EnvironmentInfo

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.workspace.context import Context

Info = TypeVar("Info")


@dataclass(frozen=True, kw_only=True)  # no slots: Python 3.11 cannot make a frozen one through a generic alias
class PluginEntry(Generic[Info]):
    name: str
    reference: str
    info: Info | None  # what it says of itself; absent if it was not loaded
    error: str  # why it cannot be loaded; empty if it can, or was not tried


EnvironmentEntry = PluginEntry[EnvironmentInfo]
BackendEntry = PluginEntry[BackendInfo]


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
