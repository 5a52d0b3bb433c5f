from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pygit2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.skill_format import atomic_write
from skillgit.app.skill_format.atomic_write import exchange
from skillgit.app.skill_format.folder_contents import (
    EntryKind,
    FolderEntry,
    changes,
    entries_of,
    fingerprint,
    listing_digest,
    read_entries,
    tree_id,
)
from skillgit.domain.skill import Skill
from skillgit.errors import ConflictError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

FILE = st.builds(
    FolderEntry,
    kind=st.just(EntryKind.FILE),
    mode=st.sampled_from([0o600, 0o644, 0o755]),
    content=st.binary(max_size=8),
)
ENTRIES = st.dictionaries(st.text("ab/.", min_size=1, max_size=4), FILE, max_size=4)


def a_folder(path: Path) -> Path:
    """Make a folder with everything that a folder may hold."""
    (path / "empty").mkdir(parents=True)
    (path / "SKILL.md").write_text("# Old\n")
    (path / "SKILL.md").chmod(0o600)
    (path / "run").write_bytes(b"\x00\xff")
    (path / "run").chmod(0o750)
    (path / "link").symlink_to("SKILL.md")
    (path / "lost").symlink_to("/nowhere/at/all")
    path.chmod(0o711)
    os.utime(path / "SKILL.md", (1, 1))
    return path


@given(ENTRIES, ENTRIES)
def test_fingerprints_are_equal_exactly_if_nothing_changed_but_permissions(one, other):
    assert (fingerprint(one) == fingerprint(other)) == (not changes(one, other) and bool(one) == bool(other))


def test_what_programs_leave_behind_is_nobodys_doing(tmp_path):
    skill = Skill("demo", {"SKILL.md": b"# Demo\n", "scripts/a.py": b""}, frozenset({"scripts/a.py"}))
    atomic_write.write_skill(tmp_path / "demo", skill)
    assert fingerprint(read_entries(tmp_path / "demo")) == fingerprint(entries_of(skill))
    (tmp_path / "demo/scripts/__pycache__").mkdir()
    (tmp_path / "demo/scripts/__pycache__/a.pyc").write_bytes(b"x")
    (tmp_path / "demo/.DS_Store").write_bytes(b"x")
    assert fingerprint(read_entries(tmp_path / "demo")) == fingerprint(entries_of(skill))
    (tmp_path / "demo/scripts/a.py").chmod(0o644)
    assert fingerprint(read_entries(tmp_path / "demo")) != fingerprint(entries_of(skill))


def test_a_copy_is_the_same_to_the_last_bit(tmp_path):
    source = a_folder(tmp_path / "source")
    atomic_write.copy(source, tmp_path / "target")
    assert read_entries(tmp_path / "target") == read_entries(source)
    assert (tmp_path / "target/SKILL.md").stat().st_mtime == 1


@pytest.mark.parametrize("swaps", [True, False], ids=["names swap at once", "names cannot swap"])
@pytest.mark.parametrize("old", ["folder", "file", "link", "read-only folder", "nothing"])
def test_the_new_content_takes_the_place_of_whatever_stood_there(tmp_path, monkeypatch, old, swaps):
    if not swaps:
        monkeypatch.setattr(atomic_write, "exchange", lambda *_: False)
    place = tmp_path / "in/place"
    place.parent.mkdir()
    if "folder" in old:
        a_folder(place).chmod(0o500 if old == "read-only folder" else 0o711)
    elif old == "file":
        place.write_text("old")
    elif old == "link":
        place.symlink_to("elsewhere")
    before, seen = read_entries(place), []
    atomic_write.put(
        place,
        lambda beside: atomic_write.copy(a_folder(tmp_path / "new"), beside),
        lambda one: seen.append(read_entries(one)),
    )
    assert read_entries(place) == read_entries(tmp_path / "new")
    assert seen == ([before] if before else [])
    assert list(place.parent.iterdir()) == [place]


