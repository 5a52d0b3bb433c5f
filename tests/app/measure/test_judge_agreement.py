"""Agreement of judges over real HTTP: planted flips are found, repeats ask again, and nothing is paid for twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from asking import ask
from planted_judge import BAD, GOOD, PlantedJudge, planted_judge
from program import SKILLGIT, new_repository, refs, skillgit, surroundings
from trained_runs import Quiet, user

from skillgit.app.measure.judge_agreement import judge_agreement
from skillgit.app.measure.requests import EvalRequest
from skillgit.calls.ledger import Ledger
from skillgit.errors import (
    BudgetError,
    ConfigError,
    DataError,
    ExitCode,
    NotFoundError,
    ProviderFailureError,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPLITS = ("train", "selection", "test")
PLAIN = "tasks.jsonl"


def write(path: Path, rows: object) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def tasks(**rubric: object) -> Iterator[dict[str, object]]:
    for number in range(60):
        yield {"id": f"t{number}", "prompt": f"Write letter {number}.", "split": SPLITS[number % 3]} | rubric


def results(count: int = 60) -> Iterator[dict[str, object]]:
    for number in range(count):
        good = number % 2 == 0
        text = f"A {GOOD if good else BAD} letter, the {number}th."
        yield {"id": f"t{number}", "result": text, "label": "pass" if good else "fail"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with tasks that a judge grades, and labelled results of them."""
    folder = new_repository(tmp_path / "repository")
    write(folder / PLAIN, tasks(rubric="It is kind."))
    write(folder / "criteria.jsonl", tasks(criteria=["It is kind.", "It names a date."]))
    write(folder / "compared.jsonl", tasks(check={"type": "judge", "rubric": "It is kind.", "against": "Dear all"}))
    write(folder / "labels.jsonl", results())
    return folder


def judged_by(judge: PlantedJudge, data: str = PLAIN, *more: str) -> tuple[str, ...]:
    keys = (f"env.data_path={data}", "model.judge_backend=openai_compatible", "model.judge=planted")
    return (*keys, f"model.judge_openai_compatible_base_url={judge.url}", "calls.max_retries=0", *more)


def measured(repository: Path, judge: PlantedJudge, data: str = PLAIN, **request):
    folder = repository / "labels.jsonl"
    usual = {"config": "tasks/default", "overrides": judged_by(judge, data), "labels": folder, "items": 12}
    return ask(judge_agreement, user(repository), EvalRequest(**usual | request), Quiet())


def row_of(found, against: str, what: str):
    comparison = next(one for one in found.comparisons if one.against == against)
    return next(row.agreement for row in comparison.rows if row.name == what)


def test_planted_flips_are_found_and_a_repetition_asks_again(repository):
    with planted_judge(rate=0.1, seed=1) as judge:
        before = refs(repository)
        found = measured(repository, judge, items=30)
        assert (judge.answered, found.gradings, found.failures, found.results) == (90, 90, 0, 30)
        same = row_of(found, "itself", "verdict")
        assert same.same.interval[0] <= 0.82 <= same.same.interval[1]
        assert same.coefficient.interval[0] <= 1 - 0.18 / 0.5 <= same.coefficient.interval[1]
        (noise,) = found.noise
        assert noise.flip_share.interval[0] <= 1 - 0.9**3 - 0.1**3 <= noise.flip_share.interval[1]
        assert len(noise.flips) == round(noise.flip_share.value * 30)
        assert noise.difference == pytest.approx(1.96 * 2**0.5 * noise.deviation)
        kappa = row_of(found, "labels", "verdict")
        assert kappa.coefficient.interval[0] <= 0.8 <= kappa.coefficient.interval[1]
        again = measured(repository, judge, items=30)
        assert (judge.answered, again.cost.calls, again.comparisons) == (90, 0, found.comparisons)
        more = measured(repository, judge, items=30, repeats=4)
        assert (judge.answered, more.cost.calls) == (120, 30), "only the new gradings are paid for"
        assert refs(repository) == before


def test_a_judge_that_repeats_itself_is_said_to_and_the_interval_says_how_far(repository):
    with planted_judge() as judge:
        found = measured(repository, judge)
    assert found.exit_code is ExitCode.OK
    assert row_of(found, "itself", "verdict").coefficient.value == 1.0
    assert row_of(found, "labels", "verdict").coefficient.value == 1.0
    (noise,) = found.noise
    assert (noise.flips, noise.difference, noise.flip_share.value) == ((), 0.0, 0.0)
    assert noise.flip_share.interval[1] == pytest.approx(0.2646, abs=0.001)


