"""Prompts say all that an analyst has to know: one that does just what they say trains three tasks to above .9.

And each sentence counts: with one of them taken out of the prompt, the same analyst loses edits, calls or points.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
import rule_following
from house_tasks import SEEDS, SPLITS, TASKS
from program import skillgit
from soaking import sampled, soak

from skillgit.engine.prompt_sections import prompt

MODELS = Path(rule_following.__file__)
ROLES = [
    *("-o", "model.target=target", "-o", "model.optimizer=analyst", "-o", "model.judge=judge"),
    *(word for role in ("target", "optimizer", "judge") for word in ("-o", f"model.{role}_backend={MODELS}:Models")),
]


QUICK = ("-o", "train.num_epochs=1", "-o", "evaluation.eval_test=false")


def train(folder: Path, name: str, *options: str, without: str = "") -> dict[str, object]:
    """Train on the task ``name`` by the default settings and return what ``train --json`` says."""
    rows = [
        {"id": f"i{n}", "split": split, **row} for n, (split, row) in enumerate(zip(SPLITS, TASKS[name](), strict=True))
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "SKILL.md").write_text(
        f"---\nname: house\ndescription: Knows the house.\n---\n\n# House\n\n{SEEDS[name]}\n"
    )
    repository = folder / "repository"
    skillgit("init", "--skill", "SKILL.md", "repository", cwd=folder)
    environment = {**os.environ, "WITHOUT": without}
    arguments = ("tasks/default", "-o", f"env.data_path={folder}/tasks.jsonl", "--run", "one", *ROLES, *options)
    done = skillgit("train", *arguments, "--json", "-q", cwd=repository, env=environment)
    shown = [json.loads(skillgit("show", label, "--json", cwd=repository).out) for label in made(repository)]
    return {**json.loads(done.out), "lost": sum(len(event["left_out"]) for event in shown)}


def made(repository: Path) -> list[str]:
    """Return the addresses of what the steps made: versions, refused candidates and skipped steps."""
    rows = json.loads(skillgit("log", "--json", cwd=repository).out)["events"]
    return [row["commit"] for row in rows if row["kind"] in {"accepted", "rejected", "skipped"}]


@pytest.mark.parametrize("name", sampled(TASKS, 2))
def test_an_analyst_that_does_what_its_prompt_says_trains_the_task(name, tmp_path):
    first, best, _ = train(tmp_path, name)["report"]
    assert (first["label"], best["label"]) == ("seed", "best")
    assert first["test"] < 0.5
    assert best["selection"] > 0.9
    assert best["test"] > 0.9


PROVEN = {
    "For every failure, compare what the target answered with the feedback": ("labels", "score"),
    "a wrong rule is replaced or deleted": ("extraction", "score"),
    "Specific enough to change behaviour": ("labels", "score"),
    "state the condition under which the rule holds": ("labels", "score"),
    "What several tasks share is welcome: labels": ("labels", "score"),
    "Never put what belongs to one task alone into the skill": ("labels", "score"),
    "Never touch the frontmatter": ("rubric", "lost"),
    "Answer with one JSON object and nothing else.": ("rubric", "calls"),
    "`append` (new paragraph or bullet at the end)": ("rubric", "score"),
    "`file`: the path of the file, normally `SKILL.md`": ("rubric", "score"),
    "text copied exactly from the file": ("extraction", "score"),
    "`content`: the new text, as Markdown": ("rubric", "score"),
    "Before you propose a rule, test it on them": ("labels", "score"),
}
"""A part of a sentence that is taken out, the task on which it shows, and what is worse without it."""
UNPROVEN = {
    "Group failures by cause.": "it decides which edits a small budget cuts, and merging orders them once more",
    "Read the history.": "tests/engine/test_history.py and the lint of repeated proposals show what it is for",
    "A failure that no instruction could have prevented": "every failure of these tasks can be prevented",
    "Alone. Any of your edits may be left out": "code leaves out what refers to it, as test_dependent_edits.py shows",
    "One general rule in plain words": "it is for readers; a rule of this target has one form",
    "Small. It changes one behaviour": "it is for people who read the difference, and for salvage of single edits",
    "Never write a rule that only one task can use.": "the gate finds such rules out; the sentence saves the budget",
    "`findings`:": "they are read by people and carried to later steps of an epoch",
    "`title`:": "it names the commit",
    "`reasoning`:": "it is the body of the commit",
    "`edits`:": "the key itself: without it there is no reply to read",
    "`items`:": "they are the support of an edit, which ranks it, and its blame",
}
"""How the other instructions begin, and why taking them out shows on no score."""


def loss(result: dict[str, object]) -> dict[str, object]:
    """Return what a training may lose: points, calls of the analyst and edits."""
    (analyst,) = (part for part in result["cost"]["parts"] if part["stage"] == "analyst")
    return {"score": -result["report"][1]["selection"], "calls": analyst["cost"]["calls"], "lost": result["lost"]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """What each task comes to in one epoch with the prompts as they are."""
    return {name: loss(train(tmp_path_factory.mktemp(name), name, *QUICK)) for name in TASKS}


@pytest.mark.parametrize("sentence", [*map(soak, PROVEN)])
def test_without_a_sentence_of_the_prompt_the_same_analyst_does_worse(sentence, whole, tmp_path):
    name, aspect = PROVEN[sentence]
    worse = loss(train(tmp_path, name, *QUICK, without=sentence))
    assert worse[aspect] > whole[name][aspect]


def test_every_instruction_of_the_prompt_is_proven_or_excused():
    text = prompt("analyse_failures")
    work = text[text.index("## How to work") : text.index("## Kinds of failure")]
    form = text[text.index("## Your answer") : text.index("Example:")]
    entries = [" ".join(entry.split()) for entry in re.split(r"\n(?=\s*(?:\d+\.|-|#))|\n\n", work + form)]
    instructions = [re.sub(r"^(\d+\.|-)\s+", "", entry) for entry in entries if entry and not entry.startswith("#")]
    assert len(instructions) > 20
    for instruction in instructions:
        is_proven = any(sentence in instruction for sentence in PROVEN)
        assert is_proven or any(instruction.startswith(beginning) for beginning in UNPROVEN), instruction
    for beginning in UNPROVEN:
        assert any(instruction.startswith(beginning) for instruction in instructions), beginning
