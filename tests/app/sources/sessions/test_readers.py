"""Readers of session files: whatever a file holds, nobody but a person gives a turn, and nothing is lost unsaid."""

from __future__ import annotations

import difflib
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import planted
import pytest
import worlds
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.sources.harvest_redaction import SessionRedactor
from skillgit.app.sources.sessions.agents import READERS as AGENTS
from skillgit.app.sources.sessions.agents import Claude, Codex, Copilot, home_of
from skillgit.app.sources.sessions.session import MOST_TEXT, NoTurn, SessionAgent, patched, whole
from skillgit.errors import UsageError

RECORDED = {
    agent: json.loads((worlds.RECORDINGS / f"{agent}.json").read_text()) for agent in ("claude", "codex", "copilot")
}
READERS = {"claude": Claude.read, "codex": Codex.read, "copilot": Copilot.read}
LINES = [(agent, lines) for agent, files in RECORDED.items() for lines in files.values()]
NOISE = ("{", "[]", "null", '"text"', '{"type": "new-kind", "payload": [1]}', '{"type": ["user"], "message": 3}', "")


def unknown_file(*_: object) -> None:
    return None


def read(agent: str, lines: list[str], folder: Path):
    file = folder / "session.jsonl"
    file.write_text("\n".join(lines))
    return READERS[agent](file, unknown_file)


@pytest.mark.parametrize("agent", [agent for agent in SessionAgent if agent is not SessionAgent.ATIF])
def test_every_agent_has_a_reader_and_a_place_that_its_variable_moves(agent):
    variable, place = AGENTS[agent].home
    assert home_of(agent, {"HOME": "/h"}) == Path("/h", place)
    assert home_of(agent, {"HOME": "/h", variable: "/x"}) == Path("/x")


def test_opencode_follows_the_data_folder_of_the_user():
    environ = {"HOME": "/h", "XDG_DATA_HOME": "/d"}
    assert home_of(SessionAgent.OPENCODE, environ) == Path("/d/opencode/opencode.db")


@given(data=st.data())
def test_no_damage_of_a_file_makes_a_person_of_a_program(data, tmp_path_factory):
    agent, lines = data.draw(st.sampled_from(LINES))
    kept = [line for line in lines if data.draw(st.integers(0, 9)) or agent == "copilot"]
    for _ in range(data.draw(st.integers(0, 5))):
        kept.insert(data.draw(st.integers(0, len(kept))), data.draw(st.sampled_from(NOISE)))
    session = read(agent, kept, tmp_path_factory.mktemp("s"))
    prompts = [turn.prompt for turn in session.turns]
    assert not [text for text in prompts if text.startswith((worlds.HEADLESS, worlds.SUBAGENT, "Base directory", "<"))]


@pytest.mark.parametrize("agent", READERS)
def test_what_no_reader_knows_is_counted(agent, tmp_path):
    lines = next(iter(RECORDED[agent].values()))
    session = read(agent, [*lines[:1], "no JSON", "[1]", '{"type": "unheard-of"}', *lines[1:]], tmp_path)
    assert session.unknown["no JSON object"] == 2
    assert session.unknown["unheard-of"] == 1


def test_a_sub_agent_of_codex_gives_no_turn(tmp_path):
    lines = max(RECORDED["codex"].values(), key=len)
    meta = json.loads(lines[0])
    meta["payload"]["source"] = {"subagent": {"thread_spawn": {"parent_thread_id": "x", "depth": 1}}}
    session = read("codex", [json.dumps(meta), *lines[1:]], tmp_path)
    assert session.turns == []
    assert session.left_out[NoTurn.SUBAGENT] == 1
    assert read("codex", lines, tmp_path).turns


def test_a_command_that_was_not_run_did_not_pass(tmp_path):
    lines = max(RECORDED["claude"].values(), key=len)
    text = "\n".join(lines).replace("Exit code 1", "<tool_use_error>Blocked")
    calls = read("claude", text.split("\n"), tmp_path).turns[0].calls
    tests = [call for call in calls if call.command == "python test_app.py"]
    assert [(call.failed, call.passed) for call in tests] == [(False, False), (False, True)]


def test_a_rewind_throws_the_other_branch_away(tmp_path):
    main = max(RECORDED["claude"].values(), key=len)
    live = {turn.prompt: turn.is_live for turn in read("claude", main, tmp_path).turns}
    assert not live["count the wrong way"]
    assert live["count the right way"]


