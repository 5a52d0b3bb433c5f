"""What the analyst makes of attempts: why they failed, and what it writes of an epoch besides its proposals.

Wrong answers are compared with the expected ones and their texts, lost games read off the moves; nothing is made up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from skillgit.domain.document_rewrite import Template
from skillgit.domain.edit import normalised
from skillgit.domain.protected_regions import appendix_notes
from skillgit_backends.offline.agent import APPLIANCES, NOTHING, Scene, kind, played
from skillgit_backends.offline.candidates import Question, Shape, candidates, fit, names_kind, read_question
from skillgit_backends.offline.patches import Answer, added_rule, bare, body_lines, edit
from skillgit_backends.offline.reader import is_hedged
from skillgit_backends.offline.rules import GAMES, HARMFUL, QUESTIONS, RULES, Chore, Habit
from skillgit_backends.offline.skills import BULLET, draw, labels, rules_in, title, title_of_edits, wording
from skillgit_backends.offline.text import (
    CATEGORY_NOUNS,
    HONORIFICS,
    QUALIFIERS,
    UNITS,
    Document,
    TaskAttempt,
    documents,
    parse_task,
    sentences,
    topics,
    words,
)

if TYPE_CHECKING:
    from skillgit_backends.offline.text import Briefing, EarlierStep


_ARTICLES = frozenset({"a", "an", "the"})
_QUALIFIER = re.compile(rf"^(?:{QUALIFIERS})$")
_UNIT = re.compile(rf"^-?(?:{UNITS})$")
_MISFIT = -0.3
_SEVERAL = 3
_TWO = 2


def causes(attempt: TaskAttempt) -> Sequence[StrEnum]:
    """Return the rules whose lack, or whose presence where they are harmful, explains the failure, likeliest first."""
    scene = played(attempt.turns)
    return [*_missing(scene), *_harmful(scene)] if scene else _causes_in_answer(attempt)


def by_cause(attempts: Iterable[TaskAttempt], rules_present: frozenset[StrEnum]) -> dict[StrEnum, list[str]]:
    """Return the ids of the failures by cause, the commonest first; a harmful rule counts only where it is stated."""
    items: dict[StrEnum, list[str]] = {}
    for attempt in attempts:
        for rule in causes(attempt):
            if rule not in HARMFUL or rule in rules_present:
                items.setdefault(rule, []).append(attempt.item)
    order = list(RULES)
    return dict(sorted(items.items(), key=lambda entry: (-len(entry[1]), order.index(entry[0]))))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A wrong answer, laid open: what was expected instead, and the text that it was read from."""

    answer: str
    right_answer: str
    question: Question
    documents: tuple[Document, ...]
    sentences: tuple[str, ...]

    def naming(self, text: str) -> list[int]:
        """Return the numbers of the documents that name ``text``."""
        return [
            number
            for number, document in enumerate(self.documents)
            if _find(_tokens(text), _tokens(f"{document.title} . {document.body}")) >= 0
        ]

    def sentence_of(self, text: str) -> str:
        """Return the sentence that names ``text`` and resembles the question most; empty if none does."""
        naming = (sentence for sentence in self.sentences if _find(_tokens(text), _tokens(sentence)) >= 0)
        return max(naming, key=lambda sentence: len(topics(sentence) & self.question.words), default="")


def _causes_in_answer(attempt: TaskAttempt) -> list[Habit]:
    if not attempt.right_answers or not attempt.prompt:
        return []
    answer, task = _tokens(attempt.answer), parse_task(attempt.prompt)
    inside = [text for text in attempt.right_answers if _find(_tokens(text), answer) >= 0]
    around = [text for text in attempt.right_answers if _find(answer, _tokens(text)) >= 0]
    pages = tuple(documents(task.context))
    case = _Case(
        answer=attempt.answer,
        right_answer=max(inside, key=len) if inside else (around or list(attempt.right_answers))[0],
        question=read_question(task.question),
        documents=pages,
        sentences=tuple(sentence for page in pages for sentence in sentences(page.body)),
    )
    if answer == ["unknown"] or not answer:
        return [Habit.UNKNOWN]
    if inside:
        return _surplus(case)
    if around:
        is_surname = answer[-1] == _tokens(case.right_answer)[-1]
        return [Habit.FULL_NAME] if is_surname else [Habit.ONE_WORD, Habit.FULL_NAME]
    return _elsewhere(case)


