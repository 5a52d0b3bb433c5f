"""A run whose best version does no better than an answer that needs no question ends with a sentence that says so."""

from __future__ import annotations

import json

from program import new_repository, skillgit

SENTENCE = (
    '0.0000 on the {} split is not above 1.0000, which always answering "the mill" scores there without the question'
)


def test_the_end_of_a_run_and_show_name_the_constant_that_scores_more(tmp_path):
    rows = [
        {
            "id": f"t{number}",
            "question": f"What burned in the year {1500 + 7 * number}?",
            "answer": "the mill",
            "split": split,
        }
        for number, split in enumerate(["train", "val", "test"] * 4)
    ]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    repository = new_repository(tmp_path / "mine")
    skillgit("init", "--env", "tasks", cwd=repository)
    options = ("-o", f"env.data_path={tmp_path / 'tasks.jsonl'}", "-o", "train.num_epochs=1", "--run", "one")
    trained = skillgit("train", "tasks/default", *options, cwd=repository)
    assert SENTENCE.format("test") in " ".join(trained.out.split())
    shown = skillgit("show", "one/v0", cwd=repository)
    assert SENTENCE.format("selection") in " ".join(shown.out.split())
    assert SENTENCE.format("test") in " ".join(shown.out.split())
