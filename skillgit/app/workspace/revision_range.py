"""What the words of a command name: a part of a history, the default run, its best version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from skillgit.app.workspace.moment import Moment
from skillgit.app.workspace.revision import default_run, event_in, find_run, is_address
from skillgit.errors import UsageError
from skillgit.index import queries
from skillgit.index.log_filter import Selection
from skillgit.index.refresh import Index, PastIndex
from skillgit.index.rows import LogRow
from skillgit.index.schema import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    run: str  # the run; empty where there is none
    after: LogRow | None = None  # the event that it begins behind; absent if it begins with the run
    upto: LogRow | None = None  # the event that it ends with; absent if it ends with the run

    def selection(self, index: Index) -> Selection:
        """Return the events of this part, to be asked of ``index``."""
        return Selection(run=self.run, after=_key(index, self.after), upto=_key(index, self.upto))


def _key(index: Index, event: LogRow | None) -> Key | None:
    return None if event is None else index.key_of(event.commit)


def span_of(workspace: Moment, words: Sequence[str]) -> Span:
    """Return what ``words`` mean.

    ``RUN`` is all of a run and no word the default run; ``v7`` is everything up to v7; ``v3..v7``, also written
    ``^v3 v7``, everything after v3 up to v7. An end that is left out is that of the run. A run that is named at one
    end holds for the other.
    """
    if not words:
        return Span(run=default_run(workspace) or "")
    begin, end = _ends(words)
    if not begin and _is_run(workspace, end):
        return Span(run=find_run(workspace, end))
    begin, end = _of_one_run(begin, end)
    after = event_in(workspace, begin) if begin else None
    upto = event_in(workspace, end) if end else None
    event = after or upto
    if event is None:
        raise UsageError("a range needs a version at one end", hint="write one like v3..v7, v3.. or ..v7")
    if after is not None and upto is not None and after.run != upto.run:
        raise UsageError(
            f"'{begin}' is of run {after.run}, and '{end}' of run {upto.run}",
            hint=f"skillgit diff {quote(begin)} {quote(end)} compares versions of two runs",
        )
    return Span(run=event.run, after=after, upto=upto)


def split_range(text: str) -> tuple[str, str] | None:
    """Return both ends of a range ``A..B``, empty where left out; None if ``text`` is not a range."""
    if "..." in text:
        raise UsageError(f"'{text}' has three dots, which mean nothing on a line of versions", hint="write two: v3..v7")
    begin, dots, end = text.partition("..")
    return (begin, end) if dots else None


def _ends(words: Sequence[str]) -> tuple[str, str]:
    if len(words) == 1 and (ends := split_range(words[0])) is not None:
        return ends
    begins = [word.removeprefix("^") for word in words if word.startswith("^")]
    finishes = [word for word in words if not word.startswith("^")]
    if len(begins) > 1 or len(finishes) > 1 or any(split_range(word) for word in words):
        raise UsageError(f"'{' '.join(words)}' is not one range", hint="name one run, or one range like v3..v7")
    return "".join(begins), "".join(finishes)


def _is_run(workspace: Moment, text: str) -> bool:
    names = (*queries.run_names(workspace.index), *workspace.index.broken)
    return text in names or (text != "" and not is_address(text) and any(name.startswith(text) for name in names))


def _of_one_run(begin: str, end: str) -> tuple[str, str]:
    """Return both ends, the run that only one of them names added to the other."""
    first, last = begin.rpartition("/")[0], end.rpartition("/")[0]
    if first and end and not last:
        return begin, f"{first}/{end}"
    if last and begin and not first:
        return f"{last}/{begin}", end
    return begin, end


def cut_off(workspace: Moment, revision: str, range_words: Sequence[str]) -> PastIndex:
    """Return the index as it was right after the event that ``revision`` names, for ``--as-of``.

    A version without a run is one of the run that ``range_words`` name.
    """
    if range_words and is_address(revision) and "/" not in revision:
        revision = f"{span_of(workspace, range_words).run}/{revision}"
    return PastIndex(workspace.index, event_in(workspace, revision).commit)
