"""Find environments and backends by entry point; listing reads names only, running loads exactly one."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Generic, NoReturn, TypeVar, cast

from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.gate_policies import POLICIES, Comparison, Policy, Terms
from skillgit.domain.gate_policies import POLICIES as OURS
from skillgit.errors import NotFoundError, UsageError
from skillgit.plugin.backend import Backend, BackendInfo
from skillgit.plugin.card import CARD, read_card
from skillgit.plugin.environment import Environment, EnvironmentInfo, PublishedRow
from skillgit.plugin.plugin_identity import PluginSource, module_name, read_files, source_of_files, source_of_package

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,39}")
_TERMS = frozenset(Terms.__slots__)


class ForeignPolicy(Policy):
    """A policy whose class comes from a file or another package; a UsageError if it is none, or has no usable name."""

    name = ""

    def __init__(self, cls: type, origin: str) -> None:
        self._origin = origin
        if not (isinstance(cls, type) and issubclass(cls, Policy)):
            self._refuse("it has to be a class that inherits from skillgit.domain.gate_policies.Policy")
        self._policy = cast("Policy", self._ask(cls))
        name, terms = getattr(cls, "name", None), self._policy.terms
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            self._refuse(f"its name is {name!r}; it has to be made of letters, digits and hyphens")
        if name in POLICIES:
            self._refuse(f"its name is {name!r}, which is that of a policy of skillgit")
        if not isinstance(terms, frozenset | set) or not terms <= _TERMS:
            self._refuse(f"its terms have to be a set of {', '.join(sorted(_TERMS))}")
        self.name = name  # type: ignore[misc]
        self.terms = frozenset(terms)  # type: ignore[misc]
        self.wants_gain = bool(self._policy.wants_gain)  # type: ignore[misc]

    def accepts(self, comparison: Comparison) -> bool:
        return self._truth("accepts", self._ask(self._policy.accepts, comparison))

    def reachable(self, best: Comparison, count: int, *, thorough: bool) -> bool:
        return self._truth("reachable", self._ask(self._policy.reachable, best, count, thorough=thorough))

    def is_slow(self, *, counts_decide: bool) -> bool:
        return self._truth("is_slow", self._ask(self._policy.is_slow, counts_decide=counts_decide))

    def wants(self, terms: Terms) -> str:
        return str(self._ask(self._policy.wants, terms))

    def shortfall(self, p: float, terms: Terms) -> str:
        return str(self._ask(self._policy.shortfall, p, terms))

    def _ask(self, method: Callable[..., object], *args: object, **options: object) -> object:
        try:
            return method(*args, **options)
        except (Exception, SystemExit) as error:  # the code is someone else's and may fail in any way
            message = " ".join(f"{type(error).__name__}: {error}".split())
            raise UsageError(f"gate policy {self._origin} broke down: {message}", hint="fix the policy") from error

    def _truth(self, method: str, answer: object) -> bool:
        if not isinstance(answer, bool):
            self._refuse(f"{method} returned {answer!r} where True or False is asked for")
        return answer

    def _refuse(self, why: str) -> NoReturn:
        raise UsageError(f"gate policy {self._origin} cannot be used: {why}", hint="docs/extending.md shows one")


ENVIRONMENTS = "skillgit.envs"
BACKENDS = "skillgit.backends"
STRATEGIES = "skillgit.strategies"
POLICY_GROUP = "skillgit.policies"
_CONVERSION = "conversion"
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """An installed plug-in, whose ``reference`` is ``module:attribute``; nothing of it is imported."""

    name: str
    reference: str
    distribution: Distribution | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, kw_only=True)  # no slots: Python 3.11 cannot make a frozen one through a generic alias
class Loaded(Generic[T]):
    cls: T
    source: PluginSource


@cache
def installed(group: str) -> tuple[Plugin, ...]:
    """Return the plug-ins of ``group`` by name, as of the first call; none replaces one that comes with skillgit."""
    plugins = {point.name: _plugin(point, point.dist) for point in entry_points(group=group)}
    plugins |= _shipped(group)
    return tuple(plugins[name] for name in sorted(plugins))


@cache
def _shipped(group: str) -> dict[str, Plugin]:
    """Return the plug-ins that come with skillgit: one file lists them, and not a hundred packages."""
    try:
        brings = distribution("skillgit")
    except PackageNotFoundError:
        return {}
    return {point.name: _plugin(point, brings) for point in brings.entry_points if point.group == group}


def _plugin(point: EntryPoint, brings: Distribution | None) -> Plugin:
    return Plugin(name=point.name, reference=point.value, distribution=brings)


def find_environment(name: str, root: Path) -> Loaded[type[Environment]]:
    """Return the environment called ``name``, or the one at ``path/to/file.py:Class`` under ``root``."""
    plugin = _with_info(_load(ENVIRONMENTS, "environment", name, root), EnvironmentInfo, "environment", name)
    return cast("Loaded[type[Environment]]", plugin)


def find_backend(name: str, root: Path) -> Loaded[type[Backend]]:
    """Return the backend called ``name``, or the one at ``path/to/file.py:Class`` under ``root``."""
    plugin = _with_info(_load(BACKENDS, "backend", name, root), BackendInfo, "backend", name)
    return cast("Loaded[type[Backend]]", plugin)


def _with_info(plugin: Loaded[object], shape: type, kind: str, name: str) -> Loaded[object]:
    """Return ``plugin`` if it is a class that says of itself what one of this kind does."""
    if isinstance(plugin.cls, type) and isinstance(getattr(plugin.cls, "info", None), shape):
        return plugin
    problem = f"{kind} {name} has to be a class whose info is a {shape.__module__}.{shape.__name__}"
    raise UsageError(problem, hint="docs/extending.md shows one")


def find_strategy(name: str, root: Path) -> Loaded[type]:
    """Return the strategy called ``name``, or the one at ``path/to/file.py:Class`` under ``root``."""
    return cast("Loaded[type]", _load(STRATEGIES, "strategy", name, root))


def load_from_file(name: str, root: Path) -> object:
    """Return what is at ``path/to/file.py:Class`` under ``root``, of whichever kind it is."""
    return _from_file("plug-in", name, root).cls


def load_environment(name: str, root: Path) -> type[Environment]:
    return find_environment(name, root).cls


def card_folder(name: str) -> Path | None:
    """Return the folder of the installed environment ``name`` if a card is in it; its code is not loaded."""
    plugin = _plugins(ENVIRONMENTS, name).get(name)
    try:
        spec = find_spec(plugin.reference.partition(":")[0]) if plugin else None
    except Exception:  # noqa: BLE001 - a package above it may fail to import in any way; loading it says how
        return None
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    return folder if folder is not None and (folder / CARD).is_file() and read_card(folder).name == name else None


def environment_info(name: str, root: Path) -> EnvironmentInfo:
    """Return what an environment says of itself: by its card, if it has one, and else by its class."""
    folder = card_folder(name)
    return load_environment(name, root).info if folder is None else read_card(folder)


def load_backend(name: str, root: Path) -> type[Backend]:
    return find_backend(name, root).cls


@cache
def load_policy(name: str) -> Policy:
    """Return the gate policy called ``name``: one of ours, an installed one, or that at ``path/to/file.py:Class``."""
    return OURS[name] if name in OURS else ForeignPolicy(_find_policy(name).cls, name)


def policy_code(name: str) -> str:
    """Return the digest of the code of the gate policy ``name`` where it comes from files; else empty."""
    return "" if name in OURS else _find_policy(name).source.code


@cache
def _find_policy(name: str) -> Loaded[type[Policy]]:
    return cast("Loaded[type[Policy]]", _load(POLICY_GROUP, "gate policy", name, Path()))


def load_conversion(reference: str) -> Conversion:
    """Return the function at ``module:function`` that makes rows of a data file of published rows."""
    module, _, attribute = reference.partition(":")
    return cast(
        "Conversion", _attribute(_imported(module, "conversion", reference), attribute, reference, "conversion")
    )


def _load(group: str, kind: str, name: str, root: Path) -> Loaded[object]:
    if ".py:" in name:
        return _from_file(kind, name, root)
    plugins = _plugins(group, name)
    if name not in plugins:
        names = [*(OURS if group == POLICY_GROUP else ()), *plugins]
        hint = did_you_mean(name, names, otherwise=f"installed: {', '.join(names) or 'none'}")
        raise NotFoundError(f"there is no {kind} '{name}'", hint=hint)
    reference, _, attribute = plugins[name].reference.partition(":")
    module = _imported(reference, kind, name)
    cls = _attribute(module, attribute, name, kind)
    return Loaded(cls=cls, source=source_of_package(name, module, plugins[name].distribution))


def _plugins(group: str, name: str) -> Mapping[str, Plugin]:
    """Return plug-ins of ``group`` by name: ours if ``name`` is one of them, else all."""
    ours = _shipped(group)
    return ours if name in ours else {plugin.name: plugin for plugin in installed(group)}


def _imported(module: str, kind: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a plug-in may fail to import in any way; the user asked for this one
        hint = "reinstall it, or install its extra"
        raise UsageError(f"{kind} '{name}' cannot be loaded: {_reason(error)}", hint=hint) from error


def _reason(error: BaseException) -> str:
    return f"it ends the program, with {error.code!r}" if isinstance(error, SystemExit) else str(error)


def _from_file(kind: str, name: str, root: Path) -> Loaded[object]:
    file_name, _, attribute = name.rpartition(":")
    path = (root / file_name).resolve()
    if not path.is_file():
        neighbours = [file.name for file in path.parent.glob("*.py")]
        hint = did_you_mean(path.name, neighbours, otherwise="name a Python file, a colon and the class in it")
        raise NotFoundError(f"there is no {kind} file {path}", hint=hint)
    try:
        files = read_files(path, path.parent)
        module = load_file(path, files)
    except (Exception, SystemExit) as error:  # the file is the user's own and may fail in any way
        raise UsageError(f"{path} cannot be loaded: {_reason(error)}", hint=f"python {path} shows where") from error
    cls = _attribute(module, attribute, name, kind)
    return Loaded(cls=cls, source=source_of_files(attribute, files, path.parent))


def _attribute(module: ModuleType, attribute: str, name: str, kind: str) -> object:
    try:
        return getattr(module, attribute)
    except AttributeError:
        noun = "function" if kind == _CONVERSION else "class"
        names = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        hint = did_you_mean(attribute, names, otherwise=f"{module.__file__} has {', '.join(names) or 'none'}")
        raise UsageError(f"{kind} '{name}' has no {noun} '{attribute}'", hint=hint) from None


class _FromBytes(SourceFileLoader):
    """Executes the bytes that it was given: compiled code on the disk may be that of an earlier edit."""

    def __init__(self, name: str, path: Path, code: bytes) -> None:
        super().__init__(name, str(path))
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._code, self.get_filename(fullname))


class _Neighbours(MetaPathFinder):
    """Finds the modules next to the plug-in files that were loaded, where nothing that is installed has their name."""

    # It is asked before all others: Python's own finder knows the folder too, once a package of it is loaded or where
    # it is the working directory, and would execute compiled code of an earlier edit.

    def __init__(self) -> None:
        self._files: dict[str, tuple[Path, bytes]] = {}

    def replace(self, files: Mapping[str, tuple[Path, bytes]]) -> None:
        """Let ``files`` be found by their names; what was loaded under one of these from here is loaded again."""
        for name, (path, _) in files.items():
            paths = {str(path), str(self._files[name][0]) if name in self._files else ""}
            if getattr(sys.modules.get(name), "__file__", None) in paths:
                del sys.modules[name]
        self._files.update(files)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._files:
            return None
        file, code = self._files[fullname]
        specs = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, specs), None)
        own = spec is None or spec.origin == str(file)
        return _spec(fullname, file, code) if own else None


_NEIGHBOURS = _Neighbours()


def _spec(name: str, path: Path, code: bytes) -> ModuleSpec | None:
    inside = [str(path.parent)] if path.name == "__init__.py" else None
    return spec_from_file_location(name, path, loader=_FromBytes(name, path, code), submodule_search_locations=inside)


def load_file(path: Path, files: Mapping[Path, bytes]) -> ModuleType:
    """Execute the plug-in ``path`` and return its module."""
    # It and the modules in its folder that it imports get the bytes in ``files``, even if the disk has changed, and
    # in a process that has loaded it before.
    folder = path.parent
    _NEIGHBOURS.replace({module_name(file, folder): (file, code) for file, code in files.items()})
    if _NEIGHBOURS not in sys.meta_path:
        sys.meta_path.insert(0, _NEIGHBOURS)
    # Two files of one name in two folders are two modules.
    name = f"skillgit_user_{path.stem}_{hashlib.sha256(os.fsencode(path)).hexdigest()[:12]}"
    spec = _spec(name, path, files[path])
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - a loader was given
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


if TYPE_CHECKING:
    Conversion = Callable[[Iterable[PublishedRow]], Iterable[Mapping[str, object]]]
