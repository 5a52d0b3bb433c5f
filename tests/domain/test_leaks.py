from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import FEWEST_SHARING, SHARING, LeakKind, Secrets, build_index, find_leak, find_leaks

QUESTION = "Which river flows through the Austrian capital Vienna?"
CONTEXT = (
    "[DOC] [TLE] Vienna [PAR] The river that flows through Vienna is the Danube, which reaches the Black Sea in Romania"
    " after passing ten countries."
)
CHECK = "def check(answer): return answer.strip().lower().startswith('dan') and len(answer) < 9"
ROWS = [
    ("tr-1", Split.TRAIN, Secrets(answers=("Usain Bolt",), inputs=("Which sprinter holds the record?", "He ran it."))),
    ("se-1", Split.SELECTION, Secrets(answers=("Danube", "the Danube"), inputs=(QUESTION, CONTEXT), checks=(CHECK,))),
    (
        "te-1",
        Split.TEST,
        Secrets(answers=("1867",), inputs=("In which year was Alaska bought from Russia?", "It was.")),
    ),
    ("te-2", Split.TEST, Secrets(answers=("water",), inputs=("What does a distillery boil first?", "Hot."))),
    ("te-3", Split.TEST, Secrets(answers=("New York",), inputs=("Where is Broadway?", "In a big city."))),
]
INDEX = build_index(ROWS)


def leak(text: str, known: str = "") -> tuple[str, LeakKind] | None:
    found = find_leak(INDEX, text, known)
    return None if found is None else (found.item, found.kind)


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("- The fastest man is usain bolt.", "tr-1"),
        ("- If Vienna is mentioned, the answer is Danube.", "se-1"),
        ("- For the year in which Alaska was bought from Russia, answer 1867.", "te-1"),
        ("- Where a distillery has to boil something first, say water.", "te-2"),
        ("- Theatres are in New York as a rule.", "te-3"),
    ],
)
def test_an_answer_is_found_in_any_split(text, item):
    assert leak(text) == (item, LeakKind.ANSWER)


@pytest.mark.parametrize(
    "text",
    [
        "- Answer in as few words as the question asks for.",
        "- Years are four digits: 1867, not 67.",
        "- Do not water down the answer.",
        "- Look for new names; prefer the last.",
        "",
        "...",
    ],
)
def test_common_words_years_and_numbers_alone_do_not_count(text):
    assert leak(text) is None


def test_what_the_skill_or_the_taxonomy_says_already_may_be_said_again():
    assert leak("- Write Danube as one word.") == ("se-1", LeakKind.ANSWER)
    assert leak("- Write Danube as one word.", known="Rivers, such as the Danube.") is None


def test_a_capital_at_the_start_of_a_sentence_makes_no_name():
    index = build_index(
        [("a", Split.TRAIN, Secrets(answers=("Paper",), inputs=("What is money made of in the end?",)))]
    )
    assert find_leak(index, "- Paper trails count. Paper is patient.", "") is None
    assert find_leak(index, "- The stuff is called Paper.", "") is not None


def test_words_of_many_items_are_common():
    rows = [
        (f"i{n}", Split.TRAIN, Secrets(answers=("Europe",), inputs=(f"q {n}", "somewhere in Europe"))) for n in range(9)
    ]
    assert find_leak(build_index(rows), "- Prefer places in Europe.", "") is None


def test_eight_words_in_a_row_of_a_held_out_input_are_a_quotation():
    assert leak("- After passing ten countries it reaches nothing.") is None
    assert leak("- It is known which reaches the Black Sea in Romania after passing ten countries.") == (
        "se-1",
        LeakKind.INPUT,
    )
    assert leak("- Q: what does a distillery boil first? A: ...") == ("te-2", LeakKind.INPUT), "a short text, whole"


def test_inputs_of_train_items_may_be_quoted():
    assert leak("- Q: which sprinter holds the record? It is a question for a person.") is None


def test_the_source_of_a_check_may_not_be_quoted():
    assert leak("- Write answer.strip().lower().startswith('dan') and len(answer) < 9") == ("se-1", LeakKind.CHECK)


def test_a_leak_names_the_item_and_never_the_secret():
    found = find_leak(INDEX, "- It is Usain Bolt.", "")
    assert str(found) == "leak: quotes an answer of item tr-1 that fewer than 3 items share"


@given(st.text(max_size=300))
def test_without_secrets_nothing_leaks(text):
    assert find_leak(build_index([("a", Split.TEST, Secrets())]), text, "") is None


@given(st.lists(st.from_regex(r"[a-z]{3,9}", fullmatch=True), min_size=8, max_size=30))
def test_a_whole_held_out_text_of_eight_words_or_more_is_always_found(words):
    text = " ".join(words)
    index = build_index([("a", Split.SELECTION, Secrets(inputs=(text,)))])
    assert find_leak(index, f"- {text}.", "") is not None
    assert find_leak(index, f"- {text}.", text) is None


