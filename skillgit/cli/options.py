"""Options and arguments that several commands share, and the completion of their values."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click
from click.shell_completion import CompletionItem

from skillgit.cli.output import Form
from skillgit.cli.session import open_context
from skillgit.errors import SkillgitError

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.context import Context

PROGRAM = "skillgit"
COMPLETION_VARIABLE = "_SKILLGIT_COMPLETE"

_P = ParamSpec("_P")
_R = TypeVar("_R")

_FORMS = {
    Form.JSON: click.option("--json", Form.JSON.value, is_flag=True, help="Print one JSON document"),
    Form.JSONL: click.option("--jsonl", Form.JSONL.value, is_flag=True, help="Print one JSON object a line"),
    Form.PLAIN: click.option("--plain", Form.PLAIN.value, is_flag=True, help="Print tab-separated columns, uncut"),
    Form.NUL: click.option("-z", Form.NUL.value, is_flag=True, help="Like --plain, but end rows with NUL"),
}


def forms(*offered: Form) -> Callable[[Callable[..., _R]], Callable[..., _R]]:
    """Give a command options for machine formats; it gets the chosen one as ``form``."""

    def decorate(command: Callable[..., _R]) -> Callable[..., _R]:
        @wraps(command)
        def chosen(*args: object, **kwargs: object) -> _R:
            asked = [form for form in offered if kwargs.pop(form.value)]
            if Form.NUL in asked and Form.PLAIN in asked:
                asked.remove(Form.PLAIN)
            if len(asked) > 1:
                raise click.UsageError("choose one output format", click.get_current_context())
            return command(*args, form=asked[0] if asked else Form.TEXT, **kwargs)

        wrapped = chosen
        for form in reversed(offered):
            wrapped = _FORMS[form](wrapped)
        return wrapped

    return decorate


document_form = forms(Form.JSON)
"""Formats of a command that tells one thing."""

list_forms = forms(Form.JSON, Form.JSONL, Form.PLAIN, Form.NUL)
"""Formats of a command that lists things."""


def complete_runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a run."""
    del param
    return [name for name in _run_names(ctx) if name.startswith(incomplete)]


def complete_revisions(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a version of the default run, or the name of a run."""
    del param
    names = [*_version_names(ctx), "best", "head", *_run_names(ctx)]
    return [name for name in names if name.startswith(incomplete)]


def complete_environments(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of an environment."""
    del ctx, param
    return [name for name in _plugin_names("skillgit.envs") if name.startswith(incomplete)]


def complete_backends(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of a backend."""
    del ctx, param
    return [name for name in _plugin_names("skillgit.backends") if name.startswith(incomplete)]


def complete_configs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of a configuration that comes with skillgit, or a file."""
    del ctx, param
    from skillgit.app.config import shipped  # noqa: PLC0415 - it loads yaml and pydantic

    names = [CompletionItem(name) for name in shipped() if name.startswith(incomplete)]
    return [*names, CompletionItem(incomplete, type="file")]


def _plugin_names(group: str) -> list[str]:
    from skillgit.plugin.registry import installed  # noqa: PLC0415 - completion of one argument needs it

    return [plugin.name for plugin in installed(group)]


def _context_of(ctx: click.Context) -> Context:
    return open_context(ctx.find_root().params.get("directory"))


def _quiet(names: Callable[_P, list[str]]) -> Callable[_P, list[str]]:
    """Complete nothing where there is no repository: an error has no place on a prompt."""

    @wraps(names)
    def found(*args: _P.args, **kwargs: _P.kwargs) -> list[str]:
        try:
            return names(*args, **kwargs)
        except SkillgitError:
            return []

    return found


@_quiet
def _run_names(ctx: click.Context) -> list[str]:
    from skillgit.app.runs import runs  # noqa: PLC0415 - the store is loaded for values only

    return [row.name for row in runs(_context_of(ctx))]


@_quiet
def _version_names(ctx: click.Context) -> list[str]:
    from skillgit.app.log import log  # noqa: PLC0415 - the store is loaded for values only

    rows = log(_context_of(ctx), None).rows
    return [f"v{row.version}" for row in rows if row.version is not None] + [
        f"m{row.epoch}" if row.origin == "meta" else f"r{row.step}" for row in rows if row.kind == "rejected"
    ]


run_argument = click.argument("run", required=False, shell_complete=complete_runs)

override_option = click.option(
    "-o",
    "--cfg-options",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set KEY of the configuration, like train.num_epochs=2; repeat it for more",
)
