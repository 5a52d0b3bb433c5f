"""A candidate that a person asks for, and what the gate made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillgit.domain.edit import EditReport
    from skillgit.domain.edit_words import LeftOut
    from skillgit.domain.evaluation import EvaluationSummary
    from skillgit.domain.event import Cost, Origin
    from skillgit.domain.gate import Verdict
    from skillgit.domain.policies import Policy
    from skillgit.domain.skill import Skill
    from skillgit.index.rows import LogRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A skill that may become the next version of a run.

    Attributes:
        skill: The skill.
        origin: Which command it comes from.
        of: What it was made of, ``<run>/v7`` or ``<run>/r17``; empty for the run's own text.
        title: The commit's title.
        why: The reasons, as paragraphs.
        reports: The edits behind it, with what became of each.
        policy: How the gate compares; None as the run's gate does.
        merged: The commit of the other line that a merge joins; empty without one.
        evidence: More files for the evidence.
    """

    skill: Skill
    origin: Origin
    of: str
    title: str
    why: str = ""
    reports: tuple[EditReport, ...] = ()
    policy: Policy | None = None
    merged: str = ""
    evidence: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A candidate that passed the gate or did not, as it stands in history.

    Attributes:
        event: The event as a line of the log.
        of: What the candidate was made of.
        base: The version that it was judged against.
        accepted: Whether it is a version now.
        branch: The branch that it stands on.
        verdict: The gate's decision and its numbers.
        evaluation: The candidate's score on the selection split.
        fixed: Items that score higher than under the base.
        broken: Items that score lower.
        left_out: Edits that are not part of it.
        tokens_before: About how many tokens the base's text has.
        tokens_after: About how many the candidate's text has.
        notes: What else there is to know of it, one sentence each.
        cost: What it cost; what was measured before cost nothing.
    """

    event: LogRow
    of: str
    base: int = 0
    accepted: bool
    branch: str = ""
    verdict: Verdict
    evaluation: EvaluationSummary
    fixed: tuple[str, ...]
    broken: tuple[str, ...]
    left_out: tuple[LeftOut, ...] = ()
    tokens_before: int = 0
    tokens_after: int
    notes: tuple[str, ...] = ()
    cost: Cost
