from __future__ import annotations

import json

import pytest

from skillgit.app.config import load_config, load_recorded
from skillgit.app.config.recorded import read_document, strangers
from skillgit.errors import ConfigError


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("model.prices={reader: [1, 2.5], other: [0, 0]}", "budget.max_usd=3", "calls.temperature=0"),
        ("evaluation.gate_metric=mixed", "evaluation.sel_env_num=5", "env.limit=7", "model.reasoning_effort=low"),
    ],
)
def test_what_was_recorded_reads_back_as_the_same_configuration(context, overrides):
    first = load_config(context, "demo", overrides)
    again = load_recorded(context, "run x", read_document(json.dumps(first.document).encode(), "run x"))
    assert again.values.model_dump() == first.values.model_dump()
    assert (again.options, again.digest) == (first.options, first.digest)
    assert again.document == first.document


def test_overrides_go_on_top_and_errors_name_the_run(context):
    document = load_config(context, "demo").document
    assert load_recorded(context, "run x", document, ["train.seed=9"]).values.train.seed == 9
    with pytest.raises(ConfigError, match=r"^run x: train\.seed is 'many'"):
        load_recorded(context, "run x", document | {"train": {"seed": "many"}})


@pytest.mark.parametrize("content", [b"", b"[]", b'{"train": 3}', b"\xff"])
def test_what_is_no_configuration_is_refused(content):
    with pytest.raises(ConfigError, match="run x"):
        read_document(content, "run x")


def test_keys_that_could_run_code_or_send_a_secret_somewhere_are_named(context):
    document = load_config(context, "demo").document
    assert strangers(document) == []
    document["env"]["name"] = "evil.py:Environment"
    document["model"]["offline_url"] = "http://elsewhere"
    assert strangers(document) == ["env.name", "model.offline_url"]
