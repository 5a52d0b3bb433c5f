from __future__ import annotations

import asyncio
import json
import sqlite3
from dataclasses import replace

import pytest

from skillgit.calls.client import Calls, Route
from skillgit.calls.ledger import Ledger
from skillgit.domain.cost import Caps
from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.backend import BackendInfo, Reply, Request, ToolCall, Usage, system, user
from skillgit.plugin.call_records import request_digest
from skillgit_backends.replay import ReplayBackend

USAGE = Usage(tokens_in=40, tokens_out=8, cached=30, cache_written=5, reasoning=2)


class Parrot:
    """Repeats what it hears, each time with another number."""

    info = BackendInfo(name="parrot", summary="", needs_network=False)

    def __init__(self) -> None:
        self.count = 0

    async def complete(self, request: Request) -> Reply:
        self.count += 1
        calls = (ToolCall(id="1", name="look", arguments="{}"),) if "look" in request.messages[-1].text else ()
        finish = "tool_calls" if calls else "stop"
        text = f"{request.messages[-1].text} {self.count}"
        return Reply(text=text, usage=USAGE, finish_reason=finish, tool_calls=calls)

    async def aclose(self) -> None:
        pass


async def nap(_seconds):
    pass


def record(path, *texts):
    """Ask ``texts`` through the door, each at a place of its own."""
    with Ledger.open(path) as ledger:
        route = Route(backend=Parrot(), backend_name="parrot", model="small", temperature=0.5)
        calls = Calls(routes={"target": route}, ledger=ledger, caps=Caps(), sleep=nap, random=None)

        async def work():
            return [
                await calls.call("target", "rollout", [system("s"), user(text)], draw=("place", number))
                for number, text in enumerate(texts)
            ]

        return asyncio.run(work())


def asking(text, **more):
    return Request(**({"model": "small", "messages": (system("s"), user(text)), "temperature": 0.5} | more))


def ask(path, *requests):
    async def work():
        backend = ReplayBackend({"path": str(path)})
        try:
            return [await backend.complete(request) for request in requests]
        finally:
            await backend.aclose()

    return asyncio.run(work())


def test_a_ledger_answers_what_it_recorded_with_all_that_was_said(tmp_path):
    recorded = record(tmp_path / "ledger.db", "hello", "look")
    assert ask(tmp_path / "ledger.db", asking("look"), asking("hello")) == recorded[::-1]


def test_a_ledger_that_counts_fewer_kinds_of_tokens_answers_too(tmp_path):
    recorded = record(tmp_path / "ledger.db", "hello")
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("ALTER TABLE reply DROP COLUMN cache_written")
    connection.close()
    (reply,) = ask(tmp_path / "ledger.db", asking("hello"))
    assert reply == replace(recorded[0], usage=replace(USAGE, cache_written=0))


def test_several_replies_to_the_same_request_come_in_their_order(tmp_path):
    first, second = record(tmp_path / "ledger.db", "again", "again")
    assert first != second
    assert ask(tmp_path / "ledger.db", *[asking("again")] * 3) == [first, second, first]


@pytest.mark.parametrize(
    "request_",
    [asking("other"), asking("hello", model="large"), asking("hello", temperature=None)],
)
def test_what_was_not_recorded_is_fatal_and_is_named(tmp_path, request_):
    record(tmp_path / "ledger.db", "hello")
    with pytest.raises(FatalBackendError) as caught:
        ask(tmp_path / "ledger.db", request_)
    assert request_digest(request_)[:12] in caught.value.message
    assert request_.model in caught.value.message
    assert f"a message of user: '{request_.messages[-1].text}'" in caught.value.message
    assert "same model, parameters" in caught.value.hint


def test_a_ledger_may_be_written_while_it_is_replayed_and_what_is_new_is_not_seen(tmp_path):
    path = tmp_path / "ledger.db"
    record(path, "hello")

    async def work():
        backend = ReplayBackend({"path": str(path)})
        await backend.complete(asking("hello"))
        await asyncio.to_thread(record, path, "x", "new")
        with pytest.raises(FatalBackendError, match="has no reply"):
            await backend.complete(asking("new"))
        await backend.aclose()

    asyncio.run(work())


