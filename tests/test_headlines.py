"""Every number that stands alone for a version is the mean of its items under the metric of the run's gate."""

from __future__ import annotations

import json
import re
from math import fsum

import pytest
from program import QUICK, git, skillgit
from soaking import sampled
from trained_runs import trained_run

from skillgit.domain.evaluation import Gauge, Metric

GAUGES = [
    Gauge(metric=Metric.MIXED, soft_weight=0.25),
    Gauge(metric=Metric.HARD),
    Gauge(metric=Metric.SOFT),
]


@pytest.fixture(scope="module", params=sampled(GAUGES, 3), ids=lambda gauge: gauge.metric.value)
def gauge(request):
    return request.param


@pytest.fixture(scope="module")
def run(gauge):
    return f"by-{gauge.metric}"


@pytest.fixture(scope="module")
def repository(gauge, run, tmp_path_factory):
    weight = ("-o", f"evaluation.gate_mixed_weight={gauge.soft_weight}") if gauge.metric is Metric.MIXED else ()
    return trained_run(tmp_path_factory, run, *QUICK, "-o", f"evaluation.gate_metric={gauge.metric}", *weight)


@pytest.fixture(scope="module")
def means(repository, gauge):
    """Return version to the mean of its selection items, from the outcomes alone."""
    query = "SELECT version, hard, soft FROM item_history"
    rows = json.loads(skillgit("sql", query, "--json", cwd=repository).out)["rows"]
    found: dict[int, list[float]] = {}
    for row in rows:
        version, hard, soft = row.values() if isinstance(row, dict) else row
        found.setdefault(version, []).append(gauge.of(hard, soft))
    return {version: fsum(values) / len(values) for version, values in found.items()}


def read(repository, *command):
    return json.loads(skillgit(*command, "--json", cwd=repository).out)


def test_the_log_the_runs_and_the_differences_tell_it(repository, gauge, means):
    told = {row["version"]: row["score"] for row in read(repository, "log")["events"] if row["version"] is not None}
    assert told == pytest.approx(means)
    (row,) = read(repository, "runs")["runs"]
    best = row["best_version"]
    assert (row["metric"], row["first_score"]) == (gauge.metric, pytest.approx(means[0]))
    assert row["best_score"] == pytest.approx(means[best])
    difference = read(repository, "diff", "v0", f"v{best}", "--items")
    assert difference["metric"] == gauge.metric
    assert (difference["a"]["score"], difference["b"]["score"]) == pytest.approx((means[0], means[best]))
    for item in difference["items"]:
        assert (item["change"] in {"fixed", "gained"}) == (item["after"] > item["before"])
        assert (item["change"] in {"broken", "lost"}) == (item["after"] < item["before"])


def test_the_commits_and_show_tell_it(repository, gauge, run, means):
    subjects = git("log", "--format=%s", f"run/{run}", cwd=repository).out
    first = re.search(r"\(v0, ([\d.]+)\)", subjects)
    assert first is not None
    assert first[1] == f"{means[0]:.4f}"
    for version, mean in means.items():
        gain = re.search(rf"\(v{version}, ([+-][\d.]+)\)", subjects)
        if gain is not None:
            base = read(repository, "show", f"v{version}")["row"]["base"]
            assert float(gain[1]) == pytest.approx(mean - means[base], abs=1e-4)
        number = f"{mean:.4f}".removeprefix("0") if mean < 1 else f"{mean:.3f}"
        text = skillgit("show", f"v{version}", cwd=repository).out
        assert re.search(rf"^score +{gauge.metric} {re.escape(number)}\b", text, re.MULTILINE), text


def test_what_decided_is_whole(repository):
    skillgit("fsck", "--deep", cwd=repository)


def test_the_test_score_stands_beside_it_and_the_outcome_rests_on_both(repository, gauge, means):
    (row,) = read(repository, "runs")["runs"]
    end = next(event for event in read(repository, "log")["events"] if event["kind"] == "run-finished")
    tests = {found["version"]: found for found in read(repository, "show", end["commit"])["event"]["evaluations"]}
    first, best = (gauge.of(tests[version]["hard"], tests[version]["soft"]) for version in (0, row["best_version"]))
    assert (row["first_test"], row["best_test"]) == pytest.approx((first, best))
    gained = means[row["best_version"]] > means[0]
    assert row["outcome"] == ("improved" if best >= first else "not-confirmed") if gained else row["outcome"]


def test_no_list_gives_a_bound_as_a_score(repository, run):
    listed = read(repository, "log")["events"]
    exported = read(repository, "export", run)["events"]
    assert any(row["bound"] is not None for row in listed), "the run stops no evaluation early, so this tests nothing"
    for row in (*listed, *exported):
        assert row["score"] is None or row["bound"] is None
    known = {row["commit"]: (row["score"], row["bound"], bool(row["unneeded"])) for row in exported}
    for row in listed:
        if row["kind"] == "rejected":
            assert known[row["commit"]] == (row["score"], row["bound"], row["bound"] is not None)