def _surplus(case: _Case) -> list[Habit]:
    answer, expectation = _tokens(case.answer), _tokens(case.right_answer)
    start = _find(expectation, answer)
    before, after = answer[:start], answer[start + len(expectation) :]
    is_sentence = any(_tokens(sentence) == answer for sentence in case.sentences)
    if re.fullmatch(r"\d{4}", case.right_answer) and any(candidate.year for candidate in candidates(case.answer)):
        return [Habit.SENTENCE, Habit.SPAN] if is_sentence else [Habit.YEAR]
    is_figure = case.right_answer[:1].isdigit()
    signs = [
        (Habit.SENTENCE, is_sentence),
        (Habit.TITLE, bool(before) and all(word in HONORIFICS for word in before)),
        (Habit.PAREN, "(" in case.answer),
        (Habit.NUMBER, is_figure and (_QUALIFIER.match(" ".join(before)) or _UNIT.match(" ".join(after)))),
        (Habit.CATEGORY, any(names_kind(word, case.question) for word in (*before[-1:], *after[:1]))),
    ]
    habits = [habit for habit, shows in signs if shows]
    outside = _tokens(re.sub(r"\([^)]*\)", "", case.answer))
    is_long = not habits or len(outside) - len(expectation) > len(before) + 1
    return [*habits, Habit.SPAN] if is_long else habits


def _elsewhere(case: _Case) -> list[Habit]:
    """Say why the expected answer was passed over for another one, harmful rules first."""
    answer, expectation = case.answer, case.right_answer
    is_year = any(candidate.year for candidate in candidates(answer)) and not re.search(r"\d", expectation)
    is_other_page = case.naming(expectation)[:1] not in ([], [0]) and 0 in case.naming(answer)
    is_title = case.question.is_clue and any(_is_title(expectation, page.title) for page in case.documents)
    signs = [
        (Habit.ANY_YEAR, is_year),
        (Habit.ANY_TITLE, any(_tokens(document.title) == _tokens(answer) for document in case.documents)),
        (Habit.FIRST_DOCUMENT, is_other_page),
        (Habit.ONE_WORD, len(_tokens(answer)) == 1 < len(_tokens(expectation))),
        (Habit.THIS_TITLE, is_title),
        (Habit.HEDGE, is_hedged(case.sentence_of(answer)) and not is_hedged(case.sentence_of(expectation))),
        (Habit.ECHO, bool(topics(answer)) and topics(answer) <= case.question.words),
        (Habit.TYPE, _fits(case, answer) <= _MISFIT < _fits(case, expectation)),
        (Habit.REPEAT, len(case.naming(expectation)) > max(1, len(case.naming(answer)))),
    ]
    return [habit for habit, shows in signs if shows]


def _is_title(expectation: str, title: str) -> bool:
    bare = _tokens(re.sub(r"\([^)]*\)", "", title))
    return bare == _tokens(expectation) or [word for word in bare if word not in CATEGORY_NOUNS] == _tokens(expectation)


def _fits(case: _Case, text: str) -> float:
    sentence = case.sentence_of(text)
    tokens = _tokens(text)
    scores = [
        fit(candidate, sentence, case.question.answer_kind)
        for candidate in candidates(sentence)
        if _find(_tokens(candidate.core), tokens) >= 0 or _find(tokens, _tokens(candidate.core)) >= 0
    ]
    if scores:
        return max(scores)
    is_figure = any(option.shape in (Shape.DATE, Shape.NUMBER) for option in candidates(text))
    return _MISFIT if is_figure else 0.0


