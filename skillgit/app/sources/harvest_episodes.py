"""Episodes of a session: a request that a skill was for, and what the person said until it was done.

What counts as a correction follows from what was done, never from words: text that the agent had written was rewritten
on the next prompt, the person broke in, refused, went back, asked for the same again, or changed what was proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rapidfuzz import fuzz

from skillgit.app.sources.sessions.session import AgentSession, SessionTurn, SkillUse

_MOST_FOLLOW_UPS = 4
_MOST_COMPARED = 20_000  # characters of a prompt
_SAME = 85  # of 100, how alike two prompts are of which one repeats the other
_WORD = re.compile(r"\w{4,}")
_TIES = 2  # words that a request shares with a skill's description, at least, if the skill was only offered


class SessionSignal(StrEnum):
    """What shows that the agent's first result was not what the person wanted, or when it was."""

    CORRECTION = "correction"
    REPEAT = "repeat"
    INTERRUPTION = "interruption"
    REFUSAL = "refusal"
    REWIND = "rewind"
    FAILED_THEN_PASSED = "failed-then-passed"
    REVERTED_EDIT = "reverted-edit"
    EDITED_PROPOSAL = "edited-proposal"


class NotDrafted(StrEnum):
    """Why a request has no draft of its own."""

    FOLLOW_UP = "as part of the previous request"
    OTHER_WORK = "without the skill"
    TAKEN_BACK = "taken back by a rewind"
    OLDER = "older than --since"
    NOT_CORRECTED = "with the skill only on offer, and no correction"
    NOT_TIED = "with the skill only on offer, and nothing that ties it to the request"
    NO_SIGNAL = "without anything that shows what a right result is"
    UNKNOWN_FILES = "with files of which the content before is not known"
    TOO_LARGE = "with too many or too large files"
    UNUSABLE = "without a readable task"
    KNOWN = "drafted, accepted or dropped before"


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    session: AgentSession
    turns: tuple[SessionTurn, ...]  # the request, and the follow-ups to it
    use: SkillUse
    signals: tuple[SessionSignal, ...]

    @property
    def request(self) -> SessionTurn:
        return self.turns[0]

    def texts(self) -> Iterator[str]:
        """Yield what a draft of it may have: words, commands and files."""
        for turn in self.turns:
            yield from (turn.prompt, *turn.comments, *(call.command for call in turn.calls))
            yield from (*turn.reads.values(), *turn.files.values())
            yield from (text for edit in turn.edits for text in (edit.before, edit.after) if text is not None)

    @property
    def follow_up(self) -> str:
        """What the person said after the request, in order."""
        later = [turn.prompt for turn in self.turns[1:]]
        return "\n\n".join([*(comment for turn in self.turns for comment in turn.comments), *later]).strip()

    @property
    def verified_commands(self) -> tuple[str, ...]:
        """Commands that failed and later passed, then others that passed after the last edit."""
        calls = [call for turn in self.turns for call in turn.calls if call.command]
        failures = {_command(call.command) for call in calls if call.failed}
        passes = dict.fromkeys(call.command for call in reversed(calls) if call.passed)
        both = [command for command in passes if _command(command) in failures]
        return (*both, *(command for command in passes if command not in both))


def episodes(session: AgentSession, skill: str) -> Iterator[tuple[tuple[SessionTurn, ...], Episode | NotDrafted]]:
    """Yield requests with their follow-ups, and the episode for ``skill`` or why it is none; each turn comes once."""
    live = [turn for turn in session.turns if turn.is_live]
    yield from (((turn,), NotDrafted.TAKEN_BACK) for turn in session.turns if not turn.is_live)
    paths = {edit.path for turn in session.turns if _use(turn, skill) for edit in turn.edits}
    description = next((text for name, text in session.offers.items() if names_skill(name, skill)), None)
    vocabulary = _words(f"{skill} {description}")
    position = 0
    while position < len(live):
        turn, turns = live[position], _with_follow_ups(live, position, skill)
        use = next(filter(None, (_use(turn, skill) for turn in turns)), None)
        if use is None and description is None:
            yield (turn,), NotDrafted.OTHER_WORK
            position += 1
            continue
        signals = _signals(turns, session)
        episode = Episode(session=session, turns=turns, use=use or SkillUse.OFFERED, signals=signals)
        outcome: Episode | NotDrafted = episode
        edits = [edit for turn in turns for edit in turn.edits]
        has_result = any(edit.after is not None for edit in edits)
        if use is None and not (len(turns) > 1 and signals):
            turns, outcome = (turn,), NotDrafted.NOT_CORRECTED
        elif use is None and not (
            any(edit.path in paths for edit in edits)
            or len(_words(f"{turn.prompt} {episode.follow_up}") & vocabulary) >= _TIES
        ):
            outcome = NotDrafted.NOT_TIED
        elif not (signals or (has_result and episode.verified_commands)) or not (episode.follow_up or has_result):
            outcome = NotDrafted.NO_SIGNAL
        yield turns, outcome
        position += len(turns)


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


