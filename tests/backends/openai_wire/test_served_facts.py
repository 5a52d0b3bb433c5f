"""What servers say about the model that they serve, and which of it tells weights apart."""

from __future__ import annotations

import asyncio

import pytest
from served import MODEL, llama_cpp, ollama

from skillgit.domain.served_model import compact_facts, read_facts, write_facts
from skillgit_backends.openai_wire.served_facts import served_facts

URL = "http://127.0.0.1:1/v1"


def facts_of(says, model: str = MODEL) -> dict[str, object]:
    async def ask(path: str) -> object:
        return says.get(path.removeprefix("http://127.0.0.1:1") if "://" in path else f"/v1{path}")

    return {name: value for name, value in asyncio.run(served_facts(ask, URL, model)).items() if value is not None}


def entry(**fields: object) -> dict[str, object]:
    return {"/v1/models": {"data": [{"id": MODEL, **fields}]}}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (llama_cpp("a.gguf", created=1), llama_cpp("a.gguf", created=2)),
        (ollama("aa", created=1), ollama("aa", created=2)),
        (entry(created=1, owned_by="vllm"), entry(created=2, owned_by="vllm")),
        (entry(permission=[{"id": "modelperm-1"}]), entry(permission=[{"id": "modelperm-2"}])),
        (entry(state="loaded"), entry(state="not-loaded")),
    ],
)
def test_what_changes_with_each_start_is_no_fact(one, other):
    assert facts_of(one) == facts_of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (llama_cpp("a.gguf", created=1), llama_cpp("b.gguf", created=1)),
        (llama_cpp("a.gguf", created=1, size=1), llama_cpp("a.gguf", created=1, size=2)),
        (llama_cpp("a.gguf", created=1, build="b1"), llama_cpp("a.gguf", created=1, build="b2")),
        (ollama("aa", created=1), ollama("bb", created=1)),
        (entry(root="/home/me/out/checkpoint-1/model"), entry(root="/home/me/out/checkpoint-2/model")),
        (entry(parent="base-a"), entry(parent="base-b")),
        (entry(digest="sha256:1"), entry(digest="sha256:2")),
        (entry(owned_by="vllm"), entry(owned_by="sglang")),
    ],
)
def test_what_changes_with_the_weights_is_a_fact(one, other):
    assert compact_facts(facts_of(one)) != compact_facts(facts_of(other))


@pytest.mark.parametrize("says", [{}, {"/v1/models": []}, {"/v1/models": {"data": "x"}}, {"/v1/models": {"data": [1]}}])
def test_a_server_that_says_nothing_has_no_facts(says):
    assert facts_of(says) == {}


def test_a_server_with_one_model_is_taken_at_its_word_whatever_it_is_asked_for():
    assert facts_of(llama_cpp("a.gguf", created=1), model="anything")["name"] == "a.gguf"


def test_a_path_of_a_machine_is_not_published():
    facts = str(facts_of(entry(root="/home/alice/models/final")))
    assert "alice" not in facts
    assert "final~" in facts


def test_long_facts_have_room_in_a_trailer_and_stay_different():
    one, other = ({f"fact{number}": f"{'x' * 90}{last}" for number in range(20)} for last in "ab")
    short = compact_facts(one)
    assert len(write_facts(short)) < 200
    assert short != compact_facts(other)
    assert read_facts(write_facts(short)) == short
