from __future__ import annotations

import subprocess
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillgit.domain.text_diff import FileDiff, Hunk, Line, Place, Sign, detailed, emphasis, read_patch


def difference(folder, old: str, new: str, *options: str) -> str:
    """Let git compare two files called a.md."""
    for side, text in (("a", old), ("b", new)):
        (folder / side).mkdir(exist_ok=True)
        (folder / side / "x.md").write_bytes(text.encode())
    command = ["git", "diff", "--no-index", "--no-prefix", *options, "a/x.md", "b/x.md"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    assert done.returncode in {0, 1}
    return done.stdout.decode()


def whole(folder, old: str, new: str) -> tuple[FileDiff, ...]:
    return read_patch(difference(folder, old, new, "-U100000"))


def told(folder, old: str, new: str, context: int = 3) -> FileDiff:
    (file,) = detailed(whole(folder, old, new), context)
    return file


def changed(file: FileDiff) -> list[Line]:
    return [line for hunk in file.hunks for line in hunk.lines if line.sign is not Sign.SAME]


def emphasised(line: Line) -> list[str]:
    return [line.text[start:end] for start, end in line.spans]


def side(file: FileDiff, sign: Sign) -> str:
    lines = [line for hunk in file.hunks for line in hunk.lines if line.sign in {Sign.SAME, sign}]
    return "".join(line.text + "\n" * line.ended for line in lines)


texts = st.lists(
    st.sampled_from(
        ["one", "two", "-- dashes", "++ plus", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ back", "", "\tx\r"]
    ),
    max_size=12,
).map("\n".join)
ends = st.sampled_from(["", "\n"])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=texts, new=texts, old_end=ends, new_end=ends, context=st.integers(min_value=0, max_value=4))
def test_what_git_tells_is_read_completely_and_cut_as_git_cuts_it(tmp_path, old, new, old_end, new_end, *, context):
    old, new = old + old_end, new + new_end
    files = whole(tmp_path, old, new)
    if old == new:
        assert files == ()
        return
    (file,) = files
    assert (side(file, Sign.REMOVED), side(file, Sign.ADDED)) == (old, new)
    (cut,) = detailed(files, context)
    (gits,) = read_patch(difference(tmp_path, old, new, f"-U{context}"))
    assert [(line.sign, line.text) for hunk in cut.hunks for line in hunk.lines] == [
        (line.sign, line.text) for hunk in gits.hunks for line in hunk.lines
    ]
    assert [hunk.new[1] for hunk in cut.hunks] == [hunk.new[1] for hunk in gits.hunks]
    assert [hunk.old[1] for hunk in cut.hunks] == [hunk.old[1] for hunk in gits.hunks]
    assert (cut.added, cut.removed) == (gits.added, gits.removed)


def test_files_that_are_new_gone_renamed_binary_or_executable_say_so(tmp_path):
    def git(*arguments: str) -> str:
        author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        return subprocess.run(
            ["git", *author, *arguments], cwd=tmp_path, capture_output=True, check=True
        ).stdout.decode()

    git("init", "-q")
    for name, content in (("gone.md", b"x\n"), ("old name.md", b"a\nb\nc\n"), ("p.bin", b"\0a"), ("run", b"x\n")):
        (tmp_path / name).write_bytes(content)
    git("add", ".")
    git("commit", "-qm", "one")
    (tmp_path / "gone.md").unlink()
    (tmp_path / "old name.md").rename(tmp_path / "new näme.md")
    (tmp_path / "p.bin").write_bytes(b"\0b")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "empty").touch()
    git("add", "-A")
    found = {file.path: file for file in read_patch(git("diff", "--cached"))}
    assert found["gone.md"].notes == ("deleted file mode 100644",)
    assert found["gone.md"].removed == 1
    assert found["new näme.md"].notes == ("rename from old name.md", "rename to new näme.md")
    assert found["p.bin"].notes == ("Binary files a/p.bin and b/p.bin differ",)
    assert found["run"].notes == ("old mode 100644", "new mode 100755")
    assert found["empty"].notes == ("new file mode 100644",)
    assert len(found) == 5


def test_words_are_marked_in_lines_that_were_changed_and_in_no_others(tmp_path):
    old = "Read the question again.\nAlways answer in metres.\nMind the gap between the trains.\n"
    new = "Read the question again before answering.\nCount.\nMind the gap between two trains.\n"
    lines = changed(told(tmp_path, old, new))
    assert [(line.sign.value, line.partner, emphasised(line)) for line in lines] == [
        ("-", 1, []),
        ("-", None, []),
        ("-", 3, ["the"]),
        ("+", 1, ["before answering"]),
        ("+", None, []),
        ("+", 3, ["two"]),
    ]


