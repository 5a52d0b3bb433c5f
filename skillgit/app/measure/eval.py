"""``skillgit eval``: several skills on the same items, side by side; what is found becomes a note on their commits.

A measurement compares versions, other commits, what a pull request changes, and no skill at all.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Literal, NoReturn

from skillgit.app.recorded.evaluation_notes import Note, known_evaluations, reads_of_test, record
from skillgit.app.recorded.score_summary import Scores, SkillComparison, by_type, compare, scores
from skillgit.app.recorded.shortcut_facts import best_shortcuts, not_above
from skillgit.app.setup.basis import Lender, ResultBasis, basis_of, find_lender, lender_of
from skillgit.app.setup.judge_record import judge_command
from skillgit.app.setup.model_session import (
    EvalWatcher,
    Measuring,
    MeasuringTerms,
    evaluation_note,
    measured_or_planned,
    planned,
    too_few,
)
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.planner import Planner
from skillgit.app.setup.run_setup import Setup, differences, measuring_setup, refuse_samples
from skillgit.app.setup.skill_tasks import TASKS_ENVIRONMENT
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.revision import (
    NO_SKILL,
    WORKTREE,
    Resolved,
    chosen_run,
    resolve_in,
    text_source,
    work_tree_differs,
)
from skillgit.app.workspace.skill_choice import name_of, only_skill, several_skills
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.cost import Cost
from skillgit.domain.evaluation import Evaluation, Gauge, Outcome, Split
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.errors import ExitCode, SkillError, UsageError
from skillgit.index.queries import runs_of_skill
from skillgit.index.rows import LogRow
from skillgit.plugin.environment import Summarizes, SummaryShare, asks_judge
from skillgit.store.diff import common_ancestor
from skillgit.store.history_reader import skill_at
from skillgit.store.work_tree import differs, skill_trees, skills_at, work_tree_commit

NONE = "none"
"""The arm without a skill: its name and description, and not a word below them."""
_SHORT = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    name: str  # in tables: `v7`, `r17`, `<run>/v7` among several runs, `none`; unique within a measurement
    commit: str  # its commit; empty for no skill, and for a text of the work tree that no commit holds
    row: LogRow | None  # the event that the commit holds; absent for a commit that is no event, and for no skill
    skill: Skill
    path: str  # the folder of the skill
    text: str  # which text it is: file, revision as it was named, event and commit

    @property
    def key(self) -> str:
        """What everything that is kept of the skill goes by: its commit, or its name without one."""
        return self.commit or self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """All skills to measure, each once."""

    every: tuple[Arm, ...]  # those that were asked for first, then those that they are compared with
    subjects: tuple[Arm, ...]
    against: tuple[Arm, ...]
    same: tuple[str, ...]  # a sentence on each skill that is compared with its own text

    @property
    def pairs(self) -> tuple[tuple[Arm, Arm], ...]:
        """Each skill that was asked for with each other text that it is compared with."""
        pairs = ((arm, base) for arm in self.subjects for base in self.against)
        return tuple(pair for pair in pairs if pair[0].skill.digest != pair[1].skill.digest)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRevisions:
    """Revisions as the user named them, resolved; None stands for no skill."""

    subjects: tuple[tuple[str, Resolved], ...]
    against: tuple[tuple[str, Resolved | None], ...]

    @property
    def every(self) -> tuple[tuple[str, Resolved | None], ...]:
        return (*self.subjects, *self.against)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that the revisions belong to, each once."""
        resolutions = [resolution for _, resolution in self.every if resolution is not None]
        return tuple(dict.fromkeys(resolution.run for resolution in resolutions if resolution.run))


def resolve_all(workspace: Workspace, revisions: Sequence[str], against: Sequence[str]) -> NamedRevisions:
    """Return what the user named."""
    if not revisions:
        raise UsageError("name a version to measure", hint="skillgit eval best")
    return NamedRevisions(
        subjects=tuple((text, resolve_measured(workspace, text)) for text in revisions),
        against=tuple((text, None if text == NONE else resolve_measured(workspace, text)) for text in against),
    )


def resolve_measured(workspace: Workspace, text: str) -> Resolved:
    """Return what ``text`` names; ``WORKTREE`` is the text of the work tree, committed or not."""
    if text != WORKTREE:
        return resolve_in(workspace, text)
    commit = work_tree_commit(workspace.repo)
    if commit == workspace.repo.head()[1]:
        return resolve_in(workspace, "HEAD")
    return Resolved(commit=commit, row=None, run=None, is_uncommitted=True)


