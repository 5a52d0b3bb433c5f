"""Skills without the markers of their regions, for readers that are no part of any training."""

from __future__ import annotations

import re

from skillgit.domain.skill import DOCUMENT, MARKER, Skill, frontmatter

_MARKER_LINE = re.compile(rf"^[ \t]*(?:{MARKER.pattern}[ \t]*)+(?:\n|\Z)", re.MULTILINE)


def without_markers(skill: Skill) -> Skill:
    """Return ``skill`` with no region marker in its Markdown; what stands between markers stays, frontmatter too."""
    for path, text in list(skill.text_files()):
        if path.endswith(".md"):
            kept = frontmatter(text) if path == DOCUMENT else ""
            bare = kept + _bare(text[len(kept) :])
            if bare != text:
                skill = skill.with_text(path, bare)
    return skill


def _bare(text: str) -> str:
    """Return ``text`` without markers; a line that holds nothing else goes with them."""
    while True:
        # Of a marker inside a marker, removing the inner one leaves the outer.
        bare = MARKER.sub("", _MARKER_LINE.sub("", text))
        if bare == text:
            return text
        text = f"{bare.rstrip()}\n" if bare.strip() else ""
