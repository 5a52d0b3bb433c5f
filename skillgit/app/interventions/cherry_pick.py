"""The edits of an event put on another line, or taken back on their own: applied, measured, and judged by its gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from shlex import quote

from skillgit.app.interventions.intervention import Candidate, Decided, Gating, open_gating
from skillgit.app.interventions.requests import CherryPickRequest, RevertRequest
from skillgit.app.interventions.three_way_merge import Conflict, Merge, merge
from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in, find_run, version_of_run
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import human_edits
from skillgit.domain.edit import Edit, EditReport, EditSource, EditStatus, Op, apply, title_of
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.evidence_names import PATCH
from skillgit.domain.gate_policies import NOT_WORSE
from skillgit.domain.proposal import Origin, changed_lines
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.model_text import clean
from skillgit.errors import SkillgitError, UsageError
from skillgit.index.rows import LogRow
from skillgit.index.version_queries import sources
from skillgit.store.history_reader import read_commit, skill_at

_KINDS = frozenset(
    {EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SLOW_MERGED, EventKind.REVERTED, EventKind.EDITED}
)
_THERE = frozenset({EditStatus.APPLIED, EditStatus.DUPLICATE})
_SHOWN, _WORDS = 3, 48


def apply_again(workspace: Workspace, row: LogRow, head: Skill, onto: str) -> Candidate:
    """Return ``head`` with what the event of ``row`` changed: by its edits, or where one does not apply, by its lines.

    Its title is the event's own, or made of the edits where not all that the event changed came along.
    """
    if row.kind not in _KINDS:
        raise UsageError(f"{row.address} changed no rule of the skill", hint="skillgit log shows what did")
    of = str(row.address)
    again = apply(head, recorded_edits(workspace, row))
    if again.reports and all(report.status in _THERE for report in again.reports):
        candidate = Candidate(
            skill=again.skill,
            origin=Origin.CHERRY_PICK,
            of=of,
            title=row.title if again.complete else title_of(again.applied),
            why=f"The edits of {of}{'' if again.complete else ' that were missing'}, applied once more.",
            reports=again.reports,
        )
    else:
        theirs, before = skill_at(workspace.repo, row.commit, _path(workspace, row)), _before(workspace, row)
        merging = merge(before, head, theirs)
        spots = [_unapplied(report) for report in again.reports if report.status not in _THERE]
        skill = _settled(
            merging,
            f"{of} does not apply to {onto}",
            spots or [_place(conflict, "here", "there") for conflict in merging.conflicts],
            hint="skillgit merge decides such lines by evaluation",
        )
        if skill is None:
            raise SkillgitError(
                f"{of} does not apply to {onto}: it would change a region that is protected there",
                hint=f"skillgit diff {of} {quote(onto)}",
            )
        edits = human_edits(head, skill)
        whole = before is not None and not Counter(changed_lines(before, theirs)) - Counter(changed_lines(head, skill))
        candidate = Candidate(
            skill=skill,
            origin=Origin.CHERRY_PICK,
            of=of,
            title=row.title if whole else title_of([report.edit for report in edits]),
            why=f"The lines that {of} changed, merged line by line.",
            reports=edits,
        )
    if candidate.skill.digest == head.digest:
        shows = f"skillgit show {quote(onto)} shows what it changed"
        hint = shows if of == onto else f"skillgit diff {of} {quote(onto)}"
        raise SkillgitError(f"{onto} already has what {of} changed", hint=hint)
    return candidate


def take_back(workspace: Workspace, row: LogRow, head: Skill, onto: str) -> Candidate:
    """Return ``head`` without what the version of ``row`` changed; its frontmatter stays, which belongs to people."""
    of, before = str(row.address), _before(workspace, row) if row.kind in _KINDS else None
    if before is None:
        raise UsageError(
            f"{of} is the first version of its run, and has no edits to take back",
            hint=f"skillgit revert --to {of} makes its text the newest version",
        )
    after = skill_at(workspace.repo, row.commit, _path(workspace, row))
    merging = merge(after, head, before, beside=True)
    whole = f"skillgit revert --to {row.run}/{version_label(row.base)} brings back the whole text from before it"
    spots = [_place(conflict, "now", f"before {version_label(row.version)}") for conflict in merging.conflicts]
    skill = _settled(merging, f"later versions changed what {of} did", spots, hint=whole)
    if skill is None:
        raise SkillgitError(f"{of} cannot be taken back: a protected region would change", hint=whole)
    by_people = frontmatter(before.document) != frontmatter(after.document)
    stays = " Its change of the frontmatter stays, which belongs to people." if by_people else ""
    if skill.digest == head.digest:
        raise SkillgitError(
            f"{onto} has nothing of {of} that could be taken back{'.' if stays else ''}{stays[:-1]}",
            hint=f"skillgit diff {of} {quote(onto)}",
        )
    return Candidate(
        skill=skill,
        origin=Origin.REVERT,
        of=of,
        title=f"{row.label}, {row.title}",
        why=f"The lines that {of} changed are as they were before it; later changes stay.{stays}",
        reports=human_edits(head, skill),
        policy=NOT_WORSE,
    )


def _settled(merging: Merge, message: str, spots: Sequence[str], *, hint: str) -> Skill | None:
    """Return the merged text, None if it would harm a protected region; conflicts, at ``spots``, are an error."""
    if merging.conflicts:
        more = f" and {len(spots) - _SHOWN} more" if len(spots) > _SHOWN else ""
        raise SkillgitError(f"{message}: {'; '.join(spots[:_SHOWN])}{more}", hint=hint)
    return merging.settled([])


def _place(conflict: Conflict, here: str, there: str) -> str:
    ours, theirs = _quoted(conflict.ours), _quoted(conflict.theirs)
    return f"{conflict.file} line {conflict.line} has {ours} {here} and {theirs} {there}"


def _unapplied(report: EditReport) -> str:
    edit = report.edit
    return f"{edit.op.value.replace('_', ' ')} {_quoted((edit.anchor or edit.content,))}: {report.detail}"


def _quoted(lines: tuple[str, ...] | None) -> str:
    text = " ".join(" ".join(lines or ()).split())
    return f"'{text if len(text) <= _WORDS else text[: _WORDS - 1] + '…'}'" if text else "nothing"


def _path(workspace: Workspace, row: LogRow) -> str:
    return workspace.index.skill_path(row.run)


def _before(workspace: Workspace, row: LogRow) -> Skill | None:
    """Return the text that the event of ``row`` was made of; None for a first version."""
    parents = sources(workspace.index, [row.commit]).get(row.commit) or read_commit(workspace.repo, row.commit).parents
    return skill_at(workspace.repo, parents[0], _path(workspace, row)) if parents else None


def recorded_edits(workspace: Workspace, row: LogRow) -> tuple[Edit, ...]:
    """Return the applied edits of the event's patch; none if it is not here, damaged, or more than edits."""
    document = members(evidence_file(workspace.repo, read_commit(workspace.repo, row.commit).evidence, PATCH))
    if document.keys() & {"rewrite", "suggestions", "appendix", "lines"}:
        return ()
    edits = [entry for entry in objects(document.get("edits")) if entry.get("status") == EditStatus.APPLIED]
    try:
        return tuple(map(_edit, edits))
    except ValueError:
        return ()


