"""What an environment is: it owns items, what the target does on one of them, and how that is scored.

An environment does nothing but that. It has no pool, no retry, no cache and no clock: the engine rolls items out, many
at a time, through ``skillgit.calls``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from skillgit.domain.evaluation import Outcome, Scored, Split
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from skillgit.plugin.backend import Image, Message, ModelAccess, Reply, ReplyForm, Tool


OptionType: TypeAlias = type[str | int | float | bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A key of the ``env`` section that an environment understands.

    A ``path`` names a file or folder; a relative one refers to the file that it is written in. What is found there has
    to be part of the digests of items or environment, for the path itself does not identify a run.
    """

    name: str
    type: OptionType
    default: str | float | bool
    help: str  # one sentence, with unit and limits
    path: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    """The values that a text may have, each in words, a scorer's with its source; none where any text will do."""


class NeedKind(StrEnum):
    """What a machine has or lacks."""

    EXTRA = "extra"  # Python modules, all of them, that an extra of the package brings
    PROGRAM = "program"  # any one of several on the PATH


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """Something that an environment needs of a machine."""

    kind: NeedKind
    name: str  # of the extra or the program
    looked_for: tuple[str, ...]  # the modules or the programs
    purpose: str  # what it is needed for, and with which options if not always


class SourceKind(StrEnum):
    """How public data come to this machine."""

    HUGGINGFACE = "huggingface"  # a dataset repository of the Hugging Face hub
    WEB = "web"  # files at addresses, such as those of a release or a commit on GitHub
    MANUAL = "manual"
    """Someone puts them where ``layout`` says: they are given out on request, or by a program of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assets:
    """Files that rows name, such as pictures and workbooks; they are written to one folder next to the items."""

    option: str  # of the environment, which names that folder
    folder: str  # its name
    files: tuple[str, ...] = ()  # patterns of published files and members of archives that belong there
    root: str = ""  # the folder from which on their paths are kept; what is above it is left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A value of a converted row that is a file: the row gets its name in place of it."""

    name: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRow:
    """A row as it is published: columns of a table, or fields of an object."""

    file: str  # the published file, or the member of an archive, that it comes from
    number: int  # in that file, from 1
    fields: Mapping[str, object]

    def get(self, *names: str) -> object:
        """Return the first of the fields ``names`` that is there; a DataError if none is, or if it is empty."""
        value = next((self.fields[name] for name in names if name in self.fields), None)
        if value is None or value in ("", []):
            columns = ", ".join(map(str, self.fields)) or "nothing"
            raise DataError(
                f"row {self.number} of {self.file} has no {names[0]}; it has {columns}",
                hint="the data have changed their form: take the revision that skillgit plugins NAME shows",
            )
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """What is known to be wrong with published data, such as an answer that needs no question."""

    sentence: str  # without its full stop
    source: str  # who found or measured it


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicSource:
    """Where the public data of an environment are, and how they become files that it reads.

    ``convert`` names the column whose text is the ``id`` of a row that is taken as it is, or the ``module:function``
    that makes rows of a data file: a pure function from an iterable of :class:`PublishedRow` to an iterator of
    mappings, each with an ``id``. A value of theirs may be an :class:`Attachment`, or a list of some.
    """

    kind: SourceKind
    place: str  # the repository as owner/name; for files on the web, the address above them, with {revision} in it
    layout: str  # what has to be where, and which option names it; for those who place the data by hand
    revision: str = ""  # the commit that is fetched; empty where none is known: the newest one is, and is recorded
    other_place: str = ""  # another name of the repository, which has moved, or may have
    files: tuple[str, ...] = ()  # patterns of the files that are fetched; on the web, their names
    rows: tuple[str, ...] = ()  # patterns of those with rows, in archives too; empty: all that are fetched
    convert: str = ""
    assets: Assets | None = None
    digests: Mapping[str, str] = field(default_factory=dict)  # file to ``md5:…`` or ``sha256:…`` at ``revision``
    licence: str = ""  # empty: unknown
    defects: tuple[Defect, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)  # options to set with the data, which may name {revision}
    splits: Mapping[str, Path] = field(default_factory=dict)  # name to the folder of a manifest that comes with it
    subsets: Mapping[str, PublicSource] = field(default_factory=dict)  # name to what is fetched in place of this


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentInfo:
    """What ``skillgit plugins`` says of an environment."""

    name: str  # its entry point
    summary: str  # one sentence
    fields: Mapping[str, str]  # of an item, and what they mean
    scorer: str  # what hard and soft are, with the source of the rules
    source: str  # of the data
    options: tuple[Option, ...] = ()
    task_types: tuple[str, ...] = ()  # that results are broken down by
    licence: str = ""  # of the data that come with it and of the public data
    public: PublicSource | None = None
    needs: tuple[Need, ...] = ()


