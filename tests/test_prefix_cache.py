"""A training asks by text: a server that keeps the prompts of its last questions has most of the next one already."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from prefix_cache import TASKS, CachedModel, served
from program import attempt, skillgit

LEAST = 0.90
"""Share of the target's prompt tokens that four slots have."""
PREFLIGHT = 4  # tokens of the question whether the target answers at all


def trained(folder: Path, workers: int, *settings: str) -> tuple[CachedModel, dict[str, object]]:
    """Train on real items with a text of 1,700 tokens; return the model that was asked and what the run says."""
    rows = [json.loads(line) for line in (TASKS / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    model = CachedModel(answers={row["question"]: row["answer"] for row in rows})
    shutil.copy(TASKS / "tasks.jsonl", folder / "tasks.jsonl")
    shutil.copy(TASKS / "best.md", folder / "SKILL.md")
    skillgit("init", "--skill", "SKILL.md", cwd=folder)
    with served(model) as url:
        roles = [
            f"model.{role}{key}"
            for role in ("target", "optimizer")
            for key in (f"={role}", "_backend=openai_compatible", f"_base_url={url}")
        ]
        more = (
            "env.data_path=tasks.jsonl",
            "train.num_epochs=2",
            "evaluation.test_env_num=20",
            "evaluation.leak_lint=false",
        )
        words = [word for key in (*roles, *more, f"calls.concurrency={workers}", *settings) for word in ("-o", key)]
        done = attempt("train", "tasks/default", "--run", "one", *words, "--json", cwd=folder)
    assert done.code == 0, done
    return model, json.loads(done.out)


@pytest.mark.parametrize(
    ("workers", "settings"),
    [
        (1, ()),
        pytest.param(4, (), marks=pytest.mark.soak),
        pytest.param(16, (), marks=pytest.mark.soak),
        pytest.param(
            16, ("train.placebo=2", "gate.repeats=2", "train.strategy=racing"), marks=pytest.mark.soak, id="racing"
        ),
    ],
)
def test_four_slots_have_nine_of_ten_tokens_of_the_target(tmp_path, workers, settings):
    model, result = trained(tmp_path, workers, *settings)
    assert model.share >= LEAST
    said = json.loads(skillgit("cost", "--by", "role", "--json", cwd=tmp_path).out)
    target = next(row for row in said["rows"] if row["role"] == "target")
    assert (target["cached"], target["tokens_in"]) == (model.cached_tokens, model.prompt_tokens + PREFLIGHT), result
    if workers == 1:
        # A text may come back: what a step works with is also what the next one does, and the test has each version.
        assert model.switches < 2 * len(set(model.texts))


def test_a_slot_has_what_two_prompts_begin_with_in_common():
    model = CachedModel(answers={"Q1": "a", "Q2": "b"}, seconds=0.0)
    texts = ["x" * 400, "y" * 400]
    question = [
        [{"role": "system", "content": text}, {"role": "user", "content": f"Q{n}"}] for text in texts for n in (1, 2)
    ]
    assert [model.answer(messages)[2] for messages in question] == [0, 100, 0, 100]
    assert [model.answer(messages)[2] for messages in question] == [100, 100, 100, 100]
