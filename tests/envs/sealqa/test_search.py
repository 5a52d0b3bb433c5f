"""The tools of SealQA: three who answer a search, and an opener that asks only what a search has named."""

from __future__ import annotations

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train
from saying import Says
from wire.scripted import TARGET

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError
from skillgit.plugin.backend import Reply, ToolCall, Usage
from skillgit.plugin.environment import call_bounds
from skillgit_envs.sealqa import SealQA, web_pages
from skillgit_envs.sealqa.search import LONGEST_PAGE, FolderSearch, RecordedSearch, SearchTools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FERRY = {"title": "Ferry", "url": "https://example.org/ferry", "snippet": "Two decks.", "page": "It has two decks."}
BARE = {"title": "Old", "url": "https://example.org/old"}


def calling(name: str, **arguments: object) -> Reply:
    call = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
    return Reply(text="", usage=Usage(tokens_in=1, tokens_out=1), finish_reason="tool_calls", tool_calls=(call,))


def use(toolbox: SearchTools, name: str, **arguments: object) -> str:
    return asyncio.run(toolbox.execute(ToolCall(id="1", name=name, arguments=json.dumps(arguments))))


def recorded(folder: Path, *rows: object, most: int = 4) -> SearchTools:
    path = folder / "searches.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    provider = RecordedSearch(path=path, most=most)
    provider.check()
    return SearchTools(provider=provider)


def test_recorded_results_are_found_by_the_words_of_a_query(tmp_path):
    toolbox = recorded(tmp_path, {"query": "Ferry decks?", "results": [FERRY, BARE]})
    assert use(toolbox, "open", address=FERRY["url"]) == "error: no search has named this address"
    listed = use(toolbox, "search", query=" ferry DECKS ")
    assert listed == "1. Ferry\nhttps://example.org/ferry\nTwo decks.\n\n2. Old\nhttps://example.org/old"
    assert use(toolbox, "open", address=FERRY["url"]) == "It has two decks."
    assert use(toolbox, "open", address=BARE["url"]) == "error: this page was not recorded"
    assert use(toolbox, "search", query="decks of the ferry") == "no result"
    assert use(SearchTools(provider=toolbox.provider), "open", address=FERRY["url"]).startswith("error: no search")
    assert "2. " not in use(recorded(tmp_path, {"query": "q", "results": [FERRY, BARE]}, most=1), "search", query="q")


@pytest.mark.parametrize("row", [{"query": "q"}, {"results": []}, {"query": "q", "results": "none"}])
def test_a_recording_that_cannot_be_used_is_named(row, tmp_path):
    with pytest.raises(DataError, match=":1 has no query or no results"):
        recorded(tmp_path, row)


def test_a_long_page_and_an_address_that_was_cut(tmp_path):
    long = {"url": "https://example.org/" + "x" * 3000, "page": "p"}
    toolbox = recorded(tmp_path, {"query": "q", "results": [{**FERRY, "page": "x" * 30_000}, long, "words alone"]})
    use(toolbox, "search", query="q")
    assert use(toolbox, "open", address=FERRY["url"]).endswith(f"x\n[cut after {LONGEST_PAGE} characters]")
    assert toolbox.named == {FERRY["url"]}
    assert use(toolbox, "open", address="").startswith("error: no search")
    assert use(toolbox, "open").startswith("error: open needs the argument 'address'")
    assert use(toolbox, "fetch").startswith("error: there is no tool 'fetch'")


