"""Other names of keys: those of the reference implementation, flat ones included, and keys that have no effect here."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from skillgit.app.setup.config.files import Layer, Leaf, shown
from skillgit.app.setup.config.typed_values import ROLES, belongs, is_free, settings_of_backends
from skillgit.domain.did_you_mean import slips
from skillgit.errors import ConfigError

FLAT = {
    "env": "env.name",
    "edit_budget": "optimizer.learning_rate",
    "min_edit_budget": "optimizer.min_learning_rate",
    "meta_edit_budget": "optimizer.meta_learning_rate",
    "model_backend": "model.backend",
    "backend": "model.backend",
    "optimizer_model": "model.optimizer",
    "target_model": "model.target",
    "teacher_model": "model.optimizer",
    "student_model": "model.target",
}
"""Flat keys of the reference whose names differ from the last part of the sectioned key."""

_MINIMAX = ("region", "base_url", "temperature", "max_tokens")
RENAMED = {
    "model.teacher": "model.optimizer",
    "model.student": "model.target",
    "model.optimizer_model": "model.optimizer",
    "model.target_model": "model.target",
    "model.teacher_backend": "model.optimizer_backend",
    "model.student_backend": "model.target_backend",
    "optimizer.edit_budget": "optimizer.learning_rate",
    "optimizer.min_edit_budget": "optimizer.min_learning_rate",
    "model.codex_path": "model.codex_exec_path",
    "model.codex_bin": "model.codex_exec_path",
    "model.codex_cli_bin": "model.codex_exec_path",
    "model.codex_sandbox": "model.codex_exec_sandbox",
    "model.sandbox": "model.codex_exec_sandbox",
    "env.workers": "calls.concurrency",
    "env.max_tool_turns": "env.max_turns",
    "env.search_api_url": "env.search_url",
    "env.data_dirs": "env.docs_dir",
    "env.analyst_workers": "gradient.analyst_workers",
    "env.max_completion_tokens": "calls.max_output_tokens",
    **dict.fromkeys(("model.azure_endpoint", "model.azure_openai_endpoint"), "model.openai_chat_azure_endpoint"),
    **dict.fromkeys(
        ("model.azure_api_version", "model.azure_openai_api_version"), "model.openai_chat_azure_api_version"
    ),
    "model.azure_openai_auth_mode": "model.openai_chat_auth_mode",
    "model.azure_openai_ad_scope": "model.openai_chat_azure_ad_scope",
    "model.azure_openai_managed_identity_client_id": "model.openai_chat_azure_client_id",
    "model.qwen_chat_timeout_seconds": "model.qwen_chat_timeout_s",
    **{f"model.minimax_{name}": f"model.minimax_chat_{name}" for name in _MINIMAX},
}
RENAMED |= {
    f"model.{role}_{old.removeprefix('model.')}": f"model.{role}_{new.removeprefix('model.')}"
    for role in ROLES
    for old, new in RENAMED.items()
    if old.startswith(("model.azure_", "model.qwen_chat_", "model.minimax_"))
}

BACKENDS = {
    **dict.fromkeys(("azure", "azure-openai", "azure_openai"), "openai_chat"),
    **dict.fromkeys(("claude", "anthropic"), "claude_chat"),
    **dict.fromkeys(("compat", "openai-compatible", "openai_compatible_chat"), "openai_compatible"),
    "qwen": "qwen_chat",
    "minimax": "minimax_chat",
}
"""Other names of backends; ``openai`` is none, for it means the codex CLI there."""

MEANT = ("model.optimizer_backend", "model.target_backend")
"""What ``model.backend`` stands for; the judge has the optimizer's."""

_ANY = object()  # in place of the only value that a retired key may have


_REWRITE = "model.reasoning_effort and calls.max_output_tokens hold for rewrites too"
_DENSITY = "semantic density is not supported"
RETIRED: Mapping[str, tuple[str, object]] = {
    "train.steps_per_epoch": ("it follows from the train items and train.batch_size", _ANY),
    "gradient.max_analyst_rounds": ("analysts work in one round", _ANY),
    "model.qwen_chat_api_key": ("keys come from the environment", ""),
    "model.qwen_chat_enable_thinking": ("set model.qwen_chat_thinking_mode instead", False),
    "model.minimax_enable_thinking": ("set model.minimax_chat_thinking_mode instead", False),
    "evaluation.use_semantic_density": (_DENSITY, False),
    "evaluation.semantic_density_weight": (_DENSITY, _ANY),
    "evaluation.leading_words": (_DENSITY, _ANY),
    "model.codex_exec_full_auto": ("the sandbox is model.codex_exec_sandbox", _ANY),
    "model.codex_trace_to_optimizer": ("the optimizer reads what the agent answered", _ANY),
    "model.rewrite_reasoning_effort": (_REWRITE, _ANY),
    "env.max_api_workers": ("calls.concurrency says how many calls are in flight", _ANY),
    "env.search_mode": ("env.search_url is asked where it is set", _ANY),
    "env.max_queries_per_turn": ("each call of a tool is one query", _ANY),
    "model.rewrite_max_completion_tokens": (_REWRITE, _ANY),
}

