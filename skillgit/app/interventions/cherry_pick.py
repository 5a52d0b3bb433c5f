"""The edits of an event put on another line, or taken back on their own: applied, measured, and judged by its gate."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.app.interventions.intervention import Candidate, Decided, judge, open_gating, plan_judge, write
from skillgit.app.interventions.measuring import MeasuringTerms
from skillgit.app.interventions.three_way_merge import Conflict, merge
from skillgit.app.workspace.named_revision import version_of_run
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import changed_hunks
from skillgit.domain.edit import Application, Edit, EditReport, EditSource, EditStatus, Op, apply, title_of
from skillgit.domain.event_keys import intervention_scope
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_policies import NOT_WORSE
from skillgit.domain.proposal import Origin, changed_lines
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.untrusted.json_limits import loads
from skillgit.domain.untrusted.model_text import clean
from skillgit.errors import SkillgitError, UsageError
from skillgit.store.evidence import read_evidence
from skillgit.store.history_reader import read_commit, skill_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.interventions.intervention import Gating
    from skillgit.app.interventions.measuring import GateWatcher
    from skillgit.app.setup.plan import Plan
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.cost import Caps
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow


PATCH = "patch.json"
_KINDS = frozenset(
    {EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SLOW_MERGED, EventKind.REVERTED, EventKind.EDITED}
)
_SHOWN, _WORDS = 3, 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """A text after edits.

    Attributes:
        how: How they got there, or went, in one sentence.
        title: What they achieve: the event's own title, or one made of the edits where not all it changed came along.
    """

    skill: Skill
    reports: tuple[EditReport, ...]
    how: str
    title: str


def apply_again(workspace: Workspace, row: LogRow, head: Skill, onto: str) -> Applied:
    """Return ``head`` with what the event of ``row`` changed."""
    if row.kind not in _KINDS:
        raise UsageError(f"{row.address} changed no rule of the skill", hint="skillgit log shows what did")
    again = apply(head, recorded_edits(workspace, row))
    result = _by_patch(row, again) or _by_merge(workspace, row, head, onto, again.reports)
    if result.skill.digest == head.digest:
        itself = str(row.address) == onto
        hint = (
            f"skillgit show {quote(onto)} shows what it changed"
            if itself
            else f"skillgit diff {row.address} {quote(onto)}"
        )
        raise SkillgitError(f"{onto} already has what {row.address} changed", hint=hint)
    return result


def _by_patch(row: LogRow, again: Application) -> Applied | None:
    """Return the text with the edits of the event's patch; None unless all apply or are there already."""
    fine = {EditStatus.APPLIED, EditStatus.DUPLICATE}
    if not again.reports or any(report.status not in fine for report in again.reports):
        return None
    how = f"The edits of {row.address}{'' if again.complete else ' that were missing'}, applied once more."
    return Applied(
        skill=again.skill,
        reports=again.reports,
        how=how,
        title=row.title if again.complete else title_of(again.applied),
    )


def _by_merge(workspace: Workspace, row: LogRow, head: Skill, onto: str, reports: Sequence[EditReport]) -> Applied:
    """Return ``head`` with the lines that the event changed; ``reports`` say which of its edits do not apply."""
    theirs = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
    before = _before(workspace, row)
    merging = merge(before, head, theirs)
    if merging.conflicts:
        missing = [report for report in reports if report.status not in {EditStatus.APPLIED, EditStatus.DUPLICATE}]
        spots = [_unapplied(report) for report in missing] or [
            _place(conflict, "here", "there") for conflict in merging.conflicts
        ]
        hint = "skillgit merge decides such lines by evaluation"
        raise _conflicting(f"{row.address} does not apply to {onto}", spots, hint=hint)
    skill = merging.settled([])
    if skill is None:
        raise SkillgitError(
            f"{row.address} does not apply to {onto}: it would change a region that is protected there",
            hint=f"skillgit diff {row.address} {quote(onto)}",
        )
    hunks = changed_hunks(head, skill, support=1, source=EditSource.HUMAN)
    reports = tuple(EditReport(edit=hunk, status=EditStatus.APPLIED) for hunk in hunks)
    how = f"The lines that {row.address} changed, merged line by line."
    whole = before is not None and not Counter(changed_lines(before, theirs)) - Counter(changed_lines(head, skill))
    return Applied(skill=skill, reports=reports, how=how, title=row.title if whole else title_of(hunks))


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
    hunks = changed_hunks(head, skill, support=1, source=EditSource.HUMAN)
    return Applied(
        skill=skill,
        reports=tuple(EditReport(edit=hunk, status=EditStatus.APPLIED) for hunk in hunks),
        how=f"The lines that {row.address} changed are as they were before it; later changes stay.{stays}",
        title=f"{row.label}, {row.title}",
    )


def _conflicting(message: str, spots: Sequence[str], *, hint: str) -> SkillgitError:
    more = f" and {len(spots) - _SHOWN} more" if len(spots) > _SHOWN else ""
    return SkillgitError(f"{message}: {'; '.join(spots[:_SHOWN])}{more}", hint=hint)


