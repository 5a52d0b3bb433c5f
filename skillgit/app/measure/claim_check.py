"""``skillgit verify``: who signed a claim, whether history says the same, and whether it can be had again.

The statement is made again from the history that is here, and compared with the signed one value by value. So a value
that was changed contradicts history, under any signature.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

from skillgit.app.measure.claim import (
    NOTE,
    PREDICATE,
    STATEMENT,
    UNKNOWN,
    ScoreRecord,
    StatementTerms,
    Trail,
    canonical,
    leaves,
    recorded_score,
    statement,
    subject,
)
from skillgit.app.measure.envelope import MOST_BYTES, Envelope, SshSignature, check_signature, read_envelope
from skillgit.app.measure.requests import EvalRequest, VerifyRequest
from skillgit.app.measure.verify import Verified, verify
from skillgit.app.recorded.evidence_json import members
from skillgit.app.recorded.recomputed_gates import recompute_gates
from skillgit.app.recorded.replies import recorded_replies
from skillgit.app.recorded.run_record import least_coverage, recorded_items, started
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.recorded_setup import recorded_config
from skillgit.app.setup.skill_tasks import load_for_skill
from skillgit.app.skill_format.folder_contents import read_entries
from skillgit.app.workspace.request import OnTerms
from skillgit.app.workspace.revision import event_in
from skillgit.app.workspace.workspace import BRING, Workspace
from skillgit.domain.address import parse
from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import AddressKind
from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.engine.search import Task
from skillgit.errors import (
    EnvironmentFaultError,
    ExitCode,
    NotFoundError,
    RepositoryNotFoundError,
    SkillgitError,
    UsageError,
)
from skillgit.files import read_plain
from skillgit.index import queries, version_queries
from skillgit.index.rows import LogRow
from skillgit.plugin.environment import Environment, Judge, LongLived, asks_judge, check_machine
from skillgit.plugin.registry import find_environment
from skillgit.store.history_reader import read_run
from skillgit.store.tree import entry_id

WORD = {
    ("predicate", "claimed"): re.compile(r"\d{4}(-\d\d){2}T\d\d(:\d\d){2}Z"),
    ("predicate", "tool", "version"): re.compile(r"\d[\w.+-]{0,40}"),
    ("predicate", "evidence", "public"): re.compile(r"True|False"),
}
"""What history does not hold: it is the signer's word, and is the same for all who verify."""
_OID = re.compile(r"[0-9a-f]{40}")
_SALT = re.compile(r"[0-9a-f]{2,128}")
_AHEAD = timedelta(days=1)  # what two clocks may differ by
_SHOWN = 60
_ROUNDING = 1e-9


@dataclass(slots=True, kw_only=True)
class Recomputation:
    """What came of making a statement again."""

    agreeing: int = 0  # values that are as claimed
    contradictions: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # what could not be made again, and why, one sentence each
    word: list[str] = field(default_factory=list)  # values that only the signer can know
    replies: int = 0  # replies that were scored again, to the same score

    @property
    def whole(self) -> bool:
        return bool(self.agreeing) and not self.missing and not self.contradictions

    @property
    def wording(self) -> str:
        """Return whether it holds, in a word for people."""
        if self.contradictions:
            return "no"
        return "yes" if self.whole else "in part" if self.agreeing else "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedClaim:
    statement: Mapping[str, object]
    signature: SshSignature
    recomputation: Recomputation
    reproduction: Verified | None

    @property
    def exit_code(self) -> ExitCode:
        word = self.reproduction.verdict.word if self.reproduction is not None else "consistent"
        if not self.signature.valid or self.recomputation.contradictions or word in {"lower", "higher"}:
            return ExitCode.NO
        is_known = bool(self.signature.principal) or self.recomputation.whole
        is_checked = bool(self.recomputation.agreeing)
        return ExitCode.OK if is_known and is_checked and word == "consistent" else ExitCode.UNDERPOWERED


