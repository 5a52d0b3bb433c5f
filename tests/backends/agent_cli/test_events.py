from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.wire.json_values import fields_at, text_at
from skillgit_backends.agent_cli.process import EventLines, number_at
from skillgit_backends.claude_code_exec import ClaudeSession
from skillgit_backends.codex_exec import CodexTurn

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["type", "item", "usage"]), inner),
)


def heard(*lines: bytes) -> tuple[list[object], str]:
    events: list[object] = []
    reader = EventLines(give=events.append)
    for line in lines:
        reader.take(line)
    return events, reader.noise


def test_events_come_one_on_a_line_or_as_a_list():
    assert heard(b'{"a": 1}', b'[{"b": 2}, 3, {"c": 4}]')[0] == [{"a": 1}, {"b": 2}, {"c": 4}]


def test_what_is_no_event_is_kept_as_noise_and_does_not_grow():
    events, noise = heard(b"Not logged in", b"\xff\xfe", b"", b"[" * 100_000, b"x" * 10_000)
    assert events == []
    assert len(noise) <= 4096
    assert "Not logged in" in heard(b"Not logged in", b"1")[1]


def test_paths_that_lead_nowhere_give_nothing():
    event = {"a": {"b": "text", "n": 2.0, "t": True}}
    assert text_at(event, "a", "b") == "text"
    assert text_at(event, "a", "b", "c") == text_at(event, "a", "n") == ""
    assert number_at(event, "a", "n") == 2
    assert number_at(event, "a", "t") == number_at(event, "x") == 0
    assert fields_at(event, "a", "b") == {}


@given(
    st.sampled_from(
        ["thread.started", "item.completed", "turn.completed", "turn.failed", "error", "result", "assistant", "new"]
    ),
    st.dictionaries(
        st.sampled_from(["item", "usage", "error", "message", "result", "modelUsage", "subtype"]), json_values
    ),
)
def test_no_shape_of_an_event_breaks_a_protocol(kind: str, rest: dict[str, object]):
    turn, session = CodexTurn(), ClaudeSession()
    turn.hear({**rest, "type": kind})
    session.hear({**rest, "type": kind})
    assert turn.usage is None or turn.usage.tokens_in >= 0
    assert isinstance(session.is_failed, bool)
    assert isinstance(session.answer, str)
    assert session.usage is None or session.usage.cached is not None


ABSURD = [10**30, -1, 1.5, float("nan"), float("inf"), "12", [], {}, True, 10**10]


@pytest.mark.parametrize("absurd", ABSURD)
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "cached_input_tokens", "reasoning_output_tokens"])
def test_an_absurd_usage_of_codex_is_unknown(name, absurd):
    turn = CodexTurn()
    counts = {"input_tokens": 5, "output_tokens": 2, name: absurd}
    EventLines(give=turn.hear).take(json.dumps({"type": "turn.completed", "usage": counts}).encode())
    assert turn.is_complete
    assert turn.usage is None


@pytest.mark.parametrize("absurd", ABSURD)
@pytest.mark.parametrize("name", ["input_tokens", "output_tokens", "cache_read_input_tokens"])
@pytest.mark.parametrize("by_model", [False, True])
def test_an_absurd_usage_of_claude_code_is_unknown(name, absurd, by_model):
    session = ClaudeSession()
    counts = {"input_tokens": 5, "output_tokens": 2, name: absurd}
    names = {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cache_read_input_tokens": "cacheReadInputTokens",
    }
    usage = (
        {"modelUsage": {"m": {names[key]: value for key, value in counts.items()}}} if by_model else {"usage": counts}
    )
    EventLines(give=session.hear).take(json.dumps({"type": "result", "result": "hi"} | usage).encode())
    assert session.answer == "hi"
    assert session.usage is None


@pytest.mark.parametrize(
    "line", [b"[" * 100_000, b"[" + b"{}," * 2_000_000 + b"{}]", b'{"type": ' + b"9" * 5000 + b"}"]
)
def test_a_line_beyond_measure_is_no_event(line):
    session = ClaudeSession()
    EventLines(give=session.hear).take(line)
    assert session == ClaudeSession()
