"""What an environment shows of itself at work: an item, what the target is sent for it, what that takes.

It is found out by a rollout with a stand-in that keeps the first question and answers none, so that it holds for every
plug-in. No model is called.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path

from skillgit.app.setup.plugins import InstalledPlugin, PluginKind, kinds_of, plugin_named
from skillgit.app.workspace.context import Context
from skillgit.domain.evaluation import Split
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Turn
from skillgit.errors import BackendError, DataError, EnvironmentFaultError, SandboxError, SkillgitError
from skillgit.plugin.backend import Message, Reply, ReplyForm, Tool
from skillgit.plugin.environment import (
    CallBounds,
    Environment,
    EnvironmentInfo,
    ModelEndpoint,
    NeedKind,
    ShowsPictures,
    asks_judge,
    call_bounds,
    opened,
)
from skillgit.plugin.plugin_identity import install_command
from skillgit.plugin.registry import ENVIRONMENTS, installed, load_environment
from skillgit.plugin.shortcuts import BestShortcut, measure_shortcuts
from skillgit.plugin.skill_marks import as_text
from skillgit.sandbox import Sandbox

SCORER = "scorer"
"""The option by which an environment lets its user choose a scorer."""
_LIMIT_S = 30.0
_MOST_FIELDS = 12
_SKILL_LINES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemField:
    name: str
    value: object
    shown: bool  # whether what the target is first sent depends on it


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSample:
    """One item, and the first question that the target is asked about it."""

    id: str
    split: Split
    task_type: str
    fields: tuple[ItemField, ...]
    prompt: tuple[Turn, ...]  # the seed skill in it is cut to its first lines
    tools: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerChoice:
    name: str  # as the value of env.scorer; empty where there is one scorer only
    summary: str
    default: bool
    judge: bool  # whether it asks a model


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Something without which the environment, or a part of it, does not work."""

    name: str
    purpose: str
    present: bool | None  # on this machine; None where the models of a configuration decide
    detail: str = ""  # what there is, or how to get it


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentProfile:
    counts: Mapping[Split, int] = field(default_factory=dict)  # items that come with it
    sample: ItemSample | None = None
    calls: CallBounds | None = None  # of an evaluation of the test items that come with it
    shortcut: BestShortcut | None = None  # what scores best without a question on the items that come with it
    scorers: tuple[ScorerChoice, ...] = ()
    needs: tuple[Requirement, ...] = ()
    fault: str = ""  # why something of it is not known here


@dataclass(frozen=True, kw_only=True)
class ProfiledEnvironment(InstalledPlugin):
    profile: EnvironmentProfile


def described(context: Context, name: str) -> tuple[InstalledPlugin, ...]:
    """Return the plug-ins called ``name``, or at ``path/to/file.py:Class``; an environment with what it shows."""
    entries = []
    for kind in kinds_of(context, name):
        entry = plugin_named(context, kind, name)
        if kind is PluginKind.ENVIRONMENT:
            profile = profile_of(load_environment(name, context.directory), context.directory)
            entry = ProfiledEnvironment(**vars(entry), profile=profile)
        entries.append(entry)
    return tuple(entries)


def profile_of(cls: type[Environment], root: Path) -> EnvironmentProfile:
    """Return what can be seen of an environment with its defaults; what cannot is named in ``fault``."""
    # What a plug-in raises may be anything, and the rest of it is worth to be seen.
    machine = tuple(_machine_needs(cls.info))
    profile = EnvironmentProfile(needs=machine)
    try:
        environment = _environment(cls, root)
        profile = replace(profile, scorers=_scorers(cls, root))
        items = {split: tuple(environment.items(split)) for split in Split}
        profile = replace(
            profile,
            counts={split: len(part) for split, part in items.items()},
            calls=_calls(environment, items[Split.TEST]),
            shortcut=measure_shortcuts(environment, items).overall,
        )
        sample = asyncio.run(_sample(environment, items))
    except Exception as error:  # noqa: BLE001 - as above
        return replace(profile, fault=_reason(error))
    return replace(profile, sample=sample, needs=(*_model_needs(sample, profile.scorers, environment), *machine))


def _environment(cls: type[Environment], root: Path, **options: str) -> Environment:
    return cls({option.name: option.default for option in cls.info.options} | options, root)


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"its rollouts do not ask the target within {_LIMIT_S:g} s, or never end"
    if isinstance(error, SkillgitError):
        return f"{error.message}: {error.hint}" if error.hint else error.message
    return " ".join(f"{type(error).__name__}: {error}".split())


def _scorers(cls: type[Environment], root: Path) -> tuple[ScorerChoice, ...]:
    choice = next((option for option in cls.info.options if option.name == SCORER and option.values), None)
    default, values = ("", {"": cls.info.scorer}) if choice is None else (choice.default, choice.values)
    scorers = []
    for name, summary in values.items():
        try:
            judge = asks_judge(_environment(cls, root, **({SCORER: name} if name else {})))
        except SkillgitError:  # it looks at items, which cannot be loaded; that is reported where they are asked for
            judge = False
        scorers.append(ScorerChoice(name=name, summary=summary, default=name == default, judge=judge))
    return tuple(scorers)


def _calls(environment: Environment, items: Sequence[Item]) -> CallBounds | None:
    bounds = [bound for item in items if (bound := call_bounds(environment, item)) is not None]
    if len(bounds) < len(items):
        return None
    target, judge = (
        (sum(low for low, _ in pairs), sum(high for _, high in pairs))
        for pairs in ([bound.target for bound in bounds], [bound.judge for bound in bounds])
    )
    return CallBounds(target=target, judge=judge, repairs=sum(bound.repairs for bound in bounds))


