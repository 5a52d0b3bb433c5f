"""Loads a plug-in from a file, with the modules beside it, from bytes that were read once."""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING

from skillgit.plugin.source import module_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from pathlib import Path
    from types import CodeType, ModuleType


class _FromBytes(SourceFileLoader):
    """Executes the bytes that it was given: compiled code on the disk may be that of an earlier edit."""

    def __init__(self, name: str, path: Path, code: bytes) -> None:
        super().__init__(name, str(path))
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        """Return the compiled module."""
        return self.source_to_code(self._code, self.get_filename(fullname))


class _Neighbours(MetaPathFinder):
    """Finds the modules beside the plug-in files that were loaded, where nothing that is installed has their name.

    It is asked before all others: Python's own finder knows the folder too, once a package of it is loaded or where it
    is the working directory, and would execute compiled code of an earlier edit.
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[Path, bytes]] = {}

    def replace(self, files: Mapping[str, tuple[Path, bytes]]) -> None:
        """Let ``files`` be found by their names; what was loaded under one of these from here is loaded anew."""
        for name, (path, _) in files.items():
            paths = {str(path), str(self._files[name][0]) if name in self._files else ""}
            if getattr(sys.modules.get(name), "__file__", None) in paths:
                del sys.modules[name]
        self._files.update(files)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how the module ``fullname`` is loaded."""
        if fullname not in self._files:
            return None
        file, code = self._files[fullname]
        others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        found = next(filter(None, others), None)
        own = found is None or found.origin == str(file)
        return _spec(fullname, file, code) if own else None


_NEIGHBOURS = _Neighbours()


def _spec(name: str, path: Path, code: bytes) -> ModuleSpec | None:
    inside = [str(path.parent)] if path.name == "__init__.py" else None
    return spec_from_file_location(name, path, loader=_FromBytes(name, path, code), submodule_search_locations=inside)


def load_file(path: Path, files: Mapping[Path, bytes]) -> ModuleType:
    """Execute the plug-in ``path`` and return its module.

    Args:
        path: The file, absolute.
        files: Its bytes and those of the modules in its folder that it imports; it gets these, whatever is on the disk
            by then, and in a process that has loaded it before.
    """
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
