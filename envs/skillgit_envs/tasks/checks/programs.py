"""Checks that are programs: a function of a Python file, and a command. Both run in the sandbox."""

from __future__ import annotations

import json
import math
import shlex
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillgit.domain.untrusted.json_limits import DocumentError, read_document
from skillgit.domain.untrusted.model_text import storable
from skillgit.errors import EnvironmentFaultError
from skillgit_envs.tasks.checks.check import CheckKind, Grade
from skillgit_envs.tasks.checks.harness import ANSWER, CHECK, ITEM, MADE, RESULT

if TYPE_CHECKING:
    from skillgit_envs.tasks.checks.check import CheckSource, Fields, Sheet

SCORER = "tasks-programs/1"
_CALL = "call.json"
_PYTHON = ("python", "python3")
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
    job = sandbox.python_job(
        _harness(), files={**_files(sheet), **checks, _CALL: call}, limits=sheet.limits, collect=(RESULT,)
    )
    result = await sandbox.run(job)
    if result.ended != "exit":
        return Grade(score=0.0, reason=f"the check was stopped ({result.ended})")
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


def _share(score: float, check: str) -> float:
    if not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise EnvironmentFaultError(f"the check {check} returned {score}", hint="a score lies between 0 and 1")
    return score


@cache
def _harness() -> str:
    return Path(__file__).with_name("harness.py").read_text(encoding="utf-8")


async def _run(fields: Fields, sheet: Sheet) -> Grade:
    sandbox = sheet.sandbox()
    words = list(fields["command"])
    if words[0] in _PYTHON:
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
    if result.ended != "exit":
        return Grade(score=0.0, reason=f"the check was stopped ({result.ended})")
    if result.exit_code in _CANNOT_RUN:
        raise EnvironmentFaultError(
            f"the check '{command}' cannot be run: {result.stderr.strip()[-_TOLD:]}", hint="check the command"
        )
    *lines, last = result.stdout.strip().splitlines() or [""]
    ok, partial = result.exit_code == 0, None
    try:
        partial = float(last)
    except ValueError:
        lines.append(last)
    score = float(ok) if partial is None else _share(partial, command)
    output = "\n".join(lines).strip()[-_TOLD:]
    # A command that ends with a failure has not passed, whatever it prints.
    return Grade(score=score if ok or score < 1 else 0.0, reason=output or ("correct" if ok else "the check failed"))


KINDS = (
    CheckKind(
        name="python",
        help="A function of a file beside the data, written file.py:function, returns whether or how well it was done.",
        grade=_python,
        takes={"function": (str,), "files": (list,)},
        needs=("function",),
        prepare=_function,
        reads="whole",
    ),
    CheckKind(
        name="command",
        help="A command ends with exit code 0; a number from 0 to 1 on its last line is partial credit.",
        grade=_run,
        takes={"command": (str, list), "files": (list,)},
        needs=("command",),
        prepare=_command,
        reads="whole",
    ),
)
