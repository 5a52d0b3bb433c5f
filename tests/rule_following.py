"""A target that obeys its skill to the letter, a judge, and an analyst that does what its prompt says and nothing else.

The analyst knows no task. What it concludes it draws from the trajectories that it is shown, and whatever it does right
it does because a sentence of its prompt says so: without the sentence it does what the word suggests to somebody who
was not told. ``WITHOUT`` in the environment takes sentences out of every prompt before it reads it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.plugin.backend import BackendInfo, Price, Reply, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.plugin.backend import Request

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "at",
        "by",
        "for",
        "from",
        "has",
        "have",
        "i",
        "in",
        "is",
        "it",
        "my",
        "of",
        "on",
        "the",
        "to",
        "was",
        "we",
        "with",
        "you",
        "your",
    ]
)


class Models:
    """Answers as the role that the model's name says."""

    info = BackendInfo(
        name="models", summary="Plays the roles.", needs_network=False, prices={"*": Price(usd_in=0, usd_out=0)}
    )

    def __init__(self, settings: Mapping[str, object]) -> None:
        del settings

    async def complete(self, request: Request) -> Reply:
        text = {"target": target, "judge": judge, "analyst": analyst}[request.model](request)
        return Reply(text=text, usage=Usage(tokens_in=1, tokens_out=1))

    async def aclose(self) -> None: ...


def target(request: Request) -> str:
    """Do what the first rule in the skill says that applies, and guess where none does."""
    skill, task = request.messages[0].text, request.messages[-1].text
    if "Name the desk" in task:
        rules = re.findall(r'^- If the message says "([^"]+)", answer "([^"]+)"', skill, re.MULTILINE)
        words = set(re.findall(r"[a-z]+", task.lower()))
        label = next((label for word, label in rules if word in words), "billing")
        return f"<answer>{label}</answer>"
    if "Take down" in task:
        return f"<answer>{taken_down(skill, task)}</answer>"
    return reply_to_a_customer(skill, task)


def taken_down(skill: str, task: str) -> str:
    day, month, year = re.search(r"(\d+) (\w+) (\d{4})", task).groups()
    number = MONTHS.index(month) + 1
    forms = re.findall(r"^- Write dates as (\S+)\.$", skill, re.MULTILINE)
    dates = {"DD.MM.YYYY": f"{int(day):02}.{number:02}.{year}", "YYYY-MM-DD": f"{year}-{number:02}-{int(day):02}"}
    kilograms = re.search(r"([\d.]+) kg", task)[1]
    grams = "- Write weights in whole grams." in skill
    weight = f"{round(float(kilograms) * 1000)} g" if grams else f"{kilograms} kg"
    return f"{dates.get(forms[0]) if forms else f'{day} {month} {year}'}, {weight}"


def reply_to_a_customer(skill: str, task: str) -> str:
    needs = re.findall(r"^- Every reply has (.+)\.$", skill, re.MULTILINE)
    case = re.search(r"CASE-\d+", task)[0]
    phrases = {
        "a greeting at its start": "Good day,",
        "the case number of the message": f"this is about {case}.",
        "a day by which we answer": "You hear from us by Friday.",
    }
    said = [phrase for need, phrase in phrases.items() if need in needs]
    return " ".join([*said, "We look into it."])


def judge(request: Request) -> str:
    """Grade by criteria, and say what is missing."""
    text = request.messages[1].text
    result = text.rpartition("begin result]")[2]
    case = re.search(r"CASE-\d+", text)
    has = {
        "a greeting at its start": "Good day," in result,
        "the case number of the message": case is not None and case[0] in result,
        "a day by which we answer": "by Friday" in result,
    }
    missing = [need for need, is_there in has.items() if not is_there]
    reason = f"the reply lacks {' and '.join(missing)}" if missing else "nothing is missing"
    return json.dumps({"scores": [float(is_there) for is_there in has.values()], "reason": reason})


