"""Merge another line's version into a run; where both changed the same lines, scores decide."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from shlex import quote

from skillgit.app.interventions.intervention import Candidate, Decided, Gating, open_gating
from skillgit.app.interventions.requests import MergeRequest
from skillgit.app.interventions.three_way_merge import Choice, Merge
from skillgit.app.interventions.three_way_merge import merge as merge_texts
from skillgit.app.setup.model_session import EvalWatcher
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import Planner
from skillgit.app.workspace.revision import event_in, find_run
from skillgit.app.workspace.workspace import Workspace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    ours: str
    theirs: str
    ancestor: str  # the text that both come from, in words
    stretches: tuple[Stretch, ...]
    decided: Decided


def merge(workspace: Workspace, request: MergeRequest, watcher: EvalWatcher) -> Merged | Plan:
    """Merge another run's version, settle conflicts by evaluation, and gate it; a plan lists the conflicts."""
    into, row = find_run(workspace, request.into), _other(workspace, request.source)
    if row.run == into:
        raise UsageError(f"{row.address} is a version of run {into}", hint="skillgit cherry-pick takes its edits")
    with open_gating(workspace, into, request, watcher) as gating:
        base, ancestor = _base(workspace, gating, row)
        theirs = skill_at(workspace.repo, row.commit, workspace.index.skill_path(row.run))
        return _Merging(gating, row, ancestor, merge_texts(base, gating.head, theirs)).result()


class _Merging:
    """The work on one merge; its stretches are open until the candidate is made."""

    def __init__(self, gating: Gating, row: LogRow, ancestor: str, texts: Merge) -> None:
        self._gating, self._row, self._ancestor, self._texts = gating, row, ancestor, texts
        self._ours, self._theirs = gating.name, str(row.address)
        self._stretches = [
            Stretch(
                file=conflict.file,
                line=conflict.line,
                ours="".join(conflict.ours or ()),
                theirs="".join(conflict.theirs or ()),
                choices=tuple(choice.value for choice in conflict.choices),
            )
            for conflict in texts.conflicts
        ]
        # the first text, and each other choice once
        self._most = 1 + sum(len(stretch.choices) - 1 for stretch in self._stretches[:MOST_CONFLICTS])

    def result(self) -> Merged | Plan:
        facts = {
            "merge": f"{self._theirs} into {self._ours}",
            "against": self._ancestor,
            "items": self._gating.items,
        }
        for number, stretch in enumerate(self._stretches, 1):
            where = f"{stretch.file} line {stretch.line}, one of {', '.join(stretch.choices)}"
            sides = (("ours", stretch.ours), ("theirs", stretch.theirs))
            facts[f"conflict {number}"] = "\n".join([where, *(f"{side}: {' / '.join(t.split())}" for side, t in sides)])
        surplus = len(self._stretches) - MOST_CONFLICTS
        note = f"{surplus} conflicts beyond the first {MOST_CONFLICTS} keep the text of {self._ours}"
        notes = (note,) if surplus > 0 else ()
        decision = self._gating.decide(Origin.MERGE, "merged", facts, self._plan, self._candidate, notes=notes)
        if isinstance(decision, Plan):
            return decision
        return Merged(
            ours=self._ours,
            theirs=self._theirs,
            ancestor=self._ancestor,
            stretches=tuple(self._stretches),
            decided=decision,
        )

    def _plan(self, planner: Planner) -> None:
        head, items = self._gating.head, self._gating.measuring.items
        planner.roll_out("base", [(head, items, 0)])
        planner.may_roll_out("choices", head, items, self._most)

    async def _candidate(self) -> Candidate:
        """Choose greedily, conflict by conflict; of choices that score the same ours, theirs, both, neither."""
        head, texts, stretches = self._gating.head, self._texts, self._stretches
        measuring = self._gating.measuring
        measuring.expect(1 + self._most)
        choices = [Choice.OURS] * len(stretches)
        best = texts.settled(choices)
        if best is None:
            raise SkillgitError(
                "the merge would harm a protected region of the skill",
                hint=f"edit {self._ours} by hand, or cherry-pick single steps",
            )
        score = await measuring.score("all ours", best) if stretches else 0.0
        for index, conflict in enumerate(texts.conflicts):
            attempts = [MeasuredChoice(choice=Choice.OURS.value, score=score)] if index < MOST_CONFLICTS else []
            for choice in conflict.choices[1:] if attempts else ():
                skill = texts.settled([*choices[:index], choice, *choices[index + 1 :]])
                if skill is None:
                    continue
                value = await measuring.score(f"{choice.value} at {index + 1}", skill)
                attempts.append(MeasuredChoice(choice=choice.value, score=value))
                if value > score:
                    best, score, choices[index] = skill, value, choice
            stretches[index] = replace(stretches[index], tried=tuple(attempts), chosen=choices[index].value)
        if best.digest == head.digest:
            better = "nothing in it scores better" if stretches else f"{self._ours} has all of it already"
            raise SkillgitError(
                f"{self._theirs} brings nothing to {self._ours}: {better}",
                hint=f"skillgit diff {quote(self._ours)} {quote(self._theirs)}",
            )
        rows = [asdict(stretch) for stretch in stretches]
        return Candidate(
            skill=best,
            origin=Origin.MERGE,
            of=self._theirs,
            title=f"merge {self._theirs}",
            why="\n\n".join((f"Merged against {self._ancestor}.", *map(_sentence, stretches))),
            reports=human_edits(head, best),
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
        raise RevisionNotFoundError(f"'{text}' is not a version of a run", hint="name a run, or a version as RUN/v7")
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
    return None, "nothing, since the runs share no text that both come from"


def _seed(workspace: Workspace, run: str) -> Skill | None:
    row = queries.row_of_version(workspace.index, run, 0)
    return None if row is None else _skill(workspace, row.commit, workspace.index.skill_path(run))


def _skill(workspace: Workspace, commit: str, path: str) -> Skill | None:
    try:
        return skill_at(workspace.repo, commit, path)
    except (RevisionNotFoundError, SkillError):
        return None
