"""The runs of a repository as a list that can be filtered and sorted, the same for pages and the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Final

from skillgit.app.workspace.revision import find_run
from skillgit.app.workspace.skill_choice import choose_skill
from skillgit.app.workspace.workspace import open_workspace
from skillgit.domain.did_you_mean import did_you_mean
from skillgit.errors import RevisionNotFoundError, UsageError
from skillgit.index import queries, version_queries
from skillgit.index.rows import RunRow

if TYPE_CHECKING:
    from skillgit.app.workspace.context import Context


def state(row: RunRow) -> str:
    """Return ``running``, ``stopped``, or how the run ended."""
    return "running" if row.running_pid is not None else row.outcome or "stopped"


def test_gain(row: RunRow) -> float | None:
    """Return by how much the best version scores above the seed on the test split; None where that is not known."""
    return None if row.best_test is None or row.first_test is None else row.best_test - row.first_test


TEXTS: Final[dict[str, Callable[[RunRow], str]]] = {
    "name": lambda row: row.name,
    "skill": lambda row: row.skill,
    "state": state,
    "environment": lambda row: row.environment,
    "model": lambda row: row.target,
    "optimizer": lambda row: row.optimizer,
}
NUMBERS: Final[dict[str, Callable[[RunRow], float | None]]] = {
    "score": lambda row: row.best_score,
    "gain": lambda row: row.best_score - row.first_score,
    "test": lambda row: row.best_test,
    "test-gain": test_gain,
    "steps": lambda row: row.steps,
    "cost": lambda row: row.usd,
    "calls": lambda row: row.calls,
    "tokens": lambda row: row.tokens_in + row.tokens_out,
    "started": lambda row: row.started.timestamp(),
    "updated": lambda row: row.updated.timestamp(),
}
KEYS: Final = (*TEXTS, *NUMBERS)
"""What runs can be sorted and filtered by."""

_CONDITION: Final = re.compile(rf"(?P<key>{'|'.join(KEYS)})(?P<sign>>=|<=|=|>|<)(?P<value>.*)", re.DOTALL)
_SIGNS: Final = {"=": eq, ">=": ge, "<=": le, ">": gt, "<": lt}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunListing:
    rows: tuple[RunRow, ...]  # those that are asked for
    total: int  # how many runs there are that can be read
    unreadable: Mapping[str, str]  # run to why its history cannot be read
    courses: Mapping[str, tuple[float, ...]]  # run to scores of its versions, oldest first; of `rows` from `offset` on
    environments: tuple[str, ...]
    models: tuple[str, ...]
    skills: tuple[str, ...] = ()  # the folders of skills that runs train


def run_list(
    context: Context, *, sort: str = "", filters: Sequence[str] = (), offset: int = 0, charted: int = 0, most: int = 24
) -> RunListing:
    """Return the runs that pass every filter; for ``charted`` of them how scores went, in ``most`` points each."""
    with open_workspace(context) as workspace:
        every = queries.run_rows(workspace.index, workspace.live())
        if workspace.skill:
            every = tuple(row for row in every if row.skill == workspace.skill)
        rows = in_order(chosen(every, filters), sort)
        names = [row.name for row in rows[offset : offset + charted]]
        return RunListing(
            rows=rows,
            total=len(every),
            unreadable={run: str(error) for run, error in sorted(workspace.index.broken.items())},
            courses=version_queries.courses(workspace.index, names, most) if names else {},
            skills=tuple(sorted({row.skill for row in every} - {""})),
            environments=tuple(sorted({row.environment for row in every} - {""})),
            models=tuple(sorted({row.target for row in every} - {""})),
        )


def chosen(rows: Sequence[RunRow], filters: Sequence[str]) -> tuple[RunRow, ...]:
    """Return the ``rows`` that pass every filter: ``KEY=TEXT``, ``KEY>NUMBER`` and the like, or words of a name."""
    tests = [_test(text) for text in filters]
    return tuple(row for row in rows if all(test(row) for test in tests))


def _test(text: str) -> Callable[[RunRow], bool]:
    condition = _CONDITION.fullmatch(text)
    if condition is None:
        phrase = text.casefold()
        return lambda row: any(phrase in value(row).casefold() for value in TEXTS.values())
    key, sign, value = condition["key"], condition["sign"], condition["value"]
    if key in TEXTS:
        if sign != "=":
            raise UsageError(f"{key} is text and has no order", hint=f"{key}=TEXT")
        return lambda row: value.casefold() in TEXTS[key](row).casefold()
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"{key} is compared with '{value}', which is no number", hint=f"{key}>0.5") from None
    return lambda row: (own := NUMBERS[key](row)) is not None and bool(_SIGNS[sign](own, number))


def in_order(rows: Sequence[RunRow], sort: str) -> tuple[RunRow, ...]:
    """Return ``rows`` sorted by a key, with ``-`` before it from the highest down; what lacks it comes last.

    Without a key, runs that are being trained come first.
    """
    key, descending = sort.removeprefix("-"), sort.startswith("-")
    if not sort:
        return tuple(sorted(rows, key=lambda row: row.running_pid is None))
    if key in TEXTS:
        return tuple(sorted(rows, key=lambda row: TEXTS[key](row).casefold(), reverse=descending))
    if key not in NUMBERS:
        raise UsageError(
            f"runs cannot be sorted by '{key}'",
            hint=did_you_mean(key, KEYS, otherwise=f"--sort takes {', '.join(KEYS)}"),
        )
    with_value = [row for row in rows if NUMBERS[key](row) is not None]
    without = [row for row in rows if NUMBERS[key](row) is None]
    return (*sorted(with_value, key=lambda row: NUMBERS[key](row) or 0.0, reverse=descending), *without)


def find_row(context: Context, name: str) -> RunRow:
    """Return the run that ``name`` or its beginning is; a RevisionNotFoundError without one."""
    with open_workspace(context) as workspace:
        run = find_run(workspace, name)
        row = queries.run_row(workspace.index, run, workspace.live())
        if row is None:
            raise RevisionNotFoundError(f"there is no run '{run}'", hint="skillgit runs")
        return row


def run_of_skill(context: Context, skill: str) -> str:
    """Return the run that trains the skill ``skill``: the default run, else the newest; a NotFoundError without one."""
    with open_workspace(context) as workspace:
        path = choose_skill(skill, workspace.index.column("SELECT DISTINCT skill FROM run"), where="that runs train")
        return find_run(replace(workspace, skill=path), None)
