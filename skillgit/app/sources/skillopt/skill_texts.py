"""The texts of the reference as skills, and back: markers of regions, and the frontmatter that it does not have."""

from __future__ import annotations

import re

from skillgit.app.skill_format import frontmatter
from skillgit.app.skill_format.seed import described
from skillgit.domain.protected_regions import APPENDIX_END, APPENDIX_START, SLOW_END, SLOW_START
from skillgit.domain.protected_regions import frontmatter as block_of
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.model_text import SkillText
from skillgit.errors import SkillError

_MARKERS = {
    "SLOW_UPDATE_START": SLOW_START,
    "SLOW_UPDATE_END": SLOW_END,
    "APPENDIX_START": APPENDIX_START,
    "APPENDIX_END": APPENDIX_END,
}
_THEIRS = re.compile(rf"<!--\s*({'|'.join(_MARKERS)})\s*-->")
_BACK = {ours: f"<!-- {theirs} -->" for theirs, ours in _MARKERS.items()}
_OURS = re.compile("|".join(re.escape(marker) for marker in _BACK))
_EMPTY_REGION = re.compile(
    rf"{re.escape(SLOW_START)}\s*{re.escape(SLOW_END)}|{re.escape(APPENDIX_START)}\s*{re.escape(APPENDIX_END)}"
)


def with_our_markers(text: str) -> str:
    return _THEIRS.sub(lambda match: _MARKERS[match.group(1)], text)


def with_their_markers(text: str) -> str:
    """Return ``text`` with our markers of slow region and appendix as those of the reference; others stay."""
    return _OURS.sub(lambda match: _BACK[match.group()], text)


def without_their_markers(text: str) -> str:
    return _THEIRS.sub("", text)


class Texts:
    """Turns the texts of a directory into versions of one skill, with the frontmatter of the first if it has any."""

    def __init__(self, name: str, first: str) -> None:
        text = with_our_markers(first)
        fields = _fields(text)
        if fields is None:
            self.name = frontmatter.skill_name(name)
            self._header = f"{frontmatter.compose(self.name, described(_body(text), self.name))}\n"
        else:
            self.name, self._header = str(fields["name"]), block_of(text)

    def skill(self, text: SkillText) -> Skill:
        """Return ``text`` as a valid skill; a frontmatter that is not valid, or names another skill, is replaced."""
        document = with_our_markers(text)
        fields = _fields(document)
        if fields is None or fields["name"] != self.name:
            document = f"{self._header}{_body(document)}"
        return Skill(self.name, {DOCUMENT: document.encode()})


def alike(first: str, second: str) -> bool:
    """Say whether two texts differ in white space and empty regions at most."""
    return _EMPTY_REGION.sub("", first).split() == _EMPTY_REGION.sub("", second).split()


def _fields(text: str) -> dict[str, str | dict[str, str]] | None:
    try:
        return frontmatter.read(text)
    except SkillError:
        return None


def _body(text: str) -> str:
    return text[len(block_of(text)) :]
