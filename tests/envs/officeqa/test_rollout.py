from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from over_the_wire import events, train
from program import skillgit
from wire.scripted import TARGET

from skillgit.domain.evaluation import Split
from skillgit.errors import EnvironmentFaultError
from skillgit.plugin.backend import Reply, ToolCall, Usage
from skillgit.sandbox.conversation import LAST
from skillgit_envs.officeqa import OfficeQA

if TYPE_CHECKING:
    from skillgit.domain.trajectory import Item
    from skillgit.plugin.backend import Message, Tool

ALL = ("calder_1961_03.txt", "calder_1961_06.txt", "calder_1961_09.txt")


class Says:
    """A model that calls tools in turn, then answers."""

    def __init__(self, *calls: tuple[str, dict[str, object]], answer: str = "<answer>187.9</answer>") -> None:
        self.calls = list(calls)
        self.answer = answer
        self.heard: list[list[Message]] = []
        self.tools: list[Tool] = []

    async def chat(self, messages, tools=()):
        self.heard.append(list(messages))
        self.tools = list(tools)
        usage = Usage(tokens_in=1, tokens_out=1)
        if not self.calls:
            return Reply(text=self.answer, usage=usage)
        name, arguments = self.calls.pop(0)
        call = ToolCall(id=f"c{len(self.heard)}", name=name, arguments=json.dumps(arguments))
        return Reply(text="", usage=usage, finish_reason="tool_calls", tool_calls=(call,))

    @property
    def results(self) -> list[str]:
        return [message.text for message in self.heard[-1] if message.role == "tool"]


def rolled_out(folder: Path, target: Says, item: str = "calder-01", **options: str | float | bool):
    environment = OfficeQA(options, folder)
    found: Item = next(item_ for split in Split for item_ in environment.items(split) if item_.id == item)
    trajectory = asyncio.run(environment.rollout(found, environment.seed_skill(), target))
    return trajectory, asyncio.run(environment.score(found, trajectory, target))


def test_the_target_finds_the_answer_with_the_tools(tmp_path: Path):
    target = Says(
        ("glob", {"pattern": "**"}),
        ("grep", {"pattern": "^\\| Customs", "path": "calder_1961_03.txt"}),
        ("read", {"path": "calder_1961_03.txt", "offset": 20, "lines": 3}),
    )
    trajectory, (scored, said) = rolled_out(tmp_path, target)
    listed, row, lines = target.results
    assert [line.split()[0] for line in listed.splitlines()] == list(ALL)
    assert "| Customs | 212.4 | 198.7 | 187.9 |" in row
    assert lines.startswith("20\t")
    assert [tool.name for tool in target.tools] == ["glob", "grep", "read"]
    assert [turn.role for turn in trajectory.turns] == ["user", *["assistant", "tool"] * 3, "assistant"]
    assert (scored.hard, scored.soft, said) == (1.0, 1.0, 'correct: the answer "187.9" matches "187.9"')
    assert "<documents>" not in trajectory.turns[0].content


def test_only_the_documents_of_the_item_are_shown_if_that_is_asked_for(tmp_path: Path):
    target = Says(
        ("glob", {"pattern": "**"}),
        ("read", {"path": "calder_1961_06.txt"}),
        ("read", {"path": "../calder_1961_06.txt"}),
        ("grep", {"pattern": "Customs"}),
    )
    trajectory, _ = rolled_out(tmp_path, target, scope="item")
    listed, other, outside, found = target.results
    assert listed.split()[0] == "calder_1961_03.txt"
    assert "calder_1961_06.txt" not in listed + found
    assert other == "error: there is no document 'calder_1961_06.txt'"
    assert outside.startswith("error: there is no document")
    assert trajectory.turns[0].content.startswith("<documents>\ncalder_1961_03.txt\n</documents>\n\n<question>")


def test_no_tool_leads_to_the_answers_of_the_data(tmp_path: Path):
    target = Says(
        ("grep", {"pattern": "calder-0"}),
        ("read", {"path": "../train/items.json"}),
        ("read", {"path": str(Path(__file__).resolve())}),
    )
    rolled_out(tmp_path, target)
    assert target.results[0] == "no match"
    assert all(result.startswith("error: there is no document") for result in target.results[1:])


def test_pages_are_given_away_only_if_that_is_asked_for(tmp_path: Path):
    asked = [
        rolled_out(tmp_path, Says(), "calder-10", oracle_pages=oracle)[0].turns[0].content for oracle in (False, True)
    ]
    assert "<page" not in asked[0]
    assert '<page document="calder_1961_06.txt" number="3">' in asked[1]
    assert "The right figure is 83.7" in asked[1]
    assert asked[1].endswith(asked[0])


