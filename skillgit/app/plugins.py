"""``skillgit envs`` and ``skillgit backends``: what is installed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.errors import SkillgitError
from skillgit.plugin import registry

if TYPE_CHECKING:
    from skillgit.app.context import Context
    from skillgit.plugin.backend import BackendInfo
    from skillgit.plugin.environment import EnvironmentInfo
    from skillgit.plugin.registry import Plugin


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentEntry:
    """An installed environment.

    Attributes:
        name: Its entry point.
        reference: The object that the entry point names.
        info: What it says of itself; absent if it was not loaded.
        error: Why it cannot be loaded; empty if it can, or was not tried.
    """

    name: str
    reference: str
    info: EnvironmentInfo | None
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendEntry:
    """An installed backend.

    Attributes:
        name: Its entry point.
        reference: The object that the entry point names.
        info: What it says of itself; absent if it was not loaded.
        error: Why it cannot be loaded; empty if it can, or was not tried.
    """

    name: str
    reference: str
    info: BackendInfo | None
    error: str


def environments(context: Context, *, details: bool = True) -> tuple[EnvironmentEntry, ...]:
    """Return the installed environments by name; one that cannot be loaded says why.

    Args:
        context: Where relative paths begin.
        details: Whether to load them to let them speak for themselves.
    """
    return tuple(_environment(plugin, context, details=details) for plugin in registry.installed(registry.ENVIRONMENTS))


def backends(context: Context, *, details: bool = True) -> tuple[BackendEntry, ...]:
    """Return the installed backends by name; one that cannot be loaded says why.

    Args:
        context: Where relative paths begin.
        details: Whether to load them to let them speak for themselves.
    """
    return tuple(_backend(plugin, context, details=details) for plugin in registry.installed(registry.BACKENDS))


def environment(context: Context, name: str) -> EnvironmentEntry:
    """Return one environment, installed or at ``path/to/file.py:Class``, and load nothing else.

    Raises:
        NotFoundError: There is none of that name.
        UsageError: It cannot be loaded.
    """
    info = registry.load_environment(name, context.directory).info
    return EnvironmentEntry(name=name, reference=_reference(registry.ENVIRONMENTS, name), info=info, error="")


def backend(context: Context, name: str) -> BackendEntry:
    """Return one backend, installed or at ``path/to/file.py:Class``, and load nothing else.

    Raises:
        NotFoundError: There is none of that name.
        UsageError: It cannot be loaded.
    """
    info = registry.load_backend(name, context.directory).info
    return BackendEntry(name=name, reference=_reference(registry.BACKENDS, name), info=info, error="")


def _environment(plugin: Plugin, context: Context, *, details: bool) -> EnvironmentEntry:
    entry = EnvironmentEntry(name=plugin.name, reference=plugin.reference, info=None, error="")
    try:
        return replace(entry, info=environment(context, plugin.name).info) if details else entry
    except SkillgitError as error:
        return replace(entry, error=error.message)


def _backend(plugin: Plugin, context: Context, *, details: bool) -> BackendEntry:
    entry = BackendEntry(name=plugin.name, reference=plugin.reference, info=None, error="")
    try:
        return replace(entry, info=backend(context, plugin.name).info) if details else entry
    except SkillgitError as error:
        return replace(entry, error=error.message)


def _reference(group: str, name: str) -> str:
    return next((plugin.reference for plugin in registry.installed(group) if plugin.name == name), name)
