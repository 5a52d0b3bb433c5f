"""What decides an outcome: each part of it is changed in turn, and the outcome is measured anew; nothing else does."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest
from contexts import context_in
from once import copy_folder
from own_plugins import edit, write_plugins
from program import new_repository, skillgit
from soaking import sampled

from skillgit.app.measure.pull_request_verdicts import KnownOutcomes
from skillgit.app.recorded import evidence_json
from skillgit.app.setup.comparable_conditions import environment_change
from skillgit.app.setup.config.load import load_config
from skillgit.app.setup.run_setup import set_up
from skillgit.app.workspace.workspace import Workspace
from skillgit.calls.client import Calls, Caps
from skillgit.calls.ledger import Ledger
from skillgit.domain.evaluation import Split
from skillgit.engine.rollout import roll_out
from skillgit.engine.search import Monitor, Session
from skillgit.index import queries
from skillgit.plugin.plugin_identity import PluginSource
from skillgit.store.history_reader import read_run
from skillgit.store.work_tree import skill_tree


async def instantly(_):
    return None


class Bench:
    """Measures the selection items again and again, with one ledger."""

    def __init__(self, folder):
        self.folder = folder
        self.ledger = Ledger.in_memory()

    def rollouts(self, *overrides, skill=None, sample=0):
        """Measure, and return how many items were rolled out for it."""
        log = self.folder / "rollouts.log"
        log.write_text("")
        setup = set_up(load_config(context_in(self.folder), "run.yaml", overrides))
        calls = Calls(routes=setup.routes, ledger=self.ledger, caps=Caps(), sleep=instantly, random=Random(0))  # noqa: S311 - jitter
        session = Session(
            run="one",
            skill_path="skills/sums",
            task=setup.task,
            settings=setup.config.values.method,
            calls=calls,
            workers=2,
            clock=lambda: datetime(2026, 1, 1, tzinfo=UTC),
            monitor=Monitor(),
        )
        seed = setup.task.environment.seed_skill()
        skill = seed.with_text("SKILL.md", seed.document + skill) if skill else seed
        items = setup.task.items[Split.SELECTION]
        asyncio.run(roll_out(session, skill, items, "measure", sample=sample))
        return len(log.read_text().split())


@pytest.fixture
def bench(tmp_path):
    made = Bench(write_plugins(tmp_path / "mine"))
    assert made.rollouts() == 3
    return made


EDITS = {
    "scorer": ("sums.py", "scoring.scored(item, trajectory.answer)", "scoring.scored(item, 'x')"),
    "module beside the file": ("scoring.py", "* 0.5", "* 1.0"),
    "module that this one imports in a function": ("rules.py", "return 1.0", "return 0.0"),
    "prompt file": ("prompt.md", "You add.", "You sum."),
    "backend": ("models/echo.py", "request.messages[-1].text,", "'17',"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_the_source_is_measured_anew(bench, name):
    file, old, new = EDITS[name]
    edit(bench.folder / file, old, new)
    assert bench.rollouts() == 3
    edit(bench.folder / file, new, old)
    assert bench.rollouts() == 0


OVERRIDES = {
    "another class of the same file": "env.name=sums.py:Others",
    "option": "env.shout=true",
    "target model": "model.target=large",
    "temperature": "calls.temperature=0.5",
    "reasoning effort": "model.target_reasoning_effort=low",
    "length of replies": "calls.max_output_tokens=99",
    "share of tokens": "model.target_top_p=0.5",
    "seed of the provider": "model.target_seed=3",
    "stop texts": "model.target_stop=[END]",
    "setting of the backend": "model.target_flavour=strong",
    "judge model": "model.judge=large",
    "seed": "train.seed=7",
}


@pytest.mark.parametrize("name", sampled(OVERRIDES, 4))
def test_another_setting_is_measured_anew(bench, name):
    assert bench.rollouts(OVERRIDES[name]) == 3
    assert bench.rollouts() == bench.rollouts(OVERRIDES[name]) == 0


def test_another_skill_and_another_draw_are_measured_anew(bench):
    assert bench.rollouts(skill="Carefully.\n") == 3
    assert bench.rollouts(sample=1) == 3
    assert bench.rollouts() == 0


def test_an_item_with_another_content_is_measured_anew_alone(bench):
    edit(bench.folder / "numbers.txt", "2", "4")
    assert bench.rollouts() == 1


def test_nothing_that_decides_no_outcome_is_measured_anew(bench, tmp_path):
    assert bench.rollouts() == 0
    (bench.folder / "notes.py").write_text("unrelated = 1\n")
    os.utime(bench.folder / "scoring.py", (0, 0))
    assert bench.rollouts("calls.concurrency=3", "train.num_epochs=2") == 0
    elsewhere = Bench(copy_folder(bench.folder, tmp_path / "another" / "place"))
    elsewhere.ledger = bench.ledger
    assert elsewhere.rollouts() == 0


@pytest.fixture
def repository(tmp_path):
    """A repository with a run of the user's own plug-ins, each item of which scored a half."""
    made = write_plugins(new_repository(tmp_path / "repository"))
    assert ".5000" in train(made, "one").out
    return made


