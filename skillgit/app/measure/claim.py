"""``skillgit claim``: what history says of a version's score, as an in-toto statement that its maker signs.

Everything is taken from the events of the run, which never change, so that anyone with the same history makes the same
statement: that is how a claim is checked (``claim_check``). Paths, names of people and prices are left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

from skillgit import __version__
from skillgit.app.measure.envelope import sign, signing_key
from skillgit.app.measure.requests import ClaimRequest
from skillgit.app.recorded.evaluation_notes import known_evaluations, record
from skillgit.app.recorded.evidence_json import members
from skillgit.app.recorded.run_record import ENVIRONMENT, recorded_items, start_document, started
from skillgit.app.recorded.score_summary import mean_interval, scores
from skillgit.app.setup.comparable_conditions import CONFIG
from skillgit.app.skill_format.atomic_write import refuse_way_out, typed_path
from skillgit.app.skill_format.folder_contents import Entries, EntryKind, FolderEntry, listing_digest, tree_id
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import Workspace, absence_of
from skillgit.domain.evaluation import Evaluation, EvaluationSummary, Gauge, Metric, Scored, Split
from skillgit.domain.event import NOBODY, Models
from skillgit.domain.gate_decision import TOKEN_FIELDS, Objective, Verdict
from skillgit.domain.ids import digest
from skillgit.domain.outcomes import REPEATS, SELECTION, averaged, read_outcomes, read_samples
from skillgit.errors import ConflictError, DataError, NotFoundError, UsageError
from skillgit.files import write_file
from skillgit.index import item_queries, queries, version_queries
from skillgit.index.rows import LogRow
from skillgit.store import tree
from skillgit.store.evidence import read_evidence
from skillgit.store.history_reader import read_commit
from skillgit.store.repo import Repo

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:skillgit:score:1"
NOTE = "claim"
"""The kind of a line in the note of a commit that holds a claim."""
UNKNOWN: Final = object()
"""Placeholder in a statement for what is not here, or for what only the signer can know."""
SAMPLING = (
    *("calls.max_output_tokens", "calls.temperature", "model.reasoning_effort", "model.target_reasoning_effort"),
    *("model.target_seed", "model.target_stop", "model.target_top_p"),
)
"""Keys of the configuration; claims that were made keep theirs, so that another list needs another predicate."""
SALT_BYTES = 16
_ROUNDING = 1e-9
_MACHINE = re.compile(r"~?/[^/\s]+/")
"""How a path on a machine begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementTerms:
    """What a statement says that history does not."""

    time: datetime
    public: object = UNKNOWN  # whether the evidence is published
    salt: str | None = ""  # what the digests of items begin with; None where that is a secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRecord:
    """What the run measured of one text on one split, and what is here of the evidence for it."""

    summary: EvaluationSummary
    tree: str  # the evidence
    table: str  # its file of outcomes
    verdict: Verdict | None  # of the gate, which decided by it
    evaluation: Evaluation | None  # the outcomes, means of repeats included; None if they are not here

    def fault(self, gauge: Gauge) -> str:
        """Return how the outcomes contradict the score that the commit names, as a sentence; empty if they do not."""
        if self.evaluation is None:
            return ""
        total = self.evaluation.summary()
        counts = (total.n, total.scored) == (self.summary.n, self.summary.scored)
        if counts and abs(gauge.score(total) - gauge.score(self.summary)) <= _ROUNDING:
            return ""
        own, sums = (f"{gauge.score(side):.4f} of {side.scored} items" for side in (self.summary, total))
        return f"the recorded outcomes add up to {sums}, and the commit says {own}"


def recorded_score(workspace: Workspace, row: LogRow, split: Split) -> ScoreRecord | None:
    """Return what the run measured of the very text in ``row``; None where that was inherited, noted or no more."""
    event = read_commit(workspace.repo, row.commit).event
    verdict: Verdict | None = event.verdict
    if split is Split.SELECTION:
        summary = event.summary
        evidence, table = item_queries.evidence_of_commit(workspace.index, row.commit), SELECTION
        if not evidence and row.version is not None:  # guidance that was merged was measured when it was proposed
            evidence = version_queries.score_evidence(workspace.index, row.run, row.version)
    else:
        summary, evidence = _final(workspace, row)
        table = f"test-{row.label}.json"
    if summary is None or summary.stopped or summary.split is not split:
        return None
    files = read_evidence(workspace.repo, evidence, (table, REPEATS)) or {}
    outcomes = read_outcomes(files.get(table))
    evaluation = None
    if outcomes is not None:
        evaluation = Evaluation(split=split, item_set=summary.item_set, outcomes=outcomes, seed=summary.seed)
        if verdict is not None and verdict.repeats and REPEATS in files:
            evaluation = _averages(evaluation, files[REPEATS], summary)
    return ScoreRecord(summary=summary, tree=evidence, table=table, verdict=verdict, evaluation=evaluation)


