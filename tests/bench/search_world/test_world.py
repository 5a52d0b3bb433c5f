"""That the world of ``make bench-search`` is what it says."""

from __future__ import annotations

from statistics import mean

import pytest
from bench.search_world import prompts
from bench.search_world.fit import PLAIN, RECORDED, USELESS
from bench.search_world.insight import Optimizer, Seen
from bench.search_world.rival import reflected
from bench.search_world.world import ADVICE, GOODS, REGIONS, SEED, World

WORLDS = [World(seed, PLAIN) for seed in range(1, 9)]
WORLD = WORLDS[0]
EVERY = range(len(GOODS))


def failures(count, text=SEED):
    items = [(item, WORLD.attempt(text, item)) for item in WORLD.items["train"]]
    return [Seen(item.id, item.task, attempt.feedback) for item, attempt in items if not attempt.solved][:count]


def test_there_is_room_between_the_seed_and_the_ceiling():
    for split in ("train", "selection", "test"):
        assert 0.4 < mean(world.score(SEED, split) for world in WORLDS) < 0.5
        assert 0.93 < mean(world.score(world.ceiling, split) for world in WORLDS) < 0.97


def test_what_train_items_show_suffices_to_come_near_the_ceiling():
    def score(world):
        needs = [zip(item.goods, item.known, strict=True) for item in world.items["train"]]
        shown = {number for pairs in needs for number, known in pairs if not known}
        return world.score(SEED + "".join(f"- {world.rule(number)}\n" for number in sorted(shown)), "test")

    assert 0.93 < mean(map(score, WORLDS)) < 0.96


def test_each_item_needs_one_to_three_rules_and_each_rule_helps_where_it_is_needed():
    for item in WORLD.by_id.values():
        assert 1 <= len(set(item.goods)) == len(item.goods) <= 3
        others = [number for number in EVERY if number not in item.goods]
        helped, idle = (
            SEED + "".join(f"- {WORLD.rule(number)}\n" for number in group) for group in (item.goods, others)
        )
        assert WORLD.chance(SEED, item) == pytest.approx(WORLD.chance(idle, item))
        assert WORLD.chance(helped, item) > WORLD.chance(SEED, item)


@pytest.mark.parametrize("overreaching", [True, False])
def test_harmful_lines_break_the_slips_of_one_region_that_they_do_not_name(overreaching):
    for number in EVERY:
        line = WORLD.harmful(number, overreaching=overreaching)
        text = f"{WORLD.ceiling}- {line}\n"
        [region] = {item.region for item in WORLD.by_id.values() if WORLD.chance(text, item) < 0.2}
        assert WORLD.score(text, "test") < WORLD.score(WORLD.ceiling, "test") - 0.05
        assert REGIONS[region] not in line + WORLD.rule(number)


def test_useless_lines_cost_their_length_only():
    text = SEED + "".join(f"- {line}\n" for line in (*ADVICE, *map(WORLD.vague, EVERY)))
    assert WORLD.score(text, "test") == WORLD.score(SEED, "test")


def test_an_attempt_depends_on_text_item_and_number_alone():
    items, again = WORLD.items["test"], World(1, PLAIN)
    for number in range(2):
        assert [again.attempt(SEED, item, number) for item in reversed(again.items["test"])] == [
            WORLD.attempt(SEED, item, number) for item in reversed(items)
        ]
    same_worth = f"{SEED}- {ADVICE[0]}\n"
    changes = [WORLD.attempt(SEED, item).solved != WORLD.attempt(same_worth, item).solved for item in items]
    assert 3 <= sum(changes) <= 40


def test_attempts_are_solved_as_often_as_the_world_says():
    for text in (SEED, WORLD.ceiling):
        rate = mean(WORLD.attempt(text, item, number).solved for item in WORLD.items["test"] for number in range(20))
        assert rate == pytest.approx(WORLD.score(text, "test"), abs=0.03)


def test_more_failures_of_a_cause_make_its_rule_likelier():
    def share(count):
        seen = [Seen(f"i{number}", "", f"no mark for {GOODS[0]}, where it is due") for number in range(count)]
        replies = [Optimizer(WORLD, SEED, str(key)).from_failures(seen, []) for key in range(400)]
        return mean(any(WORLD.line(insight.new) == WORLD.line(WORLD.rule(0)) for insight in reply) for reply in replies)

    assert 0.5 < share(1) < 0.7 < share(2) < share(4) < 1.0


def test_both_ways_of_asking_draw_on_the_same_knowledge():
    seen = failures(3)
    examples = "\n\n".join(
        f"# Example {number}\n## Inputs\n{one.task}\n\n## Generated Outputs\nmarks\n\n## Feedback\n{one.feedback}\n\n"
        for number, one in enumerate(seen, 1)
    )
    prompt = f"I provided instructions:\n```\n{SEED}\n```\n\nExamples:\n```\n{examples}\n```\n\nYour task is new."
    lines = reflected(WORLD, prompt).splitlines()
    trajectories = "\n".join(
        f'<trajectory id="{one.item}">\n<turn role="user">\n{one.task}\n</turn>\n'
        f"<feedback>\n{one.feedback}\n</feedback>\n</trajectory>"
        for one in seen
    )
    shown = f'<skill>\n<file path="SKILL.md">\n{SEED}</file>\n</skill>\n<budget>9</budget>\n{trajectories}'
    reply = prompts.reply(WORLD, "# Analyse failures\n", shown)
    rules = [WORLD.rule(number, wording) for number in EVERY for wording in range(2)]
    assert any(f"- {rule}" in lines for rule in rules)
    assert any(rule in reply for rule in rules)


def test_the_recorded_fit_ignores_rules_and_writes_useless_lines_as_often_as_the_recorded_runs():
    solved, count, useless, lines = 0, 0, 0, 0
    for world in (World(seed, RECORDED) for seed in range(1, 9)):
        items = [item for item in world.items["train"] if not world.attempt(SEED, item).solved]
        for place in range(0, len(items), 8):
            batch = items[place : place + 8]
            seen = [Seen(item.id, item.task, world.attempt(SEED, item).feedback) for item in batch]
            for insight in Optimizer(world, SEED, str(place)).from_failures(seen, []):
                text = f"{SEED}- {insight.new}\n"
                gains = [
                    world.chance(text, world.by_id[id_]) > world.chance(SEED, world.by_id[id_]) for id_ in insight.items
                ]
                useless, lines = useless + (not any(gains)), lines + 1
                known = world.line(insight.new)
                if known is not None and known.states and known.region < 0:
                    solved, count = solved + sum(gains), count + len(gains)
    assert 1 - solved / count == pytest.approx(RECORDED.ignored, abs=0.08)
    assert useless / lines == pytest.approx(USELESS, abs=0.1)
