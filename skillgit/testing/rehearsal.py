"""Owns an environment under examination: its making, attempts of a scripted target, and what its digest depends on."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from inspect import getsourcefile
from pathlib import Path
from tempfile import TemporaryDirectory

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import ConfigError, RetryableBackendError, SkillgitError
from skillgit.plugin.backend import Message, Reply, ReplyForm, Tool, Usage
from skillgit.plugin.environment import (
    Environment,
    EnvironmentInfo,
    ModelEndpoint,
    Option,
    is_processor_bound,
)
from skillgit.plugin.plugin_identity import read_files
from skillgit.testing.case import LoopWatch, Promises, described, lived

Value = str | int | float | bool
UNKNOWN = "I do not know."  # what the target says by default


@dataclass(slots=True)
class Scripted:
    """A model that says what it is set to say, or fails."""

    says: Sequence[str] = ("",)  # one after the other; the last one for ever
    fails_from: int = 0  # the call from which on it fails; 0 never
    requests: list[tuple[str, ...]] = field(default_factory=list)  # the texts of the messages of each call
    tools: bool = False  # whether it was ever offered a tool

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), form: ReplyForm | None = None
    ) -> Reply:
        del form
        self.requests.append(tuple(message.text for message in messages))
        self.tools = self.tools or bool(tools)
        if 0 < self.fails_from <= len(self.requests):
            raise RetryableBackendError("the provider is down", hint="this is a test")
        text = self.says[min(len(self.requests), len(self.says)) - 1]
        return Reply(text=text, usage=Usage(tokens_in=1, tokens_out=1))

    def serve(self) -> AbstractAsyncContextManager[ModelEndpoint]:
        raise ConfigError("a script serves no model", hint="the conformance kit covers rollouts that use chat")


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
    partial_answers: bool = False

    def made(self, options: Mapping[str, Value] | None = None) -> Environment:
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
    """Return ``skill`` so that every read of one of its texts is added to ``reads``."""

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
from skillgit.domain.evaluation import Split
from skillgit.plugin.registry import find_environment
name, options, root, *folders = sys.argv[1:]
copy, changed = (find_environment(name, Path(folder)) for folder in folders)
made = copy.cls(json.loads(options), Path(root))
try:
    items = [[item.id, item.digest] for split in Split for item in made.items(split)]
except Exception:  # its data may lie beside the file that was copied
    items = None
print(json.dumps([made.digest, copy.source != changed.source, items]))
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
    """Load copies of the environment's file in another process: as it is, and with a byte changed."""
    # A class that is made while the program runs, or that needs the package around it, cannot be loaded from a copy;
    # then nothing is said.
    path = getsourcefile(case.cls)
    if path is None or getattr(sys.modules.get(case.cls.__module__), case.cls.__qualname__, None) is not case.cls:
        return
    result = _elsewhere(case, Path(path).resolve())
    if result is None:
        return
    digest, changes, items = result
    promises.hold(
        digest == environment.digest,
        "digest is another one in another process or folder: leave out paths, times, ids and the order of sets",
    )
    with promises.during("items"):
        here = [[item.id, item.digest] for split in Split for item in environment.items(split)]
        promises.hold(
            items in (None, here),
            "items are others, or in another order, in another process: the order of sets is not that of the data",
        )
    promises.hold(changes, "the setup does not change with the bytes of its source")


def _elsewhere(case: Rehearsal, file: Path) -> tuple[object, object, object] | None:
    """Return the digest of a copy, whether a copy with one comment more has another source, and the copy's items."""
    with TemporaryDirectory(prefix="skillgit-conformance-") as root:
        folders = [Path(root, name) for name in ("copy", "changed")]
        for folder, more in zip(folders, (b"", b"\n# another byte\n"), strict=True):
            for path, code in read_files(file, file.parent).items():
                copy = folder / path.relative_to(file.parent)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(code + more if path == file else code)
        target = f"{file.name}:{case.cls.__qualname__}"
        words = [target, json.dumps(case.options), str(case.root.resolve()), *map(str, folders)]
        process = python_elsewhere(_ELSEWHERE, *words, cwd=Path(root))
    try:
        digest, changes, items = json.loads(process.stdout)
    except ValueError:
        return None
    return digest, changes, items


def python_elsewhere(code: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run ``code`` in another process, which finds the same modules and has other hashes."""
    paths = [str(Path(path).resolve()) for path in sys.path if path]
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    return subprocess.run(  # noqa: S603 - this Python, with the code that is examined
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": seed},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def check_processor_bound(case: Rehearsal, environment: Environment, promises: Promises) -> None:
    """Make an environment that says it is processor-bound in another process, as workers do."""
    if not is_processor_bound(environment):
        return
    path = getsourcefile(case.cls)
    module = sys.modules.get(case.cls.__module__)
    if path is None or getattr(module, case.cls.__qualname__, None) is not case.cls:
        promises.note("it is processor-bound, and its class is not at the top of a module, where a worker can find it")
        return
    file = Path(path).resolve()
    words = [f"{file.name}:{case.cls.__qualname__}", json.dumps(case.options), str(case.root.resolve())]
    process = python_elsewhere(_ELSEWHERE, *words, str(file.parent), str(file.parent), cwd=file.parent)
    try:
        digest, *_ = json.loads(process.stdout)
    except ValueError:
        error = " ".join(process.stderr.decode("utf-8", "replace").splitlines()[-1:])
        promises.note(f"it is processor-bound, and cannot be made in another process: {error}")
    else:
        promises.hold(digest == environment.digest, "it is processor-bound, and has another digest in another process")


class _Silent(Scripted):
    """A model that never answers; ``asked`` is set once it has been asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), form: ReplyForm | None = None
    ) -> Reply:
        del messages, tools, form
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError


