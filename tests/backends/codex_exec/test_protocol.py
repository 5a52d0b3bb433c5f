from __future__ import annotations

from skillgit.plugin.backend import Usage
from skillgit_backends.codex_exec import CodexTurn


def completed(tokens_in: int, tokens_out: int) -> dict[str, object]:
    usage = {
        "input_tokens": tokens_in,
        "output_tokens": tokens_out,
        "cached_input_tokens": tokens_in // 2,
        "cache_write_input_tokens": tokens_in // 4,
    }
    return {"type": "turn.completed", "usage": usage}


def test_usage_is_what_was_added_to_the_threads():
    turn = CodexTurn(before=Usage(tokens_in=1200, tokens_out=20, cached=600, cache_written=300))
    turn.hear(completed(2400, 50))
    assert turn.usage == Usage(tokens_in=1200, tokens_out=30, cached=600, cache_written=300)


def test_the_last_count_of_a_thread_is_the_whole():
    turn = CodexTurn()
    for count in (1200, 2400, 3600):
        turn.hear(completed(count, 1))
    assert turn.usage is not None
    assert turn.usage.tokens_in == 3600


def test_an_error_that_the_turn_survives_is_none():
    turn = CodexTurn()
    turn.hear({"type": "error", "message": "Reconnecting... 1/5"})
    assert turn.failure
    turn.hear(completed(1, 1))
    assert not turn.failure
    turn.hear({"type": "turn.failed", "error": {"message": "no"}})
    assert (turn.failure, turn.is_complete) == ("no", False)