def test_all_items_that_a_text_quotes_are_told_each_once():
    text = "Say Danube, or Usain Bolt, or Danube. Theatres are in New York. What does a distillery boil first?"
    assert [(found.item, found.kind) for found in find_leaks(INDEX, text, "")] == [
        ("te-2", LeakKind.INPUT),
        ("tr-1", LeakKind.ANSWER),
        ("se-1", LeakKind.ANSWER),
        ("te-3", LeakKind.ANSWER),
    ]
    assert list(find_leaks(INDEX, "Nothing of them.", "")) == []


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=4, max_size=12).map(" ".join), min_size=1, max_size=2))
def test_taking_out_one_item_leaves_the_quotations_of_the_others(texts: list[str]):
    rows = [(f"i{number}", Split.TEST, Secrets(inputs=(text,))) for number, text in enumerate(texts)]
    quoted = " | ".join(texts)
    alone = {row[0] for row in rows if find_leak(build_index([row]), quoted, "") is not None}
    assert {found.item for found in find_leaks(build_index(rows), quoted, "")} == alone


LABELS = ("Billing", "Network Operations", "Identity", "Facilities")


def tickets(label: str, sharing: int, items: int, split: Split = Split.SELECTION) -> list[tuple[str, Split, Secrets]]:
    """Return items of which ``sharing`` have the answer ``label``, and every other one its own."""
    return [
        (
            f"t{number}",
            split,
            Secrets(
                answers=(label if number < sharing else f"Zyx{'q' * number}",),
                inputs=(f"Ticket {number}: the laptop of customer number{number} cannot reach the office printer",),
            ),
        )
        for number in range(items)
    ]


@given(st.sampled_from(LABELS), st.integers(1, 12), st.integers(0, 300))
def test_what_enough_items_share_is_vocabulary_and_what_fewer_share_is_secret(label, sharing, others):
    items = sharing + others
    rows = tickets(label, sharing, items)
    rule = f"- A laptop that cannot reach the office printer belongs to the queue {label}."
    is_vocabulary = sharing >= max(FEWEST_SHARING, ceil(SHARING * items))
    assert (find_leak(build_index(rows), rule, "") is None) == is_vocabulary


def test_a_label_of_several_splits_is_shared_by_all_of_them():
    rows = [
        (split, split, Secrets(answers=("Network Operations",), inputs=(f"Ticket {split}: no network",)))
        for split in Split
    ]
    assert find_leak(build_index(rows), "- Outages go to Network Operations.", "") is None
    assert find_leak(build_index(rows[:2]), "- Outages go to Network Operations.", "") is not None


def test_two_labels_in_one_answer_are_two_words_of_the_vocabulary():
    pairs = [(queue, level) for queue in ("billing", "network", "identity") for level in ("urgent", "normal", "later")]
    rows = [
        (
            f"t{number}",
            Split.TRAIN,
            Secrets(answers=(f"{queue} / {level}",), inputs=(f"invoice refund payment {number}",)),
        )
        for number, (queue, level) in enumerate(pairs)
    ]
    assert find_leak(build_index(rows), "- An invoice with a refund or a payment is billing / urgent.", "") is None


def test_numbers_are_no_vocabulary_by_their_parts():
    questions = (
        "When did Ulysses sail past Gibraltar?",
        "When was Betelgeuse measured in Uppsala?",
        "When did Kea erupt?",
    )
    rows = [
        (f"d{day}", Split.TEST, Secrets(answers=(f"{day} May 1999",), inputs=(question,)))
        for day, question in enumerate((*questions, *questions[:1]), start=1)
    ]
    assert find_leak(build_index(rows), "- Betelgeuse was measured in Uppsala on 2 May 1999.", "") is not None


def test_a_criterion_of_many_items_is_what_a_skill_is_for():
    criterion = "The answer names the policy that it rests on, and says where in the handbook it stands."
    own = "The answer says that the customer of this ticket gets a refund of the second invoice of March in full."
    rows = [
        (f"i{number}", Split.TRAIN, Secrets(checks=(criterion, f"Item {number}: {own}" if number == 5 else "")))
        for number in range(30)
    ]
    index = build_index(rows)
    assert find_leak(index, f"- {criterion}", "") is None
    assert str(find_leak(index, f"- {own}", "")) == "leak: quotes a check of item i5 that fewer than 3 items share"


def test_a_phrase_that_many_texts_hold_is_boilerplate():
    footer = "please reply above this line to add a comment to the ticket"
    rows = [
        (
            f"t{number}",
            Split.TEST,
            Secrets(inputs=(f"Case {number} of customer{number} about thing{number}. {footer}",)),
        )
        for number in range(5)
    ]
    assert find_leak(build_index(rows), f'- Pass over the footer "{footer}".', "") is None
