"""Whether the evidence of a run is here, complete, readable, and says what the run's own events say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillgit.app.upkeep.event_checks import differ
from skillgit.domain.address import version_label
from skillgit.domain.evaluation import EvaluationSummary, Scored, Split, item_set_digest, mean
from skillgit.domain.event import ATTEMPTS, CANDIDATES, Event
from skillgit.domain.event_kinds import TRAITS, EventKind
from skillgit.domain.evidence_names import COMPARISON, LOOKS, PATCH, ROLLOUT, SCREENING
from skillgit.domain.finding import REPAIR, Finding
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.ids import short_digest
from skillgit.domain.proposal import Screening
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import DataError, HistoryError, SkillgitError
from skillgit.store import history_reader, refs
from skillgit.store.commit_message import Recorded
from skillgit.store.evidence import (
    EvidenceLink,
    dropped_trees,
    dropping_problems,
    evidence_names,
    lost_evidence,
    read_evidence,
)
from skillgit.store.integrity import Blob, GitError, Tree, missing_files
from skillgit.store.repair import unpublished
from skillgit.store.repo import Repo
from skillgit.store.seals import is_own
from skillgit.store.tree import content_of

_PLAN = CONFIG, ENVIRONMENT, SPLITS = "config.json", "environment.json", "splits.json"
_SELECTION, _REPEATS, _PLACEBO = "selection.json", "repeats.json", "placebo.json"
UNREADABLE = (ValueError, TypeError, KeyError, RecursionError, DataError)
"""What comes of a document that is not of the form that evidence has."""
_SHORT = 12


def lacking_files(repo: Repo, record: Recorded, *, is_training: bool) -> Iterator[str]:
    """Yield which files the evidence of ``record`` lacks; evidence that is not here says nothing.

    A history may be written without any, but not by a trainer: where one ``is_training`` the run, an event without
    evidence is a problem too.
    """
    names = needed_files(record.event)
    if names and not record.evidence and is_training:
        yield f"the commit names no evidence, and {record.event.kind} always has some"
    present = evidence_names(repo, record.evidence) if names and record.evidence else None
    for name in names:
        if present is not None and name not in present:
            yield f"the evidence lacks '{name}', which {record.event.kind} always has"


def needed_files(event: Event) -> tuple[str, ...]:
    """Return the files that the evidence of ``event`` always has, except for test scores and placebos."""
    if event.fork_of:
        return ()  # A fork takes over what is here of the run that it comes from, which may be nothing.
    files = list(_PLAN) if event.kind is EventKind.RUN_STARTED else []
    if event.kind in CANDIDATES:
        files += [PATCH]
    files += [ROLLOUT] * event.is_step
    files += [SCREENING] * (event.screening is not None)
    if event.kind is EventKind.SLOW_PROPOSED:
        files += [COMPARISON]
    if TRAITS[event.kind].has_outcomes and event.summary is not None:
        files += [_SELECTION]
    if event.kind in CANDIDATES and event.verdict.repeats:
        files += [_REPEATS]
    return tuple(files)


def content_problems(event: Event, files: Mapping[str, bytes], *, is_import: bool) -> Iterator[str]:
    """Yield what ``files``, the evidence of ``event`` as far as it is here, say otherwise than the commit."""
    if event.kind is EventKind.RUN_FINISHED:
        yield from _placebo_problems(event, files.get(_PLACEBO))
        yield from _final_item_problems(event, files, is_import=is_import)
    if event.screening is not None:
        yield from _screening_problems(event, event.screening, files)
    elif SCREENING in files:
        yield f"the evidence has '{SCREENING}', and the commit records no screening"
    yield from look_problems(event, files)
    summary = event.summary if TRAITS[event.kind].has_outcomes else None
    if summary is not None and _SELECTION in files:
        yield from _item_problems(_SELECTION, files[_SELECTION], summary)
        verdict = event.verdict
        if verdict is not None and verdict.repeats and verdict.compared in {None, summary.n}:
            yield from _repeat_problems(files, verdict)


def _placebo_problems(event: Event, content: bytes | None) -> Iterator[str]:
    if event.placebo is None and content is None:
        return
    try:
        rows = loads(content or b"[]")
        counts = len(rows), sum(bool(row["accepted"]) for row in rows)
    except (ValueError, TypeError, KeyError):
        yield f"{_PLACEBO} in the evidence cannot be read"
        return
    if event.placebo is None or counts != (event.placebo.n, event.placebo.accepted):
        yield "the evidence has other placebos than the commit"


def _final_item_problems(event: Event, files: Mapping[str, bytes], *, is_import: bool) -> Iterator[str]:
    """Yield outcomes in ``files`` that contradict test scores; imports may keep theirs under another name."""
    for evaluation in event.evaluations:
        name = f"test-{version_label(evaluation.version)}.json"
        if name in files:
            yield from _item_problems(name, files[name], evaluation)
        elif not is_import:
            yield f"the evidence lacks '{name}', and the commit has the score of {version_label(evaluation.version)}"
    versions = {evaluation.version for evaluation in event.evaluations}
    for name in sorted(files):
        match = re.fullmatch(r"test-v(?P<version>\d+)\.json", name)
        if match is not None and int(match["version"]) not in versions:
            yield f"the evidence has '{name}', and the commit has no score of {version_label(int(match['version']))}"


def _item_problems(name: str, content: bytes, summary: EvaluationSummary) -> Iterator[str]:
    """Yield where the outcomes of items in ``content``, the file ``name``, contradict the evaluation."""
    try:
        rows = loads(content)
        outcomes = _scores(rows)
        hard, soft = _means(list(outcomes.values()))
    except UNREADABLE:
        yield f"{name} in the evidence cannot be read"
        return
    figures = len(rows) + summary.unneeded, len(outcomes), hard, soft
    if figures != (summary.n, summary.scored, summary.hard, summary.soft):
        of = "" if summary.version is None else f" of {version_label(summary.version)}"
        yield (
            f"the evaluation{of} says n={summary.n} scored={summary.scored} hard={summary.hard!r}"
            f" soft={summary.soft!r}, and its items say n={figures[0]} scored={figures[1]} hard={figures[2]!r}"
            f" soft={figures[3]!r}"
        )


def _scores(rows: Any) -> dict[str, Scored]:  # noqa: ANN401 - a document that was read
    """Return the score of each item in a table of outcomes that has one."""
    return {row["id"]: Scored(float(row["hard"]), float(row["soft"])) for row in rows if "failed" not in row}


def _means(outcomes: Sequence[Scored]) -> tuple[float, float]:
    return mean([outcome.hard for outcome in outcomes]), mean([outcome.soft for outcome in outcomes])


def _repeat_problems(files: Mapping[str, bytes], verdict: Verdict) -> Iterator[str]:
    try:
        outcomes = _scores(loads(files[_SELECTION]))
    except UNREADABLE:
        return
    try:
        again = {
            row["id"]: [Scored(float(draw["hard"]), float(draw["soft"])) for draw in row["candidate"] if "hard" in draw]
            for row in loads(files[_REPEATS])
        }
        means = [Scored(*_means([first, *again.get(item, [])])) for item, first in outcomes.items()]
        score = Scored(*_means(means)).value(verdict.metric, verdict.soft_weight)
    except UNREADABLE:
        yield f"{_REPEATS} in the evidence cannot be read"
        return
    if differ(score, verdict.score):
        yield f"the gate compared score={verdict.score!r}, and its repeats say {score!r}"


def _screening_problems(event: Event, counts: Screening, files: Mapping[str, bytes]) -> Iterator[str]:
    if not (0 <= counts.fixed <= counts.failing and 0 <= counts.broken <= counts.solved):
        yield "the screening counts more items as fixed or broken than were tried"
    if event.kind is EventKind.SKIPPED and counts.passed and event.taken_up_by is None:
        yield "the candidate passed its screening, and was not measured"
    if event.kind is not EventKind.SKIPPED and not counts.passed:
        yield "the candidate was screened out, and was measured"
    if SCREENING not in files or ROLLOUT not in files:
        return
    try:
        before, after = (dict(map(_solved, loads(files[name]))) for name in (ROLLOUT, SCREENING))
        failing = [outcome for item, outcome in after.items() if before[item] is False]
        passing = [outcome for item, outcome in after.items() if before[item]]
    except UNREADABLE:
        yield f"{SCREENING} in the evidence cannot be read"
        return
    again = Screening(failing=len(failing), fixed=failing.count(True), solved=len(passing), broken=passing.count(False))
    if again != counts:
        yield f"the commit says {_in_words(counts)}, and its items say {_in_words(again)}"


def _solved(row: Mapping[str, object]) -> tuple[str, bool | None]:
    """Return an item and whether it is solved; None if it has no score."""
    if "failed" in row:
        return str(row["id"]), None
    return str(row["id"]), Scored(float(str(row["hard"])), float(str(row["soft"]))).passed


def _in_words(counts: Screening) -> str:
    return f"failing={counts.failing} fixed={counts.fixed} solved={counts.solved} broken={counts.broken}"


def look_problems(event: Event, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield how what looks at drafts are said to show differs from what their rollouts, as far as they are here, say.

    A look is at train items of the step, and a step without a kept draft measures nothing.
    """
    if LOOKS not in files or event.kind not in ATTEMPTS:
        return
    try:
        looks = loads(files[LOOKS])
        before = dict(map(_solved, loads(files[ROLLOUT]))) if ROLLOUT in files else None
        for look in looks:
            name = f"look-{look['draft']}-{look['attempt']}.json"
            if not look["rollouts"] or name not in files or before is None:
                continue
            after = dict(map(_solved, loads(files[name])))
            fixes = [item for item, is_solved in after.items() if before[item] is False and is_solved]
            breaks = [item for item, is_solved in after.items() if before[item] and is_solved is False]
            if (fixes, breaks, len(after)) != (look["fixed"], look["broken"], look["rollouts"]):
                yield f"{LOOKS} says of draft {look['draft']} something else than the rollouts in {name}"
        is_kept = any(look["ending"] == "kept" for look in looks)
    except UNREADABLE:
        yield f"{LOOKS} in the evidence cannot be read"
        return
    if not is_kept and event.kind is not EventKind.SKIPPED:
        yield "no draft was kept after its look, and a candidate was measured"