class _AskedError(BackendError):
    """The stand-in was asked, which is all that was wanted."""


@dataclass(slots=True)
class _StandIn:
    """A target that keeps the first question that it is asked, and answers none."""

    question: tuple[Turn, ...] = ()
    tools: tuple[str, ...] = ()

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), form: ReplyForm | None = None
    ) -> Reply:
        del form
        if not self.question:
            self.question = tuple(message.turn() for message in as_text(messages))
            self.tools = tuple(tool.name for tool in tools)
        await asyncio.sleep(0)  # so that a rollout that asks for ever can be stopped
        raise _AskedError("a stand-in answers no question")

    def serve(self) -> AbstractAsyncContextManager[ModelEndpoint]:
        raise _AskedError("a stand-in answers no question")


async def _asked(environment: Environment, item: Item, skill: Skill) -> _StandIn:
    """Return the stand-in that a rollout of ``item`` has asked; the rollout's own error if it has not."""
    target = _StandIn()
    try:
        await environment.rollout(item, skill, target)
    except Exception:  # once it has asked, its end is of no interest
        if not target.question:
            raise
    if not target.question:
        raise EnvironmentFaultError("a rollout asks the target nothing", hint="fix the environment")
    return target


async def _sample(environment: Environment, items: Mapping[Split, Sequence[Item]]) -> ItemSample:
    split, item = next(((split, part[0]) for split, part in items.items() if part), (None, None))
    if split is None or item is None:
        raise DataError("it has no items", hint="name data with env.data_path")
    skill = environment.seed_skill()

    async def field_of(name: str, usual: _StandIn) -> ItemField:
        """Return a field, and whether the target is asked something else where it holds something else."""
        altered_item = replace(item, content={**item.content, name: _altered(item.content[name])})
        try:
            is_shown = (await _asked(environment, altered_item, skill)).question != usual.question
        except TimeoutError:
            raise
        except Exception:  # noqa: BLE001 - the rollout cannot do without what the field held
            is_shown = True
        return ItemField(name=name, value=item.content[name], shown=is_shown)

    async with asyncio.timeout(_LIMIT_S), opened(environment):
        stand_in = await _asked(environment, item, skill)
        names = list(item.content)[:_MOST_FIELDS]
        fields = await asyncio.gather(*(field_of(name, stand_in) for name in names))
    return ItemSample(
        id=item.id,
        split=split,
        task_type=item.task_type,
        fields=tuple(fields),
        prompt=tuple(replace(turn, content=_abbreviated(turn.content, skill)) for turn in stand_in.question),
        tools=stand_in.tools,
    )


def _altered(value: object) -> object:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return f"{value} altered" if isinstance(value, str) else type(value)() if value else ["altered"]


def _abbreviated(text: str, skill: Skill) -> str:
    """Return ``text`` with the first lines of the skill in place of all of it."""
    document = skill.document.strip()
    for whole in (document, document[len(frontmatter(skill.document)) :].strip()):
        lines = whole.splitlines()
        if whole and whole in text and len(lines) > _SKILL_LINES + 1:
            more = f"[… {len(lines) - _SKILL_LINES} more lines of the skill {skill.name}]"
            return text.replace(whole, "\n".join((*lines[:_SKILL_LINES], more)))
    return text


def _model_needs(
    sample: ItemSample, scorers: Sequence[ScorerChoice], environment: Environment
) -> Iterator[Requirement]:
    has_pictures = any(turn.pictures for turn in sample.prompt)
    if has_pictures or isinstance(environment, ShowsPictures):
        some = "" if has_pictures else ", for items that have some"
        yield Requirement(name="pictures", purpose=f"a target that sees pictures{some}", present=None)
    if sample.tools:
        yield Requirement(name="tools", purpose=f"a target that calls tools: {', '.join(sample.tools)}", present=None)
    judges = [scorer for scorer in scorers if scorer.judge]
    if judges:
        names = " or ".join(scorer.name for scorer in judges)
        when = f" with env.{SCORER}: {names}" if len(judges) < len(scorers) else ""
        yield Requirement(name="judge", purpose=f"a model that scores{when}", present=None)


def _machine_needs(info: EnvironmentInfo) -> Iterator[Requirement]:
    if any(option.name == "sandbox" for option in info.options):
        purpose = "runs the programs and tools of models apart from this machine"
        try:
            yield Requirement(name="sandbox", purpose=purpose, present=True, detail=Sandbox().kind)
        except SandboxError as error:
            yield Requirement(name="sandbox", purpose=purpose, present=False, detail=_reason(error))
    brings = next((plugin.distribution for plugin in installed(ENVIRONMENTS) if plugin.name == info.name), None)
    package = "skillgit" if brings is None else brings.name
    for need in info.needs:
        paths = [path for word in need.looked_for if (path := _FINDERS[need.kind](word))]
        if need.kind is NeedKind.EXTRA:
            present, detail = len(paths) == len(need.looked_for), install_command(need.name, package)
        else:
            present, detail = bool(paths), f"install {' or '.join(need.looked_for)}"
        yield Requirement(
            name=need.name, purpose=need.purpose, present=present, detail=detail if not present else paths[0]
        )


def _module(name: str) -> str:
    try:
        return name if find_spec(name) is not None else ""
    except (ImportError, ValueError):
        return ""


_FINDERS: Mapping[NeedKind, Callable[[str], str | None]] = {NeedKind.EXTRA: _module, NeedKind.PROGRAM: shutil.which}
