"""A cue in a file of tasks is found before a model is asked, and none is seen where there is none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from string import ascii_uppercase

import pytest
from asking import ask
from soaking import sampled

from skillgit.app.sources.data_check import check_data

Row = dict[str, object]
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "or", "is")]


def name(rng: random.Random, least: int = 2, most: int = 4) -> str:
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(least, most)))


def phrase(rng: random.Random, least: int = 2, most: int = 9) -> str:
    return " ".join(name(rng) for _ in range(rng.randint(least, most)))


def question(rng: random.Random) -> str:
    return f"Which {name(rng)} does the {name(rng)} of {name(rng).title()} {name(rng)} in {rng.randint(1500, 2000)}?"


def choice_row(rng: random.Random, number: int, count: int = 4, right: int | None = None) -> Row:
    """Return a task whose choices say nothing about which of them is right."""
    right = rng.randrange(count) if right is None else right
    return {
        "id": f"q-{number:03}",
        "question": question(rng),
        "choices": [phrase(rng) for _ in range(count)],
        "answer": ascii_uppercase[right],
        "check": "choice",
    }


def choices_of(row: Row) -> list[str]:
    return row["choices"]  # type: ignore[return-value]


def right_place(row: Row) -> int:
    return ascii_uppercase.index(str(row["answer"]))


def with_text(rng: random.Random, number: int) -> Row:
    row = choice_row(rng, number)
    if rng.random() < 0.45:
        choices_of(row)[right_place(row)] = "One of the others holds, but a stronger result can be proven"
    return row


def with_position(rng: random.Random, number: int) -> Row:
    return choice_row(rng, number, right=1 if rng.random() < 0.6 else None)


def with_longest(rng: random.Random, number: int) -> Row:
    row = choice_row(rng, number)
    if rng.random() < 0.7:
        choices_of(row)[right_place(row)] = phrase(rng, 11, 14)
    return row


def with_one_answer(rng: random.Random, number: int) -> Row:
    answer = "yes" if rng.random() < 0.9 else "no"
    return {"id": f"q-{number:03}", "question": question(rng), "answer": answer}


def with_shortest(rng: random.Random, number: int) -> Row:
    row = choice_row(rng, number)
    if rng.random() < 0.7:
        choices_of(row)[right_place(row)] = name(rng, 1, 1)
    return row


def with_word(rng: random.Random, number: int) -> Row:
    row = choice_row(rng, number)
    if rng.random() < 0.6:
        choices_of(row)[right_place(row)] += f" usually {name(rng)}"
    return row


def with_last_word(rng: random.Random, number: int) -> Row:
    answer = name(rng)
    return {"id": f"q-{number:03}", "question": f"{question(rng)[:-1]} {answer}?", "answer": answer}


def with_id(rng: random.Random, number: int) -> Row:
    label = rng.choice(["spam", "ham", "other"])
    return {"id": f"{label[0]}{number:03}", "question": question(rng), "answer": label}


def with_blocks(rng: random.Random, number: int) -> Row:
    return {"id": f"{number:03}", "question": question(rng), "answer": ["spam", "ham", "other"][number // 30]}


def with_texts_of_wrong_choices(rng: random.Random, number: int) -> Row:
    """Wrong choices come from a small stock, and the right one is new."""
    row = choice_row(rng, number)
    stock = [f"stock {number} {word}" for number, word in enumerate(SYLLABLES[:12])]
    choices = rng.sample(stock, 4)
    choices[right_place(row)] = phrase(rng)
    return {**row, "choices": choices}


def listed_in_the_question(rng: random.Random, number: int) -> Row:
    row = with_longest(rng, number)
    listing = "\n".join(f"{label}) {text}" for label, text in zip(ascii_uppercase, choices_of(row), strict=False))
    return {"id": row["id"], "question": f"{row['question']}\n{listing}", "answer": row["answer"]}


CUES: dict[str, Callable[[random.Random, int], Row]] = {
    "text": with_text,
    "position": with_position,
    "longest": with_longest,
    "one answer": with_one_answer,
}
SIBLINGS: dict[str, Callable[[random.Random, int], Row]] = {
    "shortest": with_shortest,
    "word": with_word,
    "last word": with_last_word,
    "id": with_id,
    "blocks": with_blocks,
    "stock of wrong choices": with_texts_of_wrong_choices,
    "listed in the question": listed_in_the_question,
}


def plain_choices(rng: random.Random, number: int) -> Row:
    return choice_row(rng, number)


def several_sizes(rng: random.Random, number: int) -> Row:
    return choice_row(rng, number, count=rng.randint(3, 6))


def free(rng: random.Random, number: int) -> Row:
    return {"id": f"q-{number:03}", "question": question(rng), "answer": name(rng)}


def labels(rng: random.Random, number: int) -> Row:
    """Sections of an archive: many, and some of them frequent."""
    answer = rng.choices(SYLLABLES[:20], [1 / (place + 1) for place in range(20)])[0]
    return {"id": f"q-{number:03}", "question": question(rng), "answer": answer}


def two_labels(rng: random.Random, number: int) -> Row:
    return {"id": f"q-{number:03}", "question": f"{question(rng)} yes or no?", "answer": rng.choice(["yes", "no"])}


def same_choices(rng: random.Random, number: int) -> Row:
    names = ["entailment", "neutral", "contradiction"]
    answer = rng.choices("ABC", [0.4, 0.3, 0.3])[0]
    return {"id": f"q-{number:03}", "question": question(rng), "choices": names, "answer": answer, "check": "choice"}


CLEAN: dict[str, Callable[[random.Random, int], Row]] = {
    "choices": plain_choices,
    "several sizes": several_sizes,
    "free": free,
    "labels": labels,
    "two labels": two_labels,
    "same choices": same_choices,
}


def shortcuts(context, row: Callable[[random.Random, int], Row], seed: str, count: int = 60):
    rng = random.Random(seed)  # noqa: S311 - a file that is the same every time
    rows = [row(rng, number) for number in range(count)]
    (context.directory / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    check = ask(check_data, context, "tasks/default", ("env.data_path=tasks.jsonl",))
    return check, [finding.sentence for finding in check.findings if finding.rule == "shortcut"]


@pytest.mark.parametrize("seed", sampled(range(5), 5))
@pytest.mark.parametrize("kind", CUES)
def test_a_cue_is_found_in_each_of_twenty_files(empty, kind, seed):
    _, sentences = shortcuts(empty, CUES[kind], f"{kind} {seed}")
    assert sentences


@pytest.mark.parametrize("kind", SIBLINGS)
def test_other_cues_are_found(empty, kind):
    _, sentences = shortcuts(empty, SIBLINGS[kind], kind, 90)
    assert sentences


@pytest.mark.parametrize("seed", sampled(range(4), 2))
@pytest.mark.parametrize("kind", CLEAN)
def test_no_cue_is_seen_where_there_is_none(empty, kind, seed):
    _, sentences = shortcuts(empty, CLEAN[kind], f"{kind} {seed}")
    assert sentences == []
