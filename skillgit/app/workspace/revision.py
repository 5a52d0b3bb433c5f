"""What a revision on the command line means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from shlex import quote
from typing import Literal, assert_never

from skillgit.app.workspace.moment import Moment
from skillgit.app.workspace.skill_choice import labels, only_skill, several_skills
from skillgit.domain.address import Address, parse, version_label
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.domain.event_kinds import AddressKind, EventKind
from skillgit.domain.ids import check_run_name, is_proposing
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import RevisionNotFoundError, SkillError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.lazy import loaded_on_use
from skillgit.store import refs
from skillgit.store.repo import Repo

with loaded_on_use():
    from skillgit.app.workspace import skills_here
    from skillgit.store import history_reader, repair, work_tree

DEFAULT_RUN = "skillgit.run"
"""The key of git's configuration that names the default run."""

WORKTREE = "WORKTREE"
"""What names the text of the work tree, committed or not, where a text is trained or measured."""

_SHOWN = 8
_SHORT = 7
NO_SKILL = "a skill is a folder with a SKILL.md: skillgit init --skill PATH adds one"
_BACK = re.compile(r"(?P<name>.*?)(?P<back>(?:~\d*|\^)*)")
"""What is named, and behind it how many versions to go back."""
_TIP = re.compile(r"(?:(?P<run>[a-z0-9][a-z0-9-]*)/)?(?P<word>best|head)")
_GITS = re.compile(r"(?P<name>[a-z0-9/-]+)(?P<rest>(?:[~^]\d*)*\^(?:[02-9]|\{.*\}).*)")
"""An address, and behind it what only git can follow: another parent than the first one, or a kind of object."""
_OID = re.compile(r"[0-9a-f]{4,40}")
"""What may be the beginning of a commit's id, as ``e123`` is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    commit: str  # the commit, 40 hexadecimal characters
    row: LogRow | None  # the event that the commit holds; absent for any other commit
    run: str | None
    is_uncommitted: bool = False  # whether the text is that of the work tree, which the commit holds for the moment


def text_source(path: str, name: str, address: str, commit: str) -> str:
    """Return which text is meant: file, revision as it is called, event and commit.

    >>> text_source("skills/x", "topic", "", "3f2a1bc0")
    'skills/x/SKILL.md of topic (3f2a1bc)'
    >>> text_source("skills/x", "HEAD", "first/v2", "3f2a1bc0")
    'skills/x/SKILL.md of HEAD (first/v2, 3f2a1bc)'
    """
    return f"{path}/{DOCUMENT} of {revision_words(name, address, commit)}"


def revision_words(name: str, address: str, commit: str) -> str:
    """Return how a revision is shown: ``topic (3f2a1bc)``, ``HEAD (first/v2, 3f2a1bc)``, ``3f2a1bc``."""
    short = commit[:_SHORT]
    details = [detail for detail in (address, short) if detail and detail != name]
    return short if commit and commit.startswith(name) else f"{name} ({', '.join(details)})" if details else name


def work_tree_differs(way: str, paths: Sequence[str] = ()) -> str:
    """Return the sentence on a work tree with another text than the commit; ``way`` is the other way out."""
    where = f" in {', '.join(paths)}" if paths else ""
    return f"work tree differs{where}: commit it, or {way}"


def resolve(workspace: Moment, text: str) -> Resolved:
    """Return what ``text`` names.

    It may be the address of an event (:mod:`skillgit.domain.address`), such as ``v7`` or ``r17``, ``best`` or ``head``
    (the newest version), each of the default run or, as ``<run>/v7``, of another one; ``~2`` or ``^^`` behind it goes
    back two versions. A reflection and an intervention that passed the gate are found by the version that they made and
    by ``m2`` or ``i1``. A run's name stands for its newest version, ``<run>~1`` for the one before. Everything else is
    asked of git.
    """
    names = queries.run_names(workspace.index)
    parts = _named(text)
    if parts is not None and (names or workspace.index.broken or parts.run):
        return _of_name(workspace, parts, text)
    if (match := _GITS.fullmatch(text)) and is_address(match["name"]):
        commit = _commit(workspace, f"{resolve(workspace, match['name']).commit}{match['rest']}")
        if commit is None:
            raise RevisionNotFoundError(f"'{text}' names no commit", hint=f"skillgit show {match['name']}")
        return _of_commit(workspace, commit)
    past = _BACK.fullmatch(text)
    if past and past["back"] and past["name"] in names:
        return resolve(workspace, f"{past['name']}/head{past['back']}")
    if text in names or text in workspace.index.broken:
        return _of_row(_head(workspace, find_run(workspace, text)))
    if (commit := _commit(workspace, text)) is not None:
        return _of_commit(workspace, commit)
    if text and any(name.startswith(text) for name in names):
        return _of_row(_head(workspace, find_run(workspace, text)))
    raise RevisionNotFoundError(f"there is no revision '{text}'", hint=_near(workspace.repo, text, names))


def is_address(text: str) -> bool:
    """Say whether ``text`` has the form of a name of ours, such as ``v7``, ``best~1`` or ``<run>/r17``."""
    return _named(text) is not None


def event_in(workspace: Moment, text: str) -> LogRow:
    """Return the event that ``text`` names."""
    resolution = resolve(workspace, text)
    if resolution.row is None:
        raise RevisionNotFoundError(
            f"commit {resolution.commit[:12]} belongs to no run",
            hint=workspace.repo.unfetched[1] or _way_back(workspace.repo, text) or f"git show {quote(text)}",
        )
    return resolution.row


def find_run(workspace: Moment, name: str | None) -> str:
    """Return the run that ``name`` (or its unique beginning) is, or the default; RevisionNotFound- or HistoryError."""
    if name is None:
        default = default_run(workspace)
        if default is None:
            raise _no_run(workspace)
        return default
    names = (*queries.run_names(workspace.index), *workspace.index.broken)
    matches = [name] if name in names else [candidate for candidate in names if name and candidate.startswith(name)]
    if len(matches) > 1:
        raise RevisionNotFoundError(
            f"'{name}' may be any of {', '.join(sorted(matches))}", hint="write more of the name"
        )
    if not matches:
        raise RevisionNotFoundError(f"there is no run '{name}'", hint=_near(workspace.repo, name, names))
    if matches[0] in workspace.index.broken:
        raise workspace.index.broken[matches[0]]
    if workspace.skill and (path := workspace.index.skill_path(matches[0])) != workspace.skill:
        hint = f"skillgit runs --skill {quote(workspace.skill)}"
        raise UsageError(f"run {matches[0]} trains {path}, and not {workspace.skill}", hint=hint)
    return matches[0]


def _no_run(workspace: Moment) -> RevisionNotFoundError:
    trained = workspace.index.column("SELECT DISTINCT skill FROM run ORDER BY skill")
    (reason, fetching), hint = workspace.repo.unfetched, skills_here.train_hint(workspace.repo, workspace.skill)
    sentence = f"no run trains {workspace.skill} yet; runs train {', '.join(labels(trained).values())}"
    if not workspace.skill or not trained:
        sentence = f"there are no runs here, and {reason}" if reason else "there are no runs yet"
    return RevisionNotFoundError(sentence, hint=fetching or hint)


def lack_of_runs(workspace: Moment) -> SkillgitError:
    """Return what a list of runs says where there are none, or none of the skill that is named."""
    return next(iter(workspace.index.broken.values()), None) or _no_run(workspace)


def default_run(workspace: Moment) -> str | None:
    """Return ``git config skillgit.run``, else the newest event's; a RevisionNotFoundError or HistoryError.

    Where a skill is named, only its runs count. Those of ``propose`` count where there are no others.
    """
    if workspace.skill:
        setting = workspace.repo.config(DEFAULT_RUN)
        own = queries.runs_of_skill(workspace.index, workspace.skill)
        return setting if setting in own else min(own, key=is_proposing, default=None)
    unreadable = workspace.index.broken
    names = (*queries.run_names(workspace.index), *unreadable)
    default = chosen_run(workspace) or min(names, key=is_proposing, default=None)
    if default in unreadable:
        raise unreadable[default]
    return default


def chosen_run(workspace: Moment) -> str:
    """Return the run that ``skillgit use`` chose, empty without one; an error if it is gone or cannot be read."""
    setting = workspace.repo.config(DEFAULT_RUN)
    unreadable = workspace.index.broken
    if setting in unreadable:
        raise unreadable[setting]
    if setting and setting not in queries.run_names(workspace.index):
        raise RevisionNotFoundError(
            f"the default run '{setting}' does not exist", hint=f"git config --unset {DEFAULT_RUN}, or skillgit runs"
        )
    return setting


@dataclass(frozen=True, slots=True)
class _Named:
    """A name of ours: an address, or a tip of a run, and how many versions to go back from it."""

    run: str
    event: Address | Literal["best", "head"]
    back: int


def _named(text: str) -> _Named | None:
    parts = _BACK.fullmatch(text)
    if parts is None:
        return None
    back = sum(int(count or 1) for count in re.findall(r"[~^](\d*)", parts["back"]))
    if tip := _TIP.fullmatch(parts["name"]):
        return _Named(tip["run"] or "", "best" if tip["word"] == "best" else "head", back)
    address = parse(parts["name"])
    return None if address is None else _Named(address.run, address, back)


def _of_name(workspace: Moment, name: _Named, text: str) -> Resolved:
    """Return what a name of ours means, or git if it may mean something there and no event bears it.

    That is the beginning of an id, as ``e123`` is, and the name of a branch behind which no run is, as ``topic/s4``.
    """
    try:
        run = find_run(workspace, name.run or None)
    except RevisionNotFoundError:
        if name.run and (commit := _commit(workspace, text)) is not None:
            return _of_commit(workspace, commit)
        raise
    try:
        return _of_row(_row_at(workspace, run, name))
    except RevisionNotFoundError:
        if _OID.fullmatch(text) and (commit := _commit(workspace, text)) is not None:
            return _of_commit(workspace, commit)
        raise


def _row_at(workspace: Moment, run: str, name: _Named) -> LogRow:
    if name.event == "best":
        row = queries.best_row(workspace.index, run) or _version(workspace, run, 0)
    elif name.event == "head":
        row = queries.head_row(workspace.index, run) or _version(workspace, run, 0)
    else:
        row = _row_of(workspace, run, name.event)
    if not name.back:
        return row
    # from a side branch the first step back leads to the version that the run stood at
    return _version(workspace, run, row.at - name.back + (row.version is None))


def _row_of(workspace: Moment, run: str, address: Address) -> LogRow:
    if address.kind is AddressKind.VERSION:
        return _version(workspace, run, address.number)
    row = queries.row_of_address(workspace.index, run, address)
    if row is None:
        raise _no_event(workspace, run, address)
    return row


def _no_event(workspace: Moment, run: str, address: Address) -> RevisionNotFoundError:
    """Return the error for an address that no event of ``run`` has."""
    number = address.number
    match address.kind:
        case AddressKind.VERSION:
            message, hint = f"has no {version_label(number)}", f"skillgit log {run}"
        case AddressKind.REJECTED:
            message, hint = f"rejected nothing at step {number}", _steps(workspace, run, address.kind)
        case AddressKind.SKIPPED:
            message, hint = f"did not skip step {number}", _steps(workspace, run, address.kind)
        case AddressKind.REFLECTION:
            message = f"did not reflect on epoch {number}"
            hint = "optimizer.use_meta_reflect=true makes a run do so"
        case AddressKind.INTERVENTION:
            message = f"has no intervention {number}"
            hint = f"skillgit log {run} --event accepted --event rejected"
        case AddressKind.GUIDANCE:
            message = f"has no slow update of epoch {number}"
            hint = f"skillgit log {run} --event slow-proposed"
        case AddressKind.BASELINE:
            message = f"did not measure {version_label(number)} on its own"
            hint = f"skillgit log {run} --event measured"
        case AddressKind.END:
            message, hint = "has not finished", f"skillgit status {run}"
        case _:
            assert_never(address.kind)
    return RevisionNotFoundError(f"run {run} {message}", hint=hint)


def _version(workspace: Moment, run: str, version: int) -> LogRow:
    row = queries.row_of_version(workspace.index, run, version) if version >= 0 else None
    if row is None:
        head = _head(workspace, run).version
        range_text = f"it has v0 to {version_label(head)}" if head else "it has v0 only"
        request = version_label(version) if version >= 0 else "nothing before v0"
        raise RevisionNotFoundError(
            f"run {run} has no {request}" if version >= 0 else f"run {run} has {request}", hint=range_text
        )
    return row


def _head(workspace: Moment, run: str) -> LogRow:
    row = queries.head_row(workspace.index, run)
    if row is None:
        raise RevisionNotFoundError(f"run {run} has no versions", hint="skillgit fsck")
    return row


def _of_commit(workspace: Moment, commit: str) -> Resolved:
    row = queries.row_of_commit(workspace.index, commit)
    return Resolved(commit=commit, row=row, run=row.run if row else None)


def _of_row(row: LogRow) -> Resolved:
    return Resolved(commit=row.commit, row=row, run=row.run)


def _commit(workspace: Moment, text: str) -> str | None:
    """Return what git calls ``text``; a branch of ours that only a remote has counts as well.

    In the past the branches and tags of runs are where they were then, which git does not know.
    """
    if workspace.past and (there := _branch(workspace, text)):
        return there
    try:
        return history_reader.resolve(workspace.repo, text)
    except RevisionNotFoundError:
        return _branch(workspace, text)


def _branch(workspace: Moment, text: str) -> str | None:
    tips = ((name, refs.parse(name), oid) for name, oid in workspace.repo.tips().items())
    return next(
        (oid for name, ref, oid in tips if ref and text in {name, refs.short(name), refs.short(ref.local)}), None
    )


def _steps(workspace: Moment, run: str, kind: AddressKind) -> str:
    """Return which steps of ``run`` came to nothing in the way that ``kind`` counts."""
    steps = queries.steps_of(workspace.index, run, kind)
    labels = ", ".join(Address(kind, step).label for step in steps[-_SHOWN:])
    word = EventKind.REJECTED if kind is AddressKind.REJECTED else EventKind.SKIPPED
    return f"it has {'… ' if len(steps) > _SHOWN else ''}{labels}" if steps else f"it {word} nothing yet"


def _way_back(repo: Repo, name: str) -> str:
    """Return what brings back the branch of the run that ``name`` begins with; empty if it is there, or never was."""
    run = name.partition("/")[0]
    with suppress(SkillgitError):  # this cannot be the name of a run, or its history is damaged
        is_there = repo.tip(refs.run_branch(check_run_name(run))) is not None
        if not is_there and (newest := repair.lost_event(repo, run, [])) is not None:
            return repair.bring_back(repo, run, newest.commit)
    return ""


def _near(repo: Repo, name: str, names: Sequence[str]) -> str:
    reason, fetching = repo.unfetched
    if not reason and (way := _way_back(repo, name)):
        return way
    listing = (
        f"runs: {', '.join(names[:_SHOWN])}" if names else f"there are no runs yet: {skills_here.train_hint(repo)}"
    )
    return did_you_mean(name, names, otherwise=f"{reason}: {fetching}" if reason else listing)


def version_in(workspace: Moment, text: str) -> LogRow:
    """Return the event that made the version ``text``."""
    row = event_in(workspace, text)
    if row.version is None:
        raise UsageError(
            f"{text} is not a version of run {row.run}",
            hint=f"a candidate becomes one if it passes the gate: skillgit cherry-pick {quote(text)} --run {row.run}",
        )
    return row


def version_of_run(workspace: Moment, text: str, run: str | None) -> LogRow:
    """Return the event that made the version ``text`` of ``run``; None takes the run that ``text`` belongs to."""
    if run is None:
        return version_in(workspace, text)
    run_name = find_run(workspace, run)
    try:
        row = version_in(workspace, text if "/" in text else f"{run_name}/{text}")
    except RevisionNotFoundError:
        row = version_in(workspace, text)
    if row.run != run_name:
        address = str(row.address)
        raise UsageError(
            f"{address} is not a version of run {run_name}", hint=f"skillgit cherry-pick {address} --run {run_name}"
        )
    return row


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSkill:
    skill: Skill
    commit: str
    row: LogRow | None  # the event that the commit holds; absent for any other commit


def skill_named(workspace: Moment, revision: str) -> NamedSkill:
    """Return the skill of ``revision``: that of its run, or the only one of any other commit."""
    resolution = resolve(workspace, revision)
    if resolution.row is not None:
        path = workspace.index.skill_path(resolution.row.run)
    else:
        paths = work_tree.skills_at(workspace.repo, resolution.commit)
        if not paths:
            raise SkillError(f"there is no skill at {revision}", hint=NO_SKILL)
        path = workspace.skill if workspace.skill in paths else only_skill(paths)
        if not path:
            raise several_skills(paths, f"{revision} has")
    return NamedSkill(
        skill=history_reader.skill_at(workspace.repo, resolution.commit, path),
        commit=resolution.commit,
        row=resolution.row,
    )
