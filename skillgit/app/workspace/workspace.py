"""The repository of a use case with its index, what is absent from it, and what an error that it leads to means."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.request import OfPast
from skillgit.app.workspace.skill_choice import choose_skill
from skillgit.errors import ConflictError, HistoryError, NotFoundError, RevisionNotFoundError, SkillgitError
from skillgit.files import shortage
from skillgit.lazy import loaded_on_use

with loaded_on_use():  # a workspace that is never looked at loads no git
    from skillgit.app.workspace import revision, revision_range
    from skillgit.index import index_check, queries, refresh, rows
    from skillgit.store import lock, trunk, work_tree
    from skillgit.store import repo as repos
    from skillgit.store.exchange import remotes


_T = TypeVar("_T")


class Workspace:
    """A repository with its index, and the context in which it is asked; both are opened when one is first needed.

    What only reads gets it from its caller, who closes it, so that all parts of an answer see one moment however many
    use cases it is put together from: the index of a ``still`` workspace holds a read transaction, and refs are those
    that its rows were made from. What writes opens its own, which follows what it wrote. A workspace belongs to the
    thread that opened it, as SQLite's connections do.
    """

    def __init__(self, context: Context, request: object = None, *, still: bool = False) -> None:
        self.context = context_of(context, request)
        self._is_still, self._stack = still, ExitStack()
        self._range_words = request.range_words if isinstance(request, OfPast) else ()
        self._answers: dict[Hashable, Any] = {}  # what was read besides git

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @cached_property
    def _opened(self) -> tuple[refresh.Index, str]:
        index = self._stack.enter_context(refresh.open_index(repos.Repo.discover(self.context.directory)))
        if self._is_still:
            index.hold()
        today = self._with(index, "")
        if self.context.skill:
            today = self._with(index, skill_in(today, self.context.skill))
        past = revision_range.cut_off(today, self.context.as_of, self._range_words) if self.context.as_of else index
        return past, today.skill

    def _with(self, index: refresh.Index, skill: str) -> Workspace:
        other = copy(self)
        other._opened = index, skill  # noqa: SLF001 - its own
        return other

    @property
    def index(self) -> refresh.Index:
        return self._opened[0]

    @property
    def repo(self) -> repos.Repo:
        return self.index.repo

    @property
    def skill(self) -> str:
        """The folder of the skill that is meant; empty where none is named."""
        return self._opened[1]

    @property
    def past(self) -> bool:
        """Whether repository and index end with an event of the past."""
        return isinstance(self.index, refresh.PastIndex)

    def of_skill(self, path: str) -> Workspace:
        """Return the same moment for commands on the skill in the folder ``path``."""
        return self._with(self.index, path)

    def asked(self, request: object) -> Workspace:
        """Return the workspace of ``request``: of this moment or, closed with this one, of the past that it means."""
        context = context_of(self.context, request)
        if context.as_of != self.context.as_of:
            return self._stack.enter_context(Workspace(self.context, request, still=self._is_still))
        if context.skill == self.context.skill:
            return self
        other = self.of_skill(skill_in(self, context.skill))
        other.context = context
        return other

    def live(self) -> dict[str, int]:
        """Return the runs that are being trained on this machine, with their processes."""
        return {} if self.past else self.once("live", lambda: trained_here(self.repo))

    def once(self, question: Hashable, read: Callable[[], _T]) -> _T:
        """Return what ``read`` returns; in a still workspace, the same for the same question.

        For state outside git and its index, which no transaction keeps still: locks, the ledger.
        """
        if not self._is_still:
            return read()
        if question not in self._answers:
            self._answers[question] = read()
        answer: _T = self._answers[question]
        return answer


def context_of(context: Context, request: object) -> Context:
    """Return the context that ``request`` is asked in: of the skill that it means, and of the past."""
    return replace(
        context,
        skill=getattr(request, "skill", "") or context.skill,
        as_of=getattr(request, "as_of", "") or context.as_of,
    )


def use(context: Context, run: str) -> rows.RunRow:
    """Make ``run``, by ``skillgit.run`` in this repository, what revisions without a run's name refer to."""
    with Workspace(context) as workspace:
        row = queries.run_row(workspace.index, revision.find_run(workspace, run), workspace.live())
        if row is None:
            raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
        workspace.repo.set_config(revision.DEFAULT_RUN, row.name)
        return row


def trained_here(repo: repos.Repo) -> dict[str, int]:
    """Return the runs that are being trained on this machine, with their processes."""
    try:
        return lock.live_runs(repo)
    except OSError:
        # a read-only repository has no locks
        return {}


def change_stamp(context: Context) -> str:
    """Return a text that changes with refs, the checkout and who trains; asking the index would take in refs first."""
    repo = repos.Repo.discover(context.directory)
    look = repo.look()
    return f"{look.stamp} {sorted(look.loose.items())} {sorted(trained_here(repo).items())} {repo.head()}"


def skill_in(workspace: Workspace, word: str) -> str:
    """Return the folder of the skill that ``word`` means: one of the trunk or of HEAD, or one that a run trains."""
    repo = workspace.repo
    tips = filter(None, (repo.head()[1], trunk.trunk_tip(repo)))
    paths = {path for tip in tips for path in work_tree.skills_at(repo, tip)}
    paths |= set(workspace.index.column("SELECT DISTINCT skill FROM run"))
    return choose_skill(word, paths, here=_inside(repo, workspace.context.directory))


def _inside(repo: repos.Repo, directory: Path) -> str:
    """Return ``directory`` as a path from the top of the work tree; empty for the top and for a place outside."""
    if repo.workdir is None or not directory.is_relative_to(root := repo.workdir.resolve()):
        return ""
    return directory.relative_to(root).as_posix().removeprefix(".")


def git_settings(context: Context, names: Iterable[str]) -> dict[str, str]:
    """Return those of ``names`` that git's configuration has a value for."""
    repo = repos.Repo.discover(context.directory)
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


def absence_of(repo: repos.Repo, run: str) -> Absence:
    """Return why evidence of ``run`` that was not dropped is not here."""
    return Absence.AWAY if remotes.may_have_evidence(repo, run) else Absence.STAYED


def lacking_evidence(workspace: Workspace, run: str, unknown: str) -> str:
    """Return a sentence on what is ``unknown`` without the evidence of ``run``, with the command that brings it."""
    absence = absence_of(workspace.repo, run)
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
        error = HistoryError(f"git's objects cannot be read: {' '.join(str(error).split())}", hint=repos.REPAIR)
    if isinstance(error, SkillgitError):
        if error.hint == repos.REPAIR and context is not None:
            with suppress(SkillgitError):
                if repos.Repo.discover(context.directory).is_partial:
                    error.hint = "git fetch --refetch --no-filter brings what this partial clone lacks"
        return error
    if context is not None and isinstance(error, index_check.OF_ROWS):
        with suppress(SkillgitError):
            return index_check.drop_damaged(repos.Repo.discover(context.directory), error)
    return None
