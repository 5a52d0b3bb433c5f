from __future__ import annotations

import json

import pytest

from skillgit.app.setup.config.load import load_config, load_recorded
from skillgit.app.setup.config.resolved import read_document, recorded_settings
from skillgit.domain.untrusted.allowed_settings import of_own_run, of_stranger
from skillgit.errors import ConfigError, UsageError


@pytest.mark.parametrize(
    "overrides",
    [
        (),
        ("model.prices={reader: [1, 2.5], other: [0, 0]}", "budget.max_usd=3", "calls.temperature=0"),
        ("calls.requests_per_minute=9", "calls.concurrency=2", "model.context_window={reader: 9000}"),
        ("evaluation.gate_metric=mixed", "evaluation.sel_env_num=5", "env.limit=7", "model.reasoning_effort=low"),
    ],
)
def test_what_was_recorded_reads_back_as_the_same_configuration(context, overrides):
    first = load_config(context, "demo", overrides)
    document = read_document(json.dumps(first.document).encode(), "run x")
    again = load_recorded(context, "run x", of_own_run(recorded_settings(document) | first.local))
    assert again.values.model_dump() == first.values.model_dump()
    assert (again.options, again.digest) == (first.options, first.digest)
    assert again.document == first.document


def test_overrides_go_on_top_and_errors_name_the_run(context):
    settings = recorded_settings(load_config(context, "demo").document)
    assert load_recorded(context, "run x", of_own_run(settings), ["train.seed=9"]).values.train.seed == 9
    with pytest.raises(ConfigError, match=r"^run x: train\.seed is 'many'"):
        load_recorded(context, "run x", of_own_run(settings | {"train.seed": "many"}))


@pytest.mark.parametrize("content", [b"", b"[]", b'{"train": 3}', b"\xff", b'{"a":' * 100_000])
def test_what_is_no_configuration_is_refused(content):
    with pytest.raises(ConfigError, match="run x"):
        read_document(content, "run x")


def stranger(context, *changes: tuple[str, object]):
    """Return the settings of the demo as somebody else may have recorded them."""
    return of_stranger({**recorded_settings(load_config(context, "demo").document), **dict(changes)})


def test_a_stranger_s_configuration_that_chooses_nothing_of_this_machine_is_taken(context):
    own = load_config(context, "demo", ["train.seed=7", "env.limit=9", "evaluation.gate_metric=soft"])
    theirs = load_recorded(context, "run x", of_stranger(recorded_settings(own.document)))
    assert (theirs.digest, theirs.options) == (own.digest, own.options)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("env.data_path", "tasks.jsonl"),
        ("env.split_dir", "/etc"),
        ("env.skill_init", "../skill"),
        ("env.name", "evil.py:Environment"),
        ("env.name", "./evil"),
        ("env.sandbox", "none"),
        ("env.search_url", "http://elsewhere"),
        ("env.search_auth_env", "OPENAI_API_KEY"),
        ("env.data_root", "/"),
        ("env.search_api_url", "http://elsewhere"),
        ("gate.policy", "evil.py:Policy"),
        ("gate.pinned", "/etc/passwd"),
        ("optimizer.check", "sh -c evil"),
        ("optimizer.files", ["../../x"]),
        ("model.handoff_dir", "/etc"),
        ("model.target_dir", "../../elsewhere"),
        ("model.target_handoff_dir", "~/.ssh"),
        ("model.replay_path", "/etc/passwd"),
        ("model.target_backend", "handoff"),
        ("model.target_backend", "codex_exec"),
        ("model.target_backend", "evil.py:Backend"),
        ("model.backend", "codex_exec"),
        ("model.judge_backend", "replay"),
        ("model.sandbox", "none"),
        ("model.offline_url", "http://elsewhere"),
        ("model.openai_chat_base_url", "http://elsewhere"),
        ("model.target_api_key_env", "HOME"),
        ("model.target", "--dangerous"),
        ("model.target", "a\x1b]0;b"),
        ("later.key", 1),
    ],
)
def test_what_only_the_user_may_say_needs_the_user(context, key, value):
    with pytest.raises(UsageError, match=rf"^run x was trained elsewhere, and its configuration sets {key}, which"):
        load_recorded(context, "run x", stranger(context, (key, value)))


def test_the_user_s_own_word_stands_over_a_stranger_s(context):
    theirs = stranger(context, ("env.data_path", "/elsewhere.json"), ("model.target_backend", "codex_exec"))
    overrides = ["env.data_path=mine.json", "model.target_backend=offline"]
    assert load_recorded(context, "run x", theirs, overrides).values.env.data_path == f"{context.directory}/mine.json"
    with pytest.raises(UsageError, match=r"sets env\.data_path, which only you may set"):
        load_recorded(context, "run x", theirs, overrides[1:])


def test_how_a_stranger_s_machine_goes_about_its_work_is_passed_over(context):
    settings = recorded_settings(
        {"env": {"name": "searchqa"}, "calls": {"concurrency": 10**9}, "budget": {"max_usd": None}}
    )
    assert load_recorded(context, "run x", of_stranger(settings)).values.calls.concurrency == 16


def test_names_that_keys_had_when_a_run_was_recorded_are_read_without_a_word(context):
    first = load_config(context, "demo")
    document = {section: dict(values) for section, values in first.document.items()}
    document.setdefault("calls", {}).update({"attempts": 9, "patience_s": 1.0})
    document["model"]["contexts"] = {"reader": 5}
    settings = recorded_settings(document)
    assert settings == recorded_settings(first.document), "they were never part of a run"
    local = {"calls.attempts": 3, "calls.patience_s": 7.0, "model.contexts.reader": 9000}
    again = load_recorded(context, "run x", of_own_run(settings | local))
    assert (again.values.calls.max_retries, again.values.calls.retry_budget_s) == (2, 7.0)
    assert again.values.model.context_window == {"reader": 9000}
    assert (again.notes, again.digest) == (first.notes, first.digest)