def test_versions_without_an_origin_tell_people_by_their_entry(tmp_path):
    main = [json.loads(line) for line in max(RECORDED["claude"].values(), key=len)]
    for record in main:
        for name in ("origin", "turnOrigin"):
            record.pop(name, None)
    turns = read("claude", list(map(json.dumps, main)), tmp_path).turns
    assert [turn.prompt[:14] for turn in turns][:2] == ["sum the invoic", "No, amounts ar"]
    assert not [turn for turn in turns if turn.prompt.startswith((worlds.HEADLESS, "<task", "/compact"))]


def test_a_compressed_session_is_read_or_says_what_it_needs(tmp_path, monkeypatch):
    lines = next(iter(RECORDED["codex"].values()))
    file = tmp_path / "rollout-1.jsonl.zst"
    file.write_bytes("\n".join(lines).encode())
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(UsageError, match="zstd"):
        Codex.read(file, unknown_file)
    stand_in = SimpleNamespace(ZstdDecompressor=lambda: SimpleNamespace(stream_reader=lambda stream: stream))
    monkeypatch.setitem(sys.modules, "zstandard", stand_in)
    assert Codex.read(file, unknown_file).version


@given(st.lists(st.text("ab\n", max_size=3)), st.lists(st.text("ab\n", max_size=3)))
def test_a_diff_takes_a_text_to_the_other(before, after):
    old, new = ("".join(f"{line}\n" for part in parts for line in part.split("\n")) for parts in (before, after))
    diff = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm=""))
    if old and new:
        assert patched(old, diff[2:]) == new


def test_a_diff_that_does_not_fit_is_none():
    assert patched("a\nb\n", ["@@ -1,1 +1,1 @@", "-c", "+d"]) is None


def test_a_long_text_is_cut_between_words():
    secret = planted.secrets()["anthropic"]
    text = "x " * (MOST_TEXT // 2 - 4) + secret + " y" * 9
    assert whole(text).endswith("x")
    assert whole("z" * (MOST_TEXT + 1)) == ""


REDACTOR = SessionRedactor.of(
    {"HOME": planted.secrets()["home"], "A_TOKEN": planted.secrets()["variable"]}, Path("/nowhere")
)
FORMS = {"url-password": "postgres://app:{}@db/x", "assigned": 'password = "{}"'}
AROUND = st.text(
    st.characters(codec="utf-8", exclude_categories=["L", "N"], exclude_characters="_+-./=@%&:"), max_size=8
)


@pytest.mark.parametrize("kind", planted.secrets())
@given(before=AROUND, after=AROUND, data=st.data())
def test_no_secret_is_left_whatever_is_around_it(kind, before, after, data):
    value = planted.secrets()[kind]
    text = FORMS.get(kind, "{}").format(value)
    assert value not in REDACTOR.fresh().text(f"{before} {text} {after}")
    tokens = {
        "anthropic",
        "openai",
        "github",
        "github-fine",
        "gitlab",
        "huggingface",
        "npm",
        "stripe",
        "slack",
        "google",
        "jwt",
    }
    if kind in tokens:
        places = data.draw(st.sets(st.integers(0, len(value) - 1), max_size=len(value)))
        escaped = "".join(f"\\u{ord(sign):04x}" if at in places else sign for at, sign in enumerate(value))
        assert value not in json.loads(f'"{json.dumps(REDACTOR.fresh().text(f"{before} {escaped}"))[1:-1]}"')
        assert "[redacted]" in REDACTOR.fresh().text(f"x {escaped}")
        cut = data.draw(st.integers(len(value) // 2, len(value)))
        assert value[:cut] not in REDACTOR.fresh().text(f"{before} {value[:cut]}")


@pytest.mark.parametrize("text", ["+49 151 10.20.30.40", "+1 555 010 10.20.30.40", "+49 151 12345678 10.20.30.40"])
def test_a_number_does_not_run_into_the_stand_in_of_an_address(text):
    redactor = REDACTOR.fresh()
    assert redactor.text(text).endswith(" 192.0.2.1")
    assert "12345678" not in redactor.text(text)


def test_the_same_address_has_the_same_stand_in():
    redactor = REDACTOR.fresh()
    address = planted.secrets()["email"]
    assert (
        redactor.text(f"{address}, {address} and b@c.example.org")
        == "person1@example.com, person1@example.com and b@c.example.org"
    )
    assert redactor.text(f"again {address}") == "again person1@example.com"


@pytest.mark.parametrize(
    "text", ["def total(xs):\n    return token + 1", "v1.2.3 of 2026-11-26T10:31:30", "pkg@1.2.3", "a" * 40]
)
def test_ordinary_text_stays(text):
    assert REDACTOR.fresh().text(text) == text
