"""What is said of a candidate: by its event, by other runs that tried it, and by people."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from skillgit.domain.document_rewrite import UpdateMode
from skillgit.domain.edit import Edit, EditSource, Op
from skillgit.domain.ids import text_digest
from skillgit.domain.sequence_diff import differences
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.model_text import clean_line

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
    """An applied edit as its trailer records it; its text is the diff.

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
        anchor = text_digest(edit.anchor)[:8] if edit.anchor else ""
        return cls(op=edit.op, file=edit.file, support=edit.support, source=edit.source, anchor=anchor)


LEFT_OUT = "left out: "
"""How a paragraph of reasons begins that is about an edit which is not in the candidate."""
FINDING = re.compile(r"\d+ of \d+ rollouts: ")
"""How a paragraph of reasons begins that says what analysts found."""


class BudgetSource(StrEnum):
    """Who set the edit budget of a step."""

    SCHEDULE = "schedule"
    OPTIMIZER = "optimizer"
    FALLBACK = "fallback"  # the schedule, because what the optimizer said could not be used
    NONE = "none"  # no limit was set
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
        rules: How many rules the applied edits change, where the budget counts these; absent where it counts edits.
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
    rules: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """How a candidate did on train items before the selection split was touched.

    Attributes:
        failing: Items that its base fails, tried again; those that its edits rest on are among them.
        fixed: How many of these it solves.
        solved: Items that its base solves, tried again.
        broken: How many of these it fails.
    """

    failing: int
    fixed: int
    solved: int
    broken: int

    @property
    def passed(self) -> bool:
        """Whether the candidate is worth a measurement: it fixes more than it breaks."""
        return self.fixed > self.broken


def changed_lines(old: Skill, new: Skill) -> tuple[Change, ...]:
    return changed_texts(dict(old.text_files()), dict(new.text_files()))


def changed_texts(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    """Return the removed and added lines of all files, path to text, in file order; blank lines are left out."""
    changes: list[Change] = []
    for path in sorted(before.keys() | after.keys()):
        old, new = (texts.get(path, "").splitlines() for texts in (before, after))
        for old_from, old_to, new_from, new_to in differences(old, new):
            changes += [Change(sign="-", text=line) for line in old[old_from:old_to]]
            changes += [Change(sign="+", text=line) for line in new[new_from:new_to]]
    return tuple(change for change in changes if change.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    commit: str
    text: str
    author: str
    time: datetime

    @property
    def id(self) -> str:
        content = f"{self.commit}\0{self.author}\0{self.time.isoformat()}\0{self.text}"
        return hashlib.sha256(content.encode(errors="replace")).hexdigest()[:8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A candidate that the gate of another run, or of someone else's part of it, rejected."""

    run: str
    step: int
    base: int
    commit: str
    title: str
    changes: tuple[Change, ...]
    score: float
    bound: bool  # whether that is only the highest that it could have been
    current: float
