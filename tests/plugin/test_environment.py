"""What every installed environment has to keep to."""

from __future__ import annotations

import asyncio
import json
import shutil
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from skillgit.domain.evaluation import Split
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.trajectory import Trajectory
from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit.plugin.environment import Environment, check_machine
from skillgit.plugin.registry import ENVIRONMENTS, installed, load_environment
from skillgit.plugin.splits import check
from skillgit.sandbox.libreoffice import OFFICE_PROGRAMS


class Silent:
    """A judge that nobody may ask."""

    async def chat(self, messages, tools=()):
        raise AssertionError(messages, tools)


NAMES = [plugin.name for plugin in installed(ENVIRONMENTS) if plugin.reference.startswith("skillgit_envs.")]


@pytest.fixture(params=NAMES)
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Environment:
    if request.param == "alfworld" and find_spec("textworld") is None:
        pytest.skip("alfworld is not installed")
    if request.param == "inspect":
        pytest.importorskip("inspect_ai", reason="the extra inspect is not installed")
    kind = load_environment(request.param, tmp_path)
    return kind({option.name: option.default for option in kind.info.options}, tmp_path)


def test_it_says_what_it_is(environment: Environment):
    info = environment.info
    assert isinstance(environment, Environment)
    assert info.name in NAMES
    assert info.summary
    assert info.scorer
    assert info.source
    assert info.fields
    for option in info.options:
        assert option.help
        assert isinstance(option.default, option.type)
    assert len({option.name for option in info.options}) == len(info.options)


def test_it_comes_with_items_that_a_measurement_can_trust(environment: Environment, tmp_path: Path):
    if environment.info.name == "harbor":
        pytest.skip("it brings no items")
    splits = {split: environment.items(split) for split in Split}
    assert check(splits) == {split: tuple(items) for split, items in splits.items()}
    again = type(environment)({}, tmp_path)
    for split, items in splits.items():
        assert list(again.items(split)) == list(items), "the order is fixed"
        for item in items:
            assert set() < set(item.content) <= set(environment.info.fields)
            assert item.task_type in environment.info.task_types
            assert json.loads(json.dumps(item.content)) == item.content


def test_its_seed_is_a_valid_skill(environment: Environment):
    seed = environment.seed_skill()
    head = frontmatter(seed.document)
    assert f"\nname: {seed.name}\n" in head
    assert "\ndescription: " in head
    assert seed.document[len(head) :].strip()
    assert seed.digest == environment.seed_skill().digest


def test_it_names_kinds_of_failure(environment: Environment):
    lines = environment.taxonomy().splitlines()
    assert len(lines) > 2
    assert all(line.startswith("- `") for line in lines)


def test_its_digest_is_stable_and_short(environment: Environment, tmp_path: Path):
    again = type(environment)({}, tmp_path)
    assert environment.digest == again.digest
    assert 0 < len(environment.digest) <= 64


def test_no_answer_is_worth_nothing(environment: Environment):
    if environment.info.name == "harbor":
        pytest.skip("it brings no items")
    if environment.info.name == "spreadsheetbench" and not any(map(shutil.which, OFFICE_PROGRAMS)):
        pytest.skip("LibreOffice is not installed")
    item = environment.items(Split.TRAIN)[0]
    trajectory = Trajectory(item_id=item.id, turns=(), answer="")
    with suppress(EnvironmentFaultError):  # what never took place has no score
        scored, feedback = asyncio.run(environment.score(item, trajectory, Silent()))
        assert (scored.hard, scored.soft) == (0.0, 0.0)
        assert feedback
        assert not scored.passed


def test_its_items_are_read_without_what_only_scores_need(environment: Environment, monkeypatch: pytest.MonkeyPatch):
    if environment.info.name in {"harbor", "inspect", "alfworld", "swebench"}:
        pytest.skip("its items need another program")
    monkeypatch.setenv("PATH", "")
    assert all(environment.items(split) for split in Split)


def test_workbooks_that_cannot_be_scored_are_refused_before_anything_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kind = load_environment("spreadsheetbench", tmp_path)
    made = kind({option.name: option.default for option in kind.info.options}, tmp_path)
    monkeypatch.setattr("skillgit_envs.spreadsheetbench.office_program", _no_office)
    with pytest.raises(ConfigError, match="LibreOffice is not here") as refused:
        check_machine(made)
    assert "env.scorer: skillopt" in refused.value.hint


def _no_office() -> str:
    raise EnvironmentFaultError("LibreOffice is not here", hint="install it")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_described_for_people(name: str):
    import skillgit_envs  # noqa: PLC0415 - only here a test looks behind the entry points

    assert (Path(skillgit_envs.__path__[0]) / name / "README.md").is_file()