def plan_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[tuple[Recorded, str]]:
    """Yield events that contradict the plan's files that are here; a digest, which covers prompts, is not checked."""
    first = records[0]
    if first.event.kind is not EventKind.RUN_STARTED:
        return
    try:
        files = read_evidence(repo, first.evidence, (CONFIG, SPLITS, ENVIRONMENT)) or {}
    except (GitError, KeyError):
        # that a file is missing is reported where objects are looked for
        return
    documents: dict[str, Any] = {}
    for name, content in files.items():
        try:
            document = loads(content)
        except (ValueError, RecursionError):
            document = None
        is_sound = isinstance(document, dict)
        if name == CONFIG and is_sound:
            is_sound = all(isinstance(section, dict) for section in document.values())
        if is_sound:
            documents[name] = document
        else:
            yield first, f"{name} in the evidence cannot be read"
    if ENVIRONMENT in documents and (digest := documents[ENVIRONMENT].get("digest")) != first.event.environment:
        description = f"the digest {digest}" if isinstance(digest, str) else "no digest"
        yield first, f"the environment in the evidence has {description}, and the commit says {first.event.environment}"
    if SPLITS in documents:
        yield from _split_problems(records, first.event, documents[SPLITS])


def _split_problems(
    records: Sequence[Recorded], event: Event, splits: Mapping[str, Any]
) -> Iterator[tuple[Recorded, str]]:
    first = records[0]
    try:
        if not all(isinstance(rows, list) for rows in splits.values()):
            raise TypeError(splits)  # noqa: TRY301 - one way out
        sets = {name: item_set_digest({row["id"]: row["digest"] for row in rows}) for name, rows in splits.items()}
    except (TypeError, KeyError):
        yield first, f"{SPLITS} in the evidence cannot be read"
        return
    if (digest := short_digest(sets)) != event.splits:
        yield first, f"the splits in the evidence have the digest {digest}, and the commit says {event.splits}"
        return
    evaluation, selection = event.summary, sets.get(Split.SELECTION, "")
    if splits.get(Split.SELECTION) and evaluation is not None and evaluation.item_set != selection:
        sentence = f"the selection items in the evidence are the set {selection}, and the commit says"
        yield first, f"{sentence} {evaluation.item_set}"
    for record in records:
        for item_set in {summary.item_set for summary in record.event.evaluations if splits.get(Split.TEST)} - {
            sets.get(Split.TEST)
        }:
            sentence = f"the test items in the evidence are the set {sets[Split.TEST]}, and the commit says {item_set}"
            yield record, sentence


