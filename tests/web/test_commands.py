from __future__ import annotations

import signal
import time
from datetime import UTC, datetime
from itertools import count

import pytest
from program import new_repository, surroundings
from served import DEADLINE_S, page_server

from skillgit.app.workspace import command_journal
from skillgit.app.workspace.command_journal import command, commands, interrupt, output, start_command
from skillgit.app.workspace.context import Context


@pytest.fixture
def context(tmp_path):
    numbers = count()
    return Context(
        directory=new_repository(tmp_path / "repository"),
        environ=surroundings(),
        clock=lambda: datetime(2026, 11, 25, tzinfo=UTC),
        entropy=lambda length: next(numbers).to_bytes(length, "big"),
    )


def ended(context, record):
    deadline = time.monotonic() + DEADLINE_S
    while (now := command(context, record.id)).runs:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return now


def test_a_command_is_known_by_who_ran_it_what_it_printed_and_how_it_ended(context):
    record = start_command(context, ["show", "nope"], by="Ada", back="/x")
    over = ended(context, record)
    assert (over.by, over.words, over.back, over.exit_code) == ("Ada", ("show", "nope"), "/x", 3)
    assert "there is no revision 'nope'" in output(context, over)
    assert commands(context) == (over,)


def test_a_command_survives_who_started_it_and_is_found_again(context, monkeypatch):
    script = context.directory.parent / "slow.py"
    script.write_text("import time\nprint('begun', flush=True)\ntime.sleep(600)\n")
    monkeypatch.setattr(command_journal, "_command", lambda *_: (command_journal.sys.executable, str(script)))
    record = start_command(context, [], by="Ada")
    deadline = time.monotonic() + DEADLINE_S
    while "begun" not in output(context, record):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    with page_server(context.directory) as server:
        visitor = server.visitor()
        page = visitor.get(f"/activity/{record.id}").text
        assert f'data-live="/activity/{record.id}/stream"' in page
        assert "begun" in page
        with visitor.stream("GET", f"/activity/{record.id}/stream") as stream:
            assert next(line for line in stream.iter_lines() if "begun" in line).startswith('data: {"part": "command"')
    interrupt(context, record)
    over = ended(context, record)
    assert over.exit_code == 128 + signal.SIGINT
    assert "KeyboardInterrupt" in output(context, over)


def test_of_much_output_the_end_is_kept_and_no_credential(context, monkeypatch):
    monkeypatch.setattr(command_journal, "_SHOWN", command_journal.MOST)
    script = context.directory.parent / "loud.py"
    script.write_text("for number in range(300_000): print(number, 'words')\nprint('ghp_' + 'a1' * 18)\n")
    monkeypatch.setattr(command_journal, "_command", lambda *_: (command_journal.sys.executable, str(script)))
    text = output(context, ended(context, start_command(context, [], by="Ada")))
    assert text.splitlines()[-2:] == ["299999 words", "[redacted]"]
    assert len(text) <= command_journal.MOST
    assert "left out" in text.splitlines()[0]


def test_a_damaged_journal_keeps_what_is_whole(context):
    record = ended(context, start_command(context, ["runs"], by="Ada"))
    journal = context.directory / ".git/skillgit/serve/activity.jsonl"
    with journal.open("a") as file:
        file.write('{"id": "torn\n[]\nnull\n{"id": 7}\n{"id": "x", "time": "y", "by": "z", "words": []}\n{"id": "cut')
    later = ended(context, start_command(context, ["runs"], by="Grace"))
    assert commands(context) == (later, record)


def test_a_credential_in_a_command_is_not_written_down(context):
    record = ended(context, start_command(context, ["note", "demo/v1", "ghp_" + "a1" * 18], by="Ada"))
    assert record.words == ("note", "demo/v1", "[redacted]")
    journal = context.directory / ".git/skillgit/serve/activity.jsonl"
    assert "ghp_" not in journal.read_text()
