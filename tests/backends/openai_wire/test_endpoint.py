from __future__ import annotations

from pathlib import Path

import pytest

from skillgit.errors import ConfigError, FatalBackendError
from skillgit.plugin.registry import BACKENDS, installed, load_backend
from skillgit_backends.backend_settings import NO_KEY
from skillgit_backends.minimax_chat import MiniMaxChatBackend
from skillgit_backends.openai_chat import OpenAIChatBackend
from skillgit_backends.openai_compatible import OpenAICompatibleBackend
from skillgit_backends.openai_wire.endpoint import find_endpoint
from skillgit_backends.openai_wire.variant import read_settings
from skillgit_backends.qwen_chat import QwenChatBackend

KEYS = {"OPENAI_API_KEY": "sk-openai", "AZURE_OPENAI_API_KEY": "az-key", "OTHER": "other-key"}
AZURE = {"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}


def found(settings=None, environ=None, backend=OpenAIChatBackend, role=""):
    variant = backend.variant
    return find_endpoint(variant, read_settings(variant, settings or {}), KEYS if environ is None else environ, role)


def test_openai_is_where_nothing_else_is_named():
    endpoint = found()
    assert (endpoint.url, endpoint.key, endpoint.azure) == ("https://api.openai.com/v1", "sk-openai", False)
    assert endpoint.official


def test_without_a_key_openai_is_not_even_asked():
    with pytest.raises(FatalBackendError, match="no key in the environment variable OPENAI_API_KEY") as error:
        found(environ={})
    assert "model.openai_chat_api_key_env" in error.value.hint
    with pytest.raises(FatalBackendError, match="variable MINE"):
        found({"api_key_env": "MINE"}, {"MINE": " "})


def test_an_address_from_the_environment_gets_the_key_from_there():
    endpoint = found(environ={**KEYS, "OPENAI_BASE_URL": "https://gate.example/v1"})
    assert (endpoint.url, endpoint.key) == ("https://gate.example/v1", "sk-openai")
    assert not endpoint.official


def test_the_key_of_openai_does_not_travel_to_an_address_that_a_file_names():
    assert found({"base_url": "http://localhost:1/v1"}).key == NO_KEY
    assert found({"base_url": "https://gate.example/v1", "api_key_env": "OTHER"}).key == "other-key"
    assert found({"base_url": "https://api.openai.com/v1"}).key == "sk-openai"
    assert found({"base_url": "https://eu.api.openai.com/v1"}).key == "sk-openai"
    assert found({"base_url": "http://api.openai.com/v1"}).key == NO_KEY, "not in clear text"
    assert found({"base_url": "https://api.openai.com.evil.example/v1"}).key == NO_KEY
    named = {**KEYS, "OPENAI_BASE_URL": "https://gate.example/v1"}
    assert found({"base_url": "https://gate.example/v1/"}, named).key == "sk-openai"


@pytest.mark.parametrize(
    ("backend", "variable"),
    [
        (OpenAICompatibleBackend, "OPENAI_COMPATIBLE_API_KEY"),
        (QwenChatBackend, "QWEN_CHAT_API_KEY"),
        (MiniMaxChatBackend, "MINIMAX_API_KEY"),
    ],
)
def test_the_rule_is_the_same_for_all_of_them(backend, variable):
    url_variable = variable.replace("API_KEY", "BASE_URL")
    there = {"base_url": "https://gate.example/v1"}
    assert found(there, {variable: "k"}, backend).key == NO_KEY
    assert found({**there, "api_key_env": variable}, {variable: "k"}, backend).key == "k"
    assert found(there, {variable: "k", url_variable: "https://gate.example/v1"}, backend).key == "k"
    assert found({}, {variable: "k", url_variable: "https://gate.example/v1"}, backend).key == "k"


def test_a_key_of_azure_goes_to_azure_or_where_the_environment_says():
    elsewhere = {"azure_endpoint": "https://gate.example"}
    with pytest.raises(FatalBackendError, match=r"gate\.example, which is none of Azure's hosts"):
        found(elsewhere)
    for mode in ("azure_cli", "managed_identity"):
        with pytest.raises(FatalBackendError, match="none of Azure's hosts"):
            found({**elsewhere, "auth_mode": mode, "api_key_env": "OTHER"})
    assert found({**elsewhere, "api_key_env": "OTHER"}).key == "other-key"
    assert found(elsewhere, {**KEYS, "AZURE_OPENAI_ENDPOINT": "https://gate.example/"}).key == "az-key"
    with pytest.raises(FatalBackendError, match="none of Azure's hosts"):
        found({"azure_endpoint": "http://x.openai.azure.com"})


def test_a_role_has_variables_of_its_own_before_the_shared_ones():
    environ = {
        **KEYS,
        **AZURE,
        "TARGET_AZURE_OPENAI_ENDPOINT": "https://t.openai.azure.com",
        "TARGET_AZURE_OPENAI_API_KEY": "t-key",
        "OPTIMIZER_AZURE_OPENAI_API_VERSION": "2030-01-01",
        "OPENAI_BASE_URL": "",
    }
    target, optimizer = (found(environ=environ, role=role) for role in ("target", "optimizer"))
    assert (target.host, target.key) == ("t.openai.azure.com", "t-key")
    assert target.credential == "the key in TARGET_AZURE_OPENAI_API_KEY"
    assert (optimizer.host, optimizer.key, optimizer.version) == ("x.openai.azure.com", "az-key", "2030-01-01")
    environ["OPENAI_BASE_URL"] = "https://gate.example/v1"
    assert found(environ=environ, role="target").azure, "what a role has for itself goes first"
    assert found(environ=environ, role="optimizer").host == "gate.example"
    own = {"JUDGE_QWEN_CHAT_BASE_URL": "http://gpu:1/v1", "JUDGE_QWEN_CHAT_API_KEY": "j", "QWEN_CHAT_API_KEY": "q"}
    assert found(environ=own, backend=QwenChatBackend, role="judge").key == "j"
    with pytest.raises(ConfigError, match="qwen_chat_base_url is not set"):
        found(environ=own, backend=QwenChatBackend, role="target")


def test_an_endpoint_shows_no_key():
    assert "sk-openai" not in repr(found())
    assert "sk-openai" not in f"{found()}"


def test_azure_is_found_as_the_reference_names_it():
    endpoint = found(environ={**KEYS, **AZURE, "AZURE_OPENAI_API_VERSION": "2025-01-01-preview"})
    assert (endpoint.azure, endpoint.auth, endpoint.key) == (True, "api_key", "az-key")
    assert endpoint.version == "2025-01-01-preview"
    assert found({"azure_endpoint": "https://y.openai.azure.com"}, KEYS).url == "https://y.openai.azure.com"
    assert found(environ=AZURE).auth == "azure_cli"
    assert not found({"base_url": "http://h/v1"}, {**KEYS, **AZURE}).azure
    assert not found(environ={**KEYS, **AZURE, "OPENAI_BASE_URL": "http://h/v1"}).azure


@pytest.mark.parametrize(
    ("mode", "auth", "key"),
    [
        ("key", "api_key", "az-key"),
        ("azure_cli", "azure_cli", ""),
        ("AAD", "managed_identity", ""),
        ("managed_identity", "managed_identity", ""),
    ],
)
def test_modes_of_signing_in_have_the_names_of_the_reference(mode, auth, key):
    endpoint = found(environ={**KEYS, **AZURE, "AZURE_OPENAI_AUTH_MODE": mode})
    assert (endpoint.azure, endpoint.auth, endpoint.key) == (True, auth, key)


def test_the_variables_of_azure_can_name_a_compatible_server():
    endpoint = found(environ={**AZURE, "AZURE_OPENAI_AUTH_MODE": "openai_compatible"})
    assert (endpoint.azure, endpoint.key) == (False, NO_KEY)
    version_1 = found({"azure_endpoint": "https://x.openai.azure.com/openai/v1/"})
    assert (version_1.azure, version_1.key) == (False, "az-key")


def test_a_wrong_mode_and_a_missing_key_of_azure_are_named():
    with pytest.raises(FatalBackendError, match="AUTH_MODE is 'magic'"):
        found(environ={**AZURE, "AZURE_OPENAI_AUTH_MODE": "magic"})
    with pytest.raises(FatalBackendError, match="AZURE_OPENAI_API_KEY"):
        found({"auth_mode": "api_key"}, AZURE)


def test_each_variant_looks_in_its_own_variables():
    qwen = found(environ={"QWEN_CHAT_BASE_URL": "http://gpu:1/v1", "QWEN_CHAT_API_KEY": "q"}, backend=QwenChatBackend)
    assert (qwen.url, qwen.key) == ("http://gpu:1/v1", "q")
    own = {"OPENAI_COMPATIBLE_API_KEY": "c", "OPENAI_COMPATIBLE_BASE_URL": "http://gpu:2/v1"}
    compatible = found(environ=own, backend=OpenAICompatibleBackend)
    assert (compatible.url, compatible.key) == ("http://gpu:2/v1", "c")
    assert found({"base_url": "http://gpu:3/v1"}, own, OpenAICompatibleBackend).key == NO_KEY


@pytest.mark.parametrize("backend", [OpenAICompatibleBackend, QwenChatBackend])
@pytest.mark.parametrize("role", ["", "target", "optimizer", "judge"])
def test_a_backend_without_a_provider_calls_no_address_that_nothing_names(backend, role, monkeypatch):
    prefix = backend.info.name.upper()
    keys = {**KEYS, f"{prefix}_API_KEY": "k", "TARGET_OPENAI_API_KEY": "t", "OPENAI_BASE_URL": "http://other/v1"}
    with pytest.raises(ConfigError, match=f"model.{backend.info.name}_base_url is not set") as refused:
        found(environ=keys, backend=backend, role=role)
    assert f"-o model.{backend.info.name}_base_url=http" in refused.value.hint
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match="base_url is not set"):
        backend({}).play(role)  # when the way to the model is found, before a run begins
    monkeypatch.setenv(f"{prefix}_BASE_URL", "http://gpu:1/v1")
    assert backend({}).play(role) == ()


