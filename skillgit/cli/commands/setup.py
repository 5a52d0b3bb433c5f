"""Commands about this machine, a configuration and skillgit itself, and the manual pages of all commands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from inspect import cleandoc
from shlex import quote
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem, get_completion_class

from skillgit import __version__
from skillgit.cli.options import (
    COMPLETION_VARIABLE,
    EVERY_COMMAND,
    PROGRAM,
    ClickVerb,
    complete_backends,
    complete_configs,
    complete_environments,
    complete_plugins,
    complete_strategies,
    document_form,
    flag,
    list_forms,
    option,
    override_option,
    show_plan,
    skill_option,
    spending_options,
    verb,
)
from skillgit.cli.session import CommandSession
from skillgit.domain.cost import Caps
from skillgit.verbs.verb import Form
from skillgit.view import setup as render
from skillgit.view.catalogue import ENTRIES, SECTIONS
from skillgit.view.json_values import named_values, plain_value
from skillgit.view.lists import LISTS
from skillgit.view.surface import Screen, Style
from skillgit.view.text import table

if TYPE_CHECKING:
    from skillgit.app.setup.config.resolved import ConfigEntry


class Listing(ClickVerb):
    """A command of an optional NAME, before which the word ``show`` may stand."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args[:1] == ["show"]:
            args = args[1:]
            if all(arg.startswith("-") for arg in args) and not ctx.resilient_parsing:
                raise click.UsageError("show which one?", ctx)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return ["[[show] NAME]" if piece == "[NAME]" else piece for piece in super().collect_usage_pieces(ctx)]


@verb("config")
@click.argument("config", shell_complete=complete_configs)
@override_option
@flag("--show-origin", "Show where each value comes from")
@skill_option
@list_forms
@click.pass_obj
def config_command(session: CommandSession, config: str, overrides: tuple[str, ...], *, show_origin: bool) -> None:
    """Show the settings that CONFIG amounts to.

    Each line can be given to train with -o. Where CONFIG names no data, they are the tasks of the skill.
    """
    from skillgit.app.setup.skill_tasks import load_for_skill  # noqa: PLC0415 - see the package

    result = load_for_skill(session.context, config, overrides)
    entries = result.entries
    settings = [{"key": entry.key, "value": entry.value, "origin": str(entry.origin)} for entry in entries]
    if session.form is Form.JSON:
        body = {"name": result.name, "path": result.path, "digest": result.digest, "settings": settings}
        session.output.document("config/1", {**body, "notes": result.notes})
    elif session.form is Form.JSONL:
        session.output.records(settings)
    elif session.form is Form.TEXT:
        session.output.text(_lines(entries, session.screen, origins=show_origin))
        session.diagnostics.note(*result.notes)
    else:
        cells = ((entry.key, _value(entry.value), str(entry.origin)) for entry in entries)
        session.output.table(cells, nul=session.form is Form.NUL)


def _lines(entries: Sequence[ConfigEntry], screen: Screen, *, origins: bool) -> Iterator[str]:
    settings = [f"{entry.key}={_value(entry.value)}" for entry in entries]
    if not origins:
        yield from settings
        return
    rows = [(screen.paint(Style.FAINT, str(entry.origin)), line) for entry, line in zip(entries, settings, strict=True)]
    if rows:
        yield from table(rows, align="ll")


def _value(value: object) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(plain_value(value), ensure_ascii=False)


