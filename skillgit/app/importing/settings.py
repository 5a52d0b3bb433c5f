"""The configuration that the reference recorded, under the names of skillgit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.config.aliases import FLAT, RENAMED
from skillgit.app.importing.outcomes import number
from skillgit.domain.evaluation import Gauge, Metric
from skillgit.domain.event import Models
from skillgit.domain.gate import GateRule
from skillgit.domain.ids import short_digest
from skillgit.domain.rewrite import UpdateMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.app.importing.directory import Row

ORIGIN = "skillopt"
"""What the configuration and the environment of an imported run are marked with."""
SECTIONED = {
    "train": ("num_epochs", "train_size", "batch_size", "accumulation", "seed"),
    "gradient": ("minibatch_size", "merge_batch_size", "analyst_workers", "failure_only"),
    "optimizer": (
        *("learning_rate", "min_learning_rate", "lr_scheduler", "lr_control_mode", "skill_update_mode"),
        *("use_slow_update", "slow_update_samples", "slow_update_gate_with_selection", "longitudinal_pair_policy"),
        *("use_meta_skill", "use_skill_aware_reflection", "skill_aware_appendix_source"),
        "skill_aware_consolidate_threshold",
    ),
    "evaluation": ("use_gate", "gate_metric", "gate_mixed_weight", "sel_env_num", "test_env_num", "eval_test"),
    "model": ("optimizer", "target", "optimizer_backend", "target_backend", "reasoning_effort"),
    "env": ("name", "split_mode", "split_ratio", "split_seed", "split_dir", "data_path", "exec_timeout"),
}
"""The keys that both have, by section."""
_MODES = {
    **dict.fromkeys(("rewrite", "suggestions", "rewrite_suggestions", UpdateMode.SUGGESTIONS), UpdateMode.SUGGESTIONS),
    **dict.fromkeys(
        ("full_rewrite", "minibatch_full_rewrite", "skill_rewrite_minibatch", UpdateMode.FULL), UpdateMode.FULL
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the recorded configuration says.

    Attributes:
        sections: The keys that both have, under the names of skillgit; what it does not say is absent.
        digest: Digest of all of it.
        environment: The name of the environment; empty if it is not told.
        models: The models.
        seed: The seed; 0 if it is not told.
        rule: The gate.
        mode: What a proposal was.
        density: Whether the gate's scores hold a bonus for emphatic words.
    """

    sections: Mapping[str, Mapping[str, object]]
    digest: str
    environment: str
    models: Models
    seed: int
    rule: GateRule
    mode: UpdateMode
    density: bool

    @property
    def gauge(self) -> Gauge:
        """What the gate compares."""
        return Gauge(metric=self.rule.metric, soft_weight=self.rule.soft_weight)

    @classmethod
    def of(cls, config: Row) -> Settings:
        """Read the content of ``config.json``, flat or in sections."""
        flat = _flat(config)
        found = {
            section: {name: flat[f"{section}.{name}"] for name in names if f"{section}.{name}" in flat}
            for section, names in SECTIONED.items()
        }
        metric, weight = flat.get("evaluation.gate_metric"), number(flat.get("evaluation.gate_mixed_weight"))
        seed = flat.get("train.seed")
        return cls(
            sections={section: values for section, values in found.items() if values},
            digest=short_digest(config),
            environment=str(flat.get("env.name") or ""),
            models=Models(target=_model(flat, "target"), optimizer=_model(flat, "optimizer")),
            seed=seed if isinstance(seed, int) and not isinstance(seed, bool) else 0,
            rule=GateRule(
                metric=Metric(str(metric)) if metric in set(Metric) else Metric.HARD,
                soft_weight=0.5 if weight is None or not 0.0 <= weight <= 1.0 else weight,
                enabled=flat.get("evaluation.use_gate") is not False,
            ),
            mode=_MODES.get(str(flat.get("optimizer.skill_update_mode") or ""), UpdateMode.PATCH),
            density=flat.get("use_semantic_density", flat.get("evaluation.use_semantic_density")) is True,
        )


def _flat(config: Row) -> dict[str, object]:
    """Return dotted keys under the names of skillgit; a key that is not among them keeps its own."""
    dotted = {name: f"{section}.{name}" for section, names in SECTIONED.items() if section != "model" for name in names}
    found: dict[str, object] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            found |= {RENAMED.get(f"{key}.{name}", f"{key}.{name}"): part for name, part in value.items()}
        else:
            found[_sectioned(key, dotted)] = value
    return found


def _sectioned(key: str, dotted: Mapping[str, str]) -> str:
    if key in FLAT:
        return FLAT[key]
    return f"model.{key}" if key in SECTIONED["model"][2:] else dotted.get(key, key)


def _model(flat: Mapping[str, object], role: str) -> str:
    backend, name = str(flat.get(f"model.{role}_backend") or ""), str(flat.get(f"model.{role}") or "")
    return f"{backend}/{name}" if backend and name else name or backend
