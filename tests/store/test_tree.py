from __future__ import annotations

import pytest
from hostile_names import literal_tree
from hypothesis import given
from hypothesis import strategies as st
from pygit2.enums import FileMode
from sample_run import with_file

from skillgit.domain.skill import DOCUMENT, MOST_DOCUMENT, Skill
from skillgit.errors import HistoryError, RevisionNotFoundError, SkillError, UnsafeNameError
from skillgit.store import tree
from skillgit.store.repo import Repo

NAMES = st.from_regex(r"[a-z0-9 ü_-]{1,8}", fullmatch=True).filter(lambda name: name.strip() == name)
PATHS = st.one_of(NAMES.map("a/{}".format), NAMES.map("b/c/{}".format), NAMES)


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Repo:
    return Repo.init(tmp_path_factory.mktemp("trees"))


@st.composite
def skills(draw: st.DrawFn) -> Skill:
    paths = draw(st.sets(PATHS.filter(lambda path: path not in {"a", "b", "b/c"}), max_size=6))
    files = {path: draw(st.binary(max_size=50)) for path in paths}
    executable = draw(st.sets(st.sampled_from(sorted(paths)))) if paths else set()
    return Skill("demo", {**files, DOCUMENT: draw(st.text()).encode("utf-8", "ignore")}, frozenset(executable))


@given(old=skills(), new=skills(), path=st.sampled_from(["demo", "skills/demo", "a/b/c/demo"]))
def test_skills_come_back_and_replace_each_other_wholly(store, old, new, path) -> None:
    first = tree.with_skill(store, None, path, old)
    around = with_file(store, first, "README.md", b"mine")
    second = tree.with_skill(store, around, path, new)

    assert tree.read_skill(store, first, path) == old
    assert tree.read_skill(store, second, path) == new
    assert tree.read_file(store, second, "README.md") == b"mine"
    assert tree.with_skill(store, around, path, old).id == around.id


def test_files_are_set_and_removed(store) -> None:
    first = with_file(store, None, "a/b.txt", b"x")
    second = with_file(store, first, "c.txt", b"y")

    assert tree.read_files(store, second) == {"a/b.txt": b"x", "c.txt": b"y"}
    assert with_file(store, second, "c.txt", None).id == first.id
    assert with_file(store, second, "absent.txt", None).id == second.id
    assert tree.read_file(store, second, "a") is None
    assert tree.read_file(store, second, "a/none") is None


def test_a_file_in_the_place_of_a_folder_gives_way(store) -> None:
    first = with_file(store, None, "skills", b"a file")
    second = tree.with_skill(store, first, "skills/demo", Skill("demo", {DOCUMENT: b"x"}))

    assert tree.read_files(store, second) == {"skills/demo/SKILL.md": b"x"}


@pytest.mark.parametrize("name", [".git", "..", ".", "a//b", "a/.git/hooks"])
def test_names_that_git_refuses_are_refused(store, name) -> None:
    with pytest.raises(SkillError, match="git refuses"):
        tree.with_skill(store, None, f"skills/{name}/demo", Skill("demo", {DOCUMENT: b"x"}))
    with pytest.raises(UnsafeNameError):
        tree.write_files(store, {name: b"y"})


def test_trees_that_stand_for_billions_of_files_are_given_up(store) -> None:
    folder = store.raw.create_blob(b"x"), FileMode.BLOB
    for _ in range(9):
        folder = literal_tree(store, [(b"%d" % name, *folder) for name in range(10)]).id, FileMode.TREE
    root = literal_tree(store, [(b"demo", *folder)])

    for read in (tree.read_skill, tree.read_texts, tree.read_folder):
        with pytest.raises(HistoryError, match="more than 10000 files"):
            read(store, root, "demo")


def test_what_is_no_skill_is_not_read(store) -> None:
    found = with_file(store, None, "skills/demo/notes.md", b"x")

    with pytest.raises(SkillError, match=r"has no SKILL\.md"):
        tree.read_skill(store, found, "skills/demo")
    with pytest.raises(RevisionNotFoundError):
        tree.read_skill(store, found, "skills/demo/notes.md")
    with pytest.raises(RevisionNotFoundError):
        tree.read_skill(store, found, "skills/other")


def test_a_skill_beyond_the_bound_is_neither_written_nor_read(store):
    long = Skill("demo", {DOCUMENT: b"a" * (MOST_DOCUMENT + 1)})
    with pytest.raises(SkillError, match="longer than 1 MiB"):
        tree.with_skill(store, None, "skills/demo", long)
    foreign = tree.write_files(store, {f"skills/demo/{path}": content for path, content in long.files.items()})
    for read in (tree.read_skill, tree.read_texts):
        with pytest.raises(SkillError, match="longer than 1 MiB"):
            read(store, foreign, "skills/demo")
