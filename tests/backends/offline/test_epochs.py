from __future__ import annotations

from offline_prompts import ask_analyst, attempt, skill, tagged
from reader_cases import PASSAGES, Passage

from skillgit.engine.prompt_sections import skill_section
from skillgit_backends.offline.rules import HARMFUL, RULES, Habit
from skillgit_backends.offline.skills import rules_in

BY_HABIT = {passage.habit: passage for passage in PASSAGES}


def pair(passage: Passage, category: str, number: int = 0) -> str:
    sides = (
        attempt("", passage.question, passage.documents, passage.naive, [passage.taught], tag=side)
        for side in ("previous", "current")
    )
    return tagged("pair", "\n".join(sides), id=f"tr-{number}", category=category)


def review(name: str, pairs: list[str], *rules: str, guidance: str = "", memory: str = "", history: str = "") -> dict:
    made = skill(*rules, slow=guidance)
    sections = [skill_section(made, version=version) for version in ("previous", "current")]
    sections += [tagged(tag, text) for tag, text in (("guidance", guidance), ("memory", memory)) if text]
    sections.append(tagged("comparison", "\n".join(pairs), improved=0))
    return ask_analyst(name, *sections, *([tagged("history", history)] if history else []))


def test_guidance_addresses_what_keeps_failing():
    reply = review("slow_update", [pair(BY_HABIT[Habit.PAREN], "persistent_fail")])
    assert rules_in(reply["guidance"]) == {Habit.PAREN}
    assert reply["title"] == RULES[Habit.PAREN].label


def test_regressions_weigh_more_than_persistent_failures():
    pairs = [
        *(pair(BY_HABIT[habit], "persistent_fail", number) for number, habit in enumerate((Habit.YEAR, Habit.TITLE))),
        pair(BY_HABIT[Habit.NUMBER], "regressed", 3),
    ]
    assert rules_in(review("slow_update", pairs)["guidance"].splitlines()[0]) == {Habit.NUMBER}


def test_guidance_repeats_no_rule_and_keeps_what_stands():
    pairs = [pair(BY_HABIT[Habit.PAREN], "persistent_fail"), pair(BY_HABIT[Habit.YEAR], "persistent_fail", 1)]
    reply = review("slow_update", pairs, RULES[Habit.PAREN].wordings[0], guidance="- Be fair.")
    assert reply["guidance"].splitlines()[0] == "- Be fair."
    assert rules_in(reply["guidance"]) == {Habit.YEAR}


def test_an_epoch_that_shows_nothing_yields_little():
    seen = {
        review("slow_update", [pair(BY_HABIT[Habit.PAREN], "stable_success", number)])["guidance"]
        for number in range(20)
    }
    assert "" in seen
    assert all(not rules_in(guidance) for guidance in seen)


def test_the_memory_tells_accepted_kinds_from_rejected_ones_and_keeps_the_old():
    history = (
        f"step 2 (epoch 1) reject 0.1000 against 0.2000: t\n  + - {RULES[Habit.ONE_WORD].wordings[0]}\n"
        f"step 1 (epoch 1) accept_new_best 0.2000 against 0.1000: t\n  + - {RULES[Habit.PAREN].wordings[1]}"
    )
    old = review("meta_skill", [], history=history)["memory"]
    reply = review("meta_skill", [pair(BY_HABIT[Habit.YEAR], "persistent_fail")], memory=old)
    accepted, rejected, failing, _ = reply["memory"].splitlines()
    assert RULES[Habit.PAREN].label in accepted
    assert RULES[Habit.ONE_WORD].label in rejected
    assert RULES[Habit.YEAR].label in failing
    assert len(reply["memory"].split()) < 200


def test_what_the_memory_holds_as_rejected_is_not_proposed_again():
    memory = f"- Kinds of edit that it rejected: {'; '.join(RULES[habit].label for habit in sorted(HARMFUL))}."
    passage = BY_HABIT[Habit.SPAN]
    for number in range(30):
        made = attempt(f"tr-{number}", passage.question, passage.documents, passage.naive, [passage.taught])
        reply = ask_analyst("analyse_failures", skill_section(skill()), tagged("memory", memory), made)
        assert not any(rules_in(edit["content"]) & HARMFUL for edit in reply["edits"])


def test_nothing_to_remember_is_an_empty_memory():
    assert review("meta_skill", [])["memory"] == ""
