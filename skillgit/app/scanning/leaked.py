"""Leaked items in skills: what a run's own leak lint looks for, asked again of everything that is to be published.

People edit skills by hand, and a run may have gone without its lint. Which items a run has is told by the configuration
that it recorded; where that or the data are not here, it is said that nobody looked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.app.data.told import told
from skillgit.domain.evaluation import Split
from skillgit.domain.leaks import build_index, find_leak, find_leaks
from skillgit.errors import SkillgitError
from skillgit.index import queries

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.app.context import Context
    from skillgit.app.workspace import Workspace
    from skillgit.domain.leaks import Leak, SecretIndex


class LeakFinder:
    """Knows the items of the runs that train a skill; they are loaded when the skill is met first.

    Attributes:
        unchecked: Sentences that say for which runs nobody looked, and why.
    """

    def __init__(self, context: Context, workspace: Workspace) -> None:
        self._context = context
        self._workspace = workspace
        self._indexes: dict[str, list[tuple[SecretIndex, str]]] = {}
        self.unchecked: list[str] = []

    def leaks(self, skill: str, added: Sequence[tuple[int, str]], before: str) -> Iterator[tuple[int, Leak]]:
        """Yield what ``added`` quotes, with the number of the line; 0 if it stands in no single one.

        Args:
            skill: The path of the skill folder.
            added: Numbers and texts of the lines that a commit adds to a file.
            before: What may be repeated: the file as it was.
        """
        text = "\n".join(line for _, line in added)
        for index, taxonomy in self._of(skill) if text.strip() else ():
            known = f"{before}\n{taxonomy}"
            for leak in find_leaks(index, text, known):
                alone = (number for number, line in added if find_leak(index, line, known) == leak)
                yield next(alone, 0), leak

    def _of(self, skill: str) -> list[tuple[SecretIndex, str]]:
        if skill not in self._indexes:
            self._indexes[skill] = list(self._loaded(skill))
        return self._indexes[skill]

    def _loaded(self, skill: str) -> Iterator[tuple[SecretIndex, str]]:
        seen: set[tuple[object, ...]] = set()
        for row in queries.run_rows(self._workspace.index, {}):
            if row.skill != skill:
                continue
            try:
                yield from self._of_run(row.name, seen)
            except (SkillgitError, OSError, ImportError) as error:
                self.unchecked.append(f"nobody looked for leaked items of run {row.name}: {_reason(error)}")

    def _of_run(self, run: str, seen: set[tuple[object, ...]]) -> Iterator[tuple[SecretIndex, str]]:
        from skillgit.app.recipe import find_config  # noqa: PLC0415 - it loads pydantic
        from skillgit.plugin.registry import load_environment  # noqa: PLC0415 - only a run's skill needs it

        config = find_config(self._context, self._workspace, [run], config=None, overrides=())
        identity = (config.values.env.name, config.root, repr(config.options))
        if identity in seen:
            return
        seen.add(identity)
        environment = load_environment(config.values.env.name, config.root)(config.options, config.root)
        rows = told(environment, {split: environment.items(split) for split in Split})
        if not rows:
            self.unchecked.append(
                f"nobody looked for leaked items of run {run}: its environment does not tell what is secret about them"
            )
            return
        yield build_index((row.item.id, row.split, row.secrets) for row in rows), environment.taxonomy()


def _reason(error: Exception) -> str:
    return error.message if isinstance(error, SkillgitError) else str(error)
