"""JUnit XML of ``eval`` and ``gate``, read as strictly as the schema that CI servers share has it."""

from __future__ import annotations

import json
import re
import shutil
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from junit_rules import facts, kinds, read, read_elsewhere
from program import skillgit
from trained_runs import RUN, small_run

from skillgit.app.measure import junit
from skillgit.app.measure.pull_request_verdicts import NOT_RECORDED
from skillgit.app.setup.measurement import KeptReply
from skillgit.domain.evaluation import FailedToEvaluate, Scored

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def repository(tmp_path_factory) -> Path:
    return shutil.copytree(small_run(tmp_path_factory), tmp_path_factory.mktemp("junit") / "repository")


def test_eval_writes_a_case_for_each_item_of_each_text(repository):
    words = ("eval", "v1", "--against", "v0", "--junit", "eval.xml", "--no-note")
    result = json.loads(skillgit(*words, "--json", cwd=repository).out)
    root = read((repository / "eval.xml").read_bytes())
    assert [suite.get("name").split()[1] for suite in root] == ["v1", "v0"]
    for suite, arm in zip(root, result["arms"], strict=True):
        overall = arm["splits"][0]["overall"]
        cases = [*kinds(suite).values()]
        assert len(cases) == overall["n"]
        assert facts(suite)["score"] == f"{overall['hard']:.4f}"
        assert cases.count("passed") / len(cases) == pytest.approx(overall["hard"])
        assert facts(suite)["version"] == f"{RUN}/{arm['name']}"
        assert facts(suite)["interval"] == " to ".join(f"{bound:.4f}" for bound in overall["hard_interval"])
    pair = result["comparisons"][0]
    assert facts(root[0])["delta against v0"] == f"{pair['delta']:.4f}"
    failure = next(root.iter("failure"))
    assert failure.get("message").startswith("scores 0.0000; ")
    assert ANSWERED.match(failure.text)


ANSWERED = re.compile(r"asked: \S[^\n]*\ngiven: .*\nscorer: .+", re.DOTALL)


@pytest.mark.parametrize(("base", "head", "code"), [("v0", "v1", 0), ("v1", "v0", 1)])
def test_gate_says_of_each_item_what_the_change_did(base, head, code, repository):
    words = ("--base", f"{RUN}/{base}", "--head", f"{RUN}/{head}", "--recorded-only", "--junit", "gate.xml", "--json")
    result = json.loads(skillgit("gate", *words, cwd=repository, code=code).out)
    (suite,) = read((repository / "gate.xml").read_bytes())
    (skill,) = result["skills"]
    assert read_elsewhere((repository / "gate.xml").read_bytes()) == {
        (suite.get("name"), name): kind for name, kind in kinds(suite).items()
    }
    # what was asked and answered is known from the evidence of the version, though nothing was measured now
    assert all(ANSWERED.match(case.text) for case in suite.iter("failure") if " at the base " in case.get("message"))
    compared, of = skill["compared"], kinds(suite)
    assert of.pop("verdict") == {0: "passed", 1: "failure"}.get(result["exit_code"], "error")
    assert facts(suite)["verdict"] == skill["word"]
    assert len(of) == skill["items"]
    assert {item for item, kind in of.items() if kind == "failure"} == {row["item"] for row in compared["broken"]}
    assert {item for item, kind in of.items() if kind == "skipped"} == set(compared["stable_fail"])
    for item in (*compared["stable_pass"], *(row["item"] for row in compared["fixed"])):
        assert of[item] == "passed"


def test_where_the_gate_cannot_tell_nothing_has_failed(repository):
    words = ("gate", "--base", "main", "--head", f"{RUN}/v1", "--recorded-only", "--junit", "open.xml", "-o")
    skillgit(*words, "train.seed=9", "--config", "demo", cwd=repository, code=21)
    (suite,) = read((repository / "open.xml").read_bytes())
    assert kinds(suite)["verdict"] == "error"
    assert "failure" not in kinds(suite).values()


