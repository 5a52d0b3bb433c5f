"""The settings of the method, typed; section and key names are those of the reference implementation."""

from __future__ import annotations

import shlex
from enum import StrEnum
from math import cos, pi
from typing import Annotated, Literal, assert_never

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from skillgit.domain.document_rewrite import ProposalKind, UpdateMode
from skillgit.domain.evaluation import Metric
from skillgit.domain.gate_decision import GateRule, NoRegression, Objective
from skillgit.domain.skill import DOCUMENT, TrainableFiles, pattern_problem
from skillgit.domain.usefulness import WORTH
from skillgit.errors import SkillgitError
from skillgit.lazy import loaded_on_use

with loaded_on_use():
    from skillgit.plugin import registry


Positive = Annotated[int, Field(gt=0)]
Natural = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class ControlMode(StrEnum):
    """Who sets the edit budget of a step."""

    FIXED = "fixed"  # the schedule
    AUTONOMOUS = "autonomous"  # the optimizer, asked once a step
    NONE = "none"  # there is no limit


CONTROL_ALIASES = {
    **dict.fromkeys(("manual", "scheduler", "scheduled"), "fixed"),
    **dict.fromkeys(("auto", "optimizer"), "autonomous"),
    **dict.fromkeys(("off", "no_lr"), "none"),
}
UPDATE_ALIASES = {
    "edits": "patch",
    **dict.fromkeys(("rewrite", "suggestions", "rewrite_suggestions"), "rewrite_from_suggestions"),
    **dict.fromkeys(("full_rewrite", "minibatch_full_rewrite", "skill_rewrite_minibatch"), "full_rewrite_minibatch"),
}
PAIR_ALIASES = {
    **dict.fromkeys(("default", "random", "all"), "mixed"),
    **dict.fromkeys(("change", "delta", "10_01", "01_10"), "changed"),
    **dict.fromkeys(("stable", "same", "00_11"), "unchanged"),
}
"""Other names of the reference implementation."""


class PairPolicy(StrEnum):
    """Which pairs of rollouts the slow update sees."""

    MIXED = "mixed"  # all that were sampled
    CHANGED = "changed"  # those whose outcome changed, topped up from other train items
    UNCHANGED = "unchanged"  # those whose outcome stayed


class Companions(StrEnum):
    """What a target sees of a skill's other files."""

    INLINE = "inline"  # the texts that ``SKILL.md`` names
    NONE = "none"  # nothing


