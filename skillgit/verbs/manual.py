"""Help, manual pages and completion of all commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from inspect import cleandoc
from typing import Annotated, Final

import click
from click.shell_completion import get_completion_class

from skillgit import __version__
from skillgit.app.workspace.request import Arg, MisuseError, Opt
from skillgit.verbs.command_line import OPTIONS, PROGRAM, SHARED, SharedOption, VerbCommand, verb_command
from skillgit.verbs.verb import Answer, Verb, VerbSession
from skillgit.view.catalogue import ENTRIES, SECTIONS

COMPLETION_VARIABLE: Final = "_SKILLGIT_COMPLETE"
EVERY_COMMAND: Final = "skillgit.every_command"
"""What a context notes that is to list all commands, not those of every day only."""
SHARED_RULE: Final = (
    "Options that commands share may be typed behind the command or before it: skillgit log --skill town is skillgit"
    " --skill town log. A command refuses one that means nothing to it."
)


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@dataclass(frozen=True, kw_only=True)
class CompletionRequest:
    """Put one of these lines into the file behind it.

    \b
    bash  eval "$(skillgit completion bash)"         in ~/.bashrc
    zsh   eval "$(skillgit completion zsh)"          in ~/.zshrc
    fish  skillgit completion fish | source          in ~/.config/fish/config.fish
    """  # noqa: D301 - click reads the mark

    shell: Annotated[Shell, Arg("SHELL")]


def _completion(session: VerbSession, request: CompletionRequest) -> Answer[object]:
    del session
    kind = get_completion_class(request.shell)
    if kind is None:
        raise MisuseError(f"there is no completion for {request.shell}")
    maker = kind(click.get_current_context().find_root().command, {}, PROGRAM, COMPLETION_VARIABLE)
    # Not source(): for bash that runs bash to look at its version, and this only has to print.
    return Answer(lines=(maker.source_template % maker.source_vars()).strip("\n").split("\n"))


COMPLETION = Verb("completion", CompletionRequest, _completion, forms=())


@dataclass(frozen=True, kw_only=True)
class HelpRequest:
    """It is what skillgit COMMAND --help shows. Without COMMAND it lists those of every day, with --all every one.
    As COMMAND, options explains the options that commands share.
    """

    command: Annotated[tuple[str, ...], Arg("[COMMAND]...", words="commands")] = ()
    every: Annotated[bool, Opt("List every command", "--all")] = False
    manual: Annotated[bool, Opt("Print its manual page, for man -l -", "--man")] = False


def _help(session: VerbSession, request: HelpRequest) -> Answer[object]:
    del session
    ctx = click.get_current_context()
    ctx.meta[EVERY_COMMAND] = request.every
    if request.command == (OPTIONS,) and not request.manual:
        return Answer(lines=_shared_options(ctx.find_root()).rstrip("\n").split("\n"))
    here = _context_of(ctx, () if request.command == (OPTIONS,) else request.command)
    return Answer(lines=[page(here).encode()] if request.manual else here.get_help().split("\n"))


HELP = Verb("help", HelpRequest, _help, forms=())


def _shared_options(root: click.Context) -> str:
    """Return the help of the options that commands share, with the commands that have them."""
    commands = [verb_command(name) for name, entry in ENTRIES.items() if entry.module]
    formatter = root.make_formatter()
    formatter.write_text(SHARED_RULE)
    for title, settings in (("Every command", True), ("Some commands", False)):
        with formatter.section(title):
            options = [option for option in SHARED if bool(option.lack) is not settings]
            formatter.write_dl([_with_takers(option.own_help_record(root), option, commands) for option in options])
    return formatter.getvalue()


def _with_takers(record: tuple[str, str], option: SharedOption, commands: list[VerbCommand]) -> tuple[str, str]:
    names, text = record
    if not option.lack:
        return names, text
    takers = [command.verb.name for command in commands if option.key in command.keys]
    lacking = [command.verb.name for command in commands if option.key not in command.keys]
    commands_with_it = f"all but {', '.join(lacking)}" if len(lacking) < len(takers) else ", ".join(takers)
    return names, f"{text} ({commands_with_it})"


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
        _section("OPTIONS", [*_options(context), *_shared(context)]),
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


def _shared(context: click.Context) -> list[str]:
    """Return which options that commands share a command has; the page of the program explains all of them."""
    if isinstance(context.command, VerbCommand):
        return [".PP", _line(context.command.also.replace("skillgit help options", "skillgit(1)"))]
    if context.parent is not None:
        return []
    lines = [".PP", _line(SHARED_RULE)]
    for option in SHARED:
        names, text = option.own_help_record(context)
        lines += [".TP", f"\\fB{_escaped(names)}\\fR", _line(" ".join(text.split()))]
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