def _use(turn: SessionTurn, skill: str) -> SkillUse | None:
    return next((use for name, use in turn.uses.items() if names_skill(name, skill)), None)


def names_skill(name: str, skill: str) -> bool:
    """Say whether a name is the skill's, alone or behind that of its plug-in."""
    return name == skill or name.endswith(f":{skill}")


def _with_follow_ups(live: Sequence[SessionTurn], start: int, skill: str) -> tuple[SessionTurn, ...]:
    """Return the turn at ``start`` and those after it that correct it; one that takes the skill again is a request."""
    turns = [live[start]]
    for turn in live[start + 1 : start + 1 + _MOST_FOLLOW_UPS]:
        is_rewritten = _use(turn, skill) is None and _rewrites(turns, turn)
        if not (turns[-1].interrupted or turns[-1].refused or is_rewritten or _repeats(turns[0], turn)):
            break
        turns.append(turn)
    return tuple(turns)


def _rewrites(turns: Sequence[SessionTurn], later: SessionTurn) -> bool:
    """Say whether ``later`` takes back lines that the turns before it had added."""
    for path in {edit.path for edit in later.edits}:
        edits = [edit for turn in turns for edit in turn.edits if edit.path == path and edit.after is not None]
        final = next((edit.after for edit in reversed(later.edits) if edit.path == path), None)
        if edits and final is not None:
            additions = set((edits[-1].after or "").splitlines()) - set((edits[0].before or "").splitlines())
            if any(line.strip() for line in additions - set(final.splitlines())):
                return True
    return False


def _repeats(turn: SessionTurn, later: SessionTurn) -> bool:
    return fuzz.ratio(turn.prompt[:_MOST_COMPARED].lower(), later.prompt[:_MOST_COMPARED].lower()) >= _SAME


def _signals(turns: Sequence[SessionTurn], session: AgentSession) -> tuple[SessionSignal, ...]:
    first, *later = turns
    edits = [edit for turn in turns for edit in turn.edits]
    commands = [call for turn in turns for call in turn.calls if call.command]
    failures, is_passed = set[str](), False  # what failed, and whether one of it passed later
    for call in commands:
        failures |= {_command(call.command)} if call.failed else set()
        is_passed = is_passed or (call.passed and _command(call.command) in failures)
    position = session.turns.index(first)
    signs = {
        SessionSignal.CORRECTION: any(turn.comments for turn in turns)
        or (bool(later) and (first.interrupted or first.refused))
        or any(_rewrites(turns[:at], turn) for at, turn in enumerate(later, start=1)),
        SessionSignal.REPEAT: any(_repeats(first, turn) for turn in later),
        SessionSignal.INTERRUPTION: any(turn.interrupted for turn in turns),
        SessionSignal.REFUSAL: any(turn.refused for turn in turns),
        SessionSignal.REWIND: position > 0 and not session.turns[position - 1].is_live,
        SessionSignal.FAILED_THEN_PASSED: is_passed,
        SessionSignal.REVERTED_EDIT: any(
            edit.after is not None and edit.after == old.before and edit.path == old.path and edit is not old
            for at, edit in enumerate(edits)
            for old in edits[:at]
        ),
        SessionSignal.EDITED_PROPOSAL: any(edit.by_person for edit in edits),
    }
    return tuple(signal for signal in SessionSignal if signs[signal])


def _command(text: str) -> str:
    return " ".join(text.split())