def test_a_folder_is_searched_by_its_rarest_words(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a/one.txt").write_text("Ferry\nThe ferry of the town has two decks.\n")
    (tmp_path / "two.md").write_text("Bridge\nThe bridge of the town is closed.\n")
    (tmp_path / "gold.jsonl").write_text('{"answer": "ferry"}')
    provider = FolderSearch(path=tmp_path, most=4)
    toolbox = SearchTools(provider=provider)
    listed = use(toolbox, "search", query="town ferry")
    assert listed.startswith("1. Ferry\na/one.txt\nThe ferry of the town has two decks.\n\n2. Bridge\ntwo.md\n")
    assert use(toolbox, "open", address="two.md").startswith("Bridge\n")
    assert use(toolbox, "open", address="gold.jsonl").startswith("error: no search")
    assert use(toolbox, "search", query="nothing-like-it") == "no result"
    changed = provider.identity
    (tmp_path / "two.md").write_text("Bridge\nThe bridge of the town is open.\n")
    assert FolderSearch(path=tmp_path, most=4).identity != changed
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="there is no document"):
        FolderSearch(path=tmp_path / "empty", most=4).check()


def test_a_target_searches_opens_and_answers(tmp_path):
    environment = SealQA({"mode": "search"}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    assert call_bounds(environment, item).target == (1, 12)
    page = "averholm-survey-2031.txt"
    target = Says(calling("search", query="Averholm bridges"), calling("open", address=page), "<answer>3</answer>")
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), target))
    found, text = (turn.content for turn in trajectory.turns if turn.role == "tool")
    assert page in found
    assert "still closed" in text
    assert trajectory.answer == "3"
    assert "example.org" not in repr(target.heard)


def test_who_answers_searches_is_named_or_refused(tmp_path, monkeypatch):
    (tmp_path / "rows.jsonl").write_text('{"question": "Who?", "answer": "Me"}\n')
    own = {"mode": "search", "data_path": "rows.jsonl"}
    for options, message in (
        ({"search": "service"}, "env.search_url is not set"),
        ({}, "env.search_path is not set"),
        ({"search_path": "x", "search_max_num_results": 0}, "env.search_max_num_results is 0"),
        ({"search": "web"}, "env.search is 'web'"),
    ):
        with pytest.raises(ConfigError) as raised:
            SealQA({**own, **options}, tmp_path)
        assert message in raised.value.message
    monkeypatch.delenv("PLANTED", raising=False)
    service = {"search": "service", "search_url": "https://search.example.org", "search_auth_env": "PLANTED"}
    environment = SealQA({"mode": "search", **service}, tmp_path)
    assert environment.digest
    with pytest.raises(ConfigError, match="the variable PLANTED is not set"):
        environment.items(Split.TRAIN)


def test_who_answers_searches_is_part_of_the_digest(tmp_path):
    recorded(tmp_path, {"query": "q", "results": [FERRY]})
    folder = SealQA({"mode": "search"}, tmp_path).digest
    file = {"mode": "search", "search": "recorded", "search_path": "searches.jsonl"}
    first = SealQA(file, tmp_path).digest
    recorded(tmp_path, {"query": "q", "results": [BARE]})
    assert len({folder, first, SealQA(file, tmp_path).digest, SealQA({}, tmp_path).digest}) == 4
    assert SealQA({"search_max_num_results": 9}, tmp_path).digest == SealQA({}, tmp_path).digest


class Site:
    """A search service and the pages that it names, on the loopback."""

    def __init__(self) -> None:
        self.status, self.kind, self.body, self.wait = 200, "text/html; charset=utf-8", b"<p>Two <i>decks</i>", False
        self.asked: list[str] = []
        self.done = threading.Event()
        self.url = ""

    def handler(self) -> type[BaseHTTPRequestHandler]:
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.reply(200, "application/json", json.dumps([{"title": "F", "url": f"{site.url}/page"}]).encode())

            def do_GET(self) -> None:
                site.asked.append(self.path)
                if site.wait:
                    site.done.wait(30)
                self.reply(site.status, site.kind, site.body)

            def reply(self, status: int, kind: str, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Location", f"{site.url}/elsewhere")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        return Handler


@pytest.fixture
def site() -> Iterator[Site]:
    found = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), found.handler())
    server.daemon_threads = True
    found.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.done.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def _everything_is_public(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_pages, "is_public", bool)


def fetched(address: str, seconds: float = 5.0) -> str:
    return asyncio.run(web_pages.fetch(address, seconds=seconds))


