"""Merge another line's version into a run; where both changed the same lines, scores decide."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from shlex import quote

from skillgit.app.interventions.intervention import Candidate, Decided, Gating, open_gating
from skillgit.app.interventions.three_way_merge import Choice, Merge
from skillgit.app.interventions.three_way_merge import merge as merge_texts
from skillgit.app.setup.measurement import Measurement
from skillgit.app.setup.model_session import EvalWatcher, MeasuringTerms
from skillgit.app.setup.plan import Plan
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.document_rewrite import human_edits
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import Origin
from skillgit.domain.skill import Skill
from skillgit.engine.evidence_files import json_file
from skillgit.errors import RevisionNotFoundError, SkillError, SkillgitError, UsageError
from skillgit.index import queries
from skillgit.index.rows import LogRow
from skillgit.store.diff import common_ancestor
from skillgit.store.history_reader import skill_at

MOST_CONFLICTS = 12
"""Conflicts that are settled by evaluation; further ones keep our text, so that the price of a merge is bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredChoice:
    choice: str
    score: float  # what the whole text scored with it, under the metric of the gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One stretch of lines that both sides changed."""

    file: str  # inside the skill folder
    line: int  # where it begins on our side, from 1
    ours: str
    theirs: str
    choices: tuple[str, ...]
    tried: tuple[MeasuredChoice, ...] = ()  # what was measured, in this order; the first is what stood there before
    chosen: str = ""  # what is there in the end; empty while that is open


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


async def settle(measuring: Measurement, merge: Merge, ours: str) -> tuple[Skill, tuple[Stretch, ...]]:
    """Return the best text and what was tried, greedily by conflict; of equals ours, theirs, both, neither."""
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
    score = await measuring.score("all ours", best)
    stretch_list = list(stretches(merge))
    for index, conflict in enumerate(conflicts[:MOST_CONFLICTS]):
        attempts = [MeasuredChoice(choice=choices[index].value, score=score)]
        for choice in conflict.choices[1:]:
            skill = merge.settled([*choices[:index], choice, *choices[index + 1 :]])
            if skill is None:
                continue
            value = await measuring.score(f"{choice.value} at {index + 1}", skill)
            attempts.append(MeasuredChoice(choice=choice.value, score=value))
            if value > score:
                best, score, choices[index] = skill, value, choice
        stretch_list[index] = replace(stretch_list[index], tried=tuple(attempts), chosen=choices[index].value)
    return best, tuple(
        stretch if stretch.chosen else replace(stretch, chosen=Choice.OURS.value) for stretch in stretch_list
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRequest:
    into: str
    source: str  # another run, whose best version is meant, or one of its versions
    terms: MeasuringTerms = field(default_factory=MeasuringTerms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    ours: str
    theirs: str
    ancestor: str  # the text that both come from, in words
    stretches: tuple[Stretch, ...]
    decided: Decided


def merge(context: Context, request: MergeRequest, watcher: EvalWatcher) -> Merged | Plan:
    """Merge another run's version, settle conflicts by evaluation, and gate it; a plan lists the conflicts."""
    with open_workspace(context) as workspace:
        into, row = find_run(workspace, request.into), _other(workspace, request.source)
        if row.run == into:
            raise UsageError(f"{row.address} is a version of run {into}", hint="skillgit cherry-pick takes its edits")
        with open_gating(context, workspace, into, request.terms, watcher) as gating:
            base, ancestor = _base(workspace, gating, row)
            theirs = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
            work = _Merging(gating, row, ancestor, merge_texts(base, gating.head, theirs))
            result = gating.decide(work.plan(), Origin.MERGE, work.candidate, "merged", notes=work.notes)
            if isinstance(result, Plan):
                return result
            return Merged(
                ours=work.ours, theirs=work.theirs, ancestor=ancestor, stretches=work.stretches, decided=result
            )


class _Merging:
    """The work on one merge: the stretches of it before, and once the candidate is made, after choosing."""

    def __init__(self, gating: Gating, row: LogRow, ancestor: str, texts: Merge) -> None:
        self._gating = gating
        self._row = row
        self._ancestor = ancestor
        self._texts = texts
        self.ours, self.theirs = gating.name, str(row.address)
        self.stretches = stretches(texts)
        surplus = len(self.stretches) - MOST_CONFLICTS
        note = f"{surplus} conflicts beyond the first {MOST_CONFLICTS} keep the text of {self.ours}"
        self.notes = (note,) if surplus > 0 else ()

    def plan(self) -> Plan:
        """Return what a merge may ask: a text for every choice at every conflict, and the gate."""
        measuring, head = self._gating.measuring, self._gating.head
        planner, items = measuring.planner(), measuring.items
        self._gating.plan_ready(planner)
        planner.roll_out("base", [(head, items, 0)])
        planner.may_roll_out("choices", head, items, evaluations(self._texts) - 1)
        self._gating.plan_repeats(planner)
        facts = {
            "merge": f"{self.theirs} into {self.ours}",
            "against": self._ancestor,
            "items": f"{len(items)} selection",
        }
        for number, stretch in enumerate(self.stretches, 1):
            texts = (
                f"{side}: {' / '.join(text.split())}"
                for side, text in (("ours", stretch.ours), ("theirs", stretch.theirs))
            )
            where = f"{stretch.file} line {stretch.line}, one of {', '.join(stretch.choices)}"
            facts[f"conflict {number}"] = "\n".join((where, *texts))
        return planner.plan("merge", facts, caps=measuring.terms.caps, notes=self.notes)

    async def candidate(self) -> Candidate:
        head = self._gating.head
        self._gating.measuring.expect(evaluations(self._texts))
        skill, self.stretches = await settle(self._gating.measuring, self._texts, self.ours)
        if skill.digest == head.digest:
            better = "nothing in it scores better" if self.stretches else f"{self.ours} has all of it already"
            raise SkillgitError(
                f"{self.theirs} brings nothing to {self.ours}: {better}",
                hint=f"skillgit diff {quote(self.ours)} {quote(self.theirs)}",
            )
        rows = [asdict(replace(stretch, choices=())) for stretch in self.stretches]
        return Candidate(
            skill=skill,
            origin=Origin.MERGE,
            of=self.theirs,
            title=f"merge {self.theirs}",
            why="\n\n".join((f"Merged against {self._ancestor}.", *map(_sentence, self.stretches))),
            reports=human_edits(head, skill),
            merge_parent=self._row.commit,
            evidence={"merge.json": json_file([{key: row[key] for key in row if key != "choices"} for row in rows])},
        )


def _sentence(stretch: Stretch) -> str:
    scores = ", ".join(f"{attempt.choice} {attempt.score:.4f}" for attempt in stretch.tried)
    return f"{stretch.file} line {stretch.line}: {stretch.chosen}{f' ({scores})' if scores else ''}"


def _other(workspace: Workspace, text: str) -> LogRow:
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
    ancestor = common_ancestor(repo, gating.commits[gating.state.version], other_row.commit)
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
