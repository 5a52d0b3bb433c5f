"""A credential in a setting of a backend: it is refused where it does not belong, and never repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillgit.app.setup.config.load import load_config
from skillgit.app.workspace.context import Context
from skillgit.errors import ConfigError
from skillgit.plugin.backend_settings import check_settings
from skillgit.plugin.registry import BACKENDS, installed, load_backend
from skillgit_backends.openai_compatible import OpenAICompatibleBackend
from skillgit_backends.openai_wire.endpoint import require_address
from skillgit_backends.openai_wire.variant import read_settings

SETTINGS = [
    (plugin.name, setting)
    for plugin in installed(BACKENDS)
    for setting in load_backend(plugin.name, Path()).info.settings or {}
]
VARIABLES = [(backend, name) for backend, name in SETTINGS if name.endswith("_env")]
ADDRESSES = [(backend, name) for backend, name in SETTINGS if name.endswith(("base_url", "azure_endpoint"))]
KEYS = (
    "sk-proj-abcdefghijkl1234567890ABCD",
    "hf_abcdefghijABCDEFGHIJ0123456789abcd",
    "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "abc-def-123",
    "Bearer abc",
    "$MODELS_KEY",
    "MODELS KEY",
    "MODELS_KEY=abc",
)


def refusal(backend: str, setting: str, value: str) -> ConfigError:
    settings = load_backend(backend, Path()).info.settings or {}
    with pytest.raises(ConfigError) as error:
        check_settings(backend, settings, {setting: value})
    return error.value


@pytest.mark.parametrize(("backend", "setting"), VARIABLES)
def test_what_cannot_name_a_variable_is_refused_without_being_repeated(backend, setting):
    settings = load_backend(backend, Path()).info.settings or {}
    for name in ("", "MODELS_KEY", "_k2", "OPENAI_API_KEY", "models_key"):
        check_settings(backend, settings, {setting: name})
    for key in KEYS:
        error = refusal(backend, setting, key)
        assert "takes the name of an environment variable" in error.message
        assert key not in error.message + error.hint


@pytest.mark.parametrize(("backend", "setting"), ADDRESSES)
def test_an_address_holds_no_credential(backend, setting):
    settings = load_backend(backend, Path()).info.settings or {}
    for url in ("", "http://127.0.0.1:8080/v1", "https://h.example/@team/v1", "http://[::1]:8080/v1?user=a@b"):
        check_settings(backend, settings, {setting: url})
    for credential in ("user:hunter2pass", "hunter2pass", ":hunter2pass", "a:b@c:hunter2pass"):
        for scheme in ("https://", "//", "", "https:", "https:\\\\"):
            error = refusal(backend, setting, f"{scheme}{credential}@h.example/v1")
            assert f"model.{backend}_{setting} has a user name or a password" in error.message
            assert f"model.{backend}_api_key_env" in error.hint
            assert "hunter2pass" not in error.message + error.hint


@pytest.mark.parametrize("line", ["qwen_chat_base_url: http://u:hunter2pass@h", "qwen_chat_api_key_env: hunter2=pass"])
def test_a_file_holds_no_credential_of_a_backend_that_no_role_asks(line, tmp_path):
    (tmp_path / "c.yaml").write_text(f"env: {{name: searchqa}}\nmodel:\n  {line}\n")
    context = Context.from_process(tmp_path)
    with pytest.raises(ConfigError, match=r"c\.yaml:3: model\.qwen_chat_") as error:
        load_config(context, "c.yaml")
    assert "hunter2" not in error.value.message + error.value.hint


def test_an_address_in_the_environment_holds_none_either():
    variant = OpenAICompatibleBackend.variant
    environ = {"TARGET_OPENAI_COMPATIBLE_BASE_URL": "http://user:hunter2pass@127.0.0.1:9/v1"}
    with pytest.raises(ConfigError, match=r"^TARGET_OPENAI_COMPATIBLE_BASE_URL has a user name or a password") as error:
        require_address(variant, read_settings(variant, {}), environ, "target")
    assert "hunter2pass" not in error.value.message + error.value.hint
