from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime

import pytest
from interop.reference_outputs import (
    FOUR,
    GUIDANCE,
    HIDDEN,
    KEY,
    LAST,
    ONE,
    SEED,
    START,
    TWO,
    every_object,
    write_outputs,
)
from program import git, new_repository, refs, skillgit
from soaking import sampled
from trained_runs import user

from skillgit.app.sources.skillopt.outputs import import_outputs
from skillgit.app.sources.skillopt.skill_texts import with_our_markers
from skillgit.app.upkeep.fsck import fsck
from skillgit.domain.event import Inherited
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import ConflictError, DataError
from skillgit.store import history_reader
from skillgit.store.repo import Repo

RUN = "theirs"


@pytest.fixture
def repository(tmp_path):
    return new_repository(tmp_path / "repository")


@pytest.fixture
def outputs(tmp_path):
    return write_outputs(tmp_path / "outputs")


def records(repository, run=RUN):
    return history_reader.read_run(Repo.discover(repository), run)


def body(repository, revision):
    """Return the text of a revision behind its frontmatter."""
    text = git("show", f"{revision}:skills/searchqa/SKILL.md", cwd=repository).out
    return text.split("---\n\n", 1)[1]


def test_every_step_becomes_a_commit_with_its_text_and_every_decision_stays(repository, outputs):
    result = import_outputs(user(repository), outputs.path, RUN)
    assert (result.versions, result.rejected, result.skipped, result.slow) == (4, 1, 1, 1)
    assert (result.best, result.first_score, result.best_score) == (3, 0.4, 0.8)
    assert result.finished
    assert result.remarks == ()
    assert set(refs(repository)) >= {
        "refs/heads/run/theirs", "refs/heads/rejected/theirs/0002", "refs/heads/slow/theirs", "refs/heads/best/theirs",
        *(f"refs/tags/theirs/v{version}" for version in range(4)),
    }  # fmt: skip
    texts = {"theirs/v0": SEED, "theirs/v1": ONE, "rejected/theirs/0002": TWO, "theirs/v2": FOUR, "theirs/v3": LAST}
    for revision, text in texts.items():
        assert body(repository, revision) == with_our_markers(text)
    decisions = [record.event.verdict.decision for record in records(repository) if record.event.verdict is not None]
    assert decisions == ["accept_new_best", "reject", "accept_new_best", "accept_new_best", "accept_new_best"]


def test_an_imported_run_is_sound_and_can_be_made_again(repository, outputs):
    import_outputs(user(repository), outputs.path, RUN)
    checked = fsck(user(repository), None, deep=True)
    assert checked.problems == ()
    assert [run.gates for run in checked.remade] == [5]
    git("fsck", "--strict", "--no-dangling", cwd=repository)


def test_times_are_those_of_the_files(repository, outputs):
    import_outputs(user(repository), outputs.path, RUN)
    times = [record.time for record in records(repository)]
    assert times == sorted(times)
    assert times[0] == datetime.fromtimestamp(START + 60, UTC)
    written = (outputs.path / "steps/step_0001/step_record.json").stat().st_mtime
    assert times[1].timestamp() == written


def test_trailers_say_that_a_run_was_imported(repository, outputs):
    import_outputs(user(repository), outputs.path, RUN)
    found = git("log", "--format=%s", "--grep=^Skillgit-Env: skillopt:searchqa", "run/theirs", cwd=repository).out
    assert found == "run: import searchqa from skillopt (v0, 0.4000)\n"
    message = git("log", "-1", "--format=%B", "theirs/v0", cwd=repository).out
    assert "Skillgit-Config: skillopt:" in message
    assert "Skillgit-Splits" not in message
    assert "Skillgit-Models: target=openai_chat/gpt-5.5-mini optimizer=openai_chat/gpt-5.5" in message


