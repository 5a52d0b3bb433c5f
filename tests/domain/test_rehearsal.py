from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.rehearsal import WORDS, half_rehearsal, is_offline, rehearsal

REAL, RULES = "openai_chat/gpt-5-mini", "offline/reader"
models = st.sampled_from([REAL, RULES, "offline/analyst", "claude_chat/x", "offlined/x", "my.py:Backend/offline"])


@given(models, models, st.sampled_from(["", REAL, RULES, "offline/analyst@12ab"]))
def test_any_offline_model_makes_a_rehearsal_and_only_that(target, optimizer, judge):
    words = rehearsal(target=target, optimizer=optimizer, judge=judge)
    offline = [model for model in (target, optimizer, judge) if model and is_offline(model)]
    assert words.startswith(WORDS) == bool(offline)
    assert bool(words) == bool(offline)


@given(models, models)
def test_one_real_model_of_two_is_a_warning_that_names_the_keys_of_the_other(target, optimizer):
    warning = half_rehearsal(target=target, optimizer=optimizer)
    assert bool(warning) == (is_offline(target) != is_offline(optimizer))
    if warning:
        role = "target" if is_offline(target) else "optimizer"
        assert warning.startswith("warning: ")
        assert f"set model.{role}_backend and model.{role}" in warning


@pytest.mark.parametrize("name", ["offline/reader", "offline/agent"])
def test_the_names_of_the_embedded_backend_are_offline(name):
    assert is_offline(name)
