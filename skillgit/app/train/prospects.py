"""What keeps a run from succeeding, as far as that is known before its first call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from skillgit.app.setup.estimate import largest_prompts
from skillgit.app.setup.models import ContextWindow, answering, is_of_provider, room
from skillgit.app.setup.plan import Plan
from skillgit.app.setup.run_setup import Setup
from skillgit.calls.pricing import context_table
from skillgit.domain.cost import Caps
from skillgit.domain.evaluation import Metric, Split
from skillgit.domain.gate_policies import Comparison, wanted
from skillgit.domain.skill import DOCUMENT, Skill
from skillgit.domain.statistics import sign_test
from skillgit.engine.method_settings import MethodSettings
from skillgit.engine.prompt_sections import file_tokens, skill_tokens

_ROOM = 50  # tokens of a rule; with less room every edit that adds one is discarded


def obstacles(setup: Setup, skill: Skill) -> tuple[str, ...]:
    """Return a sentence for each setting that lets no candidate, or hardly one, pass."""
    settings = setup.config.values.method
    return (
        *_lengths(settings, skill),
        *_gate(settings, len(setup.task.items[Split.SELECTION])),
        *_windows(setup, skill),
    )


def _lengths(settings: MethodSettings, skill: Skill) -> Iterator[str]:
    optimizer = settings.optimizer
    length, limit = skill_tokens(skill), optimizer.max_skill_tokens
    if optimizer.trainable.covers(DOCUMENT) and length + _ROOM > limit:
        yield _too_long(DOCUMENT, length, "optimizer.max_skill_tokens", limit)
    for path, length in file_tokens(skill).items():
        if optimizer.trainable.covers(path) and length + _ROOM > optimizer.max_file_tokens:
            yield _too_long(path, length, "optimizer.max_file_tokens", optimizer.max_file_tokens)


def _too_long(path: str, length: int, key: str, limit: int) -> str:
    return (
        f"warning: {path} has about {length:,} tokens and {key} allows {limit:,}, so that every edit that adds a rule"
        f" is discarded after it was paid for; shorten it, or set -o {key}={max(length, limit) * 3 // 2}"
    )


def _gate(settings: MethodSettings, items: int) -> Iterator[str]:
    """Say that the policy refuses even a candidate that solves every selection item, where the seed solves none."""
    rule = settings.rule()
    if not rule.enabled or not items:
        return
    best = Comparison(
        total=items,
        scale=1,
        count=items,
        fixed=items,
        broken=0,
        terms=rule.terms,
        p_value=lambda: sign_test(items, 0),
        counts_decide=rule.metric is Metric.HARD,
    )
    if not rule.policy.accepts(best):
        yield (
            f"warning: no candidate can pass: gate.policy={rule.policy.name} wants"
            f" {wanted(rule.policy.name, rule.terms)}, and {items} selection items cannot show that even if all are"
            " gained; give more selection items, or set -o gate.policy=strict"
        )


def _windows(setup: Setup, skill: Skill) -> Iterator[str]:
    """Say which model takes fewer tokens than its longest prompt has, by the configuration or what is known of it."""
    windows = setup.config.values.model.context_window
    prompts = largest_prompts(setup.config.values.method, setup.task, skill)
    for role, way in setup.routes.items():
        route = answering(way)
        tokens = windows.get(route.model) or (
            context_table().find(route.model) if is_of_provider(route.server) else None
        )
        fit = room(route, prompts.get(role, 0), ContextWindow(tokens=tokens, source="configuration"))
        if fit.fit == "too long":
            yield (
                f"warning: the longest prompt of the {role} has about {fit.prompt:,} tokens, and {route.name} takes"
                f" {tokens:,}; take shorter items or another model"
            )


def with_unpaid(plan: Plan, caps: Caps) -> Plan:
    """Return ``plan``, with the cap that does not pay for the baseline, without which there is no step."""
    baseline = [row for row in plan.stages if row.stage == "baseline"]
    tokens = sum(row.tokens_in + row.tokens_out for row in baseline)
    usd = sum(row.usd or 0.0 for row in baseline)
    costs: Mapping[str, tuple[float | None, float]] = {
        "--max-tokens": (caps.max_tokens, tokens),
        "--max-usd": (caps.max_usd, usd),
    }
    sentences = [
        f"warning: {option} {cap:g} does not pay for the baseline, which takes about {cost:g}"
        for option, (cap, cost) in costs.items()
        if cap is not None and cap < cost
    ]
    return replace(plan, notes=(*sentences, *plan.notes))
