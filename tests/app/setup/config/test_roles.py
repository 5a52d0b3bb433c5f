from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skillgit.app.setup.config.resolved import recorded_settings
from skillgit.app.setup.config.typed_values import settings_of
from skillgit.domain.untrusted.allowed_settings import of_stranger
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillgit.app.setup.config.resolved import ResolvedConfig
    from skillgit.app.workspace.context import Context

    Load = Callable[..., ResolvedConfig]

BACKENDS = ("openai_chat", "qwen_chat")
APART = ("model.backend=openai_chat", "model.openai_chat_base_url=http://all/v1", "model.target_base_url=http://t/v1")


def test_the_nearer_a_key_is_to_the_role_the_more_it_counts():
    given = {
        "openai_chat_api": "chat",
        "openai_chat_timeout_s": 1,
        "openai_chat_base_url": "all",
        "target_timeout_s": 2,
        "target_base_url": "role",
        "target_openai_chat_base_url": "both",
        "target_qwen_chat_thinking_mode": "enabled",
        "optimizer_api": "responses",
    }
    target = settings_of(given, ("target",), "openai_chat", BACKENDS)
    assert target == {"api": "chat", "timeout_s": 2, "base_url": "both"}
    assert settings_of(given, ("optimizer",), "openai_chat", BACKENDS)["api"] == "responses"
    assert settings_of(given, ("target",), "qwen_chat", BACKENDS)["thinking_mode"] == "enabled"
    both = settings_of(given | {"judge_timeout_s": 3}, ("optimizer", "judge"), "openai_chat", BACKENDS)
    assert both == {"api": "responses", "timeout_s": 3, "base_url": "all"}


def test_roles_have_settings_of_their_own_and_the_judge_has_the_optimizers(load: Load):
    config = load("", *APART, "model.optimizer_api_key_env=MINE", "model.judge_timeout_s=9.0")
    assert config.settings("target") == {"base_url": "http://t/v1"}
    assert config.settings("optimizer") == {"base_url": "http://all/v1", "api_key_env": "MINE"}
    assert config.settings("judge") == config.settings("optimizer") | {"timeout_s": 9.0}
    other = load("", *APART, "model.optimizer_api_key_env=MINE", "model.judge_backend=qwen")
    assert (other.backend("judge"), other.settings("judge")) == ("qwen_chat", {})
    flat = load("env: searchqa\ntarget_base_url: http://t/v1\nmodel_backend: openai_chat\n")
    assert flat.settings("target") == {"base_url": "http://t/v1"}


def test_where_a_role_is_reached_is_no_part_of_the_digest_and_what_it_answers_is(load: Load):
    plain = load("", "model.backend=openai_chat")
    for key in ("base_url=http://t/v1", "api_key_env=MINE", "timeout_s=3.0", "azure_endpoint=https://a"):
        assert load("", "model.backend=openai_chat", f"model.target_{key}").digest == plain.digest
    warm = load("", "model.backend=openai_chat", "model.target_temperature=0.5")
    assert warm.digest != plain.digest
    assert (warm.variant("target") != "", warm.variant("optimizer")) == (True, "")
    assert load("", "model.context_window={m: 5}", "train.preflight=false").digest == load("").digest


def test_keys_of_the_reference_for_a_role_count_only_for_its_backend(load: Load):
    text = "env: searchqa\ntarget_azure_openai_endpoint: https://t\noptimizer_qwen_chat_timeout_seconds: 9\n"
    azure = load(text, "model.backend=azure_openai")
    assert azure.settings("target") == {"azure_endpoint": "https://t"}
    assert azure.settings("optimizer") == {}
    assert load(text, "model.optimizer_backend=qwen").settings("optimizer") == {"timeout_s": 9}


@pytest.mark.parametrize("key", ["model.target_backnd", "model.optimizer_modle", "model.judge_backends"])
def test_a_misspelt_key_of_a_role_is_no_setting_of_its_backend(load: Load, key: str):
    with pytest.raises(ConfigError, match="there is no key"):
        load("", f"{key}=x")