_TABLE = re.compile(r"(?:rollout|selection|test-v\d+)\.json")
_TRAJECTORY = re.compile(r"(?:.+/)?trajectories/[^/]+\.json")


def trajectory_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[tuple[Recorded, str]]:
    """Yield which files in the evidence of ``records``, as far as it is here, cannot be read."""
    items: dict[str, str] = {}  # files that were read, with the item of a trajectory
    for record in records:
        tree = repo.raw.get(record.evidence) if record.evidence else None
        if isinstance(tree, Tree):
            yield from ((record, sentence) for sentence in _file_problems(repo, dict(_files(tree)), items))


def _file_problems(repo: Repo, files: Mapping[str, Blob], items: dict[str, str]) -> Iterator[str]:
    for path, blob in files.items():
        if not path.endswith(".json") or str(blob.id) in items:
            continue
        try:
            items[str(blob.id)] = _item(path, loads(content_of(repo, blob, path)))
        except (ValueError, TypeError, KeyError, RecursionError):
            yield f"{path} in the evidence cannot be read"
        except HistoryError as error:
            yield error.message
    for path in filter(_TABLE.fullmatch, files):
        if str(files[path].id) not in items:
            continue
        for row in loads(content_of(repo, files[path], path)):
            file = row.get("trajectory")
            trajectory = files.get(str(file))
            if file is not None and trajectory is None:
                yield f"{path} in the evidence names '{file}', which it lacks"
            elif trajectory is not None and items.get(str(trajectory.id), row["id"]) != row["id"]:
                yield f"{path} in the evidence names '{file}' for {row['id']}, and it is of another item"