def test_replies_that_an_older_skillgit_recorded_are_not_found_and_that_is_said(tmp_path):
    path = tmp_path / "ledger.db"
    record(path, "hello")
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE reply SET request = ''")
    connection.close()
    with pytest.raises(FatalBackendError, match="1 of its replies were recorded without their requests"):
        ask(path, asking("hello"))


def test_json_lines_answer_too(tmp_path):
    path = tmp_path / "record.jsonl"
    said = {
        "text": "",
        "finish_reason": "tool_calls",
        "tool_calls": [["1", "look", "{}"]],
        "usage": {"tokens_in": 9, "tokens_out": 1},
    }
    rows = [
        {"request": request_digest(asking("one")), "reply": "first"},
        {"request": request_digest(asking("two")), "reply": said},
    ]
    path.write_text("\n\n".join(json.dumps(row) for row in rows))
    one, two = ask(path, asking("one"), asking("two"))
    assert one == Reply(text="first", usage=Usage(tokens_in=0, tokens_out=2))
    assert two.tool_calls == (ToolCall(id="1", name="look", arguments="{}"),)
    assert (two.finish_reason, two.usage.tokens_in) == ("tool_calls", 9)


@pytest.mark.parametrize(
    "content",
    [
        b"no json\n",
        b'{"request": "x"}\n',
        b'{"request": "x", "reply": {"text": 1}}\n',
        b'{"request": "x", "reply": {"text": "a", "usage": {"tokens_in": "1"}}}\n',
        b'{"request": "x", "reply": {"text": "a", "usage": {"tokens": 1}}}\n',
        b"\xff\xfe\n",
        b"SQLite format 3\x00 and no more",
    ],
)
def test_what_is_no_record_is_refused_with_its_place(tmp_path, content):
    path = tmp_path / "record"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be replayed"):
        ask(path, asking("one"))


def test_a_ledger_without_requests_is_refused(tmp_path):
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE reply (key TEXT PRIMARY KEY, reply TEXT)")
    connection.close()
    with pytest.raises(ConfigError, match="an older skillgit wrote it"):
        ask(path, asking("one"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [({}, "nothing to answer from"), ({"path": "/nowhere.db"}, "no file /nowhere.db"), ({"pth": "x"}, "no key")],
)
def test_settings_are_checked(settings, said):
    with pytest.raises(ConfigError, match=said) as caught:
        ReplayBackend(settings)
    assert "model.replay_path" in caught.value.hint


def test_it_costs_nothing():
    price = ReplayBackend.info.prices["any-model"]
    assert (price.usd_in, price.usd_out) == (0.0, 0.0)


@pytest.mark.parametrize(
    "reply",
    [
        *("7", '["text"]', '{"text": 1}', '{"text": "a", "finish_reason": ["stop"]}', "[" * 100_000),
        *('{"text": "a", "usage": {"tokens_in": -1, "tokens_out": 1}}', '{"text": "a", "usage": 3}'),
        f'{{"text": "a", "usage": {{"tokens_in": {10**30}, "tokens_out": 1}}}}',
        f'{{"text": "a", "usage": {{"tokens_in": {"9" * 5000}, "tokens_out": 1}}}}',
    ],
)
def test_a_recorded_reply_that_is_none_is_told(tmp_path, reply):
    digest = request_digest(asking("a"))
    lines = tmp_path / "replies.jsonl"
    lines.write_text(f'{{"request": "{digest}", "reply": {reply}}}\n')
    path = tmp_path / "ledger.db"
    record(path, "a")
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE reply SET reply = ?, tokens_in = ?", (reply, -1 if "usage" in reply else 40))
    connection.close()
    for source in (lines, path):
        backend = ReplayBackend({"path": str(source)})
        with pytest.raises(ConfigError, match="cannot be replayed"):
            asyncio.run(backend.complete(asking("a")))
        asyncio.run(backend.aclose())


def test_a_record_from_before_schemas_answers_a_question_that_has_one(tmp_path):
    recorded = record(tmp_path / "ledger.db", "hello")
    schema = {"title": "Greeting", "type": "object"}
    assert ask(tmp_path / "ledger.db", asking("hello", schema=schema)) == recorded
    with pytest.raises(FatalBackendError, match="has no reply"):
        ask(tmp_path / "ledger.db", asking("other", schema=schema))