def listed(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _called(aliases: dict[str, str]) -> BeforeValidator:
    return BeforeValidator(lambda value: aliases.get(value, value) if isinstance(value, str) else value)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class TrainSettings(_Section):
    """How long and on what a run trains."""

    num_epochs: Positive = Field(4, description="Epochs; in each, every train item is rolled out once.")
    train_size: Natural = Field(0, description="Train items that there must be; 0 takes them as they are.")
    batch_size: Positive = Field(20, description="Train items per batch; a step has accumulation batches.")
    accumulation: Positive = Field(1, description="Batches per step; all see the same skill and history.")
    strategy: str = Field(
        "refine", description="How candidates are found: skillgit plugins lists them, or path/to/file.py:Class."
    )
    round_steps: Positive = Field(
        4, description="Steps that strategies with rounds propose from one version at once; skillopt has none."
    )
    strategies: Annotated[tuple[str, ...], BeforeValidator(listed)] = Field(
        ("racing", "pareto", "skillopt"),
        strict=False,
        description="What the strategy compose goes through, one after the other.",
    )
    plateau: Positive = Field(
        8, description="Steps without a new best after which compose goes on to the next of its strategies."
    )
    seed: int = Field(42, gt=-(10**18), lt=10**18, description="Seed of every random choice.")
    patience: Natural = Field(0, description="Steps in a row without a new best after which a run ends; 0 is never.")
    stop_at_ceiling: bool = Field(default=True, description="End a run whose version has the full selection score.")
    placebo: Natural = Field(0, description="No-op candidates sent through the gate at the end of the run.")
    diagnose_after: Natural = Field(
        5, description="Steps in a row that bring nothing before train says why; 0 is never."
    )
    preflight: bool = Field(
        default=True, description="Check keys, programs, contexts and one tiny call per role before a run begins."
    )

    require_loading: bool = Field(
        default=True, description="Stop before the first step if an agent loaded the skill in no baseline rollout."
    )

    @property
    def step_size(self) -> int:
        return self.batch_size * self.accumulation


class GradientSettings(_Section):
    """How trajectories become proposals."""

    minibatch_size: Positive = Field(8, description="Trajectories per analyst call.")
    merge_batch_size: Annotated[int, Field(ge=2)] = Field(8, description="Patches per merge call.")
    analyst_workers: Positive = Field(16, description="Optimizer calls in flight.")
    failure_only: bool = Field(default=True, description="Analyse failures only.")
    contrast: Natural = Field(2, description="Similar trajectories of the other outcome that an analyst sees besides.")
    samples: Positive = Field(
        1, description="Rollouts of each train item; where one passes and another fails, an analyst sees the pair."
    )
    max_pictures: Natural = Field(4, description="Pictures of its trajectories that an analyst sees; 0 for none.")
    max_trajectory_tokens: Positive = Field(3000, description="Length at which a trajectory in a prompt is elided.")
    max_history_tokens: Positive = Field(3000, description="Length at which the history in a prompt is cut.")
    use_deep_reflect: bool = Field(default=False, description="Roll a few items out again with a probe, and analyse.")
    deep_reflect_failures: Natural = Field(4, description="Failures that a probe looks into.")
    deep_reflect_successes: Natural = Field(2, description="Successes that a probe looks into.")


class OptimizerSettings(_Section):
    """How proposals become a candidate."""

    learning_rate: Positive = Field(6, description="Budget of a step at the start: edits or rules at most.")
    min_learning_rate: Positive = Field(4, description="Budget of a step at the end.")
    lr_scheduler: Literal["constant", "linear", "cosine", "autonomous"] = Field(
        "cosine", description="Course of the edit budget; autonomous is another way to set lr_control_mode."
    )
    lr_control_mode: Annotated[ControlMode, _called(CONTROL_ALIASES)] = Field(
        ControlMode.FIXED, strict=False, description="Who sets the edit budget: the schedule, the optimizer or no one."
    )
    budget_unit: Literal["edits", "rules"] = Field(
        "rules",
        description="What the edit budget counts: edits, or rules that change; a table or list of entries is one.",
    )
    skill_update_mode: Annotated[UpdateMode, _called(UPDATE_ALIASES)] = Field(
        UpdateMode.PATCH, strict=False, description="What analysts propose: edits, suggestions or whole documents."
    )
    aggregate: Literal["hierarchical", "one_call"] = Field(
        "one_call", description="Merge level by level and rank, or merge and rank in one call."
    )
    use_slow_update: bool = Field(default=True, description="Compare epochs and merge guidance at their ends.")
    slow_update_samples: Positive = Field(20, description="Train items that the slow update compares.")
    slow_update_gate_with_selection: bool = Field(
        default=True, description="Guidance has to pass the gate; without it, guidance is measured and merged."
    )
    longitudinal_pair_policy: Annotated[PairPolicy, _called(PAIR_ALIASES)] = Field(
        PairPolicy.MIXED, strict=False, description="Which pairs the slow update sees: all, changed or unchanged ones."
    )
    use_meta_skill: bool = Field(default=True, description="Keep a memory for the optimizer from epoch to epoch.")
    use_meta_reflect: bool = Field(default=False, description="Propose edits from the steps of an epoch, at its end.")
    meta_learning_rate: Positive = Field(4, description="Edit budget of the reflection on an epoch.")
    use_skill_aware_reflection: bool = Field(
        default=False, description="Tell defects of the skill from lapses, and keep reminders in an appendix."
    )
    skill_aware_appendix_source: Literal["both", "failure_only"] = Field(
        "both", description="Whose reminders count: those of all analysts or of those who read failures."
    )
    skill_aware_consolidate_threshold: Natural = Field(
        0, description="Reminders above which the optimizer puts them together; 0 is never."
    )
    max_skill_tokens: Positive = Field(5000, description="Tokens of the skill at most; longer candidates are skipped.")
    files: Annotated[tuple[str, ...], BeforeValidator(listed)] = Field(
        (DOCUMENT,),
        strict=False,
        description="Patterns of the files that steps may edit or make, like references/*.md; skill folder, text only.",
    )
    max_file_tokens: Positive = Field(
        3000,
        description="Tokens of another file at most; longer candidates are skipped, longer files shown without middle.",
    )
    check: str = Field(
        "", description="Command that a candidate's folder has to pass in the sandbox, like python scripts/selftest.py."
    )
    salvage: bool = Field(default=False, description="Measure parts of a rejected patch of several edits.")
    structured_output: Literal["auto", "off"] = Field(
        "auto", description="Send the JSON schema of a reply to providers that keep to one; a refusal is remembered."
    )

    @property
    def control(self) -> ControlMode:
        """Who sets the edit budget: whole documents know none, and the schedule ``autonomous`` is the optimizer."""
        if self.skill_update_mode.proposals is ProposalKind.DOCUMENTS:
            return ControlMode.NONE
        if self.lr_scheduler == "autonomous" and self.lr_control_mode is ControlMode.FIXED:
            return ControlMode.AUTONOMOUS
        return self.lr_control_mode

    @property
    def trainable(self) -> TrainableFiles:
        return TrainableFiles(self.files)

    @property
    def check_command(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.check))

    @property
    def merges_in_one_call(self) -> bool:
        """Whether a single call merges and ranks; of whole documents there is nothing to rank."""
        return self.aggregate == "one_call" and self.skill_update_mode.proposals is not ProposalKind.DOCUMENTS

    @model_validator(mode="after")
    def _floor_below_ceiling(self) -> OptimizerSettings:
        if self.min_learning_rate > self.learning_rate:
            raise ValueError("min_learning_rate is greater than learning_rate")
        return self

    @model_validator(mode="after")
    def _files_can_be_trained(self) -> OptimizerSettings:
        if not self.files:
            raise ValueError(f"files is empty; it names the files that steps may edit, {DOCUMENT} if nothing else")
        for pattern in self.files:
            if problem := pattern_problem(pattern):
                raise ValueError(f"files has '{pattern}', which {problem}")
        if self.trainable.beyond_document and self.skill_update_mode.proposals is not ProposalKind.EDITS:
            raise ValueError(
                f"files names others than {DOCUMENT}, and a rewrite changes no other; set skill_update_mode to patch"
            )
        return self

    @model_validator(mode="after")
    def _check_is_a_command(self) -> OptimizerSettings:
        try:
            shlex.split(self.check)
        except ValueError as error:
            raise ValueError(f"check is '{self.check}', which is not a command: {error}") from error
        return self


