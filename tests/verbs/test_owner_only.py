"""What somebody who was invited to operate may set: numbers and flags, and what a stranger's configuration may."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.setup.config.schema import env_settings, keys
from skillgit.domain.untrusted.allowed_settings import TAKEN
from skillgit.plugin.registry import BACKENDS, ENVIRONMENTS, installed, load_environment
from skillgit.verbs.config_form import of_owner_only

LIMITS = {
    *("budget.max_calls", "budget.max_tokens", "budget.max_usd", "calls.concurrency", "calls.hedge", "calls.timeout_s"),
    *("calls.item_timeout_s", "calls.max_retries", "calls.requests_per_minute", "calls.retry_budget_s"),
    "calls.tokens_per_minute",
}
SETTINGS = ("base_url", "api_key_env", "path", "pass_env", "sandbox", "extra_headers", "timeout_s", "use_sdk")
REACHING = [
    *("/etc/passwd", "~/.ssh/id_rsa", "../x", "./x", "evil.py:Evil", "ray://anything", "ray", "process", "auto"),
    *("http://evil.example/v1", "host:10001", "LD_PRELOAD", "$(touch x)", "touch x", '["x"]', '{"a": "b"}', '"ray"'),
    *("[1]", "{}", "1; touch x", "0x10", "yes", "on", "none", "bubblewrap"),
]


@cache
def every_key() -> list[str]:
    """Return all keys of a configuration, with those of every environment and backend that is installed."""
    names = {
        key
        for plugin in installed(ENVIRONMENTS)
        for key in keys(env_settings(load_environment(plugin.name, Path()).info))
    }
    # The settings of backends are free keys.
    owners = (*(plugin.name for plugin in installed(BACKENDS)), "target", "optimizer", "judge")
    names |= {f"model.{owner}_{key}" for owner in owners for key in SETTINGS}
    return sorted(names)


def test_what_is_not_a_number_or_a_flag_is_the_owners():
    assert {*every_key()} > LIMITS
    for key in every_key():
        if key in TAKEN:
            assert all(of_owner_only(key, text) != TAKEN[key](text) for text in ("/etc/passwd", "evil.py:Evil", "~/x"))
        else:
            assert [text for text in REACHING if not of_owner_only(key, text)] == [], key
            assert {of_owner_only(key, text) for text in ("1", "2.5", "true", "null", "")} == {key not in LIMITS}, key


@given(
    key=st.deferred(lambda: st.sampled_from(every_key()))
    | st.builds("{}.{}".format, st.sampled_from(["calls", "budget"]), st.text()),
    text=st.text() | st.sampled_from(REACHING),
)
def test_no_text_but_a_number_a_flag_or_null_passes_by_the_name_of_its_section(key, text):
    if key not in TAKEN and not of_owner_only(key, text):
        assert key in LIMITS
        assert text in {"", "true", "false", "null"} or float(text) is not None


def test_a_key_that_is_added_to_a_section_later_is_the_owners():
    assert of_owner_only("calls.new_program", "1")
    assert of_owner_only("budget.webhook", "http://evil.example")
