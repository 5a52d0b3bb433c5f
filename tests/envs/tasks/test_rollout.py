from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train
from program import skillgit
from saying import Says
from wire.scripted import TARGET

from skillgit.domain.evaluation import Split
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Reply, ToolCall, Usage
from skillgit_envs.tasks import FORMS, Tasks

if TYPE_CHECKING:
    from pathlib import Path


def calls(name: str, **arguments: object) -> Reply:
    call = ToolCall(id="1", name=name, arguments=json.dumps(arguments))
    return Reply(text="", usage=Usage(tokens_in=1, tokens_out=1), finish_reason="tool_calls", tool_calls=(call,))


def rolled_out(folder: Path, row: dict, target: Says, **options: object):
    environment = Tasks(options, folder)
    item = environment._reader.item("the row", row, folder / "tasks.jsonl")

    async def work():
        trajectory = await environment.rollout(item, environment.seed_skill(), target)
        return trajectory, await environment.score(item, trajectory, target)

    return asyncio.run(work())


def test_without_tools_the_target_is_asked_once(tmp_path: Path):
    target = Says("It is <answer>so</answer>.")
    trajectory, (scored, said) = rolled_out(tmp_path, {"prompt": "Why?", "answer": "so"}, target)
    assert [turn.role for turn in trajectory.turns] == ["user", "assistant"]
    assert trajectory.turns[0].content == f"Why?\n\n{FORMS['tag']}"
    assert (trajectory.answer, scored.hard, said) == ("so", 1.0, "correct")


def test_a_file_that_has_changed_is_a_fault_and_no_wrong_answer(tmp_path: Path):
    (tmp_path / "a.txt").write_text("one")
    environment = Tasks({}, tmp_path)
    row = {"prompt": "Why?", "answer": "so", "files": ["a.txt"]}
    item = environment._reader.item("the row", row, tmp_path / "t.jsonl")
    for spoil in (lambda: (tmp_path / "a.txt").write_text("two"), (tmp_path / "a.txt").unlink):
        spoil()
        with pytest.raises(EnvironmentFaultError, match=r"a\.txt (has changed|cannot be read)"):
            asyncio.run(environment.rollout(item, environment.seed_skill(), Says("")))


@pytest.mark.usefixtures("isolated")
def test_tools_look_into_the_files_of_the_item(tmp_path: Path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("The oak is old.\nThe elm is older.\n")
    (tmp_path / "hidden.txt").write_text("not for the target")
    target = Says(calls("grep", pattern="elm"), calls("read", path="../hidden.txt"), "<answer>elm</answer>")
    row = {"prompt": "Which is older?", "answer": "elm", "files": ["notes/a.txt"]}
    trajectory, (scored, _) = rolled_out(tmp_path, row, target, tools="read")
    said = [turn.content for turn in trajectory.turns if turn.role == "tool"]
    assert said[0] == "notes/a.txt:2: The elm is older."
    assert "hidden" not in said[0]
    assert said[1].startswith("error: there is no document")
    assert "Use the tools to look into these files: notes/a.txt" in trajectory.turns[0].content
    assert scored.hard == 1.0


@pytest.mark.usefixtures("isolated")
def test_files_that_python_makes_are_there_for_the_checks(tmp_path: Path):
    (tmp_path / "in.csv").write_text("a,1\nb,2\n")
    (tmp_path / "check.py").write_text("assert open('made/out.txt').read() == '3'\n")
    code = "n = [int(l.split(',')[1]) for l in open('documents/in.csv')]\nopen('out.txt', 'w').write(str(sum(n)))"
    row = {
        "prompt": "Write the sum to out.txt.",
        "files": ["in.csv"],
        "check": {"type": "command", "command": "python check.py", "files": ["check.py"]},
    }
    trajectory, (scored, _) = rolled_out(tmp_path, row, Says(calls("python", code=code), "Done."), tools="python")
    assert trajectory.products == {"out.txt": b"3"}
    assert scored.hard == 1.0
    trajectory, (scored, _) = rolled_out(tmp_path, row, Says("Done."), tools="python")
    assert (trajectory.products, scored.hard) == ({}, 0.0)


def test_the_shipped_tasks_are_divided_and_need_nothing(tmp_path: Path):
    environment = Tasks({}, tmp_path)
    assert [len(environment.items(split)) for split in Split] == [10, 6, 6]
    assert not environment.asks_judge


@pytest.mark.slow
def test_a_file_with_a_rubric_trains_over_the_wire(tmp_path: Path):
    evals = [
        {"id": n, "prompt": f"Greet guest {n} warmly.", "expectations": ["It is warm.", "It has a name."]}
        for n in range(12)
    ]
    folder = tmp_path / "sales" / "evals"
    folder.mkdir(parents=True)
    (folder / "evals.json").write_text(json.dumps({"skill_name": "sales", "evals": evals}))
    script = (
        (TARGET, "Dear guest, welcome."),
        ("# Grade a result", '{"scores": [1, 0], "reason": "warm, but nobody is named"}'),
    )
    options = ("-o", f"env.data_path={folder / 'evals.json'}", "-o", "env.split_ratio=1:1:1")
    repository, asked = train(tmp_path, "tasks", *options, scripted=script, keep=True)
    assert events(repository)[0]["kind"] == "run-finished"
    shown = skillgit("show", "v0", "--json", cwd=repository).out
    assert json.loads(shown)["event"]["evaluation"]["soft"] == 0.5
    graded = [entry for entry in asked if "# Grade a result" in json.dumps(entry.document)]
    assert graded


@pytest.mark.slow
@pytest.mark.usefixtures("isolated")
def test_a_target_with_python_trains_over_the_wire(tmp_path: Path):
    rows = [{"id": str(n), "prompt": f"Work out {n} + {n}.", "answer": 2 * n, "check": "numeric"} for n in range(12)]
    (tmp_path / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    script = (
        (TARGET, 'tool:python {"code": "print(20 + 1)"}'),
        ("[exit code 0]", "<answer>21</answer>"),
    )
    options = ("-o", f"env.data_path={tmp_path / 'sums.jsonl'}", "-o", "env.split_ratio=1:1:1")
    few = ("-o", "env.limit=2", "-o", "train.batch_size=2")
    repository, asked = train(tmp_path, "tasks", *options, *few, "-o", "env.tools=python", scripted=script, keep=True)
    assert events(repository)[0]["kind"] == "run-finished"
    results = [
        message["content"] for entry in asked for message in entry.document["messages"] if message["role"] == "tool"
    ]
    assert results
    assert all("21\n[exit code 0]" in str(result) for result in results)
