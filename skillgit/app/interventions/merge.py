"""Merge another line's version into a run; where both changed the same lines, scores decide."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from shlex import quote
from typing import TYPE_CHECKING

from skillgit.app.interventions.intervention import Candidate, Decided, judge, open_gating, plan_ready, ready, write
from skillgit.app.interventions.measuring import MeasuringTerms
from skillgit.app.interventions.three_way_merge import Choice
from skillgit.app.interventions.three_way_merge import merge as merge_texts
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.address import version_label
from skillgit.domain.document_rewrite import changed_hunks
from skillgit.domain.edit import EditReport, EditSource, EditStatus
from skillgit.domain.event_keys import intervention_scope
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Origin
from skillgit.engine.evidence_files import json_file
from skillgit.errors import RevisionNotFoundError, SkillError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.store.diff import common_ancestor
from skillgit.store.history_reader import skill_at

if TYPE_CHECKING:
    from skillgit.app.interventions.intervention import Gating
    from skillgit.app.interventions.measuring import GateWatcher, Measuring
    from skillgit.app.interventions.three_way_merge import Merge
    from skillgit.app.setup.plan import Plan
    from skillgit.app.workspace.context import Context
    from skillgit.app.workspace.workspace import Workspace
    from skillgit.domain.cost import Caps
    from skillgit.domain.skill import Skill
    from skillgit.engine.gating import Judgement
    from skillgit.index.rows import LogRow


MOST_CONFLICTS = 12
"""Conflicts that are settled by evaluation; further ones keep our text, so that the price of a merge is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredChoice:
    """One choice that was measured.

    Attributes:
        score: What the whole text scored with it, under the metric of the gate.
    """

    choice: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One stretch of lines that both sides changed.

    Attributes:
        file: Path inside the skill folder.
        line: Where it begins on our side, from 1.
        tried: What was measured, in this order; the first is what stood there before.
        chosen: What is there in the end; empty while that is open.
    """

    file: str
    line: int
    ours: str
    theirs: str
    choices: tuple[str, ...]
    tried: tuple[MeasuredChoice, ...] = ()
    chosen: str = ""


def evaluations(merge: Merge) -> int:
    """Return how many texts have to be measured at most: base, first text, and each other choice once."""
    open_ = merge.conflicts[:MOST_CONFLICTS]
    return 2 + sum(len(conflict.choices) - 1 for conflict in open_)


def stretches(merge: Merge) -> tuple[Stretch, ...]:
    """Return the conflicts of ``merge`` before anything is measured."""
    return tuple(
        Stretch(
            file=conflict.file,
            line=conflict.line,
            ours="".join(conflict.ours or ()),
            theirs="".join(conflict.theirs or ()),
            choices=tuple(choice.value for choice in conflict.choices),
        )
        for conflict in merge.conflicts
    )


async def settle(measuring: Measuring, merge: Merge, ours: str) -> tuple[Skill, tuple[Stretch, ...]]:
    """Return the text that scores best, conflict by conflict in their order, and what was tried on the way.

    It is greedy: a choice that is made stays while later conflicts are settled. Of equal scores the first wins: ours,
    then theirs, both, neither.

    Args:
        measuring: The door to the run's models.
    """
    conflicts = merge.conflicts
    choices = [Choice.OURS] * len(conflicts)
    best = merge.settled(choices)
    if best is None:
        raise SkillgitError(
            "the merge would harm a protected region of the skill",
            hint=f"edit {ours} by hand, or cherry-pick single steps",
        )
    if not conflicts:
        return best, ()
    score = measuring.value(await measuring.measure("all ours", best))
    stretch_list = list(stretches(merge))
    for index, conflict in enumerate(conflicts[:MOST_CONFLICTS]):
        attempts = [MeasuredChoice(choice=choices[index].value, score=score)]
        for choice in conflict.choices[1:]:
            skill = merge.settled([*choices[:index], choice, *choices[index + 1 :]])
            if skill is None:
                continue
            value = measuring.value(await measuring.measure(f"{choice.value} at {index + 1}", skill))
            attempts.append(MeasuredChoice(choice=choice.value, score=value))
            if value > score:
                best, score, choices[index] = skill, value, choice
        stretch_list[index] = replace(stretch_list[index], tried=tuple(attempts), chosen=choices[index].value)
    return best, tuple(
        stretch if stretch.chosen else replace(stretch, chosen=Choice.OURS.value) for stretch in stretch_list
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    """What the user asks for.

    Attributes:
        other: Another run, whose best version is meant, or one of its versions.
        terms: The caps, and another configuration where one is named.
    """

    into: str
    other: str
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A merge.

    Attributes:
        ancestor: The text that both come from, in words.
    """

    ours: str
    theirs: str
    ancestor: str
    stretches: tuple[Stretch, ...]
    decided: Decided


