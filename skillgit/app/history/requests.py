"""What may be asked of history: events, items, and the version that fixed or broke an item."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

from skillgit.app.workspace.request import Arg, OfPast, OfSkill, OnTerms, Opt
from skillgit.domain.event_kinds import EventKind


@dataclass(frozen=True, kw_only=True)
class LogRequest(OfSkill, OfPast):
    """RUN is all of a run, REV everything up to a version, and v3..v7 everything after v3 up to v7; v3.. goes on to the
    end, ..best begins with the run, and ^v3 v7 is another way to write v3..v7.

    A score in brackets was inherited, not measured. In a graph, the line of a fork leads to the version that it began
    at, that of a merge to what it took in; … marks lines that did not fit.

    --jsonl prints the events as they are in git, oldest first, one JSON object a line: the commit, and every field of
    its trailers and its text.

    \b
    ●  new best   ○  accepted   ×  rejected   ◆  slow update   ·  skipped   ↩  reverted   ✎  edited by hand
    """  # noqa: D301, RUF002 - click reads the mark; the sign of the screens

    names_run = "words"

    words: Annotated[tuple[str, ...], Arg("[RUN | REV | REV..REV]", words="revisions", tool="run")] = ()
    graph: Annotated[bool, Opt("Draw how the events hang together; those of a run stay together")] = False
    patch: Annotated[bool, Opt("Show under each event what it changed", "-p --patch")] = False
    stat: Annotated[bool, Opt("Show under each event how much it changed in which file")] = False
    with_rejected: Annotated[bool, Opt("Leave out rejected candidates", "--no-rejected", tool="rejected")] = True
    limit: Annotated[
        int | None,
        Opt("Show N events at most; -3 is short for -n 3", "-n --limit --max-count", metavar="N", least=0),
    ] = None
    since: Annotated[str, Opt("Show events of TIME or later, like '2 days ago'", "--since --after", metavar="TIME")] = (
        ""
    )
    until: Annotated[str, Opt("Show events of TIME or earlier", "--until --before", metavar="TIME")] = ""
    grep: Annotated[str, Opt("Show events containing words that start with TEXT", metavar="TEXT", tool="words")] = ""
    events: Annotated[
        tuple[EventKind, ...],
        Opt(f"Show events of KIND: {' '.join(EventKind)}; repeat it for more", "--event", metavar="KIND"),
    ] = ()
    items: Annotated[
        tuple[str, ...],
        Opt("Show events that fixed or broke item ID; repeat it for more", "--item", metavar="ID", words="items"),
    ] = ()
    reverse: Annotated[bool, Opt("Show the oldest event first")] = False
    all_runs: Annotated[bool, Opt("Show the events of all runs", "--all")] = False


class ItemOrder(StrEnum):
    ITEM = "item"
    FIRST = "first"
    FLIPS = "flips"
    SHARE = "share"


@dataclass(frozen=True, kw_only=True)
class ItemsRequest(OnTerms, OfSkill, OfPast):
    """The items are those of the selection split. An item is noisy if repeated rollouts of one text differ, if a
    placebo or a later measurement moved it, or if it flipped three times or more.

    Of one item, REV..REV names the version between the two that fixed or broke it, from what the run recorded, and
    exits with 1 if the outcome is the same at both ends; v3.. goes on to the newest version. --measure rolls the item
    out where an outcome is missing; without two versions it looks at the newest flip of the run.

    The scores of --models are those of the run and of the notes that eval and verify left; of several the newest. What
    was measured on other items, in another environment or by another judge is marked.
    """

    run: Annotated[str | None, Arg("[RUN | REV..REV]", words="revisions", tool="run")] = None
    item: Annotated[str | None, Opt("Show the history of one item", metavar="ID", words="items", tool="item")] = None
    trajectory: Annotated[str | None, Opt("With --item: the conversation at REV", metavar="REV", words="revisions")] = (
        None
    )
    measure: Annotated[bool, Opt("With --item: find what fixed or broke it, rolling it out where needed")] = False
    flaky: Annotated[bool, Opt("Only items with noisy outcomes, and why", tool="flaky")] = False
    never_solved: Annotated[bool, Opt("Only items that no version solves", tool="never_solved")] = False
    solved: Annotated[bool, Opt("Only items that the newest version solves", tool="solved")] = False
    task_type: Annotated[str | None, Opt("Only items of the task type T", "--type", metavar="T")] = None
    by_check: Annotated[bool, Opt("Show the mean score of each single check, not of items", "--checks")] = False
    by_model: Annotated[bool, Opt("Show what each version scored under each target model", "--models")] = False
    split: Annotated[
        str, Opt("With --models: which items the scores are of", choices=("train", "selection", "test"))
    ] = "selection"
    rejected: Annotated[bool, Opt("Show rejected candidates, too")] = False
    all_versions: Annotated[bool, Opt("All versions, even if the table gets wide")] = False
    order: Annotated[ItemOrder, Opt("What to sort the items by", "--sort")] = ItemOrder.ITEM