def lender_for(workspace: Workspace, names: NamedRevisions, terms: MeasuringTerms) -> Lender | None:
    """Return the run that says how to measure: that of the first revision of a run, else that of the skill."""
    for text, resolution in names.every:
        if resolution is not None and resolution.run:
            return lender_of(text, resolution.run)
    if terms.config is not None:
        return None
    return find_lender(workspace, _skill_of(workspace, names.subjects[0][1]))


def _skill_of(workspace: Workspace, resolution: Resolved) -> str:
    """Return the skill folder of a commit that belongs to no run.

    It is the one that is named, that of the default run, the only one, or the only one that runs train.
    """
    there = skills_at(workspace.repo, resolution.commit)
    chosen = chosen_run(workspace)
    trained = [path for path in there if runs_of_skill(workspace.index, path)]
    candidates = (
        workspace.skill,
        workspace.index.skill_path(chosen) if chosen else "",
        only_skill(there),
        trained[0] if len(trained) == 1 else "",
    )
    return next((path for path in candidates if path in there), "") or _unclear(resolution, there)


def _unclear(resolution: Resolved, there: Sequence[str]) -> NoReturn:
    if not there:
        raise SkillError(f"there is no skill in {_place(resolution)}", hint=NO_SKILL)
    raise several_skills(there, f"{_place(resolution)} has")


def _place(resolution: Resolved) -> str:
    return "the work tree" if resolution.is_uncommitted else f"commit {resolution.commit[:_SHORT]}"


def read_arms(
    workspace: Workspace, names: NamedRevisions, environment: str, skill_init: str = "", lender: Lender | None = None
) -> Arms:
    """Read the skills of everything named; what is the same commit is one arm.

    Of several skills of a commit, that of the ``lender`` is meant, or ``skill_init`` names it, by its folder or a file
    of it.
    """
    runs = dict.fromkeys((*names.runs, *([lender.run] if lender is not None else ())))
    own = [workspace.index.skill_path(run) for run in runs]
    hints = (Path(skill_init.removesuffix(f"/{DOCUMENT}")).name, environment)
    arms: dict[str, Arm] = {}
    keys: list[str] = []
    for text, resolution in names.every:
        if resolution is None:
            variant = _nothing(next(iter(arms.values())))
        else:
            path = _path(workspace, resolution, own, hints)
            variant = _arm(workspace, names, text, resolution, path)
        arms.setdefault(variant.key, variant)
        keys.append(variant.key)
    arms = {arm.key: arm for arm in _told_apart(tuple(arms.values()))}
    count = len(names.subjects)
    named = [(text, arms[key]) for (text, _), key in zip(names.every, keys, strict=True)]
    return Arms(
        every=tuple(arms.values()),
        subjects=tuple(arms[key] for key in dict.fromkeys(keys[:count])),
        against=tuple(arms[key] for key in dict.fromkeys(keys[count:])),
        same=tuple(
            f"{name} and {other} have the same text"
            for name, arm in named[:count]
            for other, base in named[count:]
            if arm.skill.digest == base.skill.digest
        ),
    )


def _nothing(first: Arm) -> Arm:
    """Return the arm without a skill, beside the ``first`` arm."""
    text = f"{first.path}/{DOCUMENT} with its name and description alone"
    return Arm(name=NONE, commit="", row=None, skill=emptied(first.skill), path=first.path, text=text)


def _arm(workspace: Workspace, names: NamedRevisions, text: str, resolution: Resolved, path: str) -> Arm:
    row = resolution.row
    commit = "" if resolution.is_uncommitted else resolution.commit
    return Arm(
        name=_name(names, text, row),
        commit=commit,
        row=row,
        skill=skill_at(workspace.repo, resolution.commit, path),
        path=path,
        text=text_source(path, *_named(workspace, text, row), commit),
    )


def _named(workspace: Workspace, text: str, row: LogRow | None) -> tuple[str, str]:
    """Return a revision as it was named, and what else it is called: an event, or the branch of HEAD."""
    branch, _ = workspace.repo.head()
    return text, str(row.address) if row is not None else branch if text == "HEAD" else ""


def _name(names: NamedRevisions, text: str, row: LogRow | None) -> str:
    if row is None:
        return text
    return row.label if len(names.runs) == 1 else str(row.address)


def _told_apart(arms: Sequence[Arm]) -> Iterator[Arm]:
    """Yield ``arms`` with the beginnings of their commits behind names that several of them have."""
    counts = Counter(arm.name for arm in arms)
    for arm in arms:
        is_alone = counts[arm.name] == 1 or not arm.commit
        yield arm if is_alone else replace(arm, name=f"{arm.name} ({arm.commit[:_SHORT]})")


