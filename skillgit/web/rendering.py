"""What a page is made of: who asks for what, the page that answers, and its HTML."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

from jinja2 import Environment
from starlette.responses import RedirectResponse, Response

from skillgit.app.workspace.command_journal import start_command
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import OWNER, Role
from skillgit.app.workspace.workspace import Workspace
from skillgit.report import page as report

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
        """Whether it is the link of the person who started the server, who may do here all that a terminal may."""
        return self.name == OWNER


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request for a page: names out of its path, its query, and the fields of its form, each with all its values."""

    workspace: Workspace  # of one moment, for what only reads
    access: Access
    path: str
    link: str = ""  # how links to this server begin
    parameters: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Sequence[str]] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def context(self) -> Context:
        return self.workspace.context

    @property
    def address(self) -> str:
        return f"{quote(self.path)}?{urlencode(self.query, doseq=True)}" if self.query else quote(self.path)

    def values(self, name: str) -> tuple[str, ...]:
        return tuple(self.query.get(name) or self.form.get(name) or ())

    def value(self, name: str, otherwise: str = "") -> str:
        """Return the first value of ``name`` in the query, or in the form."""
        return next(iter(self.values(name)), otherwise)

    def number(self, name: str, otherwise: int = 0) -> int:
        """Return the value of ``name`` as a number from 0; ``otherwise`` if it is none, or larger than any of ours."""
        text = self.value(name)
        return int(text) if _NUMBER.fullmatch(text) else otherwise

    def start(self, words: Sequence[str], *, back: str = "") -> Response:
        """Run ``skillgit`` with ``words`` in a process of its own, and lead to what it prints; ``back`` leads here."""
        record = start_command(self.context, words, by=self.access.name, back=back)
        return redirect(address("activity", record.id))


class Page:
    """An answer: the template in ``templates``, its title, the command that prints the same, and what it shows.

    The command has the words behind ``skillgit``, and none where no command prints this.
    """

    def __init__(
        self,
        template: str,
        title: str,
        command: Sequence[str] = (),
        *,
        status: int = 200,
        **values: Any,  # noqa: ANN401 - all that the template shows
    ) -> None:
        self.template, self.title, self.command, self.status, self.values = template, title, command, status, values


@dataclass(frozen=True, slots=True)
class Stream:
    """An answer that goes on: ``look`` returns the parts of a page by name, for :mod:`skillgit.web.application`."""

    look: Callable[[Workspace], Mapping[str, str]]


Answer = Page | Stream | Response


@dataclass(frozen=True, slots=True)
class PageRoute:
    """An address, in which ``{name}`` stands for one name, and who may ask for it by which method."""

    path: str
    page: Callable[[Visit], Answer]
    role: Role = Role.VIEWER
    method: Literal["GET", "POST"] = "GET"


ROUTES: Final[list[PageRoute]] = []


def page(
    path: str, role: Role = Role.VIEWER, method: Literal["GET", "POST"] = "GET"
) -> Callable[[Callable[[Visit], Answer]], Callable[[Visit], Answer]]:
    """Have a function answer at ``path``."""

    def at(answer: Callable[[Visit], Answer]) -> Callable[[Visit], Answer]:
        ROUTES.append(PageRoute(path, answer, role, method))
        return answer

    return at


def redirect(target: str) -> Response:
    """Return the answer to a form: the address of the page that shows what came of it."""
    return RedirectResponse(target, 303)


def download(name: str, content: bytes, media_type: str) -> Response:
    """Return an answer that the browser keeps as a file."""
    disposition = f"attachment; filename*=UTF-8''{quote(name, safe='')}"
    return Response(content, media_type=media_type, headers={"Content-Disposition": disposition})


def address(*parts: str, **query: str | Iterable[str]) -> str:
    """Return the address of a page, as ``address("run", "demo", "v3", tab="diff")``: each part is one name."""
    path = "/" + "/".join(quote(part, safe="") for part in parts)
    pairs = [(key, value) for key, value in query.items() if value != ""]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


def in_shell(*words: str) -> str:
    return shlex.join(["skillgit", *words])


def html(answer: Page, visit: Visit) -> str:
    command = in_shell(*answer.command) if answer.command else ""
    template = environment().get_template(answer.template)
    return template.render(page=answer, visit=visit, access=visit.access, command=command, **answer.values)


def fragment(name: str, block: str, **values: object) -> str:
    """Return one block of the template ``name``: a part of a page, the same for everyone who looks."""
    template = environment().get_template(name)
    libraries = {"blocks": "blocks.html", "curves": "curve.html"}
    modules = {word: environment().get_template(file).make_module(values) for word, file in libraries.items()}
    return "".join(template.blocks[block](template.new_context({**values, **modules})))


@cache
def environment() -> Environment:
    """Return what renders our templates, which draw on those of the report."""
    environment = report.environment(_FOLDER / "templates")
    environment.globals.update(address=address, in_shell=in_shell)
    return environment


@cache
def stylesheet() -> str:
    """Return the style of the report, and behind it that of what only these pages have."""
    paths = (report.STYLE, STATIC / "site.css", *sorted(STATIC.glob("pages/*.css")))
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)
