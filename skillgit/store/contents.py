"""Whether a commit holds what its event says: its tree, its evidence, the numbers of its gate."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from skillgit.domain.edit import Edit, EditStatus, Op, Source, apply
from skillgit.domain.evaluation import EvaluationSummary, mean
from skillgit.domain.event import (
    Accepted,
    EditRecord,
    Rejected,
    Reverted,
    RunFinished,
    RunStarted,
    Skipped,
    SlowMerged,
    SlowProposed,
)
from skillgit.domain.gate import sign_test
from skillgit.domain.skill import DOCUMENT, slow_guidance, with_slow_guidance
from skillgit.errors import SkillgitError
from skillgit.store import reader
from skillgit.store.evidence import read_evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillgit.domain.gate import Verdict
    from skillgit.domain.state import RunState
    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

MERGE = 2
"""How many parents a merge of the slow line has: the run's tip and the slow tip."""


def score_problems(state: RunState, record: Recorded) -> Iterator[str]:
    """Yield what is wrong with the numbers of a gated event that follows ``state``."""
    event = record.event
    if not isinstance(event, Accepted | Rejected | SlowProposed | SlowMerged):
        return
    if event.verdict is None or event.evaluation is None or event.base > state.version:
        return
    verdict = event.verdict
    rule = verdict.metric, verdict.soft_weight
    for name, told, found in (
        ("score", verdict.score, event.evaluation.score(*rule)),
        ("current", verdict.current, state.evaluation(event.base).score(*rule)),
        ("best", verdict.best, state.evaluation(state.best).score(*rule)),
    ):
        if told != found:
            yield f"the gate compared {name}={told!r}, and the evaluation says {found!r}"
    yield from _flip_problems(event, verdict)


def _flip_problems(event: Accepted | Rejected | SlowProposed | SlowMerged, verdict: Verdict) -> Iterator[str]:
    if verdict.p != sign_test(verdict.fixed, verdict.broken):
        yield f"the gate says p={verdict.p!r}, which does not follow from fixed={verdict.fixed} broken={verdict.broken}"
    if not isinstance(event, SlowMerged) and (len(event.fixed), len(event.broken)) != (verdict.fixed, verdict.broken):
        yield "the gate counts other items as fixed or broken than the message lists"


def tree_problems(repo: Repo, record: Recorded, versions: Mapping[int, str]) -> Iterator[str]:
    """Yield what is wrong with the tree of ``record``'s commit; ``versions`` are the commits of the run's versions."""
    event = record.event
    try:
        yield from _foreign_changes(repo, record)
        skill = reader.skill_at(repo, record.commit, event.skill)
        if isinstance(event, Reverted) and event.target in versions:
            wanted = reader.skill_at(repo, versions[event.target], event.skill)
            if wanted.digest != skill.digest:
                yield f"the skill is not that of v{event.target}, which it reverts to"
        if isinstance(event, SlowMerged) and len(record.parents) == MERGE:
            base = reader.skill_at(repo, record.parents[0], event.skill)
            guidance = slow_guidance(reader.skill_at(repo, record.parents[1], event.skill).document)
            if base.with_text(DOCUMENT, with_slow_guidance(base.document, guidance)).digest != skill.digest:
                yield "the skill is not that of its first parent with the guidance of the second"
    except SkillgitError as error:
        yield f"the skill cannot be read: {error.message}"


def _foreign_changes(repo: Repo, record: Recorded) -> Iterator[str]:
    """Yield changes of files that are none of the event's business."""
    if isinstance(record.event, RunStarted) or not record.parents:
        return
    parent = repo.commit(record.parents[0])
    if str(parent.tree_id) == record.tree:
        return
    if isinstance(record.event, Skipped | RunFinished):
        yield "the commit changes files, though its event changes nothing"
        return
    allowed = {reader.MEMORY} if isinstance(record.event, SlowProposed) else set()
    changes = repo.commit(record.commit).tree.diff_to_tree(parent.tree)
    for delta in changes.deltas:
        path = delta.new_file.path
        if path not in allowed and not path.startswith(f"{record.event.skill}/"):
            yield f"the commit changes '{path}', which is not part of {record.event.skill}"


def evidence_problems(repo: Repo, record: Recorded, versions: Mapping[int, str]) -> Iterator[str]:
    """Yield what the evidence of ``record``, as far as it is here, contradicts."""
    event = record.event
    files = read_evidence(repo, record.evidence) if record.evidence else None
    if files is None:
        return
    told = event.evaluation if isinstance(event, RunStarted | Accepted | Rejected | SlowProposed) else None
    if isinstance(told, EvaluationSummary) and "selection.json" in files:
        yield from _selection_problems(files["selection.json"], told)
    if isinstance(event, Accepted | Rejected) and "patch.json" in files and event.base in versions:
        yield from _patch_problems(repo, record.commit, event, files["patch.json"], versions[event.base])


def _selection_problems(content: bytes, told: EvaluationSummary) -> Iterator[str]:
    try:
        rows = json.loads(content)
        scored = [(float(row["hard"]), float(row["soft"])) for row in rows if "failed" not in row]
    except (ValueError, TypeError, KeyError):
        yield "selection.json in the evidence cannot be read"
        return
    found = len(rows), len(scored), mean([hard for hard, _ in scored]), mean([soft for _, soft in scored])
    if found != (told.n, told.scored, told.hard, told.soft):
        yield (
            f"the evaluation says n={told.n} scored={told.scored} hard={told.hard!r} soft={told.soft!r},"
            f" and its items say n={found[0]} scored={found[1]} hard={found[2]!r} soft={found[3]!r}"
        )


def _patch_problems(
    repo: Repo, commit: str, event: Accepted | Rejected, content: bytes, base_commit: str
) -> Iterator[str]:
    try:
        edits = [_edit(row) for row in json.loads(content)["edits"] if row["status"] == EditStatus.APPLIED]
    except (ValueError, TypeError, KeyError):
        yield "patch.json in the evidence cannot be read"
        return
    if tuple(EditRecord.of(edit) for edit in edits) != event.edits:
        yield "the edits in the evidence are not those of the commit"
    try:
        base = reader.skill_at(repo, base_commit, event.skill)
        skill = reader.skill_at(repo, commit, event.skill)
    except SkillgitError:
        # tree_problems has said so
        return
    if apply(base, edits).skill.digest != skill.digest:
        yield f"the patch in the evidence, applied to v{event.base}, does not give the committed skill"


def _edit(row: Mapping[str, object]) -> Edit:
    return Edit(
        op=Op(str(row["op"])),
        file=str(row["file"]),
        anchor=str(row.get("anchor", "")),
        content=str(row.get("content", "")),
        support=int(str(row.get("support", 1))),
        source=Source(str(row.get("source", Source.FAILURE))),
    )
