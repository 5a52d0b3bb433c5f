"""Which text is measured: the commit that is named, the work tree by its name, and nothing for two equal texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from asking import ask
from once import copy_folder
from program import git, refs, skillgit
from trained_runs import RUN, Quiet, small_run, user

from skillgit.app.measure.eval import Evaluated, evaluate
from skillgit.app.measure.pull_request_gate import gate
from skillgit.app.measure.requests import EvalRequest, GateRequest
from skillgit.app.measure.retest import retest
from skillgit.app.setup.plan import Plan
from skillgit.errors import ExitCode, RevisionNotFoundError
from skillgit.view.gate import lines, markdown
from skillgit.view.measurements import eval_lines
from skillgit.view.surface import Screen

SKILL = "skills/searchqa"
DOCUMENT = f"{SKILL}/SKILL.md"
DIFFERS = f"work tree differs in {SKILL}: commit it, or measure WORKTREE"
NEW_RULE = "\n- Answer with the year alone.\n"
WHO = ("-c", "user.name=Ada", "-c", "user.email=ada@localhost")
FEW = ("evaluation.sel_env_num=3",)


@pytest.fixture
def folder(tmp_path_factory, tmp_path) -> Path:
    return copy_folder(small_run(tmp_path_factory), tmp_path / "repository")


def edit(folder: Path, text: str = NEW_RULE) -> None:
    file = folder / DOCUMENT
    file.write_text(file.read_text() + text)


def short(folder: Path, revision: str) -> str:
    return git("rev-parse", "--short=7", revision, cwd=folder).out.strip()


def measure(folder: Path, *revisions: str, watcher: Quiet | None = None, **request) -> Evaluated:
    return ask(evaluate, user(folder), EvalRequest(revisions=revisions, **request), watcher or Quiet())


def judge(folder: Path, **request):
    return ask(gate, user(folder), GateRequest(**request), Quiet())


def test_a_work_tree_that_differs_is_said_before_the_first_call_in_the_plan_and_in_the_result(folder):
    edit(folder)
    watcher = Quiet()
    result = measure(folder, "HEAD", watcher=watcher, overrides=FEW)
    assert DIFFERS in watcher.remarks
    assert DIFFERS in result.warnings
    plan = measure(folder, "main", overrides=FEW, dry_run=True)
    assert DIFFERS in plan.notes
    assert plan.facts["text"] == f"{DOCUMENT} of main ({short(folder, 'main')})"
    again = ask(retest, user(folder), EvalRequest(revisions=("HEAD",), overrides=FEW, dry_run=True), Quiet())
    assert DIFFERS in again.notes


@pytest.mark.parametrize("revision", ["WORKTREE", f"{RUN}/v1"])
def test_nothing_is_said_where_another_text_than_that_of_head_is_measured(folder, revision):
    edit(folder)
    plan = measure(folder, revision, dry_run=True)
    assert not any("work tree" in note for note in plan.notes)


def test_a_dry_run_names_file_revision_and_commit_of_every_text(folder):
    branch = git("symbolic-ref", "--short", "HEAD", cwd=folder).out.strip()
    plan = measure(folder, "HEAD", f"{RUN}/v1", against=("none",), dry_run=True)
    head, version, none = plan.facts["text"].splitlines()
    assert head == f"{DOCUMENT} of HEAD ({branch}, {short(folder, 'HEAD')})"
    assert version.startswith(f"{DOCUMENT} of {RUN}/v1 (")
    assert none == f"{DOCUMENT} with its name and description alone"


def test_the_work_tree_is_measured_by_its_name_and_leaves_no_note(folder):
    edit(folder)
    before = refs(folder)
    result = measure(folder, "WORKTREE", against=("HEAD",), overrides=FEW)
    first = result.arms[0]
    assert (first.name, first.commit, first.text) == ("WORKTREE", "", f"{DOCUMENT} of WORKTREE")
    assert [(one.name, one.against) for one in result.comparisons] == [("WORKTREE", "HEAD")]
    assert result.noted == 1
    assert refs(folder).keys() - before.keys() <= {"refs/notes/skillgit/evals"}
    git(*WHO, "commit", "-qam", "the same text", cwd=folder)
    later = measure(folder, "HEAD", overrides=FEW)
    assert (later.cost.calls, later.arms[0].splits) == (0, first.splits), "the ledger knows the text"


def test_a_clean_work_tree_is_head(folder):
    head = git("rev-parse", "HEAD", cwd=folder).out.strip()
    result = measure(folder, "WORKTREE", overrides=FEW)
    assert (result.arms[0].commit, result.arms[0].name) == (head, "WORKTREE")


def test_the_gate_says_that_the_work_tree_differs_also_where_no_skill_is_changed(folder):
    edit(folder)
    report = judge(folder, base="main")
    assert (report.skills, report.work_tree) == ((), DIFFERS)
    assert DIFFERS in "\n".join(lines(report, Screen()))
    assert DIFFERS in "\n".join(markdown(report))
    assert DIFFERS in judge(folder, base="main", dry_run=True).notes
    new = folder / "skills/new/SKILL.md"
    new.parent.mkdir()
    new.write_text("---\nname: new\ndescription: New.\n---\n")
    assert "skills/new, skills/searchqa" in judge(folder, base="main").work_tree


def test_the_gate_judges_the_work_tree_by_its_name(folder):
    edit(folder)
    plan = judge(folder, base="main", head="WORKTREE", dry_run=True)
    assert plan.facts["searchqa text"] == f"{DOCUMENT} of WORKTREE against main ({short(folder, 'main')})"
    report = judge(folder, base="main", head="WORKTREE", overrides=FEW)
    (skill,) = report.skills
    assert (report.head_commit, report.work_tree, skill.head.commit, skill.noted) == ("", "", "", 0)
    assert skill.head.scored == 3


def test_a_skill_that_the_work_tree_lacks_is_removed(folder):
    (folder / DOCUMENT).unlink()
    (skill,) = judge(folder, base="main", head="WORKTREE").skills
    assert skill.word == "removed"


def test_few_items_have_no_interval_in_text_comment_and_document(folder):
    report = judge(folder, base=f"{RUN}/v0", head=f"{RUN}/best", overrides=FEW)
    compared = report.skills[0].compared
    assert (compared.interval, compared.too_few) == (None, "3 items: too few to tell")
    for text in ("\n".join(lines(report, Screen())), "\n".join(markdown(report))):
        assert "3 items: too few to tell" in text
        assert "95 %" not in text
    result = measure(folder, f"{RUN}/best", against=(f"{RUN}/v0",), overrides=FEW)
    assert (result.comparisons[0].interval, result.comparisons[0].too_few) == (None, "3 items: too few to tell")
    assert "3 items: too few to tell" in "\n".join(eval_lines(result, Screen()))
    enough = measure(folder, f"{RUN}/best", against=(f"{RUN}/v0",))
    assert (enough.comparisons[0].interval is None, enough.comparisons[0].too_few) == (False, "")


def test_a_pass_on_fewer_items_than_the_paired_test_needs_cannot_be_told(folder):
    report = judge(folder, base=f"{RUN}/v0", head=f"{RUN}/best", rule="paired", overrides=FEW)
    assert (report.skills[0].word, report.exit_code) == ("underpowered", ExitCode.UNDERPOWERED)


@pytest.mark.parametrize("split", ["selection", "all"])
def test_two_equal_texts_are_said_to_be_equal_and_nothing_is_asked(folder, split):
    git("branch", "twin", "main", cwd=folder)
    git(*WHO, "commit", "-q", "--allow-empty", "-m", "same", cwd=folder)
    words = {"against": ("twin",), "split": split, "overrides": ("train.seed=7",)}
    result = measure(folder, "HEAD", **words)
    assert result.same_text == ("HEAD and twin have the same text",)
    assert (result.cost.calls, result.comparisons, result.noted, result.exit_code) == (0, (), 0, ExitCode.OK)
    assert "HEAD and twin have the same text" in "\n".join(eval_lines(result, Screen()))
    plan = measure(folder, "HEAD", dry_run=True, **words)
    assert isinstance(plan, Plan)
    assert "HEAD and twin have the same text" in plan.notes


@pytest.mark.parametrize(("one", "other"), [("HEAD", "HEAD"), ("HEAD", "main"), ("WORKTREE", "HEAD"), ("v0", "v0")])
def test_a_text_under_two_names_is_compared_with_itself_for_nothing(folder, one, other):
    result = measure(folder, one, against=(other,), overrides=("train.seed=7",))
    assert (result.same_text, result.cost.calls) == ((f"{one} and {other} have the same text",), 0)


def test_what_is_known_of_two_equal_texts_is_shown_and_only_other_pairs_are_compared(folder):
    result = measure(folder, "v0", "best", against=("main",))
    assert result.same_text == ("v0 and main have the same text",)
    assert [one.name for one in result.comparisons] == [result.arms[1].name]


def test_the_default_run_measures_a_commit_of_no_run(folder):
    edit(folder)
    git(*WHO, "commit", "-qam", "by hand", cwd=folder)
    git("config", "skillgit.run", RUN, cwd=folder)
    result = measure(folder, "HEAD", against=("HEAD~1",), overrides=FEW)
    assert (result.basis.run, result.basis.reason) == (RUN, "the default run")
    assert f"the configuration of run {RUN} (the default run); " in result.basis.sentence
    git("config", "skillgit.run", "gone", cwd=folder)
    with pytest.raises(RevisionNotFoundError, match="the default run 'gone' does not exist"):
        measure(folder, "HEAD", overrides=FEW)


def test_the_document_says_which_run_and_why(folder):
    done = skillgit("eval", "main", "--json", "-q", "-o", FEW[0], cwd=folder)
    document = json.loads(done.out)
    assert (document["basis"]["run"], document["basis"]["reason"]) == (RUN, "the only run of this skill")
    assert document["arms"][0]["text"].startswith(f"{DOCUMENT} of main (")
