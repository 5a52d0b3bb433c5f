"""Chromium without a window, spoken to in its own DevTools protocol: what a page shows, sends and loads."""

from __future__ import annotations

import asyncio
import base64
import shutil
from asyncio.subprocess import DEVNULL
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pyte

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PROGRAM = shutil.which("chromium")
DEADLINE_S = 60
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"),
    *("--no-first-run", "--enable-unsafe-swiftshader", "--remote-debugging-port=0", "--hide-scrollbars"),
)
KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, "")}


class Page:
    """One page of the browser; the terminal that it shows is drawn a second time here, from what the page received.

    Args:
        send: Sends a command to the page and returns its result.
    """

    def __init__(self, send: Callable[..., Any]) -> None:
        self._send = send
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        self.listening: asyncio.Task[None] | None = None
        self.loaded: list[str] = []
        self.complaints: list[str] = []

    def note(self, method: str, parameters: dict[str, Any]) -> None:
        """Take an event of the page in."""
        match method:
            case "Network.requestWillBeSent":
                self.loaded.append(parameters["request"]["url"])
            case "Network.webSocketCreated":
                self.loaded.append(parameters["url"])
                asked = dict(parse_qsl(urlsplit(parameters["url"]).query))
                self._screen.resize(int(asked["height"]), int(asked["width"]))
            case "Network.webSocketFrameReceived" if parameters["response"]["opcode"] == aiohttp.WSMsgType.BINARY:
                self._stream.feed(base64.b64decode(parameters["response"]["payloadData"]))
            case "Log.entryAdded":
                self.complaints.append(parameters["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(parameters["exceptionDetails"]))

    async def go(self, address: str) -> None:
        await self._send("Page.navigate", url=address)

    async def press(self, *keys: str) -> None:
        """Press keys as a person does, wherever the page has put the focus."""
        for key in keys:
            code, text = KEYS.get(key, (0, key))
            pressed = {"key": key, "windowsVirtualKeyCode": code, **({"text": text} if text else {})}
            await self._send("Input.dispatchKeyEvent", type="keyDown", **pressed)
            await self._send("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def click(self, x: int, y: int) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            await self._send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def shown(self) -> str:
        return "\n".join(self._screen.display)

    async def picture(self) -> bytes:
        """Return what the page looks like, as PNG."""
        return base64.b64decode((await self._send("Page.captureScreenshot", format="png"))["data"])


@asynccontextmanager
async def page(width: int, height: int) -> AsyncIterator[Page]:
    """Give an empty page of so many pixels."""
    with TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile:
        command = [
            str(PROGRAM),
            *OPTIONS,
            f"--window-size={width},{height}",
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        process = await asyncio.create_subprocess_exec(*command, stdout=DEVNULL, stderr=DEVNULL)
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(await _address(Path(profile)), max_msg_size=0) as socket,
            ):
                yield await _attach(socket, width, height)
                with suppress(TimeoutError, ConnectionError):
                    await socket.send_json({"id": 0, "method": "Browser.close"})
                    await asyncio.wait_for(process.wait(), DEADLINE_S)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _address(profile: Path) -> str:
    told = profile / "DevToolsActivePort"
    async with asyncio.timeout(DEADLINE_S):
        while not (told.exists() and len(lines := told.read_text().splitlines()) == 2):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"


async def _attach(socket: aiohttp.ClientWebSocketResponse, width: int, height: int) -> Page:
    waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
    numbers = count(1)
    of_page: dict[str, str] = {}

    async def send(method: str, **parameters: object) -> dict[str, Any]:
        number = next(numbers)
        waiting[number] = asyncio.get_running_loop().create_future()
        await socket.send_json({"id": number, "method": method, "params": parameters, **of_page})
        async with asyncio.timeout(DEADLINE_S):
            return await waiting[number]

    found = Page(send)

    async def listen() -> None:
        async for message in socket:
            told = message.json()
            if "id" not in told:
                found.note(told["method"], told["params"])
            elif told["id"] in waiting:
                assert "error" not in told, told
                waiting.pop(told["id"]).set_result(told["result"])

    found.listening = asyncio.create_task(listen())
    target = (await send("Target.createTarget", url="about:blank"))["targetId"]
    of_page["sessionId"] = (await send("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
    for domain in ("Page", "Network", "Log", "Runtime"):
        await send(f"{domain}.enable")
    await send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
    return found
