"""Owns an environment under examination: how it is made, and one attempt of a scripted target at one item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Scored
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.trajectory import Trajectory
from skillgit.errors import RetryableBackendError
from skillgit.plugin.backend import Reply, Usage
from skillgit.plugin.conformance.case import LoopWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from skillgit.domain.trajectory import Item
    from skillgit.plugin.backend import Message, Tool
    from skillgit.plugin.environment import Environment

Value = str | int | float | bool
UNKNOWN = "I do not know."
"""What the target says where nobody has said what is wrong about an item."""


@dataclass(slots=True)
class Scripted:
    """A model that says what it is told to, or fails.

    Attributes:
        says: Its replies, one after the other; the last one for ever.
        heard: The texts of the messages of each call.
        tools: Whether it was ever offered a tool.
    """

    says: Sequence[str] = ("",)
    fails: bool = False
    heard: list[tuple[str, ...]] = field(default_factory=list)
    tools: bool = False

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool] = ()) -> Reply:
        self.heard.append(tuple(message.text for message in messages))
        self.tools = self.tools or bool(tools)
        if self.fails:
            raise RetryableBackendError("the provider is down", hint="this is a test")
        text = self.says[min(len(self.heard), len(self.says)) - 1]
        return Reply(text=text, usage=Usage(tokens_in=1, tokens_out=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalOutcome:
    """What happened to one item.

    Attributes:
        trajectory: What the environment says that the target did.
        scored: The score; None if there is no trajectory to score.
        blocked: The line that kept the event loop from running; empty if none did.
    """

    trajectory: Trajectory
    scored: Scored | None
    feedback: str
    target: Scripted
    judge: Scripted
    blocked: str

    @property
    def passed(self) -> bool:
        """Whether it has the full score."""
        return isinstance(self.scored, Scored) and self.scored.passed


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
        """Return what does not solve ``item``."""
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
            trajectory=trajectory, scored=score, feedback=feedback, target=target, judge=judge, blocked=watch.place
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
