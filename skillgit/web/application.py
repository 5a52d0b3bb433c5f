"""The server: from a request to a page, and what every answer carries."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from skillgit.app.workspace.workspace import explained
from skillgit.errors import ConflictError, NotFoundError, SkillgitError, UsageError
from skillgit.web.access import Gatekeeper, RefusedError
from skillgit.web.pages import ROUTES
from skillgit.web.rendering import STATIC, Access, Page, PageRoute, Redirect, Role, Stream, Visit, html, stylesheet
from skillgit.web.streams import Broadcasts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillgit.app.workspace.context import Context

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
FORM_BYTES = 1 << 20  # of a form at most
COOKIE = "skillgit"
_BROADCASTS = Broadcasts()


def application(context: Context, gatekeeper: Gatekeeper) -> Starlette:
    """Return what answers requests for the repository of ``context``."""
    pages = [
        Route(route.path, partial(_answer, context, gatekeeper, route), methods=[route.method], name=route.path)
        for route in ROUTES
    ]
    style = HTMLResponse(stylesheet(), media_type="text/css")
    return Starlette(
        routes=[
            *pages,
            Route("/static/style.css", lambda _: style),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(Guard, gatekeeper=gatekeeper)],
    )


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

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            self._gatekeeper.check(scope["method"], scope["scheme"], headers)
        except RefusedError as error:
            return await Response(f"{error}\n", error.status, media_type="text/plain")(scope, receive, protected)
        return await self._app(scope, receive, protected)


async def _answer(context: Context, gatekeeper: Gatekeeper, route: PageRoute, request: Request) -> Response:
    token = request.query_params.get("token", "")
    access = Access(name="", role=Role.VIEWER, csrf="")
    try:
        access = gatekeeper.admit(token or request.cookies.get(COOKIE, ""))
        if token:
            address = request.url.remove_query_params("token")
            response: Response = RedirectResponse(f"{address.path}{'?' if address.query else ''}{address.query}", 303)
            response.set_cookie(COOKIE, token, httponly=True, samesite="lax", secure=request.url.scheme == "https")
            return response
        gatekeeper.check_role(access, route.role)
        fields: Mapping[str, list[str]] = {}
        if request.method == "POST":
            form = await request.form(max_files=0, max_part_size=FORM_BYTES)
            fields = {key: [str(value) for value in form.getlist(key)] for key in form}
            gatekeeper.check_form(access, {key: values[0] for key, values in fields.items()})
        visit = Visit(
            context=context,
            access=access,
            path=request.url.path,
            parameters=request.path_params,
            query={key: request.query_params.getlist(key) for key in request.query_params},
            form=fields,
        )
        return await run_in_threadpool(_drawn, route, visit)
    except Exception as error:  # noqa: BLE001 - what is no bug becomes a page
        visit = Visit(context=context, access=access, path=request.url.path)
        return _refusal(error, visit)


def _drawn(route: PageRoute, visit: Visit) -> Response:
    answer = route.page(visit)
    if isinstance(answer, Redirect):
        return RedirectResponse(answer.address, 303)
    if isinstance(answer, Stream):
        address = f"{visit.context.directory}{visit.path}"
        return StreamingResponse(_BROADCASTS.stream(address, answer.look), media_type="text/event-stream")
    return HTMLResponse(html(answer, visit), answer.status)


def _refusal(error: Exception, visit: Visit) -> Response:
    known = error if isinstance(error, RefusedError) else explained(error, visit.context)
    if known is None:
        raise error
    page = Page(template="error.html", title=str(known), values={"error": known}, status=_status(known))
    return HTMLResponse(html(page, visit), page.status)


def _status(error: SkillgitError) -> int:
    match error:
        case RefusedError():
            return error.status
        case NotFoundError():
            return 404
        case UsageError():
            return 400
        case ConflictError():
            return 409
        case _:
            return 500
