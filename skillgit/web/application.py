"""The server: from a request to a page, and what every answer carries."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import Role
from skillgit.app.workspace.workspace import Workspace, explained
from skillgit.errors import ConflictError, NotFoundError, SkillgitError, UsageError
from skillgit.web.access import Gatekeeper, RefusedError
from skillgit.web.pages import ROUTES
from skillgit.web.rendering import STATIC, Access, Page, PageRoute, Stream, Visit, html, redirect, stylesheet

Look = Callable[[], Mapping[str, str]]
LOOKS_EVERY_S: Final = 0.5
_AT_FULL_PACE: Final = 8  # things that are watched at once; of more, each is looked at less often
BEATS_EVERY_S: Final = 15.0  # without news, so that nothing between server and browser thinks the stream dead
_ASKS_EVERY_S: Final = 1.0  # whether a viewer may still look
_RETRY: Final = b"retry: 1000\n\n"
_BEAT: Final = b": still here\n\n"


class Broadcast:
    """One watcher of something live, however many look; ``look`` returns all parts by name, while there are viewers.

    Everything is rendered once for all viewers, so that a part may not depend on who looks. A new viewer gets all
    parts at once, then only what changed.
    """

    def __init__(self, look: Look, pause_s: Callable[[], float] = lambda: LOOKS_EVERY_S) -> None:
        self._look, self._pause_s = look, pause_s
        self._parts: Mapping[str, str] = {}
        self._events: dict[str, tuple[int, bytes]] = {}
        self._number = 0
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None
        self.viewers = 0

    async def stream(self, may_look: Callable[[], bool]) -> AsyncIterator[bytes]:
        number, quiet_s = 0, 0.0
        self.viewers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._watch())
        try:
            yield _RETRY
            while may_look():
                if self._number > number:
                    news = sorted(event for event in self._events.values() if event[0] > number)
                    number, quiet_s = self._number, 0.0
                    yield b"".join(data for _, data in news)
                elif not await self._news(number):
                    quiet_s += _ASKS_EVERY_S
                    if quiet_s % BEATS_EVERY_S == 0:
                        yield _BEAT
        finally:
            self.viewers -= 1
            if not self.viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def _news(self, number: int) -> bool:
        try:
            async with asyncio.timeout(_ASKS_EVERY_S), self._changed:
                await self._changed.wait_for(lambda: self._number > number)
        except TimeoutError:
            return False
        return True

    async def _watch(self) -> None:
        while True:
            try:
                parts = await run_in_threadpool(self._look)
            except SkillgitError as error:  # a repository that cannot be read now may be read later
                parts = {**self._parts, "notice": str(error)}
            await self._take(parts)
            await asyncio.sleep(self._pause_s())

    async def _take(self, parts: Mapping[str, str]) -> None:
        changes = {name: text for name, text in parts.items() if self._parts.get(name) != text}
        self._parts = parts
        if not changes:
            return
        async with self._changed:
            for name, text in changes.items():
                self._number += 1
                data = json.dumps({"part": name, "html": text}, ensure_ascii=False)
                self._events[name] = (self._number, f"id: {self._number}\ndata: {data}\n\n".encode())
            self._changed.notify_all()


class Broadcasts:
    """The broadcasts of a server by the address that is watched; those without a viewer are forgotten."""

    def __init__(self) -> None:
        self._open: dict[str, Broadcast] = {}

    def _pause_s(self) -> float:
        return LOOKS_EVERY_S * max(1.0, len(self._open) / _AT_FULL_PACE)

    async def stream(self, address: str, look: Look, may_look: Callable[[], bool]) -> AsyncIterator[bytes]:
        broadcast = self._open.setdefault(address, Broadcast(look, self._pause_s))
        try:
            async for data in broadcast.stream(may_look):
                yield data
        finally:
            if not broadcast.viewers and self._open.get(address) is broadcast:
                del self._open[address]


HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # not no-referrer, with which browsers send forms as from nowhere; no address of a page has a token
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
FORM_BYTES = 1 << 20  # of a form at most
_FORM_S = 15  # seconds that it may take to arrive
_COOKIE_S = 30 * 24 * 3600  # seconds for which a browser remembers a link
_NOT_SO: Final = "This cannot be done"
_SORRY = "a bug in skillgit kept this page from being made"
_log = logging.getLogger("uvicorn.error")


def application(context: Context, gatekeeper: Gatekeeper) -> Starlette:
    """Return what answers requests for the repository of ``context``; streams find ``gatekeeper`` in its state."""
    answer = partial(_answer, context, gatekeeper)

    async def no_page(request: Request, error: Exception) -> Response:
        return await answer(PageRoute(request.url.path, partial(_unknown, error)), request)

    style = HTMLResponse(stylesheet(), media_type="text/css")
    app = Starlette(
        routes=[
            *(Route(route.path, partial(answer, route), methods=[route.method]) for route in ROUTES),
            Route("/static/style.css", lambda _: style),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, gatekeeper=gatekeeper)],
        exception_handlers={HTTPException: no_page},
    )
    # an address with a slash too many is unknown, and leads nowhere
    app.router.redirect_slashes = False
    app.state.gatekeeper = gatekeeper
    return app


def _unknown(error: Exception, visit: Visit) -> Page:
    status = error.status_code if isinstance(error, HTTPException) else 404
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        raise RefusedError("this address takes no such request", status=status)
    raise NotFoundError(f"there is no page {visit.path[:200]}", hint="the runs are all on the first page")


class Guard:
    """Refuses what is not for this server before anything reads it, and adds :data:`HEADERS` to every answer."""

    def __init__(self, app: ASGIApp, gatekeeper: Gatekeeper) -> None:
        self._app, self._gatekeeper = app, gatekeeper

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                extra = [(key.lower().encode(), value.encode()) for key, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *(pair for pair in extra if pair[0] not in present)]
            await send(message)

        try:
            self._gatekeeper.check(scope["method"], _single(scope["headers"]))
        except RefusedError as error:
            return await Response(f"{error}\n", error.status, media_type="text/plain")(scope, receive, protected)
        try:
            await self._app(scope, _bounded(receive), protected)
        except asyncio.CancelledError:
            if not self._gatekeeper.is_ending:
                raise
            # it is not an error that the end of the server cuts off a stream
            await send({"type": "http.response.body"})


def _single(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return headers by name; none of those on which a decision rests may be there twice."""
    names = [name for name, _ in pairs]
    if any(names.count(name) > 1 for name in (b"host", b"origin", b"sec-fetch-site", b"content-length")):
        raise RefusedError("a header of this request contradicts itself", status=400)
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in pairs}


