"""Owns what identifies outcomes: a digest that changes with whatever changes them, and with nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from inspect import getsourcefile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from skillgit.plugin.environment import EnvironmentInfo
from skillgit.plugin.plugin_identity import read_files

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.evaluation import Split
    from skillgit.domain.skill import Skill
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.conformance.promises import Promises
    from skillgit.plugin.conformance.rehearsal import Rehearsal, Value
    from skillgit.plugin.environment import Environment, Option

_ELSEWHERE = """
import json, sys
from pathlib import Path
from skillgit.plugin.registry import find_environment
name, options, root, *folders = sys.argv[1:]
copy, changed = (find_environment(name, Path(folder)) for folder in folders)
print(json.dumps([copy.cls(json.loads(options), Path(root)).digest, copy.source != changed.source]))
"""


def check_digest(
    case: Rehearsal, env: Environment, twin: Environment, scoring_options: Mapping[str, Value], promises: Promises
) -> None:
    """Look at the digests of two that were made alike, and at those with ``scoring_options``."""
    with promises.during("digest"):
        promises.hold(isinstance(env.digest, str) and env.digest, "digest is empty")
        promises.hold(env.digest == twin.digest, "digest is another one each time that the environment is made")
    for name, value in scoring_options.items():
        with promises.during(f"digest with option '{name}'"):
            has_changed = case.made({name: value}).digest != env.digest
            promises.hold(has_changed, f"digest does not change with option '{name}', which changes scores")


def check_source(case: Rehearsal, environment: Environment, promises: Promises) -> None:
    """Load copies of the environment's file in another process: as it is, and with a byte changed.

    A class that is made while the program runs, or that needs the package around it, cannot be loaded from a copy; then
    nothing is said.
    """
    path = getsourcefile(case.cls)
    if path is None or getattr(sys.modules.get(case.cls.__module__), case.cls.__qualname__, None) is not case.cls:
        return
    result = _elsewhere(case, Path(path).resolve())
    if result is None:
        return
    digest, changes = result
    promises.hold(
        digest == environment.digest,
        "digest is another one in another process or folder: leave out paths, times, ids and the order of sets",
    )
    promises.hold(changes, "the setup does not change with the bytes of its source")


def _elsewhere(case: Rehearsal, file: Path) -> tuple[object, object] | None:
    """Return the digest of a copy, and whether the source of another copy, which has one comment more, is another."""
    with TemporaryDirectory(prefix="skillgit-conformance-") as root:
        folders = [Path(root, name) for name in ("copy", "changed")]
        for folder, more in zip(folders, (b"", b"\n# another byte\n"), strict=True):
            for path, code in read_files(file, file.parent).items():
                copy = folder / path.relative_to(file.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(code + more if path == file else code)
        target = f"{file.name}:{case.cls.__qualname__}"
        words = [target, json.dumps(case.options), str(case.root.resolve()), *map(str, folders)]
        process = subprocess.run(  # noqa: S603 - this Python, with the code that is examined
            [sys.executable, "-c", _ELSEWHERE, *words],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONHASHSEED": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    try:
        digest, changes = json.loads(process.stdout)
    except ValueError:
        return None
    return digest, changes


async def check_options(
    case: Rehearsal,
    environment: Environment,
    skill: Skill,
    items: Mapping[Split, Sequence[Item]],
    promises: Promises,
) -> None:
    """Change every switch and number among the options in turn: what is asked or scored otherwise has another digest.

    What other texts an option may have, nobody knows but its author.
    """
    first = next(((split, split_items[0]) for split, split_items in items.items() if split_items), None)
    info = case.cls.info
    if first is None or not isinstance(info, EnvironmentInfo):
        return
    usual = None
    for option in info.options:
        variant = _made_otherwise(case, option, environment.digest, first[0])
        if variant is None:
            continue
        try:
            if usual is None:
                usual = await _work(case, environment, skill, first[1])
                if usual != await _work(case, environment, skill, first[1]):
                    return  # it does not do the same twice, so that nothing follows from a difference
            outcome = await _work(case, variant, skill, first[1])
        except Exception:  # noqa: BLE001, S112 - a value that an option cannot have may do anything
            continue
        promises.hold(
            outcome == usual,
            f"option '{option.name}' changes what is asked or scored, but not digest: make digest depend on it",
        )


def _made_otherwise(case: Rehearsal, option: Option, digest: str, split: Split) -> Environment | None:
    """Return the environment with another value of ``option``; None where it cannot be, or has another digest."""
    value = case.options.get(option.name, option.default)
    if option.path or isinstance(value, str):
        return None
    try:
        variant = case.made({option.name: not value if option.type is bool else option.type(value + 1)})
        variant.items(split)
    except Exception:  # noqa: BLE001 - a value that an option cannot have may do anything
        return None
    return variant if variant.digest == digest else None


async def _work(case: Rehearsal, environment: Environment, skill: Skill, item: Item) -> list[object]:
    """Return everything that can be seen of an item: what models are asked, and what right and wrong answers score."""
    answers = [case.wrong_answer(item), *([case.answers(item)] if case.answers else [])]
    attempts = [await case.attempt(environment, item, skill, says) for says in answers]
    return [(run.target.heard, run.target.tools, run.judge.heard, run.scored, run.feedback) for run in attempts]
