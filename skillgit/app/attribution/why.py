"""``skillgit why``: a rule's story, from the trajectories that failed to the gate and what happened to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from shlex import quote

from rapidfuzz import fuzz, process
from rapidfuzz.distance import Indel

from skillgit.app.attribution.provenance import Credit, Credits, SkillFile, author, find_place
from skillgit.app.attribution.rule_lineage import LaterChange, RuleHistory, RuleWorth, Wording, known_worth
from skillgit.app.recorded.step_evidence import (
    DraftLook,
    StepEvidence,
    TrainAttempt,
    TrajectoryPattern,
    with_questions,
)
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.cost import Cost
from skillgit.domain.edit import LeftOut, normalised
from skillgit.domain.evaluation import LoadCounts
from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.gate_decision import Verdict
from skillgit.domain.proposal import PatchCounts
from skillgit.domain.sequence_diff import similarity, words
from skillgit.domain.skill_rules import Rule
from skillgit.errors import NotFoundError, UsageError
from skillgit.index import queries, rule_queries
from skillgit.index.rule_queries import OriginRow
from skillgit.store import history_reader, tree

_SURE = 65.0
"""From this likeness on, out of 100, words are taken to mean a rule."""
_ALL_WORDS = 90.0
"""The likeness from which on all words are in a rule."""
_BY_TITLE = 66.0
"""The likeness of a rule whose step's title, not its own text, has the words."""
_EVENTS = 40
_ASKED = 8
_SHORTEST = 3
_SKILLS = 3
_ALIKE = 0.6
"""From this share of common words on, a line that a rejected candidate added counts as an attempt at the same rule."""
_SAME_TITLE = 0.3
"""How alike two rules have to be in their words if the steps that brought them share a part of their titles."""
_FAILURES = 12
_OTHERS = 5
_STEPS = 24
"""In so many steps, the newest first, the questions behind slow guidance are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    rule: Rule
    path: str  # the file that it is in, as the repository calls it
    commit: str
    likeness: float  # how well the words fit, out of 100
    event: OriginRow | None = None  # the event of that commit, where it was looked for in history


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCandidate:
    """A rejected candidate that added something like the rule."""

    event: OriginRow
    text: str
    likeness: float  # how much of their words is common, from 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What the event that brought a rule says about itself."""

    why: str = ""
    verdict: Verdict | None = None  # what the gate compared and decided; absent if it passed none
    n: int = 0  # number of selection items; 0 where none was measured
    loads: LoadCounts | None = None  # in how many selection rollouts an agent loaded it; None for other models
    not_measured: int = 0  # never measured because the decision was settled; the score is then an upper bound
    patch: PatchCounts | None = None  # proposals merged, ranked and applied; absent where no analyst proposed any
    left_out: tuple[LeftOut, ...] = ()  # edits chosen and not applied; empty where the evidence is not here
    looks: tuple[DraftLook, ...] = ()  # what its drafts did on train items; likewise
    cost: Cost | None = None  # what it cost; absent where that is not recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A rule from the failures that it came of to what happened to it."""

    run: str  # the run; empty if the revision belongs to none
    asked: str
    revision: str
    rule: Rule
    path: str
    here: bool  # whether the revision has it; otherwise it was found in history
    found: OriginRow | None  # the event in history whose text has it; absent if the revision has it
    others: tuple[Hit, ...]  # other rules that may have been meant, the most likely first
    origin: OriginRow | None  # the event that gave the rule these words; absent for a commit that is not an event
    commit: str
    author: str  # who made that commit, where a person did
    restored: int | None  # the version that restored the rule; absent if it always stayed
    credit: Credit
    edits: int
    rollouts: int  # how many trajectories the step had; 0 if that is not keys
    failures: tuple[TrainAttempt, ...]  # the train items whose rollouts moved it, the first of them
    findings: tuple[TrajectoryPattern, ...]
    gate: Gated
    tried: tuple[SimilarCandidate, ...]  # rejected candidates that added something like it, oldest first
    earlier: tuple[Wording, ...]  # the wordings that it had before, newest first
    later: tuple[LaterChange, ...]
    worth: tuple[RuleWorth, ...]  # what notes say about the skill without it, on newer versions last
    absent: bool  # whether the evidence of the event is not here, as in a clone


def why(workspace: Workspace, query: str, revision: str = "", path: str = "") -> Story:
    """Return the story of a rule.

    ``query`` is the number of a line, or words of the rule; if no rule has them, a rule that once had them is found.
    Without a ``path``, in the skill folder or as the repository calls it, a number means ``SKILL.md``, words any file.
    """
    spot = find_place(workspace, revision, path)
    stories = Stories(workspace, RuleHistory(workspace), spot)
    if query.isdecimal():
        return stories.at_line(spot.path, int(query))
    return stories.like(query, spot.path if path else "")


