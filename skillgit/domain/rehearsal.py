"""Whether models are language models, or the fixed rules of the embedded backend that rehearse a run.

Every plan, result, list and report asks here, so that no surface shows the score of a rehearsal as that of a model.
"""

from __future__ import annotations

OFFLINE = "offline"
"""The backend whose models are fixed rules."""
WORDS = "rehearsal, not language models"


def rehearsal(*, target: str, optimizer: str = "", judge: str = "") -> str:
    """Say that some of the models, each as ``backend/model``, are not language models; empty where all are.

    >>> rehearsal(target="offline/reader", optimizer="offline/analyst")
    'rehearsal, not language models'
    >>> rehearsal(target="openai_chat/gpt-5-mini", optimizer="offline/analyst")
    'rehearsal, not language models: the optimizer is offline/analyst'
    """
    models = {"target": target, "optimizer": optimizer, "judge": judge.partition("@")[0]}
    roles = {role: model for role, model in models.items() if model}
    offline = {role: model for role, model in roles.items() if is_offline(model)}
    if not offline:
        return ""
    if len(offline) == len(roles):
        return WORDS
    return f"{WORDS}: " + ", ".join(f"the {role} is {model}" for role, model in offline.items())


def is_offline(model: str) -> bool:
    """Say whether ``model``, as ``backend/model``, belongs to the embedded backend."""
    return model.partition("/")[0] == OFFLINE


def half_rehearsal(*, target: str, optimizer: str) -> str:
    """Warn of a run whose target or optimizer, and not both, is a language model; empty for any other."""
    if is_offline(target) == is_offline(optimizer):
        return ""
    model_role, rule_role = ("optimizer", "target") if is_offline(target) else ("target", "optimizer")
    models = {"target": target, "optimizer": optimizer}
    effect = (
        "its edits come from fixed rules"
        if rule_role == "optimizer"
        else "its scores say nothing about a language model"
    )
    return (
        f"warning: calls of the {model_role} {models[model_role]} are spent on a rehearsal: the {rule_role} is"
        f" {models[rule_role]}, and {effect}; set model.{rule_role}_backend and model.{rule_role}"
    )
