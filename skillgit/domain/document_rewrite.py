"""Rewriting a document as a whole: what a writer sees of it, and how code puts the rest back.

A writer is shown the *editable text*: the document without its frontmatter, each protected region replaced by a
placeholder. What comes back is put together with the frontmatter and the regions by code, and compared with the
original: a rewrite that would lose, move, copy or alter a protected region is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from skillgit.domain.edit import Edit, EditReport, EditSource, EditStatus, Op
from skillgit.domain.protected_regions import Owner, blocks, frontmatter, has_marker
from skillgit.domain.sequence_diff import differences
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.model_text import SkillText, verbatim

_PLACEHOLDER = re.compile(r"\[\[protected:\d+\]\]")


class ProposalKind(StrEnum):
    """What analysts write."""

    EDITS = "edits"
    SUGGESTIONS = "suggestions"
    DOCUMENTS = "documents"


class UpdateMode(StrEnum):
    """What analysts propose, and how a candidate comes of it."""

    PATCH = "patch"  # edits, which code applies
    SUGGESTIONS = "rewrite_from_suggestions"  # suggestions, which a writer carries out in one rewrite
    FULL = "full_rewrite_minibatch"  # whole documents, which are merged into one

    @property
    def proposals(self) -> ProposalKind:
        match self:
            case UpdateMode.PATCH:
                return ProposalKind.EDITS
            case UpdateMode.SUGGESTIONS:
                return ProposalKind.SUGGESTIONS
            case UpdateMode.FULL:
                return ProposalKind.DOCUMENTS


class SuggestionType(StrEnum):
    ADD_RULE = "add_rule"
    REMOVE_RULE = "remove_rule"
    MERGE_RULES = "merge_rules"
    REORGANIZE = "reorganize"
    COMPRESS = "compress"
    CLARIFY = "clarify"


class Priority(StrEnum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """What an analyst wants changed, for a writer to carry out."""

    type: SuggestionType
    title: str
    motivation: str = ""
    instruction: str
    priority: Priority = Priority.MEDIUM
    support: int = 1
    source: EditSource = EditSource.FAILURE
    items: tuple[str, ...] = ()  # ids of the trajectories, as far as they are known


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    title: str  # a few words for what it achieves
    summary: tuple[str, ...] = ()
    body: SkillText
    support: int = 1
    source: EditSource = EditSource.FAILURE
    items: tuple[str, ...] = ()  # ids of the trajectories, as far as they are known


class RewriteError(ValueError):
    """A rewrite does not keep what is protected; the text says how, for the writer to read."""


_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPEN_THOUGHT = re.compile(r"</?think(?:ing)?>", re.IGNORECASE)
_TAGS = re.compile(r"<(?P<tag>body|skill|new_text|document|answer)>(?P<text>.*)</(?P=tag)>", re.DOTALL | re.IGNORECASE)
_FENCE_LINE = re.compile(r"^(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[\w.+-]*)[ \t]*$")
_PLAIN_TEXT = frozenset(("", "markdown", "md", "text", "txt", "skill.md"))
_OPENING_WORDS = re.compile(
    r"""(?:(?:sure|certainly|of\ course|okay|ok|absolutely|great)\b[,.!:]*\s*)?
    (?:(?:here(?:['\u2019]s|\ is)|below\ is|this\ is|i(?:['\u2019]ve|\ have)\ \w+)\ [^\n]*?
      \b(?:(?:rewritten|updated|revised|new|improved|complete|full|final|edited|modified|requested)\b[^\n]*|the\ )
      \b(?:skill|text|document|version|body|markdown|file|rewrite)\b[^\n]*
    |)""",
    re.VERBOSE | re.IGNORECASE,
)
_CLOSING_WORDS = re.compile(
    r"(?:(?:please )?let me know\b|(?:i )?hope (?:this|that|it)\b|feel free to\b|would you like\b)[^\n]*", re.IGNORECASE
)
_FENCED_FIELDS = re.compile(
    r"```ya?ml[ \t]*\n(?:---[ \t]*\n)?(?:name|description)[ \t]*:.*?^```[ \t]*$", re.DOTALL | re.MULTILINE
)
_FIELD = re.compile(r"^(?:name|description)[ \t]*:", re.MULTILINE)


def unwrapped(text: str) -> str:
    """Return a new text without what models put around it: thoughts, words to the reader, tags, a fence, a frontmatter.

    A RewriteError if something of the kind is begun and never ended, so that the text may be cut.
    """
    body, before = text, ""
    while body != before:
        before, body = body, _without_one_wrapper(body)
    if text.strip() and not body.strip():
        raise RewriteError("the new text is empty but for what is around it; give the text itself")
    return body if body.strip() != text.strip() else text


_BYTE_ORDER_MARKS = re.compile(r"^\ufeff+", re.MULTILINE)


def _without_one_wrapper(text: str) -> str:
    body = _BYTE_ORDER_MARKS.sub("", text).strip()  # also inside a wrapper, where one would hide a fence
    if match := _THOUGHT.match(body):
        return body[match.end() :]
    if _OPEN_THOUGHT.match(body):
        raise RewriteError("the new text begins with a thought that is never closed; give the text alone")
    if tags := _TAGS.fullmatch(body):
        return tags["text"]
    first, _, rest = body.partition("\n")
    following = rest.lstrip()
    if _OPENING_WORDS.fullmatch(first.strip()) and (
        first.rstrip().endswith(":") or following.startswith(("```", "---"))
    ):
        return rest
    before, _, last = body.rpartition("\n")
    if before.strip() and _CLOSING_WORDS.fullmatch(last.strip()):
        return before
    if fields := _FENCED_FIELDS.match(body):
        return body[fields.end() :]
    if first.strip() == "---":
        return _without_frontmatter(body)
    return _without_fence(body)


def has_second_frontmatter(document: str) -> bool:
    """Say whether the text below the frontmatter of ``document`` begins with one more."""
    return bool(_FIELD.search(frontmatter(document.removeprefix(frontmatter(document)).lstrip())))


def _without_frontmatter(body: str) -> str:
    head = frontmatter(body)
    if not head and _FIELD.match(body.partition("\n")[2]):
        raise RewriteError("the new text begins with a frontmatter that is never closed; leave the frontmatter out")
    return body.removeprefix(head) if _FIELD.search(head) else body


def _without_fence(body: str) -> str:
    """Return what is in the fence around all of ``body``, if there is one.

    Of fences inside each other, the outer one says that it holds Markdown, or the inner one that it holds something:
    a fence with a name opens a block, and never closes one.
    """
    lines = body.split("\n")
    opening = _FENCE_LINE.match(lines[0])
    if opening is None or opening["info"].casefold() not in _PLAIN_TEXT:
        return body
    fences = [
        match for line in lines[1:] if (match := _FENCE_LINE.match(line)) and match["ticks"][0] == opening["ticks"][0]
    ]
    closing = _FENCE_LINE.match(lines[-1])
    is_nested = bool(fences) and (bool(fences[0]["info"]) or len(fences[0]["ticks"]) < len(opening["ticks"]))
    if len(fences) % 2 == 0 and (is_nested or not fences):
        raise RewriteError("the new text begins with a code fence that is never closed; give the text without it")
    if closing is None or closing["info"] or len(fences) % 2 == 0:
        return body
    if len(fences) > 1 and not is_nested:
        if opening["info"]:
            raise RewriteError("the new text has a code fence around it; give it without that fence")
        return body
    return "\n".join(lines[1:-1])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectedRegion:
    placeholder: str
    owner: Owner
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A document as a writer sees it."""

    frontmatter: str
    body: str  # the editable text with placeholders, without the blank lines around it
    regions: tuple[ProtectedRegion, ...]  # what the placeholders stand for, in order
    lead: str  # the line breaks before ``body``
    trail: str

    @classmethod
    def of(cls, text: str) -> Template:
        head, frame, regions = "", "", list[ProtectedRegion]()
        for block in blocks(text):
            part = text[block.start : block.end]
            if block.owner is Owner.FRONTMATTER:
                head = part
            elif block.owner is Owner.BODY:
                frame += part
            else:
                placeholder = f"[[protected:{len(regions) + 1}]]"
                regions.append(ProtectedRegion(placeholder=placeholder, owner=block.owner, text=part))
                frame += placeholder
        body = frame.strip("\n")
        lead = frame[: len(frame) - len(frame.lstrip("\n"))] if body else ""
        return cls(frontmatter=head, body=body, regions=tuple(regions), lead=lead, trail=frame[len(lead) + len(body) :])

    def fill(self, body: SkillText) -> str:
        """Return the document with ``body`` as its editable text.

        A RewriteError if ``body`` does not hold every placeholder once and in order, holds a region marker, or would
        change what is protected in another way.
        """
        content = body.strip("\n")
        if not content.strip():
            raise RewriteError("the new text is empty")
        if has_marker(content):
            raise RewriteError("the new text contains a region marker; leave the placeholders in their place")
        placeholders = [region.placeholder for region in self.regions]
        matches = _PLACEHOLDER.findall(content)
        if matches != placeholders:
            missing = [placeholder for placeholder in placeholders if placeholder not in matches]
            problem = f"{', '.join(missing)} is missing" if missing else f"the placeholders are {', '.join(matches)}"
            raise RewriteError(
                f"{problem}; the new text must contain {', '.join(placeholders) or 'no placeholder'}"
                f"{', each once and in this order' if placeholders else ''}"
            )
        for region in self.regions:
            content = content.replace(region.placeholder, region.text, 1)
        text = f"{self.frontmatter}{self.lead}{content}{self.trail}"
        parts = [(part.owner, text[part.start : part.end]) for part in blocks(text) if part.owner is not Owner.BODY]
        head = [(Owner.FRONTMATTER, self.frontmatter)] if self.frontmatter else []
        if parts != head + [(region.owner, region.text) for region in self.regions]:
            raise RewriteError("the new text would change a protected part of the document")
        return text


