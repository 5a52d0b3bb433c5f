"""A directory that is being told: its files, its settings, and the events so far."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from skillgit.app.importing.directory import Directory, Row
    from skillgit.app.importing.history import Step
    from skillgit.app.importing.outcomes import Outcomes
    from skillgit.app.importing.settings import Settings
    from skillgit.app.importing.story import Story
    from skillgit.app.importing.texts import Texts

_LONG_AGO = datetime.fromtimestamp(0, UTC)


class Common(TypedDict):
    """What all events have."""

    run: str
    skill: str
    epoch: int


@dataclass(slots=True, kw_only=True)
class Source:
    """A directory that is being told.

    Attributes:
        directory: Its files.
        settings: Its configuration.
        texts: Turns its texts into versions.
        run: The name of the run.
        steps: Its steps.
        summary: What it says of its end; empty if the run was interrupted.
        items: The items of the selection split, as far as they are known.
        story: The events so far.
        by_hash: The outcomes of texts that were measured, by the hash that the reference has of them.
    """

    directory: Directory
    settings: Settings
    texts: Texts
    run: str
    steps: list[Step]
    summary: Row
    items: tuple[str, ...]
    story: Story
    by_hash: dict[str, Outcomes]

    @property
    def path(self) -> str:
        """The skill folder."""
        return f"skills/{self.texts.name}"

    def common(self, epoch: int) -> Common:
        """Return what all events have."""
        return Common(run=self.run, skill=self.path, epoch=epoch)

    def time(self, *names: str) -> datetime:
        """Return when the first of the files ``names`` that is here was written, or the event before."""
        earlier = self.story.chapters[-1].time if self.story.chapters else _LONG_AGO
        return self.directory.time(*names) or earlier
