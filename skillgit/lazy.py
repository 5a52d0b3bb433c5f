"""Modules that are loaded when they are first used, so that help and completion load none that they do not need.

    with loaded_on_use():
        from skillgit.app.measure import eval as measuring

    measuring.evaluate(...)  # loads it

Readers, type checkers and the contracts between layers see ordinary imports. Python 3.15 has ``lazy import``.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any


class _ModuleOnUse(ModuleType):
    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - a module holds anything
        return getattr(import_module(self.__name__), name)


@contextmanager
def loaded_on_use() -> Iterator[None]:
    """Import modules by ``from PACKAGE import MODULE`` or ``import MODULE``; each loads when it is first used."""
    thread, load = threading.get_ident(), builtins.__import__

    def name_only(name: str, *arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as Python's own
        modules = named.get("fromlist") or (arguments[2] if len(arguments) > 2 else ())  # noqa: PLR2004 - its place
        if threading.get_ident() != thread:
            return load(name, *arguments, **named)
        if not modules:
            return _ModuleOnUse(name)  # `import NAME`
        return SimpleNamespace(**{module: _ModuleOnUse(f"{name}.{module}") for module in modules})

    builtins.__import__ = name_only
    try:
        yield
    finally:
        builtins.__import__ = load