def test_without_tools_the_target_is_asked_once(tmp_path: Path):
    target = Says(answer="I would say\n<FINAL_ANSWER>187.9</FINAL_ANSWER>")
    trajectory, (scored, _) = rolled_out(tmp_path, target, use_local_tools=False)
    assert (len(target.heard), target.tools, trajectory.answer, scored.hard) == (1, [], "187.9", 1.0)


def test_the_last_reply_has_to_answer(tmp_path: Path):
    target = Says(*[("glob", {"pattern": "*"})] * 9)
    trajectory, (scored, said) = rolled_out(tmp_path, target, max_turns=3)
    assert len(target.heard) == 3
    assert target.results[-1].endswith(LAST)
    assert (trajectory.answer, scored.hard) == ("", 0.0)
    assert said == 'expected "187.9", not "": there is no answer'


def test_a_wrong_call_is_told_to_the_target(tmp_path: Path):
    target = Says(("python", {"code": "1"}), ("read", {}), ("grep", {"pattern": "("}), ("search", {"query": "x"}))
    rolled_out(tmp_path, target)
    assert target.results[0] == "error: there is no tool 'python'; there are: glob, grep, read"
    assert target.results[1] == "error: read needs the argument 'path'"
    assert target.results[2].startswith("error: no valid regular expression")
    assert target.results[3].startswith("error: there is no tool 'search'")


def test_documents_that_have_gone_are_a_fault_and_not_a_wrong_answer(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("x")
    rows = [{"uid": f"U{n}", "question": f"{n}?", "answer": "1", "source_files": "a.txt"} for n in range(10)]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    environment = OfficeQA({"data_path": "rows.json", "docs_dir": "docs", "scope": "item"}, tmp_path)
    item = environment.items(Split.TRAIN)[0]
    (tmp_path / "docs" / "a.txt").unlink()
    with pytest.raises(EnvironmentFaultError, match=r"document a\.txt cannot be copied"):
        asyncio.run(environment.rollout(item, environment.seed_skill(), Says()))


@pytest.mark.soak
def test_tools_work_over_the_wire(tmp_path: Path):
    said = (
        (TARGET, 'tool:grep {"pattern": "Customs"}'),
        ("calder_1961_03.txt:", "<answer>187.9</answer>"),
    )
    few = ("-o", "evaluation.gate_metric=hard", "-o", "env.limit=2", "-o", "train.batch_size=2")
    repository, asked = train(tmp_path, "officeqa", *few, scripted=said, keep=True)
    answered = [entry.document for entry in asked if entry.role == "target" and "tool_call_id" in str(entry.document)]
    assert answered
    results = [message for document in answered for message in document["messages"] if message["role"] == "tool"]
    assert all("| Customs | 212.4 | 198.7 | 187.9 |" in str(result["content"]) for result in results)
    assert {tool["function"]["name"] for tool in answered[0]["tools"]} == {"glob", "grep", "read"}
    assert events(repository)[0]["kind"] == "run-finished"


@pytest.mark.slow
def test_real_bulletins_go_over_the_wire(real: Path, tmp_path: Path):
    questions = [
        {
            "uid": f"ours-{number}",
            "question": f"In which month was the bulletin printed? ({number})",
            "answer": "December 2016",
            "source_files": "treasury_bulletin_2016_12.txt",
        }
        for number in range(10)
    ]
    (tmp_path / "rows.json").write_text(json.dumps(questions))
    said = (
        (TARGET, 'tool:read {"path": "treasury_bulletin_2016_12.txt", "lines": 5}'),
        ("DECEMBER 2016", "December 2016"),
    )
    options = (
        f"env.data_path={tmp_path / 'rows.json'}",
        f"env.docs_dir={real / 'text_pypdf'}",
        "env.scope=item",
        "env.split_ratio=4:3:3",
        "train.stop_at_ceiling=false",
        "env.limit=2",
        "train.batch_size=2",
    )
    words = [word for option in options for word in ("-o", option)]
    repository, _ = train(tmp_path, "officeqa", *words, scripted=said)
    shown = skillgit("show", "wire/v0", "--json", cwd=repository).out
    assert json.loads(shown)
    assert {event["kind"] for event in events(repository)} >= {"run-started", "run-finished"}
    assert events(repository)[-1]["score"] == 1.0
