"""What a page is made of: who asks for what, the page that answers, and its HTML."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlencode

from jinja2 import Environment
from markupsafe import Markup

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import OWNER, Role
from skillgit.report import page as report

__all__ = ["STATIC", "Access", "Page", "PageRoute", "Redirect", "Role", "Visit", "address", "html", "stylesheet"]

_FOLDER = Path(__file__).parent
STATIC = _FOLDER / "static"
_NUMBER = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Who asks: the name and the role of the token that let them in, and the secret that their forms carry."""

    name: str
    role: Role
    csrf: str

    @property
    def operates(self) -> bool:
        return self.role is Role.OPERATOR

    @property
    def owns(self) -> bool:
        """Whether it is the link of whoever started the server, who may do here what they may do in a terminal."""
        return self.name == OWNER


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request for a page: names out of its path, its query, and the fields of its form, each with all its values."""

    context: Context
    access: Access
    path: str
    link: str = ""  # how links to this server begin
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"{quote(self.path)}?{urlencode(self.query, doseq=True)}" if self.query else quote(self.path)

    def value(self, name: str, otherwise: str = "") -> str:
        """Return the first value of ``name`` in the query, or in the form."""
        return next(iter(self.query.get(name) or self.form.get(name) or ()), otherwise)

    def number(self, name: str, otherwise: int = 0) -> int:
        """Return the value of ``name`` as a number from 0; ``otherwise`` if it is none, or larger than any of ours."""
        text = self.value(name)
        return int(text) if _NUMBER.fullmatch(text) else otherwise

    def values(self, name: str) -> tuple[str, ...]:
        return tuple(self.query.get(name) or self.form.get(name) or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """An answer: the template in ``templates``, what it shows, and the command that prints the same."""

    template: str
    title: str
    command: Sequence[str] = ()  # words behind ``skillgit``; none where no command prints this
    values: Mapping[str, object] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """An answer to a form: the address of the page that shows what came of it."""

    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """An answer that the browser keeps as a file."""

    name: str
    content: bytes
    media_type: str = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An answer that goes on: ``look`` returns the parts of a page by name, for :mod:`skillgit.web.application`."""

    look: Callable[[], Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoute:
    """An address, in which ``{name}`` stands for one name, and who may ask for it by which method."""

    path: str
    page: Callable[[Visit], Page | Redirect | Download | Stream]
    role: Role = Role.VIEWER
    method: Literal["GET", "POST"] = "GET"


def address(*parts: str, **query: str | Iterable[str]) -> str:
    """Return the address of a page, as ``address("run", "demo", "v3", tab="diff")``: each part is one name."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    pairs = [(key, value) for key, value in query.items() if value != ""]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


def html(page: Page, visit: Visit) -> str:
    template = _environment().get_template(page.template)
    command = shlex.join(["skillgit", *page.command]) if page.command else ""
    return template.render(page=page, visit=visit, access=visit.access, command=command, **page.values)


def fragment(template: str, **values: object) -> Markup:
    """Return a part of a page that is the same for everyone who looks."""
    return Markup(_environment().get_template(template).render(**values))  # noqa: S704 - a template of ours escaped it


@cache
def _environment() -> Environment:
    environment = report.environment(_FOLDER / "templates")
    environment.globals.update(address=address, in_shell=lambda *words: shlex.join(["skillgit", *words]))
    return environment


@cache
def stylesheet() -> str:
    """Return the style of the report, and behind it that of what only these pages have."""
    paths = (report.STYLE, STATIC / "site.css", *sorted(STATIC.glob("pages/*.css")))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)
