from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.app.setup.config.files import DEFAULT, Leaf, read_overrides
from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.config.schema import SECTIONS, EnvSettings, keys
from skillgit.app.setup.config.typed_values import settings_of_backends, typed
from skillgit.app.workspace.shipped_configurations import shipped
from skillgit.domain.evaluation import Metric
from skillgit.errors import ConfigError, NotFoundError
from skillgit.plugin.registry import BACKENDS, ENVIRONMENTS, installed, load_environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillgit.app.setup.config.resolved import ResolvedConfig
    from skillgit.app.workspace.context import Context

    Load = Callable[..., ResolvedConfig]
    Write = Callable[..., Path]

INSTALLED = [plugin.name for plugin in installed(BACKENDS)]


def test_a_file_with_nothing_but_an_environment_has_all_defaults(load: Load):
    config = load("env: {name: searchqa}")
    assert config.values.train.batch_size == 20
    assert config.values.optimizer.lr_scheduler == "cosine"
    assert config.values.evaluation.gate_metric is Metric.HARD
    assert config.values.calls.temperature is None
    assert config.options["max_turns"] == 1
    assert config.origin("train.batch_size").kind == "default"
    assert config.notes == ()


def test_later_layers_win_key_by_key(load: Load, write: Write):
    write("base.yaml", "train: {batch_size: 10, num_epochs: 2}\nmodel: {prices: {a: [1, 2], b: [3, 4]}}\n")
    config = load(
        "_base_: base.yaml\ntrain: {batch_size: 20}\nmodel: {prices: {b: [5, 6]}}\nenv: {name: searchqa}",
        "train.num_epochs=3",
        "train.num_epochs=7",
    )
    assert (config.values.train.batch_size, config.values.train.num_epochs) == (20, 7)
    assert config.values.model.prices == {"a": (1.0, 2.0), "b": (5.0, 6.0)}


def test_a_price_may_tell_what_a_cache_costs(load: Load):
    config = load("", "model.prices={a: [1, 2, 0.5], gpt-4.1: [1, 2, 0, 1.25]}")
    assert config.values.model.prices == {"a": (1.0, 2.0, 0.5), "gpt-4.1": (1.0, 2.0, 0.0, 1.25)}


PRICE = "2 to 4 numbers: US dollars for a million tokens in, out, read from a cache, written to it"


def test_every_key_tells_where_it_comes_from(load: Load, write: Write):
    write("base.yaml", "train:\n  batch_size: 10\n  num_epochs: 2\n")
    config = load(
        "_base_: base.yaml\n\ntrain:\n  batch_size: 20\nenv:\n  name: searchqa\n",
        "optimizer.learning_rate=6",
        "model.prices={m: [1, 2]}",
    )
    assert str(config.origin("train.batch_size")) == "my.yaml:4"
    assert str(config.origin("train.num_epochs")) == "base.yaml:3"
    assert str(config.origin("optimizer.learning_rate")) == "-o optimizer.learning_rate=6"
    assert str(config.origin("train.seed")) == "default"
    assert config.origin("model.prices.m").kind == "override"
    keys = [entry.key for entry in config.entries]
    assert len(keys) == len(set(keys))
    assert {f"env.{name}" for name in (*EnvSettings.model_fields, "limit", "max_turns")} <= set(keys)


def test_a_value_for_a_text_key_stays_text(load: Load):
    config = load(
        "model: {target: 4.1, optimizer: yes}\nenv: {name: searchqa, split_ratio: 2:1:7, split_dir: }",
        "model.optimizer_backend=offline",
        "model.reasoning_effort=high",
    )
    assert config.values.model.target == "4.1"
    assert config.values.model.optimizer == "yes"
    assert config.values.env.split_ratio == "2:1:7"
    assert config.values.env.split_dir == ""
    assert load("", "model.target=007").values.model.target == "007"
    assert load("", "model.target='a b'").values.model.target == "a b"
    assert load("", "model.target=[A,B]").values.model.target == "[A,B]"
    assert load("", "model.target=a=b: c: d").values.model.target == "a=b: c: d"


