"""Whether the evidence of a run is here, complete, readable, and that of the run's own events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from skillgit.domain.evaluation import EvaluationSummary, Split, item_set_digest
from skillgit.domain.event import Accepted, Event, Rejected, RunFinished, RunStarted, Skipped, SlowProposed
from skillgit.domain.event_kinds import TRAITS
from skillgit.domain.evidence_names import COMPARISON, PATCH, ROLLOUT, SCREENING
from skillgit.domain.ids import short_digest
from skillgit.domain.proposal import Origin
from skillgit.domain.untrusted.json_limits import loads
from skillgit.errors import HistoryError, SkillgitError
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
from skillgit.store.integrity import Blob, GitError, IntegrityProblem, Tree, missing_files
from skillgit.store.repair import unpublished
from skillgit.store.repo import Repo
from skillgit.store.seals import is_own
from skillgit.store.tree import content_of

_PLAN = CONFIG, ENVIRONMENT, SPLITS = "config.json", "environment.json", "splits.json"


def lacking_files(repo: Repo, record: Recorded, *, is_training: bool) -> Iterator[str]:
    """Yield which files the evidence of ``record`` lacks; evidence that is not here says nothing.

    A history may be written without any, but not by a trainer: where one ``is_training`` the run, an event without
    evidence is a problem too.
    """
    names = needed_files(record.event)
    if not names:
        return
    if not record.evidence:
        if is_training:
            yield f"the commit names no evidence, and {record.event.kind} always has some"
        return
    present = evidence_names(repo, record.evidence)
    if present is None:
        return
    for name in names:
        if name not in present:
            yield f"the evidence lacks '{name}', which {record.event.kind} always has"


def needed_files(event: Event) -> tuple[str, ...]:
    """Return the files that the evidence of ``event`` always has, except for test scores and placebos."""
    if isinstance(event, RunStarted) and event.fork_of:
        return ()  # A fork takes over what is here of the run that it comes from, which may be nothing.
    files: list[str] = []
    if isinstance(event, RunStarted):
        files += _PLAN
    if isinstance(event, Accepted | Rejected):
        files.append(PATCH)
    if isinstance(event, Accepted | Rejected | Skipped) and event.origin is Origin.STEP:
        files.append(ROLLOUT)
    if isinstance(event, Accepted | Rejected | Skipped) and event.screening is not None:
        files.append(SCREENING)
    if isinstance(event, SlowProposed):
        files.append(COMPARISON)
    if TRAITS[event.kind].has_outcomes and isinstance(getattr(event, "evaluation", None), EvaluationSummary):
        files.append("selection.json")
    if isinstance(event, Accepted | Rejected) and event.verdict.repeats:
        files.append("repeats.json")
    return tuple(files)


def plan_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[tuple[Recorded, str]]:
    """Yield events that contradict the plan's files that are here; a digest, which covers prompts, is not checked."""
    first = records[0]
    if not isinstance(first.event, RunStarted):
        return
    try:
        files = read_evidence(repo, first.evidence, (CONFIG, SPLITS, ENVIRONMENT)) or {}
    except (GitError, KeyError):
        # that a file is missing is told where objects are looked for
        return
    documents: dict[str, Mapping[str, object]] = {}
    for name, content in files.items():
        document = _document(content)
        if document is None or (name == CONFIG and not all(isinstance(section, dict) for section in document.values())):
            yield first, f"{name} in the evidence cannot be read"
        else:
            documents[name] = document
    if ENVIRONMENT in documents:
        for sentence in _environment_problems(first.event, documents[ENVIRONMENT]):
            yield first, sentence
    if SPLITS in documents:
        try:
            sets = {name: item_set_digest(_items(rows)) for name, rows in documents[SPLITS].items()}
        except (TypeError, KeyError):
            yield first, f"{SPLITS} in the evidence cannot be read"
            return
        yield from _split_problems(records, documents[SPLITS], sets)


def _document(content: bytes) -> Mapping[str, object] | None:
    try:
        value = loads(content)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _items(rows: object) -> dict[str, str]:
    if not isinstance(rows, list):
        raise TypeError(rows)
    return {row["id"]: row["digest"] for row in rows}


def _environment_problems(event: RunStarted, document: Mapping[str, object]) -> Iterator[str]:
    digest = document.get("digest")
    if digest != event.environment:
        description = f"the digest {digest}" if isinstance(digest, str) else "no digest"
        yield f"the environment in the evidence has {description}, and the commit says {event.environment}"


def _split_problems(
    records: Sequence[Recorded], splits: Mapping[str, object], sets: Mapping[str, str]
) -> Iterator[tuple[Recorded, str]]:
    first = records[0]
    event, digest = first.event, short_digest(sets)
    if not isinstance(event, RunStarted):
        return
    if digest != event.splits:
        yield first, f"the splits in the evidence have the digest {digest}, and the commit says {event.splits}"
        return
    evaluation = event.evaluation
    selection = sets.get(Split.SELECTION, "")
    if splits.get(Split.SELECTION) and isinstance(evaluation, EvaluationSummary) and evaluation.item_set != selection:
        yield (
            first,
            f"the selection items in the evidence are the set {selection}, and the commit says {evaluation.item_set}",
        )
    for record in records:
        ends = record.event.evaluations if isinstance(record.event, RunFinished) else ()
        for item_set in {summary.item_set for summary in ends if splits.get(Split.TEST)} - {sets.get(Split.TEST)}:
            yield (
                record,
                f"the test items in the evidence are the set {sets[Split.TEST]}, and the commit says {item_set}",
            )


_TABLE = re.compile(r"(?:rollout|selection|test-v\d+)\.json")
_TRAJECTORY = re.compile(r"(?:.+/)?trajectories/[^/]+\.json")


