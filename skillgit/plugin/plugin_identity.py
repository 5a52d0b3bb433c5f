"""What a plug-in is identified by: the bytes of a file and of its neighbours, or the name and version of a package."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from skillgit.domain.ids import short_digest
from skillgit.plugin.skill_marks import FORM

if TYPE_CHECKING:
    from skillgit.plugin.environment import Environment

_PACKAGE = "__init__.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginSource:
    """The code that a plug-in was loaded from: the same wherever the same code is, without a path or a time."""

    name: str  # of the entry point, or of the class in a file
    version: str = ""  # the package and its version; empty where the code itself is known
    code: str = ""  # digest of what may change under one version: files, and packages that are installed to be edited

    @property
    def identity(self) -> str:
        return short_digest([self.name, self.version, self.code])


def own_digest(environment: Environment) -> str:
    """Identify what decides an outcome besides item, skill, model and code: its own word, and how skills are read."""
    return short_digest([environment.digest, FORM])


def environment_digest(environment: Environment, source: PluginSource | None) -> str:
    """Identify an environment: its own digest, and its source, which no author has to raise by hand."""
    own = own_digest(environment)
    return own if source is None else short_digest([own, source.identity])


def source_of_files(name: str, files: Mapping[Path, bytes], folder: Path) -> PluginSource:
    """Return what identifies the class ``name`` of the code in ``files``, which are under ``folder``."""
    digests = {path.relative_to(folder).as_posix(): hashlib.sha256(code).hexdigest() for path, code in files.items()}
    return PluginSource(name=name, code=short_digest(digests))


def source_of_package(name: str, module: ModuleType, distribution: Distribution | None) -> PluginSource:
    """Return what identifies the installed plug-in ``name``, whose class is in ``module``.

    A package that is installed for its author to edit (``pip install -e``) keeps its version while its code changes, so
    its bytes identify it. skillgit itself is identified by its version, however it is installed.
    """
    if distribution is None:
        return PluginSource(name=name)
    if (
        distribution.name != "skillgit"
        and module.__file__
        and (_origin(distribution).get("dir_info") or {}).get("editable")
    ):
        path = Path(module.__file__)
        folder = path.parents[module.__name__.count(".") + (path.name == _PACKAGE)]
        return source_of_files(name, read_files(path, folder), folder)
    return PluginSource(name=name, version=f"{distribution.name} {distribution.version}")


def _origin(distribution: Distribution) -> Mapping[str, Any]:
    """Return from where a package was installed (PEP 610), nothing for one from an index."""
    try:
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
    except ValueError:
        return {}
    return origin if isinstance(origin, dict) else {}


def install_command(extra: str, package: str = "skillgit") -> str:
    """Return the command that adds ``extra`` to an installed package, from where that was installed (PEP 610).

    A package that came from a clone or a repository may be on no index, or be another one there.
    """
    try:
        origin = _origin(distribution(package))
    except PackageNotFoundError:
        origin = {}
    url, vcs, folder = origin.get("url", ""), origin.get("vcs_info"), origin.get("dir_info")
    requirement, options = f"{package}[{extra}]", ""
    if vcs is not None:
        requirement += f" @ {vcs['vcs']}+{url}@{vcs['commit_id']}"
    elif folder is not None:
        requirement = f"{url2pathname(urlsplit(url).path)}[{extra}]"
        options = "-e " if folder.get("editable") else ""
    elif url:
        requirement += f" @ {url}"
    if vcs is not None and "subdirectory" in origin:
        requirement += f"#subdirectory={origin['subdirectory']}"
    installer = "pip install" if find_spec("pip") else f"uv pip install --python {quote(sys.prefix)}"
    return f"{installer} {options}{quote(requirement)}"


def read_files(path: Path, folder: Path) -> dict[Path, bytes]:
    """Return the code of ``path`` and of all modules under ``folder`` that it imports, directly or through others.

    Import statements are read wherever they are, in functions too, so that the answer does not depend on what has run
    or has been imported before. A module that is only named in a string is not found.
    """
    packages = (parent / _PACKAGE for parent in path.parents if folder in parent.parents)
    files: dict[Path, bytes] = {}
    waiting = [path, *filter(Path.is_file, packages)]
    while waiting:
        file = waiting.pop()
        if file not in files:
            files[file] = file.read_bytes()
            waiting += _imported(file, files[file], folder)
    return files


def _imported(path: Path, code: bytes, folder: Path) -> Iterator[Path]:
    try:
        nodes = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)]
    except (SyntaxError, ValueError):
        return  # importing it reports the error
    for node in nodes:
        level = node.level if isinstance(node, ast.ImportFrom) else 0
        start = path.parents[level - 1] if level else folder
        prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
        for alias in node.names:
            yield from _modules(start, f"{prefix}{alias.name}".split("."))


def _modules(start: Path, names: list[str]) -> Iterator[Path]:
    """Yield the files that importing the dotted ``names`` may execute, seen from ``start``."""
    for length in range(1, len(names) + 1):
        path = start.joinpath(*names[:length])
        yield from filter(Path.is_file, (path.with_name(f"{path.name}.py"), path / _PACKAGE))


def module_name(path: Path, folder: Path) -> str:
    """Return the name that the module in ``path`` is imported by where ``folder`` is searched."""
    parts = path.relative_to(folder).with_suffix("").parts
    return ".".join(parts[:-1] if path.name == _PACKAGE else parts)