@dataclass(frozen=True)
class Case:
    """One trajectory, as far as the prompt shows it."""

    item: str
    task: str
    answer: str
    feedback: str
    solved: bool

    @property
    def expected(self) -> str:
        """The right answer, if the feedback says it; that of a solved task is its own."""
        match = re.search(r'expected: "([^"]+)"', self.feedback)
        return match[1] if match else self.answer if self.solved else ""

    @property
    def words(self) -> list[str]:
        return [word for word in dict.fromkeys(re.findall(r"[a-z]+", self.task.lower())) if word not in COMMON]


def inside(text: str, name: str) -> list[str]:
    """Return what is between the tags of that name; all of them may end in a number."""
    return [content for _, content in re.findall(rf"<{name}(-\d+|)(?: [^>]*)?>(.*?)</{name}\1>", text, re.DOTALL)]


def cases(text: str, section: str, tag: str) -> list[Case]:
    """Return the trajectories in a section of the prompt."""
    shown = []
    for whole in inside(text, section):
        heads = re.findall(rf'<{tag}(?:-\d+)? id="([^"]*)".*? hard="([^"]*)"', whole)
        for (item, hard), one in zip(heads, inside(whole, tag), strict=True):
            parts = [next(iter(inside(one, name)), "").strip() for name in ("turn", "answer", "feedback")]
            shown.append(Case(item, *parts, solved=float(hard) >= 1))
    return shown


@dataclass(frozen=True)
class Rule:
    """A rule that cases support."""

    text: str
    items: tuple[str, ...]


class Told:
    """What a prompt says: sentences, whatever their line breaks."""

    def __init__(self, prompt: str) -> None:
        self.text = " ".join(prompt.split())
        for sentence in filter(None, os.environ.get("WITHOUT", "").split("\n")):
            self.text = self.text.replace(sentence, "")

    def says(self, sentence: str) -> bool:
        return sentence in self.text


def analyst(request: Request) -> str:
    """Do what the prompt says."""
    prompt, shown = Told(request.messages[0].text), request.messages[1].text
    if not prompt.says("You improve a skill") or "`edits`" not in prompt.text:
        return merged(prompt, shown)
    failures, contrast = cases(shown, "trajectories", "trajectory"), cases(shown, "contrast", "contrasting")
    failures = [case for case in failures if not case.solved]
    skill = inside(shown, "file")[0]
    rules = concluded(prompt, failures, contrast, skill)
    budget = int(next(iter(inside(shown, "budget")), "99"))
    if prompt.says("The more failures a cause explains, the more an edit is worth."):
        rules.sort(key=lambda rule: -len(rule.items))
    else:
        rules.sort(key=lambda rule: len(rule.items))
    if prompt.says("at most as many as the budget"):
        rules = rules[:budget]
    edits = [edit(prompt, rule, skill, failures) for rule in rules]
    if not prompt.says("Never touch the frontmatter"):
        head = re.search(r"^description: .*$", skill, re.MULTILINE)[0]
        edits += [{"op": "replace", "file": "SKILL.md", "anchor": head, "content": "description: Knows.", "items": []}]
    reply = json.dumps({"findings": [], "title": "rules of the house", "reasoning": "Seen.", "edits": edits})
    if prompt.says("Answer with one JSON object and nothing else.") or len(request.messages) > 2:
        return reply
    return "I propose these rules:\n" + "\n".join(f"* {rule.text}" for rule in rules)


def concluded(prompt: Told, failures: list[Case], contrast: list[Case], skill: str) -> list[Rule]:
    if not prompt.says("For every failure, compare what the target answered with the feedback"):
        return []
    rules = [*lacking(failures), *rewritten(failures), *labels(prompt, failures, contrast)]
    if not prompt.says("Specific enough to change behaviour"):
        return [Rule("- Take care to be precise.", tuple(case.item for case in failures))] if rules else []
    if not prompt.says("state the condition under which the rule holds"):
        rules = [Rule(re.sub(r"If the message says .*?, a", "A", rule.text), rule.items) for rule in rules]
    return [rule for rule in rules if rule.text not in skill]


