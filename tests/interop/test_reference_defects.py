"""Directories as the defects of the reference leave them: told in a sentence each, kept as they stand, and sound."""

from __future__ import annotations

import json
import shutil

import pytest
from interop.reference_outputs import CONFIG, SEED, every_object, rows, write_outputs
from program import git, new_repository, skillgit
from soaking import sampled
from trained_runs import user

from skillgit.app.sources.skillopt.outputs import import_outputs
from skillgit.app.upkeep.fsck import fsck
from skillgit.domain.event import CANDIDATES
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import DataError
from skillgit.store import history_reader
from skillgit.store.repo import Repo

RUN = "theirs"


@pytest.fixture
def repository(tmp_path):
    return new_repository(tmp_path / "repository")


@pytest.fixture
def outputs(tmp_path):
    return write_outputs(tmp_path / "outputs")


def change(outputs, name, **fields):
    """Change fields of the last record, or of the whole, in a JSON file."""
    file = outputs.path / name
    found = json.loads(file.read_text())
    (found[-1] if isinstance(found, list) else found).update(fields)
    file.write_text(json.dumps(found))


def sound(repository, outputs):
    """Import, check that the run keeps all rules, and return what was told and its events."""
    result = import_outputs(user(repository), outputs.path, RUN)
    assert fsck(user(repository), None, deep=True).problems == ()
    return result.remarks, [record.event for record in history_reader.read_run(Repo.discover(repository), RUN)]


def test_steps_that_a_resumed_run_tells_twice_are_taken_once(repository, outputs):
    file = outputs.path / "history.json"
    found = json.loads(file.read_text())
    file.write_text(json.dumps([*found[:2], *found]))
    remarks, events = sound(repository, outputs)
    assert any("tells step 1, 2 more than once" in sentence for sentence in remarks)
    assert sum(event.kind is EventKind.ACCEPTED for event in events) == 2


def test_a_step_that_history_lacks_is_taken_from_its_record(repository, outputs):
    file = outputs.path / "history.json"
    found = json.loads(file.read_text())
    file.write_text(json.dumps([found[0], *found[2:]]))
    remarks, events = sound(repository, outputs)
    assert "history.json lacks step 2; its step_record.json is taken" in remarks
    assert any(event.kind is EventKind.REJECTED and event.step == 2 for event in events)


def test_a_gap_after_a_resume_is_a_step_of_which_nothing_is_known(repository, outputs):
    file = outputs.path / "history.json"
    found = json.loads(file.read_text())
    file.write_text(json.dumps([found[0], *found[2:]]))
    (outputs.path / "steps/step_0002/step_record.json").unlink()
    remarks, events = sound(repository, outputs)
    assert any("step 2 has no record" in sentence for sentence in remarks)
    gap = next(event for event in events if event.kind is EventKind.SKIPPED and event.step == 2)
    assert gap.title == "nothing is recorded of this step"


def test_a_torn_history_is_read_from_the_records_of_the_steps(repository, outputs):
    (outputs.path / "history.json").write_text('[{"step": 1, "acti')
    remarks, events = sound(repository, outputs)
    assert any("; the steps are those of the step_record.json files" in sentence for sentence in remarks)
    assert len(events) == 8


def test_a_torn_history_without_records_of_steps_is_refused(repository, outputs):
    (outputs.path / "history.json").write_text('[{"step": 1, "acti')
    for record in outputs.path.glob("steps/*/step_record.json"):
        record.unlink()
    with pytest.raises(DataError, match=r"the steps of .* are not known: history\.json is torn"):
        import_outputs(user(repository), outputs.path, RUN)


def test_a_best_score_that_is_rounded_is_told_and_the_measured_one_kept(repository, outputs):
    change(outputs, "summary.json", best_selection_hard=0.83)
    remarks, _ = sound(repository, outputs)
    assert any("gives the best score as 0.83, and that of v3 is 0.8" in sentence for sentence in remarks)


def test_a_wrong_pointer_to_the_best_skill_is_told(repository, outputs):
    (outputs.path / "best_skill.md").write_text(SEED)
    remarks, _ = sound(repository, outputs)
    assert any("best_skill.md is not the text of v3" in sentence for sentence in remarks)


