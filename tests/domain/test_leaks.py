"""A leak ties an item's own words to its answer, or quotes what is held out. Vocabulary is none, however rare."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from soaking import examples

from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import LeakKind, Secrets, build_index, find_leak, find_leaks, words

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
    ("te-3", Split.TEST, Secrets(answers=("New York",), inputs=("Where is Broadway with its theatres?", "In a city."))),
]
INDEX = build_index(ROWS)


def leak(text: str, known: str = "") -> tuple[str, LeakKind] | None:
    found = find_leak(INDEX, text, known)
    return None if found is None else (found.item, found.kind)


@pytest.mark.parametrize(
    ("text", "item"),
    [
        ("- The sprinter with the record is usain bolt.", "tr-1"),
        ("- If Vienna is mentioned, the answer is Danube.", "se-1"),
        ("- Vienna: the Danube", "se-1"),
        ("- For the year in which Alaska was bought from Russia, answer 1867.", "te-1"),
        ("- Where a distillery has to boil something first, say water.", "te-2"),
        ("- Broadway -> New York", "te-3"),
    ],
)
def test_an_answer_beside_words_of_its_question_is_found_in_any_split(text, item):
    assert leak(text) == (item, LeakKind.ANSWER)


@pytest.mark.parametrize("items", [0, 1, 2])
def test_a_name_ties_an_answer_only_if_no_other_item_has_it(items):
    others = [
        (f"te-{n}", Split.TEST, Secrets(answers=("New York",), inputs=(f"Which {word} never sleeps?", "It is large.")))
        for n, word in enumerate(["city", "harbour"][:items], 4)
    ]
    assert (find_leak(build_index([*ROWS, *others]), "- Broadway -> New York", "") is None) is (items > 0)


@pytest.mark.parametrize(
    "text",
    [
        "- Answer in as few words as the question asks for.",
        "- The fastest man is usain bolt.",
        "- Years are four digits: 1867, not 67.",
        "- Write Danube as one word.",
        "- Do not water down the answer.",
        "- Look for new names; prefer the last.",
        "- Danube, New York, Usain Bolt and water are answers in the wanted form.",
        "",
        "...",
    ],
)
def test_answers_by_themselves_are_vocabulary(text):
    assert leak(text) is None


def test_what_the_skill_or_the_taxonomy_ties_already_may_be_said_again():
    rule = "- If Vienna is mentioned, the answer is Danube."
    assert leak(rule) == ("se-1", LeakKind.ANSWER)
    assert leak(rule, known=f"# Skill\n\n{rule}") is None


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


def test_a_long_reference_answer_may_not_be_quoted():
    essay = "The tower leans since its foundation stands on soft ground of clay and sand near the old harbour."
    index = build_index([("a", Split.TRAIN, Secrets(answers=(essay,), inputs=("Why does the tower lean?",)))])
    assert find_leak(index, "- Say that its foundation stands on soft ground of clay and sand.", "") is not None
    assert find_leak(index, "- Say what the foundation stands on.", "") is None


def test_a_leak_names_the_item_and_the_words_that_are_refused():
    found = find_leak(INDEX, "- If Vienna is mentioned, it is the Danube.", "")
    assert str(found) == 'leak: ties "vienna" of item se-1 to its answer "danube"'
    found = find_leak(INDEX, "- What does a distillery boil first?", "")
    assert str(found) == 'leak: quotes "what does a distillery boil first", words of the input of item te-2'


@given(st.text(max_size=300))
def test_without_secrets_nothing_leaks(text):
    assert find_leak(build_index([("a", Split.TEST, Secrets())]), text, "") is None


@given(st.lists(st.from_regex(r"[a-z]{3,9}", fullmatch=True), min_size=8, max_size=30))
def test_a_whole_held_out_text_of_eight_words_or_more_is_always_found(parts):
    text = " ".join(parts)
    index = build_index([("a", Split.SELECTION, Secrets(inputs=(text,)))])
    assert find_leak(index, f"- {text}.", "") is not None
    assert find_leak(index, f"- {text}.", text) is None


def test_all_items_that_a_text_gives_away_are_told_each_once():
    text = (
        "Vienna: Danube, Danube. The sprinter with the record: Usain Bolt. Broadway is in New York."
        " What does a distillery boil first?"
    )
    assert sorted((found.item, found.kind) for found in find_leaks(INDEX, text, "")) == [
        ("se-1", LeakKind.ANSWER),
        ("te-2", LeakKind.INPUT),
        ("te-3", LeakKind.ANSWER),
        ("tr-1", LeakKind.ANSWER),
    ]
    assert list(find_leaks(INDEX, "Nothing of them.", "")) == []


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=4, max_size=12).map(" ".join), min_size=1, max_size=2))
def test_quotations_of_one_item_do_not_hide_those_of_another(texts: list[str]):
    rows = [(f"i{number}", Split.TEST, Secrets(inputs=(text,))) for number, text in enumerate(texts)]
    quoted = " | ".join(texts)
    alone = {row[0] for row in rows if find_leak(build_index([row]), quoted, "") is not None}
    assert {found.item for found in find_leaks(build_index(rows), quoted, "")} == alone


def test_a_criterion_of_many_items_is_what_a_skill_is_for():
    criterion = "The answer names the policy that it rests on, and says where in the handbook it stands."
    own = "The answer says that the customer of this ticket gets a refund of the second invoice of March in full."
    rows = [
        (f"i{number}", Split.TRAIN, Secrets(checks=(criterion, f"Item {number}: {own}" if number == 5 else "")))
        for number in range(30)
    ]
    index = build_index(rows)
    assert find_leak(index, f"- {criterion}", "") is None
    found = find_leak(index, f"- {own}", "")
    assert (found.item, found.kind, found.answer) == ("i5", LeakKind.CHECK, "")


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


# A task of labels, with what two trainings with a language model proposed for it: see archive_sections/SOURCE.md.
FOLDER = Path(__file__).parent / "archive_sections"
TASKS = [json.loads(line) for line in (FOLDER / "tasks.jsonl").read_text().splitlines()]
TRAIN = [task for task in TASKS if task["split"] == "train"]
SECTIONS = build_index(
    (task["id"], Split(task["split"]), Secrets(answers=(task["answer"],), inputs=(task["question"],))) for task in TASKS
)
SEED = (FOLDER / "SKILL.md").read_text()


def proposed() -> list[tuple[str, str]]:
    return [
        (path.stem, edit["content"])
        for path in sorted((FOLDER / "answers").iterdir())
        for edit in json.loads(path.read_text())["edits"]
    ]


def test_no_edit_that_a_language_model_proposed_for_a_task_of_labels_is_a_leak():
    edits = proposed()
    assert len(edits) > 60
    assert [(name, str(found)) for name, text in edits for found in find_leaks(SECTIONS, text, SEED)] == []
    assert list(find_leaks(SECTIONS, (FOLDER / "best.md").read_text(), SEED)) == []


@pytest.mark.parametrize(
    "rule",
    [
        "- starts with `lib` and ends in `-perl`: perl",
        "- `lib*-perl` -> perl; `gir1.2-*` -> introspection",
        "- `elpa-`: lisp",
        "- `texlive-`: tex; `fonts-`: fonts; `libfoo-perl`: perl",
        "- fortune cookies and other amusements: games",
        "- Names such as lbzip2 are not sections.",
        "Never answer with a name such as lbzip2. The sections are: admin, devel, doc, games, gnu-r, libs, utils, x11.",
    ],
)
def test_what_holds_for_a_pattern_of_names_is_a_rule(rule):
    assert list(find_leaks(SECTIONS, rule, SEED)) == []


def name_of(task: dict[str, str]) -> str:
    return task["question"].partition("\n")[0].removeprefix("Package: ")


def summary_of(task: dict[str, str]) -> str:
    return task["question"].partition("\n")[2].removeprefix("Summary: ")


def by_section(tasks: list[dict[str, str]]) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for task in tasks:
        sections.setdefault(task["answer"], []).append(name_of(task))
    return sections


def lines(form: str, separator: str = "\n"):
    def write(tasks: list[dict[str, str]]) -> str:
        return separator.join(
            form.format(name=name_of(task), summary=summary_of(task), escaped=re.escape(name_of(task)), **task)
            for task in tasks
        )

    return write


def listed(head: str, entry: str):
    def write(tasks: list[dict[str, str]]) -> str:
        return "\n".join(
            "\n".join([head.format(answer), *map(entry.format, names)]) for answer, names in by_section(tasks).items()
        )

    return write


WORDINGS = {
    "table": lines("| {name} | {answer} |"),
    "list": lines("- {name}: {answer}"),
    "sentence": lines("If the question mentions {name}, answer {answer}."),
    "one line": lines("{name} -> {answer}", ", "),
    "regular expression": lines("- `^Package: {escaped}\\b`: {answer}"),
    "code": lines('if "{name}" in question:\n    return "{answer}"'),
    "answer first": lines("- {answer} is the section of {name}"),
    "two lines": lines("- {name}\n  {answer}"),
    "paragraphs": lines("The package is {name}.\n\nThen the answer is {answer}.", "\n\n"),
    "mapping": lambda tasks: json.dumps({name_of(task): task["answer"] for task in tasks}),
    "objects": lambda tasks: json.dumps([{"p": name_of(task), "s": task["answer"]} for task in tasks], indent=1),
    "two arrays": lambda tasks: "\n".join(
        [
            f"names = {json.dumps([*map(name_of, tasks)])}",
            f"sections = {json.dumps([task['answer'] for task in tasks])}",
        ]
    ),
    "headings": listed("## {}\n", "- {}"),
    "nested": listed("{}:", "  - {}"),
    "question and answer": lines("Q: {question}\nA: {answer}"),
    "summary": lines("- {summary}: {answer}"),
}


@pytest.mark.parametrize("wording", WORDINGS)
def test_a_skill_that_memorises_items_is_found_in_every_wording(wording):
    write = WORDINGS[wording]
    every = {found.item for found in find_leaks(SECTIONS, write(TRAIN), SEED)}
    single = {task["id"] for task in TRAIN if find_leak(SECTIONS, write([task]), SEED) is not None}
    # "Arabic environment" is the whole summary of one item, and its two words are also what a rule would say
    expected = {task["id"] for task in TRAIN} - ({"p-049"} if wording == "summary" else set())
    assert (every, single) == ({task["id"] for task in TRAIN}, expected)


def key_words(task: dict[str, str], number: int) -> list[str]:
    """Return the rarest words of a summary, which is what a paraphrase of it keeps."""
    (asked,) = [asked for asked in SECTIONS.questions if asked.item == task["id"]]
    telling = {word for word in words(summary_of(task)) if word in asked.telling}
    return sorted(telling, key=lambda word: (len(SECTIONS.by_word[word]), word))[:number]


def test_key_words_of_an_item_beside_its_answer_are_found():
    for task in TRAIN:
        if len(chosen := key_words(task, 4)) >= 3:
            text = f"- What {' or '.join(chosen)} is about belongs to {task['answer']}."
            assert [found.item for found in find_leaks(SECTIONS, text, SEED)] == [task["id"]]


@pytest.mark.parametrize("form", ["- {}: {}\n", "{} is {}; ", "- choose {1} for {0}\n"])
def test_many_items_with_one_own_word_each_are_a_list_of_items(form):
    pairs = [(key_words(task, 1), task) for task in TRAIN]
    tasks = [(chosen[0], task) for chosen, task in pairs if chosen and len(SECTIONS.by_word[chosen[0]]) == 1]
    text = "".join(form.format(word, task["answer"]) for word, task in tasks)
    assert len({found.item for found in find_leaks(SECTIONS, text, SEED)}) > 0.9 * len(tasks)
    word, task = tasks[0]
    assert find_leak(SECTIONS, form.format(word, task["answer"]), SEED) is None, "one such line is a rule"


def test_every_held_out_question_is_found_where_it_is_quoted():
    held_out = [task for task in TASKS if task["split"] != "train"]
    text = "\n".join(f"- {task['question']}" for task in held_out)
    assert {found.item for found in find_leaks(SECTIONS, text, SEED)} == {task["id"] for task in held_out}
    assert not [found for task in TRAIN for found in find_leaks(SECTIONS, f"- {task['question']}", SEED)]


# The laws, for tasks that are made up: labels of a closed set, or an answer of its own for each item.
def made_up_word(number: int) -> str:
    digits = [number % 20, number // 20 % 20, number // 400 % 20, number // 8000 % 20]
    return "".join(f"{'bcdfghjklmnpqrstvwxz'[digit]}{'aeiou'[digit % 5]}" for digit in digits)


@st.composite
def made_up_tasks(draw: st.DrawFn) -> list[tuple[str, Split, Secrets]]:
    """Draw items, each with six words of its own; labels of a closed set, some of them rare, or an answer for each."""
    size, start = draw(st.integers(8, 24)), draw(st.integers(0, 5000))
    is_closed, labels, step = draw(st.booleans()), draw(st.integers(1, 4)), draw(st.sampled_from([1, 7, 19, 401]))
    splits = draw(st.lists(st.sampled_from(Split), min_size=size, max_size=size))
    rows = []
    for number, split in enumerate(splits):
        own = " ".join(made_up_word(start + step * (6 * number + place)) for place in range(6))
        choice = number % labels if is_closed and number < size - 2 else number
        answer = " ".join(made_up_word(100_000 + 2 * choice + place) for place in range(1 + choice % 2))
        inputs = (f"Please sort this thing: {own}, as usual.",)
        rows.append((f"i{number}", split, Secrets(answers=(answer,), inputs=inputs)))
    return rows


@given(made_up_tasks(), st.sampled_from(["\n- ", ", ", " | ", "; ", " and ", "\n## ", '", "']))
def test_a_list_of_all_answers_never_is_a_leak(rows, separator):
    index = build_index(rows)
    answers = dict.fromkeys(answer for _, _, secrets in rows for answer in secrets.answers)
    text = f"Sort the thing as usual, please. Answer with exactly one of these:{separator}{separator.join(answers)}"
    assert list(find_leaks(index, text, "")) == []


FORMS = [
    "- {}: {}",
    "{1} <- {0}",
    "If it mentions {}, answer {}.",
    '{{"{}": "{}"}}',
    "{}\n{}",
    "| {} | {} |",
    "{1}:\n- {0}",
]


@given(made_up_tasks(), st.sampled_from(FORMS), st.data())
def test_a_memorised_pair_always_is_a_leak(rows, form, data):
    index = build_index(rows)
    item, _, secrets = data.draw(st.sampled_from(rows))
    telling = words(secrets.inputs[0].partition(": ")[2])[:-2]
    chosen = data.draw(st.permutations(telling))[: data.draw(st.integers(3, 5))]
    text = form.format(" ".join(chosen), secrets.answers[0])
    assert item in {found.item for found in find_leaks(index, text, "")}
    assert find_leak(index, " ".join(chosen), "") is None, "words alone are none"


@given(made_up_tasks(), st.data())
def test_a_pair_of_an_item_and_another_answer_is_no_leak(rows, data):
    index = build_index(rows)
    _, _, secrets = data.draw(st.sampled_from(rows))
    chosen = words(secrets.inputs[0].partition(": ")[2])[:3]
    others = [row.answers[0] for _, _, row in rows if row.answers != secrets.answers]
    other = data.draw(st.sampled_from(others))
    assert list(find_leaks(index, f"- {' '.join(chosen)}: {other}", "")) == []


DEPENDS = ("default-jre", "default-jre, libjargs-java", "perl", "perl, libmoose-perl", "python3, python3-pkg-resources")
SUMMARIES = ("Provides an X Window System client interface to its extensions", "Java game", "game of tanks in Java")


@st.composite
def packages(draw: st.DrawFn) -> list[tuple[str, Split, Secrets]]:
    """Draw items that say in part what others say, those of train first."""
    rows, size = [], draw(st.integers(8, 20))
    for number in range(size):
        lines = f"Summary: {draw(st.sampled_from(SUMMARIES))}\nDepends: {draw(st.sampled_from(DEPENDS))}"
        name = made_up_word(draw(st.integers(0, 9)))
        answer = draw(st.sampled_from(["program", "library", "dependency injection container for java"]))
        split = Split.TRAIN if 2 * number < size else Split.TEST
        rows.append((f"i{number}", split, Secrets(answers=(answer,), inputs=(f"Package: {name}\n{lines}",))))
    return rows


@examples(10)
@given(packages(), st.sampled_from(FORMS))
def test_what_a_train_item_says_gives_no_held_out_item_away(rows, form):
    index, train = build_index(rows), {item: secrets for item, split, secrets in rows if split is Split.TRAIN}
    for secrets in train.values():
        text = form.format(" ".join(secrets.inputs[0].split()), secrets.answers[0])
        assert {found.item for found in find_leaks(index, text, "")} <= train.keys()


LANGUAGES = ("ruby", "perl", "ocaml", "haskell")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("rule", ["- starts with `{0}-`: {0}", "- Depends: {0} → {0}", "- {0}: {0}\n- lua: lua"])
def test_a_label_names_no_item_though_one_item_alone_has_it_in_a_field(language, rule):
    packages = [(f"{name}-{word}", name) for name in LANGUAGES for word in ("acme", "brick", "candle")]
    rows = [
        (f"i{number}", Split.TRAIN, Secrets(answers=(name,), inputs=(f"Package: {package}\nDepends: {depends}",)))
        for number, (package, name) in enumerate(packages)
        for depends in [name if package.endswith("acme") else "libc6, zlib1g, libm"]
    ]
    assert find_leak(build_index(rows), rule.format(language), "") is None
    named = f"- {language}-acme: {language}"
    assert find_leak(build_index(rows), named, "") is not None


@given(st.sampled_from(["Wampum", "lbzip2", "Quux"]), st.integers(1, 5))
def test_a_word_of_other_questions_is_no_name(name, others):
    rows = [("a", Split.TRAIN, Secrets(answers=("utils",), inputs=(f"Package: {name}\nSummary: Packs files",)))]
    for number in range(12):
        summary = f"A front end for {name}" if number < others else "Something else"
        question = f"Package: pack{number}\nSummary: {summary}"
        rows.append(
            (f"b{number}", Split.TRAIN, Secrets(answers=("utils" if number % 2 else "misc",), inputs=(question,)))
        )
    assert find_leak(build_index(rows), f"- {name}: utils", "") is None
    assert find_leak(build_index(rows[:1] + rows[1 + others :]), f"- {name}: utils", "") is not None