def _tokens(text: str) -> list[str]:
    return [word for word in words(text) if word not in _ARTICLES]


def _find(part: list[str], whole: list[str]) -> int:
    """Return where ``part`` is in ``whole`` as a run; -1 if it does not."""
    size = len(part)
    return next((at for at in range(len(whole) - size + 1) if size and whole[at : at + size] == part), -1)


def _missing(scene: Scene) -> list[Chore]:
    task = scene.task
    names_there = [name for name, spot in scene.drops if kind(name) == task.thing and kind(spot) == task.target]
    is_in_hand = kind(scene.holding) == task.thing
    if task.chore is Chore.LAMP and is_in_hand:
        return [Chore.LAMP if not scene.lit and scene.count("examine ") else Chore.LIKELY]
    if names_there and task.chore in APPLIANCES:
        return [] if any((name, task.chore) in scene.treatments for name in names_there) else [task.chore]
    if names_there and task.chore is Chore.BOTH:
        # whether the search went on after the first object was put down
        puts = [at for at, (_, observation) in enumerate(scene.steps) if re.match(r"You (?:put|move) ", observation)]
        went_on = sum(command.startswith("go to ") for command, _ in scene.steps[min(puts, default=0) + 1 :]) >= _TWO
        return _failed_search(scene) if went_on else [Chore.BOTH]
    refusals = sum(sight.startswith(NOTHING) for _, sight in scene.steps[-_SEVERAL:])
    if is_in_hand and scene.here in scene.closed_spots and refusals >= _TWO:
        return [Chore.OPEN]
    return [] if is_in_hand or names_there else _failed_search(scene)


def _failed_search(scene: Scene) -> list[Chore]:
    shut = [spot for spot in scene.visits if spot in scene.closed_spots - scene.opened_spots]
    return [Chore.OPEN if len(shut) >= _TWO else Chore.LIKELY]


def _harmful(scene: Scene) -> list[Chore]:
    has_cleaned = any(chore is Chore.CLEAN for _, chore in scene.treatments)
    signs = (
        (Chore.CHECK, scene.count("inventory") >= _SEVERAL),
        (Chore.SURFACES, any(spot in scene.closed_spots - scene.opened_spots for spot in scene.visits)),
        (Chore.CLEAN_ALL, has_cleaned and scene.task.chore is not Chore.CLEAN),
    )
    return [chore for chore, shows in signs if shows]


_WEIGHT = {"regressed": 2, "persistent_fail": 1}
_IDLE = frozenset(
    normalised(text)
    for subject in (QUESTIONS, GAMES)
    for text in (*subject.advice, *(advice for _, advice in subject.strengths))
)
PROBES = (
    "Before the final line, copy the passage that you relied on.",
    "First list what you considered and what spoke against each, then finish as usual.",
    "Show which instruction above decided the form of your reply, then reply as usual.",
)
"""Requests to show one's work. They change no answer of the reader, which follows rules and knows no such request."""


def slow_update(briefing: Briefing) -> Answer:
    """Write guidance against what fails with both versions, or fails newly, and that no rule addresses yet."""
    seed, failing = briefing.seed, _failing(briefing, most=2)
    standing = [bare(line) for line in briefing.section("guidance").splitlines() if line.strip()]
    rules_present = rules_in(briefing.document) | rules_in("\n".join(f"- {line}" for line in standing))
    missing = [rule for rule in failing if rule not in HARMFUL | rules_present][:2]
    lines = [wording(rule, seed) for rule in missing]
    guidance = [*(line for line in standing if not rules_in(line) & HARMFUL), *lines][:5]
    counts = Counter(attempt.category.replace("_", " ") for attempt in briefing.pairs)
    counts_text = ", ".join(f"{count} {category}" for category, count in sorted(counts.items())) or "none"
    cause = f"What fails most has to do with: {RULES[failing[0]].label}." if failing else "Nothing in particular fails."
    return {
        "title": title((RULES[rule].label for rule in missing), "keep what holds") if guidance else "no guidance",
        "reasoning": f"Compared tasks: {counts_text}. {cause}",
        "guidance": "\n".join(f"- {line}" for line in guidance),
    }


