"""``skillgit lint --library``: what each agent shows its model of all installed skills together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from skillgit.app.skill_format.lint import Linted, LintedSkill
from skillgit.app.skill_format.lint_rules import broken
from skillgit.app.workspace.context import Context
from skillgit.domain.finding import Finding
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.skill_listing import (
    ALIKE,
    LibrarySkill,
    ListingAgent,
    ListingEntry,
    ListingReason,
    ListingState,
    Neighbour,
    SkillListing,
    listing,
    neighbours,
)
from skillgit.errors import NotFoundError
from skillgit.plugin.skill_library import read_library

_SYSTEM_FOLDER = ".system"  # of Codex's own skills, in its home


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryReport:
    listings: tuple[SkillListing, ...]  # by agent; one that has no skills here is left out
    nearest: Mapping[str, Neighbour]  # by the name of a skill
    findings: Linted  # what the rules of listings say, a skill at a time


def lint_library(context: Context, words: Sequence[str] = (), window: int | None = None) -> LibraryReport:
    """Forecast the listings of the skills in the folders ``words``, or in those where each agent looks by itself.

    ``window`` is the size of the context window in tokens, 0 if the agent does not know it; without, as it is usual.
    """
    listings, skills = list[SkillListing](), dict[str, LibrarySkill]()
    faults: dict[str, list[Finding]] = {}
    for agent in ListingAgent:
        folders = agent_folders(context, agent, words)
        library = [
            skill for folder, is_users in folders.items() for skill in read_library(folder, is_users=is_users).values()
        ]
        if not library:
            continue
        roots = [_homes(context)[1] / _SYSTEM_FOLDER, *(folder for folder in folders if folder.is_dir())]
        listings.append(listing(agent, library, window, [str(root) for root in roots]))
        for entry in listings[-1].entries:
            skills.setdefault(entry.skill.name, entry.skill)
            faults.setdefault(entry.skill.name, []).extend(_faults(listings[-1], entry))
    if not listings:
        place = f"in {', '.join(words)}" if words else "here"
        hint = "name a folder of folders with a SKILL.md" + ("" if words else ": skillgit lint --library DIR")
        raise NotFoundError(f"there are no installed skills {place}", hint=hint)
    nearest = neighbours(list(skills.values()))
    for name, neighbour in nearest.items():
        if neighbour.share >= ALIKE:
            sentence = f"{round(100 * neighbour.share)} % of its words are those of {neighbour.name}"
            faults[name].append(broken("listing-alike", DOCUMENT, 0, sentence))
    skills_linted = tuple(LintedSkill(place=name, name=name, faults=tuple(faults[name])) for name in sorted(skills))
    return LibraryReport(listings=tuple(listings), nearest=nearest, findings=Linted(skills=skills_linted))


def _homes(context: Context) -> tuple[Path, Path, Path]:
    """Return the folders of the user's skills: Claude Code's, Codex's, and the one that Codex shares with others."""
    environ = context.environ
    home = Path(environ.get("HOME") or Path.home())
    claude, codex = environ.get("CLAUDE_CONFIG_DIR") or home / ".claude", environ.get("CODEX_HOME") or home / ".codex"
    return context.directory / claude / "skills", context.directory / codex / "skills", home / ".agents" / "skills"


def agent_folders(context: Context, agent: ListingAgent, words: Sequence[str]) -> dict[Path, bool]:
    """Return the folders that hold skills, and whether they are the user's and not the project's."""
    homes, here = _homes(context), context.directory
    if words:
        return {here / word: (here / word).resolve() in {home.resolve() for home in homes} for word in words}
    if agent is ListingAgent.CLAUDE_CODE:
        return {homes[0]: True, here / ".claude" / "skills": False}
    return {homes[1]: True, homes[2]: True, here / ".agents" / "skills": False}


def _mend(reason: ListingReason) -> str:
    """Return what to do about ``reason``; empty where that is what the rule says."""
    match reason:
        case ListingReason.SILENT:
            return "remove disable-model-invocation, unless only people are meant to start the skill"
        case ListingReason.NAMESAKE:
            return "rename one of the two skills"
        case ListingReason.UNDESCRIBED:
            return "write a description that says what the skill does and when to use it"
        case ListingReason.FULL | ListingReason.NONE:
            return ""
        case _:
            assert_never(reason)


def _faults(table: SkillListing, entry: ListingEntry) -> Iterator[Finding]:
    agent = table.agent.label
    over = f"the library has {table.size:,} {table.unit} of {table.budget:,}"
    match entry.state:
        case ListingState.ABSENT:
            yield broken(
                "listing-absent", DOCUMENT, 0, f"{agent} does not list it: {entry.reason}", _mend(entry.reason)
            )
        case ListingState.NAME:
            sentence = f"{agent} lists its name alone: {entry.reason or over}"
            yield broken("listing-name", DOCUMENT, 0, sentence, _mend(entry.reason))
        case ListingState.CUT:
            length = len(entry.skill.description)
            cut = f"{agent} shows {len(entry.text):,} of {length:,} characters of its description"
            yield broken("listing-cut", DOCUMENT, 0, f"{cut}: {over}" if table.size > table.budget else cut)
        case ListingState.WHOLE:
            pass
