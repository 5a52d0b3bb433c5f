from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.deliver.export.folder import without_markers
from skillgit.domain.protected_regions import (
    APPENDIX_END,
    APPENDIX_START,
    KEEP_END,
    KEEP_START,
    SLOW_END,
    SLOW_START,
    frontmatter,
    has_marker,
)
from skillgit.domain.skill import DOCUMENT, Skill

HEAD = "---\nname: demo\ndescription: About <!-- skillgit:slow --> markers.\n---\n"
MARKERS = st.sampled_from(
    [SLOW_START, SLOW_END, KEEP_START, KEEP_END, APPENDIX_START, APPENDIX_END, "<!--skillgit:-->"]
)
LINES = st.lists(st.one_of(MARKERS, st.text("ab -#`\t", max_size=6), st.sampled_from(["", "<!-- a -->", "- rule"])))


def stripped(text: str, path: str = DOCUMENT) -> str:
    files = {DOCUMENT: b"# Demo\n"} | {path: text.encode()}
    return without_markers(Skill("demo", files)).files[path].decode()


@given(LINES)
def test_no_marker_is_left_and_every_other_line_stays_in_its_place(lines):
    text = HEAD + "".join(f"{line}\n" for line in lines)
    bare = stripped(text)
    assert not has_marker(bare.removeprefix(frontmatter(bare)))
    assert bare.startswith(HEAD)
    assert (
        bare.rstrip().splitlines()
        == HEAD.splitlines() + "\n".join(line for line in lines if not has_marker(line)).rstrip().splitlines()
    )


@given(LINES)
def test_a_text_without_markers_stays_as_it_is(lines):
    text = HEAD + "\n".join(line for line in lines if not has_marker(line))
    assert stripped(text) == text


def test_markers_inside_of_lines_and_inside_of_markers_go_as_well():
    text = f"a {SLOW_START}b{SLOW_END} c <!-- skill{KEEP_START}git:keep -->\n"
    assert stripped(text) == "a b c\n"


def test_other_markdown_files_lose_their_markers_and_files_of_other_kinds_do_not():
    text = f"{SLOW_START}\nx\n{SLOW_END}\n"
    assert stripped(text, "references/a.md") == "x\n"
    assert stripped(text, "scripts/a.py") == text
