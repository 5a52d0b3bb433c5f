"""What a command may be asked: a request is a dataclass, each of its fields an option or an argument.

    @dataclass(frozen=True, kw_only=True)
    class Cost(OfRun, OfSkill, OfPast):
        by: Annotated[Grouping | None, Opt("Add up by WHAT", metavar="WHAT")] = None

The type says what a value is: a ``bool`` is a flag, a tuple an option that may be repeated, an ``Enum`` a choice, and a
field without a default is required. Options that mean the same for several commands are said once here, as bases with
:class:`Shared` fields: every command understands them at any place of the line, and refuses those it does not have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from inspect import get_annotations
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from skillgit.domain.cost import Caps
from skillgit.errors import UsageError

Words = Literal[
    "runs",
    "items",
    "models",
    "skills",
    "revisions",
    "configs",
    "environments",
    "plugins",
    "commands",
    "",
]
"""What a value names, for completion."""


class MisuseError(UsageError):
    """Options or arguments do not fit together; the hint is the help of the command."""


@dataclass(frozen=True, slots=True)
class Opt:
    """An option.

    Attributes:
        help: What it does, as the help says it.
        names: How it is typed, with spaces between; empty: ``--`` and the name of the field. A flag that is on unless
            ``--no-NAME`` is given is called that.
        metavar: What its value is called.
        words: What its value names, for completion.
        choices: The only values it takes, where the type does not say so.
        least: The smallest number; None for any.
        above: A number that must be exceeded; None for any.
        folder: Of a path, whether it is a folder (True), a file (False) or either (None).
        default: What the help calls the default where the field's own default does not say it.
        tool: What agents call it, who give one of those that may be repeated; empty: they do not give it.
    """

    help: str
    names: str = ""
    metavar: str = ""
    words: Words = ""
    choices: Sequence[str] = ()
    least: int | None = None
    above: float | None = None
    folder: bool | None = None
    default: str = ""
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared(Opt):
    """An option that means the same for every command that has it.

    Attributes:
        lack: Why a command without it refuses it, as the end of a sentence about the command.
    """

    lack: str


@dataclass(frozen=True, slots=True)
class Arg:
    """A word without a name; of a tuple, the remaining ones. ``after_dashes``: those behind ``--`` and no others.

    Agents call it ``tool``, as they do an option.
    """

    metavar: str = ""
    words: Words = ""
    after_dashes: bool = False
    folder: bool | None = None
    tool: str = ""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A field of a request, as its annotation describes it."""

    field: Field[Any]
    type: Any
    description: Opt | Arg

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def required(self) -> bool:
        return self.field.default is MISSING and self.field.default_factory is MISSING

    @property
    def default(self) -> Any:  # noqa: ANN401 - of the field's type
        if self.field.default_factory is not MISSING:
            return self.field.default_factory()
        return None if self.required else self.field.default

    @property
    def many(self) -> bool:
        return get_origin(self.type) is tuple

    @property
    def plain_type(self) -> type:
        """The type of one value: that of a tuple's items, or of what is not None."""
        inner = get_args(self.type)[0] if self.many else self.type
        return next(kind for kind in (*get_args(inner), inner) if kind is not type(None) and isinstance(kind, type))

    @property
    def options(self) -> tuple[str, ...]:
        """How it is typed: ``--limit``; nothing for an argument."""
        if isinstance(self.description, Arg):
            return ()
        return tuple(self.description.names.split()) or (f"--{self.name.replace('_', '-')}",)


def parameters(request: type) -> tuple[Parameter, ...]:
    """Return what a request may hold: its own fields in their order, then those of its bases."""
    hints = get_type_hints(request, include_extras=True)
    own = {field.name: field for field in fields(request)}
    order: dict[str, None] = {}
    for base in request.__mro__:
        order.update(dict.fromkeys(name for name in get_annotations(base) if name in own))
    described = ((own[name], *get_args(hints[name])[:2]) for name in order if get_origin(hints[name]) is Annotated)
    return tuple(Parameter(*parts) for parts in described)


def given(request: object) -> Iterator[Parameter]:
    """Yield the parameters that are not at their default."""
    for parameter in parameters(type(request)):
        if parameter.required or getattr(request, parameter.name) != parameter.default:
            yield parameter


def command_words(request: object) -> tuple[str, ...]:
    """Return the options and arguments that ask for ``request``, behind the name of its command."""
    options: list[str] = []
    arguments: list[str] = []
    rest: list[str] = []
    for parameter in given(request):
        value = getattr(request, parameter.name)
        values = [str(part) for part in (value if parameter.many else (value,)) if part is not None]
        if isinstance(parameter.description, Arg):
            (rest if parameter.description.after_dashes else arguments).extend(values)
        elif isinstance(value, bool):
            options.append(option_of(parameter))
        else:
            # what may be repeated is written by its first name, a short one where there are several
            name = parameter.options[0] if parameter.many else option_of(parameter)
            options.extend(word for part in values for word in (name, part))
    if any(word.startswith("-") for word in arguments):
        return (*options, "--", *arguments)
    return (*arguments, *options, *(("--", *rest) if rest else ()))


