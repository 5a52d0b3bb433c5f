from __future__ import annotations

import json
import shlex

from program import skillgit
from trained_runs import small_run


def test_a_plugin_is_built_checked_and_its_cases_come_back(tmp_path_factory, tmp_path):
    repository = small_run(tmp_path_factory)
    rows = [
        {"id": "tone", "prompt": "Say hello.", "rubric": "It is polite."},
        {"id": "other", "prompt": "x", "answer": "y"},
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    words = ("export", "best", tmp_path / "plugin", "--as", "plugin", "--evals", tmp_path / "tasks.jsonl")
    assert skillgit(*words, "--check", cwd=repository, code=1).out.startswith(
        f"{tmp_path}/plugin is not what would be built"
    )
    built = skillgit(*words, cwd=repository)
    (best,) = [
        f"v{event['version']}"
        for event in json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
        if event["is_best"]
    ]
    assert f"searchqa {best} · 1 eval case" in built.out
    assert built.err == "left out other: it has a check that no grader equals\n"
    assert "holds this already" in skillgit(*words, "--check", cwd=repository).out
    again = tmp_path / "again.jsonl"
    done = skillgit("tasks", "draft", "--from", tmp_path / "plugin" / "searchqa", "-f", again, "--json", cwd=repository)
    assert json.loads(done.out)["tasks"] == ["tone"]
    assert json.loads(again.read_text()) == rows[0]
    (tmp_path / "plugin" / "mine.txt").write_text("mine")
    refusal = skillgit(*words, "--name", "next", cwd=repository, code=4)
    assert "was changed by hand since it was built" in refusal.err
    hint = shlex.split(refusal.err.partition("hint: skillgit ")[2].partition(" lists what")[0])
    assert "mine.txt" in skillgit(*hint, cwd=repository, code=1).out


def test_a_plugin_of_a_rejected_candidate_says_so(tmp_path_factory, tmp_path):
    repository = small_run(tmp_path_factory)
    events = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    commit = next(event["commit"] for event in events if event["kind"] == "rejected")
    built = skillgit("export", "--as", "plugin", commit, tmp_path / "plugin", cwd=repository)
    assert built.err == f"{commit[:7]} is not a version that a training accepted\n"
    assert "accepted;" not in (tmp_path / "plugin/searchqa/README.md").read_text()
