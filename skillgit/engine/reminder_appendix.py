"""Skill-aware reflection: lapses of the target become reminders in the appendix of the candidate.

Analysts tell defects of the skill, which ask for edits, from lapses, which ask for reminders. New reminders are part of
the candidate before it is measured, so that the gate judges them like everything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillgit.domain.edit import EditSource
from skillgit.domain.protected_regions import AppendixCounts, appendix_notes, has_marker, with_appendix
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.untrusted.model_text import clean_line
from skillgit.engine.candidate_guards import leak_in
from skillgit.engine.prompt_sections import conversation, prompt, skill_section, tagged
from skillgit.engine.questions import ask
from skillgit.engine.reply_schemas import Notes, ReplyModel
from skillgit.plugin.backend import system
from skillgit.plugin.redaction import MASK, redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillgit.domain.skill import Skill
    from skillgit.domain.untrusted.model_text import SkillText
    from skillgit.engine.reply_schemas import Analysis
    from skillgit.engine.session import Session
    from skillgit.plugin.backend import Message

NOTE_LENGTH = 240  # characters of a reminder at most; longer ones are cut at a word
_BULLET = re.compile(r"^(?:[-*+\u2022]|\d+[.)])\s+")


class NotesReply(ReplyModel):
    reasoning: str = ""
    notes: Notes


@dataclass(frozen=True, slots=True, kw_only=True)
class Appendix:
    notes: tuple[SkillText, ...]
    counts: AppendixCounts  # how many are new, and how many there are

    def joined(self, candidate: Skill) -> Skill:
        return candidate.with_text(DOCUMENT, with_appendix(candidate.document, self.notes))


def aware(session: Session, source: EditSource, messages: Sequence[Message]) -> list[Message]:
    """Return an analyst's prompt that asks for reminders too, where skill-aware reflection is on for its ``source``."""
    name = "lapses_in_failures" if source is EditSource.FAILURE else "lapses_in_successes"
    return extended(messages, name) if listens(session, source) else list(messages)


def extended(messages: Sequence[Message], name: str) -> list[Message]:
    first, *rest = messages
    return [system(f"{first.text.rstrip()}\n\n{prompt(name)}"), *rest]


def listens(session: Session, source: EditSource) -> bool:
    optimizer = session.settings.optimizer
    is_relevant = source is EditSource.FAILURE or optimizer.skill_aware_appendix_source == "both"
    return optimizer.use_skill_aware_reflection and is_relevant


def notes_of(session: Session, replies: Iterable[tuple[EditSource, Analysis]]) -> tuple[SkillText, ...]:
    return tuple(note for source, reply in replies if listens(session, source) for note in reply.notes)


async def remember(session: Session, candidate: Skill, notes: Sequence[SkillText], *, step: int) -> Appendix | None:
    """Return ``candidate`` with the new ones of ``notes`` in its appendix; None if there is none."""
    standing = appendix_notes(candidate.document)
    additions = fresh(standing, (note for note in map(cleaned, notes) if _is_usable(session, candidate, note)))
    if not additions:
        return None
    total, before = (*standing, *additions), 0
    threshold = session.settings.optimizer.skill_aware_consolidate_threshold
    if threshold and len(total) > threshold:
        shorter = await _consolidated(session, candidate, total, step=step)
        total, before = (shorter, len(total)) if shorter else (total, 0)
    appendix = Appendix(notes=total, counts=AppendixCounts(added=len(additions), total=len(total), consolidated=before))
    if appendix_notes(appendix.joined(candidate).document) != total or total == standing:
        # Another region that is never closed reaches over the appendix, or everything new was put together again.
        return None
    return appendix


async def _consolidated(
    session: Session, skill: Skill, notes: Sequence[SkillText], *, step: int
) -> tuple[SkillText, ...]:
    """Return a shorter list of reminders; nothing if the optimizer has none that is shorter and can be used."""
    section = tagged("notes", "\n".join(f"- {note}" for note in notes), count=len(notes))
    messages = conversation("consolidate_notes", None, (skill_section(skill, session.settings.optimizer), section))
    reply = await ask(session, "appendix", messages, NotesReply, draw=(step,))
    if reply is None:
        return ()
    short_list = fresh((), (note for note in map(cleaned, reply.notes) if _is_usable(session, skill, note)))
    return short_list if len(short_list) < len(notes) else ()


def fresh(standing: Iterable[str], notes: Iterable[SkillText]) -> tuple[SkillText, ...]:
    """Return those of ``notes`` that do not stand yet, each once, in their order."""
    keys = {note_key(note) for note in standing}
    fresh_notes: list[SkillText] = []
    for note in notes:
        if note_key(note) not in keys:
            keys.add(note_key(note))
            fresh_notes.append(note)
    return tuple(fresh_notes)


def note_key(note: str) -> str:
    """Return what two reminders that say the same have in common: no case, surplus space, or punctuation at the end."""
    return " ".join(note.casefold().split()).rstrip(" .;:,_-")


def cleaned(note: SkillText) -> SkillText:
    """Return ``note`` as one clean line without bullets."""
    line = clean_line(note)
    while match := _BULLET.match(line):
        line = line[match.end() :]
    return note.reworded(line if len(line) <= NOTE_LENGTH else f"{line[: NOTE_LENGTH - 1].rsplit(' ', 1)[0]}…")


def _is_usable(session: Session, skill: Skill, note: SkillText) -> bool:
    if not note_key(note) or has_marker(note) or MASK in note or redact(note) != note:
        return False
    return leak_in(session, skill, note) is None
