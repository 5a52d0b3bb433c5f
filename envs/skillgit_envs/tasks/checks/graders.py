"""Checks that something else carries out: a Python function or a command, in the sandbox, or a model as judge.

What a judge grades is between marks that its author could not know, and is called material. A comparison is made
twice with the places swapped, since models prefer a place (Zheng et al., 2023, "Judging LLM-as-a-judge").
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar, cast

from skillgit.domain.ids import short_digest
from skillgit.domain.untrusted.json_limits import DocumentError, object_in, read_document
from skillgit.domain.untrusted.model_text import storable, storable_json
from skillgit.errors import EnvironmentFaultError
from skillgit.sandbox import Result
from skillgit_envs.answers import ask_judge
from skillgit_envs.shipped_environment import prompt_file
from skillgit_envs.tasks.checks.comparisons import CheckKind, CheckSource, Fields, Grade, Sheet
from skillgit_envs.tasks.checks.harness import ANSWER, CHECK, ITEM, MADE, RESULT

_HARNESS = Path(__file__).with_name("harness.py").read_text(encoding="utf-8")
_CALL = "call.json"
_CANNOT_RUN = (126, 127)
_TOLD = 600
_RESERVED = (ANSWER, ITEM, MADE, RESULT, _CALL)


def _found(fields: Fields, source: CheckSource, files: list[str]) -> Fields:
    entries = source.find(files) if files else []
    clash = next((entry["name"] for entry in entries if Path(entry["name"]).parts[0] in _RESERVED), "")
    if clash:
        raise ValueError(f"has a file called {clash}; that name is taken")
    return fields | {"files": entries}


def _function(fields: Fields, source: CheckSource) -> Fields:
    file, colon, name = fields["function"].rpartition(":")
    if not (colon and file.endswith(".py") and name.isidentifier()):
        raise ValueError("has a 'function' that is not written like checks.py:score")
    return _found(fields, source, [file, *fields.get("files", [])])


def _command(fields: Fields, source: CheckSource) -> Fields:
    command = fields["command"]
    words = shlex.split(command) if isinstance(command, str) else command
    if not words or not all(isinstance(word, str) for word in words):
        raise ValueError("has a 'command' that is neither text nor a list of texts")
    return _found(fields | {"command": words}, source, fields.get("files", []))


def _files(sheet: Sheet) -> dict[str, bytes]:
    """Return what every check may look at: the answer, the row, and what the target made."""
    products = {f"{MADE}/{name}": content for name, content in sheet.products.items()}
    item = json.dumps({"prompt": sheet.prompt, **sheet.row}, ensure_ascii=False)
    return {ANSWER: storable(sheet.answer).encode(), ITEM: storable(item).encode(), **products}


async def _python(fields: Fields, sheet: Sheet) -> Grade:
    file, _, name = fields["function"].rpartition(":")
    checks = {f"{CHECK}/{entry['name']}": sheet.attachments.read(entry) for entry in fields["files"]}
    call = json.dumps({"file": file, "function": name}).encode()
    sandbox = sheet.sandbox()
    files = {**_files(sheet), **checks, _CALL: call}
    job = sandbox.python_job(_HARNESS, files=files, limits=sheet.limits, collect=(RESULT,))
    result = await sandbox.run(job)
    _refuse_stopped(result, fields["function"])
    try:
        outcome: Any = read_document(result.files.get(RESULT, b"{}"))
    except DocumentError as error:
        outcome = {"error": f"its result {error}"}
    if not isinstance(outcome, dict) or not isinstance(outcome.get("score"), int | float):
        outcome = outcome if isinstance(outcome, dict) else {}
        reason = outcome.get("error") or result.stderr.strip()[-_TOLD:] or f"exit code {result.exit_code}"
        raise EnvironmentFaultError(
            f"the check {fields['function']} failed: {reason}",
            hint="a check returns a score for every answer; it raises AssertionError for a wrong one",
        )
    score = _share(outcome["score"], fields["function"])
    reason = str(outcome.get("said") or "")[:_TOLD]
    return Grade(score=score, reason=reason or ("correct" if score >= 1 else "the check is not content"))


def _refuse_stopped(result: Result, check: str) -> None:
    """Refuse to take a check that a limit stopped for a verdict: the machine may be slow, or the check at fault."""
    if result.ended not in {"exit", "killed"}:
        raise EnvironmentFaultError(
            f"the check {check} was stopped ({result.ended}), and has no result",
            hint="raise env.check_timeout, or let the check itself limit what it runs of an answer",
        )


def _share(score: float, check: str) -> float:
    if not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise EnvironmentFaultError(f"the check {check} returned {score}", hint="a score is between 0 and 1")
    return score


async def _run(fields: Fields, sheet: Sheet) -> Grade:
    sandbox = sheet.sandbox()
    words = list(fields["command"])
    if words[0] in ("python", "python3"):
        words[0] = sandbox.python
    files = {entry["name"]: sheet.attachments.read(entry) for entry in fields["files"]}
    # The job of an empty program has the environment in which the packages are found.
    job = replace(
        sandbox.python_job("", limits=sheet.limits, collect=()),
        command=tuple(words),
        files={**_files(sheet), **files},
        stdin=storable(sheet.answer).encode(),
    )
    result, command = await sandbox.run(job), " ".join(fields["command"])
    _refuse_stopped(result, command)
    if result.exit_code in _CANNOT_RUN:
        problem = f"the check '{command}' cannot be run: {result.stderr.strip()[-_TOLD:]}"
        raise EnvironmentFaultError(problem, hint="check the command")
    *lines, last = result.stdout.strip().splitlines() or [""]
    ok, partial = result.exit_code == 0, 1.0
    try:
        partial = float(last)
    except ValueError:
        lines.append(last)
    # A command that ends with a failure gives nothing, for any output.
    score = _share(partial, command) if ok else 0.0
    output = "\n".join(lines).strip()[-_TOLD:]
    return Grade(score=score, reason=output or ("correct" if ok else "the check failed"))


T = TypeVar("T")
_PROMPTS = "skillgit_envs.tasks"
_LONGEST_FILE = 8000
_LONGEST_NAME = 60  # characters by which a criterion is distinguished from others
PLACES = ("first", "second")
"""Where the result is in the two orders of a comparison."""
_WINS = {"A": (1.0, 0.0), "B": (0.0, 1.0), "tie": (0.5, 0.5)}


def scorers() -> list[str]:
    return ["tasks-programs/2", "tasks-judge/1", prompt_file(_PROMPTS, "judge"), prompt_file(_PROMPTS, "compare")]


def _prepared(fields: Fields, source: CheckSource) -> Fields:
    """Return the fields with ``criteria``, a list of texts, made of any form of them."""
    criteria = [*fields.pop("criteria", []), *([fields.pop("rubric")] if "rubric" in fields else [])]
    if not criteria and source.expectation:
        criteria = [f"The result is as described here: {source.expectation}"]
    if not criteria or not all(isinstance(text, str) and text.strip() for text in criteria):
        raise ValueError("needs a 'rubric', or 'criteria', a list of texts")
    return fields | {"criteria": criteria}


async def _judge(fields: Fields, sheet: Sheet) -> Grade:
    if "against" in fields:
        return await _compared(fields, sheet)
    count = len(fields["criteria"])
    mark = short_digest([sheet.prompt, sheet.answer])
    texts = [_material(mark, "task", sheet.prompt), _material(mark, "result", _result(sheet))]
    question = "\n\n".join([_criteria(fields), *texts])

    def read(reply: Mapping[str, Any]) -> tuple[list[float], str]:
        scores = reply.get("scores", [reply["score"]] if "score" in reply else None)
        if not isinstance(scores, list) or len(scores) != count:
            raise ValueError(f"'scores' must be a list of {count} numbers")
        numbers = [score for score in scores if isinstance(score, int | float) and not isinstance(score, bool)]
        if len(numbers) != count or not all(0 <= score <= 1 for score in numbers):
            raise ValueError("every score must be a number from 0 to 1")
        return [float(score) for score in scores], str(reply.get("reason", ""))

    scores, reason = await _asked(sheet, "judge", question, read)
    misses = [score for score in scores if score < 1]
    total = sum(scores) / count
    which = f", less than full for {len(misses)} of {count} criteria" if misses and count > 1 else ""
    return Grade(
        score=total, reason=f"the judge gives {total:.2f}{which}: {reason}", parts=tuple(scores) if count > 1 else ()
    )


async def _compared(fields: Fields, sheet: Sheet) -> Grade:
    reference, ours = str(fields["against"]), _result(sheet)
    mark = short_digest([sheet.prompt, sheet.answer])

    def read(reply: Mapping[str, Any]) -> tuple[tuple[float, float], str]:
        winner = reply.get("winner")
        if winner not in _WINS:
            raise ValueError("'winner' must be A, B or tie")
        return _WINS[winner], str(reply.get("reason", ""))

    points, reasons = [], []
    for index, (first, second) in enumerate(((ours, reference), (reference, ours))):
        parts = [_material(mark, "task", sheet.prompt), _material(mark, "A", first), _material(mark, "B", second)]
        pair, reason = await _asked(sheet, "compare", "\n\n".join([_criteria(fields), *parts]), read)
        points.append(pair[index])
        reasons.append(reason)
    score = sum(points) / len(points)
    reason = f"compared with a reference, the judge gives {score:.2f}: {' / '.join(reasons)}"
    return Grade(score=score, reason=reason, parts=tuple(points))


def _parts(fields: Fields) -> tuple[str, ...]:
    """Name the grades of a judge: each criterion by its first words, or where the result was in a comparison."""
    if "against" in fields:
        return tuple(f"shown {order}" for order in PLACES)
    names = tuple(shorten(text, _LONGEST_NAME) for text in fields["criteria"])
    return names if len(names) > 1 else ()


def graded_by(fields: Fields) -> list[tuple[str, str]]:
    """Return what each grade of a judge rests on, and in a comparison where the result is shown; else empty."""
    if "against" in fields:
        return [("\n".join([*fields["criteria"], str(fields["against"])]), order) for order in PLACES]
    return [(text, "") for text in fields["criteria"]]


def _criteria(fields: Fields) -> str:
    return "Criteria:\n" + "\n".join(f"{number}. {text}" for number, text in enumerate(fields["criteria"], start=1))


def _material(mark: str, name: str, text: str) -> str:
    return f"[{mark} begin {name}]\n{text}\n[{mark} end {name}]"


def _result(sheet: Sheet) -> str:
    """Return the result with the files that were made, as far as they are text."""
    parts = [sheet.answer]
    for name, content in sheet.products.items():
        try:
            text = content.decode()
        except UnicodeDecodeError:
            text = f"({len(content)} bytes that are no text)"
        parts.append(f"File {name}:\n{text[:_LONGEST_FILE]}")
    return "\n\n".join(parts)


async def _asked(sheet: Sheet, prompt: str, question: str, read: Callable[[Mapping[str, Any]], T]) -> T:
    def read_object(reply: str) -> T:
        try:
            return read(cast("Mapping[str, Any]", storable_json(object_in(reply))))
        except DocumentError as error:
            raise ValueError(f"it {error}") from error

    return await ask_judge(sheet.judge, prompt_file(_PROMPTS, prompt), question, read_object, form="the JSON")


KINDS = (
    CheckKind(
        name="python",
        grade=_python,
        takes={"function": (str,), "files": (list,)},
        needs=("function",),
        prepare=_function,
        reads="whole",
    ),
    CheckKind(
        name="command",
        grade=_run,
        takes={"command": (str, list), "files": (list,)},
        needs=("command",),
        prepare=_command,
        reads="whole",
    ),
    CheckKind(
        name="judge",
        grade=_judge,
        takes={"rubric": (str,), "criteria": (list,), "against": (str,)},
        prepare=_prepared,
        parts=_parts,
        reads="whole",
    ),
)
