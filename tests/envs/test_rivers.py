"""A new environment of questions is a small file: what all of them do stands once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from skillgit.app.setup.environment_profile import profile_of
from skillgit.errors import ConfigError
from skillgit.plugin.registry import find_environment
from skillgit.testing import check_environment

SOURCE = Path(__file__).with_name("rivers.py")
CARD = SOURCE.with_suffix(".yaml")
FILES = {
    "prompts/system.md": "You know rivers.\n\n{skill}Put the answer between <answer> and </answer>.\n",
    "prompts/taxonomy.md": "- another river\n- more words than asked for\n",
    "prompts/judge.md": "You compare an answer with the right one. Reply yes or no.\n",
    "skills/rivers/SKILL.md": "---\nname: rivers\ndescription: Answers about rivers.\n---\n\n# Rivers\n\nBe brief.\n",
}
ROWS = {
    "train": ("Through which city does the Spree run?", "Berlin", "Which sea does the Don reach?", "the Sea of Azov"),
    "val": ("Which river runs through Bremen?", "the Weser", "Where does the Po rise?", "on Monte Viso"),
    "test": ("Into what does the Isar run?", "the Danube", "Which river leaves Lake Constance?", "the Rhine"),
}


@pytest.fixture
def rivers(tmp_path):
    """Write the environment with all of its files, and return its class."""
    shutil.copy(SOURCE, tmp_path)
    shutil.copy(CARD, tmp_path / "benchmark.yaml")
    texts = dict(FILES)
    for split, (*words,) in ROWS.items():
        rows = [{"id": f"{split}-{n}", "question": words[n], "answer": words[n + 1]} for n in (0, 2)]
        texts[f"data/{split}/items.jsonl"] = "".join(f"{json.dumps(row)}\n" for row in rows)
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return find_environment("rivers.py:Rivers", tmp_path).cls


def test_a_benchmark_of_questions_is_at_most_120_lines_with_its_card():
    assert sum(len(path.read_text().splitlines()) for path in (SOURCE, CARD)) <= 120


@pytest.mark.parametrize("options", [{}, {"scorer": "judged"}])
def test_it_keeps_every_promise(options, rivers, tmp_path):
    check_environment(
        rivers,
        options,
        tmp_path,
        answers=lambda item: f"<answer>{item.content['answer']}</answer>",
        scoring_options={"scorer": "judged" if not options else "words"},
        verdict="yes",
    )


def test_it_shows_itself_and_refuses_what_it_does_not_know(rivers, tmp_path):
    profile = profile_of(rivers, tmp_path)
    assert profile.fault == ""
    assert [(scorer.name, scorer.judge) for scorer in profile.scorers] == [("words", False), ("judged", True)]
    assert [field.name for field in profile.sample.fields if not field.shown] == ["answer"]
    for options in ({"scorer": "luck"}, {"max_turns": "two"}, {"max_turns": True}, {"max_turns": 0}):
        with pytest.raises(ConfigError, match="env"):
            rivers(options, tmp_path)