def _item(path: str, document: object) -> str:
    """Return the item of the trajectory ``path``, empty for another file; TypeError or KeyError if it is malformed."""
    if _TABLE.fullmatch(path):
        if not isinstance(document, list) or not all(isinstance(row, dict) and "id" in row for row in document):
            raise TypeError(path)
    elif _TRAJECTORY.fullmatch(path):
        if not isinstance(document, dict) or not isinstance(document["turns"], list):
            raise TypeError(path)
        if not all(isinstance(turn["role"], str) and isinstance(turn["content"], str) for turn in document["turns"]):
            raise TypeError(path)
        return str(document["id"])
    return ""


def _files(folder: Tree, prefix: str = "") -> Iterator[tuple[str, Blob]]:
    for entry in folder:
        if isinstance(entry, Tree):
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif isinstance(entry, Blob):
            yield f"{prefix}{entry.name}", entry


def kept_problems(
    repo: Repo, run: str, records: Sequence[Recorded], tips: Mapping[str, str], chain: Sequence[EvidenceLink]
) -> Iterator[Finding]:
    """Yield problems of the evidence that ``chain`` keeps; a clone may have none, or only what it wrote since."""
    ref = refs.evidence_ref(run)
    tree_ids, drops = {link.tree for link in chain}, dropped_trees(repo, run)
    whole = ref in tips and bool(records) and records[0].evidence in tree_ids
    is_wanted = whole or (bool(records) and is_own(repo, start=records[0].commit))
    losses = {record.commit for record in lost_evidence(repo, run, records)}
    present: set[str] = set()
    for record in records:
        if not record.evidence or (record.evidence not in tree_ids and record.evidence in drops):
            continue
        here = repo.has_object(record.evidence)
        if missing := list(missing_files(repo, record.evidence, present)) if here else []:
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            yield Finding(commit=record.commit, sentence=f"its evidence lacks '{missing[0]}'{more}")
        elif here and is_wanted and record.evidence not in tree_ids:
            sentence = f"its evidence is not kept by {refs.short(ref)}, so that git gc will drop it"
            yield Finding(commit=record.commit, sentence=sentence, hint=REPAIR)
        elif record.commit in losses:
            yield Finding(commit=record.commit, sentence="its evidence is lost")
    yield from dropping_problems(repo, run, records, tree_ids)
    by_commit = {record.commit: record for record in records}
    late = unpublished(repo, run, records, chain)
    for link in chain:
        if late is not None and link.event == late.commit:
            yield unpublished_problem(late)
        elif link.event not in by_commit:
            yield _stray_link(repo, run, link, tips)
        elif link.tree != (evidence := by_commit[link.event].evidence):
            names = f"names other evidence, {evidence[:_SHORT]}" if evidence else "names none"
            sentence = f"{refs.short(ref)} keeps the evidence {link.tree[:_SHORT]} of it, and the commit {names}"
            yield Finding(commit=link.event, sentence=sentence)


def _stray_link(repo: Repo, run: str, link: EvidenceLink, tips: Mapping[str, str]) -> Finding:
    """Return why evidence is kept of an event that the run does not have: its own that was lost, or another run's."""
    ref = refs.short(refs.evidence_ref(run))
    if not link.event:
        sentence = f"a commit of {ref} names no event, so it is not evidence"
        return Finding(commit=link.commit, sentence=sentence)
    try:
        stray = history_reader.read_commit(repo, link.event)
    except SkillgitError:
        sentence = f"{ref} keeps evidence of commit {link.event[:_SHORT]}, which is lost"
        return Finding(commit=link.commit, sentence=sentence)
    if stray.event.run != run:
        return Finding(commit=link.commit, sentence=f"{ref} keeps evidence of run {stray.event.run}", hint=REPAIR)
    branch = refs.short(stray.branch)
    sentence = f"it was an event of the run, and {branch} does not lead to it any more"
    if is_absent := stray.branch not in {*tips, *repo.damaged_refs(run)}:
        sentence += f"; git branch {branch} {link.event[:_SHORT]} brings it back"
    is_repairable = is_absent and stray.event.kind is EventKind.REJECTED and refs.run_branch(run) in tips
    return Finding(commit=link.event, sentence=sentence, hint=REPAIR if is_repairable else "")


def unpublished_problem(record: Recorded) -> Finding:
    sentence = f"a process died before {refs.short(record.branch)} led to this event"
    return Finding(commit=record.commit, sentence=sentence, hint=REPAIR)
