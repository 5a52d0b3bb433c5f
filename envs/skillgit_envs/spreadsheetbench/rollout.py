"""Owns how the target comes to a program: in one reply, in several with a look at what it does, or with a tool."""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from skillgit.domain.trajectory import Item, Trajectory, Turn
from skillgit.plugin.backend import assistant, system, user
from skillgit.plugin.environment import Target
from skillgit.sandbox import Result, Sandbox
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.job import Limits
from skillgit.sandbox.tools import SandboxTools
from skillgit_envs.shipped_environment import PromptWording, sections
from skillgit_envs.spreadsheetbench.workbooks import ROWS, Area, Contents, contents, preview


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the target works on; as the reference asks, a program that ran is final, and none sets its own paths."""

    item: Item
    system: str
    turn: Callable[[str], str]  # the description of the task, to what the target is asked
    books: Mapping[int, bytes]  # number of a case to its workbook
    areas: Sequence[Area]  # the answer cells; none if the position cannot be read
    sandbox: Sandbox
    seconds: float
    wording: PromptWording = PromptWording.OWN

    @property
    def first(self) -> bytes:
        return next(iter(self.books.values()))

    async def run(self, code: str, book: bytes) -> Run:
        program = code if self.wording is PromptWording.OWN else without_paths(code)
        return await run(program, book, self.sandbox, self.seconds)


async def roll_out(work: Work, target: Target, mode: str, max_turns: int) -> Trajectory:
    """Let the target write a program, and run it on each case's workbook; the products are the workbooks by case."""
    description = task(work.item, await preview(work.first, work.sandbox, ROWS[work.wording]), work.wording)
    request = work.turn(description)
    turns: Sequence[Turn]
    if mode == "react":
        limits = Limits(wall_s=work.seconds, cpu_s=max(1, round(work.seconds)))
        files = {INPUT: work.first}
        toolbox = SandboxTools(sandbox=work.sandbox, names=("python",), files=files, limits=limits)
        conversation = await converse(target, [system(work.system), user(request)], toolbox, max_turns)
        code, turns = find_program(conversation.text), conversation.turns
    else:
        code, turns = await _in_turns(work, target, request, 1 if mode == "single" else max_turns)
    if not code:
        end = Turn(role="tool", content="[there is no program to run]")
        return Trajectory(item_id=work.item.id, turns=(*turns, end), answer="")
    runs = await asyncio.gather(*(work.run(code, book) for book in work.books.values()))
    by_case = dict(zip(work.books, runs, strict=True))
    end = Turn(role="tool", content=_ends(by_case))
    products = {str(number): run.output for number, run in by_case.items() if run.output is not None}
    return Trajectory(item_id=work.item.id, turns=(*turns, end), answer=code, products=products)


def _ends(runs: Mapping[int, Run]) -> str:
    """Return how the last program fared; cases in which it wrote the same are reported together."""
    groups: dict[str, list[str]] = {}
    for number, run_ in runs.items():
        groups.setdefault(run_.report, []).append(str(number))
    return "\n".join(f"case {', '.join(numbers)}: {text}" for text, numbers in groups.items())


async def _in_turns(work: Work, target: Target, request: str, most: int) -> tuple[str, Sequence[Turn]]:
    """Return the last of ``most`` programs; a reply without one ends it, but for the first: that may be a plan."""
    messages, turns, code = [system(work.system), user(request)], [Turn(role="user", content=request)], ""
    for number in range(1, most + 1):
        reply = await target.chat(messages)
        turns.append(Turn(role="assistant", content=reply.text))
        program = find_program(reply.text)
        code = program or code
        if number == most or (number > 1 and not program):
            break
        report = await _tried(work, code) if program else NO_PROGRAM
        if not report:
            break
        messages += [assistant(reply.text), user(report)]
        turns.append(Turn(role="user", content=report))
    return code, turns


async def _tried(work: Work, code: str) -> str:
    """Return what is said after a program has run on the first workbook; empty if that was all."""
    run = await work.run(code, work.first)
    if run.output is not None and work.wording is PromptWording.REFERENCE:
        return ""
    if run.output is None or not work.areas:
        return after_run(run, None)
    books = await contents({"output": run.output}, work.areas, work.sandbox, formulas=True)
    return after_run(run, books["output"])


NO_PROGRAM = "There is no program in your reply. Give the whole program in one block that begins with ```python."
FAILED = "Mend the program, and give the whole of it again."
CHECK = "If the task is done, reply with the word DONE alone. Otherwise give the whole program again, corrected."
TASK = "Write the script that carries out the instruction."
_MOST_CELLS = 40
_LONGEST_CELL = 60