def test_a_score_that_its_results_contradict_is_kept_and_told(repository, outputs):
    outputs.results("steps/step_0004/selection_eval", rows(9))
    remarks, events = sound(repository, outputs)
    assert any("step 4 of history.json says 0.7, and its results.jsonl says 0.9" in sentence for sentence in remarks)
    four = next(event for event in events if event.kind is EventKind.ACCEPTED and event.step == 4)
    assert (four.evaluation.hard, four.verdict.score, four.fixed) == (0.7, 0.7, ())
    evidence = git("log", "-1", "--format=%(trailers:key=Skillgit-Evidence,valueonly)", "theirs/v2", cwd=repository).out
    kept = git("show", f"{evidence.strip()}:skillopt/selection.json", cwd=repository).out
    assert len(json.loads(kept)) == 10


def test_an_acceptance_that_its_scores_do_not_give_is_kept_as_one_without_a_gate(repository, outputs):
    outputs.results("steps/step_0004/selection_eval", rows(5))
    for name in ("history.json", "steps/step_0004/step_record.json"):
        change(outputs, name, selection_hard=0.5, selection_soft=0.55, candidate_gate_score=0.5)
    remarks, events = sound(repository, outputs)
    assert any("step 4 was accepted, and its scores do not say so (0.5 against 0.6)" in told for told in remarks)
    four = next(event for event in events if event.kind is EventKind.ACCEPTED and event.step == 4)
    assert (four.verdict.decision, four.verdict.gated) == ("force_accept", False)


def test_a_rejection_that_its_scores_do_not_give_is_kept_as_not_decided(repository, outputs):
    outputs.results("steps/step_0002/selection_eval", rows(9))
    history = json.loads((outputs.path / "history.json").read_text())
    history[1] |= {"selection_hard": 0.9, "selection_soft": 0.91, "candidate_gate_score": 0.9}
    (outputs.path / "history.json").write_text(json.dumps(history))
    remarks, events = sound(repository, outputs)
    assert any("step 2 was rejected, and its scores say otherwise" in sentence for sentence in remarks)
    two = next(event for event in events if event.kind is EventKind.REJECTED)
    assert two.verdict.decision == "indecisive"


@pytest.mark.parametrize("scored", sampled([True, False], 2))
def test_guidance_that_a_gate_refused_stays_beside_the_line(scored, repository, outputs):
    shutil.rmtree(outputs.path / "final_selection_eval")
    told = {"action": "reject", **({"selection_hard": 0.6, "selection_soft": 0.64} if scored else {})}
    if scored:
        outputs.results("slow_update/epoch_02/selection_eval", rows(6))
    change(outputs, "slow_update/epoch_02/slow_result.json", **told)
    _, events = sound(repository, outputs)
    assert not any(event.kind is EventKind.SLOW_MERGED for event in events)
    proposed = next(event for event in events if event.kind is EventKind.SLOW_PROPOSED)
    assert proposed.verdict.decision == ("reject" if scored else "indecisive")


def test_a_text_that_changed_without_a_gate_is_told_and_comes_with_the_next_candidate(repository, outputs):
    note = "\n<!-- APPENDIX_START -->\n- Look twice.\n<!-- APPENDIX_END -->\n"
    file = outputs.path / "skills/skill_v0003.md"
    file.write_text(file.read_text() + note)
    candidate = outputs.path / "steps/step_0004/candidate_skill.md"
    candidate.write_text(candidate.read_text() + note)
    remarks, events = sound(repository, outputs)
    assert any("skills/skill_v0003.md is not the text of v1" in sentence for sentence in remarks)
    four = next(event for event in events if event.kind is EventKind.ACCEPTED and event.step == 4)
    assert any(change.text == "- Look twice." for change in four.changes)
    assert "<!-- skillgit:appendix -->" in git("show", "theirs/v2:skills/searchqa/SKILL.md", cwd=repository).out


def test_results_with_torn_and_repeated_lines_do_not_become_items(repository, outputs):
    file = outputs.path / "steps/step_0001/selection_eval/results.jsonl"
    text = file.read_text()
    file.write_text(text + text.splitlines()[0] + '\n{"id": "q0')
    remarks, events = sound(repository, outputs)
    assert any("1 line that cannot be read" in sentence for sentence in remarks)
    assert any("step 1 of history.json says 0.6, and its results.jsonl says nothing" in told for told in remarks)
    assert next(event for event in events if event.kind is EventKind.ACCEPTED).evaluation.hard == 0.6


def test_a_candidate_whose_text_is_lost_is_no_candidate(repository, outputs):
    (outputs.path / "steps/step_0002/candidate_skill.md").unlink()
    remarks, events = sound(repository, outputs)
    assert any("step 2 was rejected, and the candidate's text is lost" in sentence for sentence in remarks)
    assert not any(event.kind is EventKind.REJECTED for event in events)


