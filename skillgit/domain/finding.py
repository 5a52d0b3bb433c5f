"""What a check finds: how bad it is, where, what is wrong, and the way out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from skillgit.errors import ExitCode

REPAIR = "skillgit fsck --repair"
"""The way out of what follows from the rest of the history, so that it can be repaired without losing a fact."""


class Severity(StrEnum):
    """How bad a finding is. Commands have words of their own for it."""

    ERROR = "error"  # something does not work, or must not leave
    WARNING = "warning"  # someone should look at it
    REMARK = "remark"  # it breaks no rule, and is good to know


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that a check finds.

    Attributes:
        severity: How bad it is.
        rule: The rule that is broken, or the kind of finding; it never changes.
        run: The run; empty if it is not wrong with one run alone.
        commit: The commit that it is in; empty if it is in none.
        path: The file, in that commit or in its folder; empty for the whole.
        line: The line, counted from 1; 0 for the whole file.
        sentence: What is wrong, without a full stop.
        hint: The way out: a command to type or a change to make.
        items: All ids of items that it is about.
        excerpt: The line that it is about, with secrets masked.
        fingerprint: What names the same finding in every commit; an allow-list holds it.
    """

    severity: Severity = Severity.ERROR
    rule: str = ""
    run: str = ""
    commit: str = ""
    path: str = ""
    line: int = 0
    sentence: str
    hint: str = ""
    items: tuple[str, ...] = ()
    excerpt: str = ""
    fingerprint: str = ""

    @property
    def repairable(self) -> bool:
        return self.hint == REPAIR

    @property
    def place(self) -> str:
        """The file with the line; of a line in the message of a commit, that."""
        file = self.path or ("message" if self.commit and self.line else "")
        return f"{file}:{self.line}" if self.line else file

    @property
    def message(self) -> str:
        """The sentence behind its place, as the message of an error."""
        return f"{self.place}: {self.sentence}" if self.place else self.sentence


UNREACHABLE: Final = "unreachable"
"""The rule of a model that cannot be called."""
_ENDS: Final = {UNREACHABLE: ExitCode.SERVICE}


def exit_code(findings: Iterable[Finding], *, strict: bool = False) -> ExitCode:
    """Return what a check ends with: 1 for an error, 5 if a model cannot be called, 0 otherwise.

    With ``strict``, a warning counts as an error.
    """
    counting = {Severity.ERROR, *([Severity.WARNING] if strict else [])}
    codes = (_ENDS.get(finding.rule, ExitCode.NO) for finding in findings if finding.severity in counting)
    return max(codes, default=ExitCode.OK)
