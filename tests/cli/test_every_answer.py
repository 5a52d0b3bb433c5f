"""What every command that reads answers about the recorded run, for people at two widths and for programs.

``UPDATE_GOLDEN=1 pytest tests/cli`` writes the answers; each later change of one is seen in its difference.
"""

from __future__ import annotations

import io
import json
import os
import shlex
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from program import git, skillgit

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.workspace import Workspace
from skillgit.cli.diagnostics import Diagnostics
from skillgit.cli.output import Output
from skillgit.cli.session import CommandSession
from skillgit.errors import SkillgitError
from skillgit.verbs.command_line import read_words, verb_of
from skillgit.verbs.verb import Effect, Form
from skillgit.view.catalogue import ENTRIES
from skillgit.view.surface import Screen

GOLDEN = Path(__file__).parent / "golden" / "answers"
LEFT = 2  # rows of a list in a document that are written

COMMANDS = {
    "runs": ["runs", "runs --sort -gain", "runs --filter score>.5", "runs --filter score>.9"],
    "status": ["status"],
    "log": [
        "log",
        "log --graph",
        "log v0..v1",
        "log --no-rejected -n 2",
        "log --stat",
        "log --grep format",
        "log v9",
    ],
    "show": ["show v0", "show v2", "show end", "show v1 --stat", "show v2 --settings", "show nothing"],
    "diff": ["diff v0 v2", "diff v1 v2 --rules", "diff v0 v2 --items", "diff v0..v2 --stat", "diff v2 --side-by-side"],
    "blame": ["blame v2"],
    "why": ["why 12", "why nothing-like-that"],
    "items": ["items", "items --flaky", "items --models", "items --checks", "items --item no-such"],
    "cost": ["cost", "cost --by step", "cost --by version", "cost --all"],
    "note": ["note --list"],
    "install": ["install --list"],
    "plugins": ["plugins", "plugins replay", "plugins tasks"],
    "rev-parse": ["rev-parse --short v2 v0..v1"],
    "fsck": ["fsck", "fsck slips --deep", "fsck nothing"],
    "lint": ["lint", "lint --strict v2", "lint --secrets", "lint nothing"],
    "config": ["config nothing"],
    "sql": ["sql 'select run, version, score from log limit 3'"],
}
"""By command, what it is asked; commands that change something have tests of their own."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """Return a repository with the recorded run ``slips``, and the time when it ended."""
    folder = tmp_path_factory.mktemp("once") / "slips"
    folder.mkdir()
    skillgit("init", cwd=folder)
    skillgit("train", "recorded", "--run", "slips", cwd=folder)
    ended = git("log", "-1", "--format=%cI", "run/slips", cwd=folder).out.strip()
    return folder, datetime.fromisoformat(ended) + timedelta(hours=1)


def answer(place, words, form, width=0):
    """Return what a command prints on stdout and on stderr, and how it ends."""
    folder, now = place
    context = Context(directory=folder, environ={}, clock=lambda: now, entropy=lambda length: b"\1" * length)
    out, notes = io.BytesIO(), io.StringIO()
    screen = Screen(terminal=bool(width), unicode=True, width=width)
    session = CommandSession(
        workspace=Workspace(context, still=True),
        output=Output(out, screen=screen, encoding="utf-8", pager=lambda: None),
        diagnostics=Diagnostics(notes, Screen(unicode=True)),
    )
    verb, request = read_words(words)
    assert verb.effect_of(request) is Effect.READS
    try:
        with Workspace(context, request, still=True) as workspace:
            asked = replace(session, workspace=workspace, form=form)
            end = verb.run(asked, request)
            asked.present(end)
            code = int(end.exit_code)
    except SkillgitError as error:
        code = int(session.diagnostics.failed(error))
    return out.getvalue().decode(), notes.getvalue(), code


def cut(value):
    """Return a document with only the first rows of its lists."""
    if isinstance(value, dict):
        return {name: cut(inner) for name, inner in value.items()}
    if isinstance(value, list):
        rest = [f"… {len(value) - LEFT} more"] if len(value) > LEFT else []
        return [*map(cut, value[:LEFT]), *rest]
    return value


def written(place, line):
    words = shlex.split(line)
    verb, _ = read_words(words)
    parts = []
    for width in (80, 140):
        out, notes, code = answer(place, words, Form.TEXT, width)
        parts.append(f"## {line} · {width} columns · exit {code}\n{out}{notes and '--- stderr' + chr(10)}{notes}")
    if Form.JSON in verb.forms:
        out, _, code = answer(place, words, Form.JSON)
        document = json.dumps(cut(json.loads(out)), indent=1, ensure_ascii=False) if out else ""
        parts.append(f"## {line} --json · exit {code}\n{document}\n")
    if Form.PLAIN in verb.forms:
        out, _, code = answer(place, words, Form.PLAIN)
        rows = out.splitlines(keepends=True)
        parts.append(f"## {line} --plain · exit {code}\n{''.join(rows[:LEFT])}{len(rows)} rows\n")
    return "\n".join(parts)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_answers_as_it_did(name, recorded):
    path = GOLDEN / f"{name.replace(' ', '-')}.txt"
    text = "\n".join(written(recorded, line) for line in COMMANDS[name]).replace(str(recorded[0]), "FOLDER")
    text = text.replace(str(Path(__file__).parents[2]), "SOURCE")
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_every_verb_that_reads_is_asked():
    readers = {name for name, entry in ENTRIES.items() if entry.module and verb_of(name).effect is Effect.READS}
    assert readers - {"mcp", "tui", "help", "completion"} <= set(COMMANDS)
