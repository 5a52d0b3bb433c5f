"""The reference of the commands is made of the commands, so it cannot say anything else.

``UPDATE_GOLDEN=1 pytest tests/cli`` writes it anew.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillgit.cli.main import cli
from skillgit.verbs.command_line import SHARED, VerbCommand
from skillgit.verbs.manual import SHARED_RULE
from skillgit.view.catalogue import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REFERENCE = Path(__file__).parents[2] / "docs" / "commands.md"
HEAD = """\
# Commands

Usage and options of every command. `skillgit COMMAND --help` and `man skillgit-COMMAND` say more.

REV names an event of a run. Every event has one of these addresses, no two of a run share one, and every screen prints
them:

| REV | the event |
|---|---|
| `v7` | what made version 7: an accepted candidate, merged guidance, an older text or an edit; `v0` starts the run |
| `r17` | the candidate of step 17, rejected |
| `s4` | step 4, skipped |
| `m2` | the reflection on epoch 2, rejected or skipped |
| `i1` | the first intervention, rejected |
| `e2` | the slow update proposed after epoch 2, whether or not it was merged |
| `b7` | the measurement of version 7, which a person wrote |
| `end` | the end of the run |

`m2` and `i1` also find a reflection and an intervention that were accepted, beside their versions. `best` is the best
version, `head` and the name of the run the newest one. `RUN/v7` is v7 of RUN, `v7` that of the default run. `v7~2` or
`v7^^` is two versions before v7; behind any other event the first step back is the version that the run stood at. Any
git revision will do too. `A..B` is what happened after A up to B. `--as-of REV` shows everything as it stood right
after REV.

Results go to stdout; progress, notes and errors go to stderr. [Scripting](scripting.md) has exit codes, `--json` and
`--plain`.

An option has one meaning wherever it stands. `-n` is `--dry-run`, and counts are `--limit N`; only `log -n N` is
`--limit` too, for git's is, and `log` does nothing that could be tried dry. `-o KEY=VALUE` is a setting,
`--output FILE` a file, `--run RUN` a run.

Colour: `--color`, then `NO_COLOR`, then `FORCE_COLOR` or `CLICOLOR_FORCE`, then whether stdout is a terminal. Pager, on
a terminal only: `SKILLGIT_PAGER`, then what git would use, then `less -FRX`.
"""


def reference() -> Iterator[str]:
    yield HEAD
    yield "## Options that commands share\n"
    yield f"{SHARED_RULE}\n"
    yield listed(SHARED)
    for title, entries in SECTIONS.items():
        yield f"## {title}\n"
        for entry in entries:
            command = cli.get_command(click.Context(cli), entry.name)
            assert command is not None
            yield f"### {entry.name}\n"
            yield from told(command, f"skillgit {entry.name}")
            for name, part in getattr(command, "commands", {}).items():
                yield f"#### {entry.name} {name}\n"
                yield from told(part, f"skillgit {entry.name} {name}")


def told(command: click.Command, path: str) -> Iterator[str]:
    yield from described(command, path)
    own = [option for option in command.params if isinstance(option, click.Option) and not option.hidden]
    if own:
        yield listed(own)
    if isinstance(command, VerbCommand):
        yield f"{command.also.removesuffix(' (skillgit help options)')}.\n"


def described(command: click.Command, path: str) -> Iterator[str]:
    context = click.Context(command, info_name=path, **cli.context_settings)
    yield f"`{path} {' '.join(command.collect_usage_pieces(context))}`\n"
    yield f"{' '.join((command.help or '').partition(chr(10) * 2)[0].split())}\n"


def listed(options: Sequence[click.Option]) -> str:
    names = (", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts)) for option in options)
    return "\n".join(f"- {name}: {option.help}" for name, option in zip(names, options, strict=True)) + "\n"


def test_the_reference_is_that_of_the_commands():
    text = "\n".join(reference())
    if os.environ.get("UPDATE_GOLDEN"):
        REFERENCE.write_text(text, encoding="utf-8")
    assert REFERENCE.read_text(encoding="utf-8") == text
