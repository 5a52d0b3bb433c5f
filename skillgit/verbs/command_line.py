"""The command line of the verbs: options and arguments made from their requests, and requests made from words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from enum import Enum
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any, Final, cast

import click
from click.shell_completion import CompletionItem

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.request import Arg, MisuseError, OfPast, Opt, Parameter, Words, parameters
from skillgit.domain.did_you_mean import nearest
from skillgit.errors import SkillgitError, UsageError
from skillgit.lazy import loaded_on_use
from skillgit.verbs.verb import EFFECTS, Effect, Form, Verb, context_of
from skillgit.view.catalogue import ELSEWHERE, ENTRIES

with loaded_on_use():
    from skillgit.app.history import completion
    from skillgit.app.workspace import shipped_configurations, workspace
    from skillgit.plugin import registry

FORM_OPTIONS: Final = {
    Form.JSON: ("--json", "Print one JSON document"),
    Form.JSONL: ("--jsonl", "Print one JSON object a line"),
    Form.PLAIN: ("--plain", "Print tab-separated columns, uncut"),
}


_REST: Final = "skillgit.rest"
"""Where the context of a command notes the words behind ``--``."""


def verb_of(name: str) -> Verb[Any, Any]:
    """Return the verb ``name``, such as ``tasks add``; its module is loaded."""
    module = import_module(f"skillgit.verbs.{ENTRIES[name].module}")
    return cast("Verb[Any, Any]", getattr(module, name.upper().replace("-", "_").replace(" ", "_")))


def command_of(name: str) -> click.Command | None:
    entry = ENTRIES.get(name)
    if entry is None:
        return None
    if not entry.module:
        return VerbGroup(name, path=f"{name} ", help=f"{entry.summary}.", short_help=entry.summary)
    return VerbCommand(verb_of(name), entry.summary)


def read_words(words: Sequence[str]) -> tuple[Verb[Any, Any], Any]:
    """Return the verb and the request that a command line, behind ``skillgit``, asks for.

    Raises:
        UsageError: There is no such command, or it cannot be understood.
    """
    modules = {name: entry.module for name, entry in ENTRIES.items()}
    name = next((name for end in (2, 1) if modules.get(name := " ".join(words[:end]))), None)
    if name is None:
        raise UsageError(f"there is no command '{' '.join(words[:1])}'", hint="skillgit help --all")
    command = cast("VerbCommand", command_of(name))
    try:
        ctx = command.make_context(f"skillgit {name}", [*words[len(name.split()) :]])
        return command.verb, command.request(ctx)
    except click.UsageError as error:
        raise UsageError(error.format_message(), hint=f"skillgit {name} --help") from error


def question_of(words: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return what a person reads before a command line is run, and the one that plans as JSON what it costs.

    The first is empty where it changes nothing, the second where it costs nothing. A command line that cannot be
    understood changes nothing, for the program refuses it; one that begins with options of the program, as ``-C DIR``,
    is not understood here, and may change anything.
    """
    if {"-h", "--help"} & {*words}:
        return "", ()
    if words and words[0].startswith("-"):
        return EFFECTS[Effect.HISTORY], ()
    try:
        verb, request = read_words(words)
    except UsageError:
        return "", ()
    pays = verb.effect_of(request) is Effect.PAYS
    return verb.question(request), (*words, "--dry-run", "--json") if pays else ()


