"""Adopting and its undo, killed at every step of the file system; and the folders of agents."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
from asking import ask
from sample_run import PATH
from soaking import soak

from skillgit.app.deliver.install import (
    InstallResult,
    install,
    skills_folder,
    uninstall,
)
from skillgit.app.deliver.installed import list_installed
from skillgit.app.deliver.requests import Agent, InstallRequest, Scope, UninstallRequest
from skillgit.app.skill_format import atomic_write
from skillgit.app.skill_format.folder_contents import entries_of, fingerprint, read_entries
from skillgit.app.workspace.workspace import Workspace
from skillgit.errors import NotFoundError, UsageError
from skillgit.store.history_reader import skill_at
from skillgit.store.repo import Repo

TOUCHING = frozenset({"os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.symlink"})
"""Audit events of calls that change files; Python raises each before the call."""

NO_SWAP = ", where two names cannot swap at once"


@pytest.fixture(autouse=True)
def _run(records):
    assert records


def agreed(*_: object) -> bool:
    return True


def old_skill(place: Path) -> None:
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("# Mine\n")
    (place / "SKILL.md").chmod(0o640)
    (place / "run.sh").write_text("#!/bin/sh\n")
    (place / "run.sh").chmod(0o750)
    (place / "link").symlink_to("run.sh")


def changes_files(event: str, arguments: tuple[object, ...], watched: tuple[Path, ...]) -> bool:
    """Say whether an audit event tells of a change in one of the folders ``watched``, or of the swap of two names."""
    if event == "ctypes.call_function":
        return True
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
    if not (writes or event in TOUCHING) or not isinstance(arguments[0], str | bytes | Path):
        return False
    return os.fsdecode(arguments[0]).startswith(tuple(map(str, watched)))


def killed_at(moment: int, watched: tuple[Path, ...], work) -> bool:
    """Do ``work`` in a process that is killed before it touches a watched folder for the ``moment``-th time.

    Returns:
        Whether it came to that.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, where a plug-in has some
        child = os.fork()
    if child == 0:
        seen = count(1)

        def look(event: str, arguments: tuple[object, ...]) -> None:
            if changes_files(event, arguments, watched) and next(seen) == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(look)
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


class Stage:
    """A place of an agent beside the sample run, which can be set back to how it was."""

    def __init__(self, context, repo, folder: Path) -> None:
        self.context, self.folder = context, folder
        self.skills = folder / "skills"
        self.place = self.skills / "demo"
        self.private = repo.private_dir / "adopted"
        self.watched = (self.skills, self.private)

    def install(self, revision: str) -> InstallResult:
        return install(self.context, InstallRequest(words=(revision,), to=str(self.skills)), agreed)

    def undo(self) -> None:
        uninstall(self.context, UninstallRequest(), agreed)

    def keep(self) -> None:
        for number, folder in enumerate(self.watched):
            if folder.exists():
                atomic_write.copy(folder, self.folder / f"kept-{number}")

    def set_back(self) -> None:
        for number, folder in enumerate(self.watched):
            shutil.rmtree(folder, ignore_errors=True)
            if (self.folder / f"kept-{number}").exists():
                atomic_write.copy(self.folder / f"kept-{number}", folder)

    def beside(self) -> set[str]:
        return {path.name for path in self.skills.iterdir()} - {"demo"} if self.skills.exists() else set()


@pytest.fixture
def stage(context, repo, tmp_path) -> Stage:
    return Stage(context, repo, tmp_path)


def swapping(monkeypatch: pytest.MonkeyPatch, there: str) -> bool:
    """Say whether two names can swap at once here, and see to it that they cannot if that is asked for."""
    if there.endswith(NO_SWAP):
        monkeypatch.setattr(atomic_write, "exchange", lambda *_: False)
    return not there.endswith(NO_SWAP)


