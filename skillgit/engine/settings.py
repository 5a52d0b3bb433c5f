"""The settings of the method, typed; section and key names are those of the reference implementation."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from skillgit.domain.evaluation import Metric
from skillgit.domain.gate import GateRule, Policy

Positive = Annotated[int, Field(gt=0)]
Natural = Annotated[int, Field(ge=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TrainSettings(_Section):
    """How long and on what a run trains."""

    num_epochs: Positive = Field(4, description="Epochs; in each, every train item is rolled out once.")
    train_size: Natural = Field(0, description="Train items that there must be; 0 takes them as they are.")
    batch_size: Positive = Field(40, description="Train items per step.")
    seed: int = Field(42, description="Seed of every random choice.")


class GradientSettings(_Section):
    """How trajectories become proposals."""

    minibatch_size: Positive = Field(8, description="Trajectories per analyst call.")
    merge_batch_size: Annotated[int, Field(ge=2)] = Field(8, description="Patches per merge call.")
    analyst_workers: Positive = Field(16, description="Optimizer calls in flight.")
    failure_only: bool = Field(default=False, description="Analyse failures only.")
    max_trajectory_tokens: Positive = Field(3000, description="Length at which a trajectory in a prompt is elided.")


class OptimizerSettings(_Section):
    """How proposals become a candidate."""

    learning_rate: Positive = Field(4, description="Edit budget of a step at the start: edits at most.")
    min_learning_rate: Positive = Field(2, description="Edit budget of a step at the end.")
    lr_scheduler: Literal["constant", "linear", "cosine"] = Field("cosine", description="Course of the edit budget.")
    lr_control_mode: Literal["fixed"] = Field("fixed", description="Who sets the edit budget: the schedule.")
    skill_update_mode: Literal["patch"] = Field("patch", description="What analysts propose: edits.")
    use_slow_update: bool = Field(default=True, description="Compare epochs and merge guidance at their ends.")
    slow_update_samples: Positive = Field(20, description="Train items that the slow update compares.")
    slow_update_gate_with_selection: Literal[True] = Field(
        default=True, description="Guidance has to pass the gate, as in the paper."
    )
    longitudinal_pair_policy: Literal["mixed"] = Field("mixed", description="Which pairs the slow update sees.")
    use_meta_skill: bool = Field(default=True, description="Keep a memory for the optimizer from epoch to epoch.")

    @model_validator(mode="after")
    def _floor_below_ceiling(self) -> OptimizerSettings:
        if self.min_learning_rate > self.learning_rate:
            raise ValueError("min_learning_rate is greater than learning_rate")
        return self


class EvaluationSettings(_Section):
    """How candidates are measured and judged."""

    use_gate: bool = Field(default=True, description="Without it, every measured candidate is accepted.")
    gate_metric: Metric = Field(Metric.HARD, description="Score that the gate compares.", strict=False)
    gate_mixed_weight: Share = Field(0.5, description="Share of the soft score in the mixed metric.")
    min_coverage: Share = Field(0.9, description="Share of items with a score below which the gate is indecisive.")
    sel_env_num: Natural = Field(0, description="First selection items to use; 0 uses all.")
    test_env_num: Natural = Field(0, description="First test items to use; 0 uses all.")
    eval_test: bool = Field(default=True, description="Measure first, best and last version on the test split.")

    def rule(self) -> GateRule:
        """Return the gate's settings."""
        return GateRule(
            policy=Policy.STRICT,
            metric=self.gate_metric,
            soft_weight=self.gate_mixed_weight,
            min_coverage=self.min_coverage,
            enabled=self.use_gate,
        )


class MethodSettings(_Section):
    """All settings of the method."""

    train: TrainSettings = TrainSettings()
    gradient: GradientSettings = GradientSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
