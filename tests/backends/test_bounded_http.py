"""What a server can do to a backend with its answer, over real HTTP with the real SDKs."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import zlib

import pytest
from soaking import soak
from wire.rough import Rough, rough_server
from wire.small_answers import DIALECTS, KEY, backend

from skillgit.domain.untrusted.json_limits import MOST_BYTES
from skillgit.errors import BackendError, FatalBackendError, RetryableBackendError
from skillgit.plugin.backend import Request, user
from skillgit_backends.claude_chat import STREAMED_FROM

PROMPT = "the prompt that nobody else may see"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)


def ask(dialect, url):
    limit = STREAMED_FROM + 1 if dialect == "claude streamed" else 16384

    async def work():
        asked = backend(dialect, url)
        try:
            return await asked.complete(Request(model="m", messages=(user(PROMPT),), max_output_tokens=limit))
        finally:
            await asked.aclose()

    return asyncio.run(work())


def failed(dialect, url, kind=BackendError):
    with pytest.raises(kind) as caught:
        ask(dialect, url)
    assert KEY not in f"{caught.value} {caught.value.hint}"
    return caught.value


def bomb(coding, size=2 << 30):
    """Yield a compressed body of so many blanks."""
    packer = zlib.compressobj(6, zlib.DEFLATED, 31 if coding == "gzip" else 15)
    for _ in range(size >> 20):
        yield packer.compress(b" " * (1 << 20))
    yield packer.flush()


def endless(piece=b" " * (1 << 16)):
    while True:
        yield piece


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_an_answer_is_read_plain_and_compressed(dialect, coding):
    body = DIALECTS[dialect]
    headers = {"content-encoding": coding} if coding else {}
    with rough_server(lambda _: Rough(pieces=[gzip.compress(body) if coding else body], headers=headers)) as server:
        reply = ask(dialect, server.url)
    assert (reply.text, reply.usage.tokens_in, reply.usage.tokens_out) == ("hi", 3, 2)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("coding", ["gzip", soak("deflate")])
def test_a_bomb_of_two_gigabytes_is_left_after_a_few_megabytes(dialect, coding):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with rough_server(lambda _: Rough(pieces=bomb(coding), headers={"content-encoding": coding})) as server:
        error = failed(dialect, server.url, RetryableBackendError)
    assert "longer than 32 MiB when it is decompressed" in error.message
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300 << 10


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_body_without_an_end_is_left(dialect):
    with rough_server(lambda _: Rough(pieces=endless())) as server:
        error = failed(dialect, server.url, RetryableBackendError)
        assert MOST_BYTES < server.sent < 2 * MOST_BYTES
    assert "longer than 32 MiB" in error.message
    assert "base_url" in error.hint


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_is_decompressed_twice(dialect):
    body = gzip.compress(gzip.compress(DIALECTS[dialect]))
    with rough_server(lambda _: Rough(pieces=[body], headers={"content-encoding": "gzip, gzip"})) as server:
        assert "compressed more than once" in failed(dialect, server.url, RetryableBackendError).message


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_follows_a_compressed_body_is_not_read_for_ever(dialect):
    def pieces():
        yield gzip.compress(DIALECTS[dialect])
        yield from endless(b"\0" * (1 << 16))

    with rough_server(lambda _: Rough(pieces=pieces(), headers={"content-encoding": "gzip"})) as server:
        failed(dialect, server.url, RetryableBackendError)
        assert server.sent < MOST_BYTES


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_the_body_of_an_error_is_cut_and_its_status_counts(dialect, coding):
    headers = {"content-encoding": coding} if coding else {}
    pieces = (lambda: bomb(coding)) if coding else endless
    with rough_server(lambda _: Rough(status=503, pieces=pieces(), headers=headers)) as server:
        error = failed(dialect, server.url, RetryableBackendError)
        assert server.sent < 8 << 20
    assert error.status_code == 503


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("headers", [{"x-long": "y" * 1_000_000}, {f"x-{n}": "y" for n in range(10_000)}])
def test_headers_beyond_measure_are_a_failure(dialect, headers):
    with rough_server(lambda _: Rough(headers=headers)) as server:
        failed(dialect, server.url, RetryableBackendError)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", [307, *map(soak, [301, 302, 303, 308])])
@pytest.mark.parametrize("to", ["another port", "another host", "another scheme", "no address", "without a scheme"])
def test_no_redirect_leaves_the_server_that_is_configured(dialect, status, to):
    with rough_server() as other, rough_server() as server:
        port = other.url.rpartition(":")[2]
        here = server.url.removeprefix("http:")
        place = {
            "another port": other.url,
            "another host": f"http://localhost:{port}",
            "another scheme": f"https:{here}",
            "no address": "http://127.0.0.1:port",
            "without a scheme": f"//localhost:{port}",
        }[to]
        server.answer = lambda _: Rough(status=status, headers={"location": f"{place}/v1/chat/completions"})
        error = failed(dialect, server.url, FatalBackendError)
        assert len(server.asked) == 1
        assert other.asked == []
    if to == "no address":
        assert "an address that cannot be read" in error.message
        return
    named = f"http:{place}" if place.startswith("//") else place
    assert f"redirects to {named}, which is not followed" in error.message
    assert "_base_url" in error.hint


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_within_the_server_that_keeps_the_question_is_followed(dialect, status):
    def answer(asked):
        if asked.path.startswith("/there"):
            return Rough(pieces=[DIALECTS[dialect]])
        return Rough(status=status, headers={"location": f"/there{asked.path}"})

    with rough_server(answer) as server:
        assert ask(dialect, server.url).text == "hi"
        first, second = server.asked
    assert (first.method, first.body) == (second.method, second.body)
    keys = ("authorization", "x-api-key")
    assert [first.headers.get(key) for key in keys] == [second.headers.get(key) for key in keys]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_redirect_that_drops_the_question_is_no_answer(dialect, status):
    with rough_server(lambda _: Rough(status=status, headers={"location": "/login"})) as server:
        error = failed(dialect, server.url, FatalBackendError)
        assert len(server.asked) == 1
    assert f"redirects ({status}) instead of answering" in error.message


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_circle_of_redirects_ends(dialect):
    with rough_server(lambda _: Rough(status=307, headers={"location": "/again"})) as server:
        assert "again and again" in failed(dialect, server.url, FatalBackendError).message
        assert len(server.asked) == 4


def test_a_list_of_models_is_asked_for_within_the_same_limits():
    async def work(url):
        asked = backend("compatible", url)
        try:
            return await asked.context("m")
        finally:
            await asked.aclose()

    models = json.dumps({"data": [{"id": "m", "context_length": 4096}]}).encode()
    with rough_server() as other, rough_server(lambda _: Rough(pieces=[models])) as server:
        assert asyncio.run(work(server.url)) == 4096
        for answer in (
            Rough(status=302, headers={"location": f"{other.url}/v1/models"}),
            Rough(pieces=bomb("gzip"), headers={"content-encoding": "gzip"}),
            Rough(pieces=[json.dumps({"data": [{"id": "m", "context_length": 10**30}]}).encode()]),
            Rough(pieces=[b"[" * 100_000]),
        ):
            server.answer = lambda _, answer=answer: answer
            assert asyncio.run(work(server.url)) is None
        assert other.asked == []
