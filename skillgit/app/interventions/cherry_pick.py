"""The edits of an event put on another line, or taken back on their own: applied, measured, and judged by its gate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from shlex import quote

from skillgit.app.interventions.intervention import Candidate, Decided, Gating, open_gating
from skillgit.app.interventions.three_way_merge import Conflict, merge
from skillgit.app.recorded.evidence_json import evidence_file, members, objects
from skillgit.app.setup.model_session import EvalWatcher, MeasuringTerms
from skillgit.app.setup.plan import Plan
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in, find_run, version_of_run
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import human_edits
from skillgit.domain.edit import Application, Edit, EditReport, EditSource, EditStatus, Op, apply, title_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    skill: Skill
    reports: tuple[EditReport, ...]
    how: str  # how they got there, or went, in one sentence
    title: str  # what they achieve: the event's own title, or one made of the edits where not all it changed came along


def apply_again(workspace: Workspace, row: LogRow, head: Skill, onto: str) -> Applied:
    """Return ``head`` with what the event of ``row`` changed."""
    if row.kind not in _KINDS:
        raise UsageError(f"{row.address} changed no rule of the skill", hint="skillgit log shows what did")
    again = apply(head, recorded_edits(workspace, row))
    result = _by_patch(row, again) or _by_merge(workspace, row, head, onto, again.reports)
    if result.skill.digest == head.digest:
        shows = f"skillgit show {quote(onto)} shows what it changed"
        hint = shows if str(row.address) == onto else f"skillgit diff {row.address} {quote(onto)}"
        raise SkillgitError(f"{onto} already has what {row.address} changed", hint=hint)
    return result


def _by_patch(row: LogRow, again: Application) -> Applied | None:
    """Return the text with the edits of the event's patch; None unless all apply or are there already."""
    if not again.reports or any(report.status not in _THERE for report in again.reports):
        return None
    how = f"The edits of {row.address}{'' if again.complete else ' that were missing'}, applied once more."
    title = row.title if again.complete else title_of(again.applied)
    return Applied(skill=again.skill, reports=again.reports, how=how, title=title)


def _by_merge(workspace: Workspace, row: LogRow, head: Skill, onto: str, reports: Sequence[EditReport]) -> Applied:
    """Return ``head`` with the lines that the event changed; ``reports`` say which of its edits do not apply."""
    theirs = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
    before = _before(workspace, row)
    merging = merge(before, head, theirs)
    if merging.conflicts:
        spots = [_unapplied(report) for report in reports if report.status not in _THERE]
        spots = spots or [_place(conflict, "here", "there") for conflict in merging.conflicts]
        hint = "skillgit merge decides such lines by evaluation"
        raise _conflicting(f"{row.address} does not apply to {onto}", spots, hint=hint)
    skill = merging.settled([])
    if skill is None:
        raise SkillgitError(
            f"{row.address} does not apply to {onto}: it would change a region that is protected there",
            hint=f"skillgit diff {row.address} {quote(onto)}",
        )
    edits = human_edits(head, skill)
    how = f"The lines that {row.address} changed, merged line by line."
    whole = before is not None and not Counter(changed_lines(before, theirs)) - Counter(changed_lines(head, skill))
    title = row.title if whole else title_of([report.edit for report in edits])
    return Applied(skill=skill, reports=edits, how=how, title=title)


