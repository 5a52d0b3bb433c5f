"""What a directory tells of its steps and epochs, put in order; what contradicts itself is told of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.sources.skillopt.outcomes import count, number
from skillgit.domain.cost import Cost, CostPart
from skillgit.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.app.sources.skillopt.directory import Directory, Row

ACCEPTED = frozenset({"accept_new_best", "accept", "force_accept"})
SKIPPED = frozenset({"skip_no_patches", "skip_no_rewrite"})
_ACTIONS = ACCEPTED | SKIPPED | {"reject"}
_TARGET_STAGES = frozenset({"rollout", "selection", "test"})
_TOTAL = "_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step.

    Attributes:
        number: 1-based over the whole run.
        record: What history says of it; empty for a step that history passes over.
        action: What happened to it; empty for a step that history passes over.
    """

    number: int
    epoch: int
    record: Row
    action: str

    @property
    def folder(self) -> str:
        return f"steps/step_{self.number:04d}"

    @property
    def accepted(self) -> bool:
        """Whether its candidate became the current text."""
        return self.action in ACCEPTED

    def score(self, key: str) -> float | None:
        """Return a score of the record."""
        value = number(self.record.get(key))
        if value is not None and not 0.0 <= value <= 1.0:
            raise DataError(
                f"step {self.number} of history.json has {key} {value:g}", hint="scores lie between 0 and 1; mend it"
            )
        return value

    def counted(self, key: str) -> int:
        """Return a count of the record; 0 if it is not told."""
        return count(self.record.get(key)) or 0

    @property
    def own(self) -> Mapping[str, object]:
        """What skillgit told besides, where it wrote the directory."""
        fields = self.record.get("skillgit")
        return fields if isinstance(fields, dict) else {}


def read_steps(directory: Directory) -> tuple[list[Step], list[str]]:
    """Return the steps of a directory, numbered without gaps, and what is odd about them."""
    remarks: list[str] = []
    records_of = {
        number: record for number in directory.numbered("steps", "step_") if (record := _own(directory, number))
    }
    rows = directory.listing("history.json")
    if rows is None and records_of:
        remarks.append(f"{directory.fault('history.json')}; the steps are those of the step_record.json files")
    elif rows is None and (directory.path / "history.json").exists():
        raise DataError(
            f"the steps of {directory.path} are not known: {directory.fault('history.json')}",
            hint="copy the directory again, or resume the run where it was made",
        )
    records = records_of if rows is None else _of_history(rows, records_of, remarks)
    return list(_numbered(records, remarks)), remarks


def _own(directory: Directory, number_: int) -> Row | None:
    return directory.mapping(f"steps/step_{number_:04d}/step_record.json")


def _of_history(rows: Sequence[Row], records_of: Mapping[int, Row], remarks: list[str]) -> dict[int, Row]:
    records: dict[int, Row] = {}
    twice: list[int] = []
    for row in rows:
        step = count(row.get("step"))
        if not step:
            remarks.append("history.json has a record without a step number, which is left out")
            continue
        if step in records:
            twice.append(step)
        records[step] = row
    if twice:
        numbers = ", ".join(map(str, sorted(set(twice))))
        remarks.append(
            f"history.json tells step {numbers} more than once, as a resumed run does; the last record is taken"
        )
    missing = sorted(records_of.keys() - records.keys())
    for step in missing:
        remarks.append(f"history.json lacks step {step}; its step_record.json is taken")
        records[step] = records_of[step]
    return records


def _numbered(records: Mapping[int, Row], remarks: list[str]) -> Iterator[Step]:
    epoch = 1
    for number_ in range(1, max(records, default=0) + 1):
        record = records.get(number_, {})
        action = str(record.get("action") or "")
        epoch = max(epoch, count(record.get("epoch")) or epoch)
        if action not in _ACTIONS:
            reason = f"the unknown action '{action}'" if action else "no action" if record else "no record"
            remarks.append(f"step {number_} has {reason}; it is imported as a step of which nothing is known")
            action = ""
        yield Step(number=number_, epoch=epoch, record=record, action=action)


def cost(record: Row, seconds: str) -> Cost:
    """Return what a record says that it cost; its prices are not known.

    Args:
        record: The record; ``tokens`` holds the tokens of each stage.
    """
    tokens = record.get("tokens")
    stages = (
        {str(name): row for name, row in tokens.items() if isinstance(row, dict)} if isinstance(tokens, dict) else {}
    )
    parts = [
        CostPart(role="target" if name in _TARGET_STAGES else "optimizer", stage=name, cost=_amounts(row))
        for name, row in stages.items()
        if name != _TOTAL
    ]
    whole = sum((part.cost for part in parts), Cost()) if parts else _amounts(stages.get(_TOTAL, {}))
    return Cost(
        calls=whole.calls,
        tokens_in=whole.tokens_in,
        tokens_out=whole.tokens_out,
        unpriced=whole.calls,
        seconds=number(record.get(seconds)) or 0.0,
        parts=tuple(sorted(parts, key=lambda part: (part.role, part.stage))),
    )


def _amounts(row: Row) -> Cost:
    calls = count(row.get("calls")) or 0
    return Cost(
        calls=calls,
        tokens_in=count(row.get("prompt_tokens")) or 0,
        tokens_out=count(row.get("completion_tokens")) or 0,
        unpriced=calls,
    )