def refuse_together(request: object, *names: str) -> None:
    """Refuse a request that gives more than one of the parameters ``names``."""
    present = {parameter.name: option_of(parameter) for parameter in given(request)}
    chosen = [present[name] for name in names if name in present]
    if len(chosen) > 1:
        raise MisuseError(f"{chosen[0]} cannot be combined with {chosen[1]}")


def refuse_without(request: object, needed: str, *names: str) -> None:
    """Refuse a request that gives one of ``names`` and not ``needed``."""
    present = {parameter.name: option_of(parameter) for parameter in given(request)}
    lone = next((present[name] for name in names if name in present), None)
    if lone is not None and needed not in present:
        need = next(option_of(parameter) for parameter in parameters(type(request)) if parameter.name == needed)
        raise MisuseError(f"{lone} needs {need}")


def option_of(parameter: Parameter) -> str:
    """Return what a person calls a parameter: its long option, or the argument's name."""
    if isinstance(parameter.description, Arg):
        return parameter.description.metavar.strip("[].") or parameter.name.upper()
    return next((name for name in parameter.options if name.startswith("--")), parameter.options[0])


Overrides = Annotated[
    tuple[str, ...],
    Shared(
        "Set KEY of the configuration, like train.num_epochs=2; repeat it for more",
        "-o --cfg-options",
        metavar="KEY=VALUE",
        lack="no configuration applies to it",
    ),
]
DryRun = Annotated[
    bool, Shared("Show what it would do and cost, and do nothing", "-n --dry-run", lack="it has no dry run")
]
_ASKS_NO_MODEL = "it asks no model"


@dataclass(frozen=True, kw_only=True)
class OfSkill:
    """Of one skill: its runs, its text and its tasks."""

    skill: Annotated[
        str,
        Shared(
            "Mean the skill NAME: its name, or the path of its folder",
            metavar="NAME",
            words="skills",
            tool="skill",
            lack="it is not about one skill",
        ),
    ] = ""


@dataclass(frozen=True, kw_only=True)
class OfPast:
    """Of history, as it is or as it was."""

    as_of: Annotated[
        str,
        Shared(
            "Show everything as it stood right after REV",
            metavar="REV",
            words="revisions",
            lack="it does not show the past",
        ),
    ] = ""

    names_run: ClassVar[str] = "run"
    """The field that names the run whose version a short ``as_of``, as v3, is: a run, or a range of its versions."""

    @property
    def range_words(self) -> Sequence[str]:
        words = getattr(self, self.names_run, None) or ()
        return (words,) if isinstance(words, str) else words


@dataclass(frozen=True, kw_only=True)
class OfRun:
    run: Annotated[str | None, Arg("[RUN]", words="runs", tool="run")] = None


@dataclass(frozen=True, kw_only=True)
class Capped:
    """What may ask models: a dry run, and three caps."""

    dry_run: DryRun = False
    max_calls: Annotated[
        int | None, Shared("Stop before it makes more model calls", metavar="N", least=1, lack=_ASKS_NO_MODEL)
    ] = None
    max_tokens: Annotated[
        int | None, Shared("Stop before it uses more tokens", metavar="N", least=1, lack=_ASKS_NO_MODEL)
    ] = None
    max_usd: Annotated[
        float | None, Shared("Stop before it spends more US dollars", metavar="USD", above=0, lack=_ASKS_NO_MODEL)
    ] = None

    @property
    def caps(self) -> Caps:
        return Caps(max_calls=self.max_calls, max_tokens=self.max_tokens, max_usd=self.max_usd)


@dataclass(frozen=True, kw_only=True)
class OnTerms(Capped):
    """On which terms a command asks models."""

    config: Annotated[
        str | None,
        Shared(
            "Take models and settings from CONFIG; default: those of the run, or tasks/default",
            metavar="CONFIG",
            words="configs",
            lack="no configuration applies to it",
        ),
    ] = None
    overrides: Overrides = ()


@dataclass(frozen=True, kw_only=True)
class Noting:
    """What leaves what it finds as notes on commits."""

    note: Annotated[bool, Shared("Leave no note on the commits", "--no-note", lack="it leaves no notes")] = True


@dataclass(frozen=True, kw_only=True)
class SharedOptions(OfSkill, OfPast, OnTerms, Noting):
    """Every option that commands share."""
