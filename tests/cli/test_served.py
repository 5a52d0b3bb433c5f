from __future__ import annotations

import sys
from pathlib import Path
from stat import S_IMODE

import pytest

from skillgit.tui.web import DRIVER, server


class Listener:
    """A socket that listens on port 8765."""

    def getsockname(self) -> tuple[str, int]:
        return "192.0.2.7", 8765


@pytest.fixture
def served(monkeypatch, fake):
    """Serve nothing; the answer collects what would be served."""
    fake("history.status.runs", ())
    calls: list[tuple[object, dict[str, object]]] = []

    def listen(host, port):
        calls.append(((host, port), {}))
        return server.ListenAddress(listener=Listener(), host=host, link="http://a:8765", local=host == "127.0.0.1")

    def serve(_place, words, environ, **options):
        calls.append((words, environ))
        options["ready"]("http://a:8765/?token=t")
        options["on_entry"]("http://a:8765/page/")

    monkeypatch.setattr(server, "listen", listen)
    monkeypatch.setattr(server, "serve", serve)
    return calls


def test_the_link_is_what_it_prints_and_the_screens_are_this_program_in_this_folder(skillgit, served, tmp_path):
    ended = skillgit("tui", "--web", "--ascii", "--no-mouse", "demo")
    assert (ended.code, ended.text) == (0, "http://a:8765/?token=t\n")
    assert ended.err.splitlines() == [
        "the link works once; Ctrl-C ends the server and its screens",
        "the link was used; that browser finds the screens at http://a:8765/page/",
    ]
    assert served[0][0] == ("127.0.0.1", 0)
    words, environ = served[1]
    begun = (sys.executable, "-m", "skillgit", "-C", str(tmp_path), "tui")
    assert words == (*begun, "--ascii", "--no-mouse", "--", "demo")
    assert environ["TEXTUAL_DRIVER"] == DRIVER


def test_another_host_is_served_with_a_warning(skillgit, served):
    ended = skillgit("tui", "--web", "--host", "192.0.2.7", "--port", "8765")
    assert served[0][0] == ("192.0.2.7", 8765)
    warning, hint, *_ = ended.err.splitlines()
    assert warning == "warning: other machines reach 192.0.2.7, and what goes there can be read and changed on its way"
    assert hint.startswith("hint: better: ssh -L 8765:127.0.0.1:8765 HOST")


@pytest.mark.parametrize(("opened", "told"), [(True, 2), (False, 3)])
def test_the_link_opens_in_the_browser_if_there_is_one(skillgit, served, monkeypatch, opened, told):
    pages: list[tuple[Path, str]] = []

    def open_(address: str) -> bool:
        page = Path(address.removeprefix("file://"))
        assert S_IMODE(page.stat().st_mode) == 0o600
        pages.append((page, page.read_text()))
        return opened

    monkeypatch.setattr("webbrowser.open", open_)
    ended = skillgit("tui", "--web", "--open")
    assert served
    ((page, content),) = pages
    assert 'content="0; url=http://a:8765/?token=t"' in content
    assert not page.exists()
    assert len(ended.err.splitlines()) == told


@pytest.mark.parametrize("option", [("--port", "80"), ("--host", "localhost"), ("--open",)])
def test_what_is_about_the_browser_goes_with_it(skillgit, option):
    ended = skillgit("tui", *option)
    assert ended.code == 2
    assert ended.err.startswith("skillgit: --port, --host and --open go with --web")


def test_without_a_repository_nothing_is_served(skillgit):
    ended = skillgit("tui", "--web")
    assert ended.code == 3
    assert ended.text == ""
    assert "hint: " in ended.err
