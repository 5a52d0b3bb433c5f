"""The command line of the verbs: options and arguments made from their requests, and requests made from words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from enum import Enum
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final, cast

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.request import (
    Arg,
    Opt,
    Parameter,
    Shared,
    SharedOptions,
    Words,
    option_of,
    parameters,
)
from skillgit.domain.did_you_mean import nearest
from skillgit.errors import SkillgitError, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import Effect, Form, Verb
from skillgit.view.catalogue import ELSEWHERE, ENTRIES

with loaded_on_use():
    from skillgit.app.history import completion
    from skillgit.app.workspace import shipped_configurations
    from skillgit.plugin import registry

PROGRAM: Final = "skillgit"
OPTIONS: Final = "options"
"""What ``help`` calls the options that commands share."""
_FORM_OPTIONS: Final = {
    Form.JSON: ("Print one JSON document", "it prints no JSON"),
    Form.JSONL: ("Print one JSON object a line", "it prints no stream of records"),
    Form.PLAIN: ("Print tab-separated columns, uncut", "its answer is not a list"),
}
_REST: Final = "skillgit.rest"
"""Where the context of a command notes the words behind ``--``."""
_SHARED: Final = "skillgit.shared"
"""Where all contexts of a command line note what shared options were given."""


def verb_of(name: str) -> Verb[Any, Any]:
    """Return the verb ``name``, such as ``tasks add``; its module is loaded."""
    module = import_module(f"skillgit.verbs.{ENTRIES[name].module}")
    return cast("Verb[Any, Any]", getattr(module, name.upper().replace("-", "_").replace(" ", "_")))


def command_of(name: str) -> click.Command | None:
    entry = ENTRIES.get(name)
    if entry is not None and not entry.module:
        return VerbGroup(name, path=f"{name} ", help=f"{entry.summary}.", short_help=entry.summary)
    return None if entry is None else verb_command(name)


def verb_command(name: str) -> VerbCommand:
    return VerbCommand(verb_of(name), ENTRIES[name].summary)


def read_words(words: Sequence[str]) -> tuple[Verb[Any, Any], Any]:
    """Return the verb and the request that a command line, behind ``skillgit``, asks for.

    Raises:
        UsageError: There is no such command, or it cannot be understood.
    """

    def asked(ctx: click.Context, command: VerbCommand) -> tuple[Verb[Any, Any], Any]:
        return command.verb, command.request(ctx)

    try:
        with VerbGroup(PROGRAM).make_context(PROGRAM, [*words], obj=asked) as ctx:
            return cast("tuple[Verb[Any, Any], Any]", ctx.command.invoke(ctx))
    except click.UsageError as error:
        path = PROGRAM if error.ctx is None else error.ctx.command_path
        lack = f"{path} needs a command" if isinstance(error, click.exceptions.NoArgsIsHelpError) else ""
        raise UsageError(lack or error.format_message(), hint=f"{path} --help") from error


def question_of(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return what a person reads before a command line is run, and the one that plans as JSON what it costs.

    The first is empty where it changes nothing, the second where it costs nothing. A command line that cannot be
    understood changes nothing, for the program refuses it.
    """
    if {"-h", "--help"} & {*words}:
        return "", ()
    try:
        verb, request = read_words(words)
    except UsageError:
        return "", ()
    pays = verb.effect_of(request) is Effect.PAYS
    return verb.question(request), (*words, "--dry-run", "--json") if pays else ()


