"""Logs mean what the package swebench says of them, and nothing of the tests or the right patch is told."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading import items_in
from swebench_cases import LOGS, PYTHON, gold, needs_logs, needs_package, own_items, row, write

from skillgit.domain.trajectory import Item
from skillgit.errors import ConfigError, EnvironmentFaultError
from skillgit.plugin.plugin_identity import install_command
from skillgit_envs.swebench import SWEBench
from skillgit_envs.swebench.grading import (
    F2P,
    P2P,
    Grader,
    errors_in,
    of_official,
    official_reports,
    own_report,
    package_version,
)
from skillgit_envs.swebench.instances import END, EXIT, START, Instance

ISSUE, OLD = "test_new (tests.test_a.A.test_new)", "test_old (tests.test_a.A.test_old)"


def instance(**fields: object) -> Instance:
    content = {
        **row(log_parser="unittest", patch="+answer = 42", test_patch="+assert secret_of(7) == 9", eval_script="true"),
        F2P: [ISSUE],
        P2P: [OLD],
        **fields,
    }
    return Instance(Item(id="a", content=content))


def log(lines: str, code: int | None = 0, start: str = START, end: str = END) -> str:
    return f"before\n: '{start}'\n{lines}\n: '{end}'\n" + ("" if code is None else f"{EXIT}: {code}\n")


def lines(new: str, old: str) -> str:
    return "\n".join(f"{test} ... {ending}" for test, ending in ((ISSUE, new), (OLD, old)) if ending)


@pytest.mark.parametrize(
    ("text", "code", "resolved"),
    [
        (lines("ok", "ok"), 0, True),
        (lines("ok", "ok"), None, True),
        (lines("expected failure", "ok"), 0, True),
        (lines("ok", "skipped 'no'"), 0, True),
        (lines("skipped 'no'", "ok"), 0, False),
        (lines("FAIL", "ok"), 1, False),
        (lines("ok", "ERROR"), 1, False),
        (lines("ok", ""), 0, False),
        (lines("", "ok"), 0, False),
        (lines("ok", "ok"), 1, None),
        ("nothing ran", 1, None),
        (f"{lines('ok', 'ok')}\n>>>>> Tests Errored", 0, None),
    ],
)
def test_a_log_of_unittest_is_graded_by_the_rules_of_the_benchmark(text, code, resolved):
    report = own_report(instance(), log(text, code))
    assert (report.is_resolved if report.is_gradeable else None) == resolved


@pytest.mark.parametrize("marks", [{"start": "x"}, {"end": "x"}])
def test_a_log_without_both_marks_says_nothing(marks):
    assert not own_report(instance(), log(lines("ok", "ok"), **marks)).is_gradeable


ENDINGS = st.sampled_from(["ok", "FAIL", "ERROR", "skipped 'no'", ""])


@given(ENDINGS, ENDINGS, st.sampled_from([None, 0, 1]))
def test_a_log_that_is_resolved_has_no_failed_test(new, old, code):
    report = own_report(instance(), log(lines(new, old), code))
    assert report.is_resolved == (report.is_gradeable and not any(report.failed.values()))
    if report.is_gradeable:
        assert {*report.passed[F2P], *report.failed[F2P]} == {ISSUE}
        assert {*report.passed[P2P], *report.failed[P2P]} == {OLD}


ODDITIES = {
    "as it is": lambda text: text,
    "without its end": lambda text: text.replace(">>>>> End Test Output", ""),
    "without its beginning": lambda text: text.replace(">>>>> Start Test Output", ""),
    "with words before": lambda text: f"Cloning into 'x'\n+ git status\n{text}",
    "with words behind": lambda text: f"{text}\nRan 2 tests in 0.001s\n",
    "twice": lambda text: f"{text}\n{text}",
    "with blank lines": lambda text: text.replace("\n", "\n\n"),
}


@needs_package
def test_the_package_grades_logs_of_unittest_alike():
    kinds = ["ok", "FAIL", "ERROR", "skipped 'no'", ""]
    whole = [log(lines(new, old), code) for new in kinds for old in kinds for code in (None, 0, 1)]
    logs = [change(text) for change in ODDITIES.values() for text in whole]
    content = instance().item.content | {"log_parser": "parse_log_django", "instance_id": "a"}
    reports = asyncio.run(official_reports(PYTHON, [{"instance": content, "log": text, "patch": "x"} for text in logs]))
    assert len(reports) == 525
    for text, report in zip(logs, reports, strict=True):
        assert of_official(report) == own_report(instance(), text), text


@needs_package
@needs_logs
def test_the_real_logs_are_graded_as_they_should():
    items = {item.id: item for item in items_in(SWEBench, *sorted(LOGS.glob("*.jsonl")), dataset_name="lite")}
    logs = {path.name: path.read_text() for path in sorted((LOGS / "logs").iterdir())}
    requests = [
        {"instance": {"instance_id": item.id, **item.content}, "log": text, "patch": "x"}
        for name, text in logs.items()
        for item in [items[name.split(".")[0]]]
    ]
    reports = [of_official(report) for report in asyncio.run(official_reports(PYTHON, requests))]
    assert len(reports) == 12
    assert {name: report.is_resolved for name, report in zip(logs, reports, strict=True)} == {
        name: name.endswith(".gold.txt") for name in logs
    }
    assert all(report.is_gradeable for report in reports)


@needs_package
def test_a_version_is_told_without_importing_the_package():
    assert re.fullmatch(r"5\.[\d.]+", package_version(PYTHON))
    Grader(python=PYTHON, seconds=1, network=False).check([instance(log_parser="parse_log_pytest")])


@pytest.fixture
def pythons(tmp_path):
    """Make stand-ins for Pythons: they print ``version`` and end with ``code``."""

    def make(version: str, code: int = 0) -> str:
        path = tmp_path / f"python-{version}-{code}"
        path.write_text(f"#!/bin/sh\necho {version}\necho trouble >&2\nexit {code}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.mark.parametrize("version", ["4.1.0", "5.0.1", "6.0.0", ""])
def test_rows_that_only_a_package_can_grade_need_it_before_anything_is_spent(version, pythons, tmp_path):
    (item,) = items_in(SWEBench, write(tmp_path / "a.jsonl", row()))
    grader = Grader(python=pythons(version), seconds=1, network=False)
    with pytest.raises(ConfigError, match="graded by the package swebench") as raised:
        grader.check([Instance(item)])
    assert install_command("swebench") in raised.value.hint
    grader.check([instance()])
    Grader(python=pythons("5.0.2"), seconds=1, network=False).check([Instance(item)])
    Grader(python=pythons("5.3.0.post1"), seconds=1, network=False).check([Instance(item)])


def test_a_package_that_fails_is_a_fault_and_no_score(pythons):
    grader = Grader(python=pythons("5.0.2", code=3), seconds=1, network=False)
    with pytest.raises(EnvironmentFaultError, match="could not grade a log: trouble"):
        asyncio.run(grader.report(instance(log_parser="parse_log_pytest"), "log", "patch"))


def test_errors_are_told_without_what_quotes_the_tests_or_the_right_patch():
    text = "\n".join(
        [
            "E       AssertionError: assert secret_of(7) == 9",
            "ValueError: secret_of(7) == 9",
            "larder.ShortageError: there is too little",
            "KeyError: 'a'",
            "KeyError: 'a'",
            "    raise TypeError",
            "x" * 300 + "Error: long",
        ]
    )
    errors = errors_in(log(text), instance())
    assert errors[:4] == ["AssertionError", "ValueError", "larder.ShortageError: there is too little", "KeyError: 'a'"]
    assert "secret_of" not in " ".join(errors)
    assert max(map(len, errors)) <= 200
    assert errors_in("ValueError: outside", instance()) == []


def test_no_right_patch_is_in_the_errors_of_a_log_that_prints_it():
    for item in own_items().values():
        printed = "\n".join(f"ValueError: {line}" for line in gold(item).splitlines())
        errors = "\n".join(errors_in(log(printed), Instance(item)))
        assert all(line not in errors for line in gold(item).splitlines() if len(line) > 20)
        assert json.dumps(item.content["patch"]) not in errors
