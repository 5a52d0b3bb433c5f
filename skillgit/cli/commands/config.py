"""``skillgit config``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from skillgit.cli.options import complete_configs, list_forms, override_option
from skillgit.cli.output import Form
from skillgit.cli.render.columns import table
from skillgit.cli.render.documents import plain_value
from skillgit.cli.screen import Style
from skillgit.cli.verb import verb

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.config import Entry
    from skillgit.cli.screen import Screen
    from skillgit.cli.session import Session


@verb("config")
@click.argument("config", shell_complete=complete_configs)
@override_option
@click.option("--show-origin", is_flag=True, help="Show where each value comes from")
@list_forms
@click.pass_obj
def command(session: Session, config: str, overrides: tuple[str, ...], *, show_origin: bool, form: Form) -> None:
    """Show the settings that CONFIG amounts to.

    Each line can be given to train with -o.
    """
    from skillgit.app.config import load_config  # noqa: PLC0415 - see the package

    resolved = load_config(session.context, config, overrides)
    entries = resolved.entries
    if form is Form.JSON:
        settings = [{"key": entry.key, "value": entry.value, "origin": str(entry.origin)} for entry in entries]
        body = {"name": resolved.name, "path": resolved.path, "digest": resolved.digest, "settings": settings}
        session.output.document("config/1", {**body, "notes": resolved.notes})
    elif form is Form.JSONL:
        session.output.records(
            {"key": entry.key, "value": entry.value, "origin": str(entry.origin)} for entry in entries
        )
    elif form is Form.TEXT:
        session.output.text(_lines(entries, session.screen, origins=show_origin))
    else:
        cells = ((entry.key, _value(entry.value), str(entry.origin)) for entry in entries)
        session.output.table(cells, nul=form is Form.NUL)
    if form is Form.TEXT:
        for note in resolved.notes:
            session.diagnostics.note(note)


def _lines(entries: Sequence[Entry], screen: Screen, *, origins: bool) -> Iterator[str]:
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
