"""A rule's story on one screen: what failed, who proposed it, what the gate said, what happened to it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, assert_never

from skillgit.domain.address import version_label
from skillgit.domain.event_kinds import EventKind
from skillgit.index.rule_queries import OriginRow
from skillgit.view import event_marks as cells
from skillgit.view import numbers
from skillgit.view.event_marks import Entry
from skillgit.view.search import looked
from skillgit.view.show import gate, left_out
from skillgit.view.surface import Screen, Style
from skillgit.view.text import fit, inert, one_line, under, wrap

if TYPE_CHECKING:
    from skillgit.app.attribution.rule_lineage import LaterChange
    from skillgit.app.attribution.why import Story
    from skillgit.app.recorded.step_evidence import TrainAttempt

_LABEL, _UNDER = 9, 10
_LEAST, _WIDEST = 24, 100
_SHORT = 200
_FAILURES_SHOWN, _ITEMS_SHOWN = 4, 12
_DID = {"failure": "which failed", "success": "which went well"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """One line of the story before it is broken: a label, a second label, the text; a painted one stays ``whole``."""

    label: str = ""
    text: str
    under: str = ""
    whole: bool = False


def lines(story: Story, screen: Screen, now: datetime) -> Iterator[str]:
    paragraphs = (
        (_rule(story, screen),),
        (_brought(story, screen, now),),
        (_loading(story), _because(story, screen), _seen(story), _chosen(story, screen), _flips(story, screen)),
        (
            _tried(story, screen),
            _under("before", _earlier(story, screen)),
            _later(story, screen),
            _worth(story),
            _cost(story, screen),
        ),
    )
    has_begun = False
    for paragraph in paragraphs:
        facts = [fact for part in paragraph for fact in part]
        if facts and has_begun:
            yield ""
        for fact in facts:
            has_begun = True
            yield from _shown(fact, screen)


def _shown(fact: _Fact, screen: Screen) -> Iterator[str]:
    margin = f"  {fact.under.ljust(_UNDER)}" if fact.under else ""
    columns = max(_LEAST, min(screen.width, _WIDEST) - _LABEL - len(margin)) if screen.width else 0
    lines = [fact.text] if fact.whole else list(wrap(fact.text, columns)) or [""]
    front = screen.paint(Style.FAINT, fact.label.ljust(_LABEL) + margin)
    for line in lines:
        yield f"{front}{line}".rstrip()
        front = " " * (_LABEL + len(margin))


def _rule(story: Story, screen: Screen) -> Iterator[_Fact]:
    yield from _under("rule", inert(story.rule.text).split("\n"))
    heading = f', under "{inert(story.rule.heading)}"' if story.rule.heading else ""
    first, last = story.rule.first, story.rule.last
    lines = str(first) if first == last else f"{first}-{last}"
    where = f"{story.path} line {lines}{heading}"
    yield _Fact(text=where if story.here else f"not in this text; {where} of {_name(story.found, story)}")
    yield from _under("or", _others(story, screen))


def _others(story: Story, screen: Screen) -> Iterator[str]:
    for match in story.others:
        position = f"line {match.rule.first}" if match.event is None else _name(match.event, story)
        first_line, *_ = match.rule.text.split("\n")
        yield f"{position}: {_short(first_line, screen)}"


def _under(label: str, texts: Iterable[str]) -> Iterator[_Fact]:
    return (_Fact(label=name, text=text) for name, text in under(label, texts))


def _brought(story: Story, screen: Screen, now: datetime) -> Iterator[_Fact]:
    origin = story.origin
    if origin is None:
        source = f"{story.author}, a person" if story.author else "the seed: the skill had it before the run began"
        yield _Fact(label="from", text=inert(screen.dotted((source, numbers.short(story.commit)))))
        return
    entry = Entry.of_origin(origin)
    event = f"{screen.paint(Style.STRONG, _name(origin, story))}  {cells.outcome(entry, screen)}"
    yield _Fact(label="from", text=event, whole=True)
    yield _Fact(text=inert(cells.title(entry)))
    parts = (
        origin.run,
        f"epoch {origin.epoch}" if origin.epoch else "",
        f"step {origin.step}" if origin.step else "",
        numbers.ago(origin.time, now),
        numbers.short(origin.commit),
        f"taken from {origin.of}" if origin.of else "",
        f"by {inert(story.author)}" if story.author else "",
    )
    yield _Fact(text=screen.dotted(parts))
    if story.restored is not None:
        yield _Fact(text=f"it had gone, and {version_label(story.restored)} brought it back")


def _loading(story: Story) -> Iterator[_Fact]:
    if story.gate.loads is not None:
        yield _Fact(label="loading", text=story.gate.loads.sentence)


def _because(story: Story, screen: Screen) -> Iterator[_Fact]:
    credit = story.credit
    if credit.edit is None and not story.failures:
        return
    support = max(len(credit.items), credit.support or 0)
    slow = credit.source == "slow"
    count = numbers.plural(support, "train item" if slow else "rollout")
    if story.rollouts:
        count = f"{support} of the step's {numbers.plural(story.rollouts, 'rollout')}"
    did = "which failed when two epochs were compared" if slow else _DID.get(credit.source, "which analysts read")
    edit = f"; edit {credit.edit + 1} of {story.edits}, {credit.op}" if credit.edit is not None else ""
    yield _Fact(label="because", text=f"{count}, {did}{edit}")
    for attempt in story.failures[:_FAILURES_SHOWN]:
        yield from _attempt(attempt, screen)
    if len(credit.items) > _FAILURES_SHOWN and story.failures:
        rest = credit.items[_FAILURES_SHOWN:]
        yield _Fact(text=f"and {len(rest)} more: {' '.join(rest)}")


def _attempt(attempt: TrainAttempt, screen: Screen) -> Iterator[_Fact]:
    is_solved = attempt.hard is not None and attempt.hard >= 1.0
    style, sign = (Style.ACCEPTED, screen.glyphs.passed) if is_solved else (Style.REJECTED, screen.glyphs.rejected)
    yield _Fact(text=f"{screen.paint(style, sign)} {inert(attempt.item)}", whole=True)
    if attempt.question:
        yield _Fact(under="asked", text=_short(attempt.question, screen))
    yield _Fact(under="answered", text=_short(attempt.answer, screen) or "nothing")
    if attempt.feedback:
        yield _Fact(under="scorer", text=_short(attempt.feedback, screen))


def _seen(story: Story) -> Iterator[_Fact]:
    of = f" of {story.rollouts}" if story.rollouts else ""
    findings = (f"{one_line(finding.pattern)} ({finding.count}{of})" for finding in story.findings)
    yield from _under("analysts", findings)
    reason = story.gate.why.split("\n\n")[0]
    if reason:
        yield _Fact(label="reason", text=one_line(reason))


def _chosen(story: Story, screen: Screen) -> Iterator[_Fact]:
    patch = story.gate.patch
    if patch is not None:
        counts = (
            f"{numbers.plural(patch.merged, 'proposal')} merged",
            f"{patch.ranked} chosen",
            f"{patch.applied} applied",
            "no budget" if patch.budget is None else f"budget {patch.budget}",
        )
        part = ", a part of a patch that was refused as a whole" if patch.salvaged else ""
        yield _Fact(label="edits", text=screen.dotted(counts) + part)
        yield from (_Fact(label=label, text=text) for label, text in left_out(story.gate.left_out, patch))
    yield from (_Fact(label=label, text=text) for label, text in under("looks", map(looked, story.gate.looks)))
    verdict = story.gate.verdict
    if verdict is not None:
        yield _Fact(label="gate", text=gate(verdict, screen, bound=story.gate.not_measured > 0))


def _flips(story: Story, screen: Screen) -> Iterator[_Fact]:
    for label, items in (("fixed", story.credit.fixed), ("broken", story.credit.broken)):
        if items:
            names = numbers.ids(items, screen, _ITEMS_SHOWN)
            yield _Fact(label=label, text=f"{numbers.plural(len(items), 'item')}: {names}")
        elif story.gate.verdict is not None and not story.gate.not_measured:
            yield _Fact(label=label, text="none")
    if rest := story.gate.not_measured:
        counts = (len(items) for items in (story.credit.fixed, story.credit.broken))
        yield _Fact(label="items", text=numbers.not_measured(story.gate.n, rest, *counts))


def _tried(story: Story, screen: Screen) -> Iterator[_Fact]:
    for number, trial in enumerate(story.tried):
        event = trial.event
        when = "later" if story.origin is not None and event.step > story.origin.step else "before"
        sign = screen.paint(Style.REJECTED, screen.glyphs.rejected)
        score = f"{cells.score(Entry.of_origin(event)).strip()} {numbers.delta(event.delta)}".rstrip()
        text = f"{sign} {_name(event, story)}, {when}, rejected with {score}"
        yield _Fact(label="" if number else "tried", text=text, whole=True)
        yield _Fact(under="as", text=_short(trial.text, screen))


def _earlier(story: Story, screen: Screen) -> Iterator[str]:
    for wording in story.earlier:
        who = _name(wording.origin, story) if wording.origin else "the seed"
        yield f"{who} said: {_short(wording.rule.text, screen)}"


def _later(story: Story, screen: Screen) -> Iterator[_Fact]:
    if not story.later and story.origin is not None and story.origin.kind == EventKind.REJECTED:
        yield _Fact(label="since", text="no version ever had it")
    yield from _under("since", (_fate(change, screen) for change in story.later))


def _fate(change: LaterChange, screen: Screen) -> str:
    title = f" ({inert(cells.title(Entry.of_origin(change.origin)))})" if change.origin else ""
    version, text = version_label(change.version), _short(change.rule.text, screen) if change.rule else ""
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


def _worth(story: Story) -> Iterator[_Fact]:
    for number, ablation in enumerate(story.worth):
        name = "the candidate" if ablation.version is None else version_label(ablation.version)
        items = numbers.plural(ablation.n, f"{ablation.split} item")
        text = f"{name} without it: {numbers.score(ablation.score)} ({numbers.delta(ablation.delta)}) on {items}"
        flips = f"{ablation.fixed} fixed, {ablation.broken} broken"
        yield _Fact(label="" if number else "worth", text=inert(f"{ablation.worth}; {text}, {flips}"))


def _cost(story: Story, screen: Screen) -> Iterator[_Fact]:
    if story.gate.cost is not None and story.gate.cost.calls:
        whole = f", for all of {_name(story.origin, story)}"
        yield _Fact(label="cost", text=numbers.cost(story.gate.cost, screen) + whole)


def _short(text: str, screen: Screen) -> str:
    return fit(one_line(text), _SHORT, screen.glyphs.ellipsis)


def _name(origin: OriginRow | None, story: Story) -> str:
    """Return what an event is called on the command line; those of another run with their run."""
    if origin is None:
        return numbers.short(story.commit)
    return origin.address.seen_from(story.run)
