"""Who may see and do what: tokens, cookies, names of the server, and where a request comes from."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from skillgit.errors import SkillgitError
from skillgit.web.rendering import Access, Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SECRET = 32  # random bytes of a token


class RefusedError(SkillgitError):
    """A request that gets no page: the HTTP status says what kind of refusal it is."""

    def __init__(self, message: str, *, status: int, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


class Gatekeeper:
    """Knows the tokens of one server and the names it goes by; numbers in ``Host`` are not names."""

    def __init__(self, origins: frozenset[str], entropy: Callable[[int], bytes]) -> None:
        self._origins = origins
        self._key = entropy(_SECRET)
        self.tokens = {role: urlsafe_b64encode(entropy(_SECRET)).decode().rstrip("=") for role in Role}

    def admit(self, token: str) -> Access:
        """Return what ``token`` allows; refuse one that is not known."""
        for role, known in self.tokens.items():
            if hmac.compare_digest(known.encode(), token.encode()):
                csrf = hmac.new(self._key, token.encode(), sha256).hexdigest()
                return Access(name=role.value, role=role, csrf=csrf)
        raise RefusedError(
            "this page needs a link with a token", status=403, hint="open the link that skillgit serve printed"
        )

    def check(self, method: str, scheme: str, headers: Mapping[str, str]) -> None:
        """Refuse a request that was sent to another name, or by a page that is not ours."""
        own = f"{scheme}://{headers.get('host', '')}"
        if own not in self._origins:
            raise RefusedError("this server does not go by that name", status=421)
        origin = headers.get("origin")
        if origin is None and method not in {"GET", "HEAD"}:
            raise RefusedError("a form has to come from a page of this server", status=403)
        if origin is not None and origin != own:
            raise RefusedError(f"{urlsplit(origin).netloc or origin} is another site", status=403)

    def check_role(self, access: Access, role: Role) -> None:
        if role is Role.OPERATOR and not access.operates:
            raise RefusedError("this link only reads", status=403)

    def check_form(self, access: Access, fields: Mapping[str, object]) -> None:
        given = fields.get("csrf")
        if not isinstance(given, str) or not hmac.compare_digest(given.encode(), access.csrf.encode()):
            raise RefusedError("this form is not of this visit", status=403, hint="reload the page and send it again")