@verb("doctor")
@click.argument("config", required=False, shell_complete=complete_configs)
@override_option
@option("--no-call call", "Ask no model, look only", flag_value=False, default=True)
@flag("--local", "Find the servers of models on this machine instead: Ollama, LM Studio, llama.cpp, vLLM")
@option(
    "--port ports",
    "With --local, look at this port too; repeat it for more",
    type=click.IntRange(1, 65535),
    multiple=True,
)
@option("--write", "With --local, write a configuration that uses what was found, based on CONFIG", metavar="FILE")
@spending_options
@skill_option
@document_form
@click.pass_obj
def doctor_command(
    session: CommandSession,
    config: str | None,
    overrides: tuple[str, ...],
    *,
    call: bool,
    local: bool,
    ports: tuple[int, ...],
    write: str | None,
    caps: Caps,
    dry_run: bool,
) -> int:
    """Check this machine and the models of CONFIG.

    Each model gets one tiny call. It says whether they answer and how fast, which variable a key comes from, whether
    tokens are counted, what they cost, and whether the longest prompt fits. It never shows a key. Exits with 5 if a
    model cannot be called.

    With --local, nothing needs to be configured: it asks the usual ports of this machine which programs serve models,
    and says which models they have, how long their context is, and whether they keep to JSON schemas, for which each
    loaded model gets one small question. Exits with 1 if no server answers.
    """
    from skillgit.app.setup.plan import Plan  # noqa: PLC0415 - as above
    from skillgit.app.train.doctor import doctor  # noqa: PLC0415 - see the package

    if local:
        return _local(
            session, config, overrides, call=call, ports=ports, write=write, limited=dry_run or caps != type(caps)()
        )
    if ports or write:
        raise click.UsageError("--port and --write are options of doctor --local", click.get_current_context())
    if overrides and config is None:
        raise click.UsageError("-o goes with a CONFIG", click.get_current_context())
    checkup = doctor(session.context, config, overrides, call=call, caps=caps, dry_run=dry_run)
    if isinstance(checkup, Plan):
        return show_plan(session, checkup)
    session.diagnostics.note(*checkup.notes)
    session.show("doctor/1", checkup, render.lines(checkup, session.screen))
    return int(checkup.exit_code)


def _local(
    session: CommandSession,
    config: str | None,
    overrides: tuple[str, ...],
    *,
    call: bool,
    ports: tuple[int, ...],
    write: str | None,
    limited: bool,
) -> int:
    from skillgit.app.train.local_servers import START, local_servers  # noqa: PLC0415 - see the package
    from skillgit.app.workspace.skills_here import skill_choice  # noqa: PLC0415 - as above

    if overrides or limited or (config is not None and write is None):
        raise click.UsageError("doctor --local takes --no-call, --port and --write, and CONFIG with --write only")
    result = local_servers(session.context, ports=ports, ask=call, write=write or "", base=config or "")
    session.show("doctor-local/1", result, render.local_lines(result, session.screen))
    if not result.servers:
        session.diagnostics.note("no server of models answers on this machine", hint=START)
    elif result.written:
        words = f"{quote(result.written)} {skill_choice(session.context)}".strip()
        session.diagnostics.note(
            f"wrote {result.written}", hint=f"skillgit doctor {words}, then skillgit train {words}"
        )
    else:
        session.diagnostics.hint("skillgit doctor --local --write models.yaml makes a configuration of it")
    return int(result.exit_code)


@click.command("plugins", cls=Listing)
@click.argument("name", required=False, shell_complete=complete_plugins)
@list_forms
@click.pass_obj
def plugins_command(session: CommandSession, name: str | None) -> None:
    """List environments, backends and strategies, or every setting of one.

    NAME is one of the list, or path/to/file.py:Class. Each setting is shown with its default and its meaning.
    """
    from skillgit.app.setup import plugins  # noqa: PLC0415 - see the package

    if name is None:
        entries = plugins.every_plugin(session.context)
        session.listing(LISTS["plugins"], entries, render.every_plugin(entries, session.screen))
        return
    kinds = plugins.kinds_of(session.context, name)
    described = [(kind, _described(session, kind.value, name)) for kind in kinds]
    rows = [{"kind": kind, **named_values(entry)} for kind, (entry, _) in described]
    lines = [line for number, (_, (_, text)) in enumerate(described) for line in ([""] if number else []) + text]
    session.listing(LISTS["plugins"], rows, lines)


def _described(session: CommandSession, kind: str, name: str) -> tuple[object, list[str]]:
    """Return one plug-in with the lines that describe it."""
    from skillgit.app.setup import plugins  # noqa: PLC0415 - see the package
    from skillgit.app.setup.environment_profile import profiled_environment  # noqa: PLC0415 - as above

    context, screen = session.context, session.screen
    if kind == "environment":
        environment = profiled_environment(context, name)
        return environment, list(render.environment_lines(environment, screen))
    if kind == "backend":
        backend = plugins.backend(context, name)
        return backend, list(render.backend_lines(backend, screen))
    strategy = plugins.strategy(context, name)
    return strategy, list(render.strategy_lines(strategy, screen))


