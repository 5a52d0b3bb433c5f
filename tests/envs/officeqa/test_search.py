from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit.plugin.backend import Reply, ToolCall, Usage
from skillgit_envs.officeqa import OfficeQA
from skillgit_envs.search_service import SearchService

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "planted-0123456789abcdef"  # noqa: S105 - it opens nothing
FOUND = [{"title": "Calder", "url": "https://example.org/c", "snippet": "Customs 187.9"}, {"name": "B", "link": "l"}]


class Service:
    """A search service on the loopback that answers as it is told to."""

    def __init__(self) -> None:
        self.status, self.body, self.headers = 200, json.dumps({"results": FOUND}).encode(), {}
        self.silent = threading.Event()
        self.asked: list[tuple[dict[str, str], dict[str, object]]] = []
        self.url = ""

    def handler(self) -> type[BaseHTTPRequestHandler]:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.asked.append(({k.lower(): v for k, v in self.headers.items()}, json.loads(body)))
                if service.status == 0:
                    service.silent.wait(30)
                    return
                self.send_response(service.status)
                for name, value in service.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(service.body)))
                self.end_headers()
                self.wfile.write(service.body)

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        return Handler


@pytest.fixture
def service() -> Iterator[Service]:
    found = Service()
    server = ThreadingHTTPServer(("127.0.0.1", 0), found.handler())
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}/search"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.silent.set()
    server.shutdown()
    thread.join()
    server.server_close()


def ask(service: Service, **options: object) -> str:
    return asyncio.run(SearchService(url=service.url, **options).ask("customs"))


def test_a_question_goes_out_and_results_come_back(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PLANTED", TOKEN)
    text = ask(service, token_variable="PLANTED", provider="web", most=2)  # noqa: S106 - a variable's name
    ((headers, asked),) = service.asked
    assert asked == {"query": "customs", "max_num_results": 2, "provider": "web"}
    assert headers["authorization"] == TOKEN
    assert text == "1. Calder\nhttps://example.org/c\nCustoms 187.9\n\n2. B\nl"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (["one", "two"], "1. one"),
        ({"data": [{"title": "x", "content": "y"}]}, "1. x\ny"),
        ({"hits": []}, "no result"),
        ({"total": 0, "items": [{"href": "h", "text": " t "}]}, "1. h\nt"),
        ({"results": [{"text": "x" * 9000}]}, "1. " + "x" * 2000),
    ],
)
def test_usual_forms_of_results_are_read(service: Service, answer: object, text: str):
    service.body = json.dumps(answer).encode()
    assert ask(service, most=1) == text
    assert "authorization" not in service.asked[0][0]


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (429, b"", "answered with status 429"),
        (500, b"{}", "answered with status 500"),
        (302, b"", "answered with status 302"),
        (200, b"<html>", "something that is not JSON"),
        (200, b'{"found": []}', "without a list of results"),
        (200, b'"text"', "without a list of results"),
        (200, b" " * 4_000_001, "more than 4 MB"),
    ],
)
def test_a_service_that_fails_is_a_fault(service: Service, status: int, body: bytes, message: str):
    service.status, service.body = status, body
    service.headers = {"Location": f"{service.url}/elsewhere"}
    with pytest.raises(EnvironmentFaultError, match=f"the search service at 127.0.0.1 .*{message}"):
        ask(service)
    assert len(service.asked) == 1, "nothing is repeated, and no redirection is followed"


def test_a_service_that_is_silent_or_away_is_a_fault(service: Service):
    service.status = 0
    with pytest.raises(EnvironmentFaultError, match=r"did not answer within 0\.2 seconds"):
        ask(service, seconds=0.2)
    with pytest.raises(EnvironmentFaultError, match="cannot be reached"):
        asyncio.run(SearchService(url="http://127.0.0.1:1/").ask("x"))


@pytest.mark.parametrize(
    "url",
    [
        "http://search.example.org/v1",
        "http://192.168.0.7/v1",
        "http://127.0.0.1.example.org/",
        "https://name:secret@search.example.org",
        "ftp://search.example.org",
        "search.example.org",
        "https://",
    ],
)
def test_only_https_is_accepted_but_on_this_machine(tmp_path: Path, url: str):
    with pytest.raises(ConfigError, match=r"env\.search_url is not an https address") as caught:
        OfficeQA({"search_url": url}, tmp_path)
    assert "secret" not in str(caught.value)
    for here in ("https://search.example.org/v1", "http://localhost:8080", "http://127.0.0.2/x", "http://[::1]:9/"):
        assert SearchService(url=here).url == here


def test_limits_have_to_be_above_nothing(tmp_path: Path):
    for option in ("search_max_num_results", "search_timeout_seconds"):
        with pytest.raises(ConfigError, match=option):
            OfficeQA({"search_url": "https://search.example.org", option: 0}, tmp_path)


def test_a_token_that_is_not_set_is_told_before_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PLANTED", raising=False)
    environment = OfficeQA({"search_url": "https://search.example.org", "search_auth_env": "PLANTED"}, tmp_path)
    with pytest.raises(ConfigError, match="the variable PLANTED is not set"):
        environment.items(Split.TRAIN)


class Searches:
    """A model that searches once, then answers."""

    def __init__(self) -> None:
        self.heard: list = []

    async def chat(self, messages, tools=()):
        self.heard = [message.text for message in messages]
        usage = Usage(tokens_in=1, tokens_out=1)
        if messages[-1].role == "tool":
            return Reply(text="<answer>187.9</answer>", usage=usage)
        assert "search" in [tool.name for tool in tools]
        calls = tuple(ToolCall(id=text, name="search", arguments=text) for text in ('{"query": "customs"}', "{}"))
        return Reply(text="", usage=usage, finish_reason="tool_calls", tool_calls=calls)


@pytest.mark.parametrize("local", [True, False])
def test_the_target_may_search_beside_the_documents_or_without_them(tmp_path: Path, service: Service, *, local: bool):
    environment = OfficeQA({"search_url": service.url, "use_local_tools": local}, tmp_path)
    item, target = environment.items(Split.TRAIN)[0], Searches()
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), target))
    assert "Customs 187.9" in target.heard[-2]
    assert target.heard[-1].startswith("error: search needs the argument 'query'")
    assert trajectory.answer == "187.9"
    service.status = 503
    with pytest.raises(EnvironmentFaultError, match="answered with status 503"):
        asyncio.run(environment.rollout(item, environment.seed_skill(), target))