def merge(context: Context, request: MergeRequest, watcher: GateWatcher) -> Merged | Plan:
    """Merge a version of another run into a run, settle conflicts by evaluation, and let the run's gate decide.

    Returns:
        The merge; for a dry run the plan, with the stretches that both lines changed among its facts.

    Raises:
        RevisionNotFoundError: There is no such run or version.
    """
    with open_workspace(context) as workspace:
        into, row = find_run(workspace, request.into), _other(workspace, request.other)
        if row.run == into:
            raise UsageError(f"{row.address} is a version of run {into}", hint="skillgit cherry-pick takes its edits")
        with open_gating(context, workspace, into, request.terms, watcher) as gating:
            base, ancestor = _base(workspace, gating, row)
            theirs = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
            work = merge_texts(base, gating.head, theirs)
            sides = _Sides(
                ours=f"{into}/{version_label(gating.state.version)}", theirs=str(row.address), ancestor=ancestor
            )
            plan = _plan(gating, sides, work, request.terms.caps)
            if request.terms.dry_run:
                return plan
            watcher.remark(plan.sentence)
            scope = intervention_scope(into, Origin.MERGE, gating.number)
            candidate, judgement, stretch_list = gating.measuring.carry_out(scope, _judged(gating, sides, work, row))
            decision = write(gating, candidate, judgement, notes=_notes(stretch_list, sides))
            return Merged(
                ours=sides.ours, theirs=sides.theirs, ancestor=ancestor, stretches=stretch_list, decided=decision
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sides:
    """What the three texts of a merge are called."""

    ours: str
    theirs: str
    ancestor: str


def _plan(gating: Gating, sides: _Sides, work: Merge, caps: Caps) -> Plan:
    """Return what a merge may ask: a text for every choice at every conflict, and the gate."""
    planner, items, conflicts = gating.measuring.planner(), gating.measuring.items, stretches(work)
    plan_ready(gating, planner)
    planner.roll_out("base", [(gating.head, items, 0)])
    planner.may_roll_out("choices", gating.head, items, evaluations(work) - 1)
    planner.may_roll_out("repeats", gating.head, items, 2 * gating.measuring.session.settings.gate.repeats)
    facts = {
        "merge": f"{sides.theirs} into {sides.ours}",
        "against": sides.ancestor,
        "items": f"{len(items)} selection",
    }
    for number, conflict in enumerate(conflicts, 1):
        texts = (
            f"{side}: {' / '.join(text.split())}"
            for side, text in (("ours", conflict.ours), ("theirs", conflict.theirs))
        )
        choices = ", ".join(conflict.choices)
        facts[f"conflict {number}"] = "\n".join((f"{conflict.file} line {conflict.line}, one of {choices}", *texts))
    return planner.plan("merge", facts, caps=caps, notes=_notes(conflicts, sides))


async def _judged(
    gating: Gating, sides: _Sides, work: Merge, row: LogRow
) -> tuple[Candidate, Judgement, tuple[Stretch, ...]]:
    await ready(gating)
    gating.measuring.expect(evaluations(work))
    skill, stretch_list = await settle(gating.measuring, work, sides.ours)
    if skill.digest == gating.head.digest:
        better = "nothing in it scores better" if stretch_list else f"{sides.ours} has all of it already"
        raise SkillgitError(
            f"{sides.theirs} brings nothing to {sides.ours}: {better}",
            hint=f"skillgit diff {quote(sides.ours)} {quote(sides.theirs)}",
        )
    hunks = changed_hunks(gating.head, skill, support=1, source=EditSource.HUMAN)
    candidate = Candidate(
        skill=skill,
        origin=Origin.MERGE,
        of=sides.theirs,
        title=f"merge {sides.theirs}",
        why=_why(sides, stretch_list),
        reports=tuple(EditReport(edit=hunk, status=EditStatus.APPLIED) for hunk in hunks),
        merged=row.commit,
        evidence={"merge.json": json_file([_row(stretch) for stretch in stretch_list])},
    )
    return candidate, await judge(gating, candidate, "merged"), stretch_list


def _row(stretch: Stretch) -> dict[str, object]:
    return {
        "file": stretch.file,
        "line": stretch.line,
        "ours": stretch.ours,
        "theirs": stretch.theirs,
        "chosen": stretch.chosen,
        "tried": [{"choice": attempt.choice, "score": attempt.score} for attempt in stretch.tried],
    }


def _why(sides: _Sides, stretch_list: tuple[Stretch, ...]) -> str:
    sentences = [f"Merged against {sides.ancestor}."]
    for stretch in stretch_list:
        scores = ", ".join(f"{attempt.choice} {attempt.score:.4f}" for attempt in stretch.tried)
        sentences.append(f"{stretch.file} line {stretch.line}: {stretch.chosen}{f' ({scores})' if scores else ''}")
    return "\n\n".join(sentences)


def _notes(stretch_list: tuple[Stretch, ...], sides: _Sides) -> tuple[str, ...]:
    surplus = len(stretch_list) - MOST_CONFLICTS
    if surplus <= 0:
        return ()
    return (f"{surplus} conflicts beyond the first {MOST_CONFLICTS} keep the text of {sides.ours}",)


def _other(workspace: Workspace, text: str) -> LogRow:
    """Return the best version of the run called ``text``, or the version that it names."""
    if text in queries.run_names(workspace.index):
        row = queries.best_row(workspace.index, text)
        if row is not None:
            return row
    row = event_in(workspace, text)
    if row.version is None and row.kind != EventKind.REJECTED:
        raise RevisionNotFoundError(f"'{text}' is no version of a run", hint="name a run, or a version as RUN/v7")
    return row


def _base(workspace: Workspace, gating: Gating, other_row: LogRow) -> tuple[Skill | None, str]:
    """Return the text that both lines come from, and what it is: a commit of both, a seed of both, or nothing."""
    repo, path = workspace.repo, gating.measuring.session.skill_path
    ancestor = common_ancestor(repo, gating.commit, other_row.commit)
    if ancestor is not None and workspace.index.skill_path(other_row.run) == path:
        skill = _skill(workspace, ancestor, path)
        if skill is not None:
            row = queries.row_of_commit(workspace.index, ancestor)
            return skill, f"their common ancestor {row.address if row is not None else ancestor[:7]}"
    seeds = [_seed(workspace, run) for run in (gating.measuring.run, other_row.run)]
    if seeds[0] is not None and seeds[1] is not None and seeds[0].files == seeds[1].files:
        return seeds[0], "the seed that both runs began with"
    return None, "nothing, for the runs have no text in common that both come from"


def _seed(workspace: Workspace, run: str) -> Skill | None:
    row = queries.row_of_version(workspace.index, run, 0)
    return None if row is None else _skill(workspace, row.commit, workspace.index.skill_path(run))


def _skill(workspace: Workspace, commit: str, path: str) -> Skill | None:
    try:
        return skill_at(workspace.repo, commit, path)
    except (RevisionNotFoundError, SkillError):
        return None
