"""Measuring versions of a real run, with the offline models."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder
from program import git, refs, skillgit
from trained_runs import small_run

from skillgit.app.history.show import show
from skillgit.app.measure.eval import evaluate
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.workspace.context import Context
from skillgit.calls.client import Calls
from skillgit.domain.evaluation import Split
from skillgit.domain.ids import text_digest
from skillgit.errors import (
    BudgetError,
    ExitCode,
    FatalBackendError,
    ProviderFailureError,
    StoppedError,
    UsageError,
)
from skillgit.plugin.registry import load_environment
from skillgit.plugin.shortcuts import BestShortcut, ShortcutReport

if TYPE_CHECKING:
    from pathlib import Path

    from skillgit.app.setup.model_session import EvalProgress

TYPES = {"work", "person", "place", "thing", "date", "number"}


@dataclass
class Eyes:
    """A watcher that remembers, and may do something once an item is done."""

    looks: list[EvalProgress] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def progress(self, progress: EvalProgress) -> None:
        self.looks.append(progress)

    def remark(self, text) -> None:
        self.remarks.append(text)

    def spent(self, cost) -> None:
        self.remarks.append(f"spent {cost.calls} calls")

    def measured(self, name, split, found) -> None:
        assert found.n > 0
        self.results.append((name, split))


@pytest.fixture
def repository(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> Path:
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


USERS = count()
AFRESH = ("train.seed=7",)
"""Another seed: nothing is in the ledger yet."""


def user(directory: Path) -> Context:
    number = next(USERS) % 256
    return Context(
        directory=directory,
        environ={},
        clock=lambda: datetime(2026, 11, 28, 12, tzinfo=UTC),
        entropy=lambda length: bytes([number]) * length,
    )


def measure(repository: Path, *revisions: str, watcher: Eyes | None = None, **request):
    return ask(evaluate, user(repository), EvalRequest(revisions=revisions, **request), watcher or Eyes())


def noted(repository: Path, revision: str) -> list[dict[str, object]]:
    listed = git("notes", "--ref=skillgit/evals", "show", revision, cwd=repository).out
    return [json.loads(line) for line in listed.splitlines()]


def test_versions_stand_side_by_side_on_every_split(repository):
    eyes = Eyes()
    found = measure(repository, "v0", "best", "v0", split="all", against=("none", "v0"), watcher=eyes)
    best = ask(show, user(repository), "best").row
    names = ["v0", f"v{best.version}", "none"]
    assert [arm.name for arm in found.arms] == names
    assert [scored.split for scored in found.arms[0].splits] == ["train", "selection", "test"]
    assert eyes.results == [(name, split) for split in ("train", "selection", "test") for name in names]
    assert found.exit_code is ExitCode.OK
    assert found.warnings == ()
    selection = found.arms[1].splits[1]
    assert selection.overall.hard == best.score
    assert (selection.overall.n, selection.overall.coverage) == (20, 1.0)
    assert {group.task_type for group in selection.types} <= TYPES
    assert sum(group.n for group in selection.types) == 20
    assert [(one.split, one.name, one.against) for one in found.comparisons[:3]] == [
        ("train", "v0", "none"),
        ("train", names[1], "none"),
        ("train", names[1], "v0"),
    ]
    last = eyes.looks[-1]
    assert last.before + last.count == last.every == 3 * (60 + 20 + 8)


def test_the_arm_without_a_skill_has_its_frontmatter_and_nothing_else(repository, monkeypatch):
    seen = set()
    environment = load_environment("searchqa", repository)
    rollout = environment.rollout

    async def spied(self, item, skill, target):
        seen.add((tuple(skill.files), skill.document))
        return await rollout(self, item, skill, target)

    monkeypatch.setattr(environment, "rollout", spied)
    measure(repository, "v1", against=("none",))
    assert len(seen) == 1, "v1 was measured before"
    ((files, document),) = seen
    assert files == ("SKILL.md",)
    assert document.startswith("---\nname: searchqa\n")
    assert document.endswith("---\n")


def test_what_was_measured_before_costs_nothing_and_is_noted_once(repository):
    first = measure(repository, "v0", "v1", split="test")
    assert first.noted == 2
    assert first.cost.calls <= 8, "the run measured v0 at its end"
    again = measure(repository, "v0", "v1", split="test")
    assert (again.noted, again.cost.calls, again.arms) == (0, 0, first.arms)
    (note,) = noted(repository, "small/v1")
    assert (note["split"], note["n"], note["seed"], note["target"]) == ("test", 8, 42, "offline/reader")
    assert note["time"] == "2026-11-28T12:00:00Z"
    assert note["environment"]
    assert set(note["types"]) <= TYPES


def test_looks_at_the_test_split_are_counted(repository):
    before = ask(show, user(repository), "v1").test_evaluations
    (arm,) = measure(repository, "v1", split="test").arms
    assert arm.test_reads == ask(show, user(repository), "v1").test_evaluations == before + 1
    measure(repository, "v1", split="test", overrides=("evaluation.test_env_num=5",))
    assert ask(show, user(repository), "v1").test_evaluations == before + 2
    measure(repository, "v1", split="selection")
    found = ask(show, user(repository), "v1")
    assert (found.test_evaluations, len(found.evaluations)) == (before + 2, before + 3)


def test_a_score_that_is_not_above_what_needs_no_question_is_named_where_scores_are_read(repository, monkeypatch):
    best = BestShortcut(score=1.0, rule='always "yes"')
    report = ShortcutReport(items=1, sample=1, best=dict.fromkeys(Split, best))
    monkeypatch.setattr("skillgit.plugin.shortcuts.measure_shortcuts", lambda *_: report)
    assert ask(show, user(repository), "v0").shortcuts == (), "it was not measured yet"
    evaluated = measure(repository, "v0", split="all")
    sentences = [text for text in evaluated.warnings if "without the question" in text]
    assert [sentence.partition(":")[0] for sentence in sentences] == ["v0"] * 3
    assert all('is not above 1.0000, which always "yes" scores there' in sentence for sentence in sentences)
    assert (
        {sentence.removeprefix("v0: ") for sentence in sentences}
        >= set(ask(show, user(repository), "v0").shortcuts)
        != set()
    )
    report.best.update(dict.fromkeys(Split, BestShortcut(score=0.0, rule="the last choice")))
    again = measure(repository, "v0", split="all")
    assert [text for text in again.warnings if "without the question" in text] == []
    assert ask(show, user(repository), "v0").shortcuts == ()


def test_without_notes_nothing_is_written(repository):
    before = refs(repository)
    assert measure(repository, "v0", "v1", split="train", note=False).noted == 0
    assert refs(repository) == before


def test_other_items_than_the_run_s_are_told(repository):
    found = measure(repository, "v0", overrides=("evaluation.sel_env_num=5",), note=False)
    assert found.warnings == ("the items are not those of run small",)
    assert found.arms[0].splits[0].overall.n == 5


def test_an_evaluation_leaves_a_run_that_fsck_finds_nothing_wrong_with(repository):
    measure(repository, "best", split="all")
    skillgit("fsck", "--deep", cwd=repository)


def test_a_cap_notes_what_is_complete_and_the_same_command_goes_on(repository):
    with pytest.raises(BudgetError) as caught:
        measure(repository, "v0", "v1", split="train", overrides=AFRESH, max_calls=100)
    assert "costs nothing" in caught.value.hint
    assert len(noted(repository, "small/v0")) == 1
    git("notes", "--ref=skillgit/evals", "show", "small/v1", cwd=repository, code=1)
    rest = measure(repository, "v0", "v1", split="train", overrides=AFRESH)
    assert (rest.cost.calls, rest.noted) == (20, 1)


def test_ctrl_c_stops_after_what_is_in_flight_and_loses_nothing(repository):
    class Impatient(Eyes):
        def progress(self, progress: EvalProgress) -> None:
            super().progress(progress)
            if progress.count == 3:
                signal.raise_signal(signal.SIGINT)

    before = refs(repository)
    with pytest.raises(StoppedError, match="nothing is lost"):
        measure(repository, "v0", split="train", overrides=AFRESH, watcher=Impatient())
    assert refs(repository) == before
    rest = measure(repository, "v0", split="train", overrides=AFRESH)
    assert rest.noted == 1
    assert rest.cost.calls < 60


def test_a_provider_that_is_down_scores_nothing(repository, monkeypatch):
    async def down(*_, **__):
        raise ProviderFailureError("the provider is down", hint="")

    monkeypatch.setattr(Calls, "call", down)
    before = refs(repository)
    with pytest.raises(ProviderFailureError):
        measure(repository, "v0", split="train", overrides=AFRESH)
    assert refs(repository) == before


def test_items_that_cannot_be_evaluated_have_no_score_and_the_exit_code_says_so(repository, monkeypatch):
    call = Calls.call

    async def partly(self, role, stage, messages, *, draw, **options):
        if int(text_digest(draw[2]), 16) % 4 == 0:
            raise FatalBackendError("the context is too long", hint="")
        return await call(self, role, stage, messages, draw=draw, **options)

    monkeypatch.setattr(Calls, "call", partly)
    found = measure(repository, "v0", split="train", overrides=AFRESH)
    scored = found.arms[0].splits[0].overall
    assert 0 < scored.scored < 54
    assert found.exit_code is ExitCode.SERVICE
    assert found.warnings == (f"v0 has a score on {scored.scored} of 60 train items only",)
    (note,) = noted(repository, "small/v0")
    assert (note["n"], note["scored"]) == (60, scored.scored)


def test_where_nothing_could_be_evaluated_there_is_nothing_to_note(repository, monkeypatch):
    async def dead(*_, **__):
        raise FatalBackendError("the context is too long", hint="")

    monkeypatch.setattr(Calls, "call", dead)
    found = measure(repository, "v0", split="train", overrides=AFRESH)
    assert found.exit_code is ExitCode.SERVICE
    assert (found.arms[0].splits[0].overall.hard, found.noted) == (None, 0)


def test_the_configuration_is_the_run_s_or_the_user_s(repository, tmp_path):
    clone = tmp_path / "clone"
    git("clone", "-q", f"file://{repository}", clone, cwd=tmp_path)
    with pytest.raises(UsageError, match="the configuration of run small is not here") as caught:
        measure(clone, "small/v1")
    assert "--config" in caught.value.hint
    found = measure(clone, "small/v1", config="demo", overrides=("evaluation.sel_env_num=20",))
    assert found.config == "demo"
    assert found.arms[0].splits[0].overall.hard == ask(show, user(repository), "v1").row.score
    git("fetch", "-q", "origin", "refs/skillgit/*:refs/skillgit/*", cwd=clone)
    assert measure(clone, "small/v1").config == "run small"


def test_a_commit_that_is_no_event_is_measured_as_a_run_was(repository, tmp_path):
    found = measure(repository, "main", "v0", note=False)
    assert [arm.name for arm in found.arms] == ["main", "v0"]
    assert found.arms[0].splits == found.arms[1].splits
    assert measure(repository, "main", note=False).basis.reason == "the only run of this skill"
    lonely = tmp_path / "lonely"
    skillgit("init", "lonely", "--env", "searchqa", cwd=tmp_path)
    with pytest.raises(UsageError, match="no run here trains this skill") as caught:
        measure(lonely, "main")
    assert "--config" in caught.value.hint
