from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING

import pytest
from harvested import DATA, prompts
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz

from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import SHORTEST_QUOTED, words
from skillgit.domain.trajectory import Item
from skillgit.errors import DataError
from skillgit.plugin.groups import cut, related, related_pairs
from skillgit.plugin.likeness import ALIKE, alike, alike_to
from skillgit.plugin.splits import check, divide, divide_each_type, near_duplicates, parse_ratio

if TYPE_CHECKING:
    import random

    from skillgit.plugin.splits import Splits

GROUPS = st.lists(st.sampled_from(["", "", "a", "b", "c", "d", "e", "f"]), min_size=1, max_size=40)
TYPES = st.lists(st.sampled_from(["sum", "date", "name"]), min_size=40, max_size=40)
RATIOS = st.tuples(*[st.integers(1, 9)] * 3).map(lambda parts: ":".join(map(str, parts)))
QUESTIONS = st.lists(
    st.lists(st.sampled_from(["red", "river", "stone", "bridges", "of"]), min_size=1, max_size=9).map(" ".join),
    min_size=3,
    max_size=20,
)


def asked(text: str, identity: str, group: str = "", task_type: str = "default") -> Item:
    return Item(id=identity, content={"prompt": text}, group=group, task_type=task_type)


def prompt(item: Item) -> str:
    return str(item.content["prompt"])


def mixed(items: list[Item], seed: int) -> list[Item]:
    return sorted(items, key=lambda item: (hashlib.sha256(f"{seed}:{item.id}".encode()).digest(), item.id))


