"""What restore, fork and promote print, in a repository with the sample run."""

from __future__ import annotations

import json
from dataclasses import replace

import cli_sample
import pytest
from sample_run import PATH, RUN, seed_skill, write_run
from soaking import sampled

from skillgit.app.interventions.fork import Fork
from skillgit.app.interventions.revert import RestoreResult
from skillgit.domain.evaluation import Metric
from skillgit.domain.gate_decision import Decision, Verdict
from skillgit.store.repo import Repo
from skillgit.store.work_tree import add_skill


@pytest.fixture
def repo(skillgit, tmp_path) -> Repo:
    assert skillgit
    found = Repo.init(tmp_path)
    found.set_config("user.name", "n")
    add_skill(found, PATH, seed_skill("demo"), time=cli_sample.NOW)
    write_run(found)
    return found


@pytest.mark.usefixtures("repo")
def test_restoring_names_the_new_version_and_the_next_command(skillgit):
    planned = skillgit("revert", "--to", "v1", "--dry-run")
    assert planned.text == f"would write: {RUN}/v4 has the text of v1 · score inherited from v1\n"
    done = skillgit("revert", "--to", "v1")
    first, second = done.text.splitlines()
    assert (done.code, done.err) == (0, "")
    assert first.startswith(f"{RUN}/v4 has the text of v1 · score inherited from v1 · ")
    assert second.split("  ")[-1].strip() == f"skillgit diff {RUN}/v3 {RUN}/v4"
    assert skillgit("diff", "v1", "v4").text == ""


def test_a_refused_text_tells_an_upper_bound_as_one(skillgit, fake):
    row = cli_sample.row("rejected", base=3, step=5, origin="restore", number=1, decision="reject", bound=0.8)
    verdict = Verdict(
        decision=Decision.REJECT, policy="strict", metric=Metric.HARD, score=0.8, current=0.8, best=0.8,
        fixed=0, broken=1, p=1.0,
    )  # fmt: skip
    told = RestoreResult(run=RUN, version=None, target=1, base=3, inherited=None, verdict=verdict, event=row)
    fake("interventions.revert.restore_by_gate", told)
    assert (
        f"{RUN} stays at v3: the gate refused v1 · hard ≤.8000 against .8000"
        in skillgit("revert", "--to", "v1", "--gate").text
    )


@pytest.mark.usefixtures("repo")
def test_restoring_the_newest_version_is_an_error_with_a_hint(skillgit):
    done = skillgit("revert", "--to", "v3")
    assert (done.code, done.text) == (2, "")
    assert done.err == f"skillgit: v3 of run {RUN} is the newest version already\nhint: skillgit log {RUN}\n"


@pytest.mark.usefixtures("repo")
def test_a_fork_names_its_run_and_the_next_command(skillgit):
    assert skillgit("fork", "v3", "-n").text.startswith(f"would write: run {RUN}-fork begins at {RUN}/v3 · hard .8000")
    done = skillgit("fork", "v3", "other")
    assert done.text.startswith(f"run other begins at {RUN}/v3 · hard .8000 · ")
    assert "skillgit train --run other" in done.text
    assert skillgit("fork", f"{RUN}/v3", "other").code == 4
    assert skillgit("runs", "--filter", "state=not begun", "--plain").text.startswith("other\t"), "nobody stopped it"


@pytest.mark.parametrize(("default", "other"), [(True, RUN), (False, "b")])
def test_a_fork_that_is_the_default_run_says_so_and_how_to_leave_it(default, other, skillgit, fake):
    event = replace(cli_sample.V8, run="b")
    fake(
        "interventions.fork.fork",
        Fork(
            run="b", source=f"{RUN}/v3", hard=0.5, score=0.5, metric="hard", event=event, planned=True, default=default
        ),
    )
    text = skillgit("fork", f"{RUN}/v3", "b").text
    assert ("it is the default run now, as the newest one" in text) == default
    assert f"skillgit use {other}\n" in text


def test_a_promotion_says_what_main_holds(skillgit, repo):
    assert skillgit("promote", "v3", "-n").text == f"would bring to main: {RUN}/v3 · selection .8000 · test .7000\n"
    done = skillgit("promote", "v3")
    assert done.text.startswith(
        f"main holds {RUN}/v3 · selection .8000 · test .7000 · {repo.tip('refs/heads/main')[:7]}\n"
    )
    assert skillgit("promote", "v3").text == f"main holds {RUN}/v3 already\n"
    assert f"in place of {RUN}/v3" in skillgit("promote", "v1").text


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("words", [("revert", "--to", "v1"), ("fork", "v1", "other"), ("promote", "v1")])
def test_machines_get_one_document(skillgit, words):
    found = json.loads(skillgit(*words, "--json").text)
    assert found["schema"] == f"skillgit.{'restore' if words[0] == 'revert' else words[0]}/1"
    assert found["run"] == ("other" if words[0] == "fork" else RUN)


@pytest.mark.usefixtures("repo")
@pytest.mark.parametrize("verb", sampled(["revert --to", "fork", "promote"], 4))
@pytest.mark.parametrize("revision", ["v99", "nothing", "r2", "s3", ""])
def test_what_is_no_version_is_an_error_with_a_hint(skillgit, verb, revision):
    done = skillgit(*verb.split(), revision)
    assert done.code in {2, 3}
    assert done.text == ""
    assert done.err.startswith("skillgit: ")
    assert "\nhint: " in done.err