def test_no_secret_of_the_directory_reaches_any_object(repository, outputs):
    import_outputs(user(repository), outputs.path, RUN)
    listed = every_object(repository)
    assert HIDDEN.encode() not in listed
    assert KEY.encode() not in listed
    assert b'"qwen_chat_api_key": "[redacted]"' in listed
    assert b"[redacted] was not asked for" in listed


def test_importing_twice_says_so_and_changes_nothing(repository, outputs):
    skillgit("import", outputs.path, "--run", RUN, cwd=repository)
    before = refs(repository)
    again = skillgit("import", outputs.path, cwd=repository)
    other = skillgit("import", outputs.path, "--run", "other", cwd=repository)
    assert again.out.startswith("already imported as theirs")
    assert other.out.startswith("already imported as theirs")
    assert refs(repository) == before


def test_a_copy_of_the_directory_with_other_times_is_the_same_run(repository, outputs, tmp_path):
    import_outputs(user(repository), outputs.path, RUN)
    copied = shutil.copytree(outputs.path, tmp_path / "copy", copy_function=shutil.copy)
    assert import_outputs(user(repository), copied).already


@pytest.mark.parametrize("step", sampled([0, 1, 2, 4], 2))
def test_a_run_that_differs_in_one_text_alone_is_another_run(step, repository, outputs):
    text = outputs.path / f"skills/skill_v{step:04d}.md"
    candidate = outputs.path / f"steps/step_{step:04d}/candidate_skill.md"
    written = [path for path in (text, candidate) if path.is_file()]
    import_outputs(user(repository), outputs.path, RUN)
    for path in written:
        path.write_text(path.read_text() + "- Another rule.\n")
    other = import_outputs(user(repository), outputs.path, "other")
    assert (other.run, other.written) == ("other", other.events)


def test_a_dry_run_writes_nothing_and_tells_the_same(repository, outputs):
    before = refs(repository)
    told = json.loads(skillgit("import", outputs.path, "--dry-run", "--json", cwd=repository).out)
    assert refs(repository) == before
    done = json.loads(skillgit("import", outputs.path, "--json", cwd=repository).out)
    assert told["schema"] == "skillgit.import/1"
    assert {**told, "dry_run": False} == done


def test_an_interrupted_run_has_no_end_and_is_continued_by_a_later_import(repository, tmp_path):
    part = write_outputs(tmp_path / "part", until=2, end=False)
    first = import_outputs(user(repository), part.path, RUN)
    assert not first.finished
    assert any("interrupted after step 2" in sentence for sentence in first.remarks)
    assert fsck(user(repository), None, deep=True).problems == ()
    before = [record.commit for record in records(repository)]

    whole = write_outputs(tmp_path / "whole")
    second = import_outputs(user(repository), whole.path)
    assert (second.run, second.written, second.events) == (RUN, 5, 8)
    after = [record.commit for record in records(repository)]
    assert after[:3] == before
    assert records(repository)[-1].event.kind is EventKind.RUN_FINISHED
    assert fsck(user(repository), None, deep=True).problems == ()


def test_guidance_that_nobody_measured_takes_over_the_score_of_its_base(repository, tmp_path):
    outputs = write_outputs(tmp_path / "outputs")
    shutil.rmtree(outputs.path / "final_selection_eval")
    result = import_outputs(user(repository), outputs.path, RUN)
    merged = next(record.event for record in records(repository) if record.event.kind is EventKind.SLOW_MERGED)
    assert merged.evaluation == Inherited(version=2)
    assert merged.verdict.decision == "force_accept"
    assert not merged.verdict.gated
    assert result.best == 2
    assert any("best_skill.md is not the text of v2" in sentence for sentence in result.remarks)
    assert fsck(user(repository), None, deep=True).problems == ()
    shown = skillgit("show", "theirs/v3", cwd=repository).out
    assert "v2" in shown
    assert GUIDANCE.strip("- .") in shown


def test_memory_of_the_optimizer_stands_on_the_slow_line(repository, outputs):
    import_outputs(user(repository), outputs.path, RUN)
    assert git("show", "slow/theirs:META.md", cwd=repository).out.strip() == "Rules about units help."


