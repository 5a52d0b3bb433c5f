"""Text as the offline models see it: their prompts, documents, sentences, words, and closed lists of English words.

No list names a person, a place, a work or any other possible answer.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from skillgit.domain.edit import normalised
from skillgit.domain.skill import DOCUMENT
from skillgit.plugin.backend import Message
from skillgit.plugin.skill_marks import without_marks

_DOCUMENT = re.compile(r"\[DOC\]")
_TITLE = re.compile(r"\[TLE\](?P<title>.*?)(?:\[PAR\]|\Z)", re.DOTALL)
_MARK = re.compile(r"\[(?:DOC|TLE|PAR)\]")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”\u2019)]*\s+(?=[\"'“\u2018(]?[A-Z0-9À-Þ])")
_ABBREVIATION = re.compile(r"(?:\b(?:Dr|Mr|Mrs|Ms|St|Mt|Prof|Gen|Capt|Col|Lt|Sgt|Rev|Jr|Sr|vs|v|c|ca|No)|\b[A-Z])\.$")
_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:[-\u2013][^\W\d_]+)*")
_SUFFIXES = ("ation", "ingly", "ings", "ing", "ies", "ied", "ed", "es", "er", "ly", "s", "e")


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = word_set(
    "a about above after again against all almost already also although always among an and another any are "
    "around as at away back be became because become been before being below between both but by can come comes "
    "could did do does down during each either else even ever every few first for from had has have he her here "
    "him his how however if in into is it its itself just last later least less made make many may me might more "
    "most much must my near neither never next no none nor not now of off often on once one only onto or other "
    "our out over own per quite rather said same she should since so some soon still such than that the their "
    "them then there these they this those though through throughout thus till to today together too toward "
    "towards two under unlike until up upon us very was we well were what when where whereas whether which while "
    "who whom whose why will with within without would yet you your"
)
"""Words that carry no topic; they neither count as overlap nor begin a name."""

OPENERS = FUNCTION_WORDS | word_set(
    "according admirers altogether besides beyond born built called contrary despite designed early eventually "
    "formerly founded found fifteen five four known like long meanwhile named nearby nobody originally painted "
    "perhaps probably published seven six somebody sometimes something somewhere ten thanks three twelve twenty "
    "usually visitors written yes earlier half hundreds thousands dozens"
)
"""Words that open a sentence with a capital and are not names."""

MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"

HONORIFICS = word_set(
    "sir dame dr doctor professor president prime minister king queen emperor empress tsar pope cardinal archbishop "
    "father brother sister mother abbot captain general major sergeant admiral lord lady baron count prince princess "
    "mr mrs chief justice judge governor mayor ambassador secretary"
)
"""Ranks, offices and forms of address that are before a name."""

QUALIFIERS = (
    "no fewer than|more than|less than|fewer than|as much as|a grand total of|a total of|up to|some|about|around|"
    "roughly|nearly|almost|over|exactly|just over|well over|only|fully|all of"
)

UNITS = (
    "degrees celsius|degrees|square kilometres|kilometres|kilometre|km|metres|metre|millimetres|miles|mile|feet|"
    "foot|inch|yards|leagues|kilograms|kg|grams|tonnes|tons|seconds|second|minutes|minute|hours|hour|days|day|"
    "weeks|week|months|years|year|dollars|euros|francs|per cent|%"
)

HEDGES = (
    r"contrary to|legend|myth|rumou?r|wrongly|common belief|is said to|old tale|not true|no proof|not the|was not|"
    r"is not|are not|did not|does not|do not|never|hoax|many people believe|often sold|hardly"
)

PERSON_NOUNS = word_set(
    "man woman person boy girl king queen emperor empress author poet novelist writer playwright artist painter "
    "sculptor architect composer singer musician violinist conductor actor director scientist physicist chemist "
    "astronomer engineer inventor explorer navigator sailor captain astronaut cosmonaut pilot surgeon doctor "
    "physician nurse president minister leader chief justice judge lawyer philosopher historian teacher priest monk "
    "saint pope soldier general admiral athlete sprinter player champion climber detective hero god ruler pharaoh "
    "designer programmer botanist naturalist cook photographer monarch prince princess husband wife son daughter "
    "father mother brother sister maker merchant officer librarian winner character gardener goldsmith"
)

PLACE_NOUNS = word_set(
    "city town village country state nation region province island islands continent capital river lake sea ocean "
    "mountain peak volcano desert valley bay strait canal port harbour castle palace cathedral temple abbey church "
    "museum square street bridge park forest district republic kingdom empire colony waterfall place site home "
    "birthplace university meadow field archipelago canton fjord cape"
)

WORK_NOUNS = word_set(
    "novel book play poem story tale film opera ballet song album musical picture mural drama comedy series show "
    "newspaper work suite oratorio"
)

THING_NOUNS = word_set(
    "animal bird fish insect mammal dog cat horse whale plant tree flower fruit vegetable herb spice cheese tea drink "
    "dish bread wine sport game planet moon comet star element metal gas stone rock alloy acid vitamin organ bone "
    "language alphabet currency coin instrument machine device computer engine ship aircraft probe satellite "
    "spacecraft rocket bomb treaty agreement law act battle war prize award holiday party company firm bank club team "
    "school movement dance term word name colour object tool invention particle unit muscle theory document charter "
    "telescope dinosaur fossil cloud wind desert mark phone system programme program library salt sugar oil orchestra "
    "band house garden tower wall gate statue monument tomb stadium railway road tunnel expedition number letter "
    "symbol flag"
)

CATEGORY_NOUNS = PLACE_NOUNS | WORK_NOUNS | THING_NOUNS | word_set("mount mt")
"""Nouns for kinds of thing that may be a part of a name."""

PLACE_PREPOSITIONS = word_set(
    "in at near from to on around outside inside towards toward into beside above across through"
)

BUILT_NAMES = PLACE_NOUNS | word_set(
    "hospital prize award university college institute institution school academy society club company party church "
    "museum gallery theatre stadium park road avenue house hall tower bridge war battle treaty act congress "
    "parliament senate court army games cup league street straße times post journal review laboratory observatory "
    "station railway mount great north south east west united new saint st san santa los el la le port fort cape "
    "central royal national international"
)
"""Lower-cased parts of names that persons do not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence and the document, by number, that it is in."""

    document: int
    text: str
    words: frozenset[str]


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return ``word`` in lower case without the commonest endings."""
    word = word.lower()
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:  # noqa: PLR2004 - shorter stems collide
            return word[: -len(suffix)]
    return word


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case, without punctuation."""
    return [match.group().lower() for match in _WORD.finditer(text)]


@lru_cache(maxsize=8192)
def topics(text: str) -> frozenset[str]:
    """Return the stems of the words of ``text`` that carry a topic."""
    return frozenset(stem(word) for word in words(text) if word not in FUNCTION_WORDS)


def documents(context: str) -> list[Document]:
    """Divide ``context`` at its ``[DOC]`` marks; a context without marks is one document without a title."""
    pages = []
    for part in _DOCUMENT.split(context):
        match = _TITLE.search(part)
        title = " ".join(match.group("title").split()) if match else ""
        body = " ".join(_MARK.sub(" ", part[match.end() :] if match else part).split())
        if title or body:
            pages.append(Document(title=title, body=body))
    return pages


def sentences(text: str) -> list[str]:
    """Divide ``text`` into sentences; initials and common abbreviations end none."""
    parts: list[str] = []
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text[start : match.start()]):
            continue
        parts.append(text[start : match.end()].strip())
        start = match.end()
    parts.append(text[start:].strip())
    return [sentence for sentence in parts if sentence]


def all_sentences(pages: Sequence[Document]) -> list[Sentence]:
    return [
        Sentence(document=number, text=text, words=topics(text))
        for number, document in enumerate(pages)
        for text in sentences(document.body)
    ]


def overlap(question: frozenset[str], candidates: Sequence[Sentence]) -> list[float]:
    """Score each sentence by the words that it shares with the question; rare words weigh more."""
    count = len(candidates)
    weight = {
        word: math.log(1 + count / sum(word in sentence.words for sentence in candidates))
        for word in sorted(question)
        if any(word in sentence.words for sentence in candidates)
    }
    return [sum(weight[word] for word in sorted(question & sentence.words)) for sentence in candidates]


_CONTEXT = re.compile(r"<context>(?P<body>.*?)</context>", re.DOTALL)
_QUESTION = re.compile(r"<question>(?P<body>.*?)</question>", re.DOTALL)
_BLANK_LINE = re.compile(r"\n\s*\n")
_ENDS_WITH_TAG = re.compile(r"</\w+>\s*\Z")
_NO_LIMIT = 1_000
_FRAME = re.compile(r"^<(environment|record|contrast|earlier_attempts)\b.*?^</\1[^>]*>\n+", re.DOTALL | re.MULTILINE)
_MARKS = re.compile(r"(</?[a-z_]+)-\d+(?=[ >])")
_REASONS = re.compile(r"^  (?:because|held out|equal score|left out|part|train): .*\n", re.MULTILINE)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_STEP = re.compile(
    r"^(?:step|slow|epoch)\b.*?\b(?P<decision>accept\w*|reject\w*|skip\w*|revert\w*|merge\w*)\b", re.IGNORECASE
)
_STRING = r'"(?:[^"\\]|\\.)*"'
_EXPECTED = re.compile(rf"expected(?: one of)?:\s*(?P<list>{_STRING}(?:,\s*{_STRING})*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchTask:
    context: str
    question: str


def skill_text(messages: Sequence[Message]) -> str:
    """Return what the system messages say: the skill, and what holds for all tasks."""
    return without_marks("\n".join(message.text for message in messages if message.role == "system"))


def parse_task(prompt: str) -> SearchTask:
    """Read a task prompt; paragraphs without tags behind the question are the form of the answer, and no material.

    Without tags, the last paragraph that ends with a question mark is the question, or else the last one; what is
    before it is the context.
    """
    context, question = _CONTEXT.search(prompt), _QUESTION.search(prompt)
    if question is not None:
        behind = _BLANK_LINE.split(prompt[question.end() :])
        while len(behind) > 1 and not _ENDS_WITH_TAG.search(behind[-1]):
            behind.pop()
        rest = prompt[: question.start()] + "\n\n".join(behind)
        return SearchTask(
            context=(context["body"] if context else rest).strip(), question=" ".join(question["body"].split())
        )
    paragraphs = [part for part in _BLANK_LINE.split(prompt.strip()) if part.strip()]
    asking = [number for number, part in enumerate(paragraphs) if part.rstrip().endswith("?")]
    index = asking[-1] if asking else len(paragraphs) - 1
    return SearchTask(context="\n".join(paragraphs[:index]), question=" ".join("".join(paragraphs[index:][:1]).split()))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAttempt:
    item: str
    turns: tuple[tuple[str, str], ...] = ()
    answer: str
    right_answers: tuple[str, ...]  # the right answers, as far as the feedback names them
    category: str = ""  # how the outcome changed, where two versions are compared

    @property
    def prompt(self) -> str:
        return next((text for role, text in self.turns if role == "user"), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierStep:
    """An earlier step: whether the gate took its candidate, and the lines that it had added."""

    is_accepted: bool
    additions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Briefing:
    """A user message of the optimizer."""

    text: str

    def section(self, tag: str) -> str:
        """Return the body of the first section ``tag``; empty if there is none."""
        return next((body for _, body in sections(self.text, tag)), "")

    @property
    def seed(self) -> str:
        """What draws are made from: what the prompt is about and not how it says it, so that prompts can improve."""
        text = _FRAME.sub("", _with_both_versions(self.text))
        return _REASONS.sub("", _MARKS.sub(r"\1", text))

    @property
    def document(self) -> str:
        """The file that rules go into, of the current skill where there are two."""
        skills = sections(self.text, "skill")
        whole = next((body for attributes, body in self._files if attributes.get("path") == self.rules_file), "")
        return whole or (_assembled(skills[-1][1]) if skills else "")

    @property
    def rules_file(self) -> str:
        """The path of that file: another Markdown file than ``SKILL.md`` if one is there to be edited."""
        paths = (file["path"] for file, _ in self._files if file.get("editable") == "yes" and "path" in file)
        return next((path for path in paths if path != DOCUMENT and path.endswith(".md")), DOCUMENT)

    @property
    def _files(self) -> list[tuple[dict[str, str], str]]:
        skills = sections(self.text, "skill")
        return sections(skills[-1][1], "file") if skills else []

    @property
    def budget(self) -> int:
        """The most edits that may be proposed; more than any analyst proposes where there is no limit."""
        match = re.search(r"^<budget(?:-\d+)?(?: [^>]*)?>\s*(\d+)\s*</budget", self.text, re.MULTILINE)
        return int(match[1]) if match else _NO_LIMIT

    @property
    def attempts(self) -> list[TaskAttempt]:
        trajectories = sections(self.text, "trajectory") or sections(self.text, "tried")
        return [_attempt(attributes, body) for attributes, body in trajectories]

    @property
    def pairs(self) -> list[TaskAttempt]:
        """The current attempts of the tasks that a slow update compares."""
        return [
            _attempt(attributes, next((side for _, side in sections(body, "current")), body))
            for attributes, body in sections(self.text, "pair")
        ]

    @property
    def patches(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """The patches of a merge with the source that each group is labelled with."""
        return [(attributes.get("source", ""), _objects(body)) for attributes, body in sections(self.text, "patches")]

    def proposals(self, tag: str) -> list[dict[str, Any]]:
        return _objects(self.section(tag))

    def steps(self, tag: str = "history") -> list[EarlierStep]:
        steps: list[tuple[bool, list[str]]] = []
        for line in self.section(tag).splitlines():
            match = _STEP.match(line)
            if match:
                steps.append((match["decision"].lower().startswith(("accept", "merge")), []))
            elif steps and re.match(r"\s+\+ ", line):
                steps[-1][1].append(line.strip()[2:].strip())
        return [EarlierStep(is_accepted=is_accepted, additions=tuple(lines)) for is_accepted, lines in steps]

    @property
    def rejected_lines(self) -> frozenset[str]:
        return frozenset(normalised(line) for step in self.steps() if not step.is_accepted for line in step.additions)


def sections(text: str, tag: str) -> list[tuple[dict[str, str], str]]:
    """Return attributes and body of every section ``tag`` whose tags are on lines of their own."""
    pattern = re.compile(
        rf"^<{tag}(?P<mark>(?:-\d+)?)(?P<attributes>(?: [^>\n]*)?)>(?:\n(?P<body>.*?))?\n?</{tag}(?P=mark)>[ \t]*$",
        re.DOTALL | re.MULTILINE,
    )
    return [(dict(_ATTRIBUTE.findall(match["attributes"])), match["body"] or "") for match in pattern.finditer(text)]


_COMPARED = re.compile(
    r"^<skill(?P<mark>(?:-\d+)?) (?P<name>[^>]*)>\n(?P<skill>.*?\n)</skill(?P=mark)>\n\n"
    r"<changes(?P=mark)>\n(?P<changes>.*?)\n</changes(?P=mark)>$",
    re.DOTALL | re.MULTILINE,
)
_HUNK = re.compile(r"^@@ -\S+ \+(?P<start>\d+)(?:,(?P<size>\d+))? @@$")


def _with_both_versions(text: str) -> str:
    """Return a comparison of two versions with both in full in place of one and the differences."""

    def versions(match: re.Match[str]) -> str:
        sides = (_before(match["skill"], match["changes"]), match["skill"])
        tags = (f'{match["name"]} version="{version}"' for version in ("previous", "current"))
        mark = match["mark"]
        return "\n\n".join(f"<skill{mark} {tag}>\n{side}</skill{mark}>" for tag, side in zip(tags, sides, strict=True))

    return _COMPARED.sub(versions, text)


def _before(skill: str, changes: str) -> str:
    """Return the only file of a skill as it was before its changes."""
    opening, *lines = skill.splitlines()
    *new, closing = lines
    old, at = [opening], 0
    for line in changes.splitlines():
        if hunk := _HUNK.match(line):
            start = int(hunk["start"]) - (hunk["size"] != "0")
            old += new[at:start]
            at = start
        elif line.startswith(" "):
            old.append(new[at])
            at += 1
        elif line.startswith("-") and not line.startswith("--- "):
            old.append(line[1:])
        elif line.startswith("+") and not line.startswith("+++ "):
            at += 1
    return "\n".join([*old, *new[at:], closing, ""])


def _assembled(skill: str) -> str:
    document = next((body for _, body in sections(skill, "body")), "")
    head = ""
    for attributes, text in sections(skill, "protected"):
        if "placeholder" in attributes:
            document = document.replace(attributes["placeholder"], text, 1)
        else:
            head = f"{text}\n\n"
    return f"{head}{document}\n"


def _attempt(attributes: dict[str, str], body: str) -> TaskAttempt:
    rest = re.sub(r"^<turn\b.*?^</turn(?:-\d+)?>[ \t]*$", "", body, flags=re.DOTALL | re.MULTILINE)
    match = _EXPECTED.search("\n".join(text for _, text in sections(rest, "feedback")))
    return TaskAttempt(
        item=attributes.get("id", ""),
        turns=tuple((turn.get("role", ""), text) for turn, text in sections(body, "turn")),
        answer=" ".join(next((text for _, text in sections(rest, "answer")), "").split()),
        right_answers=tuple(_entries(f"[{match['list']}]")) if match else (),
        category=attributes.get("category", ""),
    )


def _objects(text: str) -> list[dict[str, Any]]:
    return [entry for entry in _entries(text) if isinstance(entry, dict)]


def _entries(text: str) -> list[Any]:
    try:
        entries = json.loads(text)
    except ValueError:
        return []
    return entries if isinstance(entries, list) else [entries]