def train(repository, run, *more, code=0):
    return skillgit("train", "run.yaml", "--run", run, *more, cwd=repository, code=code)


def test_a_new_run_with_an_edited_scorer_does_not_take_the_old_scores(repository):
    edit(repository / "scoring.py", "* 0.5", "* 1.0")
    told = train(repository, "two").out
    assert "1.0000" in told
    assert ".5000" not in told


def test_a_run_does_not_go_on_with_an_edited_scorer_and_says_why(repository):
    assert "had finished before" in train(repository, "one").out
    edit(repository / "rules.py", "return 1.0", "return 0.0")
    refused = train(repository, "one", code=2)
    assert refused.err.splitlines() == [
        "skillgit: the source of environment sums has changed since run one began",
        "hint: undo that to go on; --from one/v0 --run NAME begins a new run with it",
    ]


def test_a_run_does_not_go_on_with_other_settings_and_names_each_of_them(repository):
    options = ("-o", "train.num_epochs=7", "-o", "gate.policy=paired", "-o", "calls.concurrency=3")
    refused = train(repository, "one", *options, code=2)
    first = refused.err.splitlines()[0]
    assert first.startswith("skillgit: run one was started with another configuration: ")
    assert "gate.policy was 'strict' and is 'paired'" in first
    assert "train.num_epochs was" in first
    assert "is 7" in first
    assert "concurrency" not in first, "it changes no result"


def test_whoever_wants_more_epochs_is_led_to_where_the_run_came_to(repository):
    refused = train(repository, "one", "-o", "train.num_epochs=7", code=2)
    assert refused.err.splitlines()[1] == (
        "hint: --from one/best --run NAME goes on from its best version, and knows what was tried there"
    )


def known(workspace, context, *overrides):
    """Return the outcomes of the text of v0 that are known under these settings."""
    setup = set_up(load_config(context, "run.yaml", overrides))
    row = queries.row_of_version(workspace.index, "one", 0)
    path = workspace.index.skill_path("one")
    return KnownOutcomes(workspace, setup, Split.SELECTION).of(path, skill_tree(workspace.repo, row.commit, path))


def test_what_a_run_recorded_stands_for_a_measurement_under_the_same_setup_alone(repository):
    context = context_in(repository)
    with Workspace(context) as workspace:
        assert len(known(workspace, context)) == len(known(workspace, context, "train.seed=7")) == 3
        for name in ("option", "target model", "temperature", "reasoning effort", "length of replies", "judge model"):
            assert known(workspace, context, OVERRIDES[name]) == {}, name
        edit(repository / "models" / "echo.py", "request.messages[-1].text,", "'17',")
        assert known(workspace, context) == {}


def test_what_a_note_tells_counts_under_the_same_setup_alone(repository):
    context = context_in(repository)
    skillgit("eval", "one/v0", "--split", "selection", "-o", "calls.temperature=0.5", cwd=repository)
    with Workspace(context) as workspace:
        assert len(known(workspace, context, "calls.temperature=0.5")) == 3
        assert known(workspace, context, "calls.temperature=0.7") == {}


def test_a_run_of_another_environment_is_not_comparable(repository):
    context = context_in(repository)
    with Workspace(context) as workspace:
        setup = set_up(load_config(context, "run.yaml"))
        start = read_run(workspace.repo, "one")[0]
        assert start.event.environment == setup.task.digest
        assert environment_change(workspace.repo, start, setup) == ""
        lost = replace(start, event=replace(start.event, environment="another"), evidence="")
        told = "the environment is not the one that run one was trained with"
        assert environment_change(workspace.repo, lost, setup) == told


def test_another_version_of_a_package_keeps_runs_comparable_and_measures_anew(repository, monkeypatch):
    context = context_in(repository)
    with Workspace(context) as workspace:
        setup = set_up(load_config(context, "run.yaml"))
        older, newer = (
            replace(setup, task=replace(setup.task, source=PluginSource(name="sums", version=f"mine {number}")))
            for number in (1, 2)
        )
        start = read_run(workspace.repo, "one")[0]
        start = replace(start, event=replace(start.event, environment=older.task.digest))
        monkeypatch.setattr(evidence_json, "read_evidence", lambda *_: older.evidence())
        assert older.digest != newer.digest
        assert environment_change(workspace.repo, start, newer) == ""
        assert "source of environment sums has changed" in environment_change(workspace.repo, start, setup)