def test_every_default_address_is_a_provider_s_own(monkeypatch):
    monkeypatch.delenv("MINIMAX_REGION", raising=False)
    hosts = {}
    for plugin in installed(BACKENDS):
        variant = getattr(load_backend(plugin.name, Path()), "variant", None)
        if variant is not None:
            hosts[plugin.name] = variant.default_url(read_settings(variant, {}))
    assert hosts == {
        "openai_chat": "https://api.openai.com/v1",
        "minimax_chat": "https://api.minimax.io/v1",
        "openai_compatible": "",
        "qwen_chat": "",
    }


def test_minimax_stands_in_two_regions(monkeypatch):
    monkeypatch.delenv("MINIMAX_REGION", raising=False)
    key = {"MINIMAX_API_KEY": "m"}
    assert found(environ=key, backend=MiniMaxChatBackend).host == "api.minimax.io"
    assert found({"region": "cn_zh"}, key, MiniMaxChatBackend).host == "api.minimaxi.com"
    monkeypatch.setenv("MINIMAX_REGION", "cn_zh")
    assert found(environ=key, backend=MiniMaxChatBackend).host == "api.minimaxi.com"
    monkeypatch.setenv("MINIMAX_REGION", "mars")
    with pytest.raises(ConfigError, match="mars"):
        found(environ=key, backend=MiniMaxChatBackend)
