"""The comparison of programs with a real model: its door, its runs and its table, with a stand-in for both models."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from served import HOST, JsonHandler, listening

if TYPE_CHECKING:
    from collections.abc import Iterator

REAL = Path(__file__).parent / "bench" / "real"
sys.path.append(str(REAL))

from compare import tables  # noqa: E402
from door import OPTIMIZER, Door, fetch, opened  # noqa: E402

COLOURS = ("red", "blue", "green")
BAND = "A band of any colour other than red is answered with blue."


class Target:
    """A server whose model says red until its skill says better; it counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    def reply(self, body: dict[str, Any]) -> str:
        self.asked.append(body)
        text = "\n".join(str(message["content"]) for message in body["messages"])
        right = "blue" if BAND in text and "band: red" not in text else "red"
        return f"<answer>{right}</answer>"


@contextmanager
def serving(target: Target) -> Iterator[str]:
    class Handler(JsonHandler, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_json({"object": "list", "data": [{"id": "small", "object": "model", "created": 1}]})

        def do_POST(self) -> None:
            body = self.read_json()
            if self.path.endswith("/tokenize"):
                self.send_json({"tokens": body["content"].split()})
                return
            message = {"role": "assistant", "content": target.reply(body)}
            usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self.send_json({"id": "x", "model": body["model"], "choices": [choice], "usage": usage})

    with listening(Handler) as address:
        yield address


@pytest.fixture
def door(tmp_path: Path) -> Iterator[tuple[Door, Target]]:
    target = Target()
    with serving(target) as address, opened(address, tmp_path / "replies.db", tmp_path / OPTIMIZER) as door:
        yield door, target


def question(text: str, **more: object) -> dict[str, Any]:
    return {"model": "small", "messages": [{"role": "user", "content": text}], **more}


def test_the_target_is_asked_once_for_each_request_and_each_one_counts(door: tuple[Door, Target]):
    it, target = door
    first = fetch(f"{it.url}/v1/chat/completions", question("band: red", temperature=1, max_tokens=9))
    assert (
        fetch(f"{it.url}/target/v1/chat/completions", question("band: red", max_completion_tokens=5, seed=3)) == first
    )
    assert len(target.asked) == 1
    assert target.asked[0]["temperature"] == 0
    assert (it.used["target"].calls, it.used["target"].tokens_in, it.used["target"].cached) == (2, 20, 8)


def test_a_question_to_the_optimizer_waits_for_its_file_and_the_same_one_is_another_question(
    door: tuple[Door, Target],
):
    it, target = door
    said: list[str] = []

    def ask() -> None:
        reply = json.loads(fetch(f"{it.url}/optimizer/v1/chat/completions", question("What now?")))
        said.append(reply["choices"][0]["message"]["content"])

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    answer(it.prompts, lambda page: f"{page.name[-11]}: go on", 2)
    for thread in threads:
        thread.join(60)
    assert sorted(said) == ["1: go on", "2: go on"]
    assert not target.asked
    assert it.used[OPTIMIZER].calls == 2
    assert it.used[OPTIMIZER].tokens_out == 6


def test_a_form_of_the_reply_is_in_the_question(door: tuple[Door, Target]):
    it, _ = door
    schema = {"type": "object", "properties": {"edits": {"type": "array"}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    thread = threading.Thread(
        target=fetch,
        args=(f"{it.url}/v1/chat/completions", question("Edit.", response_format=form) | {"model": OPTIMIZER}),
    )
    thread.start()
    answer(it.prompts, lambda page: json.dumps({"edits": []}) if json.dumps(schema) in page.read_text() else "?", 1)
    thread.join(60)
    assert [path.read_text() for path in it.prompts.glob("*.answer.md")] == ['{"edits": []}']


def answer(folder: Path, say: Any, count: int) -> None:
    """Answer ``count`` questions as they come."""
    deadline = time.monotonic() + 120
    while count and time.monotonic() < deadline:
        for page in folder.glob("*.prompt.md"):
            path = page.with_name(page.name.replace(".prompt.md", ".answer.md"))
            if not path.exists():
                fresh = path.with_suffix(".new")
                fresh.write_text(say(page))
                fresh.replace(path)
                count -= 1
        time.sleep(0.01)


def task_folder(place: Path) -> Path:
    """Write a task of bands whose colours stand in the question."""
    (place / "tasks").mkdir(parents=True)
    splits = {"train": 8, "selection": 8, "test": 6}
    rows = [
        {"id": f"{split}-{number}", "question": f"band: {colour} in {split} box {number}", "split": split,
         "answer": "red" if colour == "red" else "blue"}
        for split, size in splits.items() for number in range(size) for colour in [COLOURS[number % len(COLOURS)]]
    ]  # fmt: skip
    (place / "tasks" / "bands.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    skill = place / ".claude" / "skills" / "bands"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        "---\nname: bands\ndescription: Names bands. Use for bands.\n---\n\nName the band.\n"
    )
    return place


def reply_of_the_optimizer(page: Path) -> str:
    """Propose the one rule that helps, and nothing where something else is asked."""
    text = page.read_text()
    if '"edits"' not in text:
        return "{}"
    edit = {"op": "append", "content": f"- {BAND}", "why": "the failures", "title": "bands"}
    return json.dumps({"analysis": "They are all blue.", "failures": [], "edits": [edit], "order": [0], "ranking": [0]})


def test_a_run_goes_from_the_task_to_a_row_of_the_table_and_starts_over_for_nothing(tmp_path: Path):
    target, results = Target(), tmp_path / "results"
    task = task_folder(tmp_path / "bands")
    with serving(target) as address:
        command = [sys.executable, str(REAL / "compare.py"), "run", str(task), "one-candidate", "--seed", "3"]
        command += ["--folder", str(results), "--target", address]
        for turn in range(2):
            calls = len(target.asked)
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
                folder = results / "bands" / "one-candidate-3" / OPTIMIZER
                while process.poll() is None:
                    for page in folder.glob("*.prompt.md"):
                        path = page.with_name(page.name.replace(".prompt.md", ".answer.md"))
                        if not path.exists():
                            assert turn == 0, "the second run asks what the first one asked"
                            fresh = path.with_suffix(".new")
                            fresh.write_text(reply_of_the_optimizer(page))
                            fresh.replace(path)
                    time.sleep(0.02)
                assert process.returncode == 0, process.stdout.read().decode()
            assert turn == 0 or len(target.asked) == calls
    result = json.loads((results / "bands" / "one-candidate-3" / "result.json").read_text())
    assert result["used"]["target"]["calls"] > 8
    assert result["used"]["held-out"]["calls"] > 0, "what the test split takes is counted apart"
    table = subprocess.run(
        [sys.executable, str(REAL / "compare.py"), "table", str(results)], capture_output=True, text=True, check=True
    ).stdout
    assert "| skillgit, `skillopt` | 1 |" in table
    assert json.loads(table.splitlines()[-1])["bands/one-candidate"]["seed"] == pytest.approx(1 / 3, abs=0.01)
    over = subprocess.run(
        [sys.executable, str(REAL / "compare.py"), "wait", str(folder)], capture_output=True, text=True, check=False
    )
    assert (over.returncode, over.stdout) == (1, "the run is over\n")


def test_the_documents_have_the_figures_of_the_results_that_are_kept():
    text = (Path(__file__).parents[1] / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    rows = [
        line for line in tables(REAL / "results").splitlines() if line.startswith("| ") and " | seeds | " not in line
    ]
    assert len(rows) == 4
    assert [row for row in rows if row not in text] == []


def test_the_address_is_on_the_loopback(door: tuple[Door, Target]):
    assert door[0].url.startswith(f"http://{HOST}:")
