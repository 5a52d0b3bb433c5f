from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from skillgit.app.setup.config.resolved import ResolvedConfig
    from skillgit.app.workspace.context import Context

    Load = Callable[..., ResolvedConfig]
    Write = Callable[..., Path]


def test_a_path_in_a_file_refers_to_the_folder_of_the_file(load: Load, context: Context):
    config = load("env: {name: searchqa, data_path: data/items.json}", name="sub/my.yaml")
    assert config.values.env.data_path == str(context.directory / "sub/data/items.json")
    assert config.options["data_path"] == config.values.env.data_path
    assert config.document["env"]["data_path"] == "data/items.json"


def test_a_path_in_an_override_refers_to_the_working_directory(load: Load, context: Context):
    config = load("env: {name: searchqa}", "env.data_path=data/items.json", name="sub/my.yaml")
    assert config.values.env.data_path == str(context.directory / "data/items.json")


def test_a_path_that_is_only_in_the_working_directory_is_found_and_noted(load: Load, write: Write, context: Context):
    write("data/items.json", "[]")
    config = load("env: {name: searchqa, data_path: data/items.json}", name="sub/my.yaml")
    assert config.values.env.data_path == str(context.directory / "data/items.json")
    (note,) = config.notes
    assert note.startswith("sub/my.yaml:1: env.data_path is taken from the working directory")


def test_a_path_may_be_absolute_or_start_at_home(load: Load, context: Context):
    config = load("env: {name: searchqa, split_mode: split_dir, split_dir: /data/x, skill_init: ~/skill}")
    assert config.values.env.split_dir == "/data/x"
    assert config.values.env.skill_init == f"{context.environ['HOME']}/skill"


def test_an_empty_path_stays_empty(load: Load):
    config = load("env: {name: searchqa, data_path: null, split_dir: '', skill_init: ~}")
    assert (config.values.env.data_path, config.values.env.split_dir, config.values.env.skill_init) == ("", "", "")
