"""Any event by its address: the text with what brought it, the change, the gate, and what may be done with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from typing import Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from skillgit.app.attribution.provenance import BlameRow, blame
from skillgit.app.deliver.export.folder import ENDINGS, archive, skill_of
from skillgit.app.deliver.report import DiffAllowance
from skillgit.app.deliver.summary import or_none
from skillgit.app.history.diff.text import diff
from skillgit.app.history.show import Shown, event_detail, neighbours
from skillgit.app.workspace.revision import resolve
from skillgit.domain.address import parse, version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.protected_regions import MARKER, frontmatter
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import NotFoundError, RevisionNotFoundError, UsageError
from skillgit.index.rows import LogRow
from skillgit.report.page import rule, visible
from skillgit.view.search import search_facts
from skillgit.view.show import recorded_facts
from skillgit.view.surface import Screen
from skillgit.web.pages import event_actions
from skillgit.web.rendering import Download, Page, PageRoute, Redirect, Visit, address

LINES = 2_000  # of a file that are shown
MARKDOWN = 60_000  # characters that are rendered; a longer text is shown as it is, for a hostile one takes minutes
_TIPS = ("head", "best")
_WITH_TEXT = frozenset({EventKind.REJECTED, EventKind.SLOW_PROPOSED})
_LAYOUTS: Final = ("unified", "split", "word")
_VIEWS: Final = ("rendered", "text")
_BELOW = 2  # levels that headings go down: a page has a heading of its own, and so has the part with the text
SECTIONS: Final = {
    **dict.fromkeys(("gate", "fixed", "broken", "items"), "gate"),
    **dict.fromkeys(("says", "memory"), "guidance"),
    "skipped": "reasons",
    "checks": "checks",
    **dict.fromkeys(("known", "noted"), "record"),
}
"""What ``skillgit show`` says of an event that has a section of the page, by label; the rest is a list of facts."""
_WITH_DETAILS = frozenset({"edits", "cost"})  # whose further lines are tables of the page
_LOWEST = 6
_SCHEMES = frozenset({"http", "https"})
_BLOCKS = frozenset({"paragraph_open", "heading_open", "list_item_open", "fence", "code_block", "table_open"})
_MARKER_LINE = re.compile(rf"[ \t]*(?:{MARKER.pattern}[ \t]*)+")


def row_of(visit: Visit) -> LogRow:
    """Return the event of an address; what git alone would understand names none."""
    run, event = visit.parameters["run"], visit.parameters["event"]
    text = f"{run}/{event}"
    row = resolve(visit.context, text).row if event in _TIPS or parse(text) else None
    if row is None or row.run != run:
        raise RevisionNotFoundError(f"run {run} has no event '{event}'", hint=f"skillgit log {run}")
    return row


def version_page(visit: Visit) -> Page | Redirect:
    row = row_of(visit)
    if row.label != visit.parameters["event"]:
        return Redirect(address=address("run", row.run, row.label))
    name = str(row.address)
    detail = event_detail(visit.context, row.commit)
    layout = _choice(visit, "diff", _LAYOUTS)
    newer = or_none(lambda: diff(visit.context, name, as_data=True))
    difference = DiffAllowance().take(newer.files if newer else ())
    verdict = getattr(detail.shown.event, "verdict", None)
    return Page(
        template="version.html",
        title=f"{row.label}: {row.title}",
        command=("show", name),
        values={
            "detail": detail,
            "shown": detail.shown,
            "event": detail.shown.event,
            "row": row,
            "run": row.run,
            "verdict": verdict,
            "gate_rule": rule(verdict),
            "base": newer.a if newer else None,
            "difference": difference,
            "layout": layout,
            "layouts": _LAYOUTS,
            "search": tuple(search_facts(detail.shown)),
            "facts": tuple(_facts(detail.shown)),
            "around": neighbours(visit.context, row),
            "document": _document(visit, row) if row.version is not None or row.kind in _WITH_TEXT else None,
            "item_address": partial(address, "run", row.run, "items", **_sides(row)),
            "actions": [action for action in event_actions.ACTIONS if action.fits(row)],
            "brought_by": brought_by,
        },
    )


def _facts(shown: Shown) -> Iterator[tuple[str, tuple[str, ...]]]:
    for label, texts in recorded_facts(shown, Screen()):
        is_elsewhere = label in SECTIONS and not (label == "skipped" and not shown.left_out)
        if not is_elsewhere:
            yield label, texts[:1] if label in _WITH_DETAILS else texts


def _sides(row: LogRow) -> dict[str, str]:
    # what a slow update proposes is measured as the version that merges it
    return (
        {}
        if row.base is None or row.kind == EventKind.SLOW_PROPOSED
        else {"a": version_label(row.base), "b": row.label}
    )


def _choice(visit: Visit, name: str, values: tuple[str, ...]) -> str:
    value = visit.value(name, values[0])
    if value not in values:
        raise UsageError(f"{name} is none of {', '.join(values)}", hint=f"leave {name} out")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillDocument:
    """A file of the skill folder with where its lines come from, and the other files beside it."""

    path: str
    files: Mapping[str, int]  # every file and its size in bytes
    view: str
    lines: tuple[BlameRow, ...]
    left_out: int
    body: Rendered | None  # absent where the text is asked for as it is, or is no Markdown
    is_text: bool


def _document(visit: Visit, row: LogRow) -> SkillDocument:
    skill = skill_of(visit.context, row.commit)
    path, view = visit.value("file", DOCUMENT), _choice(visit, "view", _VIEWS)
    if path not in skill.files:
        raise NotFoundError(f"{row.address} has no file '{path}'", hint=f"skillgit show {row.address}:{DOCUMENT}")
    texts = dict(skill.text_files())
    lines = blame(visit.context, str(row.address), path).lines if path in texts else ()
    is_short = len(texts.get(path, "")) <= MARKDOWN and len(lines) <= LINES
    is_markdown = path.endswith(".md") and view == "rendered" and is_short
    return SkillDocument(
        path=path,
        files={name: len(content) for name, content in skill.files.items()},
        view=view if is_short else "text",
        lines=lines[:LINES],
        left_out=max(0, len(lines) - LINES),
        body=_with_origins(texts[path], path, lines, row, skill) if is_markdown and path in texts else None,
        is_text=path in texts,
    )


def _with_origins(text: str, path: str, lines: tuple[BlameRow, ...], row: LogRow, skill: Skill) -> Rendered:
    files = {name: address("run", row.run, row.label, file=name) for name in skill.files}

    def mark(first: int, last: int) -> Markup:
        block = lines[first - 1 : last]
        if not block:
            return Markup()
        newest = max(block, key=lambda line: (line.version or 0, line.address is not None))
        return _origin(newest, row, address("run", row.run, row.label, "why", file=path, line=str(first)))

    return rendered(text, mark, files)


_ORIGIN = Markup(
    '<a class="brought {tone}" href="{link}" title="{title}">{name}<span class="hidden">: why line {line}</span></a>'
)


def _origin(line: BlameRow, row: LogRow, link: str) -> Markup:
    name = brought_by(line, row)
    title = line.title or ("written by a person" if line.source == "human" else "there before the run began")
    tone = "seed" if name == "seed" else "own" if line.address == row.address else "older"
    return _ORIGIN.format(tone=tone, link=link, title=title, name=name, line=line.line)


def brought_by(line: BlameRow, row: LogRow) -> str:
    """Return what a line is said to come from, as short as in the margin of a text."""
    if line.address is not None and line.kind != EventKind.RUN_STARTED:
        return line.address.seen_from(row.run)
    return "hand" if line.source == "human" else "seed"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The Markdown of a skill as HTML: a stranger's text, which brings no markup, style or address of its own."""

    front: tuple[tuple[int, str], ...]  # the lines of the frontmatter with their numbers
    html: Markup


