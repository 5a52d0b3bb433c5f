"""Find environments and backends by entry point; listing reads names only, running loads exactly one."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, cast

from skillgit.domain.policies import POLICIES as OURS
from skillgit.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import ModuleType

    from skillgit.domain.policies import Policy
    from skillgit.plugin.backend import Backend
    from skillgit.plugin.environment import Environment

    Rows = Iterable[Mapping[str, object]]
    Conversion = Callable[[Rows], Rows]

ENVIRONMENTS = "skillgit.envs"
BACKENDS = "skillgit.backends"
POLICIES = "skillgit.policies"
_CONVERSION = "conversion"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed plug-in: its name and the object reference that it names; nothing of it is imported."""

    name: str
    reference: str


@cache
def installed(group: str) -> tuple[Plugin, ...]:
    """Return the plug-ins of ``group``, sorted by name; what is installed while the program runs is not seen.

    No other package's plug-in replaces one that comes with skillgit.
    """
    found = {point.name: Plugin(name=point.name, reference=point.value) for point in entry_points(group=group)}
    found |= _shipped(group)
    return tuple(found[name] for name in sorted(found))


@cache
def _shipped(group: str) -> dict[str, Plugin]:
    """Return the plug-ins that come with skillgit: one file tells, where all installed packages are some hundred."""
    try:
        points: tuple[EntryPoint, ...] = tuple(distribution("skillgit").entry_points)
    except PackageNotFoundError:
        return {}
    return {point.name: Plugin(name=point.name, reference=point.value) for point in points if point.group == group}


def load_environment(name: str, root: Path) -> type[Environment]:
    """Return the environment class called ``name``, or the one at ``path/to/file.py:Class`` under ``root``."""
    return cast("type[Environment]", _load(ENVIRONMENTS, "environment", name, root))


def load_backend(name: str, root: Path) -> type[Backend]:
    """Return the backend class called ``name``, or the one at ``path/to/file.py:Class`` under ``root``."""
    return cast("type[Backend]", _load(BACKENDS, "backend", name, root))


@cache
def load_policy(name: str) -> Policy:
    """Return the gate policy called ``name``: one of ours, an installed one, or that at ``path/to/file.py:Class``.

    Raises:
        NotFoundError: There is none of that name.
        UsageError: It cannot be loaded.
    """
    if name in OURS:
        return OURS[name]
    return cast("type[Policy]", _load(POLICIES, "gate policy", name, Path()))()


def load_conversion(reference: str) -> Conversion:
    """Return the function at ``module:function`` that makes rows of a data file of published rows.

    Raises:
        UsageError: It cannot be loaded.
    """
    module, _, attribute = reference.partition(":")
    return cast(
        "Conversion", _attribute(_imported(module, "conversion", reference), attribute, reference, "conversion")
    )


def _load(group: str, kind: str, name: str, root: Path) -> object:
    if ".py:" in name:
        path, _, attribute = name.rpartition(":")
        return _attribute(_module_from_file((root / path).resolve(), kind), attribute, name, kind)
    plugins = _shipped(group)
    if name not in plugins:
        plugins = {plugin.name: plugin for plugin in installed(group)}
    if name not in plugins:
        from rapidfuzz import process  # noqa: PLC0415 - only a wrong name needs it

        near = process.extractOne(name, list(plugins), score_cutoff=60)
        names = [*(OURS if group == POLICIES else ()), *plugins]
        hint = f"did you mean '{near[0]}'?" if near else f"installed: {', '.join(names) or 'none'}"
        raise NotFoundError(f"there is no {kind} '{name}'", hint=hint)
    module, _, attribute = plugins[name].reference.partition(":")
    return _attribute(_imported(module, kind, name), attribute, name, kind)


def _imported(module: str, kind: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except Exception as error:  # a plug-in may fail to import in any way; the user asked for this one
        raise UsageError(
            f"{kind} '{name}' cannot be loaded: {error}", hint="reinstall it, or install its extra"
        ) from error


def _module_from_file(path: Path, kind: str) -> ModuleType:
    if not path.is_file():
        raise NotFoundError(f"there is no {kind} file {path}", hint="the path is relative to the configuration file")
    spec = importlib.util.spec_from_file_location(f"skillgit_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file", hint="write path/to/file.py:Class")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # the file is the user's own and may fail in any way
        raise UsageError(f"{path} cannot be loaded: {error}", hint=f"python {path} shows where") from error
    return module


def _attribute(module: ModuleType, attribute: str, name: str, kind: str) -> object:
    try:
        return getattr(module, attribute)
    except AttributeError:
        what = "function" if kind == _CONVERSION else "class"
        raise UsageError(
            f"{kind} '{name}' has no {what} '{attribute}'", hint="check the name after the colon"
        ) from None
