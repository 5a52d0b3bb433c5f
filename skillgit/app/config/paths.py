"""Paths in a configuration, and code that it names by path.

A relative path refers to the folder of the file that it stands in; in an override, to the working directory. A path in
a file that does not exist there, but does in the working directory, is taken from there, with a note: configurations of
the reference implementation are written that way.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from skillgit.app.config.leaf import Layer, Leaf

PATHS = ("gate.pinned", "env.skill_init", "env.split_dir", "env.data_path", "env.split_output_dir", "env.out_root")
PLUGINS = ("env.name", "gate.policy", "model.optimizer_backend", "model.target_backend", "model.judge_backend")


def located(
    layer: Layer, directory: Path, environ: Mapping[str, str], more: Iterable[str] = ()
) -> tuple[Layer, list[str]]:
    """Return ``layer`` with absolute paths, and what to tell the user of them.

    Args:
        layer: Values by key.
        directory: The working directory.
        environ: Environment variables, for ``~``.
        more: Further keys that hold paths: settings of backends.
    """
    found, notes = dict(layer), []
    for key in (*PATHS, *PLUGINS, *more):
        leaf = found.get(key)
        if leaf is None or not leaf.text:
            continue
        text, attribute = leaf.text, ""
        if key in PLUGINS:
            text, colon, attribute = leaf.text.rpartition(":")
            attribute = f"{colon}{attribute}"
            if not text.endswith(".py"):
                continue
        path, note = _locate(key, text, leaf, directory, environ)
        notes.extend(note)
        found[key] = replace(leaf, value=f"{path}{attribute}", text=f"{path}{attribute}")
    return found, notes


def _locate(key: str, text: str, leaf: Leaf, directory: Path, environ: Mapping[str, str]) -> tuple[Path, list[str]]:
    if text.startswith("~/") and environ.get("HOME"):
        text = f"{environ['HOME']}{text[1:]}"
    here, there = (leaf.folder / text).resolve(), (directory / text).resolve()
    if here != there and there.exists() and not here.exists():
        return there, [f"{leaf.origin}: {key} is taken from the working directory: {there}"]
    return here, []