def test_a_writer_that_fails_leaves_the_old_content_and_nothing_beside(tmp_path):
    place = a_folder(tmp_path / "in/place")
    before = read_entries(place)

    def fail(beside: Path) -> None:
        atomic_write.copy(place, beside)
        raise PermissionError(13, "Permission denied")

    with pytest.raises(ConflictError, match="cannot be written: Permission denied"):
        atomic_write.put(place, fail)
    assert read_entries(place) == before
    assert list(place.parent.iterdir()) == [place]


def test_exchange_needs_both_names(tmp_path):
    (tmp_path / "a").write_text("a")
    with pytest.raises(FileNotFoundError):
        exchange(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b").mkdir()
    if exchange(tmp_path / "a", tmp_path / "b"):
        assert (tmp_path / "a").is_dir()
        assert (tmp_path / "b").read_text() == "a"


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="a file is where a folder must be"):
        atomic_write.put(tmp_path / "file/place", lambda beside: beside.mkdir())


def test_differences_are_told_as_diff_tells_them():
    old = {
        "a": FolderEntry(kind=EntryKind.FILE, mode=0o644, content=b"one\ntwo\n"),
        "b": FolderEntry(kind=EntryKind.FILE, mode=0o644, content=b"\0"),
        "c": FolderEntry(kind=EntryKind.LINK, content=b"a"),
        "d": FolderEntry(kind=EntryKind.FILE, mode=0o644, content=b"same"),
    }
    new = old | {
        "a": FolderEntry(kind=EntryKind.FILE, mode=0o755, content=b"one\nthree"),
        "b": FolderEntry(kind=EntryKind.FILE, mode=0o644, content=b"\1"),
        "c": FolderEntry(kind=EntryKind.LINK, content=b"b"),
    }
    told = {change.path: (change.status, change.diff) for change in changes(old, new)}
    assert set(told) == {"a", "b", "c"}
    head = "diff --git a/a b/a\nold mode 100644\nnew mode 100755\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n"
    assert told["a"] == ("changed", f"{head} one\n-two\n+three\n\\ No newline at end of file\n")
    assert told["b"][1].endswith("\nchanged: the file b\n")
    assert told["c"][1].endswith("\nchanged: the link c\n")


@given(
    files=st.dictionaries(
        st.text("abAB.-\u00e9", min_size=1, max_size=3).filter(lambda name: name.strip(".")), FILE, max_size=4
    ),
    inside=st.dictionaries(st.sampled_from(["a", "a.b", "a-", "B"]), FILE, max_size=3),
)
def test_a_tree_has_the_id_that_git_gives_it(tmp_path_factory, files, inside):
    entries = {**files, **{f"x/{name}": entry for name, entry in inside.items()}}
    entries.pop("x", None)
    repository = pygit2.init_repository(tmp_path_factory.getbasetemp() / "trees.git", bare=True)
    index = pygit2.Index()
    for path, entry in entries.items():
        index.add(pygit2.IndexEntry(path, repository.create_blob(entry.content), int(entry.git_mode, 8)))
    assert tree_id(entries) == str(index.write_tree(repository))


def test_a_listing_can_be_made_with_other_programs(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "SKILL.md").write_text("# Old\n")
    (tmp_path / "scripts/run.sh").write_text("exit\n")
    (tmp_path / "scripts/run.sh").chmod(0o755)
    (tmp_path / "link").symlink_to("SKILL.md")
    lines = [
        f"{mode} {hashlib.sha256(data).hexdigest()} {path}\n"
        for mode, data, path in (
            ("100644", b"# Old\n", "SKILL.md"), ("120000", b"SKILL.md", "link"), ("100755", b"exit\n", "scripts/run.sh")
        )
    ]  # fmt: skip
    assert listing_digest(read_entries(tmp_path)) == hashlib.sha256("".join(lines).encode()).hexdigest()
