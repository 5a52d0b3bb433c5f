"""Schemas and sampling fields of a request, over real HTTP with the real SDKs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from wire import Faults, wire_server
from wire.schemas import schema_of

from skillgit.engine.prompt_sections import prompt
from skillgit.engine.replies import AnalysisReply, strict_schema
from skillgit.errors import BadRequestError, FatalBackendError, PromptTooLongError
from skillgit.plugin.backend import Image, Message, Request, Text, Usage, user
from skillgit_backends.claude_chat import STREAMED_FROM, ClaudeChatBackend
from skillgit_backends.claude_code_exec import ClaudeCodeExecBackend
from skillgit_backends.codex_exec import CodexExecBackend
from skillgit_backends.openai_chat import OpenAIChatBackend
from skillgit_backends.request_fields import Refusals

SCHEMA = strict_schema(AnalysisReply, prompt("analyse_failures"))
DIALECTS = ("chat", "responses", "messages")
ASKED = Request(model="claude-echo", messages=(user("hello there"),), schema=SCHEMA)
REFUSALS = (
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    "This response_format type is unavailable now",
    "output_config.format: Extra inputs are not permitted",
    "Grammar error: unimplemented keys",
    "Bad Request",
)


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    names = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT", "AZURE_OPENAI_API_KEY", "ANTHROPIC_BASE_URL")
    for name in (*names, "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MY_KEY", "sk-PLANTED-0123456789")


@pytest.fixture
def wire():
    with wire_server(keep=True) as server:
        yield server


def backend(wire, dialect):
    if dialect == "messages":
        return ClaudeChatBackend({"base_url": wire.url, "api_key_env": "MY_KEY"})
    return OpenAIChatBackend({"base_url": f"{wire.url}/v1", "api_key_env": "MY_KEY", "api": dialect})


def ask(asked, *requests):
    """Ask one after the other; return replies and errors."""

    async def work():
        answers = []
        try:
            for request in requests:
                answers += await asyncio.gather(asked.complete(request), return_exceptions=True)
        finally:
            await asked.aclose()
        return answers

    return asyncio.run(work())


def sent(wire):
    """Return of each request whether it had a schema, and the status of its answer."""
    return [(schema_of(entry.document) is not None, entry.status) for entry in wire.log()]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_schema_arrives_as_it_is_and_without_one_nothing_is_said(wire, dialect):
    with_schema, without = ask(backend(wire, dialect), ASKED, replace(ASKED, schema=None))
    assert with_schema == without
    assert sent(wire) == [(True, 200), (False, 200)]
    first, second = (entry.document for entry in wire.log())
    assert schema_of(first) == SCHEMA
    added = {"chat": "response_format", "responses": "text", "messages": "output_config"}[dialect]
    assert first.keys() - second.keys() == {added}
    if dialect != "messages":
        named = first["text"]["format"] if dialect == "responses" else first["response_format"]["json_schema"]
        assert (named["name"], named["strict"]) == ("AnalysisReply", True)


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_who_refuses_a_schema_is_asked_without_it_once_and_never_with_one_again(wire, dialect, refusal):
    wire.change(no_schema=refusal)
    asked = backend(wire, dialect)
    other = replace(ASKED, messages=(user("something else"),))
    assert [reply.text for reply in ask(asked, ASKED, other, ASKED)] == ["hello there", "something else", "hello there"]
    assert sent(wire) == [(True, 400), (False, 200), (False, 200), (False, 200)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_one_model_refuses_another_may_take(wire, dialect):
    wire.change(no_schema="no")
    asked = backend(wire, dialect)

    async def work():
        try:
            await asked.complete(ASKED)
            wire.change(no_schema="")
            await asked.complete(replace(ASKED, model="claude-echo-2"))
            await asked.complete(ASKED)
        finally:
            await asked.aclose()

    asyncio.run(work())
    assert sent(wire) == [(True, 400), (False, 200), (True, 200), (False, 200)]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_many_who_are_refused_at_once_are_all_answered(wire, dialect):
    wire.change(no_schema="no")
    asked = backend(wire, dialect)

    async def work():
        try:
            return await asyncio.gather(*(asked.complete(ASKED) for _ in range(12)))
        finally:
            await asked.aclose()

    assert len(asyncio.run(work())) == 12
    assert [status for is_asked, status in sent(wire) if not is_asked] == [200] * 12


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_question_that_is_refused_either_way_says_nothing_of_schemas(wire, dialect):
    wire.change(faults=Faults(script=("odd_item", "odd_item")))
    error, reply = ask(backend(wire, dialect), ASKED, ASKED)
    assert isinstance(error, BadRequestError)
    assert reply.text == "hello there"
    assert sent(wire) == [(True, 400), (False, 400), (True, 200)]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("fault", ["context_length", "unauthorized", "unknown_model", "rate_limit", "server_error"])
def test_a_failure_with_another_cause_is_what_it_is(wire, dialect, fault):
    wire.change(faults=Faults(script=(fault,)))
    (error,) = ask(backend(wire, dialect), ASKED)
    assert isinstance(error, Exception)
    assert isinstance(error, PromptTooLongError) == (fault == "context_length")
    assert len([entry for entry in wire.log() if not entry.path.endswith("/models")]) == 1


@pytest.mark.parametrize("refusal", ["", "no"])
def test_a_streamed_answer_has_a_schema_too(wire, refusal):
    wire.change(no_schema=refusal)
    long = replace(ASKED, max_output_tokens=STREAMED_FROM + 1)
    assert [reply.text for reply in ask(backend(wire, "messages"), long, long)] == ["hello there"] * 2
    assert all(entry.stream for entry in wire.log())
    assert sent(wire) == ([(True, 400), (False, 200), (False, 200)] if refusal else [(True, 200)] * 2)


def test_a_model_that_thinks_as_it_finds_right_keeps_its_effort_beside_the_schema(wire):
    thinking = replace(ASKED, model="claude-echo-5", reasoning_effort="high")
    (reply,) = ask(backend(wire, "messages"), thinking)
    assert reply.text == "hello there"
    assert wire.log()[0].document["output_config"]["effort"] == "high"
    assert sent(wire) == [(True, 200)]


PICTURE = Image(media_type="image/png", data="iVBORw0KGgo=", is_optional=True)
SHOWN = replace(ASKED, messages=(Message(role="user", parts=(Text(text="look: "), PICTURE)),))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("refusal", ["", "no"])
def test_who_takes_no_pictures_is_told_so_once_and_never_shown_one_again(wire, dialect, refusal):
    wire.change(blind="echo", no_schema=refusal)
    asked = backend(wire, dialect)
    first, second = ask(asked, SHOWN, SHOWN)
    assert first.text == second.text == "look: [not shown: you take no pictures]"
    assert [entry.status for entry in wire.log()] == ([400, 404, 400, 200, 200] if refusal else [404, 404, 200, 200])
    assert [is_asked for is_asked, _ in sent(wire)][-1] == (not refusal), "what it takes it is still told"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_picture_that_a_question_is_about_is_never_left_out(wire, dialect):
    wire.change(blind="echo")
    message = Message(role="user", parts=(Text(text="look: "), replace(PICTURE, is_optional=False)))
    (error,) = ask(backend(wire, dialect), replace(ASKED, messages=(message,), schema=None))
    assert isinstance(error, FatalBackendError)
    assert len(wire.log()) == 1


FIELDS = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "stop": ("END", "\n\n")}
SAID = {
    "chat": {
        "temperature": ("temperature", 0.5),
        "top_p": ("top_p", 0.9),
        "seed": ("seed", 7),
        "stop": ("stop", ["END", "\n\n"]),
    },
    "responses": {"temperature": ("temperature", 0.5), "top_p": ("top_p", 0.9)},
    "messages": {
        "temperature": ("temperature", 0.5),
        "top_p": ("top_p", 0.9),
        "stop": ("stop_sequences", ["END", "\n\n"]),
    },
}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_field_arrives_where_the_dialect_has_it_and_is_refused_where_it_has_none(wire, dialect, field):
    plain = replace(ASKED, schema=None)
    answer, _ = ask(backend(wire, dialect), replace(plain, **{field: FIELDS[field]}), plain)
    if field not in SAID[dialect]:
        assert isinstance(answer, FatalBackendError)
        assert f"model.{field}" in answer.hint
        assert len(wire.log()) == 1
        return
    first, second = (entry.document for entry in wire.log())
    name, value = SAID[dialect][field]
    assert first == second | {name: value}
    assert name not in second


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", [CodexExecBackend, ClaudeCodeExecBackend])
def test_programs_that_take_none_of_them_refuse_each_before_they_start(kind, field):
    (error,) = ask(kind({}), replace(ASKED, **{field: FIELDS[field]}))
    assert isinstance(error, FatalBackendError)
    assert f".{field}" in error.hint


def test_a_server_that_refuses_a_field_is_answered_with_its_key(wire):
    wire.change(faults=Faults(script=("odd_item",)), quote=": Unsupported parameter: 'stop'")
    (error,) = ask(backend(wire, "chat"), replace(ASKED, schema=None, stop=("END",)))
    assert isinstance(error, FatalBackendError)
    assert "model.stop" in error.hint


@pytest.mark.parametrize(("tokens", "is_asked_again"), [(None, True), (0, True), (5, False)])
def test_a_refusal_that_is_billed_is_an_answer_and_is_not_paid_twice(tokens, is_asked_again):
    usage = None if tokens is None else Usage(tokens_in=tokens, tokens_out=0)
    asked = []

    async def answer(request):
        asked.append(request.schema)
        if request.schema is not None:
            raise FatalBackendError("no", hint="", usage=usage, status_code=400)
        return "yes"

    async def work():
        return await Refusals().ask("http://h", ASKED, answer)

    if is_asked_again:
        assert asyncio.run(work()) == "yes"
    else:
        with pytest.raises(FatalBackendError):
            asyncio.run(work())
    assert asked == ([SCHEMA, None] if is_asked_again else [SCHEMA])
