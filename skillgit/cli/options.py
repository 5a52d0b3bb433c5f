"""What commands share: the shape of their help, options, completion, and how work that asks models is carried out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem

from skillgit.cli.session import CommandSession, open_context
from skillgit.errors import SkillgitError
from skillgit.verbs.command_line import DescribedCommand, refuse_unknown
from skillgit.verbs.verb import Form

if TYPE_CHECKING:
    pass


_R = TypeVar("_R")


class ClickVerb(DescribedCommand):
    """A command whose mistakes name it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; click's parser does not say which command it could not read."""
        try:
            if not ctx.resilient_parsing:
                refuse_empty(ctx, args)
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - the command's own
        """Run the command; one that only reads answers from one moment, also while a run is trained."""
        names = {param.name for param in self.params}
        if "as_of" not in names or "measure" in names:
            return super().invoke(ctx)
        from skillgit.app.workspace.workspace import one_snapshot  # noqa: PLC0415 - help needs no repository

        with one_snapshot():
            return super().invoke(ctx)


class Verbs(DescribedCommand, click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        refuse_unknown(ctx, args, self.list_commands(ctx))
        return super().resolve_command(ctx, args)


def refuse_empty(ctx: click.Context, args: list[str]) -> None:
    """Refuse a value that is empty, as that of an unset shell variable: it would silently stand for everything."""
    if not any(arg == "" or arg.endswith("=") for arg in args):
        return
    parameters, _, order = ctx.command.make_parser(ctx).parse_args([*args])
    for param in order:
        value = parameters.get(param.name or "")
        values = value if isinstance(value, list | tuple) else (value,)
        if "" in values:
            raise click.UsageError(f"{_name(param)} is empty", ctx)


def _name(param: click.Parameter) -> str:
    """Return what a person calls a parameter: an option by its first long name, an argument as the usage has it."""
    if isinstance(param, click.Option):
        return next((name for name in param.opts if name.startswith("--")), param.opts[0])
    return f"the argument {param.human_readable_name.strip('[].- ')}"


def option(names: str, wording: str, **attributes: Any) -> Callable[[Callable[..., _R]], Callable[..., _R]]:  # noqa: ANN401 - they are click's
    """Return the option of ``names``, with spaces between, that ``wording`` explains."""
    return click.option(*names.split(), help=wording, **attributes)


def flag(names: str, wording: str, **attributes: Any) -> Callable[[Callable[..., _R]], Callable[..., _R]]:  # noqa: ANN401 - likewise
    return option(names, wording, is_flag=True, **attributes)


def verb(name: str) -> Callable[[Callable[..., object]], ClickVerb]:
    return click.command(name, cls=ClickVerb)


def verbs(name: str) -> Callable[[Callable[..., object]], Verbs]:
    return click.group(name, cls=Verbs, subcommand_metavar="COMMAND [ARGS]...")


PROGRAM = "skillgit"
COMPLETION_VARIABLE = "_SKILLGIT_COMPLETE"
EVERY_COMMAND = "skillgit.every_command"
"""What a context notes that is to list all commands, not those of every day only."""

_FORMS = {
    Form.JSON: click.option("--json", Form.JSON.value, is_flag=True, help="Print one JSON document"),
    Form.JSONL: click.option("--jsonl", Form.JSONL.value, is_flag=True, help="Print one JSON object a line"),
    Form.PLAIN: click.option("--plain", Form.PLAIN.value, is_flag=True, help="Print tab-separated columns, uncut"),
    Form.NUL: click.option("-z", Form.NUL.value, is_flag=True, help="Like --plain, but end rows with NUL"),
}


def forms(*options: Form) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Give a command options for machine formats; the chosen one is the ``form`` of its session."""

    def decorate(command: Callable[..., _R]) -> Callable[..., _R]:
        @wraps(command)
        def chosen(*args: object, **kwargs: object) -> _R:
            choices = [form for form in options if kwargs.pop(form.value)]
            if Form.NUL in choices and Form.PLAIN in choices:
                choices.remove(Form.PLAIN)
            ctx = click.get_current_context()
            if len(choices) > 1:
                raise click.UsageError("choose one output format", ctx)
            ctx.obj = replace(ctx.obj, form=choices[0] if choices else Form.TEXT)
            return command(*args, **kwargs)

        function = chosen
        for form in reversed(options):
            function = _FORMS[form](function)
        return function

    return decorate


document_form = forms(Form.JSON)
"""Formats of a command that tells one thing."""

list_forms = forms(Form.JSON, Form.JSONL, Form.PLAIN, Form.NUL)
"""Formats of a command that lists things."""


_Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def _completing(kind: str) -> _Completion:
    """Return what completes words of one kind; where there is no repository, there are none."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del param
        from skillgit.app.history import completion  # noqa: PLC0415 - the index is opened for values only

        # an error has no place on a prompt
        with suppress(SkillgitError):
            context = open_context(ctx.find_root().params.get("directory"))
            words = getattr(completion, kind)(context, incomplete)
            return [CompletionItem(word.value, help=word.help or None) for word in words]
        return []

    return complete


complete_runs, complete_items, complete_models, complete_skills = map(
    _completing, ("runs", "items", "models", "skills")
)
complete_revisions = _completing("revisions")
"""A revision or a range of them, or the name of a run."""


def _completing_plugins(*groups: str) -> _Completion:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        del ctx, param
        from skillgit.plugin.registry import installed  # noqa: PLC0415 - completion of one argument needs it

        names = [plugin.name for group in groups for plugin in installed(group)]
        return [CompletionItem(name) for name in dict.fromkeys(names) if name.startswith(incomplete)]

    return complete


complete_environments = _completing_plugins("skillgit.envs")
complete_backends = _completing_plugins("skillgit.backends")
complete_strategies = _completing_plugins("skillgit.strategies")
complete_plugins = _completing_plugins("skillgit.envs", "skillgit.backends", "skillgit.strategies")


def complete_configs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    del ctx, param
    from skillgit.app.workspace.shipped_configurations import shipped  # noqa: PLC0415 - completion of one argument needs it

    names = [CompletionItem(name) for name in shipped() if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def _look_back(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    del param
    if value is not None:
        session = ctx.ensure_object(CommandSession)
        ctx.obj = replace(session, context=replace(session.context, as_of=_of_run(value, ctx.params.get("run"))))


def _choose_run(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Return the run; where history is cut off behind one of its versions, that is a version of this run."""
    del param
    session = ctx.find_object(CommandSession)
    if session is not None and session.context.as_of:
        ctx.obj = replace(session, context=replace(session.context, as_of=_of_run(session.context.as_of, value)))
    return value


def _of_run(revision: str, run: str | None) -> str:
    """Return ``revision`` as one of ``run`` if it is a version or a candidate that names no run, such as ``v3``."""
    from skillgit.app.workspace.revision import is_address  # noqa: PLC0415 - few commands are asked about the past

    return f"{run}/{revision}" if run and "/" not in revision and is_address(revision) else revision


def hush(ctx: click.Context, param: click.Parameter, value: bool) -> bool:  # noqa: FBT001 - click calls it
    del param
    session = ctx.find_object(CommandSession)
    if value and session is not None:
        ctx.obj = replace(session, quiet=True, context=replace(session.context, remark=lambda _: None))
    return value


quiet_option = flag("-q --quiet", "Show no progress", expose_value=False, callback=hush)

run_argument = click.argument("run", required=False, shell_complete=complete_runs, callback=_choose_run)

as_of_option = option(
    "--as-of",
    "Show everything as it stood right after REV",
    metavar="REV",
    expose_value=False,
    callback=_look_back,
    shell_complete=complete_revisions,
)
"""For commands that read history: their use cases find it cut off behind REV."""


def _mean_skill(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    del param
    if value is not None:
        session = ctx.ensure_object(CommandSession)
        ctx.obj = replace(session, context=replace(session.context, skill=value))


skill_option = option(
    "--skill",
    "Mean the skill NAME: its name, or the path of its folder",
    metavar="NAME",
    expose_value=False,
    callback=_mean_skill,
    shell_complete=complete_skills,
)
"""For commands about one skill: their use cases find the runs, the text and the tasks of that skill."""