def test_numbers_that_yaml_reads_as_text_are_numbers(load: Load):
    assert load("", "calls.temperature=1e-1").values.calls.temperature == 0.1
    assert load("calls: {temperature: 1e0}\nenv: {name: searchqa}").values.calls.temperature == 1.0
    assert load("", "calls.temperature=").values.calls.temperature is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.batch_size=0", "train.batch_size is 0; it must be greater than 0"),
        ("train.batch_size=2.5", "train.batch_size is 2.5; it must be a whole number"),
        ("train.seed=true", "train.seed is true; it must be a whole number"),
        ("train.num_epochs=1:30", "train.num_epochs is '1:30'; it must be a whole number"),
        ("train.num_epochs='3'", "train.num_epochs is '3'; it must be a whole number"),
        ("gradient.merge_batch_size=1", "gradient.merge_batch_size is 1; it must be at least 2"),
        ("gradient.failure_only=1", "gradient.failure_only is 1; it must be true or false"),
        ("evaluation.gate_mixed_weight=1.5", "evaluation.gate_mixed_weight is 1.5; it must be at most 1"),
        ("evaluation.gate_metric=sofd", "evaluation.gate_metric is 'sofd'; it must be 'hard', 'soft' or 'mixed'"),
        ("calls.temperature=warm", "calls.temperature is 'warm'; it must be a number"),
        ("calls.timeout_s=.inf", "calls.timeout_s is .inf; it must be a finite number"),
        ("budget.max_usd=-1", "budget.max_usd is -1; it must be greater than 0"),
        ("model.target=null", "model.target is null; it must be given"),
        (
            "model.prices={m: [1]}",
            f"model.prices.m is [1]; it must be {PRICE}",
        ),
        (
            "model.prices={gpt-4.1: [1, 2, 3, 4, 5]}",
            f"model.prices.gpt-4.1 is [1, 2, 3, 4, 5]; it must be {PRICE}",
        ),
        ("model.prices={m: [1, two, 3]}", f'model.prices.m is [1, "two", 3]; it must be {PRICE}'),
        ("env.limit=many", "env.limit is 'many'; it must be a whole number"),
        ("env.split_mode=dir", "env.split_mode is 'dir'; it must be 'ratio', 'stratified' or 'split_dir'"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_what_is_allowed(load: Load, override: str, message: str):
    with pytest.raises(ConfigError) as caught:
        load("", override)
    assert caught.value.message == f"-o {override}: {message}"


WRONG = {
    "trian.seed": ("1", "did you mean 'train.seed'?"),
    "train.sead": ("1", "did you mean 'train.seed'?"),
    "trian.sead": ("1", "did you mean 'train.seed'?"),
    "trian.nothing_like_it": ("1", f"sections are {', '.join(SECTIONS)}"),
    "train.batch_size": ("0", "skillgit config CONFIG lists every key with its value"),
    "evaluation.gate_metric": ("sofd", "did you mean 'soft'?"),
    "calls.temperature": ("warm", "skillgit config CONFIG lists every key with its value"),
    "budget.max_usd": ("-1", "skillgit config CONFIG lists every key with its value"),
}


@given(st.lists(st.sampled_from(list(WRONG)), min_size=1, unique=True))
def test_every_fault_of_a_configuration_is_a_finding_with_its_place_and_its_way_out(wrong: list[str]):
    layer = {key: read_leaf(f"{key}={WRONG[key][0]}") for key in wrong} | {"env.name": read_leaf("env.name=searchqa")}
    with pytest.raises(ConfigError) as caught:
        typed(layer, keys(EnvSettings), EnvSettings, [])
    findings = {finding.path.removeprefix("-o ").partition("=")[0]: finding for finding in caught.value.findings}
    assert findings.keys() == {*wrong}
    assert {key: finding.hint for key, finding in findings.items()} == {key: WRONG[key][1] for key in wrong}
    assert caught.value.message == "; ".join(finding.message for finding in caught.value.findings)


def read_leaf(override: str):
    (layer,) = read_overrides([override], Path())
    return layer[override.partition("=")[0]]


@pytest.mark.parametrize("name", [plugin.name for plugin in installed(ENVIRONMENTS)])
def test_a_wrong_value_of_any_option_of_any_environment_is_refused_in_one_sentence(load: Load, name: str):
    wrong = {int: "many", float: "much", bool: "maybe", str: "nosuchvalue"}
    for option in load_environment(name, Path()).info.options:
        if option.type is str and not option.values:
            continue
        with pytest.raises(ConfigError, match=rf"env\.{option.name}\b") as caught:
            load(f"env: {{name: {name}}}", f"env.{option.name}={wrong[option.type]}")
        assert "\n" not in caught.value.message
        assert all(value in f"{caught.value.message} {caught.value.hint}" for value in option.values)


def test_all_wrong_values_are_named_with_their_lines(load: Load):
    with pytest.raises(ConfigError) as caught:
        load("train:\n  batch_size: 0\n  num_epochs: -1\ncalls:\n  max_retries: no\nenv: {name: searchqa}")
    assert "my.yaml:2: train.batch_size is 0" in caught.value.message
    assert "my.yaml:3: train.num_epochs is -1" in caught.value.message
    assert "my.yaml:5: calls.max_retries is no" in caught.value.message


def test_a_rule_over_two_keys_says_where_both_were_set(load: Load):
    with pytest.raises(ConfigError, match="min_learning_rate is greater than learning_rate") as caught:
        load("optimizer: {min_learning_rate: 3}", "optimizer.learning_rate=2")
    assert "min_learning_rate at my.yaml:1" in caught.value.message
    assert "learning_rate at -o optimizer.learning_rate=2" in caught.value.message


@pytest.mark.parametrize(
    ("override", "hint"),
    [
        ("train.batchsize=4", "did you mean 'train.batch_size'?"),
        ("train.minibatch_size=4", "did you mean 'gradient.minibatch_size'?"),
        ("trian.seed=4", "did you mean 'train.seed'?"),
        ("env.max_turn=4", "did you mean 'env.max_turns'?"),
        ("batchsize=4", "did you mean 'train.batch_size'?"),
        ("evaluation.gate_metric=sofd", "did you mean 'soft'?"),
        ("model.backend=ofline", "did you mean 'offline'?"),
        ("model.acme_url=x", f"keys of a backend begin with its name; installed: {', '.join(INSTALLED)}"),
    ],
)
def test_a_typo_gets_the_nearest_name(load: Load, override: str, hint: str):
    with pytest.raises(ConfigError) as caught:
        load("", override)
    assert caught.value.hint == hint
    assert caught.value.message.startswith(f"-o {override}: ")


@given(
    section=st.sampled_from(
        ["modle", "modl", "mode", "evn", "trian", "gradiant", "optimiser", "evalution", "gat", "budgets"]
    ),
    name=st.sampled_from(
        ["x", "target", "targt", "base_url", "target_base_url", "seed", "sead", "openai_chat_timeout_s"]
    )
    | st.from_regex(r"[a-z_]{1,12}", fullmatch=True),
)
def test_a_key_that_is_suggested_is_one(section: str, name: str):
    layer = {f"{section}.{name}": Leaf(value=1, text="1", origin=DEFAULT, folder=Path())}
    known = keys(EnvSettings)
    with pytest.raises(ConfigError) as refusal:
        typed(layer, known, EnvSettings, INSTALLED)
    settings = {
        f"model.{backend}_{key}" for backend, all_of in settings_of_backends(INSTALLED).items() for key in all_of
    }
    for key in re.findall(r"did you mean '([^']*)'", refusal.value.hint):
        assert key in known or key in settings, refusal.value.hint


def test_a_section_that_is_misspelt_is_named_where_its_key_is_none_either(load: Load):
    with pytest.raises(ConfigError, match="there is no section 'modle'") as refusal:
        load("modle: {x: 1}\nenv: {name: searchqa}")
    assert refusal.value.hint.startswith("the section is called model; keys of a backend begin with its name")


def test_an_unknown_key_in_a_file_is_found_with_its_line(load: Load):
    with pytest.raises(ConfigError, match=r"^my\.yaml:3: there is no key 'train\.epochs'$"):
        load("\ntrain:\n  epochs: 3\nenv: {name: searchqa}")


def test_a_section_is_not_a_value(load: Load):
    with pytest.raises(ConfigError, match="'train' is a section and holds keys, not 5"):
        load("train: 5\nenv: {name: searchqa}")
    assert load("train:\nenv: {name: searchqa}").values.train.batch_size == 20


def test_an_override_needs_key_and_value(load: Load):
    for override in ("train.batch_size", "=3"):
        with pytest.raises(ConfigError, match="is not an override"):
            load("", override)


def test_the_environment_is_required_and_must_exist(load: Load):
    with pytest.raises(ConfigError, match="names no environment") as caught:
        load("env: {split_seed: 1}")
    assert "searchqa" in caught.value.hint
    with pytest.raises(NotFoundError, match="serchqa") as missing:
        load("env: {name: serchqa}")
    assert missing.value.hint == "did you mean 'searchqa'?"


ENVIRONMENT = """
from skillgit.plugin.environment import EnvironmentInfo, Option

class Mine:
    info = EnvironmentInfo(
        name="mine", summary="", fields={}, scorer="", source="",
        options=(
            Option(name="workers", type=int, default=3, help=""),
            Option(name="rate", type=float, default=0.5, help=""),
        ),
    )
"""


def test_a_config_may_name_an_environment_by_file(load: Load, write: Write, context: Context):
    write("sub/mine.py", ENVIRONMENT)
    config = load("env: {name: 'mine.py:Mine', rate: 1}", name="sub/my.yaml")
    assert config.values.env.name == f"{context.directory}/sub/mine.py:Mine"
    assert config.document["env"]["name"] == "mine.py:Mine"
    assert config.options == {"workers": 3, "rate": 1.0}, "its own 'workers' is not taken for calls.concurrency"
    assert load("env: {name: searchqa}", "env.name=sub/mine.py:Mine").options["workers"] == 3


def test_data_for_an_environment_that_does_not_read_it_is_refused(load: Load, write: Write):
    write("mine.py", ENVIRONMENT)
    with pytest.raises(ConfigError, match=r"environment 'mine' does not use env\.data_path"):
        load("env: {name: 'mine.py:Mine', data_path: x.json}")
    assert load("env: {name: 'mine.py:Mine', data_path: '', split_mode: ratio}").options["workers"] == 3


def test_free_keys_of_a_backend_reach_it_without_their_prefix(load: Load):
    config = load(
        "model: {backend: qwen_chat, qwen_chat_max_tokens: 3, qwen_chat_base_url: http://q}\nenv: {name: searchqa}"
    )
    assert config.settings("target") == {"max_tokens": 3, "base_url": "http://q"}
    assert config.document["model"]["qwen_chat_max_tokens"] == 3
    assert str(config.origin("model.qwen_chat_max_tokens")) == "my.yaml:1"


def test_the_document_is_json_and_the_method_is_typed(load: Load):
    config = load("", "evaluation.gate_metric=soft")
    assert json.loads(json.dumps(config.document)) == config.document
    assert config.document["evaluation"]["gate_metric"] == "soft"
    assert config.values.method.evaluation.gate_metric is Metric.SOFT


def test_keys_without_effect_are_noted(load: Load):
    config = load("env: {name: searchqa, out_root: runs, split_output_dir: s}")
    assert any("env.out_root has no effect" in note for note in config.notes)
    assert any("computed, not written" in note for note in config.notes)


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_configuration_loads(context: Context, name: str):
    config = load_config(context, name)
    assert config.root == context.directory
    assert config.notes == ()


def test_there_are_shipped_configurations():
    assert {"demo", "searchqa/default"} <= set(shipped())
    assert not [name for name in shipped() if "_base_" in name]


def test_the_users_file_comes_before_a_shipped_one(context: Context, write: Write):
    write("demo.yaml", "env: {name: searchqa}\ntrain: {seed: 99}\n")
    assert load_config(context, "demo").values.train.seed == 99
    with pytest.raises(ConfigError, match="there is no configuration 'demmo'") as caught:
        load_config(context, "demmo")
    assert caught.value.hint == "did you mean 'demo'?"


def test_paths_among_an_environments_own_options_refer_to_where_they_are_written(load: Load, context: Context):
    written = load("env: {name: docvqa, image_dir: pages}", name="sub/docs.yaml")
    assert written.options["image_dir"] == f"{context.directory}/sub/pages"
    typed = load("env: {name: docvqa, image_dir: pages}", "env.image_dir=scans", name="sub/docs.yaml")
    assert typed.options["image_dir"] == f"{context.directory}/scans"
    assert typed.digest == written.digest, "what is found there is part of the items"


def test_the_values_of_the_reference_are_one_word(load: Load, write: Write):
    own = load("_base_: reference\nenv: {name: searchqa}").values
    assert (own.train.batch_size, own.gradient.contrast) == (40, 0)
    assert (own.optimizer.aggregate, own.optimizer.salvage) == ("hierarchical", False)
    write("reference.yaml", "train: {batch_size: 7}\n")
    assert load("_base_: reference\nenv: {name: searchqa}").values.train.batch_size == 7, (
        "a file of one's own goes first"
    )