def test_items_conversations_and_findings_are_evidence(repository, outputs):
    import_outputs(user(repository), outputs.path, RUN)
    listed = skillgit("items", "--json", RUN, cwd=repository).out
    assert '"q07"' in listed
    accepted, rejected = (
        next(record for record in records(repository) if record.event.kind is kind)
        for kind in (EventKind.ACCEPTED, EventKind.REJECTED)
    )
    assert accepted.event.fixed == ("q05", "q06")
    assert rejected.event.broken == ("q06",)
    names = git("ls-tree", "-r", "--name-only", accepted.evidence, cwd=repository).out.splitlines()
    assert {"findings.json", "rollout.json", "selection.json", "skillopt/step_record.json"} <= set(names)
    assert any(name.startswith("selection/trajectories/") for name in names)
    assert "units are wrong in step 1" in git("log", "-1", "--format=%B", accepted.commit, cwd=repository).out


def test_reading_commands_work_on_an_imported_run(repository, outputs):
    import_outputs(user(repository), outputs.path, RUN)
    assert "Quote the span" in skillgit("log", RUN, cwd=repository).out
    assert "Quote the span" in skillgit("diff", "theirs/v0", "theirs/v3", cwd=repository).out
    blamed = skillgit("blame", "theirs/v3", cwd=repository).out
    assert next(line for line in blamed.splitlines() if "Prefer the shortest" in line).startswith("e2")
    assert "unknown" in skillgit("cost", RUN, cwd=repository).out, "prices are not told"


def test_the_name_of_a_run_that_is_another_one_is_refused(repository, outputs, tmp_path):
    import_outputs(user(repository), outputs.path, RUN)
    other = write_outputs(tmp_path / "other", config={"seed": 7})
    with pytest.raises(ConflictError, match="run theirs exists already"):
        import_outputs(user(repository), other.path, RUN)


def replaced(path, make):
    path.unlink()
    make(path)


def without_steps(path, history):
    shutil.rmtree(path / "steps")
    (path / "history.json").write_text(history)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (shutil.rmtree, "there is no folder"),
        (lambda path: (path / "config.json").unlink(), "it has no config.json"),
        (lambda path: (path / "config.json").write_text('{"env": "sea'), "config.json is torn"),
        (lambda path: (path / "config.json").write_text("[1]"), "config.json holds no JSON object"),
        (lambda path: (path / "config.json").write_text("null"), "config.json holds null"),
        (lambda path: replaced(path / "config.json", os.mkfifo), "config.json cannot be read (it is not a plain file)"),
        (lambda path: replaced(path / "config.json", os.mkdir), "config.json cannot be read (it is not a plain file)"),
        (lambda path: (path / "skills/skill_v0000.md").unlink(), "it has no skills/skill_v0000.md"),
        (lambda path: (path / "skills/skill_v0000.md").write_bytes(b"\xff\xfe"), "skills/skill_v0000.md is not UTF-8"),
        (lambda path: without_steps(path, '[5, {"step": -1}]'), "history.json holds no list of JSON objects"),
        (lambda path: without_steps(path, "[{"), "history.json is torn"),
    ],
)
def test_what_is_no_output_directory_is_refused_in_one_sentence(spoil, sentence, repository, outputs):
    spoil(outputs.path)
    with pytest.raises(DataError) as refused:
        import_outputs(user(repository), outputs.path, RUN)
    assert sentence in refused.value.message
    assert refused.value.hint
    failed = skillgit("import", outputs.path, cwd=repository, code=2)
    assert failed.err.count("\n") == 2


def test_a_run_that_died_before_its_seed_had_a_score_is_refused(repository, tmp_path):
    outputs = write_outputs(tmp_path / "outputs", until=0, end=False)
    shutil.rmtree(outputs.path / "selection_eval_baseline")
    with pytest.raises(DataError, match="interrupted before its first skill had a score"):
        import_outputs(user(repository), outputs.path, RUN)
