"""History as git and the index have it: events, files, trailers, commit ids, and the rows of an SQL query."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from skillgit.app.history.log import LogRequest, check_wanted
from skillgit.app.workspace.revision import event_in, resolve_in
from skillgit.app.workspace.revision_range import span_of, split_range
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.event import Event, Inherited
from skillgit.errors import NotFoundError, RevisionNotFoundError
from skillgit.index import log_filter, queries
from skillgit.index.log_filter import Selection
from skillgit.index.user_sql import QueryResult, ask
from skillgit.store import tree
from skillgit.store.git_binary import git
from skillgit.store.history_reader import read_commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.workspace.context import Context
    from skillgit.store.commit_message import Recorded
    from skillgit.store.repo import Repo


SCHEMA = "skillgit.event/1"
_AT_ONCE = 500


def events(context: Context, words: Sequence[str] = (), *, all_runs: bool = False) -> Iterator[dict[str, object]]:
    """Yield the events of a run or of a range of versions, oldest first, each as it was read from its commit.

    Only one event is held at a time.
    """
    check_wanted(LogRequest(words=words, all_runs=all_runs))
    with open_workspace(context) as workspace:
        index = workspace.index
        span = None if all_runs else span_of(workspace, words)
        runs = sorted(queries.run_names(index)) if span is None else [span.run] if span.run else []
        for choice in (Selection(run=run) if span is None else span.selection(index) for run in runs):
            for commit in log_filter.commits(index, choice, at_once=_AT_ONCE):
                yield _told(read_commit(workspace.repo, commit))


def _told(record: Recorded) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "kind": record.event.kind,
        "commit": record.commit,
        "parents": record.parents,
        "tree": record.tree,
        "branch": record.branch,
        "time": record.time,
        "evidence_tree": record.evidence,
        **_fields(record.event),
    }


def _fields(event: Event) -> dict[str, object]:
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    # by its own name, so that nobody takes it for the version of an evaluation
    if isinstance(values.get("evaluation"), Inherited):
        values["evaluation"] = {"inherited_from": values["evaluation"].version}
    return values


_DOCUMENT = "SKILL.md"
_SHOWN = 8


def cat(context: Context, name: str) -> bytes:
    """Return the file that ``name``, ``REV`` or ``REV:PATH``, names.

    PATH lies in the skill folder of the revision's run and is its ``SKILL.md`` if it is left out. In a commit that is
    no event, and if the skill folder does not have it, it is a path of the repository.
    """
    revision, _, path = name.partition(":")
    file = str(PurePosixPath(path or _DOCUMENT))
    with open_workspace(context) as workspace:
        resolution = resolve_in(workspace, revision)
        folder = workspace.index.skill_path(resolution.run) if resolution.run else ""
        root = workspace.repo.commit(resolution.commit).tree
        for candidate in (f"{folder}/{file}", file) if folder else (file,):
            content = tree.read_file(root, candidate)
            if content is not None:
                return content
        names = _file_names(workspace, resolution.commit, folder)
    near = get_close_matches(file, names, n=1)
    hint = f"it has {', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}"
    raise NotFoundError(
        f"{revision} has no file '{file}'", hint=f"did you mean {revision}:{near[0]}?" if near else hint
    )


def _file_names(workspace: Workspace, commit: str, folder: str) -> list[str]:
    inside = f"{folder}/" if folder else ""
    answer = git(
        workspace.repo, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, *([inside] if inside else [])
    )
    names = answer.out.decode(errors="replace").split("\0")
    return [name.removeprefix(inside) for name in names if name]


class TrailerRow(NamedTuple):
    key: str
    value: str


def trailers(context: Context, revision: str) -> tuple[str, tuple[TrailerRow, ...]]:
    """Return the commit that ``revision`` names, and its trailers in their order; none where it has none.

    They are read by git and are those that ``git interpret-trailers --parse`` prints for its message.
    """
    with open_workspace(context) as workspace:
        commit = resolve_in(workspace, revision).commit
        answer = git(workspace.repo, "log", "-1", "--no-show-signature", "--format=%(trailers:only,unfold)", commit)
    if answer.code != 0:
        raise RevisionNotFoundError(f"git cannot show {commit[:12]}: {answer.error}", hint="git fsck")
    lines = answer.out.decode(errors="replace").splitlines()
    pairs = (line.partition(": ") for line in lines if line)
    return commit, tuple(TrailerRow(key, value) for key, _, value in pairs)


class NamedCommit(NamedTuple):
    """A commit that a revision names."""

    commit: str  # its id, 40 hexadecimal characters
    excluded: bool = False  # whether it is the end of a range that does not belong to it


def rev_parse(context: Context, words: Sequence[str], *, short: bool = False) -> tuple[NamedCommit, ...]:
    """Return the commits that ``words`` name; of a range its end first, then its excluded beginning, as git does."""
    with open_workspace(context) as workspace:
        named_commits = tuple(named_commit for word in words for named_commit in _named(workspace, word))
        if not short:
            return named_commits
        return tuple(entry._replace(commit=_shortened(workspace.repo, entry.commit)) for entry in named_commits)


def _named(workspace: Workspace, word: str) -> tuple[NamedCommit, ...]:
    if word.startswith("^"):
        return (NamedCommit(resolve_in(workspace, word[1:]).commit, excluded=True),)
    if split_range(word) is None:
        return (NamedCommit(resolve_in(workspace, word).commit),)
    span = span_of(workspace, [word])
    end = span.upto or event_in(workspace, f"{span.run}/head")
    begin = () if span.after is None else (NamedCommit(span.after.commit, excluded=True),)
    return (NamedCommit(end.commit), *begin)


def _shortened(repo: Repo, commit: str) -> str:
    answer = git(repo, "rev-parse", "--short", commit)
    if answer.code != 0:
        raise RevisionNotFoundError(f"there is no commit {commit}", hint="git fsck")
    return answer.out.decode().strip()


@contextmanager
def sql(context: Context, query: str) -> Iterator[QueryResult]:
    """Run ``query`` on the index; its rows can be read as long as the block lasts."""
    with open_workspace(context) as workspace, ask(workspace.index, query) as answer:
        yield answer
