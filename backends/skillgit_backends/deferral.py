"""Owns the late loading of an SDK's classes: packages of types that a call which is posted as it stands never looks at.

An SDK describes every request and reply of its provider in hundreds of modules and loads all of them when it is
imported, which takes longer than everything else before a training's first call. While :func:`deferred` is in force a
package of them stays empty until one of its names is asked for; whoever asks finds what an import would have given.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from importlib.machinery import ModuleSpec


@contextmanager
def deferred(package: str) -> Iterator[None]:
    """Let ``package`` and the packages inside it, imported for the first time in the block, load when they are used."""
    finder = _Finder(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{fullname}.".startswith(f"{self._package}."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None or spec.submodule_search_locations is None:
            return spec
        spec.loader = _LateLoader(spec.loader)
        return spec


class _LateLoader(Loader):
    """Makes a package that holds nothing but the way to its modules."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _Unloaded
        vars(module)["__skillgit_loader__"] = self._loader


class _Unloaded(ModuleType):
    """A package until the first look at what it holds."""

    def __getattr__(self, name: str) -> object:
        # The import system looks for marks of its own, which are no use of the package.
        if name.startswith("__"):
            raise AttributeError(name)
        loader: Loader | None = vars(self).pop("__skillgit_loader__", None)
        if loader is not None:
            loader.exec_module(self)
            self.__class__ = ModuleType  # type: ignore[assignment]
        return getattr(self, name)