def _place(conflict: Conflict, here: str, there: str) -> str:
    texts = f"{_quoted(conflict.ours)} {here} and {_quoted(conflict.theirs)} {there}"
    return f"{conflict.file} line {conflict.line} has {texts}"


def _unapplied(report: EditReport) -> str:
    edit = report.edit
    return f"{edit.op.value.replace('_', ' ')} {_quoted((edit.anchor or edit.content,))}: {report.detail}"


def _quoted(lines: tuple[str, ...] | None) -> str:
    text = " ".join(" ".join(lines or ()).split())
    if not text:
        return "nothing"
    return f"'{text if len(text) <= _WORDS else text[: _WORDS - 1] + '…'}'"


def _before(workspace: Workspace, row: LogRow) -> Skill | None:
    """Return the text that the event changed: that of its commit's first parent."""
    parents = read_commit(workspace.repo, row.commit).parents
    return skill_at(workspace.repo, parents[0], workspace.index.skill_path(row.run)) if parents else None


def recorded_edits(workspace: Workspace, row: LogRow) -> tuple[Edit, ...]:
    """Return the applied edits of the event's patch; none if it is not here, damaged, or more than edits."""
    tree = read_commit(workspace.repo, row.commit).evidence
    files = read_evidence(workspace.repo, tree, (PATCH,)) or {}
    try:
        document = loads(files.get(PATCH, b"null"))
    except (ValueError, RecursionError):
        return ()
    if not isinstance(document, dict) or document.keys() & {"rewrite", "suggestions", "appendix", "lines"}:
        return ()
    entries = document.get("edits")
    rows = entries if isinstance(entries, list) else []
    edits = [_edit(entry) for entry in rows if isinstance(entry, dict) and entry.get("status") == EditStatus.APPLIED]
    return tuple(edit for edit in edits if edit is not None) if None not in edits else ()


def _edit(fields: dict[str, object]) -> Edit | None:
    """Return an edit as evidence tells it; None if it is damaged."""
    support = fields.get("support", 1)
    items = fields.get("items", [])
    try:
        return Edit(
            op=Op(str(fields.get("op"))),
            file=str(fields.get("file")),
            anchor=clean(str(fields.get("anchor", ""))),
            content=clean(str(fields.get("content", ""))),
            support=support if isinstance(support, int) else 1,
            source=EditSource(str(fields.get("source"))),
            items=tuple(map(str, items)) if isinstance(items, list) else (),
        )
    except ValueError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class EditsRequest:
    """What the user asks for.

    Attributes:
        run: The run to change; None is the default run, for a revert the one that the version belongs to.
        terms: The caps, and another configuration where one is named.
    """

    revision: str
    run: str | None = None
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


def cherry_pick(context: Context, request: EditsRequest, watcher: GateWatcher) -> Decided | Plan:
    """Put the edits of a version on another run's newest version and let that run's gate decide.

    Returns:
        What the gate decided; for a dry run the plan.

    Raises:
        RevisionNotFoundError: The revision names no event, or there is no such run.
    """
    with open_workspace(context) as workspace:
        row, run = event_in(workspace, request.revision), find_run(workspace, request.run)
        with open_gating(context, workspace, run, request.terms, watcher) as gating:
            application = apply_again(workspace, row, gating.head, gating.name)
            return _judged(gating, row, application, Origin.CHERRY_PICK, request.terms)


def revert(context: Context, request: EditsRequest, watcher: GateWatcher) -> Decided | Plan:
    """Take back the edits of a version, keep what came after it, and let the gate of its run decide.

    Returns:
        What the gate decided; for a dry run the plan.

    Raises:
        RevisionNotFoundError: The revision names nothing, or there is no such run.
    """
    with open_workspace(context) as workspace:
        row = version_of_run(workspace, request.revision, request.run)
        with open_gating(context, workspace, row.run, request.terms, watcher) as gating:
            application = take_back(workspace, row, gating.head, gating.name)
            return _judged(gating, row, application, Origin.REVERT, request.terms)


def _judged(gating: Gating, row: LogRow, application: Applied, origin: Origin, terms: MeasuringTerms) -> Decided | Plan:
    plan = _plan(gating, application.skill, row, origin, terms.caps)
    if terms.dry_run:
        return plan
    gating.measuring.watcher.remark(plan.sentence)
    candidate = Candidate(
        skill=application.skill,
        origin=origin,
        of=str(row.address),
        title=application.title,
        why=application.how,
        reports=application.reports,
        policy=NOT_WORSE if origin is Origin.REVERT else None,
    )
    scope = intervention_scope(gating.measuring.run, origin, gating.number)
    name = f"without {row.address}" if origin is Origin.REVERT else str(row.address)
    return write(gating, candidate, gating.measuring.carry_out(scope, judge(gating, candidate, name)))


def _plan(gating: Gating, skill: Skill, row: LogRow, origin: Origin, caps: Caps) -> Plan:
    measuring = gating.measuring
    planner = measuring.planner()
    plan_judge(gating, planner, skill)
    facts = {"edits": f"of {row.address}", "onto": gating.name, "items": f"{len(measuring.items)} selection"}
    return planner.plan(origin.value, facts, caps=caps)