def likeness(text: str, rule: str) -> float:
    """Return how well the words of ``text`` fit ``rule``, from 0 to 100; if all of them are in it, at least 90."""
    query, answer = words(text), words(rule)
    a, b = " ".join(query), " ".join(answer)
    tokens = [word for word in query if word.isalnum()]
    if tokens and all(any(own.startswith(word) for own in answer) for word in tokens):
        return _ALL_WORDS + fuzz.ratio(a, b) / 10.0
    return 0.9 * max(fuzz.token_set_ratio(a, b), fuzz.ratio(a, b), fuzz.partial_ratio(a, b) * 0.9)


def _search_words(text: str) -> tuple[str, ...]:
    """Return the words of ``text`` to ask the index for, the longest of them, for they are the rarest."""
    tokens = {word for word in re.findall(r"\w+", text.casefold()) if len(word) >= _SHORTEST}
    return tuple(sorted(tokens, key=lambda word: (-len(word), word))[:_ASKED])


def _best(hits: Iterable[Hit]) -> list[Hit]:
    return sorted((hit for hit in hits if hit.likeness >= _SURE), key=lambda hit: -hit.likeness)


class Stories:
    """The stories of the rules at one revision; what several of them need is read once."""

    def __init__(self, workspace: Workspace, history: RuleHistory, spot: SkillFile) -> None:
        self._workspace, self._history, self._place = workspace, history, spot
        self._commit = spot.resolution.commit
        self._credits = Credits.of(workspace, spot)
        self._words_of = cache(_added_words)

    def at_line(self, path: str, line: int) -> Story:
        """Return the story of the rule on a line of the file ``path``; a line that belongs to none is one itself."""
        rule = self._history.text(self._commit, path).at(line)
        if rule is None:
            root = self._workspace.repo.commit(self._commit).tree
            content = tree.read_file(self._workspace.repo, root, path) or b""
            lines = content.decode(errors="replace").removesuffix("\n").split("\n")
            if not 1 <= line <= len(lines):
                message = f"{path} has {len(lines)} lines, and none at {line}"
                raise UsageError(message, hint="skillgit blame numbers them")
            if not lines[line - 1].strip():
                raise UsageError(f"line {line} of {path} is blank", hint="skillgit blame numbers the lines")
            rule = Rule(heading="", text=lines[line - 1].strip(), first=line, last=line)
        return self._story(str(line), [Hit(rule=rule, path=path, commit=self._commit, likeness=100.0)])

    def like(self, text: str, path: str = "") -> Story:
        """Return the story of the rule that is most like ``text``; in the file ``path`` only, if one is named."""
        spot, commit = self._place, self._commit
        files = {path: self._history.text(commit, path)} if path else self._history.skill(commit, spot.skill)
        here = [
            Hit(rule=rule, path=name, commit=commit, likeness=likeness(text, rule.text))
            for name, content in files.items()
            for rule in content.rules
        ]
        hits = _best(here)
        if not hits or hits[0].likeness < _ALL_WORDS:
            standing = {hit.rule.text: hit for hit in here}
            once = _best(
                replace(standing[hit.rule.text], likeness=hit.likeness) if hit.rule.text in standing else hit
                for hit in self._in_history(text)
            )
            # a rule that had all the words comes before a present one that has some of them
            hits = once if not hits else [*(hit for hit in once if hit.likeness >= _ALL_WORDS), *hits]
        if hits:
            return self._story(text, hits)
        skill = f"{spot.skill.rpartition('/')[2]} in run {spot.run}" if spot.run else "the skill"
        # the newest run of each other skill, the newest three of them; else the log
        index, names = self._workspace.index, queries.run_names(self._workspace.index)
        runs = {folder: name for name in reversed(names) if (folder := index.skill_path(name)) != spot.skill}
        newest = sorted(runs.values(), key=names.index)[:_SKILLS]
        commands = [f"skillgit why {quote(text)} --rev {name}" for name in newest]
        hint = ", or ".join(commands) or f"skillgit log --grep {quote(text)}"
        raise NotFoundError(f"no rule of {skill}, now or before, is like '{text}'", hint=hint)

    def _in_history(self, text: str) -> Iterator[Hit]:
        """Yield rules that events brought whose text holds the words; those of versions before those of candidates."""
        spot, index, query = self._place, self._workspace.index, _search_words(text)
        keys: set[tuple[str, str]] = set()
        for is_rejected in (False, True) if spot.run is not None else ():
            events = rule_queries.alike(index, spot.run or "", query, is_rejected=is_rejected, limit=_EVENTS)
            for event, _ in events:
                additions = tuple(self._brought(event))
                parts = event.title.split(",")  # one for each of its rules, or all of it for each
                titles = parts if len(parts) == len(additions) else [event.title] * len(additions)
                for (path, rule), title in zip(additions, titles, strict=True):
                    if (path, rule.text) not in keys:
                        keys.add((path, rule.text))
                        by_title = _BY_TITLE if likeness(text, title) >= _SURE else 0.0
                        near = max(likeness(text, rule.text), by_title)
                        yield Hit(rule=rule, path=path, commit=event.commit, likeness=near, event=event)

    def _brought(self, event: OriginRow) -> Iterator[tuple[str, Rule]]:
        """Yield path and rule of what an event's text has and the one before it has not; of a seed, all of it."""
        history, skill = self._history, self._place.skill
        base = history.tracer.before(event.commit) if event.kind != EventKind.RUN_STARTED else None
        older = list(history.skill(base, skill).values()) if base else []
        for path, content in history.skill(event.commit, skill).items():
            yield from ((path, rule) for rule in content.rules if not any(rule.text in text.by_words for text in older))

    def _story(self, query: str, hits: Sequence[Hit]) -> Story:
        workspace, spot, hit = self._workspace, self._place, hits[0]
        now, *earlier = self._history.wordings(hit.commit, hit.path, hit.rule)
        credit, origin = self._credits.credit(now.line), now.origin
        evidence = self._credits.evidence(origin) if origin else None
        failures: tuple[TrainAttempt, ...] = ()
        findings: tuple[TrajectoryPattern, ...] = ()
        if origin is not None and evidence is not None and credit.source == "slow":
            trees = rule_queries.step_evidence(workspace.index, origin.run, origin.epoch, _STEPS)
            steps = (StepEvidence(workspace.repo, step) for step in trees)
            failures = with_questions(evidence.compared()[:_FAILURES], steps)
        elif evidence is not None:
            # an item may fail in several ways: those that most of the rule's items share are what the rule is about
            overlaps = [(len(set(credit.items) & set(finding.items)), finding) for finding in evidence.findings()]
            most = max((count for count, _ in overlaps), default=0)
            findings = tuple(finding for count, finding in overlaps if count == most > 0)
            failures = evidence.attempts(credit.items[:_FAILURES])
        return Story(
            run=spot.run or "",
            asked=query,
            revision=self._commit,
            rule=hit.rule,
            path=hit.path,
            here=hit.event is None,
            found=hit.event,
            others=tuple(hits[1 : _OTHERS + 1]),
            origin=origin,
            commit=now.commit,
            author=author(workspace, now.commit) if credit.source == "human" else "",
            restored=now.line.restored_by.version if now.line.restored_by else None,
            credit=credit,
            edits=len(self._credits.edits(origin)) if origin else 0,
            rollouts=evidence.rollouts() if evidence is not None and credit.source != "slow" else 0,
            failures=failures,
            findings=findings,
            gate=_gated(workspace, origin, evidence),
            tried=self._tried(hit.rule, origin),
            earlier=tuple(earlier),
            later=self._later(hit, now),
            worth=known_worth(workspace, origin.run if origin else spot.run or "", hit.rule.text),
            absent=bool(origin and origin.evidence and evidence is not None and not evidence.present),
        )

    def _tried(self, rule: Rule, origin: OriginRow | None) -> tuple[SimilarCandidate, ...]:
        run, rule_words, titles = self._place.run, words(rule.text), _parts(origin.title) if origin else set()
        if run is None:
            return ()
        rows = rule_queries.alike(
            self._workspace.index, run, _search_words(rule.text), is_rejected=True, limit=_EVENTS, column="skill"
        )
        attempts: list[SimilarCandidate] = []
        for event, addition in rows:
            if origin is not None and event.commit == origin.commit:
                continue
            # of the lines that are most like the rule the first
            lines, line_words = self._words_of(addition)
            best = process.extractOne(rule_words, line_words, scorer=Indel.normalized_similarity)
            text, near = (lines[best[2]], similarity(best[0], rule_words)) if best else ("", 0.0)
            if near >= (_SAME_TITLE if titles & _parts(event.title) else _ALIKE):
                attempts.append(SimilarCandidate(event=event, text=text, likeness=near))
        return tuple(sorted(attempts, key=lambda row: (row.event.time, row.event.step)))

    def _later(self, hit: Hit, now: Wording) -> tuple[LaterChange, ...]:
        origin, spot = now.origin, self._place
        if spot.run is None or (hit.event is not None and hit.event.kind == EventKind.REJECTED):
            return ()
        if self._history.text(hit.commit, hit.path).at(hit.rule.first) != hit.rule:
            # a heading, a field of the frontmatter, a marker: versions are only asked for rules
            return ()
        version = origin.version if origin is not None and origin.run == spot.run else 0
        return () if version is None else tuple(self._history.later_changes(spot.run, spot.skill, version, hit.rule))


def _added_words(addition: str) -> tuple[list[str], list[tuple[str, ...]]]:
    lines = [line.strip() for line in addition.split("\n") if line.strip()]
    return lines, [words(normalised(line)) for line in lines]


def _parts(title: str) -> set[str]:
    return {part.strip().casefold() for part in title.split(",") if part.strip()}


def _gated(workspace: Workspace, origin: OriginRow | None, evidence: StepEvidence | None) -> Gated:
    if origin is None or evidence is None:
        return Gated()
    event: Event = history_reader.read_commit(workspace.repo, origin.commit).event
    evaluation = event.evaluation
    return Gated(
        why=event.why,
        verdict=event.verdict,
        n=getattr(evaluation, "n", 0),
        loads=getattr(evaluation, "loads", None),
        not_measured=getattr(evaluation, "unneeded", 0),
        patch=event.patch,
        left_out=evidence.left_out(),
        looks=evidence.looks(),
        cost=event.known_cost,
    )