REFERENCE_NAMES = frozenset({*FLAT, *RENAMED, *RETIRED})
"""Keys that only a configuration of the reference is written with."""

_FOREIGN = re.compile(
    r"model\.(?:optimizer_|target_)?"
    r"(?:azure|openai_compatible|qwen_chat|minimax|codex|claude|cursor|copilot)_[a-z_]+"
)
_SECRET = re.compile(r"model\..*(?:api_?key|secret|password|access_token)")


def canonical(layer: Layer, names: Collection[str], backends: Collection[str]) -> tuple[Layer, list[str]]:
    """Return ``layer`` under skillgit's names, notes for the user; ``backends``, those installed, own their keys."""
    result: Layer = {}
    spellings: dict[str, str] = {}
    notes_of_names: list[str] = []
    notes: list[str] = []
    for key, value in layer.items():
        name = _sectioned(key, names, backends)
        leaf = _only(value) if name == "env.docs_dir" else value
        _refuse_secret(name, leaf)
        if name in RETIRED:
            notes.append(_without_effect(name, leaf))
        elif _FOREIGN.fullmatch(name) and not _is_known(name, backends) and not _is_slip(name, backends):
            notes.append(f"{leaf.origin}: {name} has no effect: it belongs to a backend that is not installed")
        elif name in result:
            problem = f"{leaf.origin}: '{key}' and '{spellings[name]}' set the same key, {name}"
            raise ConfigError(problem, hint="keep one")
        else:
            result[name], spellings[name] = leaf, key
            notes_of_names.extend([f"{key} = {name}"] if name != key else [])
    if (mode := layer.get("env.search_mode")) is not None and mode.value == "offline" and "env.search_url" in result:
        notes.append(f"{result.pop('env.search_url').origin}: env.search_url has no effect: env.search_mode is offline")
    if notes_of_names:
        where = next(iter(layer.values())).origin.where
        source = where if where.startswith("-o") else where.rpartition(":")[0]
        notes.append(f"{source}: read under their names here: {', '.join(notes_of_names)}")
    return _expanded(result), notes


def _sectioned(key: str, names: Collection[str], backends: Collection[str]) -> str:
    if key in names:
        return key
    if "." in key:
        return RENAMED.get(key, key)
    if key in FLAT:
        return FLAT[key]
    candidates = [*names, *RETIRED, *RENAMED]
    same = [name for name in candidates if name.partition(".")[2] == key]
    if same:
        return RENAMED.get(same[0], same[0])
    model = f"model.{key}"
    return model if _FOREIGN.fullmatch(model) or _SECRET.fullmatch(model) or is_free(model, backends) else key


def _is_known(name: str, backends: Collection[str]) -> bool:
    """Say whether an installed backend reads ``name``, which is shaped like a backend's key."""
    role, _, setting = name.removeprefix("model.").partition("_")
    return bool(belongs(f"model.{setting}" if role in ROLES else name, backends))


def _is_slip(name: str, backends: Collection[str]) -> bool:
    """Say whether ``name`` is one slip from a key that an installed backend reads."""
    settings = settings_of_backends(backends)
    return any(slips(name, f"model.{backend}_{key}", 1) <= 1 for backend in backends for key in settings[backend])


def _refuse_secret(name: str, leaf: Leaf) -> None:
    if _SECRET.fullmatch(name) and leaf.value not in (None, ""):
        problem = f"{leaf.origin.place}: {name} holds a secret; a configuration is written into history"
        raise ConfigError(problem, hint="remove it and set it in the environment of the process")


def _without_effect(name: str, leaf: Leaf) -> str:
    reason, value = RETIRED[name]
    if value is not _ANY and not _says(leaf.value, value):
        raise ConfigError(f"{leaf.origin}: {name} is {shown(leaf.value)}; it must be {shown(value)}", hint=reason)
    return f"{leaf.origin}: {name} has no effect: {reason}"


def _only(leaf: Leaf) -> Leaf:
    """Return a list of one folder as that folder, since officeqa reads one."""
    if not isinstance(leaf.value, list):
        return leaf
    if len(leaf.value) != 1 or not isinstance(leaf.value[0], str):
        problem = f"{leaf.origin}: env.docs_dir is a list of {len(leaf.value)} folders, and one is read"
        raise ConfigError(problem, hint="put the documents into one folder, or name the one that holds them all")
    return replace(leaf, value=leaf.value[0], text=leaf.value[0])


def _says(value: object, expectation: object) -> bool:
    """Say whether a value is the one that is accepted, also in quotation marks, or is none at all."""
    if isinstance(value, str) and isinstance(expectation, bool):
        return value.strip().lower() in {"", str(expectation).lower()}
    return value is None or value == expectation


def _expanded(layer: Layer) -> Layer:
    """Let ``model.backend`` stand for both roles where the same layer does not name them; use our names of backends."""
    label = layer.pop("model.backend", None)
    result = layer if label is None else dict.fromkeys(MEANT, label) | layer
    for key in (*MEANT, "model.judge_backend"):
        leaf = result.get(key)
        name = BACKENDS.get(leaf.value) if leaf is not None and isinstance(leaf.value, str) else None
        if leaf is not None and name is not None:
            result[key] = replace(leaf, value=name, text=name)
    return result
