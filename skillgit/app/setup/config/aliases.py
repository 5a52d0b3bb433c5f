"""Other names of keys: those of the reference implementation, flat ones included, and keys that have no effect here."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skillgit.app.setup.config.files import OLD_KEYS, key_today, leaf_today
from skillgit.app.setup.config.typing import ROLES, belongs, is_free
from skillgit.app.setup.config.wording import shown
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection

    from skillgit.app.setup.config.files import Layer, Leaf

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
_BACKEND_KEYS = ("model.azure_", "model.qwen_chat_", "model.minimax_")
RENAMED |= {
    f"model.{role}_{old.removeprefix('model.')}": f"model.{role}_{new.removeprefix('model.')}"
    for role in ROLES
    for old, new in RENAMED.items()
    if old.startswith(_BACKEND_KEYS)
}

BACKENDS = {
    **dict.fromkeys(("azure", "azure-openai", "azure_openai"), "openai_chat"),
    **dict.fromkeys(("claude", "anthropic"), "claude_chat"),
    **dict.fromkeys(("compat", "openai-compatible", "openai_compatible_chat"), "openai_compatible"),
    "qwen": "qwen_chat",
    "minimax": "minimax_chat",
}
"""Other names of backends; ``openai`` is none, for it means the codex CLI there."""

SHORTHAND = "model.backend"
MEANT = ("model.optimizer_backend", "model.target_backend")
"""What ``model.backend`` stands for; the judge has the optimizer's."""

_ANY = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """A key of the reference that means nothing here.

    Attributes:
        reason: Why.
        value: The only value that is accepted; any, if it is not given.
    """

    reason: str
    value: object = _ANY


_REWRITE = "model.reasoning_effort and calls.max_output_tokens hold for rewrites too"
_DENSITY = "semantic density is not supported"
RETIRED = {
    "train.steps_per_epoch": Retired(reason="it follows from the train items and train.batch_size"),
    "gradient.max_analyst_rounds": Retired(reason="analysts work in one round"),
    "model.qwen_chat_api_key": Retired(reason="keys come from the environment", value=""),
    "model.qwen_chat_enable_thinking": Retired(reason="set model.qwen_chat_thinking_mode instead", value=False),
    "model.minimax_enable_thinking": Retired(reason="set model.minimax_chat_thinking_mode instead", value=False),
    "evaluation.use_semantic_density": Retired(reason=_DENSITY, value=False),
    "evaluation.semantic_density_weight": Retired(reason=_DENSITY),
    "evaluation.leading_words": Retired(reason=_DENSITY),
    "model.codex_exec_full_auto": Retired(reason="the sandbox is model.codex_exec_sandbox"),
    "model.codex_trace_to_optimizer": Retired(reason="the optimizer reads what the agent answered"),
    "model.rewrite_reasoning_effort": Retired(reason=_REWRITE),
    "env.max_api_workers": Retired(reason="calls.concurrency says how many calls are in flight"),
    "env.search_mode": Retired(reason="env.search_url is asked where it is set"),
    "env.max_queries_per_turn": Retired(reason="each call of a tool is one query"),
    "model.rewrite_max_completion_tokens": Retired(reason=_REWRITE),
}

_FOREIGN = re.compile(
    r"model\.(?:optimizer_|target_)?"
    r"(?:azure|openai_compatible|qwen_chat|minimax|codex|claude|cursor|copilot)_[a-z_]+"
)
_SECRET = re.compile(r"model\..*(?:api_?key|secret|password|access_token)")


def canonical(layer: Layer, known: Collection[str], backends: Collection[str]) -> tuple[Layer, list[str]]:
    """Return ``layer`` under the names of skillgit, and what to tell the user of it.

    Args:
        layer: Keys as they were written.
        known: The dotted keys that there are.
        backends: The installed backends; keys that begin with one of them are theirs.

    Raises:
        ConfigError: A key is set under two names, holds a secret, or asks for something that is not supported.
    """
    found: Layer = {}
    given: dict[str, str] = {}
    renamed: list[str] = []
    notes: list[str] = []
    for key, written in layer.items():
        dotted = _sectioned(key, known, backends)
        name, leaf = key_today(dotted), leaf_today(dotted, written)
        if name != dotted:
            less = "" if leaf is written else ", which does not count the first attempt"
            notes.append(
                f"warning: {leaf.origin}: {dotted} is now {name}{less}; the old name goes with the next release"
            )
        _refuse_secret(name, leaf)
        if name in RETIRED:
            notes.append(_without_effect(name, leaf))
        elif _FOREIGN.fullmatch(name) and not _is_known(name, backends):
            notes.append(f"{leaf.origin}: {name} has no effect: it belongs to a backend that is not installed")
        elif name in found:
            raise ConfigError(f"{leaf.origin}: '{key}' and '{given[name]}' set the same key, {name}", hint="keep one")
        else:
            found[name], given[name] = leaf, key
            renamed.extend([f"{key} = {name}"] if dotted != key else [])
    if renamed:
        place = next(iter(layer.values())).origin.where
        source = place if place.startswith("-o") else place.rpartition(":")[0]
        notes.append(f"{source}: read under their names here: {', '.join(renamed)}")
    return _expanded(found), notes


def _sectioned(key: str, known: Collection[str], backends: Collection[str]) -> str:
    if key in known:
        return key
    if "." in key:
        return RENAMED.get(key, key)
    if key in FLAT:
        return FLAT[key]
    dotted = [*known, *RETIRED, *RENAMED, *OLD_KEYS]
    same = [name for name in dotted if name.partition(".")[2] == key]
    if same:
        return RENAMED.get(same[0], same[0])
    model = f"model.{key}"
    return model if _FOREIGN.fullmatch(model) or _SECRET.fullmatch(model) or is_free(model, backends) else key


def _is_known(name: str, backends: Collection[str]) -> bool:
    """Say whether an installed backend reads ``name``, which is shaped like a backend's key."""
    role, _, setting = name.removeprefix("model.").partition("_")
    return bool(belongs(f"model.{setting}" if role in ROLES else name, backends))


def _refuse_secret(name: str, leaf: Leaf) -> None:
    if _SECRET.fullmatch(name) and leaf.value not in (None, ""):
        place = leaf.origin.where.partition("=")[0] if leaf.origin.kind == "override" else leaf.origin.where
        raise ConfigError(
            f"{place}: {name} holds a secret; a configuration is written into history",
            hint="remove it and set it in the environment of the process",
        )


def _without_effect(name: str, leaf: Leaf) -> str:
    retired = RETIRED[name]
    if retired.value is not _ANY and leaf.value != retired.value:
        raise ConfigError(
            f"{leaf.origin}: {name} is {shown(leaf.value)}; it must be {shown(retired.value)}", hint=retired.reason
        )
    return f"{leaf.origin}: {name} has no effect: {retired.reason}"


def _expanded(layer: Layer) -> Layer:
    """Let ``model.backend`` stand for both roles where the same layer does not name them; use our names of backends."""
    label = layer.pop(SHORTHAND, None)
    expanded = layer if label is None else dict.fromkeys(MEANT, label) | layer
    named = [key for key in (*MEANT, "model.judge_backend") if key in expanded]
    return expanded | {key: _with_our_name(expanded[key]) for key in named}


def _with_our_name(leaf: Leaf) -> Leaf:
    name = BACKENDS.get(leaf.value) if isinstance(leaf.value, str) else None
    return leaf if name is None else replace(leaf, value=name, text=name)