def test_a_judge_that_guesses_is_refused_a_yes(repository):
    with planted_judge(rate=0.5) as judge:
        found = measured(repository, judge)
    assert found.exit_code is ExitCode.NO
    assert any("does not agree with itself" in warning for warning in found.warnings)


def test_another_model_is_asked_as_often_and_compared(repository):
    with planted_judge(rate=0.05) as judge, planted_judge(rate=0.3, seed=9) as other:
        (repository / "other.yaml").write_text(
            "_base_: tasks/default\nmodel:\n  judge_backend: openai_compatible\n  judge: other\n"
            f"  judge_openai_compatible_base_url: {other.url}\n"
        )
        found = measured(repository, judge, other_judge="other.yaml", repeats=2)
        assert (judge.answered, other.answered) == (24, 24)
        against = [one.against for one in found.comparisons]
        assert against[:2] == ["itself", "itself"]
        assert "other at 127.0.0.1" in against[2]
        assert against[3:] == ["labels", "labels"]
        agreement = row_of(found, against[2], "verdict")
        assert agreement.same.interval[0] <= 0.95 * 0.7 + 0.05 * 0.3 <= agreement.same.interval[1]
        assert [noise.judge for noise in found.noise] == [one.judge for one in found.comparisons[:2]]
        model = measured(repository, judge, other_judge="planted-2", repeats=2)
        assert judge.answered == 48, "a name alone is a model of the judge's own backend"
        assert model.comparisons[2].against.startswith("openai_compatible planted-2")
        with pytest.raises(UsageError, match="is the judge itself"):
            measured(repository, judge, other_judge="planted")


def test_criteria_are_compared_one_by_one_and_with_labels_of_each(repository):
    rows = [
        {"id": row["id"], "result": row["result"], "scores": [float(row["label"] == "pass"), 0.5]}
        for row in results(20)
    ]
    write(repository / "scores.jsonl", rows)
    with planted_judge(rate=0.1) as judge:
        found = measured(repository, judge, "criteria.jsonl", labels=repository / "scores.jsonl")
        names = [row.name for row in found.comparisons[0].rows]
        assert names == ["verdict", "score", "criteria", "judge: It is kind.", "judge: It names a date."]
        kind, date = (row_of(found, "labels", name) for name in names[3:])
        assert kind.coefficient.value > 0.5
        assert date.difference.value == 0.5
        for row in rows:
            row["scores"] = row["scores"][:1]
        write(repository / "short.jsonl", rows)
        with pytest.raises(DataError, match="has 1 scores, and the judge gives 2"):
            measured(repository, judge, "criteria.jsonl", labels=repository / "short.jsonl")


def test_a_judge_that_prefers_a_place_is_found(repository):
    with planted_judge(first=0.5) as judge:
        found = measured(repository, judge, "compared.jsonl")
        assert judge.answered == 72, "both orders are asked each time"
    (position,) = found.positions
    assert position.first - position.second == pytest.approx(position.difference.value)
    assert position.difference.interval[0] > 0
    # good results win in the second place only if the judge does not prefer the first one, others the other way round
    assert position.change_share.interval[0] <= 0.5 <= position.change_share.interval[1]
    with planted_judge() as judge:
        (fair,) = measured(repository, judge, "compared.jsonl").positions
    assert (fair.difference.value, fair.change_share.value) == (0.0, 0.0)


def test_a_failure_of_the_server_is_no_verdict_and_is_made_up_for(repository):
    with planted_judge(rate=0.1, seed=1) as judge:
        judge.refused = 3
        found = measured(repository, judge)
        assert (found.failures, found.gradings, found.exit_code) == (12, 24, ExitCode.SERVICE)
        assert not found.is_kept
        assert "24 of 36 gradings have a score only" in found.warnings
        judge.refused = 0
        again = measured(repository, judge)
        assert (again.failures, again.cost.calls, again.is_kept) == (0, 12, True)


def test_a_server_that_is_down_ends_the_work_and_says_nothing_of_the_judge(repository):
    with planted_judge() as judge:
        judge.refused = 1
        with pytest.raises(ProviderFailureError):
            measured(repository, judge)


