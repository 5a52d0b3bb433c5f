"""What a revision on the command line means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.workspace import Workspace, open_workspace
from skillgit.errors import RevisionNotFoundError
from skillgit.index import queries
from skillgit.store import refs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.context import Context
    from skillgit.index.rows import LogRow

DEFAULT_RUN = "skillgit.run"
"""The key of git's configuration that names the default run."""

_SHOWN = 8
_ADDRESS = re.compile(
    r"(?:(?P<run>[a-z0-9][a-z0-9-]*)/)?"
    r"(?:(?P<word>best|head)|v(?P<version>\d+)|m(?P<epoch>\d+)"
    r"|(?:i|r\d+-[a-z-]+-)(?P<number>\d+)|r(?P<step>\d+))"
    r"(?P<back>(?:~\d*|\^)*)"
)
_GITS = re.compile(r"(?P<address>[a-z0-9/-]+)(?P<rest>(?:[~^]\d*)*\^(?:[02-9]|\{.*\}).*)")
"""An address, and behind it what only git can follow: another parent than the first one, or a kind of object."""

_BEFORE_HEAD = re.compile(r"(?P<run>[a-z0-9][a-z0-9-]*)(?P<back>(?:~\d*|\^)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """A revision that exists.

    Attributes:
        commit: The commit, 40 hexadecimal characters.
        row: The event that the commit holds; absent for a commit that is no event.
        run: The run that it belongs to.
    """

    commit: str
    row: LogRow | None
    run: str | None


def resolve(context: Context, text: str) -> Resolved:
    """Return what ``text`` names in the repository of ``context``; see :func:`resolve_in`."""
    with open_workspace(context) as workspace:
        return resolve_in(workspace, text)


def resolve_in(workspace: Workspace, text: str) -> Resolved:
    """Return what ``text`` names.

    It may be a version (``v7``), ``best`` or ``head`` (the newest version), the candidate rejected at a step (``r17``)
    what came of the reflection on an epoch (``m2``) or of an intervention (``i1``, also ``r17-prune-1``), each of the
    default run or, as ``<run>/v7``, of another one; ``~2`` or ``^^`` behind it goes back two versions. A run's name
    stands for its newest version, ``<run>~1`` for the one before. Everything else is asked of git.

    Raises:
        RevisionNotFoundError: It names nothing.
        HistoryError: It names something in a run whose history cannot be read.
    """
    address = _ADDRESS.fullmatch(text)
    names = queries.run_names(workspace.index)
    if address and (names or workspace.index.broken or address["run"]):
        return _of_row(_row_at(workspace, address))
    if (asked := _GITS.fullmatch(text)) and _ADDRESS.fullmatch(asked["address"]):
        commit = _commit(workspace, f"{resolve_in(workspace, asked['address']).commit}{asked['rest']}")
        if commit is None:
            raise RevisionNotFoundError(f"'{text}' names no commit", hint=f"skillgit show {asked['address']}")
        return _of_commit(workspace, commit)
    past = _BEFORE_HEAD.fullmatch(text)
    if past and past["run"] in names:
        return resolve_in(workspace, f"{past['run']}/head{past['back']}")
    if text in names or text in workspace.index.broken:
        return _of_row(_head(workspace, find_run(workspace, text)))
    if (commit := _commit(workspace, text)) is not None:
        return _of_commit(workspace, commit)
    if text and any(name.startswith(text) for name in names):
        return _of_row(_head(workspace, find_run(workspace, text)))
    raise RevisionNotFoundError(f"there is no revision '{text}'", hint=_near(text, names))


def is_address(text: str) -> bool:
    """Say whether ``text`` has the form of an address of ours, such as ``v7`` or ``<run>/r17``."""
    return _ADDRESS.fullmatch(text) is not None


def event_in(workspace: Workspace, text: str) -> LogRow:
    """Return the event that ``text`` names.

    Raises:
        RevisionNotFoundError: It names nothing, or a commit that is no event of a run.
    """
    found = resolve_in(workspace, text)
    if found.row is None:
        raise RevisionNotFoundError(f"commit {found.commit[:12]} is no event of a run", hint=f"git show {text}")
    return found.row


def find_run(workspace: Workspace, name: str | None) -> str:
    """Return the run called ``name``, or whose name alone begins so; the default run without a name.

    Raises:
        RevisionNotFoundError: There is none, or there are several.
        HistoryError: Its history cannot be read.
    """
    if name is None:
        found = default_run(workspace)
        if found is None:
            raise RevisionNotFoundError("there are no runs yet", hint="skillgit train CONFIG")
        return found
    names = (*queries.run_names(workspace.index), *workspace.index.broken)
    matches = [name] if name in names else [known for known in names if name and known.startswith(name)]
    if len(matches) > 1:
        raise RevisionNotFoundError(
            f"'{name}' may be any of {', '.join(sorted(matches))}", hint="write more of the name"
        )
    if not matches:
        raise RevisionNotFoundError(f"there is no run '{name}'", hint=_near(name, names))
    if matches[0] in workspace.index.broken:
        raise workspace.index.broken[matches[0]]
    return matches[0]


def default_run(workspace: Workspace) -> str | None:
    """Return the run that ``git config skillgit.run`` names, else the one with the newest event.

    Raises:
        RevisionNotFoundError: The configured run does not exist.
        HistoryError: No run can be read.
    """
    chosen = workspace.repo.config(DEFAULT_RUN)
    names = queries.run_names(workspace.index)
    broken = workspace.index.broken
    if chosen and chosen not in names and chosen not in broken:
        raise RevisionNotFoundError(
            f"the default run '{chosen}' does not exist", hint=f"git config --unset {DEFAULT_RUN}, or skillgit runs"
        )
    found = chosen or next(iter(names), None) or next(iter(broken), None)
    if found in broken:
        raise broken[found]
    return found


def _row_at(workspace: Workspace, address: re.Match[str]) -> LogRow:
    run = find_run(workspace, address["run"])
    back = sum(int(count or 1) for count in re.findall(r"[~^](\d*)", address["back"]))
    if address["word"] is None and address["version"] is None:
        tried = _candidate(workspace, run, address)
        if not back or tried.base is None:
            return tried
        return _version(workspace, run, tried.base - back + 1)
    if address["word"] == "best":
        row = queries.best_row(workspace.index, run)
    elif address["word"] == "head":
        row = queries.head_row(workspace.index, run)
    else:
        row = _version(workspace, run, int(address["version"]))
    if row is None or row.version is None or back == 0:
        return row or _version(workspace, run, 0)
    return _version(workspace, run, row.version - back)


def _candidate(workspace: Workspace, run: str, address: re.Match[str]) -> LogRow:
    """Return the candidate of a step that was rejected, or what came of a reflection or an intervention."""
    if address["number"] is not None:
        intervention = queries.row_of_intervention(workspace.index, run, int(address["number"]))
        if intervention is None:
            raise RevisionNotFoundError(
                f"run {run} has no intervention {address['number']}",
                hint=f"skillgit log {run} --event accepted --event rejected",
            )
        return intervention
    if address["epoch"] is not None:
        reflection = queries.row_of_reflection(workspace.index, run, int(address["epoch"]))
        if reflection is None:
            raise RevisionNotFoundError(
                f"run {run} did not reflect on epoch {address['epoch']}",
                hint="optimizer.use_meta_reflect=true makes a run do so",
            )
        return reflection
    row = queries.row_of_rejected(workspace.index, run, int(address["step"]))
    if row is None:
        raise RevisionNotFoundError(
            f"run {run} rejected nothing at step {address['step']}", hint=_rejections(workspace, run)
        )
    return row


def _version(workspace: Workspace, run: str, version: int) -> LogRow:
    row = queries.row_of_version(workspace.index, run, version) if version >= 0 else None
    if row is None:
        head = _head(workspace, run).version
        known = f"it has v0 to v{head}" if head else "it has v0 only"
        wanted = f"v{version}" if version >= 0 else "nothing before v0"
        raise RevisionNotFoundError(
            f"run {run} has no {wanted}" if version >= 0 else f"run {run} has {wanted}", hint=known
        )
    return row


def _head(workspace: Workspace, run: str) -> LogRow:
    row = queries.head_row(workspace.index, run)
    if row is None:
        raise RevisionNotFoundError(f"run {run} has no versions", hint="skillgit fsck")
    return row


def _of_commit(workspace: Workspace, commit: str) -> Resolved:
    row = queries.row_of_commit(workspace.index, commit)
    return Resolved(commit=commit, row=row, run=row.run if row else None)


def _of_row(row: LogRow) -> Resolved:
    return Resolved(commit=row.commit, row=row, run=row.run)


def _commit(workspace: Workspace, text: str) -> str | None:
    """Return what git calls ``text``; a branch of ours that only a remote has counts as well.

    In the past the branches and tags of runs are where they were then, which git does not know.
    """
    if workspace.past and (there := _branch(workspace, text)):
        return there
    try:
        from skillgit.store import reader  # noqa: PLC0415 - decodes commits, which addresses of ours do not need

        return reader.resolve(workspace.repo, text)
    except RevisionNotFoundError:
        return _branch(workspace, text)


def _branch(workspace: Workspace, text: str) -> str | None:
    """Return the commit of the branch or tag of a run that is called ``text``."""
    found = ((name, refs.parse(name), oid) for name, oid in workspace.repo.tips().items())
    return next(
        (oid for name, ref, oid in found if ref and text in {name, refs.short(name), refs.short(ref.local)}), None
    )


def _rejections(workspace: Workspace, run: str) -> str:
    steps = queries.rejected_steps(workspace.index, run)
    shown = ", ".join(f"r{step}" for step in steps[-_SHOWN:])
    return f"it has {'… ' if len(steps) > _SHOWN else ''}{shown}" if steps else "it rejected nothing yet"


def _near(name: str, known: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415 - only a wrong name needs it

    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"runs: {', '.join(known[:_SHOWN])}" if known else "there are no runs yet"