def _path(workspace: Workspace, resolution: Resolved, own: Sequence[str], hints: Sequence[str]) -> str:
    """Return the folder of the skill that is meant: that of the event's run, or a likely one of the commit."""
    if resolution.row is not None:
        return workspace.index.skill_path(resolution.row.run)
    there = skills_at(workspace.repo, resolution.commit)
    of_hints = (path for name in hints for path in there if name_of(path) == name)
    candidates = (workspace.skill, *own, only_skill(there), *of_hints)
    return next((path for path in candidates if path in there), "") or _unclear(resolution, there)


def measured_skill(workspace: Workspace, names: NamedRevisions) -> str:
    """Return the folder of the skill that is measured; empty where only a configuration can tell."""
    _, resolution = names.subjects[0]
    own = [workspace.index.skill_path(run) for run in names.runs]
    with suppress(SkillError):
        return _path(workspace, resolution, own, (TASKS_ENVIRONMENT,))
    return ""


def work_tree_remark(workspace: Workspace, resolutions: Iterable[Resolved | None], skills: Iterable[str]) -> str:
    """Say that a commit is measured that HEAD is at, and that the work tree has other texts of some of ``skills``."""
    every = [resolution for resolution in resolutions if resolution is not None]
    _, head = workspace.repo.head()
    if any(each.is_uncommitted for each in every) or head not in {each.commit for each in every}:
        return ""
    paths = [path for path in skills if differs(workspace.repo, path)]
    return work_tree_differs(f"measure {WORKTREE}", paths) if paths else ""


def set_up_arms(
    context: Context, workspace: Workspace, names: NamedRevisions, terms: MeasuringTerms
) -> tuple[Setup, Arms, str]:
    """Return what to measure with, what to measure, and a remark on the work tree; empty if it has the same texts.

    A UsageError if the items that come with the environment would measure a skill of the user's own.
    """
    lender = lender_for(workspace, names, terms)
    setup = measuring_setup(context, workspace, lender, terms, skill=measured_skill(workspace, names))
    environment, skill_init = setup.task.environment, setup.config.values.env.skill_init
    arms = read_arms(workspace, names, environment.info.name, skill_init, lender)
    for skill in dict.fromkeys(arm.skill.name for arm in arms.every):
        refuse_samples(setup.config, environment, skill, "measured")
    paths = dict.fromkeys(arm.path for arm in arms.every)
    return setup, arms, work_tree_remark(workspace, [each for _, each in names.every], paths)


def emptied(skill: Skill) -> Skill:
    """Return ``skill`` with its name and description, and not a word below them."""
    return Skill(skill.name, {DOCUMENT: frontmatter(skill.document).encode()})