def test_a_useless_reply_is_sent_back_once_and_then_asked_for_afresh(repository):
    with planted_judge() as judge:
        judge.useless = 1
        found = measured(repository, judge, items=6, repeats=2)
        assert (judge.answered, found.failures) == (13, 0)
        judge.useless = 2
        one_by_one = judged_by(judge, PLAIN, "calls.concurrency=1")
        failing = measured(repository, judge, items=6, repeats=3, overrides=one_by_one)
        assert failing.failures == 1
        assert "cannot be used" in failing.reasons[0]
        assert measured(repository, judge, items=6, repeats=3).failures == 0


def test_a_cap_ends_the_work_and_what_was_paid_is_kept(repository):
    with planted_judge() as judge:
        with pytest.raises(BudgetError):
            measured(repository, judge, max_calls=10)
        assert judge.answered <= 10
        measured(repository, judge)
        assert judge.answered == 36


def test_a_plan_asks_nothing_and_says_what_is_known(repository):
    with planted_judge() as judge:
        plan = measured(repository, judge, dry_run=True)
        assert judge.asked == 0
        rows = {row.stage: (row.role, row.calls, row.bound.value) for row in plan.stages}
        assert rows["agreement"] == ("judge", 36, "exactly")
        assert rows["preflight"][:2] == ("judge", 1), "the target is not asked"
        assert plan.facts["gradings"] == "36, 0 of them known"
        measured(repository, judge)
        known = measured(repository, judge, dry_run=True)
        assert (known.total.calls, known.facts["gradings"]) == (0, "36, 36 of them known")


def test_a_killed_command_pays_for_no_grading_twice(repository):
    with planted_judge(rate=0.2) as judge:
        judge.hang_after = 10
        overrides = judged_by(judge, PLAIN, "calls.concurrency=1")
        options = [word for key in overrides for word in ("-o", key)]
        words = ("eval", "--judge", "--config", "tasks/default", "--labels", "labels.jsonl", "--items", "12", *options)
        process = subprocess.Popen(
            [*SKILLGIT, *words],
            cwd=repository,
            env=surroundings(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert judge.hanging.wait(60)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        judge.released.set()
        done = skillgit(*words, "--json", cwd=repository, code=ExitCode.NO)
        assert judge.answered == 36
        assert json.loads(done.out)["cost"]["calls"] == 26


def test_results_of_a_run_are_graded_without_the_target_and_the_run_says_what_is_known(repository):
    with planted_judge(rate=0.4) as judge:
        options = [word for key in judged_by(judge, "criteria.jsonl") for word in ("-o", key)]
        keys = ("train.num_epochs=1", "optimizer.use_slow_update=false", "evaluation.eval_test=false")
        short = [word for key in keys for word in ("-o", key)]
        train = ("train", "tasks/default", *options, *short)
        unknown = "how far the judge openai_compatible/planted agrees with itself is not measured"
        plan = skillgit(*train, "--run", "one", "--dry-run", cwd=repository)
        assert f"{unknown}: skillgit eval one/v0 --judge" in plan.out
        first = skillgit(*train, "--run", "one", cwd=repository)
        lines = first.err.splitlines()
        note = next(number for number, line in enumerate(lines) if line.startswith(unknown))
        assert note < lines.index("run one"), "before the first call"
        before, asked = refs(repository), judge.answered
        hint = lines[note].partition(": ")[2].split()
        done = skillgit(*hint[1:], "--json", cwd=repository, code=ExitCode.NO)
        result = json.loads(done.out)
        assert (result["results"], result["is_kept"], judge.answered - asked) == (20, True, 60)
        assert refs(repository) == before
        second = skillgit(*train, "--run", "two", cwd=repository)
        assert unknown not in second.err
        assert "warning: the judge openai_compatible/planted does not agree with itself: alpha" in second.err
        evaluation = skillgit("eval", "one/v0", "-q", "--dry-run", cwd=repository)
        assert "does not agree with itself" in evaluation.out
        other = skillgit("eval", "one/v0", "--dry-run", "-o", "model.judge=another", cwd=repository)
        assert "openai_compatible/another agrees with itself is not measured" in " ".join(other.out.split())
        hint = "skillgit eval one/v0 --judge -o model.judge=another"
        assert hint in " ".join(other.out.split())
        write(repository / "criteria.jsonl", tasks(criteria=["It is long.", "It names a date."]))
        changed = skillgit(*train, "--run", "three", "--dry-run", cwd=repository)
        assert "was measured by other criteria than these: skillgit eval three/v0 --judge" in changed.out


def test_what_was_measured_by_eval_is_in_the_ledger(repository):
    with planted_judge() as judge:
        rest = {"config": "tasks/default", "overrides": judged_by(judge), "labels": None, "revisions": ("HEAD",)}
        with pytest.raises(NotFoundError, match="no results of HEAD on the selection split are here") as error:
            measured(repository, judge, **rest)
        hint = error.value.hint.partition(" measures it")[0].split()
        options = [word for key in rest["overrides"] for word in ("-o", key)]
        skillgit(*hint[1:], "--config", "tasks/default", *options, "-q", cwd=repository)
        found = measured(repository, judge, **rest)
        assert (found.results, found.available) == (12, 20)


def test_a_judge_that_grades_as_before_is_said_nothing_of(repository):
    with planted_judge() as judge:
        measured(repository, judge)
        options = [word for key in judged_by(judge) for word in ("-o", key)]
        plan = skillgit("train", "tasks/default", "--run", "one", "--dry-run", *options, cwd=repository)
        assert "agrees with itself" not in plan.out
        assert "agree with itself" not in plan.out


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ({"id": "t1"}, "has no label"),
        ({"label": "pass"}, "has no 'id'"),
        ({"id": "t1", "label": "fine"}, "neither pass nor fail"),
        ({"id": "t1", "label": ["pass"]}, "neither pass nor fail"),
        ({"id": "t1", "score": 2}, "not a number from 0 to 1"),
        ({"id": "t1", "score": True}, "not a number from 0 to 1"),
        ({"id": "t1", "scores": "1"}, "not a number from 0 to 1"),
        ({"id": "t1", "scores": {"kind": None}}, "not a number from 0 to 1"),
        ({"id": "t1", "label": "pass", "result": 5}, "a 'result' that is not text"),
        ({"id": "none", "label": "pass", "result": "x"}, "which is not in the data"),
        ({"id": "t1", "label": "pass"}, "has no results, and no version is named"),
    ],
)
def test_labels_that_cannot_be_used_are_refused_before_anything_is_asked(repository, line, fault):
    write(repository / "bad.jsonl", [line])
    with planted_judge() as judge:
        with pytest.raises((DataError, UsageError), match=fault):
            measured(repository, judge, labels=repository / "bad.jsonl")
        assert judge.asked == 0