def rewritten(skill: Skill, body: SkillText) -> Skill:
    """Return ``skill`` with another editable text; a RewriteError if it loses what is protected, or is too long."""
    new = skill.with_text(DOCUMENT, Template.of(skill.document).fill(body))
    if excess := new.excess:
        raise RewriteError(f"with the new text {excess}")
    return new


def changed_hunks(old: Skill, new: Skill, *, support: int, source: EditSource) -> tuple[Edit, ...]:
    """Return what a rewrite changed, an edit for each stretch of lines; they may be ambiguous, and tell only."""
    return tuple(_hunks(DOCUMENT, old.document, new.document, support=support, source=source))


def folder_hunks(old: Skill, new: Skill, *, support: int, source: EditSource) -> tuple[Edit, ...]:
    """Return the same of all text files, those that are new or gone included."""
    before, after = dict(old.text_files()), dict(new.text_files())
    return tuple(
        edit
        for path in sorted(before.keys() | after.keys())
        if before.get(path) != after.get(path)
        for edit in _hunks(path, before.get(path, ""), after.get(path, ""), support=support, source=source)
    )


def _hunks(path: str, old: str, new: str, *, support: int, source: EditSource) -> Iterator[Edit]:
    before, after = old.splitlines(), new.splitlines()
    for a_from, a_to, b_from, b_to in differences(before, after):
        minus, plus = "\n".join(before[a_from:a_to]), "\n".join(after[b_from:b_to])
        op = Op.REPLACE if minus.strip() and plus.strip() else Op.INSERT_AFTER if plus.strip() else Op.DELETE
        if not minus.strip() and not plus.strip():
            continue
        anchor = minus if minus.strip() else next((line for line in reversed(before[:a_from]) if line.strip()), "")
        if not anchor:
            op = Op.APPEND
        yield Edit(op=op, file=path, anchor=verbatim(anchor), content=verbatim(plus), support=support, source=source)


def human_edits(base: Skill, skill: Skill) -> tuple[EditReport, ...]:
    """Return what changed between two texts, as edits that a person applied."""
    hunks = changed_hunks(base, skill, support=1, source=EditSource.HUMAN)
    return tuple(EditReport(edit=hunk, status=EditStatus.APPLIED) for hunk in hunks)
