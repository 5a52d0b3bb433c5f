"""Which settings of a recorded configuration are acted on.

The configuration of a run travels with it as evidence. One that was recorded on this machine is its owner's own word.
Anybody else's is data: a key counts only if it is in ``TAKEN``, and only with a value of the shape that it has there.
So it names no path, program, plug-in file, address, credential or sandbox, even as keys are added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

BACKENDS = frozenset({"claude_chat", "minimax_chat", "offline", "openai_chat", "openai_compatible", "qwen_chat"})
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


def _text(pattern: re.Pattern[str]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


def _list_of(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _flag(value: object) -> bool:
    return type(value) is bool


def _backend(value: object) -> bool:
    return isinstance(value, str) and value in {"", *BACKENDS}


_word, _model = _text(_WORD), _text(_MODEL)

_KEYS = (
    (_model, "model", "optimizer target judge"),
    (_backend, "model", "optimizer_backend target_backend judge_backend"),
    (_word, "model", "reasoning_effort optimizer_reasoning_effort target_reasoning_effort judge_reasoning_effort"),
    (_number, "train", "num_epochs train_size batch_size accumulation seed patience placebo round_steps plateau"),
    (
        _number,
        "gradient",
        "minibatch_size contrast merge_batch_size max_trajectory_tokens max_history_tokens deep_reflect_failures",
    ),
    (_number, "gradient", "deep_reflect_successes samples"),
    (
        _number,
        "optimizer",
        "learning_rate min_learning_rate meta_learning_rate slow_update_samples skill_aware_consolidate_threshold",
    ),
    (_number, "optimizer", "max_skill_tokens max_file_tokens"),
    (_number, "target", "max_companion_tokens"),
    (_number, "evaluation", "gate_mixed_weight min_coverage sel_env_num test_env_num"),
    (_number, "gate", "alpha margin repeats screening token_margin max_tokens_per_item"),
    (_number, "calls", "max_output_tokens temperature"),
    (_number, "model", "optimizer_top_p optimizer_seed target_top_p target_seed judge_top_p judge_seed"),
    (
        _number,
        "env",
        "split_seed limit max_steps max_turns history_length max_image_mb shuffle_seed tolerance program_timeout",
    ),
    (_number, "env", "check_timeout tool_timeout search_max_num_results search_timeout_seconds documents test_timeout"),
    (_number, "env", "pass_at full_reward window repeats"),
    (_flag, "train", "stop_at_ceiling"),
    (_flag, "gradient", "failure_only use_deep_reflect"),
    (_flag, "optimizer", "use_slow_update slow_update_gate_with_selection use_meta_skill use_meta_reflect"),
    (_flag, "optimizer", "use_skill_aware_reflection salvage"),
    (_flag, "evaluation", "use_gate eval_test leak_lint"),
    (_flag, "gate", "early_stop"),
    (_flag, "env", "admissible_commands shuffle_choices use_theorem use_sketch explain oracle_pages use_local_tools"),
    (
        _word,
        "optimizer",
        "lr_scheduler lr_control_mode skill_update_mode aggregate longitudinal_pair_policy skill_aware_appendix_source",
    ),
    (_word, "optimizer", "budget_unit"),
    (_word, "target", "companions"),
    (_word, "evaluation", "gate_metric"),
    (_word, "gate", "policy no_regression objective"),
    (_word, "train", "strategy"),
    (_word, "env", "name split_mode image_detail prompts scorer scope mode extract tools subset revision documents_in"),
    (_word, "env", "dataset_name reward client edition"),
)
"""Checks of values, each with a section and the keys of it that take such values."""
TAKEN: Mapping[str, Callable[[object], bool]] = {
    **{f"{section}.{key}": check for check, section, keys in _KEYS for key in keys.split()},
    "env.sandbox": lambda value: value == "auto",
    "env.split_ratio": _text(_RATIO),
    "env.prompt_field": _text(_FIELD),
    "env.problem_version": _text(_WORDS),
    "gate.pinned": lambda value: isinstance(value, str) and value.startswith("type:"),  # every other value is a path
    "optimizer.files": _list_of(_text(_PATTERN)),
    "train.strategies": _list_of(_word),
    "model.target_stop": _list_of(lambda entry: isinstance(entry, str) and len(entry) <= _LONGEST_STOP),
}
"""Key to what values a stranger's configuration may give it; every other key needs the user's own word."""


@dataclass(frozen=True, slots=True)
class RecordedSettings:
    """The settings of a recorded configuration, divided by whether they may be acted on."""

    settings: Mapping[str, object]
    refusals: Mapping[str, object] = field(default_factory=dict)  # key to value of what only the user may say


def of_own_run(settings: Mapping[str, object]) -> RecordedSettings:
    return RecordedSettings(dict(settings))


def of_stranger(settings: Mapping[str, object]) -> RecordedSettings:
    """Return ``settings`` of a run that was begun elsewhere, by what ``TAKEN`` says; an empty value sets nothing."""
    entries = {key: value for key, value in settings.items() if value is not None and value != ""}
    values = {key: value for key, value in entries.items() if key in TAKEN and TAKEN[key](value)}
    return RecordedSettings(values, {key: value for key, value in entries.items() if key not in values})
