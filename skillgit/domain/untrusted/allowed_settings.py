"""Which settings of a recorded configuration are acted on.

The configuration of a run travels with it as evidence. One that was recorded on this machine is its owner's own word.
Anybody else's is data: a key counts only if it is in ``TAKEN``, and only with a value of the shape that it has there.
So it names no path, program, plug-in file, address, credential or sandbox, whatever keys are added later.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BACKENDS = frozenset(
    {"claude_chat", "minimax_chat", "offline", "openai_chat", "openai_compatible", "qwen_chat"},
)
"""The backends that start no program and write no file: all they do is to ask a model."""

_WORDS = re.compile(r"[A-Za-z ]{0,40}")
_WORD = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9_-]{0,99})?")
_MODEL = re.compile(r"(?!.*\.\.)(?:[A-Za-z0-9][A-Za-z0-9._:/@+ -]{0,199})?")
_RATIO = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?::[0-9]+(?:\.[0-9]+)?){2})?")
_FIELD = re.compile(r"(?:\w(?:[\w -]{0,98}\w)?)?")
_PATTERN = re.compile(r"(?!.*\.\.)[\w*?\[][\w*?.\[\]-]*(?:/[\w*?\[][\w*?.\[\]-]*)*")


_MOST = 10**9
_LONGEST_STOP = 100


def _number(value: object) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and abs(value) <= _MOST


def _flag(value: object) -> bool:
    return type(value) is bool


def _text(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _backend(value: object) -> bool:
    return isinstance(value, str) and value in {"", *BACKENDS}


def _patterns(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, str) and _PATTERN.fullmatch(entry) is not None for entry in value
    )


def _stop_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) and len(entry) <= _LONGEST_STOP for entry in value)


_word, _model = _text(_WORD), _text(_MODEL)

TAKEN: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("model.optimizer", "model.target", "model.judge"), _model),
    **dict.fromkeys(("model.optimizer_backend", "model.target_backend", "model.judge_backend"), _backend),
    **dict.fromkeys(
        (
            "model.reasoning_effort",
            "model.optimizer_reasoning_effort",
            "model.target_reasoning_effort",
            "model.judge_reasoning_effort",
        ),
        _word,
    ),
    **dict.fromkeys(
        (
            "train.num_epochs",
            "train.train_size",
            "train.batch_size",
            "train.accumulation",
            "train.seed",
            "train.patience",
            "train.placebo",
            "gradient.minibatch_size",
            "gradient.contrast",
            "gradient.merge_batch_size",
            "gradient.max_trajectory_tokens",
            "gradient.max_history_tokens",
            "gradient.deep_reflect_failures",
            "gradient.deep_reflect_successes",
            "optimizer.learning_rate",
            "optimizer.min_learning_rate",
            "optimizer.meta_learning_rate",
            "optimizer.slow_update_samples",
            "optimizer.skill_aware_consolidate_threshold",
            "optimizer.max_skill_tokens",
            "optimizer.max_file_tokens",
            "target.max_companion_tokens",
            "evaluation.gate_mixed_weight",
            "evaluation.min_coverage",
            "evaluation.sel_env_num",
            "evaluation.test_env_num",
            "gate.alpha",
            "gate.margin",
            "gate.repeats",
            "calls.max_output_tokens",
            "calls.temperature",
            "model.optimizer_top_p",
            "model.optimizer_seed",
            "model.target_top_p",
            "model.target_seed",
            "model.judge_top_p",
            "model.judge_seed",
            "env.split_seed",
            "env.limit",
            "env.max_steps",
            "env.max_turns",
            "env.history_length",
            "env.max_image_mb",
            "env.shuffle_seed",
            "env.tolerance",
            "env.program_timeout",
            "env.check_timeout",
            "env.tool_timeout",
            "env.search_max_num_results",
            "env.search_timeout_seconds",
        ),
        _number,
    ),
    **dict.fromkeys(
        (
            "train.stop_at_ceiling",
            "gradient.failure_only",
            "gradient.use_deep_reflect",
            "optimizer.use_slow_update",
            "optimizer.slow_update_gate_with_selection",
            "optimizer.use_meta_skill",
            "optimizer.use_meta_reflect",
            "optimizer.use_skill_aware_reflection",
            "optimizer.salvage",
            "evaluation.use_gate",
            "evaluation.eval_test",
            "evaluation.leak_lint",
            "gate.early_stop",
            "env.admissible_commands",
            "env.shuffle_choices",
            "env.use_theorem",
            "env.use_sketch",
            "env.explain",
            "env.oracle_pages",
            "env.use_local_tools",
        ),
        _flag,
    ),
    **dict.fromkeys(
        (
            "optimizer.lr_scheduler",
            "optimizer.lr_control_mode",
            "optimizer.skill_update_mode",
            "optimizer.aggregate",
            "optimizer.longitudinal_pair_policy",
            "optimizer.skill_aware_appendix_source",
            "target.companions",
            "evaluation.gate_metric",
            "gate.policy",
            "gate.no_regression",
            "env.name",
            "env.split_mode",
            "env.image_detail",
            "env.prompts",
            "env.scorer",
            "env.scope",
            "env.mode",
            "env.extract",
            "env.tools",
        ),
        _word,
    ),
    "env.sandbox": lambda value: value == "auto",
    "env.split_ratio": _text(_RATIO),
    "env.prompt_field": _text(_FIELD),
    "env.problem_version": _text(_WORDS),
    "optimizer.files": _patterns,
    "model.target_stop": _stop_texts,
}
"""Key to what values a stranger's configuration may give it; every other key needs the user's own word."""


@dataclass(frozen=True, slots=True)
class RecordedSettings:
    """The settings of a recorded configuration, divided by whether they may be acted on."""

    taken: Mapping[str, object]
    refused: Mapping[str, object] = field(default_factory=dict)  # key to value of what only the user may say


def of_own_run(settings: Mapping[str, object]) -> RecordedSettings:
    """Return all ``settings`` of a run that was begun on this machine."""
    return RecordedSettings(dict(settings))


def of_stranger(settings: Mapping[str, object]) -> RecordedSettings:
    """Return ``settings`` of a run that was begun elsewhere, each counting only if ``TAKEN`` says so.

    An empty value sets nothing, and is in neither part.
    """
    entries = {key: value for key, value in settings.items() if value is not None and value != ""}
    values = {key: value for key, value in entries.items() if key in TAKEN and TAKEN[key](value)}
    return RecordedSettings(values, {key: value for key, value in entries.items() if key not in values})