def check_claim(workspace: Workspace, request: VerifyRequest, watcher: EvalWatcher) -> CheckedClaim | Plan:
    """Verify a claim as far as what is here allows; a model is asked only for a ``sample``."""
    envelope = _envelope(workspace, request.claim)
    content = _statement(envelope.payload)
    signers = workspace.context.directory / request.signers if request.signers is not None else None
    signature = check_signature(envelope, signers, workspace.context.environ)
    check = Recomputation()
    try:
        _against_history(workspace, content, request, check)
    except RepositoryNotFoundError:
        check.missing.append("there is no repository here: skillgit clone brings the one that the claim is about")
    if request.folder is not None:
        _against_folder(workspace.context.directory / request.folder, content, check)
    reproduction: Verified | Plan | None = None
    if request.sample is not None and signature.valid and not check.contradictions:
        commit, split = _text(content, "version", "commit"), _text(content, "items", "split")
        terms = {name.name: getattr(request, name.name) for name in fields(OnTerms)}
        again = EvalRequest(
            revisions=(commit,), split=split, sample=request.sample, seed=request.seed, note=request.note, **terms
        )
        reproduction = verify(workspace, again, watcher, command="verify")
    if isinstance(reproduction, Plan):
        return reproduction
    return CheckedClaim(statement=content, signature=signature, recomputation=check, reproduction=reproduction)


def _envelope(workspace: Workspace, name: str) -> Envelope:
    path = workspace.context.directory / name
    if path.exists():
        try:
            return read_envelope(read_plain(path, most=MOST_BYTES, follow=True))
        except OSError as error:
            raise UsageError(f"{name} cannot be read: {error.strerror}", hint=f"ls -l {name}") from error
    try:
        row = event_in(workspace, name)
        lines = version_queries.note_lines(workspace.index, row.commit)
    except NotFoundError as error:
        raise NotFoundError(f"{name} is neither a file nor a revision here", hint="skillgit claim REV") from error
    notes = [note for note in map(_parsed, lines) if note.get("kind") == NOTE]
    if not notes:
        raise NotFoundError(f"there is no claim on {name}", hint=f"skillgit claim {name} makes one")
    newest = max(notes, key=lambda note: str(note.get("time")))
    return read_envelope(json.dumps(newest.get("envelope")).encode())


def _parsed(line: str | bytes) -> dict[str, object]:
    try:
        return members(read_document(line))
    except DocumentError:
        return {}


def _statement(payload: bytes) -> dict[str, object]:
    """Return the statement in a payload, which has one reading: that of its canonical form."""
    content = _parsed(payload)
    if (content.get("_type"), content.get("predicateType")) == (STATEMENT, PREDICATE):
        with suppress(ValueError):  # NaN, which JSON does not have
            if canonical(content) == payload:
                return content
    sentence = f"the envelope holds no statement of type {PREDICATE} in canonical JSON"
    raise UsageError(sentence, hint="a newer skillgit may read it")


def _text(content: Mapping[str, object], *names: str) -> str:
    value: object = content.get("predicate")
    for name in names:
        value = members(value).get(name)
    return value if isinstance(value, str) else ""