async def cancel_one(environment: Environment, item: Item, skill: Skill) -> None:
    """Cancel a rollout that waits for its model; what it leaves is looked for at the end."""
    target = _Silent()
    rollout = asyncio.ensure_future(environment.rollout(item, skill, target))
    rollout.add_done_callback(lambda _: target.asked.set())  # it may have nothing to ask
    await target.asked.wait()
    rollout.cancel()
    await asyncio.gather(rollout, return_exceptions=True)


def check_moved(case: Rehearsal, environment: Environment, promises: Promises) -> None:
    """Copy the data that options name below the root to another folder: items and digest have to stay the same."""
    names = {value for value in case.options.values() if isinstance(value, str) and value and _is_inside(value, case)}
    if not names:
        return
    with TemporaryDirectory(prefix="skillgit-conformance-") as folder, promises.during("a move of its data"):
        for name in names:
            source, copy = case.root / name, Path(folder, name)
            copy.parent.mkdir(parents=True, exist_ok=True)
            # Data files may name files next to them.
            shutil.copytree(
                source if source.is_dir() else source.parent,
                copy if source.is_dir() else copy.parent,
                dirs_exist_ok=True,
            )
        elsewhere = case.cls(dict(case.options), Path(folder))
        promises.hold(
            elsewhere.digest == environment.digest, "digest is another one where its data are in another folder"
        )
        for split in Split:
            here, there = (
                [(item.id, item.digest) for item in source.items(split)] for source in (environment, elsewhere)
            )
            promises.hold(here == there, "items are others where the data are in another folder: leave out paths")


def _is_inside(name: str, case: Rehearsal) -> bool:
    return not Path(name).is_absolute() and ".." not in Path(name).parts and (case.root / name).exists()


def check_values(case: Rehearsal, promises: Promises) -> None:
    """Give each option values of another type, and one that it does not name: a refusal is a sentence, not a crash."""
    info = case.cls.info
    for option in info.options if isinstance(info, EnvironmentInfo) else ():
        values: list[object] = [[], None, *(["no such value"] if option.values else [])]
        for value in values:
            try:
                case.made({option.name: value})  # type: ignore[dict-item]
            except SkillgitError as error:
                has_sentence = error.message.strip() and "\n" not in error.message
                promises.hold(has_sentence, f"a wrong value of option '{option.name}' is not refused in one sentence")
            except Exception as error:  # noqa: BLE001 - a plug-in may fail in any way, and the caller shall read how
                promises.note(f"a wrong value of option '{option.name}' becomes {described(error)}")
            else:
                is_free = not option.values
                promises.hold(is_free, f"option '{option.name}' takes a value that is none of those it names")


async def check_options(
    case: Rehearsal, environment: Environment, skill: Skill, items: Mapping[Split, Sequence[Item]], promises: Promises
) -> None:
    """Change every switch, number and named value among the options in turn: another outcome has another digest."""
    # Only its author knows what other texts an option may have.
    first = next(((split, split_items[0]) for split, split_items in items.items() if split_items), None)
    info = case.cls.info
    if first is None or not isinstance(info, EnvironmentInfo):
        return
    usual = None
    for option, variant in _variants(case, environment.digest, first[0]):
        try:
            if usual is None:
                usual = await _work(case, environment, skill, first[1])
                if usual != await _work(case, environment, skill, first[1]):
                    return  # it does not do the same twice, so that nothing follows from a difference
            async with lived(variant, promises):
                outcome = await _work(case, variant, skill, first[1])
        except Exception:  # noqa: BLE001, S112 - a value that an option cannot have may do anything
            continue
        promises.hold(
            outcome == usual,
            f"option '{option.name}' changes what is asked or scored, but not digest: make digest depend on it",
        )


def _variants(case: Rehearsal, digest: str, split: Split) -> Iterator[tuple[Option, Environment]]:
    """Yield the environment with other values of its options, where it can be made and has the same ``digest``."""
    for option in case.cls.info.options:
        value = case.options.get(option.name, option.default)
        for other in _others(option, value):
            try:
                variant = case.made({option.name: other})
                variant.items(split)
                is_alike = variant.digest == digest
            except Exception:  # noqa: BLE001, S112 - a value that an option cannot have may do anything
                continue
            if is_alike:
                yield option, variant


_MOST_VALUES = 1  # of a text that are tried, for each takes a rollout


def _others(option: Option, value: Value) -> Sequence[Value]:
    if option.name == "sandbox":
        return ()  # how programs are isolated is not part of what they do
    if option.path or isinstance(value, str):
        return [name for name in option.values if name != value][:_MOST_VALUES]
    return [not value if option.type is bool else option.type(value + 1)]


async def _work(case: Rehearsal, environment: Environment, skill: Skill, item: Item) -> list[object]:
    """Return everything that can be seen of an item: what models are asked, and what right and wrong answers score."""
    answers = [case.wrong_answer(item), *([case.answers(item)] if case.answers else [])]
    attempts = [await case.attempt(environment, item, skill, says) for says in answers]
    return [(run.target.requests, run.target.tools, run.judge.requests, run.score, run.feedback) for run in attempts]
