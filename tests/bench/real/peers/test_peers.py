"""Each peer trains on a small task twice: the same requests, the same text, and no item of the test split."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from prefix_cache import TASKS, number_of, solves
from program import SKILLGIT, Done, run
from served import model_server

PEERS = Path(__file__).parent
PYTHON = os.environ.get("SKILLGIT_PEERS_PYTHON", "")
VERSIONS = {"gepa": "0.1.4", "skillopt": "0.2.0"}
SIZES = {"train": 12, "selection": 8, "test": 4}
SEED_TEXT = "# Archive section\n\nSay in which section of the Debian archive the package belongs."
HEAD = "---\nname: archive-section\ndescription: Names the section of a package.\n---\n"


def ready(name: str) -> str:
    """Return why ``name`` cannot run in the interpreter of the peers; empty if it can."""
    if not PYTHON:
        return "SKILLGIT_PEERS_PYTHON names no interpreter with skillgit and the peers"
    looked = run(PYTHON, "-c", f"import importlib.metadata as m, skillgit; print(m.version({name!r}))")
    installed = looked.out.strip()
    if installed != VERSIONS[name]:
        return f"{PYTHON} has {name} {installed or '(none)'}, not {VERSIONS[name]}"
    return ""


@pytest.fixture
def rows(tmp_path):
    """Put a task into ``tmp_path / "task"`` and return its items."""
    every = [json.loads(line) for line in (TASKS / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    few = [row for split, size in SIZES.items() for row in [row for row in every if row["split"] == split][:size]]
    folder, skill = tmp_path / "task" / "tasks", tmp_path / "task" / ".claude" / "skills" / "archive-section"
    folder.mkdir(parents=True)
    skill.mkdir(parents=True)
    (folder / "archive-section.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in few), encoding="utf-8")
    (skill / "SKILL.md").write_text(f"{HEAD}\n{SEED_TEXT}\n", encoding="utf-8")
    return few


def written(prompt: str) -> str:
    """Return what answers every question of both peers: a whole text, or edits, choices, guidance and memory."""
    number = number_of("text", prompt)
    lines = [f"- Rule {(number + 5 * place) % 12} holds for its kind of package." for place in range(2)]
    if "```" in prompt:
        known = re.findall(r"^- Rule [^\n]*$", prompt.split("```")[1], re.MULTILINE)
        return "\n".join(("```", SEED_TEXT, "", *dict.fromkeys((*known, lines[0])), "```"))
    edits = [{"op": "append", "content": line} for line in lines]
    return json.dumps(
        {
            "batch_size": 8,
            "failure_summary": [{"failure_type": "wrong", "count": 2, "description": "The section is wrong."}],
            "patch": {"reasoning": "They fail.", "edits": edits},
            "reasoning": "They fail.",
            "edits": edits * 3,
            "selected_indices": [0, 1, 2, 3],
            "slow_update_content": f"Keep to the list ({number % 1000}).",
            "meta_skill_content": f"Lines work ({number % 1000}).",
        }
    )


def evaluated(folder: Path, answer: Callable[[str], str]) -> Counter[str]:
    """Return what ``skillgit eval`` asks the target of the seed on the selection split."""
    author = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "seed")):
        assert run("git", *author, *words, cwd=folder).code == 0
    with model_server(answer, says={}) as target:
        settings = (
            *("model.target_backend=openai_compatible", "model.target=target", "calls.temperature=0"),
            *(f"model.target_base_url={target.url}", "env.data_path=tasks/archive-section.jsonl"),
        )
        words = [word for setting in settings for word in ("-o", setting)]
        done = run(*SKILLGIT, "eval", "HEAD", "--split", "selection", "--config", "tasks/default", *words, cwd=folder)
    assert done.code == 0, done
    assert len(target.questions) == SIZES["selection"]
    return Counter(target.questions)


@pytest.mark.slow
@pytest.mark.parametrize("name", VERSIONS)
def test_a_peer_trains_on_a_task_and_asks_the_same_again(name, rows, tmp_path):
    if reason := ready(name):
        pytest.skip(reason)
    answers = {row["question"]: row["answer"] for row in rows}
    selected = [row["question"] for row in rows if row["split"] == "selection"]
    tested = [row["question"] for row in rows if row["split"] == "test"]

    def answer(prompt: str) -> str:
        question = next((question for question in answers if question in prompt), "")  # none: whether it is there
        return f"<answer>{answers[question] if question and solves(prompt, question) else 'nothing'}</answer>"

    def start(out: Path, optimize: Callable[[str], str]) -> tuple[Done, Counter[str], Counter[str]]:
        with model_server(answer) as target, model_server(optimize) as optimizer:
            addresses = ("--target", target.url, "--optimizer", optimizer.url, "--model", "target")
            program = PEERS / f"{name}_program.py"
            done = run(PYTHON, program, tmp_path / "task", "--seed", "1", *addresses, "--out", tmp_path / out)
        return done, Counter(target.questions), Counter(optimizer.questions)

    def failing(_prompt: str) -> str:
        raise ConnectionAbortedError

    done, on_items, on_texts = start(Path("whole"), written)
    assert done.code == 0, done
    assert evaluated(tmp_path / "task", answer) <= on_items
    stopped, some_items, some_texts = start(Path("again"), failing)
    assert stopped.code == 1
    assert "the optimizer cannot be asked" in stopped.err
    assert set(some_texts.values()) == {1}
    assert some_items <= on_items
    assert not (tmp_path / "again" / "best.md").exists()
    again = start(Path("again"), written)
    assert again[0].code == 0, again[0]
    assert again[1:] == (on_items, on_texts)
    best, summary = ((tmp_path / "whole" / file).read_text(encoding="utf-8") for file in ("best.md", "summary.json"))
    assert (tmp_path / "again" / "best.md").read_text(encoding="utf-8") == best
    assert (tmp_path / "again" / "summary.json").read_text(encoding="utf-8") == summary

    figures = json.loads(summary)
    assert (figures["program"], figures["version"], figures["seed"]) == (name, VERSIONS[name], 1)
    assert figures["candidates_measured"] > 1
    assert best.startswith("# Archive section\n")
    for arm, text in (("seed", SEED_TEXT), ("best", best)):
        score = sum(solves(text, question) for question in selected) / len(selected)
        assert figures["selection"][arm] == pytest.approx(score), arm
    assert figures["selection"]["best"] > figures["selection"]["seed"]
    assert [question for question in tested if any(question in asked for asked in on_items)] == []
