from __future__ import annotations

import os
import subprocess
from contextlib import suppress

import pytest
from hostile_names import ENTRY_NAMES, GIT_FOLDERS, SAFE, UNSAFE, literal_tree
from hypothesis import given, settings
from hypothesis import strategies as st
from program import surroundings
from pygit2.enums import FileMode

from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.untrusted.file_names import (
    TreePath,
    clashes,
    entry_name,
    file_name,
    git_fault,
    leads_out,
    path_fault,
    shown,
    tree_paths,
)
from skillgit.errors import SkillError, UnsafeNameError
from skillgit.store.repo import Repo


@pytest.mark.parametrize("name", UNSAFE, ids=repr)
def test_what_is_another_place_on_some_system_is_no_path(name):
    text = entry_name(name)

    assert path_fault(text)
    assert path_fault(f"references/{text}")
    with pytest.raises(UnsafeNameError) as refused:
        TreePath(text)
    assert refused.value.message.isprintable()
    assert refused.value.hint


@pytest.mark.parametrize("name", SAFE, ids=repr)
def test_what_people_have_stays(name):
    assert path_fault(name.decode()) == ""
    assert TreePath(f"a/{name.decode()}") == f"a/{name.decode()}"


@pytest.mark.parametrize("path", ["", "/", "/a", "a/", "a//b", "a/../b", "./a", "a/.", "b/CON/a", "a/" * 2048 + "a"])
def test_paths_without_a_shortest_form(path):
    assert path_fault(path)


def test_a_path_is_long_and_no_longer():
    assert path_fault("/".join(["x" * 99] * 40)) == ""
    assert path_fault("/".join(["x" * 99] * 41)) != ""


@pytest.mark.parametrize(
    "names",
    [
        ("a", "A"),
        ("É.md", "e\u0301.md"),
        ("straße", "STRASSE"),
        ("ab", "a\u200cb"),
        ("A", "a/x"),
        ("a/x", "A/y"),
        ("a", "a/x"),
        ("a", "a"),
        ("x/b/c", "x/B"),
    ],
)
def test_one_place_under_two_names_is_refused(names):
    assert list(clashes(names))
    assert list(clashes(reversed(names)))
    with pytest.raises(UnsafeNameError, match="same place"):
        tree_paths(names)


@given(st.lists(st.sampled_from(["a", "A", "b", "É", "é"]), min_size=1, max_size=3).map("/".join))
def test_a_name_does_not_stand_in_its_own_way(path):
    assert tree_paths([path, f"{path}2"]) == (path, f"{path}2")


@given(st.text(max_size=8))
def test_a_path_is_made_by_the_check_alone(text):
    try:
        path = TreePath(text)
    except UnsafeNameError:
        assert path_fault(text)
    else:
        assert (path, path_fault(text)) == (text, "")
        path.encode()


@given(ENTRY_NAMES)
def test_a_name_with_a_slash_is_never_taken_for_a_path_of_two_parts(name):
    assert "/" not in entry_name(name)
    assert entry_name(name).encode("ascii", "backslashreplace")
    if b"/" in name:
        assert path_fault(entry_name(name))


@given(st.text(max_size=300))
def test_what_is_told_of_a_name_can_be_printed(text):
    assert shown(text).replace("\u00a0", " ").replace("\u3000", " ").isascii() or shown(text).encode()
    assert not any(letter in shown(text) for letter in "\x1b\n\r\t\x07\u202e\u2066\ud800")


@pytest.mark.parametrize("name", ["a/b", "..", "", "CON", ".git"])
def test_the_name_of_a_folder_has_one_part(name):
    with pytest.raises(UnsafeNameError):
        file_name(name)
    with pytest.raises(SkillError):
        Skill(name, {DOCUMENT: b""})


@pytest.mark.parametrize("path", ["../x", "/x", ".git/config", "a\\b", "skill.md", "SKILL.md/x", "\udcff"])
def test_no_skill_holds_such_a_file(path):
    skill = Skill("demo", {DOCUMENT: b"x"})

    for make in (lambda: Skill("demo", {DOCUMENT: b"x", path: b""}), lambda: skill.with_text(path, "")):
        with pytest.raises(SkillError, match="cannot be used"):
            make()
    assert type(next(iter(skill.files))) is TreePath


@pytest.fixture(scope="module")
def judge(tmp_path_factory) -> Repo:
    """A repository in which git itself says what it takes."""
    return Repo.init(tmp_path_factory.mktemp("judge"))


def refused_by_git(repo: Repo, name: bytes) -> bool:
    """Say whether git's fsck or its index refuses an entry of that name on some system."""
    blob = repo.raw.create_blob(b"")
    tree = literal_tree(repo, [(name, blob, FileMode.BLOB)])
    settings_of_all = [word for key in ("HFS", "NTFS") for word in ("-c", f"core.protect{key}=true")]
    fsck = subprocess.run(
        ["git", "-C", repo.workdir, *settings_of_all, "fsck", "--strict", "--no-dangling", str(tree.id)],
        env=surroundings(),
        capture_output=True,
        check=False,
    )
    index = subprocess.run(
        ["git", "-C", repo.workdir, *settings_of_all, "update-index", "--add", "-z", "--index-info"],
        input=b"100644 %s\t%s\0" % (str(blob).encode(), name),
        env=surroundings(),
        capture_output=True,
        check=False,
    )
    (repo.common_dir / "index").unlink(missing_ok=True)
    return (
        b"in tree %s" % str(tree.id).encode() in fsck.stderr
        or index.returncode != 0
        or b"Ignoring path" in index.stderr
    )


@settings(max_examples=25)
@given(name=ENTRY_NAMES)
def test_what_git_refuses_on_any_system_is_refused_here(judge, name):
    if refused_by_git(judge, name):
        assert path_fault(entry_name(name))
        assert git_fault(entry_name(name)) or b"/" in name


@pytest.mark.parametrize("name", GIT_FOLDERS, ids=repr)
def test_git_refuses_the_spellings_of_its_own_folder(judge, name):
    assert git_fault(entry_name(name))
    assert refused_by_git(judge, name)


PARTS = st.lists(st.sampled_from(["..", ".", "a", "b", "c"]), min_size=1, max_size=4).map("/".join)


@given(links=st.dictionaries(st.sampled_from(["a", "b", "d/a", "d/b", "d/e/c"]), PARTS | st.just("/etc"), max_size=4))
def test_links_that_do_not_lead_out_never_lead_out_together(tmp_path_factory, links):
    """Whatever other links a link meets on its way: that is what a file system says."""
    folder = tmp_path_factory.mktemp("links", numbered=True) / "skill"
    (folder / "d/e").mkdir(parents=True)
    for path, target in links.items():
        if not leads_out(path, target):
            with suppress(FileExistsError):
                (folder / path).symlink_to(target)
    for path in links:
        real = os.path.realpath(folder / path)
        assert real == str(folder) or real.startswith(f"{folder}/"), path
    assert all(leads_out(path, "/etc") for path in links)