def _averages(evaluation: Evaluation, repeats: bytes, summary: EvaluationSummary) -> Evaluation:
    """Return the means over repeated rollouts if ``summary`` is theirs: in some events it is that of the first ones."""
    try:
        averages = averaged(evaluation, read_samples(repeats, "candidate"))
    except (ValueError, TypeError, KeyError, RecursionError, DataError):
        return evaluation  # what is damaged does not add up
    is_theirs = (averages.summary().hard, averages.summary().soft) == (summary.hard, summary.soft)
    return averages if is_theirs else evaluation


def _final(workspace: Workspace, row: LogRow) -> tuple[EvaluationSummary | None, str]:
    """Return the first score on the test split: that of a later end of the same run would come between two looks."""
    ends = version_queries.finished_commits(workspace.index, row.run) if row.version is not None else ()
    for commit in reversed(ends):
        event = read_commit(workspace.repo, commit).event
        for summary in event.evaluations:
            if summary.version == row.version:
                return summary, item_queries.evidence_of_commit(workspace.index, commit)
    return None, ""


def statement(workspace: Workspace, row: LogRow, score: ScoreRecord, terms: StatementTerms) -> dict[str, object]:
    """Return the statement that history makes of a score; ``UNKNOWN`` for what is not here."""
    repo, index, run = workspace.repo, workspace.index, row.run
    start, plan = started(workspace, run), version_queries.start_evidence(index, run)
    event, path, summary = read_commit(repo, row.commit).event, index.skill_path(run), score.summary
    environment, config = (start_document(repo, plan, name) for name in (ENVIRONMENT, CONFIG))
    plugin = members(environment.get("plugin"))

    def salt_digest(rows: object) -> object:
        return UNKNOWN if terms.salt is None else digest([terms.salt, rows])

    base: object = None
    if row.version != 0 and row.base is not None:
        base_row = queries.row_of_version(index, run, row.base)
        if base_row is not None:
            folder = tree.entry_id(repo.commit(base_row.commit), path)
            base = {"name": str(base_row.address), "commit": base_row.commit, "gitTree": str(folder)}
    code = {
        "name": environment.get("name"),
        "version": plugin.get("version"),
        "code": plugin.get("code"),
        "scorer": environment.get("own"),
        "setup": environment.get("setup"),
    }
    items = recorded_items(workspace, run, summary.split)
    looks = known_evaluations(workspace, row.commit, row)
    # what the configuration says of how the target answered; what else the run was set to has a digest
    keys = (key.partition(".")[::2] for key in SAMPLING)
    sampling = {name: members(config.get(section)).get(name) for section, name in keys} if config else UNKNOWN
    models = start.models if start is not None else NOBODY
    own_models: Models = event.models
    models_asked = models if own_models == NOBODY else own_models
    verdict, gate = score.verdict, None
    if verdict is not None:  # numbers of tokens only where they counted, for older claims do not name them
        counts_tokens = verdict.objective is not Objective.SCORE
        gate = {name: value for name, value in asdict(verdict).items() if counts_tokens or name not in TOKEN_FIELDS}
    # amounts without money, since a price may be agreed on between two parties
    cost = event.known_cost
    amounts = ("calls", "tokens_in", "tokens_out", "cached", "cache_written", "reasoning", "seconds")
    outcomes = score.evaluation.outcomes if score.evaluation is not None else None
    failures: object = UNKNOWN if summary.scored < summary.n else {}
    if outcomes is not None:
        failures = dict(Counter(each.kind.value for each in outcomes.values() if not isinstance(each, Scored)))
    predicate: dict[str, object] = {
        "claimed": written(terms.time),
        "tool": {"name": "skillgit", "version": __version__},
        "version": {"name": str(row.address), "commit": row.commit, "skill": path, "recorded": written(row.time)},
        "base": base,
        "environment": (code if environment else dict.fromkeys(code, UNKNOWN))
        | {"digest": start.environment if start is not None else UNKNOWN},
        "items": {
            "split": summary.split.value,
            "count": summary.n,
            "digest": UNKNOWN if items is None else salt_digest([[*pair] for pair in items.items()]),
            "salted": terms.salt != "",
        },
        "score": _score(score, queries.gauge(index, run), salt_digest),
        "failed": failures,
        "test_looks": sum(
            look.split == Split.TEST.value and (look.time is None or look.time <= terms.time) for look in looks
        ),
        "models": {"target": models_asked.target, "judge": models_asked.judge or models.judge},
        "sampling": sampling,
        "config": start.config if start is not None else UNKNOWN,
        "gate": gate,
        "cost": None if cost is None else {name: getattr(cost, name) for name in amounts},
        "evidence": {
            "gitTree": score.tree,
            "sha256": UNKNOWN if outcomes is None else listing_digest(_entries(repo, score.tree)),
            "public": terms.public,
        },
    }
    names = subject(path.rpartition("/")[2], _entries(repo, row.commit, path))
    return {"_type": STATEMENT, "subject": [names], "predicateType": PREDICATE, "predicate": predicate}


