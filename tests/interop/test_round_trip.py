from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from asking import ask
from hypothesis import given
from hypothesis import strategies as st
from interop.reference_outputs import write_outputs
from once import copy_folder
from program import git, new_repository, skillgit
from soaking import soak
from trained_runs import RUN, small_run, user

from skillgit.app.deliver.export.skillopt import export_layout
from skillgit.app.sources.skillopt.outputs import import_outputs
from skillgit.app.sources.skillopt.skill_texts import alike, with_our_markers, with_their_markers
from skillgit.app.upkeep.fsck import fsck
from skillgit.domain.event_kinds import EventKind
from skillgit.errors import ConflictError
from skillgit.store import history_reader
from skillgit.store.repo import Repo

DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
CHECKPOINTS = sorted((DATA / "skills/skillopt_ckpt").glob("*.md"))
PIECES = (
    "<!-- skillgit:slow -->",
    "<!-- /skillgit:slow -->",
    "<!-- skillgit:appendix -->",
    "- a rule",
    "\n",
    "é",
    "# A",
)


def story(repository, run):
    """Return what a run decided: kind, place, text, scores and decision of each event."""
    repo = Repo.discover(repository)
    found = []
    for record in history_reader.read_run(repo, run):
        event = record.event
        told = [event.kind, event.epoch, event.step, event.title if event.step else ""]
        if event.kind in {EventKind.RUN_STARTED, EventKind.ACCEPTED, EventKind.REJECTED, EventKind.SLOW_MERGED}:
            told.append(history_reader.skill_at(repo, record.commit, event.skill).digest)
        if event.kind is EventKind.SLOW_PROPOSED:
            told += [event.guidance, event.memory]
        evaluation, verdict = event.evaluation, event.verdict
        if evaluation is not None:
            told.append((evaluation.n, evaluation.scored, evaluation.unneeded, evaluation.hard, evaluation.soft))
        told.append(verdict)
        told += [event.fixed, event.broken, event.edits]
        found.append(told)
    return found


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A copy of a repository with a finished run of the demo."""
    return copy_folder(small_run(tmp_path_factory), tmp_path_factory.mktemp("demo") / "repository")


@pytest.fixture(scope="module")
def exported(demo, tmp_path_factory):
    """That run in the layout of the reference."""
    place = tmp_path_factory.mktemp("exported") / "outputs"
    ask(export_layout, user(demo), RUN, str(place))
    return place


def test_a_run_that_goes_out_and_comes_in_again_has_the_same_texts_scores_and_decisions(demo, exported, tmp_path):
    other = new_repository(tmp_path / "other")
    result = import_outputs(user(other), exported, RUN)
    assert result.remarks == ()
    assert story(other, RUN) == story(demo, RUN)
    checked = fsck(user(other), None, deep=True)
    assert checked.problems == ()
    assert not any("patch" in reason for run in checked.remade for reason in run.lacking)


def test_what_only_skillgit_reads_of_a_layout_is_not_what_the_round_trip_rests_on(demo, exported, tmp_path):
    bare = copy_folder(exported, tmp_path / "bare")
    for path in bare.rglob("*.json"):
        found = json.loads(path.read_text())
        for record in found if isinstance(found, list) else [found]:
            if isinstance(record, dict):
                record.pop("skillgit", None)
        path.write_text(json.dumps(found))
    other = new_repository(tmp_path / "other")
    import_outputs(user(other), bare, RUN)
    texts = [[row[0], row[2], row[4]] for row in story(demo, RUN) if row[0] in {"run-started", "accepted", "rejected"}]
    assert [
        [row[0], row[2], row[4]] for row in story(other, RUN) if row[0] in {"run-started", "accepted", "rejected"}
    ] == texts
    assert fsck(user(other), None, deep=True).problems == ()


def test_a_run_of_the_reference_goes_out_as_it_came_in(tmp_path):
    outputs = write_outputs(tmp_path / "outputs")
    first = new_repository(tmp_path / "first")
    import_outputs(user(first), outputs.path, RUN)
    ask(export_layout, user(first), RUN, str(tmp_path / "out"))
    for name in ("best_skill.md", *(f"skills/skill_v{step:04d}.md" for step in range(5))):
        theirs, ours = (outputs.path / name).read_text(), (tmp_path / "out" / name).read_text()
        assert alike(with_our_markers(ours).split("---\n\n", 1)[1], with_our_markers(theirs))
    history = json.loads((tmp_path / "out/history.json").read_text())
    assert [record["action"] for record in history] == [record["action"] for record in outputs.history]
    assert [record["best_score"] for record in history] == [0.6, 0.6, 0.6, 0.7]
    assert json.loads((tmp_path / "out/summary.json").read_text())["best_selection_hard"] == 0.8
    told = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and "/home/somebody" in path.read_text()]
    assert told == [], "nothing leads its programs back to where the run came from"
    second = new_repository(tmp_path / "second")
    import_outputs(user(second), tmp_path / "out", RUN)
    assert [row[3:-1] for row in story(second, RUN)] == [row[3:-1] for row in story(first, RUN)], "but for lost edits"
    assert fsck(user(second), None, deep=True).problems == ()


def test_the_layout_is_the_one_that_the_reference_reads(exported):
    """Its ``eval_only`` reads a YAML configuration and a text; the other files are those of its documented layout."""
    config = yaml.safe_load((exported / "config.json").read_text())
    assert config["env"] == "searchqa"
    assert config["target_model"]
    assert config["out_root"] == "", "it would take the results in this directory for those of another skill"
    assert not any(isinstance(value, dict) for value in config.values()), "flat"
    assert None not in config.values(), "it computes with timeouts, and null has no sum"
    best = (exported / "best_skill.md").read_text(encoding="utf-8")
    assert "skillgit:slow" not in best
    history = json.loads((exported / "history.json").read_text())
    steps = [record["step"] for record in history]
    assert steps == list(range(1, len(steps) + 1))
    needed = {
        *("step", "epoch", "step_in_epoch", "action", "current_score", "best_score", "best_step", "wall_time_s"),
        *("tokens", "n_edits_merged", "n_edits_ranked", "edit_budget", "current_origin", "best_origin", "skill_len"),
    }
    actions = {"accept_new_best", "accept", "reject", "force_accept", "skip_no_patches", "skip_no_rewrite"}
    for record in history:
        assert needed <= record.keys()
        assert record["action"] in actions
        folder = exported / f"steps/step_{record['step']:04d}"
        assert json.loads((folder / "step_record.json").read_text()) == record
        assert (exported / f"skills/skill_v{record['step']:04d}.md").is_file()
        if not record["action"].startswith("skip"):
            assert record["candidate_hash"]
            assert (folder / "candidate_skill.md").is_file()
            _check_results(folder / "selection_eval")
    for folder in ("selection_eval_baseline", "test_eval_baseline", "test_eval"):
        _check_results(exported / folder)
    state = json.loads((exported / "runtime_state.json").read_text())
    assert state["last_completed_step"] == steps[-1]
    assert all(Path(state[key]).is_absolute() for key in ("current_skill_path", "best_skill_path")), "it runs elsewhere"
    assert Path(state["current_skill_path"]).is_file()
    assert Path(state["best_skill_path"]).read_text() == best
    summary = json.loads((exported / "summary.json").read_text())
    assert summary["total_accepts"] + summary["total_rejects"] + summary["total_skips"] == len(steps)


def _check_results(folder):
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert rows
    for row in rows:
        assert {"id", "hard", "soft"} <= row.keys()
        conversation = json.loads((folder / "predictions" / row["id"] / "conversation.json").read_text())
        assert all({"role", "content"} <= turn.keys() for turn in conversation)


def test_an_export_never_mixes_with_what_stands_there(demo, exported, tmp_path):
    with pytest.raises(ConflictError, match="is not an empty folder"):
        ask(export_layout, user(demo), RUN, str(exported))
    refused = skillgit("export", RUN, "--as", "skillopt", cwd=demo, code=2)
    assert "say where to write" in refused.err
    done = json.loads(skillgit("export", RUN, tmp_path / "new", "--as", "skillopt", "--json", cwd=demo).out)
    assert done["schema"] == "skillgit.export-layout/1"
    assert done["files"] == sum(path.is_file() for path in (tmp_path / "new").rglob("*"))


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_markers_go_out_and_come_in_again(text):
    assert with_our_markers(with_their_markers(text)) == text


@pytest.mark.skipif(not CHECKPOINTS, reason=f"no real data at {DATA}; SKILLGIT_REAL_DATA names its folder")
@pytest.mark.parametrize(
    "path", [*CHECKPOINTS[:2], *(soak(path) for path in CHECKPOINTS[2:])], ids=lambda path: path.stem
)
def test_a_pretrained_skill_of_the_reference_becomes_a_valid_seed(path, tmp_path):
    skillgit("init", "repository", "--skill", path, cwd=tmp_path)
    (file,) = (tmp_path / "repository/skills").glob("*/SKILL.md")
    text = file.read_text()
    assert text.startswith(f"---\nname: {file.parent.name}\ndescription: ")
    assert "SLOW_UPDATE" not in text
    description = yaml.safe_load(text.split("---\n")[1])["description"]
    assert len(description.split()) > 4, "a title alone does not say what a skill does"
    assert git("status", "--porcelain", cwd=tmp_path / "repository").out == ""
