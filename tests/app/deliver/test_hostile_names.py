"""Whatever a stranger calls the files of a skill: what takes it out writes inside of its target, or nothing at all."""

from __future__ import annotations

import json
import zipfile
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pygit2
import pytest
from asking import ask
from folding import folding_folder
from hostile_names import ENTRY_NAMES, literal_tree, with_entries
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pygit2.enums import FileMode
from soaking import examples

from skillgit.app.deliver.export.folder import checkout, export_skill
from skillgit.app.deliver.install import InstallRequest, Scope, install
from skillgit.app.skill_format.seed import read_seed
from skillgit.app.sources.skillopt.outputs import import_outputs
from skillgit.app.workspace.context import Context
from skillgit.domain.untrusted.file_names import entry_name, path_fault
from skillgit.errors import DataError, SkillgitError, UsageError
from skillgit.store.repo import Repo

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNATURE = pygit2.Signature("stranger", "s@localhost", 1795300000, 0)
FOLDERS = st.lists(ENTRY_NAMES, max_size=3)


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def store(home) -> Repo:
    return Repo.init(home / "repository")


@pytest.fixture(scope="module")
def user(store, home) -> Context:
    return Context(
        directory=store.workdir.resolve(),
        environ={"HOME": str(home)},
        clock=lambda: datetime(2026, 11, 21, 12, tzinfo=UTC),
        entropy=lambda count: b"\0" * count,
    )


def commit_of(repo: Repo, names: list[bytes], folders: list[bytes], *, mode: int = FileMode.BLOB) -> str:
    """Commit a skill with files called ``names`` that lie in ``folders``, one in the other."""
    inner = with_entries(repo, None, names, mode)
    for folder in reversed(folders):
        inner = literal_tree(repo, [(folder, inner.id, FileMode.TREE)])
    document = repo.raw.create_blob(b"---\nname: demo\ndescription: d\n---\n")
    held = [(entry.raw_name, entry.id, entry.filemode) for entry in inner]
    skill = literal_tree(repo, [*held, (b"SKILL.md", document, FileMode.BLOB)])
    root = literal_tree(repo, [(b"skills", literal_tree(repo, [(b"demo", skill.id, FileMode.TREE)]).id, FileMode.TREE)])
    return str(repo.raw.create_commit(None, SIGNATURE, SIGNATURE, "x\n", root.id, []))


def seen(top: Path) -> dict[str, object]:
    paths = (path for path in top.rglob("*") if ".git" not in path.relative_to(top).parts)
    return {str(path): path.read_bytes() if path.is_file() else path.is_dir() for path in paths}


@contextmanager
def nothing_beside(home: Path, place: Path) -> Iterator[None]:
    """Check that nothing in ``home`` is another afterwards, but for ``place`` where the block ends well."""
    before, refused = seen(home), None
    try:
        yield
    except SkillgitError as error:
        refused = error
    if refused is not None:
        assert (bool(refused.hint), refused.message.replace("\n", "").isprintable(), seen(home)) == (True, True, before)
        return
    assert {path: held for path, held in before.items() if not Path(path).is_relative_to(place)} == outside(home, place)


def outside(home: Path, place: Path) -> dict[str, object]:
    return {path: held for path, held in seen(home).items() if not Path(path).is_relative_to(place)}


@examples(0.3)
@given(names=st.lists(ENTRY_NAMES, min_size=1, max_size=3), folders=FOLDERS)
@example(names=[b"x"], folders=[b".."])
@example(names=[b"x"], folders=[b"a", b"..", b"..", b"..", b"y"])
@example(names=[b"post-checkout"], folders=[b".git", b"hooks"])
@example(names=[b"a", b"A"], folders=[])
@example(names=[b"x"], folders=[b"f"] * 3000)
def test_a_skill_is_taken_out_whole_or_not_at_all(store, user, home, names, folders):
    commit = commit_of(store, names, folders)
    with TemporaryDirectory(dir=home) as place:
        for target in (Path(place) / "deep" / "demo", Path(place) / "demo.zip"):
            with nothing_beside(home, Path(place)):
                done = ask(export_skill, user, commit, str(target))
                assert not any(map(path_fault, done.files))
                assert files_at(target) == set(done.files)
        with nothing_beside(home, Path(place)):
            install(user, InstallRequest(words=(commit,), to=str(Path(place) / "skills")), lambda *_: True)


def files_at(target: Path) -> set[str]:
    if target.suffix == ".zip":
        with zipfile.ZipFile(target) as archive:
            return {name.removeprefix("demo/") for name in archive.namelist()}
    return {path.relative_to(target).as_posix() for path in target.rglob("*") if path.is_file()}