def _bounded(receive: Receive) -> Receive:
    """Read no more than :data:`FORM_BYTES` of what a request brings."""
    size = 0

    async def bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > FORM_BYTES:
            raise RefusedError("this form is too large", status=413)
        return message

    return bounded


async def _answer(context: Context, gatekeeper: Gatekeeper, route: PageRoute, request: Request) -> Response:
    token = request.query_params.get("token", "")
    stranger = Access(name="", role=Role.VIEWER, csrf="")
    workspace = Workspace(context, still=True)
    visit = Visit(workspace=workspace, access=stranger, path=request.url.path, link=gatekeeper.names.link)
    try:
        access = gatekeeper.admit(token or request.cookies.get(gatekeeper.names.cookie, ""))
        if token and request.method in {"GET", "HEAD"}:
            return _entrance(gatekeeper, token, request)
        visit = replace(visit, access=access)
        gatekeeper.check_role(access, route.role)
        if route.role is Role.OPERATOR and (request.path_params or request.query_params):
            gatekeeper.check_way(request.headers)
        fields = await _fields(request) if request.method == "POST" else {}
        if request.method == "POST":
            gatekeeper.check_form(access, {key: values[0] for key, values in fields.items()})
        query = {key: request.query_params.getlist(key) for key in request.query_params}
        visit = replace(visit, parameters=request.path_params, query=query, form=fields)
        async with gatekeeper.turn(access):
            answer = await run_in_threadpool(_drawn, route, visit)
        if not isinstance(answer, Stream):
            return answer
        is_head = request.method == "HEAD"
        return Response(media_type="text/event-stream") if is_head else _streaming(gatekeeper, visit, answer)
    except Exception as error:  # noqa: BLE001 - every error becomes a page
        return _refusal(error, visit)


