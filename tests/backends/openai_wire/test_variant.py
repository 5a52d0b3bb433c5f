from __future__ import annotations

import pytest

from skillgit.app.setup.config.aliases import RENAMED
from skillgit.errors import ConfigError
from skillgit_backends.minimax_chat import MiniMaxChatBackend
from skillgit_backends.openai_chat import OpenAIChatBackend
from skillgit_backends.openai_compatible import OpenAICompatibleBackend
from skillgit_backends.openai_wire.variant import SHARED, read_settings
from skillgit_backends.qwen_chat import QwenChatBackend

ALL = (OpenAIChatBackend, OpenAICompatibleBackend, QwenChatBackend, MiniMaxChatBackend)


@pytest.mark.parametrize("backend", ALL)
def test_every_setting_is_read_and_explained(backend):
    settings = read_settings(backend.variant, {})
    assert {"base_url", "api_key_env", *SHARED} <= backend.info.settings.keys()
    for name, setting in backend.info.settings.items():
        assert hasattr(settings, name)
        assert setting.meaning
    assert backend.info.name == backend.variant.name


@pytest.mark.parametrize("backend", ALL)
def test_other_names_lead_to_settings_that_there_are(backend):
    prefix = f"model.{backend.info.name}_"
    renamed = {name.removeprefix(prefix) for name in RENAMED.values() if name.startswith(prefix)}
    assert renamed <= {*SHARED, *backend.variant.keys}


@pytest.mark.parametrize("backend", ALL)
def test_a_wrong_key_is_answered_with_the_nearest(backend):
    with pytest.raises(ConfigError) as error:
        backend({"base_ulr": "http://h"})
    assert f"model.{backend.info.name}_base_url" in error.value.hint


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"base_url": "localhost:8000"}, "base_url is 'localhost:8000'"),
        ({"azure_endpoint": "x"}, "azure_endpoint is 'x'"),
        ({"timeout_s": 0}, "timeout_s is 0"),
        ({"max_tokens": -1}, "max_tokens is -1"),
        ({"api": "rest"}, "api is 'rest'"),
        ({"temperature": "warm"}, "temperature is 'warm'"),
        ({"base_url": "http://a", "azure_endpoint": "http://b"}, "both set"),
    ],
)
def test_a_wrong_value_is_named(settings, told):
    with pytest.raises(ConfigError, match=told):
        OpenAIChatBackend(settings)


def test_numbers_are_sent_only_where_they_are_set():
    assert read_settings(OpenAIChatBackend.variant, {}).temperature is None
    assert read_settings(OpenAIChatBackend.variant, {}).max_tokens is None
    settings = read_settings(OpenAIChatBackend.variant, {"temperature": 0, "max_tokens": 100})
    assert (settings.temperature, settings.max_tokens) == (0.0, 100)