def test_a_service_is_asked_and_a_page_that_it_names_is_opened(site, tmp_path, monkeypatch):
    environment = SealQA({"mode": "search", "search": "service", "search_url": f"{site.url}/search"}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    talk = (calling("search", query="ferry"), calling("open", address=f"{site.url}/page"), "<answer>2</answer>")
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), Says(*talk)))
    assert trajectory.turns[-2].content == "error: this address is not public"
    assert site.asked == []
    monkeypatch.setattr(web_pages, "is_public", lambda host: host == "127.0.0.1")
    trajectory = asyncio.run(environment.rollout(item, environment.seed_skill(), Says(*talk)))
    assert trajectory.turns[-2].content == "Two decks"
    assert (site.asked, trajectory.answer) == (["/page"], "2")


@pytest.mark.usefixtures("_everything_is_public")
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((302, "text/html", b""), "answers with status 302"),
        ((404, "text/html", b""), "answers with status 404"),
        ((200, "image/png", b"\x89PNG"), "not text but image/png"),
    ],
)
def test_a_page_that_cannot_be_had_is_told_to_the_model(site, answer, message):
    site.status, site.kind, site.body = answer
    with pytest.raises(ValueError, match=message):
        fetched(f"{site.url}/page")
    assert site.asked == ["/page"], "no redirection is followed"


@pytest.mark.usefixtures("_everything_is_public")
def test_a_page_is_bounded_in_size_and_time(site):
    site.kind, site.body = "text/plain; charset=no-such-thing", b"x" * (web_pages.MOST_BYTES + 5_000)
    assert len(fetched(f"{site.url}/page")) == web_pages.MOST_BYTES
    site.wait = True
    with pytest.raises(ValueError, match=r"did not answer within 0\.2 seconds"):
        fetched(f"{site.url}/page", seconds=0.2)
    with pytest.raises(ValueError, match="cannot be reached"):
        fetched("http://127.0.0.1:1/")


@pytest.mark.parametrize(
    "address",
    [
        "ftp://example.org/",
        "file:///etc/passwd",
        "example.org",
        "https://name:word@example.org/",
        "http://",
        "http://127.0.0.1/",
        "http://10.0.0.8/",
        "http://169.254.169.254/latest",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[fe80::1]/",
        "http://2130706433/",
        "http://0/",
        "http://0x7f.1/",
        "http://localhost/",
    ],
)
def test_no_other_scheme_and_no_private_address_is_asked(address):
    with pytest.raises(ValueError, match=r"only http and https|not public|cannot be reached"):
        fetched(address)


@pytest.mark.parametrize(("host", "public"), [("8.8.8.8", True), ("224.0.0.1", False), ("2002:7f00:1::", False)])
def test_what_is_public(host, public):
    assert web_pages.is_public(host) is public


def test_a_name_that_leads_to_this_machine_is_not_followed(site):
    with pytest.raises(ValueError, match="cannot be reached"):
        fetched(site.url.replace("127.0.0.1", "localhost"))
    assert site.asked == []


def test_a_service_that_fails_is_a_fault_and_no_score(tmp_path):
    environment = SealQA({"mode": "search", "search": "service", "search_url": "http://127.0.0.1:1/"}, tmp_path)
    item, target = environment.items(Split.TRAIN)[0], Says(calling("search", query="x"))
    with pytest.raises(EnvironmentFaultError, match="cannot be reached"):
        asyncio.run(environment.rollout(item, environment.seed_skill(), target))


@pytest.mark.soak
def test_it_trains_over_the_wire_with_a_search(tmp_path):
    said = ((TARGET, "<answer>3</answer>"), ("You grade the answer", "C"))
    judge = ("-o", "model.judge_backend=openai_compatible", "-o", "model.judge=analyst")
    repository, asked = train(tmp_path, "sealqa", *judge, "-o", "env.mode=search", scripted=said, keep=True)
    assert any("Read a page that a search has found." in json.dumps(entry.document) for entry in asked)
    assert events(repository)[0]["kind"] == "run-finished"
