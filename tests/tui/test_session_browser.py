"""The session in a browser: headless Chromium opens the link of ``skillgit tui --web`` and presses the keys."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack

import pytest
from chromium import PROGRAM, page
from played_session import Player, play, prepared, training
from web_client import serving
from wire import wire_server

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(PROGRAM is None, reason="Debian's chromium is not installed"),
]
PIXELS = 1280, 720
PNG = b"\x89PNG\r\n\x1a\n"


def test_a_session_in_a_browser_shows_what_it_should(tmp_path, tmp_path_factory):
    repository = prepared(tmp_path_factory, tmp_path / "repository")

    async def scenario(served, train):
        async with page(*PIXELS) as opened:
            await opened.go(served.link)
            await Player(opened, repository).sees("1 Runs")
            await opened.click(
                PIXELS[0] - 1, PIXELS[1] - 1
            )  # beside the last column, where a click takes the keys away
            await play(opened, repository, train)
            picture = await opened.picture()
            (tmp_path / "browser.png").write_bytes(picture)
        assert picture.startswith(PNG)
        assert len(picture) > 20_000, "there is something to see"
        assert opened.complaints == []
        place = re.sub("^http", "(?:http|ws)", re.escape(served.origin))
        foreign = [url for url in opened.loaded if not re.match(f"{place}/|data:|about:blank", url)]
        assert foreign == []

    with wire_server(latency=0.02, process=True) as wire, ExitStack() as later, serving(repository) as served:
        asyncio.run(scenario(served, lambda: later.enter_context(training(repository, wire))))