def of_single_items(items: list[Item], ratio: str, seed: int) -> Splits:
    """Divide as it was done before there were groups."""
    weights = parse_ratio(ratio)
    counts = [len(items) * weight // sum(weights) for weight in weights]
    remainders = sorted(range(3), key=lambda at: (-(len(items) * weights[at] % sum(weights)), -weights[at], at))
    for index in remainders[: len(items) - sum(counts)]:
        counts[index] += 1
    order, test = mixed(items, seed), counts[0] + counts[1]
    return dict(
        zip(Split, (tuple(order[: counts[0]]), tuple(order[counts[0] : test]), tuple(order[test:])), strict=True)
    )


def of_single_items_by_type(items: list[Item], ratio: str, seed: int) -> Splits:
    weights, by_type, parts = parse_ratio(ratio), defaultdict(list), {split: [] for split in Split}
    for item in items:
        by_type[item.task_type].append(item)
    for same in by_type.values():
        train, selection = (max(1, round(len(same) * weight / sum(weights))) for weight in weights[:2])
        if len(same) < 3:
            train, selection = len(same) - 1, 0
        order = mixed(same, seed)
        parts[Split.TRAIN] += order[:train]
        parts[Split.SELECTION] += order[train : train + selection]
        parts[Split.TEST] += order[train + selection :]
    return {split: tuple(mixed(part, seed)) for split, part in parts.items()}


@given(GROUPS, TYPES, RATIOS, st.integers(), st.booleans())
def test_a_division_keeps_groups_whole_and_leaves_no_split_empty(groups, types, ratio, seed, stratified):
    items = [
        asked(f"q{number}", f"i{number}", group, kind)
        for number, (group, kind) in enumerate(zip(groups, types, strict=False))
    ]
    try:
        splits = check((divide_each_type if stratified else divide)(items, ratio, seed))
    except DataError:
        fewest = min(parse_ratio(ratio)) * len(items) / sum(parse_ratio(ratio))
        assert stratified or fewest < 1 or len({item.group or item.id for item in items}) < len(Split)
        return
    sides = defaultdict(set)
    for split, part in splits.items():
        for item in part:
            sides[item.group or item.id].add(split)
    assert sorted(item.id for part in splits.values() for item in part) == sorted(item.id for item in items)
    assert all(len(side) == 1 for side in sides.values())
    assert all(splits.values())


@given(st.randoms(use_true_random=False), GROUPS, TYPES, RATIOS, st.booleans())
def test_the_order_in_a_file_says_nothing(chance: random.Random, groups, types, ratio, stratified):
    rows = enumerate(zip(groups, types, strict=False))
    items = [asked(f"q{number}", f"i{number}", group, kind) for number, (group, kind) in rows]
    shuffled = chance.sample(items, len(items))
    division = divide_each_type if stratified else divide
    try:
        splits = division(items, ratio, 7)
    except DataError:
        return
    assert division(shuffled, ratio, 7) == splits


@given(st.integers(1, 120), TYPES, RATIOS, st.integers(), st.booleans())
def test_without_groups_and_with_groups_of_one_nothing_changes(count, types, ratio, seed, alone):
    items = [asked(f"q{n}", f"i{n}", f"g{n}" if alone else "", types[n % len(types)]) for n in range(count)]
    assert divide_each_type(items, ratio, seed) == of_single_items_by_type(items, ratio, seed)
    expected = of_single_items(items, ratio, seed)
    if all(expected.values()):
        assert divide(items, ratio, seed) == expected
    else:
        with pytest.raises(DataError, match="split would be empty"):
            divide(items, ratio, seed)


def distance(shares: list[list[list[Item]]], counts: list[int]) -> int:
    return sum(abs(sum(map(len, share)) - count) for share, count in zip(shares, counts, strict=True))


@given(st.lists(st.integers(1, 9), min_size=3, max_size=7), st.tuples(*[st.integers(1, 9)] * 3))
def test_no_division_of_a_few_groups_comes_nearer(sizes, weights):
    parts = [[asked("q", f"{number}-{item}") for item in range(size)] for number, size in enumerate(sizes)]
    counts = [max(1, sum(sizes) * weight // sum(weights)) for weight in weights[:2]]
    counts.append(sum(sizes) - sum(counts))
    shares = cut(parts, counts)
    choices = (choice for choice in product(range(3), repeat=len(parts)) if len({*choice}) == 3 or counts[2] <= 0)
    nearest = min(
        distance([[part for part, at in zip(parts, choice, strict=True) if at == n] for n in range(3)], counts)
        for choice in choices
    )
    assert distance(shares, counts) == nearest


@given(st.lists(st.integers(1, 9), min_size=12, max_size=60), st.tuples(*[st.integers(1, 9)] * 3))
def test_many_groups_come_near(sizes, weights):
    parts = [[asked("q", f"{number}-{item}") for item in range(size)] for number, size in enumerate(sizes)]
    counts = [max(1, sum(sizes) * weight // sum(weights)) for weight in weights[:2]]
    counts.append(sum(sizes) - sum(counts))
    assert distance(cut(parts, counts), counts) <= max(sizes)


def test_few_groups_are_refused_with_what_is_missing():
    items = [asked(f"q{number}", f"i{number}", "ab"[number % 2]) for number in range(12)]
    with pytest.raises(DataError, match="12 items of two groups cannot be divided into three splits"):
        divide(items, "2:1:1", 1)


def test_a_group_is_no_part_of_what_an_item_is():
    assert asked("q", "i", "a").digest == asked("q", "i").digest


def test_a_group_on_two_sides_of_a_given_division_is_refused():
    parts = {
        Split.TRAIN: [asked("x", "a", "g")],
        Split.SELECTION: [asked("y", "b")],
        Split.TEST: [asked("z", "c", "g")],
    }
    with pytest.raises(
        DataError, match="items of one group are in both the train and the test split: a and c"
    ) as raised:
        check(parts)
    assert "env.split_ratio" in raised.value.hint


def is_near(one: str, other: str) -> bool:
    """Say without an index whether two questions are nearly the same."""
    one, other = (" ".join(words(text)) for text in (one, other))
    pairs = [set(pairwise(["", *text.split(), ""])) for text in (one, other)]
    long = min(one.count(" "), other.count(" ")) + 1 >= SHORTEST_QUOTED
    half = 2 * len(pairs[0] & pairs[1]) >= max(map(len, pairs))
    return one == other or (long and half and fuzz.ratio(one, other) >= ALIKE)


@given(QUESTIONS, st.data(), RATIOS, st.integers())
def test_no_two_wordings_of_a_harvested_task_stand_on_both_sides(questions, data, ratio, seed):
    groups = data.draw(st.lists(st.sampled_from(["", "a", "b", "c"]), min_size=20, max_size=20))
    items = [asked(text, f"i{n}", group) for n, (text, group) in enumerate(zip(questions, groups, strict=False))]
    before = {item.id: item.group for item in items}
    try:
        splits = divide(related(items, prompt), ratio, seed)
    except DataError:
        return
    side = {item.id: split for split, part in splits.items() for item in part}
    for one, other in combinations(items, 2):
        if (before[one.id] or before[other.id]) and is_near(prompt(one), prompt(other)):
            assert side[one.id] is side[other.id]
    assert not [*near_duplicates({split: [*part] for split, part in splits.items()}, prompt)]


def test_tasks_that_nobody_harvested_are_left_alone():
    items = [asked(f"What is the sum of the numbers 1 to {number}?", f"i{number}") for number in range(10, 20)]
    assert related(items, prompt) == items
    harvested = [*items, asked("What is the sum of the numbers 1 to 15?", "h", "g")]
    together = {item.id for item in related(harvested, prompt) if item.group == "g"}
    assert together == {"h", "i15"}, "what all of them ask in the same words makes no two alike"


def test_a_given_division_with_a_task_in_two_wordings_is_refused():
    splits = {
        Split.TRAIN: [asked("Please rename the column price to cost in sales.csv", "a", "g")],
        Split.SELECTION: [asked("Write a haiku about the sea and the moon", "b")],
        Split.TEST: [asked("please rename the columns price to cost in sales.csv!", "c", "h")],
    }
    (fault,) = near_duplicates(splits, prompt)
    assert fault.message == "nearly the same is asked in both the train and the test split: a ~ c"


def test_equal_questions_of_two_words_are_one_task_and_similar_ones_are_not():
    items = [asked("Fix it!", "a", "g"), asked("fix it", "b"), asked("fix that", "c")]
    assert [item.group for item in related(items, prompt)] == ["g", "g", ""]


@given(QUESTIONS)
def test_one_text_is_alike_to_what_all_are_compared_with(questions):
    pairs = {frozenset(pair) for pair in alike(questions)}
    for place, text in enumerate(questions):
        others = [number for number in range(len(questions)) if number != place]
        found = {others[at] for at in alike_to(text, [questions[number] for number in others])}
        assert found == {number for number in others if {place, number} in pairs}


@pytest.mark.skipif(not DATA.is_dir(), reason=f"no real data at {DATA}; SKILLGIT_REAL_DATA names their folder")
def test_what_people_really_ask_is_told_apart_and_a_retry_is_not():
    """Of real questions the nearest neighbours are alike to 51 %; one retried with another word is to 95 and more."""
    issues = json.loads((DATA / "swebench_lite" / "swebench_lite.sample.json").read_text(encoding="utf-8"))
    texts = [*prompts(), *(row["problem_statement"] for row in issues)]
    items = [asked(text, f"i{number}", f"g{number}") for number, text in enumerate(texts)]
    assert not [*related_pairs(items, prompt)]
    for text in texts[::8]:
        retry = asked(f"{text.rstrip('.')}, please", "retry", "again")
        assert len([*related_pairs([*items, retry], prompt)]) == 1