def memory(briefing: Briefing) -> Answer:
    """Write down which kinds of edit passed the gate and which did not, adding to the memory that there is."""
    acceptances, rejections = (_remembered(briefing.section("memory"), word) for word in ("accepted", "rejected"))
    for step in briefing.steps():
        rules = frozenset[StrEnum]().union(*(rules_in(line) for line in step.additions))
        if step.is_accepted:
            acceptances |= rules - HARMFUL
        else:
            rejections |= rules & HARMFUL or (rules if len(rules) == 1 else frozenset())
    failing = [rule for rule in _failing(briefing) if rule not in HARMFUL][:3]
    facts = (
        ("Kinds of edit that the gate accepted", acceptances),
        ("Kinds of edit that it rejected, as they overshoot or change nothing", rejections - acceptances),
        ("Still failing", failing),
    )
    lines = [f"- {fact}: {'; '.join(labels(rules))}." for fact, rules in facts if rules]
    if lines:
        lines.append("- Short rules that say when they hold are followed; several at once are hard to judge.")
    return {
        "reasoning": f"{len(briefing.steps())} steps and {len(briefing.pairs)} compared tasks.",
        "memory": "\n".join(lines),
    }


def _failing(briefing: Briefing, most: int | None = None) -> list[StrEnum]:
    """Return the causes of what fails among the pairs, at most ``most`` of each, the weightiest first."""
    weights = Counter[StrEnum]()
    for attempt in briefing.pairs:
        for rule in causes(attempt)[:most] if attempt.category in _WEIGHT else ():
            weights[rule] += _WEIGHT[attempt.category]
    order = list(RULES)
    return sorted(weights, key=lambda rule: (-weights[rule], order.index(rule)))


def _remembered(text: str, word: str) -> frozenset[StrEnum]:
    line = next((line for line in text.splitlines() if word in line), "")
    return frozenset(name for name, rule in RULES.items() if rule.label in line)


def reflect(briefing: Briefing) -> Answer:
    """Take back rules that overshoot or repeat another one, and try the good half of what was rejected whole."""
    steps = briefing.steps("record")
    edits = [*_removals(briefing.document), *_halves(briefing.document, steps)][: briefing.budget]
    acceptances = sum(step.is_accepted for step in steps)
    conclusion = "What they left to do follows from the record" if edits else "Nothing in the record asks for a change"
    return {
        "title": title_of_edits(edits, "no change"),
        "reasoning": f"{acceptances} of {len(steps)} steps of the epoch were accepted. {conclusion}.",
        "edits": edits,
    }


def _removals(document: str) -> list[Answer]:
    rules_present: set[StrEnum] = set()
    edits: list[Answer] = []
    for line in body_lines(document):
        rules = rules_in(line)
        if rules and (rules <= HARMFUL or rules <= rules_present) and BULLET.match(line):
            edits.append(edit("delete", anchor=line))
        rules_present |= rules
    return edits


def _halves(document: str, steps: Iterable[EarlierStep]) -> list[Answer]:
    """Return edits that add the rules of rejected steps whose company was what broke them."""
    rejections = [step.additions for step in steps if not step.is_accepted]
    alone = frozenset(normalised(line) for lines in rejections if len(lines) == 1 for line in lines)
    rules_present, edits, anchors = rules_in(document), list[Answer](), set[str]()
    for lines in rejections:
        if len(lines) == 1 or not any(rules_in(line) & HARMFUL for line in lines):
            continue
        for line in lines:
            rules = rules_in(line)
            if rules and not rules & (HARMFUL | rules_present) and normalised(line) not in alone:
                edits.append(added_rule(document, bare(line), support=1, anchors=anchors))
                rules_present |= rules
    return edits


