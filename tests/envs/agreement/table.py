"""``python tests/envs/agreement/table.py``: answers scored by our official scorers and by the benchmarks' own.

Each row says how many answers were compared, how many scores are equal, and why the others differ. Real answers and
rows are added where ``SKILLGIT_REAL_DATA`` has them.
"""

from __future__ import annotations

import ast
import json
import os
import random
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import count, islice, product
from pathlib import Path
from typing import TYPE_CHECKING

import originals

from skillgit_envs import babyvision, docvqa, livemathematicianbench, mathverse, mmrb, sealqa, searchqa
from skillgit_envs.answers import extract, normalise
from skillgit_envs.choices import chosen, label_of
from skillgit_envs.docvqa import RULES
from skillgit_envs.officeqa.scoring import score as office_score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

HERE = Path(__file__).parent
DATA = Path(os.environ.get("SKILLGIT_REAL_DATA", HERE.parents[2].parent / "shared" / "data"))
WORDS = ["the", "a", "An", "red", "Red!", "cent", "it's", "1,000", "-", "é", "“x”", "Seasons", "In", "Sun"]
FORMS = (
    *("{}", "({})", "{}.", "**{}**", r"\boxed{{{}}}", "Answer: {}", "The answer is {}.", "I choose {}", "{text}"),
    *("Therefore, the correct choice is {}.", "{}. {text}", "{}) {text}", "{} {text}", "{} because so", "{} is wrong"),
)
FRAMES = (
    *("{}", " {}\n", "{}.", "**{}**", "`{}`", "Judgement: {}", "Judgment: {}", "The verdict: {}"),
    *("not {}", "It is {}, I think", "{} or {other}", "", "I cannot say"),
)
AGAIN = "no verdict, asked for once more"


@dataclass(frozen=True, slots=True)
class Score:
    """One answer by both programs."""

    answer: str
    ours: object
    original: object
    reason: str = ""  # why they may differ; nothing means that they must not


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers of one benchmark."""

    benchmark: str
    original: str  # which program, and whether it was recorded or written down a second time
    scores: Callable[[random.Random], Iterator[Score]]

    @cache  # noqa: B019 - there are ten for the life of the program
    def all(self) -> list[Score]:
        """Return the same scores at every call."""
        return list(self.scores(random.Random(self.benchmark)))  # noqa: S311 - not secret


def real(name: str) -> list[dict[str, object]]:
    path = DATA / name
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []


def recorded(name: str) -> list[list]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def phrases(draw: random.Random, most: int = 4) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randrange(most + 1)))


def searchqa_scores(draw: random.Random) -> Iterator[Score]:
    golds = [[str(gold) for gold in row["answers"]] for row in real("searchqa/skillopt_split_format/items.json")]
    pairs = [(f"{phrases(draw, 1)} {gold[0]}", gold) for gold in golds for _ in range(5)]
    pairs += [(phrases(draw), [phrases(draw) for _ in range(draw.randrange(1, 3))]) for _ in range(700)]
    for answer, accepted in pairs:
        scored = searchqa.score(answer, accepted)
        reason = "" if normalise(answer) else "normalisation leaves nothing of the answer"
        yield Score(
            answer,
            (scored.hard, round(scored.soft, 9)),
            tuple(round(value, 9) for value in originals.mrqa(answer, accepted)),
            reason,
        )


def docvqa_scores(draw: random.Random) -> Iterator[Score]:
    rows = real("docvqa/real_predictions_mplug.json")
    key = next((name for name in rows[0] if "answer" in name.lower() and name != "answers"), "") if rows else ""
    pairs = [(str(row[key]), ast.literal_eval(str(row["answers"]))) for row in rows]
    texts = ("".join(draw.choices("abAB 1.$\u00df", k=draw.randrange(9))) for _ in count())
    pairs += [(next(texts), list(islice(texts, draw.randrange(1, 3)))) for _ in range(700)]
    for answer, golds in pairs:
        yield Score(
            answer,
            round(docvqa.score(answer, golds, RULES["official"]).soft, 9),
            round(originals.anls(answer, golds), 9),
        )


def choice_answers(draw: random.Random) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yield the label that an answer gives, the answer and the choices."""
    paths = sorted((DATA / "livemathematicianbench").rglob("*.json"))
    items = [row["mcq"] for path in paths for row in json.loads(path.read_text(encoding="utf-8"))]
    lists = [[mcq["correct_choice"]["text"], *(choice["text"] for choice in mcq["choices"])] for mcq in items]
    for texts in lists[:36] or [[f"the bound n^{n} holds" for n in range(5)]] * 40:
        choices = dict(zip("ABCDEFGH", draw.sample(texts, len(texts)), strict=False))
        for form in FORMS:
            label = draw.choice(list(choices))
            yield label, form.format(label, text=choices[label]), choices


def livemath_scores(draw: random.Random) -> Iterator[Score]:
    for label, answer, choices in choice_answers(draw):
        yield Score(answer, label_of(answer, choices), "" if answer.endswith("is wrong") else label)


def livemath_reference_scores(draw: random.Random) -> Iterator[Score]:
    for _, answer, choices in choice_answers(draw):
        yield Score(
            answer, livemathematicianbench.reference_label(answer, choices), originals.first_word_label(answer, choices)
        )