_TYPES = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def option_values(info: EnvironmentInfo, given: Mapping[str, str | float | bool]) -> dict[str, str | float | bool]:
    """Return the value of each option, or its default; a ConfigError for a wrong type, or a value that none has."""
    values: dict[str, str | float | bool] = {option.name: option.default for option in info.options} | dict(given)
    for option in info.options:
        value, kinds = values[option.name], (int, float) if option.type is float else option.type
        if not isinstance(value, kinds) or (isinstance(value, bool) and option.type is not bool):
            raise ConfigError(f"env.{option.name} is {value!r}", hint=f"it is {_TYPES[option.type]}")
        if option.values and value not in option.values:
            hint = f"it is one of {', '.join(filter(None, option.values))}"
            raise ConfigError(f"env.{option.name} is '{value}'", hint=hint)
    return values


class Asked(Protocol):
    """A model as an environment sees it while it works on one item."""

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), form: ReplyForm | None = None
    ) -> Reply:
        """Ask the model; each call is a new turn, and a BackendError means that it failed for good."""
        ...

    def serve(self) -> AbstractAsyncContextManager[ModelEndpoint]:
        """Serve the model to a program during a block, for rollouts whose agent asks by itself.

        Each question is a call like one of ``chat``: recorded, capped, charged to this rollout. What ends the run, such
        as a cap, ends the program by a refusal and then the rollout, whether or not the program minds.
        """
        ...


class ModelEndpoint(Protocol):
    """A model behind an address of this machine, in the dialects of OpenAI (chat, responses) and Anthropic."""

    @property
    def access(self) -> ModelAccess:
        """Where it is, and what lets a program in."""
        ...

    def turns(self) -> tuple[Turn, ...]:
        """Return the longest conversation that was had so far; shorter ones are left out."""
        ...


Target: TypeAlias = Asked  # the model that works on items
Judge: TypeAlias = Asked  # the model that scores answers where no rule can


@runtime_checkable
class Environment(Protocol):
    """Tasks with a scorer.

    An environment is constructed with the typed values of its options and the folder that relative paths refer to.
    """

    info: EnvironmentInfo

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None: ...

    @property
    def digest(self) -> str:
        """Identify what decides an outcome besides item, skill and model: prompts, rendering, scorer version."""
        ...

    def items(self, split: Split) -> Sequence[Item]:
        """Return the items of a split, in a fixed order; a DataError if it is missing, empty or malformed."""
        ...

    def seed_skill(self) -> Skill:
        """Return the skill that a run starts from if the user brings none."""
        ...

    def taxonomy(self) -> str:
        """Return the kinds of failure that matter here, as Markdown for the optimizer."""
        ...

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Let the target work on an item; a BackendError if it failed for good, else an EnvironmentFaultError."""
        ...

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Return the score and the feedback that the optimizer may read, or raise as a rollout does.

        It follows a rollout at once and depends on item and trajectory alone, the trajectory's products included. What
        asks ``judge`` says so by a property ``asks_judge``.
        """
        ...


@runtime_checkable
class LongLived(Protocol):
    """What an environment adds that holds something for longer than a rollout: a server, a pool, an engine."""

    async def open(self) -> None:
        """Get ready, before the first rollout; a ConfigError says what this machine lacks."""
        ...

    async def close(self) -> None:
        """End all that ``open`` or a rollout has started; nothing of it is left, also after a cancelled rollout."""
        ...


@asynccontextmanager
async def opened(environment: Environment) -> AsyncIterator[None]:
    """Have ``environment`` open during a block, if it lives longer than a rollout."""
    if not isinstance(environment, LongLived):
        yield
        return
    await environment.open()
    try:
        yield
    finally:
        await environment.close()


@runtime_checkable
class NeedsMachine(Protocol):
    """What an environment adds whose rollouts or scores need what its items do not: a program, a sandbox."""

    def check_machine(self) -> None:
        """Refuse, before anything is spent, where rollouts or scores cannot be made; a ConfigError says why."""
        ...


def check_machine(environment: Environment) -> None:
    if isinstance(environment, NeedsMachine):
        environment.check_machine()


