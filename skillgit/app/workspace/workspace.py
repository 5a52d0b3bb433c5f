"""The repository of a use case with its index, what is absent from it, and what an error that it leads to means."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from skillgit.app.workspace.skill_choice import choose_skill
from skillgit.errors import ConflictError, HistoryError, NotFoundError, SkillgitError
from skillgit.files import shortage
from skillgit.index import index_check
from skillgit.index.refresh import Index, open_index
from skillgit.lazy import loaded_on_use
from skillgit.store.lock import live_runs
from skillgit.store.repo import REPAIR, Repo

with loaded_on_use():
    from skillgit.app.workspace import revision
    from skillgit.store import trunk, work_tree
    from skillgit.store.exchange import remotes

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    repo: Repo
    index: Index
    past: bool = False  # whether both end with an event of the past
    answers: dict[Hashable, object] | None = None  # what a snapshot has read besides git; None outside of one
    skill: str = ""  # the folder of the skill that is meant; empty where none is named

    def live(self) -> dict[str, int]:
        """Return the runs that are being trained on this machine, with their processes."""
        return {} if self.past else self.once("live", lambda: trained_here(self.repo))

    def once(self, question: Hashable, read: Callable[[], _T]) -> _T:
        """Return what ``read`` returns; within a snapshot, the same for the same question.

        For state outside git and its index, which no transaction keeps still: locks, the ledger.
        """
        if self.answers is None:
            return read()
        if question not in self.answers:
            self.answers[question] = read()
        return self.answers[question]  # type: ignore[return-value]


def trained_here(repo: Repo) -> dict[str, int]:
    """Return the runs that are being trained on this machine, with their processes."""
    try:
        return live_runs(repo)
    except OSError:
        # a read-only repository has no locks
        return {}


def change_stamp(context: Context) -> str:
    """Return a text that changes with refs, the checkout and who trains; asking the index would take in refs first."""
    repo = Repo.discover(context.directory)
    look = repo.look()
    return f"{look.stamp} {sorted(look.loose.items())} {sorted(trained_here(repo).items())} {repo.head()}"


@dataclass(frozen=True, slots=True)
class _Snapshot:
    thread: int  # SQLite's connections stay in the thread that opened them
    stack: ExitStack
    workspaces: dict[tuple[object, str, str], Workspace] = field(default_factory=dict)


_SNAPSHOT: ContextVar[_Snapshot | None] = ContextVar("snapshot", default=None)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """Let everything that a block reads see a repository as it was at the first look.

    The repository is opened by the first :func:`open_workspace` of the block and by no other; the index holds a read
    transaction, and refs are those that its rows were made from. For a block that changes nothing: an answer that is
    put together from several use cases, each of which would otherwise see another moment of a run that is trained.
    """
    if _SNAPSHOT.get() is not None:
        yield
        return
    with ExitStack() as stack:
        token = _SNAPSHOT.set(_Snapshot(threading.get_ident(), stack))
        try:
            yield
        finally:
            _SNAPSHOT.reset(token)


@contextmanager
def open_workspace(context: Context) -> Iterator[Workspace]:
    """Open the repository that contains the context's folder, as it is or as it was; within a snapshot, that moment."""
    snapshot = _SNAPSHOT.get()
    if snapshot is None or snapshot.thread != threading.get_ident():
        with _opened(context) as workspace:
            yield workspace
        return
    place = (context.directory, context.as_of, context.skill)
    if place not in snapshot.workspaces:
        workspace = snapshot.stack.enter_context(_opened(context, still=True))
        snapshot.workspaces[place] = replace(workspace, answers={})
    yield snapshot.workspaces[place]


@contextmanager
def _opened(context: Context, *, still: bool = False) -> Iterator[Workspace]:
    repo = Repo.discover(context.directory)
    with open_index(repo) as index:
        if still:
            index.hold()
        workspace = Workspace(repo=index.repo, index=index)
        if context.skill:
            workspace = replace(workspace, skill=skill_in(workspace, context.skill, context.directory))
        if context.as_of:
            workspace = revision.cut_off(workspace, context.as_of)
        yield workspace


