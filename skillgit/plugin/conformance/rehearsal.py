"""Owns an environment under examination: how it is made, attempts of a scripted target, and what identifies outcomes.

Its digest changes with whatever changes outcomes, and with nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from inspect import getsourcefile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import RetryableBackendError
from skillgit.plugin.backend import Message, Reply, Tool, Usage
from skillgit.plugin.conformance.case import LoopWatch, Promises
from skillgit.plugin.environment import Environment, EnvironmentInfo, Option
from skillgit.plugin.plugin_identity import read_files

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


Value = str | int | float | bool
UNKNOWN = "I do not know."  # what the target says where nobody has said what is wrong about an item


@dataclass(slots=True)
class Scripted:
    """A model that says what it is told to, or fails."""

    says: Sequence[str] = ("",)  # one after the other; the last one for ever
    fails: bool = False
    requests: list[tuple[str, ...]] = field(default_factory=list)  # the texts of the messages of each call
    tools: bool = False  # whether it was ever offered a tool

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
        self.requests.append(tuple(message.text for message in messages))
        self.tools = self.tools or bool(tools)
        if self.fails:
            raise RetryableBackendError("the provider is down", hint="this is a test")
        text = self.says[min(len(self.requests), len(self.says)) - 1]
        return Reply(text=text, usage=Usage(tokens_in=1, tokens_out=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalOutcome:
    trajectory: Trajectory
    score: Scored | None  # None if there is no trajectory to score
    feedback: str
    target: Scripted
    judge: Scripted
    blocker: str  # the line that kept the event loop from running; empty if none did

    @property
    def passed(self) -> bool:
        return isinstance(self.score, Scored) and self.score.passed


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """An environment with its circumstances; see ``check_environment``."""

    cls: type[Environment]
    options: Mapping[str, Value]
    root: Path
    answers: Callable[[Item], str | Sequence[str]] | None
    wrong: Callable[[Item], str] | None
    verdict: str
    rollouts: int

    def made(self, options: Mapping[str, Value] | None = None) -> Environment:
        """Make the environment, with ``options`` in place of its own."""
        return self.cls({**self.options, **(options or {})}, self.root)

    def wrong_answer(self, item: Item) -> str:
        return self.wrong(item) if self.wrong else UNKNOWN

    async def attempt(
        self, environment: Environment, item: Item, skill: Skill, says: str | Sequence[str]
    ) -> RehearsalOutcome:
        """Roll ``item`` out with a target that says ``says``, and score it."""
        target, judge = Scripted((says,) if isinstance(says, str) else tuple(says)), Scripted((self.verdict,))
        async with LoopWatch() as watch:
            trajectory = await environment.rollout(item, skill, target)
            score, feedback = None, ""
            if isinstance(trajectory, Trajectory):
                score, feedback = await environment.score(item, trajectory, judge)
        return RehearsalOutcome(
            trajectory=trajectory, score=score, feedback=feedback, target=target, judge=judge, blocker=watch.place
        )


def with_sentence(skill: Skill, sentence: str) -> Skill:
    """Return ``skill`` with a sentence of its own at the end of its text."""
    return skill.with_text(DOCUMENT, f"{skill.document.rstrip()}\n\n{sentence}\n")


def watched(skill: Skill, reads: list[str]) -> Skill:
    """Return ``skill`` so that whoever reads a text of it adds to ``reads``."""

    class Watched(Skill):
        def __getattribute__(self, name: str) -> object:
            if name in {"document", "files", "text_files"}:
                reads.append(name)
            return super().__getattribute__(name)

    copy = Watched(skill.name, skill.files, skill.executable)
    reads.clear()  # its construction reads it
    return copy


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
    case: Rehearsal, environment: Environment, skill: Skill, items: Mapping[Split, Sequence[Item]], promises: Promises
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
    return [(run.target.requests, run.target.tools, run.judge.requests, run.score, run.feedback) for run in attempts]
