"""Settings for skills of several files: what is accepted, what is said of mistakes, and what identifies a run."""

from __future__ import annotations

import pytest

from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.config.resolved import LATER
from skillgit.app.setup.run_setup import set_up
from skillgit.app.workspace.context import Context
from skillgit.errors import ConfigError


@pytest.fixture
def load(tmp_path):
    context = Context(directory=tmp_path, environ={}, clock=lambda: None, entropy=bytes)
    return lambda *overrides: load_config(context, "demo", overrides)


@pytest.mark.parametrize(
    ("written", "files"),
    [
        ("[SKILL.md, references/*.md]", ("SKILL.md", "references/*.md")),
        ("references/rules.md", ("references/rules.md",)),
    ],
)
def test_files_are_a_list_or_a_single_pattern(load, written, files):
    assert load(f"optimizer.files={written}").values.optimizer.files == files


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("optimizer.files=[../x.md]", "optimizer: files has '../x.md', which does not stay inside the skill folder"),
        ("optimizer.files=[a/*.png]", "optimizer: files has 'a/*.png', which names binary files"),
        ("optimizer.files=[frontmatter]", "only whole files are trained, and frontmatter.description"),
        ("optimizer.files=[]", "optimizer: files is empty"),
        ("optimizer.files=3", "optimizer.files is 3; it must be a list"),
        ('optimizer.check=python "x', "which is not a command: No closing quotation"),
        ("target.companions=all", "target.companions is 'all'; it must be 'inline' or 'none'"),
        ("target.companion=none", "there is no key 'target.companion'"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(load, override, sentence):
    with pytest.raises(ConfigError) as caught:
        load(override)
    assert sentence in caught.value.message
    assert "\n" not in caught.value.message


def test_keys_that_came_later_identify_a_run_only_where_they_are_set(load):
    usual = load()
    assert not any(key.partition(".")[2] in usual.document.get(key.partition(".")[0], {}) for key in LATER)
    assert {entry.key for entry in usual.entries} >= LATER
    same = load("optimizer.files=[SKILL.md]", "target.companions=inline", "env.prompts=own")
    assert (same.digest, same.document) == (usual.digest, usual.document)
    for override in (
        "optimizer.files=[references/*.md]",
        "optimizer.check=true",
        "optimizer.max_file_tokens=10",
        "target.companions=none",
        "target.max_companion_tokens=10",
        "env.prompts=reference",
        "model.judge_top_p=0.5",
        "model.optimizer_seed=0",
        "model.target_stop=[END]",
    ):
        other = load(override)
        key, _, _ = override.partition("=")
        section, _, name = key.partition(".")
        assert other.digest != usual.digest
        assert name in other.document[section]
    assert set_up(load("optimizer.files=[references/*.md]")).config_digest != set_up(usual).config_digest
