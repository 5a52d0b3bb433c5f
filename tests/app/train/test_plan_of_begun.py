"""A dry run of a run that was begun says what the same command would do: what is left of it, or that nothing is."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from contexts import context_in
from program import git, refs

from skillgit.app.train.requests import SkillTraining
from skillgit.app.train.train import plan_train, train
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import BudgetError, ConfigError, ConflictError
from skillgit.store.history_reader import read_run
from skillgit.store.repo import Repo
from skillgit.view.progress import SilentWatcher

STEPS = 6  # two epochs of 8 items in batches of 3


class Remarks(SilentWatcher):
    def __init__(self) -> None:
        self.remarks: list[str] = []

    def remark(self, text: str) -> None:
        self.remarks.append(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    git("init", "-q", "-b", "main", cwd=tmp_path)
    splits = [*["train"] * 8, *["selection"] * 6, *["test"] * 2]
    rows = [
        {"question": f"The mill {n} burned down on 4 May {1800 + n}. When?", "answer": str(1800 + n), "split": split}
        for n, split in enumerate(splits)
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "skills/town").mkdir(parents=True)
    (tmp_path / "skills/town/SKILL.md").write_text(
        "---\nname: town\ndescription: Answers.\n---\n\n# Rules\n\n- Be kind.\n"
    )
    git("add", "-A", cwd=tmp_path)
    git("-c", "user.name=Ada", "-c", "user.email=ada@localhost", "commit", "-qm", "a skill", cwd=tmp_path)
    return tmp_path


def request(cap: int | None = None, *more: str) -> SkillTraining:
    overrides = ("env.data_path=tasks.jsonl", "train.num_epochs=2", "train.batch_size=3", "evaluation.eval_test=false")
    return SkillTraining(config="tasks/default", overrides=(*overrides, *more), run="first", max_calls=cap, cap=cap)


def stopped_at(folder: Path, cap: int) -> int:
    """Train under a cap; return the step that the run has come to."""
    with pytest.raises(BudgetError):
        train(context_in(folder), request(cap), SilentWatcher())
    events = [record.event for record in read_run(Repo.discover(folder), "first")]
    return max(getattr(event, "step", 0) for event in events)


def calls_of(plan, stage: str) -> int:
    return sum(row.calls for row in plan.stages if row.stage == stage)


def place(step: int) -> str:
    """Return where a run goes on whose last event is one of ``step``."""
    return f"at step {step + 1} of {STEPS}" if step < STEPS else f"after its last step, {STEPS} of {STEPS}"


def test_of_a_stopped_run_the_rest_is_planned_and_a_resume_begins_with_its_place(folder):
    context = context_in(folder)
    whole = plan_train(context, request())
    assert "goes on" not in whole.facts
    assert calls_of(whole, "rollout") == 16
    totals, steps = [whole.total.calls], set()
    for cap in (14, 20):
        step = stopped_at(folder, cap)
        steps.add(step)
        rest = plan_train(context, request())
        assert rest.facts["goes on"] == place(step)
        assert calls_of(rest, "baseline") == 0
        epochs, more = divmod(STEPS - step, 3)
        assert calls_of(rest, "rollout") == 8 * epochs + min(8, 3 * more)
        totals.append(rest.total.calls)
    assert totals == sorted(totals, reverse=True)
    watcher = Remarks()
    train(context, request(), watcher)
    assert watcher.remarks[0] == f"run first goes on {place(max(steps))}"


def test_of_a_finished_run_nothing_is_planned_and_the_ways_on_are_named(folder):
    context = context_in(folder)
    result = train(context, request(), SilentWatcher())
    plan = plan_train(context, request())
    assert (plan.stages, plan.total.calls, plan.sentence) == ((), 0, "no call")
    [note] = [note for note in plan.notes if "has finished" in note]
    assert note.startswith(f"run first has finished, {result.outcome.value}, and the command asks nothing")
    assert all(word in note for word in ("--run NAME", "--from first/best", "--fresh"))


@pytest.mark.parametrize("change", ["train.num_epochs=3", "train.seed=5"])
def test_what_train_refuses_a_dry_run_refuses(folder, change):
    context = context_in(folder)
    train(context, request(), SilentWatcher())
    errors = []
    for ask in (
        lambda: plan_train(context, request(None, change)),
        lambda: train(context, request(None, change), SilentWatcher()),
    ):
        with pytest.raises(ConfigError) as error:
            ask()
        errors.append((error.value.message, error.value.hint))
    assert errors[0] == errors[1]


def test_a_run_whose_branch_is_checked_out_is_not_gone_on_with(folder, tmp_path_factory):
    stopped_at(folder, 14)
    context, beside = context_in(folder), tmp_path_factory.mktemp("beside") / "tree"
    before = refs(folder)
    git("worktree", "add", "-q", beside, "run/first", cwd=folder)
    for ask in (lambda: plan_train(context, request()), lambda: train(context, request(), SilentWatcher())):
        with pytest.raises(ConflictError, match=f"run/first is checked out in {beside}") as refusal:
            ask()
        assert refusal.value.hint == f"git -C {beside} switch --detach"
    assert refs(folder) == before
    git("switch", "-q", "--detach", cwd=beside)
    train(context, request(), SilentWatcher())
    git("switch", "-q", "run/first", cwd=beside)
    train(context, request(), SilentWatcher())  # it has finished, so that nothing moves


def test_a_run_that_is_checked_out_while_it_is_trained_goes_on_and_says_once_what_a_commit_there_would_do(
    folder, tmp_path_factory
):
    class Peeking(Remarks):
        def happened(self, event, _):
            if event.kind is EventKind.RUN_STARTED:
                git("worktree", "add", "-q", beside, "run/first", cwd=folder)

    beside, watcher = tmp_path_factory.mktemp("beside") / "tree", Peeking()
    assert train(context_in(folder), request(), watcher).outcome
    [warning] = [remark for remark in watcher.remarks if str(beside) in remark]
    assert "a commit would take back what is trained now" in warning
    git(*shlex.split(re.search(r"git (-C .* --hard)", warning).group(1)), cwd=folder)
    assert not git("status", "--porcelain", cwd=beside).out