def _entrance(gatekeeper: Gatekeeper, token: str, request: Request) -> Response:
    """Turn a link into a cookie, and lead to the page without the token."""
    address = request.url.remove_query_params("token")
    # two slashes at the beginning would name another server
    path = "/" + address.path.lstrip("/\\")
    response = redirect(f"{path}{'?' if address.query else ''}{address.query}")
    names = gatekeeper.names
    response.set_cookie(
        names.cookie, token, max_age=_COOKIE_S, httponly=True, samesite="lax", secure=names.secure, path="/"
    )
    return response


async def _fields(request: Request) -> Mapping[str, list[str]]:
    try:
        async with asyncio.timeout(_FORM_S):
            form = await request.form(max_files=0, max_part_size=FORM_BYTES)
    except TimeoutError:
        raise RefusedError("this form took too long to arrive", status=408) from None
    except HTTPException as error:
        raise RefusedError("this form cannot be read", status=400) from error
    # browsers end the lines of a text with CRLF, however they were typed
    fields = {key: [re.sub(r"\r\n?", "\n", str(value)) for value in form.getlist(key)] for key in form}
    if any("\0" in text for values in fields.values() for text in values):
        raise RefusedError("a form cannot contain a NUL character", status=400)
    return fields


_BROADCASTS = Broadcasts()


def _streaming(gatekeeper: Gatekeeper, visit: Visit, answer: Stream) -> Response:
    """Begin a stream, which ends when the link that opened it is revoked; refuse it where there are too many."""
    slot = ExitStack()
    slot.enter_context(gatekeeper.stream_slot(visit.access))

    def look() -> Mapping[str, str]:
        with Workspace(visit.context, still=True) as workspace:
            return answer.look(workspace)

    async def events() -> AsyncIterator[bytes]:
        with slot:
            address = f"{visit.context.directory}{visit.path}"
            async for data in _BROADCASTS.stream(address, look, partial(gatekeeper.valid, visit.access)):
                yield data

    return StreamingResponse(events(), media_type="text/event-stream")


def _drawn(route: PageRoute, visit: Visit) -> Response | Stream:
    """Make an answer; all that it shows of history is of one moment."""
    with visit.workspace:
        answer = route.page(visit)
        return HTMLResponse(html(answer, visit), answer.status) if isinstance(answer, Page) else answer


def _refusal(error: Exception, visit: Visit) -> Response:
    refusal = error if isinstance(error, RefusedError) else explained(error, visit.context)
    if refusal is None:
        _log.error("%s: %s", visit.path.encode("unicode_escape").decode(), _SORRY, exc_info=error)
        refusal = RefusedError(_SORRY, status=500, hint="the terminal in which skillgit serve runs says more")
    kinds = {NotFoundError: 404, UsageError: 400, ConflictError: 409}
    status = next((status for kind, status in kinds.items() if isinstance(refusal, kind)), 500)
    status = refusal.status if isinstance(refusal, RefusedError) else status
    title = {400: _NOT_SO, 403: "Not allowed", 404: "Not found", 409: _NOT_SO}.get(status, "Something went wrong")
    response = HTMLResponse(html(Page("error.html", title, error=refusal), visit), status)
    if isinstance(refusal, RefusedError) and refusal.retry_after:
        response.headers["Retry-After"] = str(refusal.retry_after)
    return response