def probe(briefing: Briefing) -> Answer:
    """Ask the target to show its work; where no failure is shown there is nothing to find out."""
    if not briefing.attempts:
        return {"reasoning": "No failure is shown.", "probe": ""}
    suspects = [RULES[rule].label for rule in by_cause(briefing.attempts, HARMFUL)][:2]
    return {
        "reasoning": f"The failures may have to do with: {' or '.join(suspects) or 'what the answers do not show'}.",
        "probe": PROBES[draw(briefing.seed, "probe", len(PROBES))],
    }


def wants_reminders(system: str) -> bool:
    """Say whether the prompt asks an analyst for reminders too."""
    return re.search(r"^## (?:Defects and lapses|Reminders)$", system, re.MULTILINE) is not None


def with_reminders(answer: Answer, briefing: Briefing) -> Answer:
    """Return ``answer`` with reminders of rules that were not followed, in place of new wordings of them."""
    document = briefing.document
    in_notes = frozenset[StrEnum]().union(*(rules_in(note) for note in appendix_notes(document)))
    failing = by_cause(briefing.attempts, frozenset())
    lapses = [rule for rule in RULES if rule in failing and rule in rules_in(document) - HARMFUL - in_notes]
    avoid = frozenset(normalised(line) for line in document.splitlines())
    notes = [text for rule in lapses if (text := wording(rule, briefing.seed, avoid))][:3]
    edits = [change for change in answer.get("edits", ()) if not notes or not _rewords(change)]
    return answer | ({"edits": edits} if "edits" in answer else {}) | {"notes": notes}


def _rewords(change: Answer) -> bool:
    rules = rules_in(change["anchor"])
    return change["op"] == "replace" and bool(rules) and rules == rules_in(change["content"])


def consolidate(briefing: Briefing) -> Answer:
    """Keep one reminder of each rule; one that reminds of no rule known here stays."""
    notes: dict[object, str] = {}
    for line in filter(None, map(bare, briefing.section("notes").splitlines())):
        notes.setdefault(rules_in(line) or line, line)
    return {"reasoning": f"{len(notes)} reminders say all that is said.", "notes": list(notes.values())}


def compress(briefing: Briefing) -> Answer:
    """Leave out bullets that ask for nothing or for what another line asks for; word the others shortly."""
    template = Template.of(briefing.document)
    meanings: set[object] = {rules_in(line) for region in template.regions for line in region.text.splitlines()}
    meanings -= {frozenset()}
    lines, removals, shorter = list[str](), list[str](), list[str]()
    for line in template.body.splitlines():
        bullet, rules = BULLET.fullmatch(line), rules_in(line)
        if bullet is None:
            lines.append(line)
            continue
        meaning = rules or normalised(line)
        if meaning in meanings or meaning in _IDLE:
            removals.append(f"left out: {bullet['rule']}")
            continue
        meanings.add(meaning)
        wordings = [text for rule in rules for text in RULES[rule].wordings] if len(rules) == 1 else []
        shortest = min((bullet["rule"], *wordings), key=len)
        if shortest != bullet["rule"]:
            shorter.append(f"shorter: {shortest}")
        lines.append(bullet["sign"] + shortest)
    parts = [f"drop {len(removals)} idle or repeated" if removals else "", f"shorten {len(shorter)}" if shorter else ""]
    count = len(removals) + len(shorter)
    return {
        "title": f"{', '.join(filter(None, parts))} rule{'s' if count > 1 else ''}" if count else "",
        "reasoning": f"{len(removals)} bullets repeat or ask for nothing; {len(shorter)} can be said in fewer words.",
        "summary": [line[:50] for line in (*removals, *shorter)],
        "body": "\n".join(lines) if count else "",
    }
