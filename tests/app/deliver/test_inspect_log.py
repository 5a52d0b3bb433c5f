"""Evidence as logs of Inspect: every recorded rollout is a sample, and Inspect's own reader opens what is written."""

from __future__ import annotations

import json
from statistics import fmean

import pytest
from program import skillgit
from trained_runs import RUN, small_run

from skillgit.app.deliver.export.inspect_log import _messages
from skillgit.domain.trajectory import ToolUse, Turn


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    repository, folder = small_run(tmp_path_factory), tmp_path_factory.mktemp("logs") / "out"
    done = skillgit("export", "v1", folder, "--as", "inspect", "--json", cwd=repository)
    return repository, folder, json.loads(done.out)


def test_every_recorded_rollout_is_a_sample_with_its_scores(exported, tmp_path):
    repository, folder, result = exported
    logs = [json.loads(path.read_text()) for path in sorted(folder.iterdir())]
    samples = [sample for log in logs for sample in log["samples"]]
    assert (result["logs"], result["samples"]) == (len(logs), len(samples))
    skillgit("export", "v1", tmp_path / "atif", "--as", "atif", cwd=repository)
    told = [json.loads(path.read_text()) for path in (tmp_path / "atif").rglob("*.json")]
    facts = sorted((each["extra"]["skillgit"]["item"], each["extra"]["skillgit"]["hard"]) for each in told)
    assert sorted((sample["id"], sample["scores"]["hard"]["value"]) for sample in samples) == facts
    for log in logs:
        (hard,) = (score for score in log["results"]["scores"] if score["name"] == "hard")
        assert hard["metrics"]["mean"]["value"] == fmean(each["scores"]["hard"]["value"] for each in log["samples"])
        assert log["eval"]["task"].startswith(f"{RUN}/v1/")
        for sample in log["samples"]:
            assert sample["output"]["choices"][0]["message"] == sample["messages"][-1]
            assert sample["input"] == sample["messages"][0]["content"]


def test_what_tools_brought_refers_to_their_calls():
    uses = (ToolUse(name="read", arguments='{"path": "a"}'), ToolUse(name="grep", arguments="no JSON"))
    turns = [Turn(role="assistant", content="", tool_calls=uses), *(Turn(role="tool", content=text) for text in "abc")]
    called, *results = _messages(turns)
    assert [call["arguments"] for call in called["tool_calls"]] == [{"path": "a"}, {"text": "no JSON"}]
    ids = [call["id"] for call in called["tool_calls"]]
    assert [result.get("tool_call_id") for result in results] == [*ids, None]


def test_the_reader_of_inspect_opens_the_logs(exported):
    log = pytest.importorskip("inspect_ai.log", reason="the extra inspect is not installed")
    _, folder, result = exported
    read = [log.read_eval_log(each) for each in log.list_eval_logs(str(folder))]
    assert len(read) == result["logs"]
    assert [log.read_eval_log(each.location, header_only=True).eval for each in read] == [each.eval for each in read]
    assert sum(len(each.samples) for each in read) == result["samples"]
