"""What words are read in: a repository at one moment, and the skill that is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from skillgit.index.refresh import Index
    from skillgit.store.repo import Repo


class Moment(Protocol):
    """What a :class:`~skillgit.app.workspace.workspace.Workspace` is for those who ask what is in it."""

    @property
    def index(self) -> Index: ...

    @property
    def repo(self) -> Repo: ...

    @property
    def skill(self) -> str:
        """The folder of the skill that is meant; empty where none is named."""
        ...

    @property
    def past(self) -> bool:
        """Whether repository and index end with an event of the past."""
        ...
