"""Whether what events say of rounds holds: how candidates did on train items, and which steps were their rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from skillgit.domain.address import version_label
from skillgit.domain.evaluation import Scored
from skillgit.domain.event import Accepted, Event, Rejected, Skipped
from skillgit.domain.evidence_names import LOOKS, ROLLOUT, SCREENING
from skillgit.domain.proposal import Origin, Screening
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.json_limits import loads
from skillgit.domain.untrusted.model_text import clean_line
from skillgit.errors import DataError
from skillgit.store.commit_message import Recorded


def screening_problems(event: Event, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield how the counts of a screening differ from what the evidence, as far as it is here, says again."""
    counts = event.screening if isinstance(event, Accepted | Rejected | Skipped) else None
    if counts is None:
        if SCREENING in files:
            yield f"the evidence has '{SCREENING}', and the commit records no screening"
        return
    if not (0 <= counts.fixed <= counts.failing and 0 <= counts.broken <= counts.solved):
        yield "the screening counts more items as fixed or broken than were tried"
    if isinstance(event, Skipped) and counts.passed and event.taken_up_by is None:
        yield "the candidate passed its screening, and was not measured"
    if not isinstance(event, Skipped) and not counts.passed:
        yield "the candidate was screened out, and was measured"
    if SCREENING not in files or ROLLOUT not in files:
        return
    try:
        before, after = (dict(map(_outcome, loads(files[name]))) for name in (ROLLOUT, SCREENING))
        again = _screening(before, after)
    except (ValueError, TypeError, KeyError, RecursionError, DataError):
        yield f"{SCREENING} in the evidence cannot be read"
        return
    if again != counts:
        yield f"the commit says {_in_words(counts)}, and its items say {_in_words(again)}"


def look_problems(event: Event, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield how what looks at drafts are said to show differs from what their rollouts, as far as they are here, say.

    A look is at train items of the step, and a step without a kept draft measures nothing.
    """
    if LOOKS not in files or not isinstance(event, Accepted | Rejected | Skipped):
        return
    try:
        looks = loads(files[LOOKS])
        before = dict(map(_outcome, loads(files[ROLLOUT]))) if ROLLOUT in files else None
        for look in looks:
            name = f"look-{look['draft']}-{look['attempt']}.json"
            if not look["rollouts"] or name not in files or before is None:
                continue
            after = dict(map(_outcome, loads(files[name])))
            fixes = [item for item, is_solved in after.items() if before[item] is False and is_solved]
            breaks = [item for item, is_solved in after.items() if before[item] and is_solved is False]
            if (fixes, breaks, len(after)) != (look["fixed"], look["broken"], look["rollouts"]):
                yield f"{LOOKS} says of draft {look['draft']} something else than the rollouts in {name}"
        is_kept = any(look["ending"] == "kept" for look in looks)
    except (ValueError, TypeError, KeyError, RecursionError, DataError):
        yield f"{LOOKS} in the evidence cannot be read"
        return
    if not is_kept and not isinstance(event, Skipped):
        yield "no draft was kept after its look, and a candidate was measured"


def _outcome(row: Mapping[str, object]) -> tuple[str, bool | None]:
    """Return an item and whether it is solved; None if it has no score."""
    if "failed" in row:
        return str(row["id"]), None
    return str(row["id"]), Scored(float(str(row["hard"])), float(str(row["soft"]))).passed


def _screening(before: Mapping[str, bool | None], after: Mapping[str, bool | None]) -> Screening:
    failing = [outcome for item, outcome in after.items() if before[item] is False]
    passing = [outcome for item, outcome in after.items() if before[item]]
    return Screening(failing=len(failing), fixed=failing.count(True), solved=len(passing), broken=passing.count(False))


def _in_words(counts: Screening) -> str:
    return f"failing={counts.failing} fixed={counts.fixed} solved={counts.solved} broken={counts.broken}"


def joining_problems(state: RunState, event: Event) -> Iterator[str]:
    """Yield why a candidate that follows ``state`` cannot have taken up the line that it says."""
    if not isinstance(event, Accepted | Rejected) or event.joined is None:
        return
    if not (0 <= event.base <= state.version and 0 <= event.joined <= state.version):
        return  # the fold says so
    base, rival = version_label(event.base), version_label(event.joined)
    if event.joined in state.line(event.base):
        yield f"it joins {rival}, of which {base} was made already"
    elif event.base in state.line(event.joined):
        yield f"it joins {rival}, which was made of {base}"


def joined_text_problems(event: Accepted | Rejected, rival: Skill) -> Iterator[str]:
    """Yield that a candidate has nothing of ``rival``, the version whose edits it is said to have taken up."""
    lines = {clean_line(line) for _, text in rival.text_files() for line in text.splitlines()}
    if event.changes and not any((change.text in lines) is (change.sign == "+") for change in event.changes):
        yield f"it says that it took up {version_label(event.joined)}, and nothing that it changes is from there"


def rival_problems(records: Sequence[Recorded]) -> Iterator[tuple[Recorded, str]]:
    """Yield where a candidate lost to a step that is no rival of it, or a step is left to one without a version.

    A step that the run has not come to yet says nothing: a round is computed before its first step is recorded.
    """
    steps = {
        record.event.step: record.event
        for record in records
        if isinstance(record.event, Accepted | Rejected | Skipped) and record.event.origin is Origin.STEP
    }
    newest = max(steps, default=0)
    for record in records:
        event = record.event
        if isinstance(event, Accepted | Rejected) and 0 != event.verdict.outrun <= newest:
            sentences = _rival_problems(event, steps.get(event.verdict.outrun))
        elif isinstance(event, Skipped) and event.taken_up_by is not None:
            sentences = _union_problems(event.step, event.taken_up_by, steps, newest)
        else:
            continue
        yield from ((record, sentence) for sentence in sentences)


def _rival_problems(event: Accepted | Rejected, rival: Event | None) -> Iterator[str]:
    step = event.verdict.outrun
    if event.origin is not Origin.STEP or step == event.step or not isinstance(rival, Accepted | Rejected):
        yield f"it lost to step {step}, which has no candidate that could be its rival"
        return
    if (rival.base, rival.epoch) != (event.base, event.epoch):
        bases = f"{version_label(rival.base)}, and this one of {version_label(event.base)}"
        yield f"it lost to step {step}, whose candidate was made of {bases}"
    ours, theirs = event.evaluation, rival.evaluation
    rule = event.verdict.metric, event.verdict.soft_weight
    # the score of one that left the race early is only a bound
    if ours.stopped or ours.scored < ours.n or theirs.scored + theirs.unneeded < theirs.n:
        return
    if theirs.stopped or theirs.score(*rule) < ours.score(*rule):
        yield f"it lost to step {step}, whose candidate was not better"


def _union_problems(step: int, union: int, steps: Mapping[int, Event], newest: int) -> Iterator[str]:
    if union <= step:
        yield "it was left to a step that does not follow it"
    elif union <= newest and not isinstance(steps.get(union), Accepted):
        yield f"it was left to step {union}, which made no version"
