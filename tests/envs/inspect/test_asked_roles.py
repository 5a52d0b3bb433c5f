"""A scorer that asks a model whom nobody plays is refused before any model is asked."""

from __future__ import annotations

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai.model import get_model
from inspect_ai.scorer import Score, accuracy, match, model_graded_fact, model_graded_qa, scorer

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError
from skillgit_envs.inspect.asked_roles import asked_roles


async def asked(text: str, role: str = "critic") -> str:
    return (await get_model(role=role).generate(text)).completion


async def helped(text: str) -> str:
    return (await get_model(role="critic").generate(text)).completion


@scorer(metrics=[accuracy()])
def by_role():
    async def score(state, _):
        return Score(value=(await get_model(role="critic").generate(state.output.completion)).completion)

    return score


@scorer(metrics=[accuracy()])
def by_helper():
    async def score(state, _):
        return Score(value=await helped(state.output.completion))

    return score


@scorer(metrics=[accuracy()])
def by_grader():
    grader = model_graded_qa()

    async def score(state, target):
        return await grader(state, target)

    return score


@scorer(metrics=[accuracy()])
def by_several():
    graders = [model_graded_fact(model_role="critic"), match()]

    async def score(state, target):
        return await graders[0](state, target)

    return score


@scorer(metrics=[accuracy()])
def by_itself():
    async def score(state, _):
        return Score(value=(await get_model().generate(state.output.completion)).completion)

    return score


@scorer(metrics=[accuracy()])
def by_default():
    async def score(_state, _):
        return Score(value=(await get_model(role="critic", default="mockllm/model").generate("x")).completion)

    return score


@scorer(metrics=[accuracy()])
def by_name():
    async def score(_state, _):
        return Score(value=(await get_model("mockllm/model").generate("x")).completion)

    return score


@scorer(metrics=[accuracy()])
def by_variable():
    async def score(state, _):
        return Score(value=await asked(state.output.completion))

    return score


@scorer(metrics=[accuracy()])
def by_nobody():
    async def score(state, target):
        return Score(value=state.output.completion == target.text)

    return score


@pytest.mark.parametrize(
    ("made", "roles"),
    [
        (by_role, {"critic"}),
        (by_helper, {"critic"}),
        (by_grader, {"grader"}),
        (by_several, {"critic"}),
        (by_itself, {""}),
        (model_graded_qa, {"grader"}),
        (lambda: model_graded_qa(model_role="critic"), {"critic"}),
        (lambda: model_graded_fact(model_role=None), {""}),
        (lambda: model_graded_qa(model="mockllm/model"), set()),
        (by_default, set()),
        (by_name, set()),
        (by_variable, set()),
        (by_nobody, set()),
        (match, set()),
    ],
)
def test_the_roles_that_are_certain_are_found(made, roles):
    assert asked_roles(made()) == roles


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"task_args": "role=critic"}, "asks a model as critic, and env.roles does not say which"),
        ({"task_args": "role="}, "asks a model, and env.roles does not say which"),
        ({"task_args": "role=critic", "roles": "user=judge"}, "asks a model as critic"),
    ],
)
def test_a_role_that_nobody_plays_is_refused_where_the_items_are_read(made, options, said):
    with pytest.raises(ConfigError) as caught:
        made("graded", **options).items(Split.TRAIN)
    assert said in caught.value.message
    assert "env.roles" in caught.value.hint


@pytest.mark.parametrize(
    "options", [{}, {"task_args": "role=critic", "roles": "critic=judge"}, {"roles": "grader=target"}]
)
def test_a_role_that_is_played_is_taken(made, options):
    assert made("graded", **options).items(Split.TRAIN)