@examples(0.3)
@given(names=st.lists(ENTRY_NAMES, min_size=1, max_size=2), folders=FOLDERS)
@example(names=[b"x"], folders=[b"..", b"..", b"..", b".."])
@example(names=[b"../../../x"], folders=[])
@example(names=[b"config"], folders=[b".git"])
def test_a_checkout_stays_in_the_work_tree(store, user, home, names, folders):
    commit = commit_of(store, names, folders)
    before = outside(home, store.workdir)
    for paths in (("skills",), ()):
        with suppress(SkillgitError):
            checkout(user, commit, paths)
    assert outside(home, store.workdir) == before
    assert not (store.common_dir / "hooks" / "x").exists()


def test_links_and_submodules_are_no_part_of_a_skill(store, user, tmp_path):
    for mode in (FileMode.LINK, FileMode.COMMIT):
        commit = commit_of(store, [b"scripts"], [], mode=mode)
        target = tmp_path / str(mode)
        assert ask(export_skill, user, commit, str(target)).files == ("SKILL.md",)
        assert [path.name for path in target.iterdir()] == ["SKILL.md"]


@settings(max_examples=15)
@given(names=st.lists(ENTRY_NAMES, min_size=1, max_size=4))
@example(names=["É.md".encode(), "e\u0301.md".encode()])
@example(names=[b"x", b"X"])
@example(names=["ß".encode(), b"ss"])
def test_where_case_does_not_count_no_file_takes_the_place_of_another(store, user, folding, names):
    commit = commit_of(store, names, [])
    with TemporaryDirectory(dir=folding) as place:
        target = Path(place) / "demo"
        with nothing_beside(folding, target):
            done = ask(export_skill, user, commit, str(target))
            assert len(list(target.iterdir())) == len(done.files)


@pytest.fixture(scope="module")
def folding(tmp_path_factory) -> Iterator[Path]:
    with folding_folder(tmp_path_factory.mktemp("folding")) as place:
        yield place


@pytest.mark.parametrize("name", [".claude", ".claude/skills"])
def test_a_link_of_the_repository_leads_no_install_elsewhere(user, store, tmp_path, name):
    """``--scope project`` writes into the project, whatever a commit of it links there."""
    commit = commit_of(store, [b"a"], [])
    link = user.directory / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path)
    try:
        for to, scope in (("claude", Scope.PROJECT), (str(link / "deeper"), None), (f"{name}/deeper", None)):
            with pytest.raises(UsageError, match="leads out of the repository"):
                install(user, InstallRequest(words=(commit,), to=to, scope=scope), lambda *_: True)
            with pytest.raises(UsageError, match="leads out of the repository"):
                ask(export_skill, user, commit, f"{name}/skills/demo")
    finally:
        link.unlink()
    assert list(tmp_path.iterdir()) == []


def test_a_link_of_the_users_own_is_followed(user, store, tmp_path):
    """Outside of a repository, links are as people arrange their homes."""
    commit = commit_of(store, [b"a"], [])
    (tmp_path / "real").mkdir()
    (tmp_path / "skills").symlink_to("real")

    install(user, InstallRequest(words=(commit,), to=str(tmp_path / "skills")), lambda *_: True)

    assert (tmp_path / "real" / "demo" / "a").is_file()


@settings(max_examples=15)
@given(name=ENTRY_NAMES)
def test_a_folder_that_is_imported_as_a_seed_is_checked(name):
    text = entry_name(name)
    with TemporaryDirectory() as top:
        folder = Path(top) / "demo"
        folder.mkdir()
        (folder / "SKILL.md").write_text("# Demo\n\nSay it.\n")
        try:
            (folder / name.decode(errors="surrogateescape")).write_bytes(b"")
        except (OSError, ValueError):
            return
        if {path.name for path in folder.iterdir()} == {"SKILL.md"} or (
            folder / name.decode(errors="surrogateescape")
        ).is_dir():
            return
        try:
            skill = read_seed(folder)
        except SkillgitError:
            assert path_fault(text) or text.casefold() == "skill.md"
        else:
            assert not any(map(path_fault, skill.files))


def test_an_import_takes_no_file_from_elsewhere(tmp_path, user, home):
    """Names in an output directory are a program's, and links in it somebody's."""
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (outputs / "config.json").write_text(json.dumps({"env": "../../x", "skill_init": "/etc/passwd"}))
    (outputs / "skills").symlink_to("/etc")
    (outputs / "best_skill.md").symlink_to("/etc/passwd")
    before = seen(home)

    with pytest.raises(DataError):
        import_outputs(user, outputs)

    assert seen(home) == before
