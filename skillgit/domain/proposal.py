"""What an event tells of a candidate: where it comes from, its changed lines, its edits, what happened to proposals."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.ids import text_digest
from skillgit.domain.prose import clean_line

if TYPE_CHECKING:
    from skillgit.domain.edit import Edit, EditSource, Op

EDITS_SHOWN = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One changed line of a skill as the commit message shows it."""

    sign: Literal["+", "-"]
    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", clean_line(self.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRecord:
    """An applied edit as its trailer tells it; its text is the diff.

    Attributes:
        op: What it did.
        file: Path inside the skill folder.
        support: How many trajectories it rests on.
        source: Whose observation it is.
        anchor: The first 8 hexadecimal characters of the anchor's digest; empty without an anchor.
        fixed: Items that it fixed, where that is known: where it was measured alone.
        broken: Items that it broke, likewise.
    """

    op: Op
    file: str
    support: int
    source: EditSource
    anchor: str = ""
    fixed: int | None = None
    broken: int | None = None

    @classmethod
    def of(cls, edit: Edit) -> EditRecord:
        """Return the record of ``edit``."""
        anchor = text_digest(edit.anchor)[:8] if edit.anchor else ""
        return cls(op=edit.op, file=edit.file, support=edit.support, source=edit.source, anchor=anchor)


class BudgetSource(StrEnum):
    """Who set the edit budget of a step."""

    SCHEDULE = "schedule"
    OPTIMIZER = "optimizer"
    FALLBACK = "fallback"  # the schedule, because what the optimizer said could not be used
    NONE = "none"  # nobody: there was no limit
    META = "meta"  # the budget of the reflection on an epoch


class Origin(StrEnum):
    """Where a candidate comes from."""

    STEP = "step"  # a batch of rollouts
    META = "meta"  # the reflection on the steps of an epoch, at its end
    CHERRY_PICK = "cherry-pick"  # the edits of a version or candidate of another line
    MERGE = "merge"  # another line as a whole
    REVERT = "revert"  # the text without the edits of one version
    RESTORE = "restore"  # the text of an older version
    PRUNE = "prune"  # the text without rules that do nothing
    COMPRESS = "compress"  # the text in fewer words
    RESURRECT = "resurrect"  # a candidate that was rejected before

    @property
    def intervenes(self) -> bool:
        """Whether a person asked for it, between steps or after the end of the run."""
        return self not in {Origin.STEP, Origin.META}


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchCounts:
    """How many proposals a step merged and ranked, how many edits it applied and skipped, and the budget that held.

    Attributes:
        merged: Proposals of all analysts, duplicates joined.
        ranked: Those that were chosen.
        applied: Edits that took effect; of a rewrite, the stretches of lines that changed.
        skipped: Edits that did not.
        budget: The edit budget; absent where there was no limit.
        by: Who set it.
        mode: What a proposal was: an edit, a suggestion or a whole document.
        salvaged: Whether the edits are a part of a patch that the gate had refused as a whole.
    """

    merged: int
    ranked: int
    applied: int
    skipped: int
    budget: int | None
    by: BudgetSource = BudgetSource.SCHEDULE
    mode: UpdateMode = UpdateMode.PATCH
    salvaged: bool = False
