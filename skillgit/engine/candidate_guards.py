"""What a candidate must not do, found out before it costs a rollout: break the frame, or quote what is held out."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

from skillgit.domain.address import version_label
from skillgit.domain.edit import QUARANTINED, normalised
from skillgit.domain.evaluation import Split
from skillgit.domain.gate_decision import Decision
from skillgit.domain.leaks import build_index, find_leak
from skillgit.domain.proposal import Origin
from skillgit.domain.protected_regions import frontmatter
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.text_diff import changed_lines
from skillgit.engine.prompt_sections import CHARACTERS_PER_TOKEN
from skillgit.plugin.environment import secrets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from skillgit.domain.edit import Edit, EditReport
    from skillgit.domain.leaks import Leak, SecretIndex
    from skillgit.domain.proposal import Change
    from skillgit.domain.run_state import RunState, StepMemory
    from skillgit.domain.skill import Skill
    from skillgit.engine.session import Session


ALIKE = 95.0  # likeness of two changes, of 100, from which on the later one is a repetition

_DECISIVE = re.compile(r"\b(?:no|not|never|none|nor|without|only|unless|except|always|\w+n['\u2019]t|\d[\d.,]*)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a candidate is not measured: a title for the commit and the reasons."""

    title: str
    why: str


def refusal(session: Session, state: RunState, skill: Skill, candidate: Skill) -> Refusal | None:
    """Return why ``candidate``, made of ``skill``, is not worth measuring; None if it is."""
    return (
        _no_agent_skill(skill, candidate)
        or _excess(candidate)
        or _quoting(session, skill, candidate)
        or _too_long(session, skill, candidate)
        or _long_file(session, skill, candidate)
        or _repeated(state, changed_lines(skill, candidate))
    )


def skill_tokens(skill: Skill) -> int:
    """Return about how many tokens the text of ``SKILL.md`` has, regions included and frontmatter left out."""
    return ceil(len(skill.document.removeprefix(frontmatter(skill.document))) / CHARACTERS_PER_TOKEN)


def _no_agent_skill(skill: Skill, candidate: Skill) -> Refusal | None:
    """Return the refusal of a candidate whose frontmatter is not, byte for byte, the one that its base has.

    The base's keeps the rules of Agent Skills, for a seed is checked before a run starts; so the candidate's does too.
    """
    before, after = frontmatter(skill.document), frontmatter(candidate.document)
    if before == after and skill.name == candidate.name:
        return None
    return Refusal(
        title="invalid: the frontmatter is not that of the base",
        why="The candidate changes the frontmatter of SKILL.md, which belongs to people.",
    )


def _excess(candidate: Skill) -> Refusal | None:
    """Return the refusal of a text that nobody could read in again, whatever the settings allow."""
    why = candidate.excess
    return (
        Refusal(title="too long: a text is beyond what a skill can hold", why=f"With the candidate, {why}.")
        if why
        else None
    )