def _against_history(
    workspace: Workspace, content: dict[str, object], request: VerifyRequest, check: Recomputation
) -> None:
    commit, name = _text(content, "version", "commit"), _text(content, "items", "split")
    if not _OID.fullmatch(commit) or name not in {Split.SELECTION.value, Split.TEST.value}:
        check.contradictions.append("it names no commit, or no split that versions are scored on")
        return
    if not workspace.repo.has_object(commit):
        if counterpart := _under_another_commit(workspace, content):
            check.contradictions.append(f"commit {commit[:12]} is not here, and {counterpart}")
            return
        check.missing.append(f"commit {commit[:12]} is not here: skillgit clone or pull brings its run")
        return
    row, split = queries.row_of_commit(workspace.index, commit), Split.parse(name)
    score = None if row is None else recorded_score(workspace, row, split)
    if row is None or score is None:
        reason = "belongs to no run" if row is None else f"records no score on the {name} split"
        check.contradictions.append(f"commit {commit[:12]} {reason}")
        return
    claim_time, time = _text(content, "claimed"), datetime.max.replace(tzinfo=UTC)
    if WORD["predicate", "claimed"].fullmatch(claim_time):
        with suppress(ValueError):
            time = datetime.fromisoformat(claim_time)
    if not row.time.replace(microsecond=0) <= time <= workspace.context.clock() + _AHEAD:
        bounds = "before the score was recorded" if time < row.time else "later than it is now"
        check.contradictions.append(f"it was claimed {bounds}: {claim_time}")
    if request.salt is not None and not _SALT.fullmatch(request.salt):
        raise UsageError("a salt has hexadecimal digits", hint="skillgit claim --salt printed it")
    items = members(members(content.get("predicate")).get("items"))
    own = _plain(statement(workspace, row, score, StatementTerms(time=time)))
    if items.get("salted") is True and items.get("digest") != own["predicate"]["items"]["digest"]:
        own = _plain(statement(workspace, row, score, StatementTerms(time=time, salt=request.salt)))
        claims, values = leaves(content), leaves(own)
        is_opened = any(claims.get(trail) == values[trail] for trail in _SALTED & values.keys())
        if request.salt is not None and not is_opened:
            sentence = "the salt does not open the digests of this claim"
            raise UsageError(sentence, hint="it is printed by the skillgit claim --salt that made it; or leave it out")
    _compare(content, own, check)
    if fault := score.fault(queries.gauge(workspace.index, row.run)):
        check.contradictions.append(fault)
    if check.contradictions:
        return  # what takes longer could not make it better
    _again_the_gate(workspace, row, check)
    _again_the_scores(workspace, request, (row, score), check)


def _under_another_commit(workspace: Workspace, content: dict[str, object]) -> str:
    """Return how history knows the version or the text of a claim by another commit; empty if it knows neither."""
    index, name = workspace.index, parse(_text(content, "version", "name"))
    runs = queries.run_names(index)
    if name is not None and name.run in runs and name.kind is AddressKind.VERSION:
        row = queries.row_of_version(index, name.run, name.number)
        if row is not None:
            return f"{row.address} is commit {row.commit[:12]}"
    subjects = content.get("subject")
    names = members(subjects[0]) if isinstance(subjects, list) and len(subjects) == 1 else {}
    digest = members(names.get("digest")).get("gitTree")
    for run in runs:
        path = index.skill_path(run)
        for row in queries.log_rows(index, run):
            if str(entry_id(workspace.repo.commit(row.commit), path)) == digest:
                return f"the skill of the claim is that of {row.address}, commit {row.commit[:12]}"
    return ""


_SALTED = frozenset({("predicate", "items", "digest"), ("predicate", "score", "outcomes")})
_HOLE = "\0unknown"
"""What ``UNKNOWN`` becomes in JSON; no value of a statement has a NUL in front."""


def _plain(own: dict[str, object]) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(json.dumps(own, default={UNKNOWN: _HOLE}.__getitem__)))


def _compare(content: object, own: object, check: Recomputation) -> None:
    claims, values = leaves(content), leaves(own)
    holes = {trail for trail, value in values.items() if value == _HOLE}
    items = members(members(members(content).get("predicate")).get("items"))

    def shown(side: Mapping[Trail, object], trail: Trail) -> str:
        return json.dumps(side[trail], ensure_ascii=False)[:_SHOWN] if trail in side else "nothing"

    names = {trail: ".".join(map(str, trail)) for trail in (*claims, *values)}
    for trail, name in sorted(names.items(), key=itemgetter(1)):
        if trail in holes and trail not in WORD:
            lack = "salt" if items.get("salted") is True and trail in _SALTED else "evidence"
            check.missing.append(f"{name}: the {lack} is not here")
        elif not holes.isdisjoint(trail[: length + 1] for length in range(len(trail) - 1)):
            continue  # a part of what is not here
        elif trail in WORD and WORD[trail].fullmatch(str(claims.get(trail))):  # type: ignore[index]
            check.word.append(name)
        elif trail in claims and trail in values and json.dumps(claims[trail]) == json.dumps(values[trail]):
            check.agreeing += 1
        else:
            sides = (shown(side, trail) for side in (claims, values))
            check.contradictions.append("{}: claimed {}, and history says {}".format(name, *sides))