class SharedOption(click.Option):
    """An option that every command understands, behind its name or before it.

    Help lists it once, and not for each command. What it was given is noted for the command.

    Attributes:
        key: What the note calls it: the field of a request, a form, or a setting of the program.
        lack: Why a command without it refuses it; empty for a setting of the program, which all commands have.
    """

    def __init__(self, key: str, names: Sequence[str], *, lack: str = "", **attributes: Any) -> None:  # noqa: ANN401
        # a command may have an argument of that name
        super().__init__([*names, f"shared_{key}"], expose_value=False, callback=self._note, **attributes)
        self.key, self.lack = key, lack

    def _note(self, ctx: click.Context, param: click.Parameter, value: Any) -> None:  # noqa: ANN401 - of its type
        if ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE:
            notes = ctx.meta.setdefault(_SHARED, {})
            notes[self.key] = (*notes.get(self.key, ()), *value) if self.multiple else value

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        del ctx
        return None

    def own_help_record(self, ctx: click.Context) -> tuple[str, str]:
        return super().get_help_record(ctx) or ("", "")

    @property
    def long(self) -> str:
        return next((name for name in self.opts if name.startswith("--")), self.opts[0])

    @property
    def usage(self) -> str:
        return "/".join(self.opts) + (f" {self.metavar}" if self.metavar else "")


def shared_notes(ctx: click.Context) -> Mapping[str, Any]:
    """Return what the shared options of a command line were given, so far as it has been read."""
    notes: Mapping[str, Any] = ctx.meta.get(_SHARED, {})
    return notes


