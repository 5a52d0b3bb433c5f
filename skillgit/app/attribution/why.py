"""``skillgit why``: a rule's story, from the trajectories that failed to the gate and what happened to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.app.attribution.blame import author, credits_of, find_place
from skillgit.app.attribution.rule_lineage import LaterChange, RuleHistory, Wording
from skillgit.app.attribution.rule_search import Hit, RuleWorth, known_worth, rule_at_line, rules_like, search_words
from skillgit.app.recorded.step_evidence import StepEvidence, with_questions
from skillgit.app.workspace.workspace import Workspace, open_workspace
from skillgit.domain.edit import normalised
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.sequence_diff import similarity, words
from skillgit.index import rule_queries
from skillgit.store import history_reader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillgit.app.attribution.blame import SkillFile
    from skillgit.app.attribution.provenance import Credit, Credits
    from skillgit.app.recorded.step_evidence import TrainAttempt, TrajectoryPattern
    from skillgit.app.workspace.context import Context
    from skillgit.domain.cost import Cost
    from skillgit.domain.edit import LeftOut
    from skillgit.domain.event import Event
    from skillgit.domain.gate_decision import Verdict
    from skillgit.domain.proposal import PatchCounts
    from skillgit.domain.skill_rules import Rule
    from skillgit.index.rule_queries import OriginRow

_ALIKE = 0.6
"""From this share of common words on, a line that a rejected candidate added counts as an attempt at the same rule."""
_SAME_TITLE = 0.3
"""How alike two rules have to be in their words if the steps that brought them share a part of their titles."""
_TRIED_EVENTS = 40
_FAILURES = 12
_OTHERS = 5
_STEPS = 24
"""In so many steps, the newest first, the questions behind slow guidance are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCandidate:
    """A rejected candidate that added something like the rule.

    Attributes:
        likeness: How much of their words is common, from 0 to 1.
    """

    event: OriginRow
    text: str
    likeness: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What the event that brought a rule says about itself.

    Attributes:
        verdict: What the gate compared and decided; absent if it passed none.
        n: Number of selection items; 0 where none was measured.
        not_measured: How many of them were never measured, because the decision was settled; the score is then only an
            upper bound.
        patch: How many proposals were merged, ranked and applied; absent where no analyst proposed anything.
        left_out: The edits that were chosen and not applied; empty where the evidence is not here.
        cost: What it cost; absent where that is not recorded.
    """

    why: str = ""
    verdict: Verdict | None = None
    n: int = 0
    not_measured: int = 0
    patch: PatchCounts | None = None
    left_out: tuple[LeftOut, ...] = ()
    cost: Cost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A rule from the failures that it came of to what happened to it.

    Attributes:
        run: The run; empty if the revision belongs to none.
        here: Whether the revision has it; otherwise it was found in history.
        found: The event in history whose text has it; absent if the revision has it.
        others: Other rules that may have been meant, the most likely first.
        origin: The event that gave the rule these words; absent for what is no event of a run.
        author: Who made that commit, where a person did.
        restored: The version that restored the rule; absent if it always stayed.
        rollouts: How many trajectories the step had; 0 if that is not known.
        failures: The train items whose rollouts moved it, the first of them.
        tried: Rejected candidates that added something like it, oldest first.
        earlier: The wordings that it had before, newest first.
        worth: What notes say about the skill without it, on newer versions last.
        absent: Whether the evidence of the event is not here, as in a clone.
    """

    run: str
    asked: str
    revision: str
    rule: Rule
    path: str
    here: bool
    found: OriginRow | None
    others: tuple[Hit, ...]
    origin: OriginRow | None
    commit: str
    author: str
    restored: int | None
    credit: Credit
    edits: int
    rollouts: int
    failures: tuple[TrainAttempt, ...]
    findings: tuple[TrajectoryPattern, ...]
    gate: Gated
    tried: tuple[SimilarCandidate, ...]
    earlier: tuple[Wording, ...]
    later: tuple[LaterChange, ...]
    worth: tuple[RuleWorth, ...]
    absent: bool


def why(context: Context, query: str, revision: str = "", path: str = "") -> Story:
    """Return the story of a rule.

    Args:
        query: A number of a line, or words of the rule; if no rule has them, one that had them once.
        revision: The version; the newest of the default run if empty.
        path: The file, inside the skill folder or as the repository calls it; if empty, ``SKILL.md`` for a number,
            all files for words.

    Raises:
        RevisionNotFoundError: The revision names nothing.
        NotFoundError: There is no such file, or no rule has such words.
    """
    with open_workspace(context) as workspace:
        spot = find_place(workspace, revision, path)
        stories = Stories(workspace, RuleHistory(workspace), spot)
        if query.isdecimal():
            return stories.at_line(spot.path, int(query))
        return stories.like(query, spot.path if path else "")


