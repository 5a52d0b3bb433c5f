"""A program for each spreadsheet task that comes with skillgit, by which its answers were made; and small workbooks."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import openpyxl

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN = "import openpyxl\nbook = openpyxl.load_workbook(INPUT_PATH)\nsheet = book.worksheets[0]\n"
SAVE = "book.save(OUTPUT_PATH)\n"

_BODIES = {
    "pantry-units": """
for row in range(2, sheet.max_row + 1):
    boxes, each = sheet.cell(row, 2).value, sheet.cell(row, 3).value
    sheet.cell(row, 4).value = (boxes or 0) * (each or 0)
""",
    "club-fees": """
paid = [str(row[2] or "").strip().lower() for row in sheet.iter_rows(min_row=2, max_col=3, values_only=True) if row[0]]
sheet["F2"] = sum(word != "yes" for word in paid)
""",
    "ferry-fares": """
fares = {str(row[0]).strip(): row[1] for row in book["Fares"].iter_rows(min_row=2, values_only=True) if row[0]}
for row in range(2, sheet.max_row + 1):
    sheet.cell(row, 3).value = fares.get(str(sheet.cell(row, 2).value).strip(), "unknown")
""",
    "quiz-ranking": """
rows = [row for row in sheet.iter_rows(min_row=2, max_col=2, values_only=True) if row[0]]
ranking = book["Ranking"]
for place, (team, points) in enumerate(sorted(rows, key=lambda row: (-row[1], row[0])), start=2):
    ranking.cell(place, 1).value, ranking.cell(place, 2).value = team, points
""",
    "hottest-days": """
for row in range(2, 5):
    days = [r for r in sheet.iter_rows(min_row=2, max_col=3, values_only=True) if r[1] == sheet.cell(row, 5).value]
    best = max(days, key=lambda day: day[2])
    sheet.cell(row, 6).value, sheet.cell(row, 7).value = best[0], best[2]
""",
    "split-names": """
for row in range(2, sheet.max_row + 1):
    last, _, first = str(sheet.cell(row, 1).value or "").partition(",")
    sheet.cell(row, 2).value, sheet.cell(row, 3).value = first.strip() or None, last.strip() or None
""",
    "empty-orders": """
rows = [row for row in sheet.iter_rows(min_row=2, max_col=3, values_only=True)]
kept = [row for row in rows if row[2] is not None]
for number in range(len(rows)):
    for column in range(3):
        sheet.cell(number + 2, column + 1).value = kept[number][column] if number < len(kept) else None
""",
    "spending-by-kind": """
for row in range(2, 6):
    kind = sheet.cell(row, 5).value
    spent = [r[2] for r in sheet.iter_rows(min_row=2, max_col=3, values_only=True) if r[1] == kind]
    sheet.cell(row, 6).value = round(sum(spent), 2)
""",
    "late-books": """
for row in range(2, sheet.max_row + 1):
    due, back = sheet.cell(row, 2).value, sheet.cell(row, 3).value
    sheet.cell(row, 4).value = max(0, (back - due).days) if back else "out"
""",
    "visitor-list": """
names = dict.fromkeys(str(r[1]).strip() for r in sheet.iter_rows(min_row=2, max_col=2, values_only=True) if r[1])
for row, name in enumerate(names, start=2):
    sheet.cell(row, 4).value = name
""",
    "cash-box": """
balance = sheet["D2"].value
for row in range(3, sheet.max_row + 1):
    balance += (sheet.cell(row, 2).value or 0) - (sheet.cell(row, 3).value or 0)
    sheet.cell(row, 4).value = balance
""",
    "repairs-by-month": """
table = book["Summary"]
rows = list(sheet.iter_rows(min_row=2, max_col=2, values_only=True))
for row in range(2, 5):
    for column in range(2, 5):
        month, kind = table.cell(row, 1).value, table.cell(1, column).value
        table.cell(row, column).value = sum(day.strftime("%B") == month and what == kind for day, what in rows)
""",
}
SOLUTIONS = {name: OPEN + body.strip("\n") + "\n" + SAVE for name, body in _BODIES.items()}


def reply(name: str) -> str:
    """Return the reply of a model that solves a task."""
    return f"Here it is.\n\n```python\n{SOLUTIONS[name]}```\n"


def workbook(cells: Mapping[str, object], **sheets: Mapping[str, object]) -> bytes:
    """Return a workbook with a first sheet ``Sheet`` and others."""
    book = openpyxl.Workbook()
    for name, held in {"Sheet": cells, **sheets}.items():
        sheet = book[name] if name in book.sheetnames else book.create_sheet(name)
        for cell, value in held.items():
            sheet[cell] = value
    made = io.BytesIO()
    book.save(made)
    return made.getvalue()
