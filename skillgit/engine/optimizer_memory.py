"""What optimizers are shown of the run, within a budget of tokens: steps so far, and what people said of versions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby

from skillgit.domain.event import Event
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.proposal import FINDING, LEFT_OUT, Change, Feedback, Origin, Tried
from skillgit.domain.run_state import RunState
from skillgit.domain.skill import Skill
from skillgit.domain.untrusted.json_limits import loads
from skillgit.domain.untrusted.model_text import clean_line
from skillgit.engine import evidence_files
from skillgit.engine.candidate_guards import skill_tokens
from skillgit.engine.earlier_attempts import pair_lines, part_lines
from skillgit.engine.prompt_sections import (
    CHARACTERS_PER_TOKEN,
    memory_section,
    skill_section,
    tagged,
    template_section,
)
from skillgit.engine.session import Session
from skillgit.engine.trajectory_elision import elide
from skillgit.plugin.redaction import redact

HISTORY_TOKENS = 3000  # the budget where the settings name none
CHANGES_SHOWN = 24  # changed lines of one step that are shown; a rewrite may have many
REPEATED = 3  # changed lines in a row that are shown where the skill has them now; of more, the first and the number


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What a history refers to instead of saying it again, and what the run has recorded besides its events.

    Attributes:
        lines: The lines of the skill that is shown with the history.
        trials: Returns what is known of the train items of a step, and of parts of its patch, in lines.
    """

    lines: frozenset[str] = frozenset()
    trials: Callable[[int], Sequence[str]] = lambda _: ()

    @classmethod
    def of(cls, session: Session, skill: Skill) -> Background:
        lines = frozenset(clean_line(line) for _, text in skill.text_files() for line in text.splitlines())

        def trials(step: int) -> list[str]:
            items = pair_lines(session, step) if session.settings.gradient.contrast else []
            return [
                *(f"part: {line}" for line in part_lines(session.attempts(), step)),
                *(f"train: {line}" for line in items),
            ]

        return cls(lines=lines, trials=trials)


_NOTHING = Background()


def history_section(steps: Sequence[Event], max_tokens: int = HISTORY_TOKENS, background: Background = _NOTHING) -> str:
    """Return what was tried, newest first, in about ``max_tokens``; the newest step always, its epoch with reasons.

    Findings of earlier steps are left out: an analyst has its own, and they were most of a long history.
    """
    newest = max((step.epoch for step in steps), default=0)
    if not steps:
        return ""
    return tagged("history", _told(steps, max_tokens, background, in_full=lambda step: step.epoch == newest))


