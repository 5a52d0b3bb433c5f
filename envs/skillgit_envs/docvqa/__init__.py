"""DocVQA: answer a question about the picture of a page."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from rapidfuzz.distance import Levenshtein

from skillgit.domain.evaluation import Scored
from skillgit.domain.leaks import Secrets
from skillgit.domain.trajectory import Item, Trajectory
from skillgit.errors import DataError
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row
from skillgit.plugin.environment import Judge, PublishedRow
from skillgit_envs.answers import quoted
from skillgit_envs.questions import VisualQuestions, picture
from skillgit_envs.shipped_environment import PackagedEnvironment, PromptWording, require, sections

_TRAILING_PATH = re.compile(r"\s*document_path:\s*\S+\s*\Z")


def _accepted_answers(row: Row) -> list[str]:
    value = next((row.fields[name] for name in ("answers", "answer", "ground_truth") if row.fields.get(name)), None)
    if isinstance(value, str) and value.lstrip().startswith("["):
        # A list as Python writes it; any other cell is an answer itself, 1,234 and 0.50 too.
        try:
            literal = ast.literal_eval(value.strip())
        except (SyntaxError, ValueError) as error:
            problem = f"{row.where} has answers that are not a list: {value[:60]}"
            raise DataError(problem, hint="write ['one', 'two']") from error
        value = literal if isinstance(literal, list) else [value]
    elif isinstance(value, str):
        value = [value]
    return [str(answer) for answer in value if str(answer).strip()] if isinstance(value, list) else []


SOLVED = 0.999  # from this similarity on an answer counts as right


@dataclass(frozen=True, slots=True, kw_only=True)
class AnlsRule:
    name: str  # changes whenever a score can change
    raw_lengths: bool
    keeps_half: bool  # whether a similarity of exactly 0.5 counts


RULES: Mapping[str, AnlsRule] = {
    "official": AnlsRule(name="anls-rrc/2", raw_lengths=True, keeps_half=True),
    "skillopt": AnlsRule(name="anls-paper/1", raw_lengths=False, keeps_half=False),
}


def similarity(answer: str, gold: str, rule: AnlsRule) -> float:
    ours, theirs = " ".join(answer.lower().split()), " ".join(gold.lower().split())
    # The script measures the texts in capitals, in which one letter can be two.
    length = max(len(answer.upper()), len(gold.upper())) if rule.raw_lengths else max(len(ours), len(theirs))
    distance = Levenshtein.distance(ours, theirs)
    # Whole numbers are compared, for 1 - d / n is not exact.
    within = 2 * distance <= length if rule.keeps_half else 2 * distance < length
    if not distance:
        return 1.0
    return 1.0 - distance / length if within else 0.0


def score(answer: str, golds: Sequence[str], rule: AnlsRule) -> Scored:
    best = max((similarity(answer, gold, rule) for gold in golds), default=0.0)
    return Scored(hard=float(best >= SOLVED), soft=best)


def feedback(answer: str, golds: Sequence[str], best: float) -> str:
    """Say in one line what was expected and how near the answer came."""
    if best >= SOLVED:
        return f"correct: {quoted(answer)}"
    quotes = ", ".join(quoted(gold) for gold in golds)
    return f"expected one of: {quotes}; the answer {quoted(answer)} has a similarity of {best:.2f}"


def question(text: str, wording: PromptWording) -> str:
    if wording is PromptWording.REFERENCE:
        return f"{sections(question=text)}\n\nGive your final answer between <answer> and </answer>."
    return f"<question>\n{text}\n</question>"


_PUBLISHED_TOO = ("question_types", "ucsf_document_id", "ucsf_document_page_no", "docId")


def published(table: Iterable[PublishedRow]) -> Iterator[dict[str, object]]:
    """Yield rows of a data file, each with its page as a picture named after question and document."""
    for row in table:
        identity, document = row.get("questionId"), row.get("docId")
        yield {
            "id": str(identity),
            "question": row.get("question"),
            "answers": row.get("answers"),
            "image": picture(f"q{identity}_d{document}", row, row.get("image"), suffix=".png"),
            **{name: row.fields[name] for name in _PUBLISHED_TOO if name in row.fields},
        }


class DocVQA(VisualQuestions):
    """Questions about scanned pages, scored by ANLS."""

    info = read_card(Path(__file__).parent)

    scorers: ClassVar = {name: rule.name for name, rule in RULES.items()}

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        types, image = row.fields.get("question_types"), content["image"]
        if isinstance(types, list) and types:
            content["task_type"] = str(types[0])
        content |= {"question": _TRAILING_PATH.sub("", content["question"]), "answers": _accepted_answers(row)}
        require(row.where, "docvqa", {name: content[name] for name in ("question", "answers")})
        content["page"] = self._found(row, image, folder)
        return PackagedEnvironment.item(self, row, content, folder)

    def _more_names(self, row: Row, name: str) -> Sequence[str]:
        """Return the names that a page has in MP-DocVQA, by its document and number."""
        del name
        document, number = (str(row.fields.get(f"ucsf_document_{key}") or "") for key in ("id", "page_no"))
        if not document or not number.isdigit():
            return ()
        # MP-DocVQA counts the pages of a document from 0, DocVQA from 1.
        earlier = f"{document}_p{int(number) - 1}"
        return (f"{document}_{number}.png", f"{document}_{number}.jpg", f"{earlier}.jpg", f"{earlier}.png")

    def secrets(self, item: Item) -> Secrets:
        return Secrets(answers=_answers(item), inputs=(str(item.content["question"]),))

    def question(self, item: Item) -> str:
        return question(str(item.content["question"]), self._wording)

    def _names(self, item: Item) -> Sequence[str]:
        return (str(item.content["image"]),)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        scores = score(trajectory.answer, _answers(item), RULES[self._scorer])
        return scores, feedback(trajectory.answer, _answers(item), scores.soft)


def _answers(item: Item) -> tuple[str, ...]:
    return tuple(cast("Sequence[str]", item.content["answers"]))