class TargetSettings(_Section):
    """What the target is given of a skill."""

    companions: Companions = Field(
        Companions.INLINE,
        strict=False,
        description="Other files: inline puts the texts that SKILL.md names behind it; none leaves them out.",
    )
    max_companion_tokens: Positive = Field(
        8000, description="Tokens of these texts together; what is longer is cut, and says so."
    )


class EvaluationSettings(_Section):
    """How candidates are measured and judged."""

    use_gate: bool = Field(default=True, description="Without it, every measured candidate is accepted.")
    gate_metric: Metric = Field(Metric.HARD, description="Score that the gate compares.", strict=False)
    gate_mixed_weight: Share = Field(0.5, description="Share of the soft score in the mixed metric.")
    min_coverage: Share = Field(0.9, description="Share of items with a score below which the gate is indecisive.")
    sel_env_num: Natural = Field(0, description="First selection items to use; 0 uses all.")
    test_env_num: Natural = Field(0, description="First test items to use; 0 uses all.")
    eval_test: bool = Field(default=True, description="Measure first, best and last version on the test split.")
    leak_lint: bool = Field(
        default=True, description="Quarantine edits that tie items to answers, or quote checks or held-out inputs."
    )


class GateSettings(_Section):
    """How the gate decides."""

    policy: str = Field(
        "strict", description="How it compares: strict, paired, margin, an installed one, or path/to/file.py:Class."
    )
    alpha: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.05, description="Level of the paired tests: of the paired policy, and of fewer tokens."
    )
    margin: Share = Field(0.0, description="By how much the margin policy wants the score to be greater.")
    worth: Annotated[float, Field(ge=0.05, le=0.5)] = Field(
        WORTH, description="The least gain for which propose --model keeps a skill."
    )
    repeats: Natural = Field(0, description="Extra rollouts of items that differ, before a higher score is believed.")
    no_regression: NoRegression = Field(
        NoRegression.NONE, strict=False, description="Items that may not score lower: none, pinned or all."
    )
    pinned: str = Field(
        "", description="File with the ids of pinned items, one on a line; or type:NAME, all items of a task type."
    )
    objective: Objective = Field(
        Objective.SCORE,
        strict=False,
        description="What a candidate may be accepted for: score; or score-then-tokens, for fewer tokens of the target"
        " an item too where its score is not lower.",
    )
    token_margin: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.05, description="By what share fewer tokens an item have to be fewer; score-then-tokens only."
    )
    max_tokens_per_item: Natural = Field(
        0, description="Tokens an item that no candidate may rise above, whatever it scores; 0 for no such limit."
    )
    screening: Natural = Field(
        0,
        description="Solved train items on which a candidate is tried before it is measured, with the failing ones that"
        " its edits rest on; 0 measures it at once.",
    )
    early_stop: bool = Field(default=True, description="Stop evaluating once the decision cannot change any more.")

    @field_validator("policy")
    @classmethod
    def _asks_for_a_gain(cls, value: str) -> str:
        try:
            policy = registry.load_policy(value)
        except SkillgitError as error:
            raise ValueError(error.message) from error
        if not policy.wants_gain:
            raise ValueError(f"{value} is the gate of shorter texts, and steps have to gain: strict, paired or margin")
        return value

    @model_validator(mode="after")
    def _something_pinned(self) -> GateSettings:
        if self.no_regression is NoRegression.PINNED and not self.pinned:
            raise ValueError("no_regression is pinned, but pinned names no file")
        return self

    @model_validator(mode="after")
    def _counts_what_it_limits(self) -> GateSettings:
        if self.max_tokens_per_item and self.objective is Objective.SCORE:
            raise ValueError("max_tokens_per_item limits tokens, and objective: score does not count any")
        return self