def asks_judge(environment: Environment) -> bool:
    """Say whether the judge's model is part of what decides an outcome."""
    # Not isinstance: it is asked for every rollout, and a look at a protocol takes as long as a model's reply to parse.
    return bool(getattr(environment, "asks_judge", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPart:
    """One thing that the judge decides of an item's score."""

    name: str = ""  # of the part of the score, as in ``Scored.parts``; empty where it is the score itself
    criterion: str = ""  # what the judge grades by, as it reads it
    position: str = ""  # where the judge sees the result, ``first`` or ``second``, in a comparison made in both orders


@runtime_checkable
class NamesJudged(Protocol):
    """What an environment adds whose judge decides parts of a score, so that each is compared for itself."""

    def judged_parts(self, item: Item) -> Sequence[JudgedPart]:
        """Return the parts of the score of ``item`` that the judge decides; none if it is not asked."""
        ...


def judged_parts(environment: Environment, item: Item) -> Sequence[JudgedPart]:
    """Return what the judge decides of the score of ``item``: all of it, unless the environment says otherwise."""
    if isinstance(environment, NamesJudged):
        return environment.judged_parts(item)
    bounds = call_bounds(environment, item)
    return (JudgedPart(),) if asks_judge(environment) and (bounds is None or bounds.judge[1]) else ()


@runtime_checkable
class LeavesFiles(Protocol):
    """What an environment adds that says whether its rollouts make files for the scorer, which are not recorded.

    Without it they may, and a recorded result is scored again only as far as the scorer looks at none.
    """

    @property
    def leaves_files(self) -> bool:
        """Whether a rollout may leave files, with the options that the environment was made with."""
        ...


@runtime_checkable
class ProcessorBound(Protocol):
    """What an environment adds that keeps a processor busy: its rollouts and scores compute more than they wait.

    What it hands to other processes, such as programs in the sandbox, does not count. With ``calls.executor: process``
    it is made in several processes, from its options, and each rollout and its score are made in one of them.
    """

    @property
    def processor_bound(self) -> bool:
        """Whether it is so with the options that the environment was made with."""
        ...


def is_processor_bound(environment: Environment) -> bool:
    return isinstance(environment, ProcessorBound) and bool(environment.processor_bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBounds:
    """How many model calls it takes, at least and at most, to roll out and score one item, provided that none fails."""

    target: tuple[int, int] = (1, 1)
    judge: tuple[int, int] = (0, 0)  # provided that its replies can be used
    repairs: int = 0  # further calls of the judge at most, where they cannot


@runtime_checkable
class BoundsCalls(Protocol):
    """What an environment may add, so that the cost of its rollouts has a bound before anything is spent."""

    def call_bounds(self, item: Item) -> CallBounds:
        """Return how many model calls a rollout of ``item`` takes, with the options of the environment."""
        ...


def call_bounds(environment: Environment, item: Item) -> CallBounds | None:
    """Return how many model calls a rollout of ``item`` takes; None if the environment does not say."""
    return environment.call_bounds(item) if isinstance(environment, BoundsCalls) else None


def asks_target_once(environment: Environment, items: Iterable[Sequence[Item]]) -> bool:
    """Say whether a rollout of any of ``items`` asks the target once at most, as the environment says."""
    every = (call_bounds(environment, item) for group in items for item in group)
    return all(bounds is not None and bounds.target[1] <= 1 for bounds in every)


@runtime_checkable
class ShowsPrompt(Protocol):
    """What an environment may add, so that the optimizer knows under which prompt the target works."""

    def target_prompt(self) -> str:
        """Return the system prompt with ``{skill}`` for the skill and, behind a line ``[user]``, the user's turn.

        ``{question}`` is in the place of the item. A prompt without that line is the system prompt alone.
        """
        ...


@runtime_checkable
class DescribesTask(Protocol):
    """What an environment may add whose items decide what the task is, so that ``info`` cannot say it."""

    def description(self) -> tuple[str, str]:
        """Return what the task is and how an answer is scored, each in words for the optimizer."""
        ...


@runtime_checkable
class ShowsPictures(Protocol):
    """What an environment may add, so that the optimizer sees the pictures that the target saw."""

    def pictures(self, item: Item) -> Sequence[Image]:
        """Return the pictures of ``item`` as the target sees them; an EnvironmentFaultError if one is unreadable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryShare:
    """A share that says more of a measurement than the mean score does, such as recall."""

    name: str
    share: float | None  # absent before anything was measured
    n: int  # how many independent things it is a share of
    interval: tuple[float, float]  # 95 %; before anything was measured, that of a half, which is the widest


@runtime_checkable
class Summarizes(Protocol):
    """What an environment adds whose outcomes have more to say together than their mean."""

    def summary(self, items: Sequence[Item], outcomes: Mapping[str, Outcome]) -> Sequence[SummaryShare]:
        """Return the shares of ``outcomes``, by item id; without any, what they will be shares of."""
        ...

    def conditions(self) -> str:
        """Return what else the shares are of, such as the library that skills compete in; one line."""
        ...


@runtime_checkable
class ScoresText(Protocol):
    """What an environment may add whose rules can score the text of an answer by itself.

    Answers that need no question are scored by it before any model is asked (:mod:`skillgit.plugin.shortcuts`).
    """

    def answer_choices(self, item: Item) -> Mapping[str, str] | None:
        """Return label to text of the choices that the target sees, in its order; empty for an answer in own words.

        None if a score of ``item`` takes more than the text of an answer, such as a model, a program or files.
        """
        ...


@runtime_checkable
class KeepsSecrets(Protocol):
    """What an environment may add, so that the leak lint knows what no skill may quote."""

    def secrets(self, item: Item) -> Secrets:
        """Return the answers, inputs and checks of ``item``."""
        ...


def secrets_of(environment: Environment, item: Item) -> Secrets:
    """Return what is secret about ``item``; nothing, if the environment does not tell."""
    return environment.secrets(item) if isinstance(environment, KeepsSecrets) else Secrets()
