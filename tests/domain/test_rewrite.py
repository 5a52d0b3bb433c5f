from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.document_rewrite import RewriteError, Template, changed_hunks, rewritten
from skillgit.domain.edit import EditSource, Op
from skillgit.domain.protected_regions import Owner, blocks
from skillgit.domain.skill import DOCUMENT, MOST_DOCUMENT, Skill
from skillgit.domain.untrusted.model_text import verbatim

HEAD = "---\nname: s\ndescription: d\n---\n"
KEEP = "<!-- skillgit:keep -->\n- people say so\n<!-- /skillgit:keep -->"
SLOW = "<!-- skillgit:slow -->\n- guidance\n<!-- /skillgit:slow -->"
DOCUMENTS = [
    f"{HEAD}\n# Title\n\n- one\n- two\n",
    f"{HEAD}\n# Title\n\n- one\n{KEEP}\n- two\n\n{SLOW}\n",
    f"# Title\n\n- inline {KEEP} goes on\n",
    f"{SLOW}\n\n# Title\n",
    f"{HEAD}{KEEP}{SLOW}",
    f"{HEAD}\n# Title\n\n<!-- skillgit:keep -->\nnever closed\n",
    "plain",
    "\n\nplain\n\n\n",
]
pieces = st.sampled_from(
    [HEAD, KEEP, SLOW, "<!-- skillgit:keep -->", "<!-- /skillgit:slow -->", "\n", "- a\n", "text ", "---\n"]
)
texts = st.one_of(st.sampled_from(DOCUMENTS), st.lists(pieces, max_size=12).map("".join))


def skill(text: str) -> Skill:
    return Skill("s", {DOCUMENT: text.encode(), "references/a.md": b"- one\n"})


def protected(text: str) -> list[tuple[Owner, str]]:
    return [(block.owner, text[block.start : block.end]) for block in blocks(text) if block.owner is not Owner.BODY]


@given(text=texts)
def test_an_unchanged_body_gives_the_unchanged_document(text):
    template = Template.of(text)
    if template.body.strip() and "skillgit:" not in template.body:
        assert template.fill(template.body) == text


@given(text=texts, lines=st.lists(st.sampled_from(["- x", "", "# H", "---", "text"]), max_size=6), data=st.data())
def test_a_rewrite_keeps_every_protected_character_or_is_refused(text, lines, data):
    template = Template.of(text)
    wanted = list(lines)
    place = 0
    for region in template.regions:
        place = data.draw(st.integers(place, len(wanted)))
        wanted.insert(place, region.placeholder)
        place += 1
    try:
        filled = template.fill("\n".join(wanted))
    except RewriteError:
        return
    assert protected(filled) == protected(text)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("- new", r"protected:1\]\], \[\[protected:2\]\] is missing"),
        ("[[protected:2]]\n[[protected:1]]", "in this order"),
        ("[[protected:1]]\n[[protected:1]]\n[[protected:2]]", "each once"),
        ("[[protected:1]]\n[[protected:2]]\n[[protected:3]]", "each once"),
        ("[[protected:1]]\n[[protected:2]]\n<!-- skillgit:slow -->", "marker"),
        ("  \n", "empty"),
    ],
)
def test_a_rewrite_that_loses_moves_copies_or_forges_a_region_is_refused(body, reason):
    with pytest.raises(RewriteError, match=reason):
        Template.of(DOCUMENTS[1]).fill(body)


def test_text_behind_a_region_that_is_never_closed_would_become_protected_and_is_refused():
    template = Template.of(DOCUMENTS[5])
    with pytest.raises(RewriteError, match="protected part"):
        template.fill("# Title\n[[protected:1]]\n- behind")


def test_a_rewrite_cannot_make_a_frontmatter():
    with pytest.raises(RewriteError, match="protected part"):
        Template.of("plain\n").fill("---\nname: other\n---\ntext")


def test_a_rewrite_changes_the_document_and_no_other_file():
    before = skill(DOCUMENTS[1])
    after = rewritten(before, "# Other\n\n[[protected:1]]\n- three\n[[protected:2]]")
    assert after.document == f"{HEAD}\n# Other\n\n{KEEP}\n- three\n{SLOW}\n"
    assert after.files["references/a.md"] == b"- one\n"


def test_changed_hunks_tell_what_went_and_what_came():
    old, new = skill("# T\n\n- a\n- b\n- c\n"), skill("# T\n\n- a2\n- b\n- c\n- d\n")
    hunks = changed_hunks(old, new, support=3, source=EditSource.MIXED)
    assert [(hunk.op, hunk.anchor, hunk.content) for hunk in hunks] == [
        (Op.REPLACE, "- a", "- a2"),
        (Op.INSERT_AFTER, "- c", "- d"),
    ]
    assert {(hunk.support, hunk.source) for hunk in hunks} == {(3, EditSource.MIXED)}
    assert changed_hunks(old, old, support=1, source=EditSource.MIXED) == ()
    assert [hunk.op for hunk in changed_hunks(new, skill("# T\n\n- b\n"), support=1, source=EditSource.MIXED)] == [
        Op.DELETE,
        Op.DELETE,
    ]
    assert re.fullmatch(r"- .*", hunks[0].content)


def test_a_rewrite_beyond_what_a_skill_may_hold_is_refused():
    with pytest.raises(RewriteError, match="longer than 1 MiB"):
        rewritten(skill("plain"), verbatim("x" * (MOST_DOCUMENT + 1)))