def take_back(workspace: Workspace, row: LogRow, head: Skill, onto: str) -> Applied:
    """Return ``head`` without what the version of ``row`` changed; its frontmatter stays, which belongs to people."""
    before = _before(workspace, row) if row.kind in _KINDS else None
    if before is None:
        raise UsageError(
            f"{row.address} is the first version of its run, and has no edits to take back",
            hint=f"skillgit restore {row.address} makes its text the newest version",
        )
    after = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
    merging = merge(after, head, before, beside=True)
    whole = f"skillgit restore {row.run}/{version_label(row.base)} brings back the whole text from before it"
    if merging.conflicts:
        spots = [_place(conflict, "now", f"before {version_label(row.version)}") for conflict in merging.conflicts]
        raise _conflicting(f"later versions changed what {row.address} did", spots, hint=whole)
    skill = merging.settled([])
    if skill is None:
        raise SkillgitError(f"{row.address} cannot be taken back: a protected region would change", hint=whole)
    by_people = frontmatter(before.document) != frontmatter(after.document)
    stays = " Its change of the frontmatter stays, which belongs to people." if by_people else ""
    if skill.digest == head.digest:
        raise SkillgitError(
            f"{onto} has nothing of {row.address} that could be taken back{'.' if stays else ''}{stays[:-1]}",
            hint=f"skillgit diff {row.address} {quote(onto)}",
        )
    return Applied(
        skill=skill,
        reports=human_edits(head, skill),
        how=f"The lines that {row.address} changed are as they were before it; later changes stay.{stays}",
        title=f"{row.label}, {row.title}",
    )


def _conflicting(message: str, spots: Sequence[str], *, hint: str) -> SkillgitError:
    more = f" and {len(spots) - _SHOWN} more" if len(spots) > _SHOWN else ""
    return SkillgitError(f"{message}: {'; '.join(spots[:_SHOWN])}{more}", hint=hint)


def _place(conflict: Conflict, here: str, there: str) -> str:
    ours, theirs = _quoted(conflict.ours), _quoted(conflict.theirs)
    return f"{conflict.file} line {conflict.line} has {ours} {here} and {theirs} {there}"


def _unapplied(report: EditReport) -> str:
    edit = report.edit
    return f"{edit.op.value.replace('_', ' ')} {_quoted((edit.anchor or edit.content,))}: {report.detail}"


def _quoted(lines: tuple[str, ...] | None) -> str:
    text = " ".join(" ".join(lines or ()).split())
    return f"'{text if len(text) <= _WORDS else text[: _WORDS - 1] + '…'}'" if text else "nothing"


def _before(workspace: Workspace, row: LogRow) -> Skill | None:
    """Return the text that the event of ``row`` was made of; None for a first version."""
    parents = sources(workspace.index, [row.commit]).get(row.commit) or read_commit(workspace.repo, row.commit).parents
    return skill_at(workspace.repo, parents[0], workspace.index.skill_path(row.run)) if parents else None


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


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsRequest:
    revision: str
    run: str | None = None  # the run to change; None is the default run, for a revert that of the version
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


def cherry_pick(context: Context, request: EditsRequest, watcher: EvalWatcher) -> Decided | Plan:
    """Put the edits of a version on another run's newest version and let that run's gate decide."""
    with open_workspace(context) as workspace:
        row, run = event_in(workspace, request.revision), find_run(workspace, request.run)
        with open_gating(context, workspace, run, request.terms, watcher) as gating:
            application = apply_again(workspace, row, gating.head, gating.name)
            return _decided(gating, row, application, Origin.CHERRY_PICK, str(row.address))


def revert(context: Context, request: EditsRequest, watcher: EvalWatcher) -> Decided | Plan:
    """Take back the edits of a version, keep what came after it, and let the gate of its run decide."""
    with open_workspace(context) as workspace:
        row = version_of_run(workspace, request.revision, request.run)
        with open_gating(context, workspace, row.run, request.terms, watcher) as gating:
            application = take_back(workspace, row, gating.head, gating.name)
            return _decided(gating, row, application, Origin.REVERT, f"without {row.address}")


def _decided(gating: Gating, row: LogRow, application: Applied, origin: Origin, name: str) -> Decided | Plan:
    planner = gating.measuring.planner()
    gating.plan_judge(planner, application.skill)
    items = f"{len(gating.measuring.items)} selection"
    facts = {"edits": f"of {row.address}", "onto": gating.name, "items": items}
    plan = planner.plan(origin.value, facts, caps=gating.measuring.terms.caps)

    async def candidate() -> Candidate:
        return Candidate(
            skill=application.skill,
            origin=origin,
            of=str(row.address),
            title=application.title,
            why=application.how,
            reports=application.reports,
            policy=NOT_WORSE if origin is Origin.REVERT else None,
        )

    return gating.decide(plan, origin, candidate, name)
