from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from reading import items_in

from skillgit.domain.evaluation import Split
from skillgit.errors import DataError
from skillgit_envs.livemathematicianbench import LiveMathematicianBench, ShownItem, arranged, question

if TYPE_CHECKING:
    from pathlib import Path

NESTED = {
    "no": 3,
    "month": "202511",
    "theorem": "T",
    "sketch": "S",
    "theorem_type": "bound",
    "mcq": {
        "question": "Which?",
        "choices": [{"label": "B", "text": "two"}, {"label": "C", "text": "three"}],
        "correct_choice": {"label": "A", "text": "one"},
    },
}
FLAT = {
    "id": "x",
    "question": "Which?",
    "choices": [{"label": "A", "text": "one"}, {"label": "B", "text": "two"}],
    "correct_choice": {"label": "B"},
    "theorem_type": ["rate", "bound"],
}


def read(folder: Path, *rows: object, name: str = "items.json"):
    path = folder / name
    path.write_text(json.dumps(list(rows)))
    return items_in(LiveMathematicianBench, path)


def test_both_forms_are_read(tmp_path: Path):
    nested, flat = read(tmp_path, NESTED, FLAT)
    assert (nested.id, nested.task_type, nested.content["correct"]) == ("202511:3", "bound", "one")
    assert nested.content["choices"] == ["one", "two", "three"]
    assert (flat.id, flat.task_type, flat.content["correct"]) == ("x", "rate", "two")
    assert flat.content["choices"] == ["one", "two"]


def test_a_month_is_read_from_the_name_of_the_file(tmp_path: Path):
    row = {key: value for key, value in NESTED.items() if key != "month"}
    assert read(tmp_path, row, name="qa_202601_final.json")[0].id == "202601:3"
    with pytest.raises(DataError, match=r"item 1 has neither an id nor a month and a number"):
        read(tmp_path, row)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"question": " "}, "has no question"),
        ({"choices": [], "correct_choice": "one"}, "fewer than 2"),
        ({"choices": None}, "has no list of choices"),
        ({"correct_choice": {"label": "Z"}}, "does not say which choice is right"),
        ({"choices": [{"text": "one"}, {"text": "one"}], "correct_choice": "one"}, "has choices that are equal"),
        ({"choices": [str(number) for number in range(27)], "correct_choice": "1"}, "more than 26"),
    ],
)
def test_a_faulty_row_is_a_sentence_with_its_place(tmp_path: Path, change: dict, said: str):
    with pytest.raises(DataError, match=said):
        read(tmp_path, FLAT | change)


def test_the_order_depends_on_seed_and_item_and_on_nothing_else(tmp_path: Path):
    item = read(tmp_path, NESTED)[0]
    assert arranged(item, ShownItem(seed=1)) == arranged(item, ShownItem(seed=1))
    assert {tuple(arranged(item, ShownItem(seed=seed)).values()) for seed in range(60)} > {("one", "two", "three")}
    assert arranged(item, ShownItem(shuffle=False)) == {"A": "one", "B": "two", "C": "three"}


def test_the_target_sees_theorem_and_sketch_only_where_the_settings_say_so(tmp_path: Path):
    item = read(tmp_path, NESTED)[0]
    assert "<theorem>" not in question(item, ShownItem())
    assert "<theorem>\nT\n</theorem>" in question(item, ShownItem(theorem=True))
    assert "<sketch>\nS\n</sketch>" in question(item, ShownItem(sketch=True))


def test_the_right_choice_stands_at_every_place_of_the_shipped_items(tmp_path: Path):
    environment = LiveMathematicianBench({}, tmp_path)
    items = [item for split in Split for item in environment.items(split)]
    places = Counter(
        next(label for label, text in arranged(item, ShownItem()).items() if text == item.content["correct"])
        for item in items
    )
    assert len(items) == 28
    assert set(places) == set("ABCDE")


def test_settings_that_change_what_is_asked_change_the_digest(tmp_path: Path):
    plain = LiveMathematicianBench({}, tmp_path).digest
    for option in ("use_theorem", "use_sketch", "explain"):
        assert LiveMathematicianBench({option: True}, tmp_path).digest != plain
    assert LiveMathematicianBench({"shuffle_seed": 1}, tmp_path).digest != plain


def test_real_monthly_files(real: Path):
    files = sorted(real.glob("data/*/*.json"))
    items = items_in(LiveMathematicianBench, *files)
    assert len(items) == 39
    assert len({item.id for item in items}) == 39
    for item in items:
        assert len(item.content["choices"]) == 5
        assert item.content["theorem"]
        assert item.content["types"]
    places = Counter(
        next(label for label, text in arranged(item, ShownItem()).items() if text == item.content["correct"])
        for item in items
    )
    assert max(places.values()) < 20, "the right choice is not always A"
