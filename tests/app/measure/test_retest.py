from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from asking import ask
from once import copy_folder
from program import git, refs
from trained_runs import RUN, Quiet, small_run, user

from skillgit.app.history.items import items
from skillgit.app.history.matrix import matrix
from skillgit.app.history.requests import ItemsRequest
from skillgit.app.history.show import show
from skillgit.app.measure.requests import EvalRequest
from skillgit.app.measure.retest import model_overrides, retest
from skillgit.app.setup.plan import Bound
from skillgit.errors import BudgetError, ConfigError, ExitCode, UsageError
from skillgit.plugin.backend import flatten
from skillgit_backends import offline
from skillgit_backends.offline import reader

if TYPE_CHECKING:
    from pathlib import Path

OTHER = "offline/other"


@pytest.fixture
def trained(tmp_path_factory, tmp_path) -> Path:
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


@pytest.fixture
def other(monkeypatch) -> str:
    """A model that answers like the reader, but every third question not at all."""

    def complete(messages):
        text = reader.complete(messages)
        return "I do not know." if len(flatten(messages)) % 3 == 0 else text

    monkeypatch.setitem(offline._MODELS, "other", complete)
    info = offline.OfflineBackend.info
    monkeypatch.setattr(offline.OfflineBackend, "info", replace(info, models=(*info.models, "other")))
    return OTHER


def again(repository: Path, *revisions: str, watcher: Quiet | None = None, **request):
    return ask(retest, user(repository), EvalRequest(revisions=revisions, **request), watcher or Quiet())


def noted(repository: Path, revision: str) -> list[dict[str, object]]:
    listed = git("notes", "--ref=skillgit/evals", "show", revision, cwd=repository).out
    return [json.loads(line) for line in listed.splitlines()]


def test_the_same_model_is_drawn_afresh_and_paired_with_what_was_recorded(trained):
    watcher = Quiet()
    found = again(trained, "v0", "best", watcher=watcher)
    assert (found.own_target, found.plan.target, found.plan.items) == ("offline/reader", "offline/reader", 20)
    assert watcher.every == {40}
    assert found.cost.calls == 40, "nothing that the run measured is taken for a new measurement"
    assert [row.draw for row in found.rows] == [-1, -1]
    for row in found.rows:
        assert (row.score, row.comparison.n, row.comparison.delta, row.p) == (row.own_score, 20, 0.0, 1.0)
    assert (found.noted, found.exit_code, found.warnings, found.differs) == (2, ExitCode.OK, (), ())
    (note,) = noted(trained, f"{RUN}/v0")
    assert (note["kind"], note["sample"], len(note["outcomes"])) == ("evaluation", -1, 20)
    later = again(trained, "v0")
    assert (later.rows[0].draw, later.cost.calls, later.noted) == (-2, 20, 1)


def test_another_model_stands_beside_the_run_s_own(trained, other):
    found = again(trained, "best", model=other)
    row = found.rows[0]
    assert (row.draw, found.plan.target) == (0, OTHER)
    assert row.comparison.delta < 0 < len(row.comparison.broken)
    assert row.score == pytest.approx(row.own_score + row.comparison.delta)
    assert [(one.aspect, one.a, one.b) for one in found.differs] == [("target", "offline/reader", OTHER)]
    assert (row.p, row.comparison.p) == (None, None), "no test tells a model from a text"
    table = ask(matrix, user(trained), None, "selection")
    assert table.models == ("offline/reader", OTHER)
    cells = {cell.model: cell for cell in table.rows[row.version].cells}
    assert (cells[OTHER].score, cells[OTHER].n, cells[OTHER].source, cells[OTHER].differs) == (
        row.score,
        20,
        "note",
        (),
    )
    assert cells["offline/reader"].source == "run"
    assert ask(items, user(trained), None, ItemsRequest(flaky=True)).rows == (), "another model is no noise"


def test_a_model_may_be_named_without_its_backend(other):
    assert model_overrides(None) == ()
    assert model_overrides(other) == ("model.target_backend=offline", "model.target=other")
    assert model_overrides("other") == ("model.target=other",)
    assert model_overrides("owner/model") == ("model.target=owner/model",)
    with pytest.raises(UsageError, match="names no model"):
        model_overrides("offline/")


def test_what_it_costs_is_told_and_nothing_spent(trained):
    before = refs(trained)
    plan = again(trained, "v0", "v1", dry_run=True)
    assert (plan.total.calls, plan.total.bound, plan.facts["measure"]) == (40, Bound.EXACTLY, "v0, v1")
    assert plan.total.tokens_in > 0
    assert refs(trained) == before


def test_looks_at_the_test_split_are_counted_and_paired_with_the_end_of_the_run(trained):
    before = ask(show, user(trained), "v0").test_evaluations
    (row,) = again(trained, "v0", split="test").rows
    assert row.test_reads == before + 1
    assert (row.comparison.n, row.comparison.delta) == (8, 0.0)


def test_other_items_are_told_and_not_compared(trained):
    found = again(trained, "v0", overrides=("evaluation.sel_env_num=5",))
    assert [one.aspect for one in found.differs] == ["items"]
    assert (found.rows[0].comparison, found.rows[0].p, found.rows[0].found.n) == (None, None, 5)
    (first, *_) = ask(matrix, user(trained), None, "selection").rows
    assert [(cell.n, cell.differs, cell.others) for cell in first.cells] == [(20, (), 1)], "what compares stands"


def test_a_cap_keeps_what_is_complete_and_the_same_command_goes_on(trained):
    with pytest.raises(BudgetError) as caught:
        again(trained, "v0", "v1", max_calls=30)
    assert "costs nothing" in caught.value.hint
    assert len(noted(trained, f"{RUN}/v0")) == 1
    rest = again(trained, "v0", "v1")
    assert (rest.cost.calls, [row.draw for row in rest.rows]) == (10, [-1, -1])
    assert len(noted(trained, f"{RUN}/v0")) == 1, "the same draw is no second measurement"
    third = again(trained, "v0", "v1")
    assert (third.cost.calls, [row.draw for row in third.rows]) == (40, [-2, -2])


def test_a_model_that_is_not_there_is_an_error(trained):
    with pytest.raises(ConfigError, match=r"model\.target is 'nobody', and its backend is offline"):
        again(trained, "v0", model="offline/nobody")
