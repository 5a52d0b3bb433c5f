"""Whether the scores on the test split that end a run follow from the outcomes in its evidence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillgit.domain.evaluation import Split
from skillgit.store.scores import item_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.domain.event import RunFinished
    from skillgit.domain.state import RunState

_TABLE = re.compile(r"test-v(?P<version>\d+)\.json")


def final_score_problems(state: RunState, event: RunFinished) -> Iterator[str]:
    """Yield what the scores at the end of a run, which follows ``state``, cannot be scores of."""
    told = event.evaluations
    versions = [one.version for one in told]
    for one in told:
        if one.split is not Split.TEST:
            yield f"the run ends with a score on the split {one.split}, and not on {Split.TEST}"
        if one.version is None or not 0 <= one.version <= state.version:
            yield f"the run ends with a score of v{one.version}, which it does not have"
    if len(set(versions)) < len(versions):
        yield "the run ends with two scores of one version"
    if len({(one.item_set, one.n, one.seed) for one in told}) > 1 and state.started.splits:
        yield "the scores at the end of the run are not all of the same items and the same seed"
    wanted = {0, state.best, state.version}
    if told and state.started.splits and set(versions) != wanted:
        named = ", ".join(f"v{version}" for version in sorted(wanted))
        yield f"the run ends with scores of other versions than the first, the best and the last, which are {named}"


def final_item_problems(event: RunFinished, files: Mapping[str, bytes], *, imported: bool) -> Iterator[str]:
    """Yield where the outcomes of items in ``files`` contradict the scores on the test split.

    What was imported keeps outcomes that do not add up to a score under another name.
    """
    for told in event.evaluations:
        name = f"test-v{told.version}.json"
        if name in files:
            yield from item_problems(name, files[name], told)
        elif not imported:
            yield f"the evidence lacks '{name}', and the commit tells the score of v{told.version}"
    measured = {told.version for told in event.evaluations}
    for name in sorted(files):
        match = _TABLE.fullmatch(name)
        if match is not None and int(match["version"]) not in measured:
            yield f"the evidence has '{name}', and the commit tells no score of v{match['version']}"
