"""The screens in a browser: real HTTP and sockets on the loopback, real processes behind them."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from aiohttp import ClientSession, WSMsgType, WSServerHandshakeError
from aiohttp.test_utils import TestServer
from sample_run import RUN
from web_client import DEADLINE_S, browser, gone, read, serving, until_gone

from skillgit.errors import UsageError
from skillgit.tui.web import require_extra
from skillgit.tui.web.server import MOST_SCREENS, Door, WebPages, application, listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from web_client import Browser

NOTHING = (sys.executable, "-c", "import time; time.sleep(600)")
"""Screens that never draw anything, and never leave by themselves."""


@asynccontextmanager
async def door(*words: str) -> AsyncIterator[tuple[str, str, Browser]]:
    """Give the origin of a server in this process, its link, and a browser."""
    numbers = iter(range(1, 9))
    guarded = Door(frozenset({"localhost"}), lambda length: bytes([next(numbers)]) * length)
    async with TestServer(application(guarded, WebPages("a <b>title</b>", words or NOTHING, {}))) as server:
        origin = str(server.make_url("")).rstrip("/")
        one = browser(origin)
        async with one.session:
            yield origin, f"{origin}/?token={guarded.token}", one


async def status(session: ClientSession, address: str, **headers: str) -> int:
    async with session.get(address, headers=headers, allow_redirects=False) as found:
        return found.status


async def refused(one: Browser, address: str, **headers: str) -> int:
    with pytest.raises(WSServerHandshakeError) as error:
        await one.session.ws_connect(address, headers=headers)
    return error.value.status


def command(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]


def test_a_link_lets_one_browser_in_and_works_once():
    async def scenario():
        async with door() as (origin, link, one), ClientSession() as other:
            assert await status(other, f"{origin}/") == 403
            assert await status(other, f"{link}x") == 403
            page = (await one.enter(link)).replace("ws://", "http://").removesuffix("ws")
            assert await status(one.session, page) == 200
            assert await status(one.session, f"{page}static/js/textual.js") == 200
            assert await status(other, link) == 403, "it was used"
            for part in ("", "ws", "static/js/textual.js", "static/"):
                assert await status(other, f"{page}{part}") == 403
            async with one.session.head(link) as found:
                assert found.status == 405, "a preview of the link does not use it up"

    asyncio.run(scenario())


def test_the_page_loads_nothing_from_elsewhere_and_shows_its_title_as_it_is():
    async def scenario():
        async with door() as (_, link, one), one.session.get(link) as found:
            text = await found.text()
            assert "https://" not in text
            assert text.count("http://") == 0
            assert "a &lt;b&gt;title" in text
            policy = found.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "script-src 'self';" in policy
            assert found.headers["Referrer-Policy"] == "no-referrer"

    asyncio.run(scenario())


@pytest.mark.parametrize("host", ["rebound.example:80", "rebound.example", "127.0.0.1.rebound.example", "[::1", ""])
def test_a_name_that_is_not_ours_is_refused(host):
    async def scenario():
        async with door() as (_, link, one):
            assert await status(one.session, link, Host=host) in {400, 403}
            socket_address = await one.enter(link)
            assert await refused(one, socket_address, Host=host, Origin=f"http://{host}") in {400, 403}

    asyncio.run(scenario())


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:9000", "[::1]:80"])
def test_a_forwarded_port_is_ours(host):
    async def scenario():
        async with door() as (_, link, one):
            assert await status(one.session, link, Host=host) == 303

    asyncio.run(scenario())


def test_the_cookie_is_of_no_use_to_other_pages():
    async def scenario():
        async with door() as (origin, link, one):
            address = await one.enter(link)
            assert await refused(one, address) == 403, "no browser leaves out where it comes from"
            for foreign in ("https://example.org", "null", "http://localhost:1", origin.replace("http", "https")):
                assert await refused(one, address, Origin=foreign) == 403
                assert await status(one.session, address.replace("ws://", "http://")[:-2], Origin=foreign) == 403
            async with ClientSession() as other:
                one.session, kept = other, one.session
                assert await refused(one, address, Origin=origin) == 403, "without the cookie"
                one.session = kept
            async with one.open(address):
                pass

    asyncio.run(scenario())


def test_a_page_that_sends_nonsense_does_no_harm_and_screens_that_hang_are_killed(monkeypatch):
    monkeypatch.setattr("skillgit.tui.web.server._PATIENCE_S", 0.05)

    async def scenario():
        async with door() as (_, link, one):
            async with one.open(await one.enter(link), (0, 10**9)) as opened:
                for text in ("", "[", "[]", '["stdin", 5]', '["resize", {"width": "x"}]', '["other", {}]'):
                    await opened.send_str(text)
                await opened.send_json(["ping", "7"])
                assert await opened.receive_json(timeout=DEADLINE_S) == ["pong", "7"]
            async with one.session.get(link) as found:
                assert found.status == 403

    asyncio.run(scenario())


def test_there_are_no_more_processes_than_pages_that_may_be_open(monkeypatch):
    monkeypatch.setattr("skillgit.tui.web.server._PATIENCE_S", 0.05)

    async def scenario():
        async with door() as (origin, link, one), AsyncExitStack() as opened:
            address = await one.enter(link)
            first = await opened.enter_async_context(one.open(address))
            for _ in range(MOST_SCREENS - 1):
                await opened.enter_async_context(one.open(address))
            for _ in range(20):
                assert await refused(one, address, Origin=origin) == 503
            await first.close()
            while True:  # until the process of the page that was closed has ended
                with suppress(WSServerHandshakeError):
                    async with one.open(address):
                        break

    asyncio.run(scenario())


def test_a_page_is_told_when_its_screens_end():
    async def scenario():
        async with door(sys.executable, "-c", "") as (_, link, one), one.open(await one.enter(link)) as opened:
            assert (await opened.receive(timeout=DEADLINE_S)).type is WSMsgType.CLOSE

    asyncio.run(scenario())


@pytest.mark.slow
def test_the_screens_show_in_a_browser_and_end_with_the_page_and_with_the_server(sample):
    async def scenario(served):
        one = browser(served.origin)
        async with one.session:
            address = await one.enter(served.link)
            async with one.open(address) as opened:
                assert "1 Runs" in await read(opened, RUN)
                (pid,) = served.screens()
                assert command(pid) == [sys.executable, "-m", "skillgit", "-C", str(sample.workdir), "tui", "--", RUN]
                await opened.send_json(["stdin", "q"])
                await until_gone(pid)
            async with one.open(address) as opened:
                await read(opened, "1 Runs")
                (pid,) = served.screens()
                await opened.send_json(["stdin", "?"])
                await read(opened, "list.page_down")
            await until_gone(pid)
            async with one.open(address) as opened:
                await read(opened, "1 Runs")
                (pid,) = served.screens()
                served.process.send_signal(signal.SIGINT)
                await until_gone(pid)
                await asyncio.to_thread(served.process.wait, DEADLINE_S)
        assert served.process.returncode == 0
        told = served.process.stderr.read().decode().splitlines()
        assert told[0] == "the link works once; Ctrl-C ends the server and its screens"
        assert told[1].startswith(f"the link was used; that browser finds the screens at {served.origin}/")
        assert len(told) == 2

    with serving(sample.workdir.resolve(), RUN) as served:
        asyncio.run(scenario(served))


@pytest.mark.slow
def test_screens_leave_when_the_server_is_killed(sample):
    async def scenario(served):
        one = browser(served.origin)
        async with one.session, one.open(await one.enter(served.link)) as opened:
            await read(opened, "1 Runs")
            (pid,) = served.screens()
            assert not gone(pid)
            served.process.kill()
            await until_gone(pid)

    with serving(sample.workdir) as served:
        asyncio.run(scenario(served))


def test_it_listens_on_this_machine_only_unless_told_otherwise():
    place = listen("127.0.0.1", 0)
    with place.listener:
        assert place.local
        assert place.link == f"http://127.0.0.1:{place.port}"
        with pytest.raises(UsageError, match=f"cannot listen on 127.0.0.1, port {place.port}"):
            listen("127.0.0.1", place.port)
    everywhere = listen("0.0.0.0", 0)  # noqa: S104 - that is the question
    with everywhere.listener:
        assert not everywhere.local
        assert everywhere.link == f"http://{socket.gethostname()}:{everywhere.port}"


def test_a_host_that_is_not_this_machine_and_a_missing_extra_are_told(monkeypatch):
    with pytest.raises(UsageError, match=r"no-such-host\.invalid is no name"):
        listen("no-such-host.invalid", 0)
    monkeypatch.setattr("skillgit.tui.web.find_spec", lambda name: None if name == "textual_serve" else util)
    with pytest.raises(UsageError) as error:
        require_extra()
    assert (error.value.message, error.value.hint) == (
        "tui --web needs the extra 'web'",
        "pip install 'skillgit[web]'",
    )