def standing_sections(
    session: Session, state: RunState, skill: Skill, *, whole: bool = False, between: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the skill (as the writer of a ``whole`` document sees it), the optimizer's memory and the steps so far.

    What changes less often comes first, so that prompts of a run share as long a beginning as they can: the sections
    ``between`` change less often than the steps so far.
    """
    own = template_section(skill) if whole else skill_section(skill, session.settings.optimizer)
    room = session.settings.gradient.max_history_tokens
    return (
        "\n".join(filter(None, (own, _length_section(session, skill)))),
        memory_section(state.optimizer_memory),
        *between,
        history_section(state.memory, room, Background.of(session, skill)),
    )


_SHORT_OF_ROOM = 0.9  # share of the allowed length from which on an optimizer is shown it


def _length_section(session: Session, skill: Skill) -> str:
    """Return how long the skill is and may be, where that is about to decide what can be proposed."""
    length, limit = skill_tokens(skill), session.settings.optimizer.max_skill_tokens
    if length <= limit * _SHORT_OF_ROOM:
        return ""
    return tagged(
        "length",
        f"The skill has about {length:,} tokens, and {limit:,} are allowed. A longer text than"
        f" {max(length, limit):,} tokens is discarded: shorten or replace rules, and add nothing without taking as much"
        " away.",
    )


def record_section(
    steps: Sequence[Event], max_tokens: int, background: Background = _NOTHING, *, has_findings: bool = False
) -> str:
    """Return what the steps of an epoch tried, and where ``has_findings``, what their analysts had found."""
    text = _told(steps, max_tokens, background, in_full=lambda _: True, has_findings=has_findings)
    return tagged("record", text, steps=len(steps))


def _told(
    steps: Sequence[Event],
    max_tokens: int,
    background: Background,
    *,
    in_full: Callable[[Event], bool],
    has_findings: bool = False,
) -> str:
    """Return the newest steps in full, then older ones by their titles, as far as they fit."""
    lines: list[str] = []
    room = max_tokens * CHARACTERS_PER_TOKEN
    for step in reversed(steps):
        trials = background.trials(step.step) if step.origin is Origin.STEP and not step.by_hand else ()
        text = _step(step, background, in_full=in_full(step), trials=trials, has_findings=has_findings)
        if lines and len(text) + 1 > room:
            text = _step(step, background, in_full=in_full(step))
        if lines and len(text) + 1 > room:
            text = _head(step)
        if lines and len(text) + 1 > room:
            rest = len(steps) - len(lines)
            lines.append(f"[... {rest} earlier {'step' if rest == 1 else 'steps'} left out ...]")
            break
        room -= len(text) + 1
        lines.append(text)
    return "\n".join(lines)


def _head(step: Event) -> str:
    if step.kind is EventKind.EDITED:
        return f"a person edited the skill by hand after step {step.step} (epoch {step.epoch}): {step.title}"
    meta = step.origin is Origin.META
    name = f"epoch {step.epoch} reflection" if meta else f"step {step.step} (epoch {step.epoch})"
    if step.by_hand:
        name = f"{step.origin} that a person asked for after step {step.step} (epoch {step.epoch})"
    if step.decision is None:
        return f"{name} skipped: {step.title}"
    bound = "at most " if step.is_bound else ""
    return f"{name} {step.decision} {bound}{step.verdict.score:.4f} against {step.verdict.current:.4f}: {step.title}"


def _step(
    step: Event, background: Background, *, in_full: bool, trials: Sequence[str] = (), has_findings: bool = False
) -> str:
    lines = [_head(step)]
    if in_full:
        paragraphs = (text for text in step.why.split("\n\n") if text and (has_findings or not FINDING.match(text)))
        lines += [text if text.startswith(LEFT_OUT) else f"because: {text}" for text in paragraphs]
    lines += _change_lines(step.changes, background.lines)
    if step.fixed or step.broken or step.is_tie:
        score = "equal score" if step.is_tie else "held out"
        lines.append(f"{score}: {len(step.fixed)} items fixed, {len(step.broken)} broken")
    return "\n  ".join([*lines, *trials])


FEEDBACK_TOKENS = 1000  # about how long the section may be; the newest feedback comes first
_INTRODUCTION = (
    "People who read or used versions of this skill wrote the following, the newest first. Take it as advice on what"
    " matters and what to look for; propose only what the trajectories support."
)


def feedback_section(feedback: Sequence[Feedback]) -> str:
    """Return what people said, newest first, or nothing; what does not fit is left out in the open."""
    if not feedback:
        return ""
    room = FEEDBACK_TOKENS * CHARACTERS_PER_TOKEN
    texts = [note.text.strip() for note in reversed(feedback)]
    texts[0] = elide(texts[0], room)
    count, rest = _newest(texts, room, "note")
    dates = (note.time.date().isoformat() for note in reversed(feedback))
    notes = [tagged("note", text, date=date) for text, date in zip(texts[:count], dates, strict=False)]
    return tagged("feedback", "\n".join([_INTRODUCTION, *notes, *rest]))


def _newest(texts: Sequence[str], room: int, noun: str) -> tuple[int, list[str]]:
    """Return how many of ``texts`` fit into ``room`` characters, the first in any case, and a line on the others."""
    for index, text in enumerate(texts):
        if index and len(text) > room:
            rest = len(texts) - index
            return index, [f"[... {rest} earlier {noun if rest == 1 else f'{noun}s'} left out ...]"]
        room -= len(text)
    return len(texts), []


def feedback_file(feedback: Sequence[Feedback]) -> evidence_files.Evidence:
    """Return ``feedback.json``, what people had said when the step began; no file if they had said nothing."""
    rows = [
        {
            "id": note.id,
            "commit": note.commit,
            "author": note.author,
            "time": note.time.isoformat().replace("+00:00", "Z"),
            "text": redact(note.text),
        }
        for note in feedback
    ]
    return {"feedback.json": evidence_files.json_file(rows)} if rows else {}


TRIED_FILE = "tried.json"
TRIED_TOKENS = 1000  # about how long the section may be; the newest candidate comes first, at any length
_INTRODUCTION_OF_OTHERS = (
    "Before this run began, the following changes were tried on its first version or on one of those before, and a gate"
    " rejected each of them. Propose none of them again unless the trajectories show that it fits now."
)


def tried_section(attempts: Sequence[Tried]) -> str:
    """Return what was tried, newest first, or nothing; what does not fit is left out in the open."""
    if not attempts:
        return ""
    texts = [_tried_lines(attempt) for attempt in reversed(attempts)]
    count, rest = _newest(texts, TRIED_TOKENS * CHARACTERS_PER_TOKEN, "candidate")
    return tagged("tried_before", "\n".join([_INTRODUCTION_OF_OTHERS, *texts[:count], *rest]))


def tried_file(attempts: Sequence[Tried]) -> evidence_files.Evidence:
    return {TRIED_FILE: evidence_files.json_file([asdict(attempt) for attempt in attempts])} if attempts else {}


def read_tried(files: Mapping[str, bytes] | None) -> tuple[Tried, ...]:
    content = (files or {}).get(TRIED_FILE)
    rows = loads(content) if content else []
    return tuple(Tried(**row | {"changes": tuple(Change(**change) for change in row["changes"])}) for row in rows)


def _tried_lines(row: Tried) -> str:
    bound = "at most " if row.bound else ""
    lines = [f"run {row.run}, step {row.step}: {row.title}; scored {bound}{row.score:.4f} against {row.current:.4f}"]
    return "\n  ".join(lines + _change_lines(row.changes))


def _change_lines(changes: Sequence[Change], standing: frozenset[str] = frozenset()) -> list[str]:
    """Return the changed lines; of a long stretch that the skill has now, as ``standing`` says, only the first."""
    lines: list[str] = []
    for (sign, is_known), stretch in groupby(changes, key=lambda change: (change.sign, change.text in standing)):
        texts = [f"{sign} {change.text}" for change in stretch]
        rest = len(texts) - 1
        lines += (
            [texts[0], f"[{sign} {rest} lines more that the skill has]"] if is_known and rest >= REPEATED else texts
        )
    rest = len(lines) - CHANGES_SHOWN
    return [*lines[:CHANGES_SHOWN], f"[... {rest} changed lines left out ...]"] if rest > 0 else lines