def test_a_pair_is_chosen_by_similarity_and_keeps_the_order(tmp_path):
    lines = changed(told(tmp_path, "a b c d\ne f g h\n", "e f g x\na b c y\n"))
    paired = [(line.old or line.new, line.partner) for line in lines if line.partner]
    assert paired in ([(1, 2), (2, 1)], [(2, 1), (1, 2)])
    assert len([line for line in lines if line.spans]) == 2


def test_hunks_bear_the_nearest_heading_above_their_first_change(tmp_path):
    filler = "x\n" * 9
    old = f"# One\n{filler}```\n# code\n```\n{filler}## Two\n{filler}end\n"
    new = old.replace(f"{filler}## Two", f"changed\n{filler[2:]}## Two").replace("end", "finish")
    assert [hunk.heading for hunk in told(tmp_path, old, new).hunks] == ["# One", "## Two"]


def test_lines_that_stand_elsewhere_say_where(tmp_path):
    old = "Quote the row.\none\ntwo\nthree\nfour\nfive\n-\n"
    new = "one\ntwo\nthree\nfour\nfive\n-\n  Quote the row.\n"
    removed, added = changed(told(tmp_path, old, new))
    assert (removed.moved, added.moved) == (Place(path="x.md", line=7), Place(path="x.md", line=1))
    assert [line.moved for line in changed(told(tmp_path, "x\none\ntwo\n", "one\ntwo\nx\n"))] == [None, None]


def test_lines_may_move_to_another_file():
    def file(path: str, sign: Sign) -> FileDiff:
        number = {"old": 4} if sign is Sign.REMOVED else {"new": 4}
        return FileDiff(path=path, hunks=(Hunk(heading="", lines=(Line(sign=sign, text="Quote the row.", **number),)),))

    files = detailed([file("a.md", Sign.REMOVED), file("b.md", Sign.ADDED), file("c.md", Sign.ADDED)])
    places = [line.moved for one in files for line in changed(one)]
    assert places == [Place(path="b.md", line=4), Place(path="a.md", line=4), None]


words_of_text = st.lists(st.sampled_from(["a", "b", "the", "unit,", "東", "it's"]), max_size=8).map(" ".join)


@given(words_of_text, words_of_text)
def test_without_the_marked_words_two_lines_are_the_same(old, new):
    def rest(text: str, spans: tuple[tuple[int, int], ...]) -> str:
        kept = list(text)
        for start, end in reversed(spans):
            del kept[start:end]
        return "".join("".join(kept).split())

    gone, come = emphasis(old, new)
    assert rest(old, gone) == rest(new, come)
    for text, spans in ((old, gone), (new, come)):
        assert all(0 <= start < end <= len(text) for start, end in spans)
        assert all(one[1] < two[0] for one, two in pairwise(spans))
        assert all(text[start:end] == text[start:end].strip() or not text[start:end].strip() for start, end in spans)
    assert emphasis(old, old) == ((), ())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("in metres.", "in the unit.", (["metres"], ["the unit"])),
        ("Give it back.", "Give it back", (["."], [])),
        ("a  b", "a b", (["  "], [" "])),
        ("don't stop", "do not stop", (["don't"], ["do not"])),
        ("答案用米", "答案用尺", (["米"], ["尺"])),
    ],
)
def test_changed_words_are_whole_words(old, new, expected):
    gone, come = emphasis(old, new)
    assert ([old[a:b] for a, b in gone], [new[a:b] for a, b in come]) == expected


def test_large_blocks_are_not_paired():
    lines = tuple(
        Line(sign=sign, text=f"line number {n} of many {sign}", **{key: n})
        for sign, key in ((Sign.REMOVED, "old"), (Sign.ADDED, "new"))
        for n in range(1, 110)
    )
    (file,) = detailed([FileDiff(path="x.md", hunks=(Hunk(heading="", lines=lines),))])
    assert all(line.partner is None for line in changed(file))


def test_a_line_as_long_as_a_text_may_be_is_told_without_its_words():
    old = "one two " * (1 << 17)
    lines = (Line(sign=Sign.REMOVED, text=old, old=1), Line(sign=Sign.ADDED, text=f"{old}three", new=1))
    (file,) = detailed([FileDiff(path="SKILL.md", hunks=(Hunk(heading="", lines=lines),))])
    assert file.hunks[0].lines == lines