def _list_or_describe(
    session: CommandSession, command: str, entries: Callable[[], Sequence[Any]], kind: str, name: str | None
) -> None:
    if name is not None:
        entry, lines = _described(session, kind, name)
        session.listing(LISTS[command], [entry], lines)
    else:
        rows = entries()
        session.listing(LISTS[command], rows, render.listed(rows, session.screen))


@click.command("envs", cls=Listing)
@click.argument("name", required=False, shell_complete=complete_environments)
@list_forms
@click.pass_obj
def envs_command(session: CommandSession, name: str | None) -> None:
    """List the environments, or describe one.

    NAME is an environment of the list, or path/to/file.py:Class. It is described by its scorers, what it needs and
    whether this machine has it, where its data come from, its options, an item, and the prompt that the target is sent
    for that item. No model is called.
    """
    from skillgit.app.setup.plugins import environments  # noqa: PLC0415 - see the package

    _list_or_describe(session, "envs", partial(environments, session.context), "environment", name)


@click.command("backends", cls=Listing)
@click.argument("name", required=False, shell_complete=complete_backends)
@list_forms
@click.pass_obj
def backends_command(session: CommandSession, name: str | None) -> None:
    """List the model backends, or describe one.

    NAME is a backend of the list, or path/to/file.py:Class.
    """
    from skillgit.app.setup.plugins import backends  # noqa: PLC0415 - see the package

    _list_or_describe(session, "backends", partial(backends, session.context), "backend", name)


@click.command("strategies", cls=Listing)
@click.argument("name", required=False, shell_complete=complete_strategies)
@list_forms
@click.pass_obj
def strategies_command(session: CommandSession, name: str | None) -> None:
    """List the strategies, by which candidates are found, or describe one.

    NAME is a strategy of the list, or path/to/file.py:Class. It is described by what it does and by the keys of the
    configuration on which it depends. The list imports none of them.
    """
    from skillgit.app.setup.plugins import strategies  # noqa: PLC0415 - see the package

    _list_or_describe(session, "strategies", strategies, "strategy", name)


@verb("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_obj
def completion_command(session: CommandSession, shell: str) -> None:
    """Print a script that completes commands in your shell.

    \b
    bash  eval "$(skillgit completion bash)"         in ~/.bashrc
    zsh   eval "$(skillgit completion zsh)"          in ~/.zshrc
    fish  skillgit completion fish | source          in ~/.config/fish/config.fish
    """  # noqa: D301 - click reads the mark
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}", click.get_current_context())
    maker = kind(click.get_current_context().find_root().command, {}, PROGRAM, COMPLETION_VARIABLE)
    # Not source(): for bash that runs bash to look at its version, and this only has to print.
    session.output.text((maker.source_template % maker.source_vars()).strip("\n").split("\n"))