class Stories:
    """The stories of the rules at one revision; what several of them need is read once."""

    def __init__(self, workspace: Workspace, history: RuleHistory, spot: SkillFile) -> None:
        self._workspace = workspace
        self._place = spot
        self._history = history
        self._credits = credits_of(workspace, spot)
        self._added: dict[str, AddedLines] = {}

    def at_line(self, path: str, line: int) -> Story:
        """Return the story of the rule on a line of the file ``path``, as the repository calls it."""
        hit = rule_at_line(self._workspace, self._history, self._place.found.commit, path, line)
        return self._story(str(line), (hit,))

    def like(self, text: str, path: str = "") -> Story:
        """Return the story of the rule that is most like ``text``; in the file ``path`` only, if one is named.

        Raises:
            NotFoundError: No rule has such words.
        """
        return self._story(text, rules_like(self._workspace, self._history, self._place, text, path))

    def _story(self, query: str, hits: tuple[Hit, ...]) -> Story:
        workspace, spot, hit = self._workspace, self._place, hits[0]
        forms = tuple(self._history.wordings(hit.commit, hit.path, hit.rule))
        now = forms[0]
        credit = self._credits.credit(now.line)
        origin = now.origin
        failures, findings, rollouts = _behind(workspace, self._credits, origin, credit)
        return Story(
            run=spot.run or "",
            asked=query,
            revision=spot.found.commit,
            rule=hit.rule,
            path=hit.path,
            here=hit.event is None,
            found=hit.event,
            others=hits[1 : _OTHERS + 1],
            origin=origin,
            commit=now.commit,
            author=author(workspace, now.commit) if credit.source == "human" else "",
            restored=now.line.restored_by.version if now.line.restored_by else None,
            credit=credit,
            edits=len(self._credits.edits(origin)) if origin else 0,
            rollouts=rollouts,
            failures=failures,
            findings=findings,
            gate=_gated(workspace, origin, self._credits.evidence(origin).left_out() if origin else ()),
            tried=self._tried(hit.rule, origin),
            earlier=forms[1:],
            later=self._later(hit, now),
            worth=known_worth(workspace, origin.run if origin else spot.run or "", hit.rule.text),
            absent=bool(origin and origin.evidence and not self._credits.evidence(origin).present),
        )

    def _tried(self, rule: Rule, origin: OriginRow | None) -> tuple[SimilarCandidate, ...]:
        run = self._place.run
        if run is None:
            return ()
        query = search_words(rule.text)
        rows = rule_queries.alike(
            self._workspace.index, run, query, is_rejected=True, limit=_TRIED_EVENTS, column="skill"
        )
        rule_words = words(rule.text)
        attempts = [
            self._attempt(event, text, rule_words)
            for event, text in rows
            if origin is None or event.commit != origin.commit
        ]
        titles = _parts(origin.title) if origin else set()
        near = (
            row for row in attempts if row.likeness >= (_SAME_TITLE if titles & _parts(row.event.title) else _ALIKE)
        )
        return tuple(sorted(near, key=lambda row: (row.event.time, row.event.step)))

    def _attempt(self, event: OriginRow, addition: str, rule_words: Sequence[str]) -> SimilarCandidate:
        if event.commit not in self._added:
            lines = [line.strip() for line in addition.split("\n") if line.strip()]
            self._added[event.commit] = AddedLines(lines, [words(normalised(line)) for line in lines])
        text, near = self._added[event.commit].nearest(rule_words)
        return SimilarCandidate(event=event, text=text, likeness=near)

    def _later(self, hit: Hit, now: Wording) -> tuple[LaterChange, ...]:
        origin, spot = now.origin, self._place
        if spot.run is None or (hit.event is not None and hit.event.kind == EventKind.REJECTED):
            return ()
        if self._history.text(hit.commit, hit.path).at(hit.rule.first) != hit.rule:
            # a heading, a field of the frontmatter, a marker: versions are only asked for rules
            return ()
        own = origin is not None and origin.run == spot.run
        if own and origin is not None and origin.version is None:
            return ()
        version = origin.version if own and origin is not None and origin.version is not None else 0
        return tuple(self._history.later_changes(spot.run, spot.skill, version, hit.rule))


@dataclass(frozen=True, slots=True)
class AddedLines:
    """The lines that an event added."""

    texts: list[str]
    words: list[tuple[str, ...]]

    def nearest(self, rule_words: Sequence[str]) -> tuple[str, float]:
        """Return the first of the lines that are most like ``rule_words``, and how much of their words is common."""
        from rapidfuzz import process  # noqa: PLC0415 - only rules that something like it was tried for need it
        from rapidfuzz.distance import Indel  # noqa: PLC0415 - as above

        best = process.extractOne(rule_words, self.words, scorer=Indel.normalized_similarity)
        return (self.texts[best[2]], similarity(best[0], rule_words)) if best else ("", 0.0)


def _behind(
    workspace: Workspace, creditor: Credits, origin: OriginRow | None, credit: Credit
) -> tuple[tuple[TrainAttempt, ...], tuple[TrajectoryPattern, ...], int]:
    """Return the rollouts that moved a rule, what analysts saw in them, and how many rollouts the step had."""
    if origin is None:
        return (), (), 0
    evidence = creditor.evidence(origin)
    if credit.source == "slow":
        trees = rule_queries.step_evidence(workspace.index, origin.run, origin.epoch, _STEPS)
        steps = (StepEvidence(workspace.repo, tree) for tree in trees)
        return with_questions(evidence.compared()[:_FAILURES], steps), (), 0
    items = set(credit.items)
    findings = tuple(finding for finding in evidence.findings() if items & set(finding.items))
    best = max((len(items & set(finding.items)) for finding in findings), default=0)
    # an item may fail in several ways: those that most of the rule's items share are what the rule is about
    closest = tuple(finding for finding in findings if len(items & set(finding.items)) == best)
    return evidence.attempts(credit.items[:_FAILURES]), closest, evidence.rollouts()


def _gated(workspace: Workspace, origin: OriginRow | None, left_out: tuple[LeftOut, ...]) -> Gated:
    if origin is None:
        return Gated()
    event: Event = history_reader.read_commit(workspace.repo, origin.commit).event
    evaluation = getattr(event, "evaluation", None)
    return Gated(
        why=event.why,
        verdict=getattr(event, "verdict", None),
        n=getattr(evaluation, "n", 0),
        not_measured=getattr(evaluation, "unneeded", 0),
        patch=getattr(event, "patch", None),
        left_out=left_out,
        cost=getattr(event, "cost", None),
    )


def _parts(title: str) -> set[str]:
    return {part.strip().casefold() for part in title.split(",") if part.strip()}