class DescribedCommand(click.Command):
    """A command whose help option has our words, which end without a full stop."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        help_option = super().get_help_option(ctx)
        if help_option is not None:
            help_option.help = "Show this help"
        return help_option

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *self.shared()]

    def shared(self) -> Sequence[SharedOption]:
        """Return the options of all commands as this one understands them."""
        return SHARED

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            _refuse_empty(ctx, args)
        return super().parse_args(ctx, args)


class VerbCommand(DescribedCommand):
    """The click command of a verb; what its answer becomes on a terminal, the session of the program says."""

    def __init__(self, verb: Verb[Any, Any], summary: str) -> None:
        self.verb = verb
        self.parameters = parameters(verb.request)
        self.rest = next((part for part in self.parameters if _after_dashes(part)), None)
        own_parameters = [part for part in self.parameters if not isinstance(part.description, Shared)]
        super().__init__(
            verb.name.split()[-1],
            params=[_click_parameter(part) for part in own_parameters if part is not self.rest],
            help=f"{summary}.\n\n{cleandoc(verb.request.__doc__ or '')}",
            short_help=summary,
        )
        self.keys = {part.name for part in self.parameters if part not in own_parameters} | {
            form.value for form in verb.forms
        }
        self._names = {name for param in self.params for name in (*param.opts, *param.secondary_opts)}
        self._shared = [*self._understood()]

    def _understood(self) -> Iterator[SharedOption]:
        """Yield the shared options, without names that are the command's own; completion leaves out the refused."""
        for option in SHARED:
            if names := [name for name in option.opts if name not in self._names]:
                option_here = copy(option)
                option_here.opts, option_here.hidden = names, bool(option.lack) and option.key not in self.keys
                yield option_here

    def shared(self) -> Sequence[SharedOption]:
        return self._shared

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        formatter.write_paragraph()
        formatter.write_text(self.also)

    @property
    def also(self) -> str:
        """The sentence about the shared options that it has."""
        usages = [option.usage for option in self._shared if option.key in self.keys]
        usages.append("and options of every command" if usages else "options of every command")
        return f"Also: {', '.join(usages)} (skillgit help options)"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; click's parser does not say which command it could not read."""
        ctx.meta[_REST] = ()
        if self.rest is not None and "--" in args:
            index = args.index("--")
            args, ctx.meta[_REST] = args[:index], tuple(args[index + 1 :])
        if self.verb.rewrite is not None:
            args = self.verb.rewrite(args)
        notes = ctx.meta.setdefault(_SHARED, {})
        for option in SHARED:  # what stood before the command may be its own option of that name
            if option.key in notes and option.long in self._names:
                args = [option.long, str(notes.pop(option.key)), *args]
        try:
            rest = super().parse_args(ctx, args)
            if not ctx.resilient_parsing:
                self._refuse_shared(ctx)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise
        return rest

    def _refuse_shared(self, ctx: click.Context) -> None:
        """Refuse a shared option that means nothing to this command."""
        for option in SHARED:
            if option.lack and option.key in shared_notes(ctx) and option.key not in self.keys:
                argument = next((part for part in self.parameters if part.name == option.key), None)
                reason = option.lack if argument is None else f"write {option_of(argument)} without it"
                raise click.UsageError(f"{self.verb.name} does not take {option.long}: {reason}", ctx)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [*pieces, f"[-- {self.rest.description.metavar}]"] if self.rest is not None else pieces

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - what the reader of the command line makes of it
        """Hand the command to who reads the command line: the program, which carries it out, or ``read_words``."""
        return ctx.obj(ctx, self)

    def request(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the verb's
        """Return the request of the words that ``ctx`` has read."""
        notes = shared_notes(ctx)
        values = {part.name: notes.get(part.name, part.default) for part in self.parameters} | ctx.params
        if self.rest is not None:
            values[self.rest.name] = ctx.meta[_REST]
        return self.verb.request(**{part.name: _value(part, values[part.name]) for part in self.parameters})

    def form(self, ctx: click.Context) -> Form:
        forms = [form for form in self.verb.forms if shared_notes(ctx).get(form.value)]
        if len(forms) > 1:
            raise click.UsageError("choose one output format", ctx)
        return forms[0] if forms else Form.TEXT


def _after_dashes(part: Parameter) -> bool:
    return isinstance(part.description, Arg) and part.description.after_dashes


def _click_parameter(part: Parameter) -> click.Parameter:
    description, value = part.description, part.default.value if isinstance(part.default, Enum) else part.default
    # for click a default of None is one, so that nothing would be required
    attributes: dict[str, Any] = {} if part.required or part.many else {"default": value}
    if part.plain_type is not bool:
        attributes |= {
            "metavar": description.metavar or None,
            "type": _click_type(part),
            "shell_complete": _COMPLETIONS.get(description.words),
        }
    if isinstance(description, Arg):
        return click.Argument([part.name], nargs=-1 if part.many else 1, required=part.required, **attributes)
    names = part.options
    if part.plain_type is bool:
        attributes |= {"flag_value": False} if names[0].startswith("--no-") else {"is_flag": True}
    else:
        is_shown = value not in {None, "", ()}
        attributes |= {"show_default": description.default or is_shown, "multiple": part.many}
    if isinstance(description, Shared):
        return SharedOption(part.name, names, help=description.help, lack=description.lack, **attributes)
    return click.Option([*names, part.name], help=description.help, required=part.required, **attributes)


def _click_type(part: Parameter) -> click.ParamType[Any, Any] | None:
    kind, description = part.plain_type, part.description
    if isinstance(description, Opt) and description.choices:
        return click.Choice(tuple(description.choices))
    if issubclass(kind, Enum):
        return click.Choice([str(member.value) for member in kind])
    if issubclass(kind, Path):
        return click.Path(
            path_type=Path, file_okay=description.folder is not True, dir_okay=description.folder is not False
        )
    if isinstance(description, Opt) and (description.least is not None or description.above is not None):
        is_open = description.above is not None
        if kind is int:
            return click.IntRange(min=description.least)
        return click.FloatRange(min=description.above if is_open else description.least, min_open=is_open)
    numbers: dict[type, click.ParamType[Any, Any]] = {int: click.INT, float: click.FLOAT}
    return numbers.get(kind, click.STRING) if kind is not bool else None


def _value(part: Parameter, value: Any) -> Any:  # noqa: ANN401 - of the field's type
    if part.many:
        return tuple(_value_of_one(part, inner) for inner in value)
    return _value_of_one(part, value)


def _value_of_one(part: Parameter, value: Any) -> Any:  # noqa: ANN401 - as above
    return part.plain_type(value) if value is not None and issubclass(part.plain_type, Enum) else value


class VerbGroup(DescribedCommand, click.Group):
    """The commands whose names begin with those of ``path``; each is loaded when it is asked for."""

    def __init__(self, name: str, path: str = "", **attributes: Any) -> None:  # noqa: ANN401 - they are click's
        super().__init__(name, subcommand_metavar="COMMAND [ARGS]...", **attributes)
        self.path = path

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [
            name.removeprefix(self.path)
            for name in ENTRIES
            if name.startswith(self.path) and " " not in name[len(self.path) :]
        ]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        return command_of(f"{self.path}{cmd_name}")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        names = self.list_commands(ctx)
        if not args or args[0] in names or args[0].startswith("-") or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        near = ELSEWHERE.get(" ".join(args[:2])) or ELSEWHERE.get(args[0]) or nearest(args[0], names)
        hint = f", did you mean '{near}'?" if near else ""
        raise click.UsageError(f"there is no command '{args[0]}'{hint}", ctx)


def _refuse_empty(ctx: click.Context, args: list[str]) -> None:
    """Refuse a value that is empty, as that of an unset shell variable: it would silently stand for everything."""
    if not any(arg == "" or arg.endswith("=") for arg in args):
        return
    values, _, order = ctx.command.make_parser(ctx).parse_args([*args])
    for param in order:
        value = values.get(param.name or "")
        if "" in (value if isinstance(value, list | tuple) else (value,)):
            if isinstance(param, click.Option):
                name = next((name for name in param.opts if name.startswith("--")), param.opts[0])
            else:
                metavar = param.human_readable_name.strip(".- ")
                name = f"the argument {metavar[1:-1] if metavar.startswith('[') else metavar}"
            raise click.UsageError(f"{name} is empty", ctx)


_Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _from_history(kind: str) -> _Completion:
    """Return what completes words of one kind; where there is no repository, there are none."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del param
        # an error has no place on a prompt
        with suppress(SkillgitError):
            context = Context.from_process(shared_notes(ctx).get("directory"))
            return [
                CompletionItem(word.value, help=word.help or None)
                for word in getattr(completion, kind)(context, incomplete)
            ]
        return []

    return complete


def _from_plugins(*groups: str) -> _Completion:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        names = dict.fromkeys(plugin.name for group in groups for plugin in registry.installed(group))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]

    return complete


def _configs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    del ctx, param
    names = [CompletionItem(name) for name in shipped_configurations.shipped() if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def _commands(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    if ctx.params.get(param.name or ""):
        return []
    names = {name: entry.summary for name, entry in ENTRIES.items()} | {OPTIONS: "Options that commands share"}
    return [CompletionItem(name, help=summary) for name, summary in names.items() if name.startswith(incomplete)]


_COMPLETIONS: Final[dict[Words, _Completion]] = {
    "runs": _from_history("runs"),
    "items": _from_history("items"),
    "models": _from_history("models"),
    "skills": _from_history("skills"),
    "revisions": _from_history("revisions"),
    "configs": _configs,
    "commands": _commands,
    "environments": _from_plugins("skillgit.envs"),
    "plugins": _from_plugins("skillgit.envs", "skillgit.backends", "skillgit.strategies"),
}


SHARED: Final = (
    *(cast("SharedOption", _click_parameter(part)) for part in parameters(SharedOptions)),
    *(
        SharedOption(form.value, [f"--{form.value}"], is_flag=True, help=help_text, lack=lack)
        for form, (help_text, lack) in _FORM_OPTIONS.items()
    ),
    SharedOption("quiet", ["-q", "--quiet"], is_flag=True, help="Show no progress and no remarks"),
    SharedOption("directory", ["-C"], help="Run as if started in DIR", metavar="DIR", type=click.Path(path_type=Path)),
    SharedOption("paging", ["--no-pager"], help="Print without a pager", flag_value=False, default=True),
    SharedOption(
        "color",
        ["--color"],
        help="When to use colour",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        show_default=True,
    ),
    SharedOption("debug", ["--debug"], is_flag=True, help="Show where errors come from"),
)
"""The options that commands share: those of requests, forms of the answer, and settings of the program."""
