from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from skillgit.app.setup.config.load import load_config
from skillgit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillgit.app.setup.config.resolved import ResolvedConfig
    from skillgit.app.workspace.context import Context

    Load = Callable[..., ResolvedConfig]
    Write = Callable[..., Path]


def test_bases_are_relative_to_the_file_and_may_be_several(load: Load, write: Write):
    write("sub/one.yaml", "train: {seed: 1, batch_size: 1}\n")
    write("sub/two.yaml", "_base_: ../three.yaml\ntrain: {seed: 2}\n")
    write("three.yaml", "train: {seed: 3, num_epochs: 3, batch_size: 3}\n")
    values = load("_base_: [one.yaml, two.yaml]\nenv: {name: searchqa}", name="sub/my.yaml").values.train
    assert (values.seed, values.num_epochs, values.batch_size) == (2, 3, 3)


def test_a_shipped_configuration_can_be_a_base(load: Load):
    config = load("_base_: demo\ntrain: {seed: 7}")
    assert config.values.env.name == "searchqa"
    assert config.values.train.seed == 7


def test_a_base_that_is_based_on_itself_is_an_error(load: Load, write: Write):
    write("a.yaml", "_base_: b.yaml\n")
    write("b.yaml", "_base_: [a.yaml]\n")
    with pytest.raises(ConfigError, match=r"in a circle: a\.yaml -> b\.yaml -> a\.yaml"):
        load("_base_: a.yaml")


def test_two_files_may_share_a_base(load: Load, write: Write):
    write("a.yaml", "_base_: c.yaml\n")
    write("b.yaml", "_base_: c.yaml\n")
    write("c.yaml", "train: {seed: 5}\n")
    assert load("_base_: [a.yaml, b.yaml]").values.train.seed == 5


def test_a_missing_base_is_named_with_the_file_that_wants_it(load: Load):
    with pytest.raises(ConfigError, match=r"my\.yaml: _base_ names 'nowhere\.yaml', which does not exist"):
        load("_base_: nowhere.yaml")
    with pytest.raises(ConfigError, match="_base_ must be a path or a list of paths"):
        load("_base_: {a: b}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train:\n  seed: [1\n", r"^my\.yaml:\d is not valid YAML"),
        ("train:\n\tseed: 1\n", r"^my\.yaml:2 is not valid YAML"),
        ("- a\n- b\n", r"^my\.yaml:1 is not a mapping"),
        ("train:\n  seed: 1\n  seed: 2\n", r"^my\.yaml:3 sets 'seed' a second time"),
        ("train: {seed: 1}\ntrain: {seed: 2}\n", r"^my\.yaml:2 sets 'train' a second time"),
        ("? [a]\n: 1\n", r"^my\.yaml:1 has a key that is not text"),
        ("train: {seed: !!python/object:os.system x}\n", r"^my\.yaml:1 is not valid YAML"),
        ("train:\n  seed: 2026-99-99\n", r"^my\.yaml:2 is not valid YAML: a value looks like a date or a number but"),
        (f"train:\n  seed: {'9' * 5000}\n", r"^my\.yaml:2 is not valid YAML: a value looks like"),
        ("a: 1\n--- \nb: 2\n", r"^my\.yaml:2 is not valid YAML"),
    ],
)
def test_a_broken_file_is_one_sentence_with_its_line(context: Context, write: Write, text: str, message: str):
    write("my.yaml", text)
    with pytest.raises(ConfigError, match=message):
        load_config(context, "my.yaml")


def test_a_file_that_is_not_utf_8_is_refused(context: Context):
    (context.directory / "my.yaml").write_bytes(b"train: {seed: \xff}\n")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load_config(context, "my")


def test_anchors_and_merge_keys_work(load: Load):
    config = load("train: &t {seed: 3}\ngradient: {minibatch_size: 2}\nenv: {name: searchqa, <<: {split_seed: 9}}")
    assert config.values.env.split_seed == 9
