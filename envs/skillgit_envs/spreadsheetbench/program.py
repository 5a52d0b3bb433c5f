"""Owns the program that a model writes: how it is found in a reply, and how it runs on one workbook, alone.

The program finds two variables, ``INPUT_PATH`` and ``OUTPUT_PATH``. It runs in an empty folder that holds the workbook
of one case and nothing else, so that neither an answer nor the output of an earlier run can be taken for its own.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillgit.sandbox import Result, Sandbox

INPUT, OUTPUT, PROGRAM = "input.xlsx", "output.xlsx", "solution.py"
_START = (
    f"import runpy\nrunpy.run_path({PROGRAM!r}, {{'INPUT_PATH': {INPUT!r}, 'OUTPUT_PATH': {OUTPUT!r}}}, '__main__')\n"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")
_LANGUAGES = frozenset({"", "python", "py", "python3"})
_LONGEST = 3000
"""Characters of what a program wrote that are told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a program fared on one workbook.

    Attributes:
        output: The workbook that it made; None if it made none or did not come to a good end.
        told: What it wrote and how it ended, for whoever wrote it.
    """

    output: bytes | None
    told: str


def find_program(reply: str) -> str:
    """Return the program in a reply: its last block of Python code; empty if there is none.

    A block that is not closed goes to the end. A reply without blocks is a program if Python can read it and it names
    the output.
    """
    blocks = list(_blocks(reply))
    if blocks:
        return next((code for language, code in reversed(blocks) if language in _LANGUAGES), "")
    return reply if "OUTPUT_PATH" in reply and _is_python(reply) else ""


async def run(code: str, book: bytes, sandbox: Sandbox, seconds: float) -> Run:
    """Run a program on a workbook.

    Args:
        code: The program.
        book: The workbook.
        sandbox: Where it runs.
        seconds: How long it may take.

    Raises:
        EnvironmentFaultError: The sandbox failed.
    """
    limits = Limits(wall_s=seconds, cpu_s=max(1, round(seconds)))
    files = {PROGRAM: code.encode(errors="replace"), INPUT: book}
    result = await sandbox.run(sandbox.python_job(_START, files=files, limits=limits, collect=(OUTPUT,)))
    output = result.files.get(OUTPUT) if result.ok else None
    return Run(output=output, told=_told(result, has_output=output is not None, seconds=seconds))


def _told(result: Result, *, has_output: bool, seconds: float) -> str:
    if result.ok:
        end = "the program ended well" if has_output else "the program ended well, but wrote nothing to OUTPUT_PATH"
    elif result.ended == "exit":
        end = f"the program failed with exit code {result.exit_code}"
    else:
        end = f"the program was stopped after {seconds:g} seconds" if result.ended == "timeout" else "the program"
        end += "" if result.ended == "timeout" else f" broke a limit of the sandbox: {result.ended}"
    output = "\n".join(part.strip("\n") for part in (result.stdout, result.stderr) if part.strip())
    cut = output if len(output) <= _LONGEST else f"[...]\n{output[-_LONGEST:]}"
    return "\n".join(filter(None, (cut, f"[{end}]")))


def _blocks(reply: str) -> Iterator[tuple[str, str]]:
    """Yield language and text of each fenced block, as Markdown has them."""
    fence, language, lines = "", "", list[str]()
    for line in reply.splitlines():
        match = _FENCE.fullmatch(line)
        if fence and match and match[1].startswith(fence) and not match[2]:
            yield language, "\n".join(lines) + "\n"
            fence = ""
        elif fence:
            lines.append(line)
        elif match:
            fence, language, lines = match[1], match[2].lower(), []
    if fence:
        yield language, "\n".join(lines) + "\n"


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
