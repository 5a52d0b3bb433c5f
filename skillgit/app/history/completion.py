"""What a word on a prompt may be: runs, revisions, items and models, from the index.

The index file is read as it is. The repository is opened only where the file cannot be used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from skillgit.app.workspace.context import Context
from skillgit.app.workspace.skill_choice import labels
from skillgit.domain.address import address_of
from skillgit.index.schema import glance
from skillgit.lazy import loaded_on_use
from skillgit.store.git_binary import common_dir, configured
from skillgit.store.seals import own_folder

with loaded_on_use():  # it loads pygit2, and is needed once
    from skillgit.app.workspace import workspace as workspaces

_MOST = 500
_NEWEST_RUN = "SELECT name FROM run ORDER BY updated DESC, started DESC, name LIMIT 1"


class Word(NamedTuple):
    """A word that completes an argument."""

    value: str
    help: str = ""  # what it means; shells that can show it do


def runs(context: Context, prefix: str) -> tuple[Word, ...]:
    """Return the runs whose names begin with ``prefix``, the one with the newest event first."""
    rows = _select(context, "SELECT name, environment, outcome FROM run ORDER BY updated DESC, started DESC, name")
    words = (Word(name, " ".join(filter(None, (environment, outcome)))) for name, environment, outcome in rows)
    return _beginning(words, prefix)


def skills(context: Context, prefix: str) -> tuple[Word, ...]:
    """Return the skills that runs train and whose names begin with ``prefix``."""
    words = labels([row[0] for row in _select(context, "SELECT DISTINCT skill FROM run ORDER BY skill")])
    return _beginning([Word(word, path) for path, word in words.items()], prefix)


def revisions(context: Context, text: str) -> tuple[Word, ...]:
    """Return the revisions, of the default or a named run, and the runs that begin with ``text``, or a range's end."""
    before, dots, last = text.rpartition("..")
    run_part, slash, _ = last.rpartition("/")
    run = run_part or _default_run(context)
    prefix = f"{run_part}{slash}"
    words = [Word(f"{prefix}{word.value}", word.help) for word in _addresses(context, run)] if run else []
    if not slash:
        words += runs(context, "")
    return tuple(Word(f"{before}{dots}{word.value}", word.help) for word in _beginning(words, last))


def items(context: Context, prefix: str) -> tuple[Word, ...]:
    """Return the items of the default run that begin with ``prefix``."""
    query = """
        SELECT DISTINCT item, task_type FROM item_outcome
        WHERE event = (SELECT measured_by FROM version WHERE run = ? AND measured_by IS NOT NULL
                       ORDER BY version DESC LIMIT 1)
          AND substr(item, 1, ?) = ? ORDER BY item LIMIT ?"""
    rows = _select(context, query, (_default_run(context), len(prefix), prefix, _MOST))
    return tuple(Word(item, task_type) for item, task_type in rows)


def models(context: Context, prefix: str) -> tuple[Word, ...]:
    """Return the models that runs have asked and that begin with ``prefix``, as ``backend/model``."""
    query = """
        SELECT target, 'target' FROM event WHERE kind = 'run-started' AND target <> ''
        UNION SELECT optimizer, 'optimizer' FROM event WHERE kind = 'run-started' AND optimizer <> ''"""
    return _beginning((Word(*row) for row in _select(context, query)), prefix)


def _addresses(context: Context, run: str) -> Iterator[Word]:
    query = """
        SELECT kind, version, step, epoch, origin, number, at, title FROM event WHERE run = ?
        ORDER BY at DESC, step DESC, rank DESC, number DESC LIMIT ?"""
    yield from (Word("best", "the best version"), Word("head", "the newest version"))
    for kind, version, step, epoch, origin, number, at, title in _select(context, query, (run, _MOST)):
        address = address_of(kind, version=version, step=step, epoch=epoch, origin=origin, number=number, at=at)
        yield Word(address.label, title)


def _default_run(context: Context) -> str:
    name = configured(context.directory, context.environ, "skillgit.run")
    if name:
        return name
    return next((row[0] for row in _select(context, _NEWEST_RUN)), "")


def _select(context: Context, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    git_dir = common_dir(context.directory, context.environ)
    if git_dir is None:
        return []
    folder = own_folder(git_dir)
    rows = glance(folder / "index.db", query, values) if folder is not None else None
    if rows is not None:
        return rows
    with workspaces.Workspace(context) as workspace:
        return workspace.index.select(query, values)


def _beginning(words: Iterator[Word] | Sequence[Word], prefix: str) -> tuple[Word, ...]:
    return tuple(word for word in words if word.value.startswith(prefix))
