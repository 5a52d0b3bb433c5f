from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.config.resolved import LOCAL, is_neutral
from skillgit.app.setup.config.schema import EnvSettings, keys

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.setup.config.resolved import ResolvedConfig
    from skillgit.app.workspace.context import Context

    Load = Callable[..., ResolvedConfig]


def test_equal_configurations_have_equal_digests_however_they_are_written(load: Load, context: Context):
    one = load("train: {batch_size: 15, seed: 42}\nenv: {name: searchqa}")
    other = load("env: searchqa\nbatch_size: 15\n")
    third = load_config(context, "searchqa/default", ["train.batch_size=15"])
    assert one.digest == other.digest == third.digest
    assert re.fullmatch(r"[0-9a-f]{12}", one.digest)


@pytest.mark.parametrize(
    "override",
    [
        "train.seed=1",
        "calls.max_output_tokens=9",
        "calls.temperature=0",
        "model.qwen_chat_max_tokens=1",
        "env.limit=5",
        "model.target=x",
    ],
)
def test_what_can_change_results_changes_the_digest(load: Load, override: str):
    assert load("").digest != load("", override).digest


@pytest.mark.parametrize(
    "override",
    [
        "budget.max_calls=1",
        "budget.max_usd=1",
        "calls.concurrency=1",
        "calls.timeout_s=1",
        "env.exec_timeout=1",
        "env.data_path=elsewhere.json",
        "env.out_root=x",
        "gradient.analyst_workers=1",
        "model.prices={m: [1, 2]}",
    ],
)
def test_what_cannot_change_results_does_not(load: Load, override: str):
    assert load("").digest == load("", override).digest


def test_the_keys_left_out_exist():
    assert set(keys(EnvSettings)) >= LOCAL
    assert all(is_neutral(key) for key in LOCAL)


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("budget.max_calls=7", "budget.max_calls", 7),
        ("calls.concurrency=3", "calls.concurrency", 3),
        ("calls.requests_per_minute=20", "calls.requests_per_minute", 20),
        ("env.exec_timeout=9", "env.exec_timeout", 9.0),
        ("gradient.analyst_workers=2", "gradient.analyst_workers", 2),
        ("model.prices={m: [1, 2]}", "model.prices.m", [1.0, 2.0]),
        ("model.context_window={m: 99}", "model.context_window.m", 99),
        ("train.preflight=false", "train.preflight", False),
    ],
)
def test_how_a_machine_goes_about_its_work_is_in_no_commit(load: Load, override: str, key: str, value: object):
    plain, paced = load(""), load("", override)
    assert paced.document == plain.document
    assert plain.local == {}
    assert paced.local == {key: value}


def test_where_a_backend_is_reached_may_change_and_what_it_answers_may_not(context):
    here, there, other = (
        load_config(context, "demo", ["model.target_backend=qwen_chat", "model.target=m", *more])
        for more in (
            ["model.qwen_chat_base_url=http://127.0.0.1:1/v1"],
            ["model.qwen_chat_base_url=http://127.0.0.1:2/v1"],
            ["model.qwen_chat_temperature=0.5"],
        )
    )
    assert here.digest == there.digest != other.digest
    assert here.variant("target") == ""
    assert other.variant("target") != ""