def trajectory_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[IntegrityProblem]:
    """Yield which files in the evidence of ``records``, as far as it is here, cannot be read."""
    readable: dict[str, str] = {}
    for record in records:
        tree = repo.raw.get(record.evidence) if record.evidence else None
        if isinstance(tree, Tree):
            for sentence in _problems(repo, dict(_files(tree)), readable):
                yield IntegrityProblem(commit=record.commit, sentence=sentence)


def _problems(repo: Repo, files: Mapping[str, Blob], readable: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with ``files``; ``readable`` are those that were read, with the item of a trajectory."""
    for path, blob in files.items():
        if not path.endswith(".json") or str(blob.id) in readable:
            continue
        try:
            readable[str(blob.id)] = _item(path, loads(content_of(repo, blob, path)))
        except (ValueError, TypeError, KeyError, RecursionError):
            yield f"{path} in the evidence cannot be read"
        except HistoryError as error:
            yield error.message
    for path in filter(_TABLE.fullmatch, files):
        if str(files[path].id) not in readable:
            continue
        for row in loads(content_of(repo, files[path], path)):
            file = row.get("trajectory")
            if file is None:
                continue
            trajectory = files.get(str(file))
            if trajectory is None:
                yield f"{path} in the evidence names '{file}', which it lacks"
            elif readable.get(str(trajectory.id), row["id"]) != row["id"]:
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


_SHORT = 12


def evidence_problems(
    repo: Repo, run: str, records: Sequence[Recorded], tips: Mapping[str, str], chain: Sequence[EvidenceLink]
) -> Iterator[IntegrityProblem]:
    """Yield problems of the evidence that ``chain`` keeps; a clone may have none, or only what it wrote since."""
    ref = refs.evidence_ref(run)
    tree_ids, drops = {link.tree for link in chain}, dropped_trees(repo, run)
    whole = ref in tips and bool(records) and records[0].evidence in tree_ids
    is_wanted = whole or (bool(records) and is_own(repo, start=records[0].commit))
    losses = {record.commit for record in lost_evidence(repo, run, records)}
    trees: set[str] = set()
    for record in records:
        if not record.evidence or (record.evidence not in tree_ids and record.evidence in drops):
            continue
        here = repo.has_object(record.evidence)
        missing = list(missing_files(repo, record.evidence, trees)) if here else []
        if missing:
            yield IntegrityProblem(commit=record.commit, sentence=f"its evidence lacks {_listed(missing)}")
        elif here and is_wanted and record.evidence not in tree_ids:
            sentence = f"its evidence is not kept by {refs.short(ref)}, so that git gc will drop it"
            yield IntegrityProblem(commit=record.commit, sentence=sentence, repairable=True)
        elif record.commit in losses:
            yield IntegrityProblem(commit=record.commit, sentence="its evidence is lost")
    yield from dropping_problems(repo, run, records, tree_ids)
    yield from _stray_links(repo, run, records, chain, tips)


def _listed(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"'{paths[0]}'{more}"


def _stray_links(
    repo: Repo, run: str, records: Sequence[Recorded], chain: Sequence[EvidenceLink], tips: Mapping[str, str]
) -> Iterator[IntegrityProblem]:
    """Yield evidence of events that the run does not have: its own that were lost, or those of another run."""
    by_commit = {record.commit: record for record in records}
    late = unpublished(repo, run, records, chain)
    for link in chain:
        if late is not None and link.event == late.commit:
            yield unpublished_problem(late)
            continue
        if link.event in by_commit:
            yield from _other_tree(run, by_commit[link.event], link)
            continue
        if not link.event:
            sentence = f"a commit of {refs.short(refs.evidence_ref(run))} names no event, so that it is no evidence"
            yield IntegrityProblem(commit=link.commit, sentence=sentence)
            continue
        try:
            recorded_event = history_reader.read_commit(repo, link.event)
        except SkillgitError:
            sentence = (
                f"{refs.short(refs.evidence_ref(run))} keeps evidence of commit {link.event[:_SHORT]}, which is lost"
            )
            yield IntegrityProblem(commit=link.commit, sentence=sentence)
            continue
        if recorded_event.event.run != run:
            sentence = f"{refs.short(refs.evidence_ref(run))} keeps evidence of run {recorded_event.event.run}"
            yield IntegrityProblem(commit=link.commit, sentence=sentence, repairable=True)
        else:
            branch = refs.short(recorded_event.branch)
            sentence = f"it was an event of the run, and {branch} does not lead to it any more"
            if is_absent := recorded_event.branch not in {*tips, *repo.damaged_refs(run)}:
                sentence += f"; git branch {branch} {link.event[:_SHORT]} brings it back"
            mendable = is_absent and isinstance(recorded_event.event, Rejected) and refs.run_branch(run) in tips
            yield IntegrityProblem(commit=link.event, sentence=sentence, repairable=mendable)


def unpublished_problem(record: Recorded) -> IntegrityProblem:
    sentence = f"a process died before {refs.short(record.branch)} led to this event"
    return IntegrityProblem(commit=record.commit, sentence=sentence, repairable=True)


def _other_tree(run: str, record: Recorded, link: EvidenceLink) -> Iterator[IntegrityProblem]:
    if link.tree == record.evidence:
        return
    description = f"names other evidence, {record.evidence[:_SHORT]}" if record.evidence else "names none"
    ref = refs.short(refs.evidence_ref(run))
    sentence = f"{ref} keeps the evidence {link.tree[:_SHORT]} of it, and the commit {description}"
    yield IntegrityProblem(commit=record.commit, sentence=sentence)