@pytest.mark.parametrize(
    ("request_of", "fault"),
    [
        ({"repeats": 1, "labels": None, "revisions": ("HEAD",)}, "agrees with nothing"),
        ({"labels": None}, "there are no results to grade"),
        ({"split": "all"}, "takes one split"),
    ],
)
def test_a_request_without_sense_is_refused(repository, request_of, fault):
    with planted_judge() as judge, pytest.raises(UsageError, match=fault):
        measured(repository, judge, **request_of)


def test_a_judge_that_cannot_judge_is_refused(repository):
    labels = repository / "labels.jsonl"
    request = EvalRequest(config="tasks/default", overrides=(f"env.data_path={PLAIN}",), labels=labels)
    with pytest.raises(ConfigError, match="cannot judge"):
        ask(judge_agreement, user(repository), request, Quiet())
    plain = replace(request, config="searchqa/default", overrides=())
    with pytest.raises(UsageError, match="scores without a judge"):
        ask(judge_agreement, user(repository), plain, Quiet())


def test_the_ledger_forgets_nothing_of_another_judge(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.record_agreement("a", "e", "c", {"results": 3}, 1.0)
        ledger.record_agreement("a", "e", "d", {"results": 4}, 2.0)
        ledger.record_agreement("b", "e", "c", {"results": 5}, 3.0)
        ledger.record_agreement("a", "e", "c", {"results": 6}, 4.0)
        assert ledger.agreements("a", "e") == {"c": {"results": 6}, "d": {"results": 4}}
        assert ledger.agreements("b", "e") == {"c": {"results": 5}}
        assert ledger.agreements("a", "other") == {}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (("--judge", "--fresh"), "--judge cannot be combined with --fresh"),
        (("--judge", "--against", "none"), "--judge cannot be combined with --against"),
        (("--judge", "--no-note"), "--judge cannot be combined with --no-note"),
        (("--repeats", "2"), "--repeats needs --judge"),
        (("--with", "x"), "--with needs --judge"),
        (("--judge", "HEAD"), "--judge takes one version"),
    ],
)
def test_options_that_have_no_effect_are_refused(repository, words, fault):
    assert fault in skillgit("eval", "HEAD", *words, cwd=repository, code=2).err