@pytest.mark.parametrize(
    "there",
    [
        "something by hand",
        soak(f"something by hand{NO_SWAP}"),
        soak("an adopted version"),
        soak(f"an adopted version{NO_SWAP}"),
        soak("nothing"),
    ],
)
def test_adopting_killed_at_any_moment_leaves_old_or_new_and_undo_works(stage, repo, records, monkeypatch, there):
    swaps = swapping(monkeypatch, there)
    if there.startswith("something by hand"):
        old_skill(stage.place)
    elif there.startswith("an adopted version"):
        stage.install("v1")
    old, new = read_entries(stage.place), fingerprint(entries_of(skill_at(repo, records[5].commit, PATH)))
    stage.keep()
    seen = set()
    for moment in count(1):
        stage.set_back()
        if not killed_at(moment, stage.watched, lambda: stage.install("v2")):
            break
        now = read_entries(stage.place)
        took = fingerprint(now) == new
        # Without a swap in one step the name is free for a moment; the next command fills it.
        assert took or now == old or not (swaps or now), moment
        seen.add(took)
        assert stage.install("v2").held == took, moment
        assert fingerprint(read_entries(stage.place)) == new
        stage.undo()
        assert read_entries(stage.place) == old, moment
        assert not stage.beside(), moment
    assert seen == {True, False}
    assert moment > len(("copy", "record", "write", "swap"))


@pytest.mark.parametrize("there", ["something by hand", soak(f"something by hand{NO_SWAP}"), soak("nothing")])
def test_an_undo_killed_at_any_moment_leaves_old_or_new_and_can_be_done_again(stage, monkeypatch, there):
    swaps = swapping(monkeypatch, there)
    if there.startswith("something by hand"):
        old_skill(stage.place)
    old = read_entries(stage.place)
    stage.install("v1")
    new = read_entries(stage.place)
    stage.keep()
    seen = set()
    for moment in count(1):
        stage.set_back()
        if not killed_at(moment, stage.watched, stage.undo):
            break
        now = read_entries(stage.place)
        assert now in (old, new) or not (swaps or now), moment
        seen.add(now == old)
        if any(row.name.endswith("/v1") for row in ask(list_installed, stage.context)):
            with suppress(NotFoundError):  # it was undone all but for the record
                stage.undo()
        assert read_entries(stage.place) == old, moment
        assert ask(list_installed, stage.context) == ()
        assert not stage.beside(), moment
    assert seen == {True, False}


def test_what_is_edited_while_it_is_replaced_is_kept_too(context, tmp_path, monkeypatch):
    stage = Stage(context, Repo.discover(context.directory), tmp_path)
    old_skill(stage.place)
    swap = atomic_write.exchange

    def edited(beside: Path, place: Path) -> bool:
        (place / "SKILL.md").write_text("# Saved by an editor just now\n")
        return swap(beside, place)

    monkeypatch.setattr(atomic_write, "exchange", edited)
    stage.install("v1")
    monkeypatch.setattr(atomic_write, "exchange", swap)
    stage.undo()
    assert (stage.place / "SKILL.md").read_text() == "# Saved by an editor just now\n"
    assert (stage.place / "run.sh").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize(
    ("agent", "environ", "folder"),
    [
        (Agent.CLAUDE, {"HOME": "/home/ada"}, "/home/ada/.claude/skills"),
        (Agent.CLAUDE, {"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/etc/claude"}, "/etc/claude/skills"),
        (Agent.CODEX, {"HOME": "/home/ada"}, "/home/ada/.agents/skills"),
        (Agent.COPILOT, {"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/etc"}, "/home/ada/.copilot/skills"),
    ],
)
def test_each_agent_has_its_folder_of_the_users_skills(context, agent, environ, folder):
    with Workspace(replace(context, environ=environ)) as workspace:
        for scope in (None, Scope.USER):
            assert skills_folder(workspace, agent, scope) == Path(folder)


def test_without_a_home_there_are_no_skills_of_the_user(context):
    with Workspace(replace(context, environ={})) as workspace, pytest.raises(UsageError, match="HOME is not set"):
        skills_folder(workspace, "codex", None)
