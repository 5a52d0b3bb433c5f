"""``skillgit lint --library --base``: whether an edit takes away, without a model, what agents show of other skills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from skillgit.app.measure.arms import changed_skills
from skillgit.app.workspace.revision import resolve
from skillgit.app.workspace.skill_choice import SKILLS, name_of
from skillgit.app.workspace.workspace import Workspace
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.skill_listing import (
    ALIKE,
    LibrarySkill,
    ListingAgent,
    ListingState,
    SkillListing,
    listing,
    neighbours,
)
from skillgit.errors import ExitCode, NotFoundError
from skillgit.plugin.skill_library import library_skill, read_library
from skillgit.store.tree import skill_folders

LOSS = 0.1
"""Share of what an agent showed of a neighbour that an edit may cost: in a full library every edit costs a little."""

Library = dict[str, "LibrarySkill"]  # by the name of the folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Shadowing:
    """What an edit costs a neighbour."""

    skill: str  # the neighbour
    by: tuple[str, ...]  # the skills that the head changes, or the one that is too much like it
    sentence: str  # without a full stop


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryVerdict:
    base: str
    head: str
    skills: int  # of the library at the head
    changes: tuple[str, ...]  # the skills that the head changes
    shadowings: tuple[Shadowing, ...]

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.NO if self.shadowings else ExitCode.OK


def library_gate(workspace: Workspace, base: str, head: str, folder: Path) -> LibraryVerdict:
    """Compare the library in ``folder`` with the skills of ``base`` to the same library with those of ``head``.

    A skill of the repository is in place of an installed one in a folder of the same name.
    """
    copies = read_library(workspace.context.directory / folder)
    if not copies:
        raise NotFoundError(
            f"there are no installed skills in {folder}", hint="name a folder of folders with a SKILL.md"
        )
    ends = [resolve(workspace, word).commit for word in (base, head)]
    changes = tuple(change.path.rpartition("/")[2] for change in changed_skills(workspace, *ends))
    before, after = (_at(workspace, commit, copies, changes) for commit in ends)
    return LibraryVerdict(
        base=base,
        head=head,
        skills=len(after),
        changes=changes,
        shadowings=tuple(_shadowings(before, after, changes)) if changes else (),
    )


def _at(workspace: Workspace, commit: str, copies: Mapping[str, LibrarySkill], changes: tuple[str, ...]) -> Library:
    library = {name: skill for name, skill in copies.items() if name not in changes}
    for path, files in skill_folders(workspace.repo, commit).items():
        name = name_of(path)
        if DOCUMENT in files and (name not in library or path == f"{SKILLS}/{name}"):
            library[name] = library_skill(name, files[DOCUMENT].decode("utf-8", "replace"))
    return library


def _shadowings(before: Library, after: Library, changes: tuple[str, ...]) -> Iterator[Shadowing]:
    rest = [name for name in after if name not in changes]
    for agent in ListingAgent:
        texts, later = (_texts(listing(agent, list(library.values()))) for library in (before, after))
        for name in rest:
            old, (text, state) = texts.get(name, ("", ListingState.ABSENT))[0], later[name]
            if len(old) - len(text) > LOSS * len(old):
                now = f"{len(text):,} of the {len(old):,} characters that it showed"
                now = f"lists it as {state.value}" if not text else f"shows {now}"
                yield Shadowing(skill=name, by=changes, sentence=f"{agent.label} {now}, because the library grows")
    for name in (name for name in changes if name in after):
        namesakes = [each for each in rest if after[each].name == after[name].name]
        yield from (Shadowing(skill=each, by=(name,), sentence="both have the same name") for each in namesakes)
        yield from _likeness(before, after, name)


def _texts(table: SkillListing) -> dict[str, tuple[str, ListingState]]:
    return {entry.skill.folder: (entry.text, entry.state) for entry in table.entries}


def _likeness(before: Library, after: Library, name: str) -> Iterator[Shadowing]:
    nearest = neighbours(list(after.values())).get(after[name].name)
    old = neighbours(list(before.values())).get(before[name].name) if name in before else None
    if nearest is not None and nearest.share >= ALIKE and (old is None or old.share < nearest.share):
        sentence = f"{round(100 * nearest.share)} % of the words of both descriptions are the same"
        yield Shadowing(skill=nearest.name, by=(name,), sentence=sentence)