def lacking(failures: list[Case]) -> list[Rule]:
    needs: dict[str, list[str]] = {}
    for case in failures:
        match = re.search(r"the reply lacks (.+)", case.feedback)
        for need in match[1].split(" and ") if match else ():
            needs.setdefault(need.strip(), []).append(case.item)
    return [Rule(f"- Every reply has {need}.", tuple(items)) for need, items in needs.items()]


def rewritten(failures: list[Case]) -> list[Rule]:
    kinds = (
        ("- Write dates as YYYY-MM-DD.", r"\d{4}-\d\d-\d\d"),
        ("- Write weights in whole grams.", r"\d+ g\b"),
    )
    rules = []
    for text, form in kinds:
        items = [case.item for case in failures if re.search(form, case.expected) and not re.search(form, case.answer)]
        rules += [Rule(text, tuple(items))] if items else []
    return rules


def labels(prompt: Told, failures: list[Case], contrast: list[Case]) -> list[Rule]:
    """Return a rule for each label: the word that most of its tasks share and no task with another label has."""
    if not any("Name the desk" in case.task for case in failures):
        return []
    if not prompt.says("What several tasks share is welcome: labels"):
        return []
    tested = prompt.says("Before you propose a rule, test it on them")
    others = [*failures, *(contrast if tested else [])]
    rules = []
    for label in sorted({case.expected for case in failures}):
        own = [case for case in failures if case.expected == label]
        words = sorted({word for case in own for word in case.words})
        spoiled = {word for case in others if case.expected != label for word in case.words}
        support = {word: [case.item for case in own if word in case.words] for word in words if word not in spoiled}
        if prompt.says("Never write a rule that only one task can use."):
            support = {word: items for word, items in support.items() if len(items) > 1}
        if support:
            word = max(support, key=lambda word: (len(support[word]), [-ord(letter) for letter in word]))
            rules.append(Rule(f'- If the message says "{word}", answer "{label}".', tuple(support[word])))
    return rules


def edit(prompt: Told, rule: Rule, skill: str, failures: list[Case]) -> dict[str, object]:
    old = re.search(r"^- Write dates as \S+\.$", skill, re.MULTILINE) if "dates" in rule.text else None
    text = rule.text
    if not prompt.says("Never put what belongs to one task alone into the skill"):
        case = next(case for case in failures if case.item in rule.items)
        text += f" So it was here: {case.task.splitlines()[0]}"
    change = {
        "op": "append" if prompt.says("`append` (new paragraph or bullet at the end)") else "add",
        "file": "SKILL.md" if prompt.says("`file`: the path of the file, normally `SKILL.md`") else "the skill",
        "anchor": "",
        ("content" if prompt.says("`content`: the new text, as Markdown") else "text"): text,
        "items": list(rule.items),
    }
    if old is not None and prompt.says("a wrong rule is replaced or deleted"):
        exact = prompt.says("text copied exactly from the file")
        change |= {"op": "replace", "anchor": old[0] if exact else "the rule on how dates are written down here"}
    return change


def merged(prompt: Told, shown: str) -> str:
    """Answer what is no analysis: the numbered edits as they are, or nothing."""
    edits = numbered(shown)
    if "joins" in prompt.text:
        chosen = {change["content"]: (number, change) for number, change in edits}
        joined = [
            {**change, "joins": [other for other, one in edits if one["content"] == text]}
            for text, (_, change) in chosen.items()
        ]
        joined.sort(key=lambda change: -len(change["joins"]))
        most = int(next(iter(inside(shown, "budget")), "99"))
        return json.dumps({"title": "rules of the house", "reasoning": "Joined.", "edits": joined[:most]})
    if "`guidance`" in prompt.text:
        return json.dumps({"title": "t", "reasoning": "r", "guidance": ""})
    return json.dumps({"reasoning": "r", "memory": ""})


def numbered(shown: str) -> list[tuple[int, dict[str, object]]]:
    """Return the numbered edits of a prompt that asks to join them."""
    entries = [entry for block in inside(shown, "patches") for draft in json.loads(block) for entry in draft["edits"]]
    names = ("op", "file", "anchor", "content")
    return [(entry["number"], {name: entry.get(name, "") for name in names}) for entry in entries]
