"""Owns how the target comes to a program: in one reply, in several with a look at what it does, or with a tool."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.trajectory import Trajectory, Turn
from skillgit.plugin.backend import assistant, system, user
from skillgit.sandbox.conversation import converse
from skillgit.sandbox.job import Limits
from skillgit.sandbox.tools import SandboxTools
from skillgit_envs.spreadsheetbench.program import INPUT, Run, find_program, run
from skillgit_envs.spreadsheetbench.workbooks import contents, preview

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillgit.domain.trajectory import Item
    from skillgit.plugin.environment import Target
    from skillgit.sandbox import Sandbox
    from skillgit_envs.spreadsheetbench.positions import Area
    from skillgit_envs.spreadsheetbench.workbooks import Contents


MODES = ("single", "multi", "react")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What the target works on.

    Attributes:
        item: The item.
        system: The system prompt.
        books: Number of a case to its workbook.
        areas: The answer cells; none if the position cannot be read.
        sandbox: Where programs run.
        seconds: How long a program may run.
    """

    item: Item
    system: str
    books: Mapping[int, bytes]
    areas: Sequence[Area]
    sandbox: Sandbox
    seconds: float

    @property
    def first(self) -> bytes:
        """The workbook of the first case."""
        return next(iter(self.books.values()))

    async def run(self, code: str, book: bytes) -> Run:
        """Run a program on a workbook."""
        return await run(code, book, self.sandbox, self.seconds)


async def roll_out(work: Work, target: Target, mode: str, max_turns: int) -> Trajectory:
    """Let the target write a program, and run it once on each case's workbook.

    The products of the trajectory are the workbooks that were made, by the numbers of their cases.

    Raises:
        BackendError: A call of the target failed for good.
        EnvironmentFaultError: The sandbox failed.
    """
    said = task(work.item, await preview(work.first, work.sandbox))
    if mode == "react":
        code, turns = await _with_tool(work, target, said, max_turns)
    else:
        code, turns = await _in_turns(work, target, said, 1 if mode == "single" else max_turns)
    if not code:
        end = Turn(role="tool", content="[there is no program to run]")
        return Trajectory(item_id=work.item.id, turns=(*turns, end), answer="")
    runs = await asyncio.gather(*(work.run(code, book) for book in work.books.values()))
    by_case = dict(zip(work.books, runs, strict=True))
    end = Turn(role="tool", content=_ends(by_case))
    made = {str(number): run.output for number, run in by_case.items() if run.output is not None}
    return Trajectory(item_id=work.item.id, turns=(*turns, end), answer=code, products=made)


def _ends(runs: Mapping[int, Run]) -> str:
    """Return how the last program fared; cases in which it wrote the same are told together."""
    told: dict[str, list[str]] = {}
    for number, run_ in runs.items():
        told.setdefault(run_.told, []).append(str(number))
    return "\n".join(f"case {', '.join(numbers)}: {text}" for text, numbers in told.items())


async def _in_turns(work: Work, target: Target, said: str, most: int) -> tuple[str, Sequence[Turn]]:
    """Return the last program that was written in ``most`` replies; it is tried on the first workbook in between.

    A reply without a program ends it, but for the first one: that may have been a plan.
    """
    messages, turns, code = [system(work.system), user(said)], [Turn(role="user", content=said)], ""
    for number in range(1, most + 1):
        reply = await target.chat(messages)
        turns.append(Turn(role="assistant", content=reply.text))
        found = find_program(reply.text)
        code = found or code
        if number == most or (number > 1 and not found):
            break
        told = await _tried(work, code) if found else NO_PROGRAM
        messages += [assistant(reply.text), user(told)]
        turns.append(Turn(role="user", content=told))
    return code, turns


async def _tried(work: Work, code: str) -> str:
    """Return what is said after a program has run on the first workbook."""
    tried = await work.run(code, work.first)
    if tried.output is None or not work.areas:
        return after_run(tried, None)
    found = await contents({"output": tried.output}, work.areas, work.sandbox, formulas=True)
    return after_run(tried, found["output"])


async def _with_tool(work: Work, target: Target, said: str, most: int) -> tuple[str, Sequence[Turn]]:
    limits = Limits(wall_s=work.seconds, cpu_s=max(1, round(work.seconds)))
    toolbox = SandboxTools(sandbox=work.sandbox, offered=("python",), files={INPUT: work.first}, limits=limits)
    talk = await converse(target, [system(work.system), user(said)], toolbox, most)
    return find_program(talk.text), talk.turns


NO_PROGRAM = "There is no program in your reply. Give the whole program in one block that begins with ```python."
FAILED = "Mend the program, and give the whole of it again."
CHECK = "If the task is done, reply with the word DONE alone. Otherwise give the whole program again, corrected."
_MOST_CELLS = 40
_LONGEST_CELL = 60


def task(item: Item, preview: str) -> str:
    """Return the task of an item."""
    kind = str(item.content["instruction_type"])
    return "\n\n".join(
        [
            f"<task>\n{item.content['instruction']}\n</task>",
            *([f"<kind>{kind}</kind>"] if kind else []),
            f"<answer_cells>{item.content['answer_position']}</answer_cells>",
            f"<workbook>\n{preview}\n</workbook>",
        ]
    )


def after_run(run: Run, found: Contents | None) -> str:
    """Return what is said after a program has run on the first workbook.

    Args:
        run: How it fared.
        found: What stands in the answer cells of its output, as it was written; None where that is not known.
    """
    if run.output is None:
        return f"{run.told}\n\n{FAILED}"
    return "\n\n".join(filter(None, (run.told, _cells(found) if found else "", CHECK)))


def _cells(found: Contents) -> str:
    if found.error:
        return f"The saved workbook cannot be opened: {found.error}"
    lines, count = [], 0
    for part in found.parts:
        if part.cells is None:
            lines.append(f"There is no sheet '{part.sheet}'.")
            continue
        shown = list(part.cells.items())[: _MOST_CELLS - count]
        count += len(shown)
        lines += [f"{part.sheet}!{cell}: {text[:_LONGEST_CELL]}" for cell, (_, text) in shown]
        left = len(part.cells) - len(shown)
        lines += [f"[{left} more]"] if left else [] if shown else [f"{part.sheet}: the answer cells are empty"]
    return "The answer cells of the saved workbook:\n" + "\n".join(lines)