def _edit(fields: dict[str, object]) -> Edit:
    """Return an edit as evidence tells it; a ValueError if it is damaged."""
    support, items = fields.get("support", 1), fields.get("items", [])
    return Edit(
        op=Op(str(fields.get("op"))),
        file=str(fields.get("file")),
        anchor=clean(str(fields.get("anchor", ""))),
        content=clean(str(fields.get("content", ""))),
        support=support if isinstance(support, int) else 1,
        source=EditSource(str(fields.get("source"))),
        items=tuple(map(str, items)) if isinstance(items, list) else (),
    )


def cherry_pick(context: Context, request: CherryPickRequest, watcher: EvalWatcher) -> Decided | Plan:
    """Put the edits of a version or candidate on the newest version of a run, and let its gate decide."""
    with open_workspace(context) as workspace:
        row, run = event_in(workspace, request.revision or ""), find_run(workspace, request.run)
        with open_gating(context, workspace, run, request, watcher) as gating:
            candidate = apply_again(workspace, row, gating.head, gating.name)
            return _decided(gating, candidate, candidate.of)


def revert(context: Context, request: RevertRequest, watcher: EvalWatcher) -> Decided | Plan:
    """Take back the edits of a version, keep what came after it, and let the gate of its run decide."""
    with open_workspace(context) as workspace:
        row = version_of_run(workspace, request.revision or "", request.run)
        with open_gating(context, workspace, row.run, request, watcher) as gating:
            candidate = take_back(workspace, row, gating.head, gating.name)
            return _decided(gating, candidate, f"without {candidate.of}")


def _decided(gating: Gating, candidate: Candidate, name: str) -> Decided | Plan:
    facts = {"edits": f"of {candidate.of}", "onto": gating.name, "items": gating.items}
    return gating.decide_on(candidate, name, facts)
