"""The Markdown of a skill as HTML: a stranger's text, which brings no markup, style or address of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import pairwise
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from skillgit.domain.protected_regions import MARKER, frontmatter
from skillgit.report.page import visible

_BELOW = 2  # levels that headings go down: a page has a heading of its own, and so has the part with the text
_LOWEST = 6
_BLOCKS = frozenset({"paragraph_open", "heading_open", "list_item_open", "fence", "code_block", "table_open"})
_MARKER_LINE = re.compile(rf"[ \t]*(?:{MARKER.pattern}[ \t]*)+")


Front = tuple[tuple[int, str], ...]
"""The lines of a frontmatter with their numbers."""


def rendered(text: str, mark: Callable[[int, int], Markup], files: Mapping[str, str]) -> tuple[Front, Markup]:
    """Return the frontmatter of ``text``, and the rest as HTML.

    Before each block there is the ``mark`` of its first and its last line; ``files`` are addresses of the skill's
    files.
    """
    front = frontmatter(text)
    above = front.count("\n")
    # a sign that Markdown takes for the end of a line would move all lines below it
    plain = (str(visible(line.removesuffix("\r"))) for line in text[len(front) :].split("\n"))
    parser = _parser()
    tokens = parser.parse("\n".join("" if _MARKER_LINE.fullmatch(line) else line for line in plain))
    _clean(tokens, files)
    _mark(tokens, above, mark)
    html = Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 - the renderer escapes all text
    return tuple(enumerate(front.removesuffix("\n").split("\n") if front else (), start=1)), html


class _Renderer(RendererHTML):
    """Its methods render what their names say; all of them escape, and none of them prints an attribute."""

    def text(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        # signs that take effect or stay unseen become visible, line by line
        return "\n".join(escape(str(visible(line))) for line in tokens[idx].content.split("\n"))

    def code_inline(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return f"<code>{self.text(tokens, idx)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return f"<pre><code>{self.text(tokens, idx)}</code></pre>\n"

    def fence(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return self.code_block(tokens, idx)

    def image(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return f'<span class="picture">picture: {self.text(tokens, idx) or "without a name"}</span>'

    def mark(self, tokens: Sequence[Token], idx: int, *_: object) -> str:
        return tokens[idx].content  # ours


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    return parser.enable(["table", "strikethrough"])


def _clean(tokens: Sequence[Token], files: Mapping[str, str]) -> None:
    """Keep of all attributes what is ours, and of links what may be followed."""
    anchors: dict[str, str] = {}  # addresses of headings as Markdown writes them, with what they are called here
    for heading, content in pairwise(tokens):
        if heading.type == "heading_open":
            slug = re.sub(r"[^\w\- ]", "", content.content.strip().lower()).replace(" ", "-")
            if f"#{slug}" not in anchors:
                heading.meta["name"] = anchors[f"#{slug}"] = f"part-{len(anchors) + 1}"
    level, closing = _BELOW, list[str]()
    for token in tokens:
        if token.type == "heading_open":
            # no level is left out, even where the text skips one, so that a reader can go by headings
            level = min(int(token.tag[1]) + _BELOW, level + 1, _LOWEST)
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{level}"
        token.attrs = {"start": token.attrs["start"]} if "start" in token.attrs else {}
        if name := token.meta.get("name"):
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
    is_outside = parts.scheme in {"http", "https"} and parts.netloc
    return {"href": target, "rel": "noreferrer noopener"} if is_outside else {}


def _mark(tokens: list[Token], above: int, mark: Callable[[int, int], Markup]) -> None:
    """Put the mark of each block at its beginning; a list item speaks for its first paragraph."""
    position, in_table, inside_item = 0, False, False
    while position < len(tokens):
        token = tokens[position]
        is_first = token.type in _BLOCKS and token.map is not None and not in_table and not inside_item
        in_table = token.type == "table_open" or (in_table and token.type != "table_close")
        inside_item = token.type == "list_item_open"
        if is_first and token.map is not None:
            last = _own_end(tokens, position) if inside_item else token.map[1]
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