def test_it_is_refused_where_there_would_be_no_results(repository):
    for words in (("eval", "v1"), ("gate", "--base", f"{RUN}/v0")):
        done = skillgit(*words, "--dry-run", "--junit", "dry.xml", cwd=repository, code=2)
        assert "junit" in done.err or "a dry run has no verdict" in done.err
    assert not (repository / "dry.xml").exists()
    skillgit("eval", "v1", "--fresh", "--junit", "x.xml", cwd=repository, code=2)


OUTCOMES = [
    (Scored(1.0, 1.0), 1.0, None, "passed"),
    (Scored(0.0, 0.5), 0.0, None, "failure"),
    (Scored(0.0, 0.5), 0.5, None, "failure"),
    (FailedToEvaluate("the server did not answer"), None, None, "error"),
    (FailedToEvaluate("the server did not answer"), None, 1.0, "error"),
    (NOT_RECORDED, None, 1.0, "skipped"),
    (Scored(0.0, 0.0), 0.0, 1.0, "failure"),
    (Scored(0.0, 0.0), 0.0, 0.0, "skipped"),
    (Scored(0.5, 0.5), 0.5, 0.0, "passed"),
    (Scored(1.0, 1.0), 1.0, 1.0, "passed"),
]


@pytest.mark.parametrize(("outcome", "value", "before", "kind"), OUTCOMES)
def test_an_item_that_could_not_be_evaluated_has_not_failed(outcome, value, before, kind):
    suite = junit.suite("x", {})
    junit.add_item(suite, "one", outcome, value, None, before=before)
    assert kinds(suite) == {"one": kind}


TOKEN = "ghp_0123456789abcdefghijABCDEFGHIJ012345"  # noqa: S105 - it opens nothing


@given(
    st.text(),
    st.text(st.characters(max_codepoint=0x20)),
    st.sampled_from(["\ufffe", "\uffff", "\ud800", "]]>", "&#0;"]),
)
def test_any_text_is_readable_xml_without_credentials(text, control, odd):
    words = f"{text}{control}{odd} {TOKEN} end"
    suite = junit.suite(words, {"a": words, "none": None, "empty": ""})
    junit.add_item(suite, words, Scored(0.0, 0.0), 0.0, KeptReply(words * 50, words * 50, words))
    junit.add_item(suite, words, FailedToEvaluate(words), None, None)
    content = junit.document("eval", [suite])
    read(content)
    assert TOKEN not in content.decode()
    assert not re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]|&#(0|[1-8]|1[1-9]|2[0-9]|3[01]);", content.decode()
    )


@pytest.mark.parametrize("command", [("eval", "v1"), ("gate", "--base", "v0", "--head", "v1")], ids=["eval", "gate"])
def test_where_nothing_can_be_written_nothing_is_measured(repository, command):
    (repository / "folder.xml").mkdir(exist_ok=True)
    for name in ("folder.xml", "nowhere/x.xml"):
        done = skillgit(*command, "--junit", name, cwd=repository, code=4)
        assert "cannot write" in done.err
        assert done.out == ""
    assert "--junit needs a file" in skillgit(*command, "--junit", "-", cwd=repository, code=2).err


def test_a_gate_that_ends_early_says_so_of_each_skill_and_of_each_item(repository):
    words = ("gate", "--base", "main", "--head", f"{RUN}/v1", "--config", "demo", "-o", "train.seed=9")
    error = skillgit(*words, "--max-calls", "3", "--junit", "early.xml", cwd=repository, code=7).err
    (suite,) = read((repository / "early.xml").read_bytes())
    cases = kinds(suite)
    assert (cases.pop("verdict"), facts(suite)["verdict"]) == ("error", "incomplete")
    assert set(cases.values()) <= {"skipped", "passed"}  # what is recorded of both sides has passed
    assert suite.find("testcase/error").get("message").removeprefix("incomplete: ") in error


def test_a_command_that_ends_early_leaves_no_older_result(repository):
    (repository / "old.xml").write_text("<testsuites/>")
    skillgit("eval", "v1", "-o", "train.seed=99", "--max-calls", "1", "--junit", "old.xml", cwd=repository, code=7)
    assert not (repository / "old.xml").exists()
    words = ("gate", "--base", "v0", "--head", "v1", "--junit", "both", "--output", "./both")
    assert "name the same file" in skillgit(*words, cwd=repository, code=2).err
