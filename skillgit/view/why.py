"""A rule's story on one screen: what failed, who proposed it, what the gate said, what happened to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple, assert_never

from skillgit.app.attribution.rule_lineage import LaterChange
from skillgit.app.attribution.why import Story
from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.index.rule_queries import OriginRow
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.event_marks import Entry
from skillgit.view.search import looked
from skillgit.view.show import gate as verdict_line
from skillgit.view.show import left_out
from skillgit.view.surface import Screen, Style
from skillgit.view.text import fit, inert, one_line, under, wrap

_LABEL, _UNDER = 9, 10
_LEAST, _WIDEST = 24, 100
_SHORT = 200
_FAILURES_SHOWN, _ITEMS_SHOWN = 4, 12
_DID = {"failure": "which failed", "success": "which went well"}


class _Fact(NamedTuple):
    """One line of the story before it is broken: a label, the text, a second label; a painted one stays ``whole``."""

    label: str
    text: str
    second: str = ""
    whole: bool = False


def lines(story: Story, screen: Screen, now: datetime) -> Iterator[str]:
    telling = _Telling(story, screen)
    paragraphs = (telling.rule(), telling.event(now), telling.reasons(), telling.fate())
    has_lines = False
    for paragraph in paragraphs:
        facts = list(paragraph)
        if facts and has_lines:
            yield ""
        has_lines = has_lines or bool(facts)
        for fact in facts:
            margin = f"  {fact.second.ljust(_UNDER)}" if fact.second else ""
            columns = max(_LEAST, min(screen.width, _WIDEST) - _LABEL - len(margin)) if screen.width else 0
            front = screen.paint(Style.FAINT, fact.label.ljust(_LABEL) + margin)
            for line in [fact.text] if fact.whole else list(wrap(fact.text, columns)) or [""]:
                yield f"{front}{line}".rstrip()
                front = " " * (_LABEL + len(margin))


def _under(label: str, texts: Iterable[str]) -> Iterator[_Fact]:
    return (_Fact(name, text) for name, text in under(label, texts))


class _Telling:
    """A story in facts, paragraph by paragraph."""

    def __init__(self, story: Story, screen: Screen) -> None:
        self._story, self._screen, self._gate = story, screen, story.gate

    def rule(self) -> Iterator[_Fact]:
        story, first, last = self._story, self._story.rule.first, self._story.rule.last
        yield from _under("rule", inert(story.rule.text).split("\n"))
        heading = f', under "{inert(story.rule.heading)}"' if story.rule.heading else ""
        where = f"{story.path} line {first if first == last else f'{first}-{last}'}{heading}"
        yield _Fact("", where if story.here else f"not in this text; {where} of {self._name(story.found)}")
        positions = [f"line {hit.rule.first}" if hit.event is None else self._name(hit.event) for hit in story.others]
        texts = (self._short(hit.rule.text.partition("\n")[0]) for hit in story.others)
        yield from _under("or", map("{}: {}".format, positions, texts))

    def event(self, now: datetime) -> Iterator[_Fact]:
        story, screen, origin = self._story, self._screen, self._story.origin
        if origin is None:
            source = f"{story.author}, a person" if story.author else "the seed: the skill had it before the run began"
            yield _Fact("from", inert(screen.dotted((source, numbers.short(story.commit)))))
            return
        entry = Entry.of_origin(origin)
        name = screen.paint(Style.STRONG, self._name(origin))
        yield _Fact("from", f"{name}  {cells.outcome(entry, screen)}", whole=True)
        yield _Fact("", inert(cells.title(entry)))
        parts = (
            origin.run,
            f"epoch {origin.epoch}" if origin.epoch else "",
            f"step {origin.step}" if origin.step else "",
            numbers.ago(origin.time, now),
            numbers.short(origin.commit),
            f"taken from {origin.of}" if origin.of else "",
            f"by {inert(story.author)}" if story.author else "",
        )
        yield _Fact("", screen.dotted(parts))
        if story.restored is not None:
            yield _Fact("", f"it had gone, and {version_label(story.restored)} brought it back")

    def reasons(self) -> Iterator[_Fact]:
        """Yield what failed, what analysts saw in it, which edits were chosen, and what the gate said."""
        story, screen, gate = self._story, self._screen, self._gate
        if gate.loads is not None:
            yield _Fact("loading", gate.loads.sentence)
        yield from self._failures()
        of = f" of {story.rollouts}" if story.rollouts else ""
        findings = (f"{one_line(finding.pattern)} ({finding.count}{of})" for finding in story.findings)
        yield from _under("analysts", findings)
        if reason := gate.why.split("\n\n")[0]:
            yield _Fact("reason", one_line(reason))
        if (patch := gate.patch) is not None:
            counts = (
                f"{numbers.plural(patch.merged, 'proposal')} merged",
                f"{patch.ranked} chosen",
                f"{patch.applied} applied",
                "no budget" if patch.budget is None else f"budget {patch.budget}",
            )
            part = ", a part of a patch that was refused as a whole" if patch.salvaged else ""
            yield _Fact("edits", screen.dotted(counts) + part)
            yield from (_Fact(label, text) for label, text in left_out(gate.left_out, patch))
        yield from _under("looks", map(looked, gate.looks))
        if gate.verdict is not None:
            yield _Fact("gate", verdict_line(gate.verdict, screen, bound=gate.not_measured > 0))
        flips = {"fixed": story.credit.fixed, "broken": story.credit.broken}
        for label, items in flips.items():
            if items:
                names = numbers.ids(items, screen, _ITEMS_SHOWN)
                yield _Fact(label, f"{numbers.plural(len(items), 'item')}: {names}")
            elif gate.verdict is not None and not gate.not_measured:
                yield _Fact(label, "none")
        if gate.not_measured:
            yield _Fact("items", numbers.not_measured(gate.n, gate.not_measured, *map(len, flips.values())))

    def _failures(self) -> Iterator[_Fact]:
        story, screen, credit = self._story, self._screen, self._story.credit
        if credit.edit is None and not story.failures:
            return
        support, is_slow = max(len(credit.items), credit.support or 0), credit.source == "slow"
        count = numbers.plural(support, "train item" if is_slow else "rollout")
        if story.rollouts:
            count = f"{support} of the step's {numbers.plural(story.rollouts, 'rollout')}"
        did = (
            "which failed when two epochs were compared" if is_slow else _DID.get(credit.source, "which analysts read")
        )
        edit = f"; edit {credit.edit + 1} of {story.edits}, {credit.op}" if credit.edit is not None else ""
        yield _Fact("because", f"{count}, {did}{edit}")
        for attempt in story.failures[:_FAILURES_SHOWN]:
            is_solved = attempt.hard is not None and attempt.hard >= 1.0
            style, sign = (
                (Style.ACCEPTED, screen.glyphs.passed) if is_solved else (Style.REJECTED, screen.glyphs.rejected)
            )
            yield _Fact("", f"{screen.paint(style, sign)} {inert(attempt.item)}", whole=True)
            if attempt.question:
                yield _Fact("", self._short(attempt.question), "asked")
            yield _Fact("", self._short(attempt.answer) or "nothing", "answered")
            if attempt.feedback:
                yield _Fact("", self._short(attempt.feedback), "scorer")
        if len(credit.items) > _FAILURES_SHOWN and story.failures:
            rest = credit.items[_FAILURES_SHOWN:]
            yield _Fact("", f"and {len(rest)} more: {' '.join(rest)}")

    def fate(self) -> Iterator[_Fact]:
        """Yield what was tried like it, what it said before, what happened to it, and what it is worth."""
        story, screen = self._story, self._screen
        for number, trial in enumerate(story.tried):
            event = trial.event
            when = "later" if story.origin is not None and event.step > story.origin.step else "before"
            sign = screen.paint(Style.REJECTED, screen.glyphs.rejected)
            score = f"{cells.score(Entry.of_origin(event)).strip()} {numbers.delta(event.delta)}".rstrip()
            text = f"{sign} {self._name(event)}, {when}, rejected with {score}"
            yield _Fact("" if number else "tried", text, whole=True)
            yield _Fact("", self._short(trial.text), "as")
        speakers = [self._name(wording.origin) if wording.origin else "the seed" for wording in story.earlier]
        sayings = (self._short(wording.rule.text) for wording in story.earlier)
        yield from _under("before", map("{} said: {}".format, speakers, sayings))
        if not story.later and story.origin is not None and story.origin.kind == EventKind.REJECTED:
            yield _Fact("since", "no version ever had it")
        yield from _under("since", map(self._later, story.later))
        for number, worth in enumerate(story.worth):
            name = "the candidate" if worth.version is None else version_label(worth.version)
            items = numbers.plural(worth.n, f"{worth.split} item")
            text = f"{name} without it: {numbers.score(worth.score)} ({numbers.delta(worth.delta)}) on {items}"
            flips = f"{worth.fixed} fixed, {worth.broken} broken"
            yield _Fact("" if number else "worth", inert(f"{worth.worth}; {text}, {flips}"))
        if self._gate.cost is not None and self._gate.cost.calls:
            whole = f", for all of {self._name(story.origin)}"
            yield _Fact("cost", numbers.cost(self._gate.cost, screen) + whole)

    def _later(self, change: LaterChange) -> str:
        title = f" ({inert(cells.title(Entry.of_origin(change.origin)))})" if change.origin else ""
        version, text = version_label(change.version), self._short(change.rule.text) if change.rule else ""
        match change.fate:
            case "removed":
                return f"{version} removed it{title}"
            case "left":
                base = version_label(change.origin.base) if change.origin else "an older version"
                return f"it is gone with {version}, which was made of {base}{title}"
            case "reworded":
                return f"{version} reworded it{title}: {text}"
            case "stands":
                return f"it is in {version}, the newest version, line {change.rule.first if change.rule else ''}"
            case _:
                assert_never(change.fate)

    def _short(self, text: str) -> str:
        return fit(one_line(text), _SHORT, self._screen.glyphs.ellipsis)

    def _name(self, origin: OriginRow | None) -> str:
        """Return what an event is called on the command line; those of another run with their run."""
        return numbers.short(self._story.commit) if origin is None else origin.address.seen_from(self._story.run)
