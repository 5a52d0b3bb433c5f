"""The server itself: what the tests that use it rely on."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, IncompleteRead

import pytest

from wire import KINDS, Faults, wire_server
from wire.faults import ODD, REFUSALS, chance

QUESTION = {"model": "echo", "messages": [{"role": "user", "content": "hello there"}]}


def post(wire, document=QUESTION, path="/v1/chat/completions"):
    connection = HTTPConnection("127.0.0.1", wire.port, timeout=20)
    try:
        connection.request("POST", path, body=json.dumps(document))
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("process", [False, True])
def test_questions_are_answered_and_logged(process):
    with wire_server(process=process, keep=True) as wire:
        status, body = post(wire)
        assert (status, json.loads(body)["choices"][0]["message"]["content"]) == (200, "hello there")
        (entry,) = wire.log()
        assert (entry.dialect, entry.model, entry.status, entry.delivered) == ("chat", "echo", 200, True)
        assert entry.document == QUESTION
        wire.clear()
        assert wire.log() == []
        wire.change(faults=Faults(script=("overloaded",)))
        assert post(wire)[0] == 529
        assert post(wire)[0] == 200


@pytest.mark.parametrize(
    ("path", "document", "mark"),
    [
        ("/v1/chat/completions", QUESTION, "data: [DONE]"),
        ("/openai/deployments/echo/chat/completions?api-version=1", QUESTION, "data: [DONE]"),
        ("/v1/responses", {"model": "echo", "input": "hello there"}, "response.completed"),
    ],
)
def test_streams_say_the_same_in_pieces(path, document, mark):
    with wire_server() as wire:
        status, body = post(wire, {**document, "stream": True}, path)
    assert status == 200
    assert mark in body
    assert all(word in body for word in ("hello", "there"))


def test_what_is_not_there_is_said_so():
    with wire_server() as wire:
        assert post(wire, path="/v2/nothing")[0] == 404
        assert post(wire, {**QUESTION, "model": "who"})[0] == 404
        assert post(wire, {"model": "echo"})[0] == 400
        assert post(wire, path="/openai/deployments/echo/chat/completions")[0] == 404


def test_each_fault_is_what_it_is_called():
    for kind, (status, _, _) in REFUSALS.items():
        with wire_server(faults=Faults(script=(kind,))) as wire:
            assert post(wire)[0] == status
            assert wire.log()[0].fault == kind
    with wire_server(faults=Faults(script=("reset", "truncated", "malformed", *ODD))) as wire:
        with pytest.raises(ConnectionResetError):
            post(wire)
        with pytest.raises(IncompleteRead):
            post(wire)
        with pytest.raises(ValueError, match="Expecting"):
            json.loads(post(wire)[1])
        assert {post(wire)[0] for _ in ODD} == {200}
        assert [entry.delivered for entry in wire.log()] == [False] * (3 + len(ODD) - 1) + [True]


def test_faults_depend_on_the_question_and_not_on_the_order():
    faults = Faults(rate=0.3, kinds=KINDS, seed=5)
    digests = [f"{number:x}" for number in range(400)]
    first = [faults.choose(digest, "m", number=number, seen=0) for number, digest in enumerate(digests)]
    second = [faults.choose(digest, "m", number=9, seen=0) for digest in reversed(digests)]
    assert first == second[::-1]
    assert 80 < sum(map(bool, first)) < 160
    assert set(first) == {"", *KINDS}


def test_the_same_question_does_not_fail_for_ever_unless_all_do():
    faults = Faults(rate=0.99, row=2)
    assert "" in [faults.choose("d", "m", number=9, seen=seen) for seen in range(3)]
    all_fail = Faults(rate=1.0, after=5)
    assert not all_fail.choose("d", "m", number=4, seen=0)
    assert all(all_fail.choose("d", "m", number=5, seen=seen) for seen in range(9))
    assert not Faults(rate=1.0, model="reader").choose("d", "analyst", number=9, seen=0)


def test_an_unknown_fault_is_refused():
    with pytest.raises(ValueError, match="earthquake"):
        Faults(kinds=("earthquake",))


def test_chance_is_even():
    draws = [chance(1, number) for number in range(1000)]
    assert 400 < sum(draw < 0.5 for draw in draws) < 600


def test_errors_and_models_say_what_a_test_puts_into_their_mouths():
    with wire_server(
        quote=": you sent abc", said=((r"hello", "goodbye"),), faults=Faults(script=("overloaded",))
    ) as wire:
        assert ": you sent abc" in post(wire)[1]
        assert json.loads(post(wire)[1])["choices"][0]["message"]["content"] == "goodbye there"


def test_the_server_tells_when_so_many_questions_have_arrived():
    with wire_server() as wire, ThreadPoolExecutor() as pool:
        told = pool.submit(wire.wait, 2, 20.0)
        post(wire)
        post(wire)
        assert told.result() == 2
        assert wire.wait(3, 0.01) == 2