def skill_in(workspace: Workspace, word: str, directory: Path) -> str:
    """Return the folder of the skill that ``word`` means: one of the trunk or of HEAD, or one that a run trains."""
    repo = workspace.repo
    tips = filter(None, (repo.head()[1], trunk.trunk_tip(repo)))
    paths = {path for tip in tips for path in work_tree.skills_at(repo, tip)}
    paths |= set(workspace.index.column("SELECT DISTINCT skill FROM run"))
    return choose_skill(word, paths, here=_inside(repo, directory))


def _inside(repo: Repo, directory: Path) -> str:
    """Return ``directory`` as a path from the top of the work tree; empty for the top and for a place outside."""
    if repo.workdir is None or not directory.is_relative_to(root := repo.workdir.resolve()):
        return ""
    return directory.relative_to(root).as_posix().removeprefix(".")


def unreadable(context: Context) -> Mapping[str, SkillgitError]:
    """Return the runs that are left out everywhere because their history cannot be read, with the reason."""
    with open_workspace(context) as workspace:
        return dict(workspace.index.broken)


def git_settings(context: Context, names: Iterable[str]) -> dict[str, str]:
    """Return those of ``names`` that git's configuration has a value for."""
    repo = Repo.discover(context.directory)
    return {name: value for name in names if (value := repo.config(name))}


BRING: Final = "skillgit pull --evidence"
"""The command that brings it."""


class Absence(StrEnum):
    """Why outcomes that were measured are not known here."""

    DROPPED = "dropped"
    """gc dropped the evidence that they stood in."""
    AWAY = "away"
    """Their evidence was never brought here."""
    STAYED = "stayed"
    """Their evidence is not here, and no remote is known to have it."""

    def sentence(self, subject: str) -> str:
        """Say what happened to the evidence of ``subject``."""
        return f"the evidence of {subject} {'was dropped' if self is Absence.DROPPED else 'is not here'}"

    def remedy(self, otherwise: str) -> str:
        """Return the hint that helps where evidence is wanted: the command that brings it, or what to do instead."""
        return f"bring it: {BRING}" if self is Absence.AWAY else otherwise


def absence_of(repo: Repo, run: str) -> Absence:
    """Return why evidence of ``run`` that was not dropped is not here."""
    return Absence.AWAY if remotes.may_have_evidence(repo, run) else Absence.STAYED


def lacking_evidence(context: Context, run: str, unknown: str) -> str:
    """Return a sentence on what is ``unknown`` without the evidence of ``run``, with the command that brings it."""
    absence = absence_of(Repo.discover(context.directory), run)
    remedy = f": {BRING}" if absence is Absence.AWAY else ", nor at a remote"
    return f"{unknown} are not known, for the evidence is not here{remedy}"


def or_none(read: Callable[[], _T]) -> _T | None:
    """Return what ``read`` returns; None where a part that not every repository has is not in this one."""
    try:
        return read()
    except NotFoundError:
        return None


def measure(revision: str) -> str:
    """Return the hint that ``revision`` can be measured, item by item."""
    return f"measure it here: skillgit eval {revision} --split selection"


def explained(error: Exception, context: Context | None) -> SkillgitError | None:
    """Return what ``error`` means to the user, None for a bug; a damaged index is removed, to be built again."""
    lack = shortage(error)
    if lack is not None:
        return lack
    if isinstance(error, OSError) and error.filename is not None:
        return ConflictError(f"{error.filename}: {error.strerror}", hint=f"ls -ld {error.filename}")
    # loaded if it raised anything
    git = sys.modules.get("pygit2")
    if git is not None and isinstance(error, git.GitError):
        error = HistoryError(f"git's objects cannot be read: {' '.join(str(error).split())}", hint=REPAIR)
    if isinstance(error, SkillgitError):
        if error.hint == REPAIR and context is not None:
            with suppress(SkillgitError):
                if Repo.discover(context.directory).is_partial:
                    error.hint = "git fetch --refetch --no-filter brings what this partial clone lacks"
        return error
    if context is not None and isinstance(error, index_check.OF_ROWS):
        with suppress(SkillgitError):
            return index_check.drop_damaged(Repo.discover(context.directory))
    return None
