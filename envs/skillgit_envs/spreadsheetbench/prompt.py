"""Owns what the target is told: the task with a look into its workbook, and how its program fared."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillgit.domain.trajectory import Item
    from skillgit_envs.spreadsheetbench.program import Run
    from skillgit_envs.spreadsheetbench.workbooks import Contents

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