class MethodSettings(_Section):
    train: TrainSettings = TrainSettings()
    gradient: GradientSettings = GradientSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    target: TargetSettings = TargetSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    gate: GateSettings = GateSettings()

    def rule(self, pins: frozenset[str] = frozenset()) -> GateRule:
        evaluation, gate = self.evaluation, self.gate
        return GateRule(
            policy=registry.load_policy(gate.policy),
            metric=evaluation.gate_metric,
            soft_weight=evaluation.gate_mixed_weight,
            min_coverage=evaluation.min_coverage,
            enabled=evaluation.use_gate,
            alpha=gate.alpha,
            margin=gate.margin,
            no_regression=gate.no_regression,
            pinned=pins,
            objective=gate.objective,
            token_margin=gate.token_margin,
            max_tokens=gate.max_tokens_per_item or None,
        )


def edit_budget(settings: OptimizerSettings, step: int, steps: int) -> int:
    """Return the most edits that step ``step``, from 1, of ``steps`` may make.

    With M and m the largest and smallest budget and t = step / steps: constant M; linear M + (m - M) t; cosine m + (M -
    m) (1 + cos(pi t)) / 2 (Loshchilov and Hutter, arXiv 1608.03983, without restarts), rounded half to even and never
    under m. A run of one step has the budget M.
    """
    largest, smallest = settings.learning_rate, settings.min_learning_rate
    if steps <= 1:
        return largest
    share = min(step, steps) / steps
    match settings.lr_scheduler:
        case "constant" | "autonomous":
            # With a schedule that is the optimizer's, this is what holds where its answer cannot be used.
            return largest
        case "linear":
            return max(smallest, round(largest + (smallest - largest) * share))
        case "cosine":
            return max(smallest, round(smallest + 0.5 * (largest - smallest) * (1 + cos(pi * share))))
        case other:
            assert_never(other)