@pytest.mark.parametrize("key", ["target_api_key", "judge_openai_chat_api_key", "optimizer_secret"])
def test_a_secret_of_a_role_is_refused(load: Load, key: str):
    with pytest.raises(ConfigError, match="holds a secret") as caught:
        load("", f"model.{key}=hunter2")
    assert "hunter2" not in caught.value.message


def test_settings_of_a_role_in_a_recorded_configuration_are_not_trusted(load: Load):
    config = load("", *APART)
    refused = of_stranger(recorded_settings(config.document)).refusals
    assert sorted(refused) == ["model.openai_chat_base_url", "model.target_base_url"]


def test_paths_of_backends_refer_to_the_folder_of_their_file(load: Load, context: Context, write: Callable[..., Path]):
    write("sub/replies.jsonl", "")
    text = "model: {target_backend: replay, optimizer_backend: handoff, replay_path: replies.jsonl, optimizer_dir: out}"
    config = load(f"{text}\nenv: {{name: searchqa}}", name="sub/my.yaml")
    assert config.settings("target") == {"path": str(context.directory / "sub/replies.jsonl")}
    assert config.settings("optimizer") == {"dir": str(context.directory / "sub/out")}
    assert config.document["model"]["replay_path"] == "replies.jsonl", "it is recorded as it was written"
    here = load("", "model.target_backend=replay", "model.replay_path=sub/replies.jsonl")
    assert here.settings("target") == {"path": str(context.directory / "sub/replies.jsonl")}
    program = load("", "model.target_backend=codex_exec", "model.codex_exec_path=codex")
    assert program.settings("target") == {"path": "codex"}, "a program is looked for on PATH"


def test_contexts_are_merged_entry_by_entry(load: Load):
    config = load("model: {context_window: {a: 5, b: 6}}\nenv: {name: searchqa}", "model.context_window={a: 7}")
    assert config.values.model.context_window == {"a": 7, "b": 6}
    assert config.local == {"model.context_window.a": 7, "model.context_window.b": 6}
    with pytest.raises(ConfigError, match=r"model\.context_window\.a is 0; it must be greater than 0"):
        load("", "model.context_window={a: 0}")


def test_sampling_is_set_for_each_role_alone(load: Load):
    config = load("", "model.target_top_p=0.9", "model.optimizer_seed=7", "model.target_stop=END")
    model = config.values.model
    assert (model.target_top_p, model.optimizer_top_p, model.judge_top_p) == (0.9, None, None)
    assert (model.target_seed, model.optimizer_seed, model.target_stop) == (None, 7, ("END",))
    assert config.settings("target") == config.settings("optimizer") == {}, "they are no settings of a backend"
    listed = load('model: {target_stop: [END, "\\n\\n"]}\nenv: {name: searchqa}')
    assert listed.values.model.target_stop == ("END", "\n\n")
    again = of_stranger(recorded_settings(config.document))
    keys = {"model.target_top_p": 0.9, "model.optimizer_seed": 7, "model.target_stop": ["END"]}
    assert {key: again.settings[key] for key in keys} == keys
    assert not again.refusals


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("model.target_top_p=0", "model.target_top_p is 0; it must be greater than 0"),
        ("model.judge_top_p=1.5", "model.judge_top_p is 1.5; it must be at most 1"),
        ("model.optimizer_seed=-1", "model.optimizer_seed is -1; it must be at least 0"),
        ("model.target_seed=0.5", "model.target_seed is 0.5; it must be"),
        ("model.target_stop=[a, b, c, d, e]", "model.target_stop is"),
        ('model.target_stop=[""]', "model.target_stop is"),
        ("optimizer.structured_output=yes", "it must be 'auto' or 'off'"),
    ],
)
def test_sampling_that_no_provider_takes_is_refused(load: Load, override: str, sentence: str):
    with pytest.raises(ConfigError) as caught:
        load("", override)
    assert sentence in caught.value.message


def test_whether_schemas_are_sent_identifies_no_run(load: Load):
    off = load("", "optimizer.structured_output=off")
    assert off.values.optimizer.structured_output == "off"
    assert (off.digest, off.document) == (load("").digest, load("").document)
