"""Who may come in: the one browser that opened the link first, under an address that no foreign page can take on.

The link holds a token that works once. Whoever brings it gets a cookie, which only counts under a path that nobody else
knows: browsers send cookies of ``127.0.0.1`` to every port of it, and so to programs of other users, but only where the
path is the same. A page of another site cannot come in by a name of its own that leads to this machine (DNS rebinding),
for the name in ``Host`` must be ours; and it cannot use the browser's cookie, for ``Origin`` must be that host.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hmac import compare_digest
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.typedefs import Handler

COOKIE: Final = "skillgit"
_SECRET: Final = 32
"""Random bytes of a secret."""
_USED: Final = (
    "This link was used already, and it works once. If it was not you who used it, stop skillgit. "
    "For another link start it again."
)
_NO_LINK: Final = "Open the link that skillgit tui --web has printed."
_OTHER_NAME: Final = "This server does not go by that name."
_OTHER_PAGE: Final = "Another page asked for this."


class Door:
    """The token, the cookie and the names of one server.

    Args:
        names: Names in ``Host`` that are this server; numbers always are, since no foreign page has them.
        entropy: Returns so many random bytes.
        entered: Is called with the path of the page when somebody has come in.
    """

    def __init__(
        self, names: frozenset[str], entropy: Callable[[int], bytes], entered: Callable[[str], None] = lambda _: None
    ) -> None:
        self._names = names
        self._entered = entered
        self.token, self._cookie, secret = (_secret(entropy) for _ in range(3))
        self.path = f"/{secret}/"
        self._used = False

    async def enter(self, request: web.Request) -> web.Response:
        """Take the token, and send the browser to the page with a cookie."""
        given = request.query.get("token", "")
        if not given or not compare_digest(given.encode(), self.token.encode()):
            raise web.HTTPForbidden(text=_NO_LINK)
        if self._used:
            raise web.HTTPForbidden(text=_USED)
        self._used = True
        self._entered(self.path)
        found = web.Response(status=303, headers={"Location": self.path})
        # Lax and not Strict: a link in a chat may lead here, and its cookie must hold for the page that it leads to.
        found.set_cookie(COOKIE, self._cookie, path=self.path, httponly=True, samesite="Lax")
        return found

    @web.middleware
    async def guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse whatever does not come from a page of ours."""
        if not self._ours(request.host):
            raise web.HTTPForbidden(text=_OTHER_NAME)
        # A socket without Origin comes from no browser that has opened our page; other requests of it may lack one.
        origin = request.headers.get("Origin", "" if "Upgrade" in request.headers else None)
        if origin is not None and origin != f"{request.scheme}://{request.host}":
            raise web.HTTPForbidden(text=_OTHER_PAGE)
        return await handler(request)

    @web.middleware
    async def inside(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse whoever has no cookie."""
        if not compare_digest(request.cookies.get(COOKIE, "").encode(), self._cookie.encode()):
            raise web.HTTPForbidden(text=_NO_LINK)
        return await handler(request)

    def _ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._names or _is_number(name)


def _is_number(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _secret(entropy: Callable[[int], bytes]) -> str:
    return urlsafe_b64encode(entropy(_SECRET)).decode().rstrip("=")