Change = Literal["changed", "added", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSkill:
    """One skill that two commits hold different texts of."""

    path: str
    before: str  # the id of its tree at the base; empty if there is none
    after: str  # the id of its tree at the head; empty if there is none
    has_moved: bool  # whether the base changed it too since both were the same

    @property
    def change(self) -> Change:
        if not self.before:
            return "added"
        return "changed" if self.after else "removed"


def changed_skills(workspace: Workspace, base: str, head: str) -> tuple[ChangedSkill, ...]:
    """Return the skills that ``head`` changes, by path.

    What only ``base`` changed since the two parted is no change of ``head``, as in ``git diff base...head``. But each
    skill is compared with what is at ``base`` now, for that is what it would replace. Where ``head`` is an ancestor
    of ``base``, or they have nothing in common, every skill that differs is returned.
    """
    before, after = skill_trees(workspace.repo, base), skill_trees(workspace.repo, head)
    ancestor = common_ancestor(workspace.repo, base, head)
    base_trees = before if ancestor in {None, head} else skill_trees(workspace.repo, str(ancestor))
    return tuple(
        ChangedSkill(
            path=path,
            before=before.get(path, ""),
            after=after.get(path, ""),
            has_moved=before.get(path) != base_trees.get(path),
        )
        for path in sorted({*before, *after})
        if after.get(path) not in {before.get(path), base_trees.get(path)}
    )


ALL = "all"
SPLITS = (*(split.value for split in Split), ALL)
"""What ``--split`` may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalRequest(MeasuringTerms):
    revisions: tuple[str, ...]
    against: tuple[str, ...] = ()  # what to compare each of them with; `none` is no skill
    split: str = Split.SELECTION.value  # train, selection, test or all
    note: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitScores:
    split: str
    item_set: str  # digest of its items
    overall: Scores
    types: tuple[Scores, ...]
    shares: tuple[SummaryShare, ...] = ()  # what the environment says of all outcomes together; most say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmScores:
    """A skill on all splits that were asked for."""

    name: str
    run: str  # its run; empty without one
    version: int | None  # its version; absent for what is no version
    commit: str  # its commit; empty for no skill, and for a text of the work tree that no commit holds
    text: str  # which text it is: file, revision as it was named, event and commit
    splits: tuple[SplitScores, ...]
    shares: tuple[SummaryShare, ...] = ()  # of all these splits together; empty for a single one
    test_reads: int  # how many evaluations on the test split are known of it, this one included if it left a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    basis: ResultBasis
    config: str
    environment: str
    target: str
    seed: int
    metric: str
    arms: tuple[ArmScores, ...]  # the skills; those that were asked for first
    comparisons: tuple[SkillComparison, ...]  # each skill asked for against every other named, split by split
    noted: int
    cost: Cost  # what it cost; what was measured before cost nothing
    warnings: tuple[str, ...]  # what the user should know of the numbers
    exit_code: ExitCode
    same_text: tuple[str, ...] = ()  # a sentence on each skill that was compared with its own text, which costs nothing
    conditions: str = ""  # what the shares are of besides, where the environment gives some


def evaluate(context: Context, request: EvalRequest, watcher: EvalWatcher) -> Evaluated | Plan:
    """Measure what the request names, the ledger's for free; what is complete at an early end is noted too."""
    if request.split not in SPLITS:
        raise UsageError(f"there is no split '{request.split}'", hint=f"splits are {', '.join(SPLITS)}")
    with open_workspace(context) as workspace:
        names = resolve_all(workspace, request.revisions, request.against)
        setup, arms, remark = set_up_arms(context, workspace, names, request)
        work = _Evaluating(workspace, setup, request, arms, remark)
        if arms.against and not arms.pairs and not request.dry_run:
            plan = planned(context, workspace, setup, work.plan)
            if plan.total.calls:
                return work.result(Cost(), ())
        if remark:
            watcher.remark(remark)
        cost = measured_or_planned(
            context,
            workspace,
            setup,
            request,
            watcher,
            plan=work.plan,
            work=work.measure,
            note=lambda: work.note(context.clock()),
            judge_command=judge_command(request.revisions[0], request.config, request.overrides),
        )
        if isinstance(cost, Plan):
            return cost
        warnings = (sentence for run in names.runs for sentence in differences(workspace, run, setup))
        return work.result(cost, tuple(warnings))


class _Evaluating:
    def __init__(self, workspace: Workspace, setup: Setup, request: EvalRequest, arms: Arms, remark: str) -> None:
        self._workspace = workspace
        self._setup = setup
        self._request = request
        self._arms = arms
        self._remarks = (remark,) if remark else ()
        self._rule = setup.rule
        self._splits = tuple(Split) if request.split == ALL else (Split(request.split),)
        whole = {ALL: self._splits} if request.split == ALL else {}
        self._groups = {split.value: (split,) for split in self._splits} | whole  # what has shares, by name
        self._measured: dict[tuple[str, Split], Evaluation] = {}
        self._noted = 0
        self._reuse: tuple[str, ...] = ()

    def plan(self, planner: Planner) -> Plan:
        """Return what it asks: every arm on every split."""
        items, arms = self._setup.task.items, self._arms.every
        planner.preflight()
        for split in self._splits:
            planner.roll_out(split.value, [(arm.skill, items[split], 0) for arm in arms])
        facts = {
            "measure": ", ".join(arm.name for arm in arms),
            "text": "\n".join(arm.text for arm in arms),
            "items": ", ".join(f"{len(items[split])} {split.value}" for split in self._splits),
            "conditions": self._conditions,
            **{f"{name} shares": self._widths(splits) for name, splits in self._groups.items()},
        }
        notes = (*self._remarks, *self._arms.same)
        pairs = {name: fact for name, fact in facts.items() if fact}
        return planner.plan("eval", pairs, caps=self._request.caps, notes=notes)

    def _widths(self, splits: Sequence[Split]) -> str:
        """Say how wide the intervals of the environment's shares will be at most."""
        halves = ((share, (share.interval[1] - share.interval[0]) / 2) for share in self._shares(splits, {}))
        return ", ".join(f"{share.name} of {share.n} known within {half:.2f}" for share, half in halves)

    async def measure(self, measuring: Measuring) -> Cost:
        """Measure every arm on every split and return what that cost."""
        items = self._setup.task.items
        measuring.every = sum(len(items[split]) for split in self._splits) * len(self._arms.every)
        for split in self._splits:
            for arm in self._arms.every:
                self._measured[arm.key, split] = await measuring.measure_items(arm.name, arm.skill, items[split], split)
        self._reuse = measuring.reused(f"eval {quote(self._request.revisions[0])} --fresh draws new ones")
        return measuring.cost()

    def note(self, time: datetime) -> None:
        if not self._request.note:
            return
        notes: dict[str, list[Note]] = {}
        is_judged = asks_judge(self._setup.task.environment)
        judge: Note = {"judge": self._setup.routes["judge"].name} if is_judged else {}
        for arm in self._arms.every:
            for split in self._splits:
                evaluation = self._measured.get((arm.key, split))
                if arm.commit and evaluation is not None and evaluation.scored:
                    line = evaluation_note(self._setup, self._setup.task.items[split], evaluation, time)
                    notes.setdefault(arm.commit, []).append(line | judge)
        self._noted = record(self._workspace, notes, time)

    def result(self, cost: Cost, warnings: tuple[str, ...]) -> Evaluated:
        names = {arm.key: arm.name for arm in self._arms.every}
        thin = too_few(self._rule, ((names[key], evaluation) for (key, _), evaluation in self._measured.items()))
        return Evaluated(
            basis=basis_of(self._setup),
            config=self._setup.config.name,
            environment=self._setup.task.environment.info.name,
            target=self._setup.routes["target"].name,
            seed=self._setup.config.values.train.seed,
            metric=self._rule.metric.value,
            arms=tuple(self._arm_scores(arm) for arm in self._arms.every),
            comparisons=self._comparisons(),
            noted=self._noted,
            cost=cost,
            same_text=self._arms.same,
            warnings=(*self._remarks, *warnings, *self._reuse, *thin, *self._beside_shortcuts()),
            exit_code=ExitCode.SERVICE if thin else ExitCode.OK,
            conditions=self._conditions,
        )

    def _beside_shortcuts(self) -> Iterator[str]:
        """Yield a sentence for each score that is not above what needs no question."""
        if not self._measured:
            return
        gauge, task = Gauge(metric=self._rule.metric, soft_weight=self._rule.soft_weight), self._setup.task
        best = best_shortcuts(self._workspace.repo, task.environment, task.items, gauge)
        names = {arm.key: arm.name for arm in self._arms.every}
        for (key, split), evaluation in self._measured.items():
            score = gauge.score(evaluation.summary()) if evaluation.scored else None
            if sentence := not_above(score, split.value, best.get(split), names[key]):
                yield sentence

    @property
    def _conditions(self) -> str:
        environment = self._setup.task.environment
        return environment.conditions() if isinstance(environment, Summarizes) else ""

    def _comparisons(self) -> tuple[SkillComparison, ...]:
        return tuple(
            compare(
                self._rule,
                (arm.name, self._measured[arm.key, split]),
                (base.name, self._measured[base.key, split]),
            )
            for split in self._splits
            for arm, base in self._arms.pairs
            if (arm.key, split) in self._measured
        )

    def _arm_scores(self, arm: Arm) -> ArmScores:
        evaluations = known_evaluations(self._workspace, arm.commit, arm.row) if arm.commit else ()
        splits = [split for split in self._splits if (arm.key, split) in self._measured]
        outcomes = dict(ChainMap(*(dict(self._measured[arm.key, split].outcomes) for split in splits)))
        return ArmScores(
            name=arm.name,
            run=arm.row.run if arm.row is not None else "",
            version=arm.row.version if arm.row is not None else None,
            commit=arm.commit,
            text=arm.text,
            splits=tuple(self._split_scores(arm, split) for split in splits),
            shares=tuple(self._shares(self._groups[ALL], outcomes)) if ALL in self._groups and splits else (),
            test_reads=reads_of_test(evaluations),
        )

    def _split_scores(self, arm: Arm, split: Split) -> SplitScores:
        evaluation = self._measured[arm.key, split]
        return SplitScores(
            split=split.value,
            item_set=evaluation.item_set,
            overall=scores(evaluation.outcomes.values()),
            types=by_type(self._setup.task.items[split], evaluation),
            shares=tuple(self._shares((split,), evaluation.outcomes)),
        )

    def _shares(self, splits: Sequence[Split], outcomes: Mapping[str, Outcome]) -> Sequence[SummaryShare]:
        task = self._setup.task
        items = [item for split in splits for item in task.items[split]]
        return task.environment.summary(items, outcomes) if isinstance(task.environment, Summarizes) else ()
