"""An anchor that is misquoted without a doubt is found where it was meant, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.anchors import spans_of
from skillgit.domain.edit import Edit, EditStatus, Op, apply
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.model_text import clean

SKILLS = Path(__file__).parents[3] / "shared" / "data" / "skills"
MISQUOTES = {
    "trailing blank": lambda line: f"{line} ",
    "leading blanks": lambda line: f"  {line}",
    "curly quotes": lambda line: re.sub(r'"([^"]*)"', "\u201c\\1\u201d", line).replace("'", "\u2019"),
    "straight quotes": lambda line: line.translate(str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")),
    "bold marks": lambda line: re.sub(r"(?<=\s)(\w{3,})(?=\s)", r"**\1**", line, count=1),
    "no marks": lambda line: line.replace("**", "").replace("`", ""),
    "newline for blank": lambda line: line.replace(" ", "\n", len(line) // 30),
    "another list mark": lambda line: re.sub(r"^(\s*)[-*](?=\s)", r"\1+", line),
    "no list mark": lambda line: re.sub(r"^\s*(?:[-*+]|\d+[.)]|#+)\s+", "", line),
    "another dash": lambda line: line.replace("\u2014", "-").replace("\u2013", "-"),
    "ellipsis within": lambda line: f"{line[:30]}\u2026{line[-25:]}" if len(line) > 70 else line,
    "ellipsis at the end": lambda line: f"{line[:45]}..." if len(line) > 60 else line,
}


def documents() -> list[tuple[str, str]]:
    paths = sorted(SKILLS.rglob("*.md")) if SKILLS.is_dir() else []
    return [(path.relative_to(SKILLS).as_posix(), path.read_text(encoding="utf-8")) for path in paths]


def lines_of(text: str) -> list[tuple[int, int]]:
    """Return where the lines of the body begin and end that stand in it once, however they are written."""
    spans, position = [], 0
    body = len(frontmatter(text))
    plain = [re.sub(r"[\W_]+", "", line) for line in text.splitlines()]
    for line, key in zip(text.splitlines(keepends=True), plain, strict=True):
        start, end = position, position + len(line.rstrip())
        position += len(line)
        if start >= body and len(key) >= 12 and sum(key in other for other in plain) == 1:
            spans.append((start, end))
    return spans


@pytest.mark.skipif(not SKILLS.is_dir(), reason="the real skills are not on this machine")
@pytest.mark.parametrize("name", MISQUOTES)
def test_of_real_skills_every_line_is_found_however_it_is_misquoted(name):
    lost, lines = [], 0
    for path, text in documents():
        for start, end in lines_of(text):
            anchor = MISQUOTES[name](text[start:end])
            lines += 1
            spans = spans_of(text, anchor)
            strays = [span for span in spans if span[1] <= start or span[0] >= end]
            assert len(spans) != 1 or not strays, f"{path}: {anchor!r} leads to {text[slice(*spans[0])]!r}"
            if len(spans) != 1:
                lost.append((path, anchor))
    assert lines > 500
    assert len(lost) <= lines / 100, lost


@given(
    st.text(alphabet="ab -*_`\"'\u201c\u2014\n#.\u2026", max_size=60),
    st.text(alphabet='ab -*`"\u201d.\u2026', max_size=20),
)
def test_whatever_is_quoted_the_place_is_within_the_text_and_what_is_exact_stays_exact(text, anchor):
    spans = spans_of(text, anchor) if anchor else []
    assert all(0 <= start < end <= len(text) for start, end in spans)
    if anchor and text.count(anchor) == 1:
        assert [text[start:end] for start, end in spans] == [anchor]


@pytest.mark.parametrize(
    ("text", "anchor"),
    [
        ("- Use 2*3 items.\n", "Use 23 items."),
        ("- Set max_rows.\n", "Set maxrows."),
        ("- Write km.\n- Write **km**.\n\n- Write `km`.\n", "Write *km*."),
        ("- First the sum of all rows.\n- First the sum of all columns.\n", "First the sum \u2026 rows and columns"),
        ("- One rule about dates.\n\n- Another rule about times.\n", "One rule \u2026 about times."),
        ("- A short one.\n", "A \u2026 one."),
    ],
)
def test_what_leaves_a_doubt_is_not_applied(text, anchor):
    assert len(spans_of(text, anchor)) != 1


@pytest.mark.parametrize(
    ("op", "anchor", "content", "result"),
    [
        (Op.REPLACE, "Say km.", "Say miles.", "# U\n\n- Say miles.\n- Round up \u2014 always.\n"),
        (Op.REPLACE, "* Round up - always.", "- Never round.", "# U\n\n- Say **km**.\n- Never round.\n"),
        (Op.REPLACE, "Round up - always.", "Never round.", "# U\n\n- Say **km**.\n- Never round.\n"),
        (Op.DELETE, "- Say km.", "", "# U\n\n- Round up \u2014 always.\n"),
        (Op.INSERT_AFTER, "Say *km*.", "- Or m.", "# U\n\n- Say **km**.\n- Or m.\n- Round up \u2014 always.\n"),
    ],
)
def test_an_edit_takes_marks_along_and_leaves_none_behind(op, anchor, content, result):
    skill = Skill(name="u", files={"SKILL.md": "# U\n\n- Say **km**.\n- Round up \u2014 always.\n".encode()})
    application = apply(skill, [Edit(op=op, anchor=clean(anchor), content=clean(content))])
    assert application.reports[0].status is EditStatus.APPLIED
    assert application.skill.document == result
