"""Before a run: every model that is not on this machine answers once, and the longest prompts fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from skillgit.app.setup.config.schema import ModelSettings
from skillgit.app.setup.estimate import largest_prompts
from skillgit.app.setup.models import ESTIMATED, context_of, look, room
from skillgit.app.setup.planner import PREFLIGHT
from skillgit.app.setup.run_setup import Setup
from skillgit.calls.client import Calls
from skillgit.calls.route import QUESTION
from skillgit.domain.skill import Skill
from skillgit.engine.concurrency import ordered, side_by_side
from skillgit.errors import ConfigError

NAME_JUDGE = "name one with model.judge_backend and model.judge"


def lacks_judge(setup: Setup) -> str:
    """Return in a sentence that answers are to be judged and the judge cannot do that; empty if all is well.

    The default backend only rehearses. It compares with a right answer, which is all that most environments ask, but
    other models are not paid for such verdicts; criteria, as tasks of your own have them, are beyond it anyway.
    """
    judge, name = setup.routes.get("judge"), setup.config.values.env.name
    if judge is None or judge.backend_name != ModelSettings.model_fields["optimizer_backend"].default:
        return ""
    is_paid, has_criteria = bool(setup.asked_roles), name == "tasks"
    return f"{name} scores by a judge, and {judge.name} cannot judge" if is_paid or has_criteria else ""


def check_judge(setup: Setup) -> None:
    """Raise a ConfigError if answers are to be judged and the judge cannot do that."""
    if problem := lacks_judge(setup):
        raise ConfigError(problem, hint=NAME_JUDGE)


async def preflight(setup: Setup, calls: Calls, skill: Skill, remark: Callable[[str], None]) -> None:
    """Check that the model of every role that is not on this machine answers, and that the longest prompts fit."""
    roles, limit = setup.asked_roles, len(setup.routes)
    check_judge(setup)
    if not roles:
        return
    await ordered(lambda role: look(setup.routes[role]), roles, limit=limit)
    windows = setup.config.values.model.context_window
    contexts, estimates = await side_by_side(
        ordered(lambda role: context_of(setup.routes[role], windows), roles, limit=limit), ask_each(setup, calls, roles)
    )
    for sentence in estimates:
        remark(sentence)
    prompts = largest_prompts(setup.config.values.method, setup.task, skill)
    for role, context in zip(roles, contexts, strict=True):
        route = setup.routes[role]
        fit = room(route, prompts[role], context)
        longest = f"longest prompt of the {role} has about {fit.prompt:,} tokens"
        if fit.fit == "too long":
            raise ConfigError(
                f"the {longest}, but {route.name} takes {fit.context:,}",
                hint="take shorter items or another model; or set model.context_window, or train.preflight=false",
            )
        if fit.fit == "near":
            rest = f"{route.name} takes {fit.context:,} in all, so that some calls may be refused."
            remark(f"The {longest} and its reply may have {fit.reply:,}; {rest}")


async def ask_each(setup: Setup, calls: Calls, roles: Iterable[str]) -> list[str]:
    """Let the models of ``roles`` answer once, all at the same time; return which tokens the gate has by estimate."""
    remote = setup.asked_roles
    questions = [role for role in roles if role in remote]
    replies = await ordered(
        lambda role: calls.call(role, PREFLIGHT, QUESTION, draw=(PREFLIGHT, role)), questions, limit=len(setup.routes)
    )
    if not setup.rule.counts_tokens or "target" not in questions:
        return []
    reply, route = replies[questions.index("target")], setup.routes["target"]
    if reply.usage.tokens_in and reply.usage.tokens_out and (reply.counted or not route.backend.info.installs_skills):
        return [] if reply.counted else [ESTIMATED.format(route.name)]
    raise ConfigError(
        f"gate.objective is {setup.rule.objective}, and {route.name} does not count the tokens of its answers",
        hint="-o gate.objective=score compares scores alone",
    )
