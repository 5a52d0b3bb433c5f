from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skillgit.app.setup.config.aliases import FLAT, RENAMED, RETIRED
from skillgit.app.setup.config.resolved import EARLIER_NAMES
from skillgit.app.setup.config.schema import EnvSettings, keys
from skillgit.app.setup.config.typed_values import is_free
from skillgit.errors import ConfigError
from skillgit.plugin.registry import BACKENDS, ENVIRONMENTS, installed, load_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.setup.config.resolved import ResolvedConfig

    Load = Callable[..., ResolvedConfig]


def test_a_flat_file_of_the_reference_is_read_and_noted(load: Load):
    config = load(
        "env: searchqa\nbatch_size: 12\nedit_budget: 6\nmin_edit_budget: 1\noptimizer_model: m\nmax_turns: 1\n"
    )
    assert config.values.env.name == "searchqa"
    assert config.values.train.batch_size == 12
    assert (config.values.optimizer.learning_rate, config.values.optimizer.min_learning_rate) == (6, 1)
    assert config.values.model.optimizer == "m"
    note, wording = config.notes
    assert wording.startswith("env.prompts is own")
    assert note.startswith("my.yaml: read under their names here: ")
    assert "edit_budget = optimizer.learning_rate" in note
    assert "max_turns = env.max_turns" in note


def test_teacher_and_student_are_optimizer_and_target(load: Load):
    config = load("model: {teacher: big, student: small}\nenv: {name: searchqa}", "model.student_backend=offline")
    assert (config.values.model.optimizer, config.values.model.target) == ("big", "small")
    assert str(config.origin("model.optimizer")) == "my.yaml:1"


def test_flat_overrides_are_read_too(load: Load):
    config = load("", "batch_size=3", "workers=4")
    assert config.values.train.batch_size == 3
    assert config.values.calls.concurrency == 4


def test_one_key_under_two_names_is_refused(load: Load):
    with pytest.raises(ConfigError, match=r"'teacher' and 'optimizer'|'model\.teacher' and 'model\.optimizer'"):
        load("model: {optimizer: a, teacher: b}\nenv: {name: searchqa}")


def test_backend_stands_for_both_roles_of_its_layer(load: Load):
    config = load("model: {backend: offline}\nenv: {name: searchqa}")
    assert (config.values.model.optimizer_backend, config.values.model.target_backend) == ("offline", "offline")
    assert str(config.origin("model.target_backend")) == "my.yaml:1"
    with pytest.raises(ConfigError, match=r"my\.yaml:1: model\.optimizer_backend is 'acme', which is not installed"):
        load("model: {backend: acme}\nenv: {name: searchqa}")
    explicit = load(
        "model: {backend: acme, optimizer_backend: offline, target_backend: offline}\nenv: {name: searchqa}"
    )
    assert explicit.values.model.target_backend == "offline"


def test_retired_keys_are_noted_and_refused_where_they_ask_for_something(load: Load):
    config = load("train: {accumulation: 2, steps_per_epoch: 9}\nenv: {name: searchqa}", "max_analyst_rounds=3")
    *without_effect, wording = config.notes
    assert len(without_effect) == 2
    assert all("has no effect" in note for note in without_effect)
    assert wording.startswith("env.prompts is own")
    assert config.values.train.accumulation == 2
    assert load("optimizer: {use_skill_aware_reflection: true}\nenv: {name: searchqa}").notes == ()


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("edits", "patch"),
        *((name, "rewrite_from_suggestions") for name in ("rewrite", "suggestions", "rewrite_suggestions")),
        *(
            (name, "full_rewrite_minibatch")
            for name in ("full_rewrite", "minibatch_full_rewrite", "skill_rewrite_minibatch")
        ),
    ],
)
def test_update_modes_have_the_other_names_of_the_reference(load: Load, written: str, mode: str):
    assert load("", f"skill_update_mode={written}").values.optimizer.skill_update_mode == mode


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        *((name, "fixed") for name in ("manual", "scheduler", "scheduled")),
        *((name, "autonomous") for name in ("auto", "optimizer")),
        *((name, "none") for name in ("off", "no_lr", "none")),
    ],
)
def test_control_modes_have_the_other_names_of_the_reference(load: Load, written: str, mode: str):
    assert load("", f"lr_control_mode={written}").values.optimizer.lr_control_mode == mode
    assert load(f"optimizer: {{lr_control_mode: {written}}}\nenv: {{name: searchqa}}").values.optimizer.control == mode