def rendered(text: str, mark: Callable[[int, int], Markup], files: Mapping[str, str]) -> Rendered:
    """Return ``text`` with ``mark`` of its lines before each block; ``files`` are addresses of the skill's files."""
    front = frontmatter(text)
    above = front.count("\n")
    # a sign that Markdown takes for the end of a line would move all lines below it
    plain = (str(visible(line.removesuffix("\r"))) for line in text[len(front) :].split("\n"))
    lines = ["" if _MARKER_LINE.fullmatch(line) else line for line in plain]
    parser = _parser()
    tokens = parser.parse("\n".join(lines))
    _settle(tokens, _anchors(tokens), files)
    _mark(tokens, above, mark)
    html = Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - the renderer escapes all text
    return Rendered(tuple(enumerate(front.removesuffix("\n").split("\n") if front else (), start=1)), html)


class _Renderer(RendererHTML):
    """Its methods render what their names say; all of them escape, and none of them prints an attribute."""

    def text(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return _shown(tokens[idx].content)

    def code_inline(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return f"<code>{_shown(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return f"<pre><code>{_shown(tokens[idx].content)}</code></pre>\n"

    def fence(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return self.code_block(tokens, idx)

    def image(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return f'<span class="picture">picture: {_shown(tokens[idx].content) or "without a name"}</span>'

    def mark(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return tokens[idx].content  # ours


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    return parser.enable(["table", "strikethrough"])


def _shown(text: str) -> str:
    """Return text with signs that take effect or stay unseen made visible, line by line, escaped."""
    return "\n".join(escape(str(visible(line))) for line in text.split("\n"))


def _anchors(tokens: Sequence[Token]) -> dict[str, str]:
    """Return the addresses of headings as Markdown writes them, with what they are called here."""
    names: dict[str, str] = {}
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open":
            slug = re.sub(r"[^\w\- ]", "", content.content.strip().lower()).replace(" ", "-")
            names.setdefault(f"#{slug}", f"part-{len(names) + 1}")
            heading.meta["name"] = names[f"#{slug}"]
    return names


def _settle(tokens: Sequence[Token], anchors: Mapping[str, str], files: Mapping[str, str]) -> None:
    """Keep of all attributes what is ours, and of links what may be followed."""
    level, names, closing = _BELOW, set[str](), list[str]()
    for token in tokens:
        if token.type == "heading_open":
            # no level is left out, even where the text skips one, so that a reader can go by headings
            level = min(int(token.tag[1]) + _BELOW, level + 1, _LOWEST)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{level}"
        token.attrs = {"start": token.attrs["start"]} if "start" in token.attrs else {}
        name = token.meta.get("name")
        if name and name not in names:
            names.add(name)
            token.attrs["id"] = name
        for child in token.children or ():
            if child.type == "link_open":
                address = _followed(str(child.attrs.get("href", "")), anchors, files)
                child.tag, child.attrs = ("a", address) if address else ("span", {})
                closing.append(child.tag)
            elif child.type == "link_close":
                child.tag = closing.pop()


def _followed(target: str, anchors: Mapping[str, str], files: Mapping[str, str]) -> dict[str, str | int | float]:
    if target in anchors:
        return {"href": f"#{anchors[target]}"}
    if target.removeprefix("./") in files:
        return {"href": files[target.removeprefix("./")]}
    try:
        parts = urlsplit(target)
    except ValueError:
        return {}
    outside = parts.scheme in _SCHEMES and parts.netloc
    return {"href": target, "rel": "noreferrer noopener"} if outside else {}


def _mark(tokens: list[Token], above: int, mark: Callable[[int, int], Markup]) -> None:
    """Put the mark of each block at its beginning; a list item speaks for its first paragraph."""
    position, in_table, inside_item = 0, False, False
    while position < len(tokens):
        token = tokens[position]
        is_first = token.type in _BLOCKS and token.map is not None and not in_table and not inside_item
        in_table = token.type == "table_open" or (in_table and token.type != "table_close")
        inside_item = token.type == "list_item_open"
        if is_first and token.map is not None:
            last = _own_end(tokens, position) if token.type == "list_item_open" else token.map[1]
            content = str(mark(above + token.map[0] + 1, above + last))
            before = token.type in {"fence", "code_block", "table_open"}
            tokens.insert(position + (not before), Token("mark", "", 0, content=content))
            position += 1
        position += 1


def _own_end(tokens: Sequence[Token], position: int) -> int:
    """Return the last line of what a list item says before the items within it."""
    for token in tokens[position + 1 :]:
        if token.type == "inline" and token.map:
            return token.map[1]
        if token.type == "list_item_close":
            break
    return (tokens[position].map or [0, 1])[1]


def export_file(visit: Visit) -> Download:
    row = row_of(visit)
    ending = f".{visit.value('as', 'skill')}"
    if ending not in ENDINGS:
        raise UsageError(f"archives end in {' or '.join(ENDINGS)}", hint="as=skill")
    content = archive(skill_of(visit.context, row.commit))
    return Download(name=f"{row.run}-{row.label}{ending}", content=content, media_type="application/zip")


ROUTES = (
    PageRoute(path="/run/{run}/{event}", page=version_page),
    PageRoute(path="/run/{run}/{event}/export", page=export_file),
    *event_actions.ROUTES,
)