def _against_folder(folder: Path, content: Mapping[str, object], check: Recomputation) -> None:
    entries = read_entries(folder)
    if not entries:
        raise NotFoundError(f"there is no folder {folder}", hint="name the folder of the skill that the claim is about")
    subjects = content.get("subject")
    names = members(subjects[0]) if isinstance(subjects, list) and len(subjects) == 1 else {}
    here = subject(str(names.get("name")), entries)
    if here == names:
        check.agreeing += len(leaves(here))
    else:
        identify = "skillgit install --list PATH says what it is"
        check.contradictions.append(f"{folder.name} is not the folder of the claim: {identify}")


def _again_the_gate(workspace: Workspace, row: LogRow, check: Recomputation) -> None:
    try:
        records = read_run(workspace.repo, row.run)
        for gate in recompute_gates(workspace.repo, records, least_coverage(workspace.repo, records)):
            if gate.commit == row.commit:
                check.contradictions += [f"the gate, asked again: {sentence}" for sentence in gate.differing]
                check.missing += [f"the gate was not asked again, without {gate.lacking}"] if gate.lacking else []
    except SkillgitError as error:
        check.missing.append(f"the gate was not asked again: {error.message}")


def _again_the_scores(
    workspace: Workspace,
    request: VerifyRequest,
    record: tuple[LogRow, ScoreRecord],
    check: Recomputation,
) -> None:
    """Score the recorded replies again, if the scorer here is the run's; what hinders that is said."""
    row, score = record
    if score.evaluation is None:
        check.missing.append(f"replies were not scored again, without the evidence: {BRING}")
        return
    try:
        config = (
            recorded_config(workspace, row.run, request.overrides)
            if request.config is None
            else load_for_skill(
                workspace,
                request.config,
                request.overrides,
                skill=workspace.index.skill_path(row.run),
            )
        )
        plugin = find_environment(config.values.env.name, config.root)
        environment: Environment = plugin.cls(config.options, config.root)
        start = started(workspace, row.run)
        if start is None or Task(environment=environment, items={}, source=plugin.source).digest != start.environment:
            raise EnvironmentFaultError("the scorer here is another than the run's", hint=BRING)
        if asks_judge(environment) or isinstance(environment, LongLived):
            raise EnvironmentFaultError("the scorer needs more than a program", hint=BRING)
        check_machine(environment)
        differing = asyncio.run(_scored_again(workspace, row, score, environment, check))
    except (SkillgitError, ImportError) as error:
        reason = f"{error.message}; {error.hint}" if isinstance(error, SkillgitError) else str(error)
        check.missing.append(f"replies were not scored again: {reason}")
        return
    check.contradictions += differing


async def _scored_again(
    workspace: Workspace, row: LogRow, score: ScoreRecord, environment: Environment, check: Recomputation
) -> list[str]:
    split = score.summary.split
    digests = recorded_items(workspace, row.run, split) or {}
    items = {item.id: item for item in environment.items(split) if digests.get(item.id) == item.digest}
    differing: list[str] = []
    for reply in recorded_replies(workspace.repo, score.tree, score.table):
        item = items.get(reply.item)
        if item is None:
            raise EnvironmentFaultError(f"item {reply.item} is not here as the run had it", hint=BRING)
        if reply.is_redacted:
            raise EnvironmentFaultError(f"the answer to {reply.item} was redacted", hint=BRING)
        again, _ = await environment.score(item, reply.trajectory(environment), cast("Judge", None))
        if abs(again.hard - reply.outcome.hard) > _ROUNDING or abs(again.soft - reply.outcome.soft) > _ROUNDING:
            differing.append(f"item {item.id} scores {again.hard:g}, and {reply.outcome.hard:g} was recorded")
        else:
            check.replies += 1
    return differing