def _score(score: ScoreRecord, gauge: Gauge, salt_digest: Callable[[object], object]) -> dict[str, object]:
    summary, evaluation = score.summary, score.evaluation
    details: dict[str, object] = {"interval": UNKNOWN, "outcomes": UNKNOWN}
    if evaluation is not None:
        values = [gauge.score(outcome) for outcome in evaluation.scored.values()]
        strict = gauge.metric is Metric.HARD
        interval = scores(evaluation.outcomes.values()).hard_interval if strict else mean_interval(values or [0.0])
        rows = [
            [item, outcome.hard, outcome.soft] if isinstance(outcome, Scored) else [item, outcome.kind.value]
            for item, outcome in evaluation.outcomes.items()
        ]
        details = {"interval": interval and [*interval], "outcomes": salt_digest(rows)}
    return {
        "metric": gauge.metric.value,
        "soft_weight": gauge.soft_weight,
        "value": gauge.score(summary),
        "scored": summary.scored,
        "seed": summary.seed,
        "repeats": score.verdict.repeats if score.verdict is not None and summary.split is Split.SELECTION else 0,
        **details,
    }


def canonical(value: object) -> bytes:
    """Return ``value`` as canonical JSON; see :func:`skillgit.domain.ids.digest`."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def written(time: datetime) -> str:
    """Return ``time`` as statements have it."""
    return time.replace(microsecond=0).isoformat().replace("+00:00", "Z")


def subject(name: str, entries: Entries) -> dict[str, object]:
    """Return what a statement calls a skill's folder with these ``entries``."""
    return {"name": name, "digest": {"gitTree": tree_id(entries), "sha256": listing_digest(entries)}}


def _entries(repo: Repo, oid: str, path: str = "") -> Entries:
    return {
        name: FolderEntry(kind=EntryKind.LINK if mode == tree.LINK else EntryKind.FILE, mode=mode & 0o777, content=data)
        for name, mode, data in tree.read_entries(repo, oid, path)
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedClaim:
    name: str  # of the version
    statement: dict[str, object]
    digest: str  # SHA-256 of the statement
    envelope: dict[str, object]
    file: str  # the file that it was written to; empty for none
    noted: bool
    salt: str  # what opens the digests of items; empty if they have none


def claim(context: Context, request: ClaimRequest) -> SignedClaim:
    """Write and sign what the history here says of a score; a NotFoundError where a part of it is not here."""
    with Workspace(context) as workspace:
        row, split = event_in(workspace, request.revision), Split.parse(request.split)
        score = recorded_score(workspace, row, split)
        if score is None:
            lack = f"the run measured no score of {request.revision} on the {split.value} split"
            raise NotFoundError(lack, hint=f"skillgit show {row.run}/{row.label} says what it measured")
        if fault := score.fault(queries.gauge(workspace.index, row.run)):
            raise ConflictError(fault, hint="skillgit fsck")
        salt = context.entropy(SALT_BYTES).hex() if request.with_salt else ""
        terms = StatementTerms(time=context.clock(), public=request.public, salt=salt)
        content = statement(workspace, row, score, terms)
        if UNKNOWN in leaves(content).values():
            absence = absence_of(workspace.repo, row.run)
            hint = absence.remedy("claim it where the run was trained")
            raise NotFoundError(absence.sentence(f"run {row.run}"), hint=hint)
        if paths := [trail for trail, leaf in leaves(content).items() if _MACHINE.match(str(leaf))]:
            problem = f"the history has a path of a machine in {'.'.join(map(str, paths[0]))}"
            raise UsageError(problem, hint="a claim holds none: name plug-ins by relative paths, and train again")
        key = signing_key(workspace.repo, request.key)
        payload = canonical(content)
        envelope = sign(payload, key, context.directory, context.environ)
        is_file = request.output not in {"", "-"}
        file = refuse_way_out(typed_path(context.directory, request.output)) if is_file else None
        if file is not None:
            write_file(file, envelope.text)
        line: dict[str, object] = {"kind": NOTE, "envelope": envelope.document, "time": written(terms.time)}
        has_note = bool(request.note and record(workspace, {row.commit: [line]}, terms.time))
    return SignedClaim(
        name=str(row.address),
        statement=json.loads(payload),
        digest=hashlib.sha256(payload).hexdigest(),
        envelope=envelope.document,
        file="" if file is None else str(file),
        noted=has_note,
        salt=salt,
    )


Trail = tuple[str | int, ...]


def leaves(value: object, trail: Trail = ()) -> dict[Trail, object]:
    """Return where in ``value``, names and numbers from the outside in, which value is; empty ones are values too."""
    pairs: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list | tuple):
        pairs = list(enumerate(value))
    if not pairs:
        return {trail: value}
    return {path: leaf for name, inner in pairs for path, leaf in leaves(inner, (*trail, name)).items()}
