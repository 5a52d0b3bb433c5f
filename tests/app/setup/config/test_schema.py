from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from skillgit.app.setup.config.schema import NOT_KEYS, SECTIONS, EnvSettings, env_settings, keys
from skillgit.app.workspace.shipped_configurations import shipped_folder
from skillgit.engine.method_settings import MethodSettings
from skillgit.plugin.environment import EnvironmentInfo, Option
from skillgit.plugin.splits import OPTIONS

if TYPE_CHECKING:
    from pathlib import Path


def default_file() -> Path:
    return shipped_folder() / "_base_" / "default.yaml"


def test_the_default_file_says_what_the_program_does():
    written = yaml.safe_load(default_file().read_text(encoding="utf-8"))
    typed = {}
    for section, shape in SECTIONS.items():
        settings = shape(name="x") if section == "env" else shape()
        typed[section] = {
            name: value
            for name, value in settings.model_dump(mode="json").items()
            if f"{section}.{name}" not in {*NOT_KEYS, "env.name"}
        }
    assert written == typed
    assert [(section, list(values)) for section, values in written.items()] == [
        (section, list(values)) for section, values in typed.items()
    ], "keys stand in the order of the sections"


def test_every_key_of_the_default_file_has_a_comment():
    lines = default_file().read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if re.match(r"  [a-z_]+:", line) and "  # " not in line] == []


def test_every_key_is_described():
    for section, shape in SECTIONS.items():
        for name, field in shape.model_fields.items():
            assert field.description, f"{section}.{name}"


def test_the_sections_of_the_method_are_the_engines():
    assert {name for name in SECTIONS if name in MethodSettings.model_fields} == set(MethodSettings.model_fields)
    for name, field in MethodSettings.model_fields.items():
        assert SECTIONS[name] is field.annotation


def test_the_common_keys_of_env_agree_with_the_split_options():
    for option in OPTIONS:
        if option.name in EnvSettings.model_fields:
            assert EnvSettings.model_fields[option.name].default == option.default


def test_an_environments_options_become_keys():
    info = EnvironmentInfo(
        name="e",
        summary="",
        fields={},
        scorer="",
        source="",
        options=(
            Option(name="steps", type=int, default=50, help="Steps."),
            Option(name="exec_timeout", type=float, default=600.0, help="Seconds."),
        ),
    )
    shape = env_settings(info)
    assert shape(name="e").exec_timeout == 600.0
    assert shape.model_validate({"name": "e", "steps": 3}).model_dump()["steps"] == 3
    assert "env.steps" in keys(shape)
    assert "env.steps" not in keys(EnvSettings)
