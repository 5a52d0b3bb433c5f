from __future__ import annotations

import pytest

from skillgit.errors import ConfigError, FatalBackendError
from skillgit_backends.minimax_chat.backend import MiniMaxChatBackend
from skillgit_backends.openai_chat.backend import OpenAIChatBackend
from skillgit_backends.openai_compatible.backend import OpenAICompatibleBackend
from skillgit_backends.openai_wire.endpoint import NO_KEY, find_endpoint
from skillgit_backends.openai_wire.variant import read_settings
from skillgit_backends.qwen_chat.backend import QwenChatBackend

KEYS = {"OPENAI_API_KEY": "sk-openai", "AZURE_OPENAI_API_KEY": "az-key", "OTHER": "other-key"}
AZURE = {"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"}


def found(settings=None, environ=None, backend=OpenAIChatBackend):
    variant = backend.variant
    return find_endpoint(variant, read_settings(variant, settings or {}), KEYS if environ is None else environ)


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
    assert found({"base_url": "https://user@api.openai.com/v1"}).host == "api.openai.com"


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
    assert found(environ={}, backend=QwenChatBackend).key == NO_KEY
    own = {"OPENAI_COMPATIBLE_API_KEY": "c"}
    assert found({"base_url": "http://h/v1"}, own, OpenAICompatibleBackend).key == "c"
    with pytest.raises(FatalBackendError, match="OPENAI_COMPATIBLE_API_KEY"):
        found(environ=KEYS, backend=OpenAICompatibleBackend)


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