class DescribedCommand(click.Command):
    """A command whose help option has our words, which end without a full stop."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        help_option = super().get_help_option(ctx)
        if help_option is not None:
            help_option.help = "Show this help"
        return help_option


class VerbCommand(DescribedCommand):
    """The click command of a verb; what its answer becomes on a terminal, the session of the program says."""

    def __init__(self, verb: Verb[Any, Any], summary: str) -> None:
        self.verb = verb
        self.parameters = parameters(verb.request)
        self.rest = next((part for part in self.parameters if _after_dashes(part)), None)
        super().__init__(
            verb.name.split()[-1],
            params=[
                *(_click_parameter(part) for part in self.parameters if part is not self.rest),
                *(
                    click.Option([FORM_OPTIONS[form][0], form.value], is_flag=True, help=FORM_OPTIONS[form][1])
                    for form in verb.forms
                ),
            ],
            help=f"{summary}.\n\n{cleandoc(verb.request.__doc__ or '')}",
            short_help=summary,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words; click's parser does not say which command it could not read."""
        ctx.meta[_REST] = ()
        if self.rest is not None and "--" in args:
            index = args.index("--")
            args, ctx.meta[_REST] = args[:index], tuple(args[index + 1 :])
        if self.verb.rewrite is not None:
            args = self.verb.rewrite(args)
        try:
            if not ctx.resilient_parsing:
                _refuse_empty(ctx, args)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        return [*pieces, f"[-- {self.rest.description.metavar}]"] if self.rest is not None else pieces

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the program's exit status
        """Carry the verb out; what only reads answers from one moment, also while a run is trained."""
        request = self.request(ctx)
        session = ctx.obj.asked(context_of(ctx.obj.context, request), self.form(ctx), quiet=_is_quiet(request))
        reads = isinstance(request, OfPast) and self.verb.effect_of(request) is Effect.READS
        try:
            with workspace.one_snapshot() if reads else nullcontext():
                answer = self.verb.run(session, request)
                session.present(answer)
            if answer.error is not None:
                raise answer.error
        except MisuseError as error:
            raise click.UsageError(error.message, ctx) from error
        return int(answer.exit_code)

    def request(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the verb's
        """Return the request of the words that ``ctx`` has read."""
        values = {**ctx.params, **({self.rest.name: ctx.meta[_REST]} if self.rest is not None else {})}
        return self.verb.request(**{part.name: _value(part, values[part.name]) for part in self.parameters})

    def form(self, ctx: click.Context) -> Form:
        forms = [form for form in self.verb.forms if ctx.params[form.value]]
        if len(forms) > 1:
            raise click.UsageError("choose one output format", ctx)
        return forms[0] if forms else Form.TEXT


def _is_quiet(request: object) -> bool:
    return bool(getattr(request, "quiet", False) or getattr(request, "dry_run", False))


def _after_dashes(part: Parameter) -> bool:
    return isinstance(part.description, Arg) and part.description.after_dashes


def _click_parameter(part: Parameter) -> click.Parameter:
    description, kind = part.description, _click_type(part)
    complete = _COMPLETIONS.get(description.words)
    value = part.default.value if isinstance(part.default, Enum) else part.default
    # for click a default of None is one, so that nothing would be required
    default: dict[str, Any] = {} if part.required or part.many else {"default": value}
    if isinstance(description, Arg):
        return click.Argument(
            [part.name],
            nargs=-1 if part.many else 1,
            required=part.required,
            metavar=description.metavar or None,
            type=kind,
            shell_complete=complete,
            **default,
        )
    names = part.options
    if part.plain_type is bool:
        is_on_without = len(names) == 1 and names[0].startswith("--no-")
        return click.Option(
            [*names, part.name],
            help=description.help,
            show_default="/" in names[0],
            **default,
            **({"flag_value": False} if is_on_without else {"is_flag": True}),
        )
    is_shown = value not in {None, "", ()}
    return click.Option(
        [*names, part.name],
        help=description.help,
        required=part.required,
        show_default=description.default or is_shown,
        multiple=part.many,
        metavar=description.metavar or None,
        type=kind,
        shell_complete=complete,
        **default,
    )


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
            name = (
                next((name for name in param.opts if name.startswith("--")), param.opts[0])
                if isinstance(param, click.Option)
                else f"the argument {param.human_readable_name.strip('[].- ')}"
            )
            raise click.UsageError(f"{name} is empty", ctx)


_Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _from_history(kind: str) -> _Completion:
    """Return what completes words of one kind; where there is no repository, there are none."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del param
        # an error has no place on a prompt
        with suppress(SkillgitError):
            context = Context.from_process(ctx.find_root().params.get("directory"))
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
    return [CompletionItem(name, help=entry.summary) for name, entry in ENTRIES.items() if name.startswith(incomplete)]


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
