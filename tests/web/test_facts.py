"""What each page says and offers, recorded without its order and its looks: a page that is drawn anew loses nothing.

``UPDATE_GOLDEN=1 pytest tests/web/test_facts.py`` records the lists again; a change of them is a change of the pages.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from harvested import SKILL
from once import copy_folder
from read_page import parsed
from serving import OTHER
from trained_runs import RUN, user

import skillgit
from skillgit.app.workspace.invitations import OWNER, Role, invite
from skillgit.app.workspace.workspace import Workspace
from skillgit.verbs.command_line import read_words
from skillgit.web import application
from skillgit.web.pages import ROUTES
from skillgit.web.rendering import Access, Visit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from xml.etree.ElementTree import Element

FACTS = Path(__file__).parent / "facts"
PAGES = {
    "runs": "/",
    "runs-chosen": f"/?sort=-cost&q=score>.1&show={RUN}&show={OTHER}&by=call",
    "runs-none": "/?q=nothing",
    "run": f"/run/{RUN}",
    "events": f"/run/{RUN}/events",
    "events-found": f"/run/{RUN}/events?q=score>.3&kind=accepted&from=1",
    "items": f"/run/{RUN}/items",
    "items-found": f"/run/{RUN}/items?facet=fixed:v1&sort=flips&q=va",
    "items-none": f"/run/{RUN}/items?q=nothing",
    "item": f"/run/{RUN}/items/va-001?a=v0&b=v1",
    "item-found": f"/run/{RUN}/items/va-002?sort=flips",
    "cost": f"/run/{RUN}/cost",
    "settings": f"/run/{RUN}/settings",
    "seed": f"/run/{RUN}/v0",
    "version": f"/run/{RUN}/v1",
    "version-text": f"/run/{RUN}/v1?view=text&diff=split",
    "version-words": f"/run/{RUN}/v1?diff=word",
    "rejected": f"/run/{RUN}/r1",
    "end": f"/run/{RUN}/end",
    "rule": f"/run/{RUN}/v1/why?file=SKILL.md&line=10",
    "rule-of-run": f"/run/{RUN}/best/why?line=12",
    "compare-empty": "/compare",
    "compare": f"/compare?rev={RUN}/v0&rev={RUN}/v1",
    "compare-runs": f"/compare?rev={RUN}&rev={OTHER}&rev={RUN}/v0&view=split",
    "new": "/new?config=demo",
    "new-of-run": f"/new?from={RUN}",
    "live": f"/run/{RUN}/live",
    "activity": "/activity",
    "command": "/activity/1",
    "drafts": "/drafts",
    "drafts-of-skill": f"/drafts/{SKILL}",
    **{f"action-{name}": f"/run/{RUN}/v1/{name}" for name in ("eval", "promote", "install", "fork", "note")},
    "action-retry": f"/run/{RUN}/r1/retry",
}
READERS = ("runs", "run", "version", "settings", "live", "activity")
"""Pages of which a link that only reads shows less."""
BLOCKS = frozenset(
    (
        *("p", "li", "tr", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "caption", "summary", "figcaption", "label"),
        *("legend", "option", "button", "title", "desc", "pre", "text", "div", "main", "section", "nav", "td", "th"),
        *("form", "details", "blockquote", "aside", "article", "header", "footer", "ins", "del"),
    )
)
INNER = frozenset({"td", "th", "ins", "del"})
"""Elements whose text is a part of the row that they are in."""
SAID = ("aria-label", "title", "data-live", "data-part", "data-key", "data-hotkey")
FIELDS = frozenset({"input", "select", "textarea", "button"})
FLAGS = ("required", "checked", "disabled", "formaction", "maxlength", "min", "max")
COMMIT = re.compile(r"\b[0-9a-f]{40}\b|\b[0-9a-f]{7}\b")
CHANCE = re.compile(r"(?<=^text: )\d+\.\d+( s)?$")
"""What no two trainings share: calls a second, and how long an answer takes."""
SOURCE = f"{Path(skillgit.__file__).parents[1]}/"
SHAPES = frozenset({"path", "use", "rect", "circle", "polyline", "line"})


def visit_of(repository: Path, address: str, role: Role) -> tuple[object, Visit]:
    """Return the route of an address, and the visit of someone who asks for it."""
    parts = urlsplit(address)
    for route in ROUTES:
        pattern = re.sub(r"{(\w+):path}", r"(?P<\1>.+)", route.path)
        match = re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", pattern), parts.path)
        if match and route.method == "GET":
            return route, Visit(
                workspace=Workspace(user(repository), still=True),
                access=Access(name=OWNER if role is Role.OPERATOR else "Ada", role=role, csrf="secret"),
                path=parts.path,
                link="http://localhost:7421",
                parameters={name: unquote(value) for name, value in match.groupdict().items()},
                query=parse_qs(parts.query),
            )
    raise AssertionError(address)


def drawn(repository: Path, address: str, role: Role = Role.OPERATOR) -> str:
    """Return the page at an address, also where another one leads to it."""
    response = application._drawn(*visit_of(repository, address, role))
    if target := response.headers.get("location"):
        return drawn(repository, f"{target}?{urlsplit(address).query}", role)
    return response.body.decode()


def lines_of(element: Element, within: str = "") -> Iterator[tuple[str, str]]:
    """Yield the tag and the text of each block of an element, without the blocks inside it."""
    own: list[str] = [element.text or ""]
    for child in element:
        name = child.tag.rpartition("}")[2]
        in_row = within == "tr" and name in INNER
        if name in {"script", "style", "template"}:
            pass
        elif name in BLOCKS and not in_row:
            yield from lines_of(child, name)
            own.append("\n")
        elif in_row:
            inside = list(lines_of(child, "tr"))
            own.append(" ".join(text for tag, text in inside if tag == "tr") + " | ")
            yield from ((tag, text) for tag, text in inside if tag != "tr")
        elif name == "br":
            own.append(" ")
        else:
            inside = list(lines_of(child, within))
            own.append(" ".join(text for tag, text in inside if tag == within))
            yield from ((tag, text) for tag, text in inside if tag != within)
        own.append(child.tail or "")
    for line in "".join(own).split("\n") if within in {"pre", "code"} else [" ".join("".join(own).split())]:
        if line.strip(" |"):
            yield within, line.strip()


def facts(content: str, *, whole: bool) -> list[str]:
    """Return what a page says and offers, a line each, sorted; ``whole`` with what all pages have."""
    page = parsed(content)
    body = page.find("body")
    assert body is not None
    if not whole:
        body.remove(body.find("header"))
    lines: list[str] = [f"title: {page.findtext('head/title')}"]
    for tag, text in lines_of(body, "body"):
        lines.append(f"{tag if tag[0] == 'h' and tag[1:].isdigit() else 'text'}: {text}")
    for element in body.iter():
        tag = element.tag.rpartition("}")[2]
        lines += [f"{name}: {element.get(name)}" for name in SAID if element.get(name)]
        if tag == "a" and element.get("href"):
            words = " ".join("".join(element.itertext()).split())
            lines.append(f"link: {words or element.get('aria-label')} -> {element.get('href')}")
        if tag == "form":
            fields = sorted(field_of(field) for field in element.iter() if field.tag in FIELDS)
            lines.append(f"form: {element.get('method', 'get')} {element.get('action', '')}: {'; '.join(fields)}")
        if tag == "svg":
            shapes = Counter(shape.tag.rpartition("}")[2] for shape in element.iter())
            drawn = ", ".join(f"{shapes[name]} {name}" for name in sorted(SHAPES) if shapes[name])
            lines.append(f"drawing: {element.get('class')} {drawn}")
    counted = Counter(CHANCE.sub("", COMMIT.sub("COMMIT", line)).replace(SOURCE, "") for line in lines)
    return sorted(f"{line} x{number}" if number > 1 else line for line, number in counted.items())


def field_of(field: Element) -> str:
    value = field.get("value", "") or (field.text or "" if field.tag == "textarea" else "")
    kind = field.get("type", "") or field.tag
    flags = [name for name in FLAGS if name in field.attrib]
    options = [
        f"{'*' * ('selected' in option.attrib)}{option.get('value', option.text)}" for option in field.iter("option")
    ]
    return " ".join([kind, field.get("name", ""), repr(value), *flags, *options])


COMMAND = re.compile(r"^text: (?:The same in a terminal:|Runs) skillgit (.+)$", re.MULTILINE)
COMMANDS = sorted(
    {words for file in FACTS.glob("*.txt") for words in COMMAND.findall(file.read_text(encoding="utf-8"))}
)


@pytest.mark.parametrize("words", COMMANDS)
def test_a_command_that_a_page_names_is_one_that_the_program_takes(words: str):
    verb, request = read_words(shlex.split(words))
    assert read_words(verb.words(request)) == (verb, request)


def test_of_two_addresses_that_match_the_one_that_is_spelled_answers():
    for earlier, later in pairwise(route.path.split("/") for route in ROUTES):
        own, other = next(((a, b) for a, b in zip(earlier, later, strict=False) if a != b), ("", ""))
        assert not own.startswith("{") or other.startswith("{"), (earlier, later)


@pytest.fixture(scope="module")
def used(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in which a command was run and somebody invited."""
    copy = copy_folder(repository, tmp_path_factory.mktemp("used") / "repository")
    shutil.rmtree(
        copy / ".git/skillgit/serve", ignore_errors=True
    )  # other tests invite people to the repository of all
    folder = copy / ".git/skillgit/commands"
    folder.mkdir(parents=True, exist_ok=True)
    record = {"time": "2026-11-27T10:00:00+00:00", "by": "Ada", "back": f"/run/{RUN}/v1"}
    record |= {"words": ["promote", f"{RUN}/v1"]}
    (folder / "1.command").write_text(f"{json.dumps(record)}\n{json.dumps({'exit': 4})}\n")
    (folder / "1.out").write_text("some output\n")
    (folder / "1.err").write_text("skillgit: it went wrong\nhint: do it another way\n")
    invite(user(copy), "Bea", Role.VIEWER)
    return copy


@pytest.mark.parametrize("name", [*PAGES, *(f"{name}-for-readers" for name in READERS)])
def test_a_page_says_and_offers_what_is_recorded(used: Path, name: str):
    base = name.removesuffix("-for-readers")
    content = drawn(used, PAGES[base], Role.OPERATOR if name == base else Role.VIEWER)
    found = facts(content, whole=base == "runs")
    file = FACTS / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{line}\n" for line in found), encoding="utf-8")
    assert found == file.read_text(encoding="utf-8").splitlines()
