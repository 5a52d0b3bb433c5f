"""Who may see and do what: tokens, names of the server, where a request comes from, and how much one may ask for."""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from skillgit.app.workspace import invitations
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import NEVER, OWNER, USE_PRECISION, Role, digest_of
from skillgit.errors import SkillgitError
from skillgit.web.rendering import Access

STREAMS: Final = 256
"""Streams of events that are open at once, and half as many for one token."""
_PAGES: Final = 4  # that are drawn at once for one token
_RETRY_S: Final = 10
_OWN_PAGES: Final = frozenset({"same-origin", "none"})  # of Sec-Fetch-Site: a page of ours, or a person


class RefusedError(SkillgitError):
    """A request that gets no page: the HTTP status says what kind of refusal it is."""

    def __init__(self, message: str, *, status: int, hint: str = "", retry_after: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a server goes by: the values of ``Host`` and of ``Origin`` that are its own, and how its links begin."""

    hosts: frozenset[str]
    origins: frozenset[str]
    link: str  # without a slash at the end

    @property
    def secure(self) -> bool:
        return self.link.startswith("https:")

    @property
    def cookie(self) -> str:
        """The name of its cookie, with the port: browsers send cookies to every port of a host."""
        # a browser takes one with __Host- only from this host, encrypted, so that no neighbor can put one there
        return f"{'__Host-' if self.secure else ''}skillgit-{urlsplit(self.link).port or 443}"


class Gatekeeper:
    """Decides on requests to one server; ``owner`` is the token of the person who started it, and stored nowhere."""

    def __init__(self, context: Context, names: Names) -> None:
        self._context = context
        self.names = names
        self._key = context.entropy(32)
        self.owner = invitations.new_token(context)
        self._owners = {digest_of(self.owner): (OWNER, Role.OPERATOR)}
        self._stamp_now = invitations.watch(context)
        self._stamp: tuple[int, ...] = ()
        self._lasting: dict[str, tuple[str, Role]] = {}
        self._used: dict[str, datetime] = {}
        self._streams: Counter[str] = Counter()
        self._turns: dict[str, asyncio.Semaphore] = {}
        self.is_ending = False

    def admit(self, token: str) -> Access:
        """Return what ``token`` allows; refuse one that is not valid, or not any more."""
        digest = digest_of(token)
        holder = self._owners.get(digest) or self._invited().get(digest)
        if holder is None:
            raise RefusedError(
                "this page needs a link with a token",
                status=403,
                hint="open the link that skillgit serve printed, or ask for one: skillgit serve --invite NAME",
            )
        name, role = holder
        now = self._context.clock()
        if name != OWNER and now - self._used.get(digest, NEVER) >= USE_PRECISION:
            self._used[digest] = now
            invitations.note_use(self._context, digest)
        return Access(name=name, role=role, csrf=self._secret(digest))

    def _secret(self, digest: str) -> str:
        return hmac.new(self._key, digest.encode(), sha256).hexdigest()

    def valid(self, access: Access) -> bool:
        """Return whether ``access`` still holds: its token was not revoked, and the server is not about to end."""
        # not by name: a person who is invited again after a leak has another token
        secrets = map(self._secret, (*self._owners, *self._invited()))
        return not self.is_ending and access.csrf in secrets

    def turn(self, access: Access) -> asyncio.Semaphore:
        """Return what lets a few pages of one token be drawn at once, so that others get theirs meanwhile."""
        return self._turns.setdefault(access.name, asyncio.Semaphore(_PAGES))

    def end(self) -> None:
        """Have all streams end."""
        self.is_ending = True

    def _invited(self) -> Mapping[str, tuple[str, Role]]:
        stamp = self._stamp_now()
        if stamp != self._stamp:
            rows = invitations.invitations(self._context)
            self._lasting = {row.digest: (row.name, row.role) for row in rows}
            self._stamp = stamp
        return self._lasting

    @contextmanager
    def stream_slot(self, access: Access) -> Iterator[None]:
        """Count a stream of events as open in the block, or refuse it where there are too many."""
        if self._streams.total() >= STREAMS or self._streams[access.name] >= STREAMS // 2:
            raise RefusedError(
                "too many pages are watching at once", status=503, hint="close some of them", retry_after=_RETRY_S
            )
        self._streams[access.name] += 1
        try:
            yield
        finally:
            self._streams[access.name] -= 1

    def check(self, method: str, headers: Mapping[str, str]) -> None:
        """Refuse a request that was sent to another name, or by a page that is not ours."""
        if headers.get("host", "").lower() not in self.names.hosts:
            raise RefusedError("this server does not go by that name", status=421)
        reads = method in {"GET", "HEAD"}
        origin = headers.get("origin")
        if origin is None and not reads:
            raise RefusedError("a form has to come from a page of this server", status=403)
        site = headers.get("sec-fetch-site", "none")
        # a frame is opened too, and a page in it is drawn though no browser shows it
        opens = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest", "document")
        follows_link = reads and opens == ("navigate", "document")
        if (origin is not None and origin not in self.names.origins) or (site not in _OWN_PAGES and not follows_link):
            raise RefusedError("another site asked for this", status=403)

    def check_role(self, access: Access, role: Role) -> None:
        if role is Role.OPERATOR and not access.operates:
            raise RefusedError("this link only reads", status=403)

    def check_way(self, headers: Mapping[str, str]) -> None:
        """Refuse a page that loads what its address names, such as a configuration, if another site led there."""
        if headers.get("sec-fetch-site", "none") not in _OWN_PAGES:
            raise RefusedError(
                "another site led here",
                status=403,
                hint="if that is what you want, press Enter in the address bar",
            )

    def check_form(self, access: Access, fields: Mapping[str, object]) -> None:
        secret = fields.get("csrf")
        if not isinstance(secret, str) or not hmac.compare_digest(secret.encode(), access.csrf.encode()):
            raise RefusedError("this form has expired", status=403, hint="reload the page and send it again")