@pytest.mark.parametrize("key", ["skill_update_mode", "lr_control_mode", "aggregate"])
def test_an_unknown_mode_is_an_error_and_not_the_default(load: Load, key: str):
    with pytest.raises(ConfigError, match=rf"optimizer\.{key} is 'pach'; it must be"):
        load("", f"{key}=pach")


@pytest.mark.parametrize(
    ("written", "backend"),
    [("azure_openai", "openai_chat"), ("anthropic", "claude_chat"), ("qwen", "qwen_chat"), ("offline", "offline")],
)
def test_backends_have_the_names_of_the_reference_too(load: Load, written: str, backend: str):
    both = load(f"model: {{backend: {written}}}\nenv: {{name: searchqa}}").values.model
    assert (both.target_backend, both.optimizer_backend) == (backend, backend)
    one = load("env: {name: searchqa}", f"model.target_backend={written}").values.model
    assert (one.target_backend, one.optimizer_backend) == (backend, "offline")


def test_settings_of_backends_have_the_names_of_the_reference_too(load: Load):
    text = "env: searchqa\nazure_openai_endpoint: https://x\nminimax_region: cn_zh\nqwen_chat_timeout_seconds: 9\n"
    openai, minimax, qwen = (
        load(text, f"model.target_backend={name}").settings("target")
        for name in ("openai_chat", "minimax_chat", "qwen_chat")
    )
    assert (openai, minimax, qwen) == ({"azure_endpoint": "https://x"}, {"region": "cn_zh"}, {"timeout_s": 9})
    with pytest.raises(ConfigError, match="enable_thinking is true"):
        load("", "model.qwen_chat_enable_thinking=true")


def test_keys_of_backends_that_are_not_installed_are_noted(load: Load):
    config = load("model: {cursor_exec_path: '', target_copilot_chat_timeout: 3}\nenv: {name: searchqa}")
    assert len(config.notes) == 2
    assert "cursor_exec_path" not in config.document["model"]


@pytest.mark.parametrize(
    "key", ["model.offline_api_key", "model.azure_openai_api_key", "qwen_chat_api_key", "api_key", "offline_secret"]
)
def test_a_secret_is_refused_and_never_repeated(load: Load, key: str):
    with pytest.raises(ConfigError) as caught:
        load("", f"{key}=hunter2")
    assert "hunter2" not in caught.value.message + caught.value.hint


def test_an_empty_secret_is_nothing(load: Load):
    assert load("model: {azure_openai_api_key: ''}\nenv: {name: searchqa}").notes


def test_every_other_name_leads_to_a_key():
    infos = [load_environment(plugin.name, Path()).info for plugin in installed(ENVIRONMENTS)]
    options = {f"env.{option.name}" for info in infos for option in info.options}
    known = set(keys(EnvSettings)) | set(RETIRED) | {"model.backend"} | options
    assert set(FLAT.values()) <= known
    backends = [plugin.name for plugin in installed(BACKENDS)]
    assert {name for name in RENAMED.values() if not is_free(name, backends)} <= known
    assert not known & set(RENAMED)


@pytest.mark.parametrize("key", [*EARLIER_NAMES, *(key.partition(".")[2] for key in EARLIER_NAMES)])
def test_a_name_that_only_early_histories_hold_is_an_unknown_key(load: Load, key: str):
    section, _, name = key.rpartition(".")
    lines = f"{section}: {{{name}: 3}}\n" if section else f"{name}: 3\n"
    for words in ((f"{lines}env: {{name: searchqa}}",), ("", f"{key}=3")):
        with pytest.raises(ConfigError, match=rf"no key '{re.escape(key)}'"):
            load(*words)