def _quoting(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    leak = leak_between(session, skill, candidate)
    return None if leak is None else Refusal(title="the candidate quotes a secret of an item", why=f"{leak}.")


def _too_long(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    limit, length, before = session.settings.optimizer.max_skill_tokens, skill_tokens(candidate), skill_tokens(skill)
    if length <= max(limit, before):
        return None
    return Refusal(
        title=f"too long: {length} tokens, {limit} are allowed",
        why=f"The candidate has about {length} tokens where optimizer.max_skill_tokens allows {limit}.",
    )


def _long_file(session: Session, skill: Skill, candidate: Skill) -> Refusal | None:
    limit, before = session.settings.optimizer.max_file_tokens, dict(skill.text_files())
    for path, text in candidate.text_files():
        if path == DOCUMENT or text == before.get(path):
            continue
        length, old_length = (ceil(len(content) / CHARACTERS_PER_TOKEN) for content in (text, before.get(path, "")))
        if length > max(limit, old_length):
            return Refusal(
                title=f"too long: {path} has {length} tokens, {limit} are allowed",
                why=f"{path} would have about {length} tokens where optimizer.max_file_tokens allows {limit}.",
            )
    return None


def _repeated(state: RunState, changes: Iterable[Change]) -> Refusal | None:
    """Return the refusal of changes that a step on the same version made before, and that the gate rejected."""
    key = comparable(changes)
    for step in reversed(state.memory):
        if step.decision is Decision.REJECT and step.base == state.version and alike(key, comparable(step.changes)):
            return _repetition(step)
    return None


def _repetition(step: StepMemory) -> Refusal:
    name = f"the reflection on epoch {step.epoch}" if step.origin is Origin.META else f"step {step.step}"
    if step.by_hand:
        name = f"the {step.origin} after step {step.step}"
    return Refusal(
        title=f"repeats what {name} tried",
        why=(
            f"The changed lines are those of {name}, or nearly. On the same version they scored"
            f" {'at most ' if step.bound else ''}{step.score:.4f} against {step.current:.4f} and were rejected."
        ),
    )


def comparable(changes: Iterable[Change]) -> list[str]:
    """Return changes as sorted signed lines without case, bullets and surplus space."""
    return sorted(f"{change.sign}{normalised(change.text)}" for change in changes)


def alike(ours: list[str], theirs: list[str]) -> bool:
    """Say whether two changes, as sorted signed lines, are the same or nearly.

    Words that turn the meaning of a rule round, and numbers, have to be the same however alike the rest is.
    """
    return all(_same(_signed(ours, sign), _signed(theirs, sign)) for sign in "+-")


def _signed(lines: list[str], sign: str) -> str:
    return "\n".join(line for line in lines if line.startswith(sign))


def _same(mine: str, theirs: str) -> bool:
    if mine == theirs:
        return True
    if sorted(_DECISIVE.findall(mine)) != sorted(_DECISIVE.findall(theirs)):
        return False
    return fuzz.ratio(mine, theirs, score_cutoff=ALIKE) >= ALIKE


def stop_at_once(session: Session, state: RunState) -> str:
    """Return why nothing more can be gained, so that the run ends where it stands; empty if something can."""
    settings, evaluation = session.settings, state.evaluation(state.version)
    is_covered = evaluation.coverage >= settings.evaluation.min_coverage
    if settings.train.stop_at_ceiling and is_covered and session.score(state, state.version) >= 1.0:
        version = version_label(state.version)
        return f"{version} has the full score on the selection split, so that no edit can score higher."
    return ""


def stop_before_step(session: Session, state: RunState) -> str:
    """Return why no further step is taken though there would be one; empty if one is taken."""
    patience = session.settings.train.patience
    count = state.step - state.versions[state.best].step
    if patience and count >= patience and state.step < session.steps:
        steps = "1 step" if count == 1 else f"{count} steps in a row"
        return f"{steps} made no new best version, and train.patience is {patience}."
    return ""


def stop_sentence(session: Session, state: RunState) -> str:
    """Return why a run that finishes at ``state`` has not done all its steps; empty if it has."""
    if state.step >= session.steps:
        return ""
    return stop_at_once(session, state) or stop_before_step(session, state)


class LeakLint:
    """Keeps the index of a session's secrets, which is made when it is needed first."""

    __slots__ = ("_index",)

    def __init__(self) -> None:
        self._index: SecretIndex | None = None

    def index(self, session: Session) -> SecretIndex:
        """Return the index of the secrets of all items of ``session``."""
        if self._index is None:
            environment = session.task.environment
            self._index = build_index(
                (item.id, split, secrets_of(environment, item)) for split in Split for item in session.task.items[split]
            )
        return self._index

    def prepare(self, session: Session) -> None:
        """Make the index in a thread, while models are waited for."""
        if session.settings.evaluation.leak_lint and self._index is None:
            asyncio.get_running_loop().run_in_executor(None, self.index, session)


def leak_in(session: Session, skill: Skill, text: str) -> Leak | None:
    """Return the secret that ``text``, meant for ``skill``, quotes; None without one or without the lint."""
    if not session.settings.evaluation.leak_lint or not text.strip():
        return None
    base = "\n".join([*(content for _, content in skill.text_files()), session.task.environment.taxonomy()])
    return find_leak(session.leaks.index(session), text, base)


def edit_lint(session: Session, skill: Skill) -> Callable[[Edit], str]:
    """Return what says of an edit to ``skill`` why it is quarantined; an empty string lets it pass."""

    def lint(edit: Edit) -> str:
        leak = leak_in(session, skill, edit.content)
        return "" if leak is None else str(leak)

    return lint


def leak_between(session: Session, skill: Skill, candidate: Skill) -> Leak | None:
    """Return the secret that the lines which ``candidate`` adds to ``skill`` quote."""
    text = "\n".join(change.text for change in changed_lines(skill, candidate) if change.sign == "+")
    return leak_in(session, skill, text)


def told(session: Session, skill: Skill, reports: Iterable[EditReport], text: str) -> str:
    """Return ``text`` for a commit message.

    Once an edit is quarantined, the words around it quote the same secret more often than not: paragraphs that quote
    one are replaced by the item's id.
    """
    if not any(report.detail.startswith(QUARANTINED) for report in reports):
        return text

    def kept(paragraph: str) -> str:
        leak = leak_in(session, skill, paragraph)
        return paragraph if leak is None else f"(left out: {leak})"

    return "\n\n".join(kept(paragraph) for paragraph in text.split("\n\n"))
