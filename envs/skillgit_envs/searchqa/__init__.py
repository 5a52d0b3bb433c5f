"""SearchQA: answer a trivia question from search results."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, cast

from skillgit.domain.evaluation import Scored
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.errors import DataError
from skillgit.files import read_plain
from skillgit.plugin.backend import system, user
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import read_each, text_field
from skillgit.plugin.environment import Judge, PublishedRow, Target
from skillgit_envs.answers import WORDS_SCORER, exact_match, extract, f1, in_tag, normalise, quoted
from skillgit_envs.questions import Questions
from skillgit_envs.shipped_environment import (
    PromptWording,
    fields_hint,
    in_turns,
    prompt_file,
    sections,
    with_skill,
)

Row = Mapping[str, object]
HINT = fields_hint("searchqa")


def read_items(files: Sequence[Path]) -> list[Item]:
    """Return the items of one file of many items, or of many files of one item."""
    if len(files) > 1:
        strays = [path for path in files if not is_single_crawl(path)]
        if strays:
            problem = f"{files[0].parent} has {len(files)} data files and {strays[0].name} is not a single crawled item"
            raise DataError(problem, hint="keep one *.json or *.jsonl file in the folder")
    return [item for path in files for item in read_file(path)]


def read_file(path: Path) -> list[Item]:
    return read_each((path,), lambda row, _: _items(row.where, row.value, row.name))


def is_single_crawl(path: Path) -> bool:
    """Say whether a file is one item as the crawler left it."""
    try:
        value = json.loads(read_plain(path, most=None, follow=True))
    except (OSError, ValueError):
        return False
    return isinstance(value, dict) and "search_results" in value


def _items(where: str, row: object, name: str) -> Iterator[Item]:
    if not isinstance(row, dict):
        raise DataError(f"{where} is not an object with question and answers", hint=HINT)
    if "header" in row and "qas" not in row:
        return
    if "qas" in row:
        context = _context(where, row)
        for question in _list(where, row, "qas"):
            yield _item(where, question, name=str(question.get("qid", "")), context=context)
    elif "search_results" in row:
        results = _list(where, row, "search_results")
        yield _item(where, row, name=name, context=" ".join(_documents(results)))
    else:
        yield _item(where, row, name=name, context=_context(where, row))


def _item(where: str, row: Row, *, name: str, context: str) -> Item:
    identity = name if "search_results" in row and name else text_field(where, row, "qid", "id", "key") or name
    if not identity:
        raise DataError(f"{where} has no id", hint="give every row an 'id' or a 'key'")
    if "question" not in row:
        hint = "this is a list of ids; the questions themselves have to be joined to it first"
        if not set(row) <= {"id", "key"}:
            hint = "known are rows with question, context and answers; MRQA; and the crawl with search_results"
        raise DataError(f"{where} has no question; it has {', '.join(sorted(row)) or 'nothing'}", hint=hint)
    question = row["question"]
    if not isinstance(question, str) or not question.strip():
        raise DataError(f"{where} has an empty question, or one that is not text", hint=HINT)
    content = {"question": question.strip(), "context": context, "answers": _answers(where, row)}
    try:
        return Item(id=identity, content=content, task_type=text_field(where, row, "task_type") or "default")
    except DataError as error:
        raise DataError(f"{where}: {error.message}", hint=error.hint) from error


def _answers(where: str, row: Row) -> list[str]:
    """Return ``answers``, else ``answer``, else what MRQA detected: a text, a list of texts, or ``{"text": [...]}``."""
    value = row.get("answers", row.get("answer"))
    if not value and row.get("detected_answers"):
        value = list(dict.fromkeys(answer.get("text") for answer in _list(where, row, "detected_answers"))) or value
    if isinstance(value, Mapping):
        value = value.get("text")
    answers = [value] if isinstance(value, str | int) else value
    are_answers = isinstance(answers, list) and all(isinstance(answer, str | int) for answer in answers)
    if not isinstance(answers, list) or not are_answers or any(isinstance(answer, bool) for answer in answers):
        raise DataError(f"{where} has no answers", hint="'answers' is a list of texts, or one text")
    texts = [str(answer) for answer in answers if str(answer).strip()]
    if not texts:
        raise DataError(f"{where} has no answer that is not empty", hint=HINT)
    return texts


def _context(where: str, row: Row) -> str:
    context = row.get("context")
    if context is None:
        return ""
    if not isinstance(context, str):
        raise DataError(f"{where} has a context that is not text", hint=HINT)
    return context.strip()


def _list(where: str, row: Row, key: str) -> list[Row]:
    value = row[key]
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise DataError(f"{where} has a '{key}' that is not a list of objects", hint=HINT)
    return value


def _documents(results: list[Row]) -> Iterator[str]:
    """Write search results as the published contexts do; results without a snippet are left out, as there."""
    for result in results:
        title, snippet = result.get("title"), result.get("snippet")
        if isinstance(snippet, str) and snippet.strip():
            yield f"[DOC] [TLE] {title if isinstance(title, str) else ''} [PAR] {snippet.strip()}"


CONTEXT_CHARACTERS = 6000
_DOCUMENT = "[DOC]"


def system_prompt(skill: Skill, wording: PromptWording = PromptWording.OWN) -> str:
    """Return the system prompt: the role, the skill without its frontmatter, and what holds for all questions."""
    return with_skill(in_turns(prompt_file(__package__, "system", wording))[0], skill, wording)


def user_prompt(question: str, context: str, wording: PromptWording = PromptWording.OWN) -> str:
    """Return the user prompt: as much of the search results as fits, then the question."""
    if wording is PromptWording.REFERENCE:
        return sections(context=fit(context), question=question)
    return f"<context>\n{fit(context)}\n</context>\n\n<question>\n{question}\n</question>"


def review_prompt(task: str, answer: str, wording: PromptWording = PromptWording.OWN) -> str:
    """Return the user prompt of a later turn: the task as it was, and the answer so far."""
    text = prompt_file(__package__, "review", wording)
    if wording is PromptWording.REFERENCE:
        return text.replace("{answer}", answer)
    return f"{task}\n\n<previous_answer>\n{answer}\n</previous_answer>\n\n{text}"


def fit(context: str, limit: int = CONTEXT_CHARACTERS) -> str:
    """Return the leading documents that fit into ``limit`` characters; else the first, cut at its last blank before."""
    if len(context) <= limit:
        return context
    # A document may end exactly at the limit, so that the next one's marker starts right behind it.
    end = context.rfind(_DOCUMENT, 1, limit + len(_DOCUMENT) + 1)
    while end > 0 and len(context[:end].rstrip()) > limit:
        end = context.rfind(_DOCUMENT, 1, end)
    if end > 0 and context[:end].strip():
        return context[:end].rstrip()
    head = context[:limit]
    blank = max(head.rfind(" "), head.rfind("\n"))
    return head[:blank].rstrip() if blank > limit // 2 else head


def score(answer: str, golds: Sequence[str], scorer: str = "official") -> Scored:
    """Score an answer by one of the scorers; they differ only where normalisation leaves nothing of a text."""
    # The reference takes nothing for nothing: an empty answer is right where the gold is "The".
    equal, overlap = (exact_match, f1) if scorer == "official" else (_reference_match, _reference_f1)
    return Scored(
        hard=float(any(equal(answer, gold) for gold in golds)),
        soft=max((overlap(answer, gold) for gold in golds), default=0.0),
    )


def _reference_match(answer: str, gold: str) -> bool:
    return normalise(answer) == normalise(gold)


def _reference_f1(answer: str, gold: str) -> float:
    return 1.0 if _reference_match(answer, gold) else f1(answer, gold)


def feedback(answer: str, golds: Sequence[str], scorer: str = "official") -> str:
    """Say in one line what was expected and how near the answer came; the target never sees it."""
    match = next((gold for gold in golds if score(answer, [gold], scorer).passed), None)
    if match is not None:
        return f"correct: the answer {quoted(answer)} matches {quoted(match)}"
    message = f"expected one of: {', '.join(map(quoted, golds))}"
    if not answer.strip():
        return f"{message}; there is no answer"
    words = normalise(answer).split()
    overlap = max((Counter(words) & Counter(normalise(gold).split())).total() for gold in golds)
    return f"{message}; the answer {quoted(answer)} shares {overlap} of {len(words)} words"


def published(table: Iterable[PublishedRow]) -> Iterator[dict[str, object]]:
    """Yield rows of a data file; a missing context is an empty one."""
    for row in table:
        fields = {name: row.get(name) for name in ("question", "answers")}
        yield {"id": row.get("key"), "context": row.fields.get("context") or "", **fields}


class SearchQA(Questions):
    """Question answering over search results, scored by exact match and token F1."""

    info = read_card(Path(__file__).parent)
    scorers: ClassVar = {"official": WORDS_SCORER, "skillopt": "mrqa-skillopt/1"}

    @property
    def digest(self) -> str:
        prompts = [self.target_prompt(), user_prompt("question", "context", self._wording)]
        reviews = [self._turns, review_prompt("task", "answer", self._wording)] if self._turns > 1 else []
        return short_digest(["searchqa", self.scorers[self._scorer], CONTEXT_CHARACTERS, *prompts, *reviews])

    def _read(self, files: Sequence[Path]) -> list[Item]:
        return read_items(files)

    def answer_choices(self, item: Item) -> Mapping[str, str]:
        del item
        return {}

    def secrets(self, item: Item) -> Secrets:
        golds = cast("Sequence[str]", item.content["answers"])
        return Secrets(answers=tuple(golds), inputs=(str(item.content["question"]), str(item.content["context"])))

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        """Ask the target; from the second turn on, to review its answer, up to the first review with an answer."""
        # Each turn is a question of its own that shows search results and question again; the reference shows only the
        # answer so far. A review without an answer changes nothing.
        prompt = system(self._system(skill))
        task = user_prompt(str(item.content["question"]), str(item.content["context"]), self._wording)
        turns: list[Turn] = []
        question, answer, has_answer = self._turn(task), "", False
        while True:
            reply = await target.chat([prompt, user(question)])
            turns += [Turn(role="user", content=question), Turn(role="assistant", content=reply.text)]
            has_tag = in_tag(reply.text) is not None
            if has_tag or not has_answer:
                answer, has_answer = extract(reply.text), has_tag
            is_review = has_tag and len(turns) > 2  # noqa: PLR2004 - the first turn is a question and a reply
            if is_review or len(turns) >= 2 * self._turns:
                return Trajectory(item_id=item.id, turns=tuple(turns), answer=answer)
            question = review_prompt(task, answer, self._wording)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        del judge
        golds = cast("Sequence[str]", item.content["answers"])
        answer = trajectory.answer
        return score(answer, golds, self._scorer), feedback(answer, golds, self._scorer)
