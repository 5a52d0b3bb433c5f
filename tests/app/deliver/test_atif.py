"""Evidence as ATIF trajectories: every recorded rollout once, by the format's rules, and readable as a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from atif_rules import Trajectory
from hypothesis import given
from hypothesis import strategies as st
from program import skillgit
from sample_run import RUN as SAMPLE
from sample_run import write_run
from trained_runs import RUN, small_run

from skillgit.app.deliver.export.atif import _steps
from skillgit.app.sources.sessions.agents import Atif
from skillgit.domain.trajectory import Picture, ToolUse, Turn


def trajectories(folder: Path) -> dict[str, Trajectory]:
    return {
        str(path.relative_to(folder)): Trajectory.model_validate_json(path.read_text())
        for path in sorted(folder.rglob("*.json"))
    }


@pytest.mark.parametrize("revision", ["v1", "r2", f"{RUN}/v0", RUN])
def test_every_recorded_rollout_is_a_trajectory(revision, tmp_path_factory, tmp_path):
    repository = small_run(tmp_path_factory)
    done = skillgit("export", revision, tmp_path / "out", "--as", "atif", "--json", cwd=repository)
    result = json.loads(done.out)
    written = trajectories(tmp_path / "out")
    event = json.loads(skillgit("show", revision, "--json", cwd=repository).out)["row"]
    assert result["schema"] == "skillgit.export-atif/1"
    assert result["trajectories"] == len(written) > 0
    for trajectory in written.values():
        facts = trajectory.extra["skillgit"]
        assert (facts["commit"], facts["run"]) == (event["commit"], RUN)
        assert facts["answer"] == trajectory.steps[-1].message or facts["answer"] in trajectory.steps[-1].message
        assert trajectory.agent.model_name == "offline/reader"
    assert len({trajectory.trajectory_id for trajectory in written.values()}) == len(written)
    scores = [each.extra["skillgit"]["hard"] for path, each in written.items() if path.startswith("selection/")]
    if revision == f"{RUN}/v0":
        assert sum(scores) / len(scores) == pytest.approx(event["score"])


def test_what_was_written_is_read_as_a_session(tmp_path_factory, tmp_path):
    skillgit("export", "v1", tmp_path / "out", "--as", "atif", cwd=small_run(tmp_path_factory))
    for path in (tmp_path / "out").rglob("*.json"):
        session, trajectory = Atif.read(path, lambda *_: None), json.loads(path.read_text())
        prompts = [step["message"] for step in trajectory["steps"] if step["source"] == "user"]
        assert [turn.prompt for turn in session.turns] == [prompt.strip() for prompt in prompts]
        assert not session.unknown


def test_only_new_folders_are_written_and_an_event_without_rollouts_says_so(repo, tmp_path):
    write_run(repo)
    skillgit("export", f"{SAMPLE}/v1", repo.workdir, "--as", "atif", cwd=repo.workdir, code=3)
    refusal = skillgit("export", f"{SAMPLE}/v1", tmp_path / "new", "--as", "atif", cwd=repo.workdir, code=3)
    assert "no rollouts" in refusal.err
    assert not (tmp_path / "new").exists()


WORDS = st.text(max_size=20)
TURNS = st.builds(
    Turn,
    role=st.sampled_from(["system", "user", "assistant", "tool", "other"]),
    content=WORDS,
    tool_calls=st.lists(
        st.builds(ToolUse, name=WORDS, arguments=st.sampled_from(['{"a": 1}', "[1]", "no JSON", '{"a": NaN}', ""])),
        max_size=3,
    ).map(tuple),
    pictures=st.just((Picture(digest="0" * 16, media_type="image/png", size=3),)) | st.just(()),
)


@given(st.lists(TURNS, min_size=1, max_size=8))
def test_any_conversation_obeys_the_rules(turns):
    steps = [{"step_id": number, **step} for number, step in enumerate(_steps(turns), 1)]
    agent = {"name": "x", "version": "1"}
    document = {"schema_version": "ATIF-v1.7", "agent": agent, "steps": steps}
    trajectory = Trajectory.model_validate_json(json.dumps(document, allow_nan=False))
    results = [row for step in trajectory.steps if step.observation for row in step.observation.results]
    assert len(trajectory.steps) + len(results) == len(turns)
    words = [turn.content for turn in turns]
    assert all(any(str(part).startswith(word) for part in _words(trajectory)) for word in words)


def _words(trajectory: Trajectory) -> list[object]:
    results = [row.content for step in trajectory.steps if step.observation for row in step.observation.results]
    return [*(step.message for step in trajectory.steps), *results]