def officeqa_scores(draw: random.Random) -> Iterator[Score]:
    del draw
    rows = [
        [row["ground_truth"], row["predicted"], row["tolerance"], row["official_score"]]
        for row in real("officeqa/official_scorer_examples.json")
    ]
    for gold, answer, tolerance, verdict in recorded("officeqa.jsonl") + rows:
        yield Score(answer, office_score(answer, gold, "official", tolerance).hard, verdict)


def mmrb_scores(draw: random.Random) -> Iterator[Score]:
    del draw
    for gold, answer, verdict in recorded("mmrb.jsonl"):
        yield Score(answer, float(mmrb._is_right(answer, gold, {}, mmrb.Matching.OFFICIAL)), verdict)


def verdicts(draw: random.Random, words: Sequence[str]) -> Iterator[str]:
    """Yield replies of a judge: each of ``words`` alone and in ordinary company."""
    for frame, word in product(FRAMES, words):
        yield from (
            case(frame.format(word, other=draw.choice(words))) for case in (str, str.lower, str.upper, str.title)
        )


def read(reader: Callable[[str], object], reply: str) -> object:
    try:
        return reader(reply)
    except ValueError:
        return None


def babyvision_scores(draw: random.Random) -> Iterator[Score]:
    for _ in range(300):
        texts = [phrases(draw) or "x", f"{{{draw.randrange(99)}}} {phrases(draw)}"]
        boxed = " so ".join(f"\\boxed{{{text}}}" for text in texts)
        tagged = " so ".join(f"<answer>{text}</answer>" for text in texts)
        yield Score(boxed, extract(tagged), originals.last_box(boxed).strip())
    for reply in verdicts(draw, ("true", "false", "yes", "TRUE", "False")):
        verdict = read(babyvision._verdict, reply)
        yield Score(reply, verdict, originals.contains_true(reply), AGAIN if verdict is None else "")


def mathverse_scores(draw: random.Random) -> Iterator[Score]:
    for reply in [*verdicts(draw, ("0", "1", "2", "10", "correct")), *map(str, range(300))]:
        verdict, original = read(mathverse._verdict, reply), originals.lone_digit(reply)
        reason = "Judgment, a small letter or a full stop is read too" if original is None else ""
        yield Score(reply, verdict, original, reason)


def mathverse_quick_scores(draw: random.Random) -> Iterator[Score]:
    rows = real("mathverse/testmini_text_only.sample20.json") + real("mathverse_odd/testmini_text_only.odd.json")
    choice_rows = [row for row in rows if row["question_type"] == "multi-choice"]
    cases = [(str(row["answer"]), mathverse.choices(str(row["question"]))) for row in choice_rows]
    cases += [(draw.choice("ABCD"), {"A": "30", "B": "45", "C": "60", "D": "75"}) for _ in range(130)]
    for gold, choices in cases:
        letter = draw.choice(list(choices))
        for answer in (gold, letter, f"({gold})", f"The answer is {letter}."):
            reason = "" if answer in {gold, letter} and gold in choices else "another form of the right choice"
            yield Score(answer, chosen(answer, gold, choices), answer == gold, reason)


def sealqa_scores(draw: random.Random) -> Iterator[Score]:
    grades = dict(zip(sealqa.AnswerGrade, "ABC", strict=True))
    letters = [" " * before + letter + "\n" * behind for letter, before, behind in product("ABC", range(10), range(10))]
    for reply in [*verdicts(draw, ("A", "B", "C", "CORRECT", "INCORRECT", "NOT_ATTEMPTED")), *letters]:
        grade = read(sealqa.verdict, reply)
        reason = "a word is its grade, and a small letter a letter" if grade else AGAIN
        reason = "" if reply.strip() in {"A", "B", "C"} else reason
        yield Score(reply, grades.get(grade), originals.first_letter(reply), reason)


COMPARISONS = (
    Comparison("searchqa", "mrqa_official_eval.py, written anew", searchqa_scores),
    Comparison("docvqa", "the challenge's script, written anew", docvqa_scores),
    Comparison("livemathematicianbench", "accuracy; the label that was meant", livemath_scores),
    Comparison("livemathematicianbench, skillopt", "SkillOpt's reader, written anew", livemath_reference_scores),
    Comparison("officeqa", "reward.py, recorded", officeqa_scores),
    Comparison("mathverse, verdict", "score_answer_s2.py, written anew", mathverse_scores),
    Comparison("mathverse, rules", "its quick match, written anew", mathverse_quick_scores),
    Comparison("babyvision", "extraction and verdict, written anew", babyvision_scores),
    Comparison("mmrb", "parse_evaluate_answer.py, recorded", mmrb_scores),
    Comparison("sealqa, verdict", "openbench's, written anew", sealqa_scores),
)


def rows() -> Iterator[str]:
    yield f"{'benchmark':<34}{'original':<40}{'answers':>8}{'agree':>8}  differ"
    for comparison in COMPARISONS:
        scores = comparison.all()
        different = [score for score in scores if score.ours != score.original]
        reasons = Counter(score.reason or f"unexplained, as {score.answer!r}" for score in different)
        listing = "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
        counts = f"{len(scores):>8}{len(scores) - len(different):>8}"
        yield f"{comparison.benchmark:<34}{comparison.original:<40}{counts}  {listing}"


if __name__ == "__main__":
    print(*rows(), sep="\n")  # noqa: T201 - a program