_UNBROKEN = "\b"  # what click marks a paragraph with whose lines stay as they are
_SIGNS = {"\\": r"\e", "-": r"\-", "…": r"\[u2026]", "'": r"\[aq]", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti"}


def page_name(path: str) -> str:
    return path.replace(" ", "-")


def pages(root: click.Group, name: str) -> Iterator[tuple[str, str]]:
    context = click.Context(root, info_name=name, **root.context_settings)
    yield name, page(context)
    for _, inner in _commands(context):
        yield inner.command_path, page(inner)
        yield from ((part.command_path, page(part)) for _, part in _commands(inner))


def page(context: click.Context) -> str:
    name = page_name(context.command_path)
    parts = (
        [f'.TH "{_escaped(name.upper())}" "1" "" "skillgit {_escaped(__version__)}" "skillgit"'],
        _section("NAME", [f"{_escaped(name)} \\- {_escaped(_summary(context.command))}"]),
        _section("SYNOPSIS", _synopsis(context)),
        _section("DESCRIPTION", _description(context.command)),
        _section("OPTIONS", _options(context)),
        _section("COMMANDS", _listing(context)),
        _section("SEE ALSO", [_see_also(context)]),
    )
    return "\n".join(line for part in parts for line in part) + "\n"


def _section(title: str, lines: list[str]) -> list[str]:
    return [f".SH {title}", *lines] if lines else []


def _summary(command: click.Command) -> str:
    text = command.get_short_help_str(limit=200).removesuffix(".")
    return text[:1].lower() + text[1:]


def _synopsis(context: click.Context) -> list[str]:
    words = " ".join(context.command.collect_usage_pieces(context))
    return [f"\\fB{_escaped(context.command_path)}\\fR {_escaped(words)}"]


def _description(command: click.Command) -> list[str]:
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", cleandoc(command.help or "")):
        if paragraph.lstrip("\n").startswith(_UNBROKEN):
            block = paragraph.replace(_UNBROKEN, "").strip("\n").split("\n")
            lines += [".PP", ".nf", *map(_line, block), ".fi"]
        else:
            lines += [".PP", _line(" ".join(paragraph.split()))]
    return lines[1:]  # the heading begins a paragraph by itself


def _options(context: click.Context) -> list[str]:
    lines: list[str] = []
    for param in context.command.get_params(context):
        record = param.get_help_record(context) if isinstance(param, click.Option) else None
        if record is not None:
            lines += [".TP", f"\\fB{_escaped(record[0])}\\fR", _line(" ".join(record[1].split()))]
    return lines


def _listing(context: click.Context) -> list[str]:
    lines: list[str] = []
    titles = {entries[0].name: title for title, entries in SECTIONS.items()} if context.parent is None else {}
    for name, inner in _commands(context):
        if name in titles:
            lines.append(f".SS {titles[name]}")
        summary = _summary(inner.command)
        lines += [".TP", f"\\fB{_escaped(name)}\\fR", _line(summary[:1].upper() + summary[1:])]
    return lines


def _see_also(context: click.Context) -> str:
    names = [page_name(inner.command_path) for _, inner in _commands(context)]
    if context.parent is not None:
        names.insert(0, page_name(context.parent.command_path))
    return ", ".join(f"\\fB{_escaped(name)}\\fR(1)" for name in [*names, "git"])


def _commands(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    group = context.command
    if isinstance(group, click.Group):
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if command is not None:
                yield name, click.Context(command, info_name=name, parent=context)


def _line(text: str) -> str:
    body = _escaped(text)
    # a point or a quote in front would be taken for a request
    return f"\\&{body}" if body.startswith((".", r"\[aq]")) else body


def _escaped(text: str) -> str:
    return "".join(_SIGNS.get(sign, sign if sign.isascii() else f"\\[u{ord(sign):04X}]") for sign in text)


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    words = ctx.params.get(param.name or "")
    if words:
        return []
    return [CompletionItem(name, help=entry.summary) for name, entry in ENTRIES.items() if name.startswith(incomplete)]


@verb("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_complete)
@flag("--all every", "List every command")
@flag("--man manual", "Print its manual page, for man -l -")
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...], *, every: bool, manual: bool) -> None:
    """Show the help of a command.

    It is what skillgit COMMAND --help shows. Without COMMAND it lists those of every day, with --all every one.
    """
    ctx.meta[EVERY_COMMAND] = every
    here = _context_of(ctx, words)
    session: CommandSession = ctx.obj
    if manual:
        session.output.raw(page(here).encode())
    else:
        session.output.text(here.get_help().split("\n"))


def _context_of(ctx: click.Context, words: tuple[str, ...]) -> click.Context:
    root = ctx.find_root()
    here, command = root, root.command
    for word in words:
        if not isinstance(command, click.Group):
            raise click.UsageError(f"{here.command_path} has no commands of its own", here)
        # it says what was meant if there is no such command
        name, inner, _ = command.resolve_command(here, [word])
        if inner is None:
            raise click.UsageError(f"there is no command '{word}'", here)
        here = click.Context(inner, info_name=name, parent=here)
        command = inner
    return here