def task(item: Item, preview: str, wording: PromptWording = PromptWording.OWN) -> str:
    kind = str(item.content["instruction_type"])
    if wording is PromptWording.REFERENCE:
        instruction, position = (str(item.content[name]) for name in ("instruction", "answer_position"))
        return sections(instruction=instruction, kind=kind, answer_cells=position, workbook=preview, task=TASK)
    return "\n\n".join(
        [
            f"<task>\n{item.content['instruction']}\n</task>",
            *([f"<kind>{kind}</kind>"] if kind else []),
            f"<answer_cells>{item.content['answer_position']}</answer_cells>",
            f"<workbook>\n{preview}\n</workbook>",
        ]
    )


def after_run(run: Run, content: Contents | None) -> str:
    """Return what is said after a program has run on the first workbook; ``content`` is what its answer cells hold."""
    if run.output is None:
        return f"{run.report}\n\n{FAILED}"
    return "\n\n".join(filter(None, (run.report, _cells(content) if content else "", CHECK)))


def _cells(content: Contents) -> str:
    if content.error:
        return f"The saved workbook cannot be opened: {content.error}"
    lines, count = [], 0
    for part in content.parts:
        if part.cells is None:
            lines.append(f"There is no sheet '{part.sheet}'.")
            continue
        cells = list(part.cells.items())[: _MOST_CELLS - count]
        count += len(cells)
        lines += [f"{part.sheet}!{cell}: {text[:_LONGEST_CELL]}" for cell, (_, text) in cells]
        rest = len(part.cells) - len(cells)
        lines += [f"[{rest} more]"] if rest else [] if cells else [f"{part.sheet}: the answer cells are empty"]
    return "The answer cells of the saved workbook:\n" + "\n".join(lines)


INPUT, OUTPUT, PROGRAM = "input.xlsx", "output.xlsx", "solution.py"
_START = (
    f"import runpy\nrunpy.run_path({PROGRAM!r}, {{'INPUT_PATH': {INPUT!r}, 'OUTPUT_PATH': {OUTPUT!r}}}, '__main__')\n"
)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*")
_SEVERAL = (ast.Tuple, ast.List)
_LANGUAGES = frozenset({"", "python", "py", "python3"})
_LONGEST = 3000  # characters of what a program wrote that are reported


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How a program fared on one workbook."""

    output: bytes | None  # the workbook that it made; None if it made none or did not come to a good end
    report: str  # what it wrote and how it ended, for its author


def find_program(reply: str) -> str:
    """Return the program in a reply: its last block of Python code, closed or not; empty if there is none."""
    # A reply without blocks is a program if Python can read it and it names the output.
    blocks = list(_blocks(reply))
    if blocks:
        return next((code for language, code in reversed(blocks) if language in _LANGUAGES), "")
    return reply if "OUTPUT_PATH" in reply and _is_python(reply) else ""


def without_paths(code: str) -> str:
    """Return ``code`` without the statements that set INPUT_PATH or OUTPUT_PATH, as the reference runs it."""
    # The template of its released skill has them, with paths that lead nowhere. Code that is not Python stays as it is.
    if not _is_python(code):
        return code
    lines = code.encode(errors="replace").splitlines(keepends=True)
    statements = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.stmt) and _sets_paths(node)]
    for node in sorted(statements, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
        lines[first : last + 1] = [head + b"pass" + tail]
    return b"".join(lines).decode(errors="replace")


def _sets_paths(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    parts = [part for target in targets for part in (target.elts if isinstance(target, _SEVERAL) else [target])]
    names = {part.id if isinstance(part, ast.Name) else "" for part in parts}
    return bool(names) and names <= {"INPUT_PATH", "OUTPUT_PATH"}


async def run(code: str, book: bytes, sandbox: Sandbox, seconds: float) -> Run:
    limits = Limits(wall_s=seconds, cpu_s=max(1, round(seconds)))
    files = {PROGRAM: code.encode(errors="replace"), INPUT: book}
    result = await sandbox.run(sandbox.python_job(_START, files=files, limits=limits, collect=(OUTPUT,)))
    output = result.files.get(OUTPUT) if result.ok else None
    return Run(output=output, report=_report(result, has_output=output is not None, seconds=seconds))


def _report(result: Result, *, has_output: bool, seconds: float) -> str:
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
