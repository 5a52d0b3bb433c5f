"""``skillgit rev-parse``: the commits that revisions name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skillgit.app.revision import event_in, resolve_in
from skillgit.app.span import span_of, split_range
from skillgit.app.workspace import open_workspace
from skillgit.errors import RevisionNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.context import Context
    from skillgit.app.workspace import Workspace
    from skillgit.store.repo import Repo


class Named(NamedTuple):
    """A commit that a revision names.

    Attributes:
        commit: Its id, 40 hexadecimal characters.
        excluded: Whether it is the end of a range that does not belong to it.
    """

    commit: str
    excluded: bool = False


def rev_parse(context: Context, words: Sequence[str], *, short: bool = False) -> tuple[Named, ...]:
    """Return the commits that ``words`` name; of a range its end first, then its excluded beginning, as git does.

    Args:
        context: Where to look.
        words: Revisions and ranges.
        short: Whether to shorten ids as git does.

    Raises:
        RevisionNotFoundError: A word names nothing.
        UsageError: A word is no range of one run.
    """
    with open_workspace(context) as workspace:
        found = tuple(named for word in words for named in _named(workspace, word))
        if not short:
            return found
        return tuple(one._replace(commit=_shortened(workspace.repo, one.commit)) for one in found)


def _named(workspace: Workspace, word: str) -> tuple[Named, ...]:
    if word.startswith("^"):
        return (Named(resolve_in(workspace, word[1:]).commit, excluded=True),)
    if split_range(word) is None:
        return (Named(resolve_in(workspace, word).commit),)
    span = span_of(workspace, [word])
    end = span.upto or event_in(workspace, f"{span.run}/head")
    begin = () if span.after is None else (Named(span.after.commit, excluded=True),)
    return (Named(end.commit), *begin)


def _shortened(repo: Repo, commit: str) -> str:
    from skillgit.store.binary import git  # noqa: PLC0415 - git knows how short an id may be

    answer = git(repo, "rev-parse", "--short", commit)
    if answer.code != 0:
        raise RevisionNotFoundError(f"there is no commit {commit}", hint="git fsck")
    return answer.out.decode().strip()