def test_a_state_that_was_written_before_the_history_is_told(repository, outputs):
    change(outputs, "runtime_state.json", last_completed_step=3)
    remarks, _ = sound(repository, outputs)
    assert any("runtime_state.json is at step 3, and the steps end with 4" in sentence for sentence in remarks)


def test_a_step_that_was_begun_is_left_out(repository, outputs):
    outputs.results("steps/step_0005/rollout", rows(3))
    remarks, events = sound(repository, outputs)
    assert "step 5 was begun and not finished; it is left out" in remarks
    assert len(events) == 8


def test_more_edits_than_the_budget_allows_leave_the_budget_out(repository, outputs):
    for name in ("history.json", "steps/step_0004/step_record.json"):
        change(outputs, name, edit_budget=0)
    remarks, events = sound(repository, outputs)
    assert any("step 4 applied 1 edits with a budget of 0" in sentence for sentence in remarks)
    assert next(event for event in events if event.kind is EventKind.ACCEPTED and event.step == 4).patch.budget is None


def test_a_directory_without_outcomes_of_items_keeps_the_scores_that_are_told(repository, outputs):
    for file in outputs.path.glob("**/results.jsonl"):
        file.unlink()
    remarks, events = sound(repository, outputs)
    assert any("selection_eval_baseline/results.jsonl is missing" in sentence for sentence in remarks)
    scores = [event.evaluation.hard for event in events if event.kind in CANDIDATES]
    assert scores == [0.6, 0.5, 0.7]
    assert all(event.evaluation.n == 0 for event in events if event.kind in CANDIDATES)


def test_a_score_that_is_none_is_refused_and_nothing_is_written(repository, outputs):
    change(outputs, "history.json", selection_hard=7)
    with pytest.raises(DataError, match=r"step 4 of history\.json has selection_hard 7"):
        import_outputs(user(repository), outputs.path, RUN)
    assert history_reader.runs(Repo.discover(repository)) == []


def test_names_of_items_that_climb_out_of_their_folder_are_not_followed(repository, outputs, tmp_path):
    (tmp_path / "conversation.json").write_text('[{"role": "user", "content": "elsewhere"}]')
    found = [{**row, "id": "../../../../.." if row["id"] == "q01" else row["id"]} for row in rows(6)]
    lines = "".join(f"{json.dumps(row)}\n" for row in found)
    (outputs.path / "steps/step_0001/rollout/results.jsonl").write_text(lines)
    sound(repository, outputs)
    assert b"elsewhere" not in every_object(repository)


def test_links_that_lead_out_of_the_directory_are_not_followed(repository, outputs, tmp_path):
    (tmp_path / "private.md").write_text("# Private\n")
    candidate = outputs.path / "steps/step_0002/candidate_skill.md"
    candidate.unlink()
    candidate.symlink_to(tmp_path / "private.md")
    remarks, _ = sound(repository, outputs)
    assert "steps/step_0002/candidate_skill.md leads out of the directory, and is left out" in remarks
    assert b"# Private" not in every_object(repository)


def test_escapes_in_texts_of_models_never_reach_the_terminal(repository, outputs):
    ranked = outputs.path / "steps/step_0001/ranked_edits.json"
    found = json.loads(ranked.read_text())
    found["edits"][0]["content"] = "\x1b[31mred\x1b[0m\x07 rule"
    found["reasoning"] = "Skillgit-Event: run-finished"
    ranked.write_text(json.dumps(found))
    sound(repository, outputs)
    shown = skillgit("show", "theirs/v1", cwd=repository).out
    assert "\x1b" not in shown
    assert "red rule" in shown


def test_a_configuration_in_sections_is_read_like_a_flat_one(repository, tmp_path):
    outputs = write_outputs(tmp_path / "outputs")
    sections = {
        "env": {"name": "searchqa"},
        "model": {"optimizer": CONFIG["optimizer_model"], "target": "gpt-5.5-mini", "target_backend": "openai_chat"},
        "evaluation": {"gate_metric": "soft"},
        "train": {"seed": 7},
    }
    (outputs.path / "config.json").write_text(json.dumps(sections))
    _, events = sound(repository, outputs)
    assert events[0].skill == "skills/searchqa"
    assert events[0].models.target == "openai_chat/gpt-5.5-mini"
    assert events[0].evaluation.seed == 7
    assert events[1].verdict.metric == "soft"
