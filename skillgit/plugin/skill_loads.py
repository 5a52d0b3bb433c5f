"""Whether an agent loaded a skill, by what its events say of the tools that it used."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from skillgit.domain.evaluation import Loading
from skillgit.domain.skill import DOCUMENT
from skillgit.domain.trajectory import ToolUse

LOAD_TOOL = "load_skill"
_LOAD_TOOLS = frozenset({LOAD_TOOL, "Skill", "skill"})
_LIST_TOOLS = frozenset({"Glob", "glob", "LS", "list"})  # they name files and show nothing of them
_DOCUMENTS = re.compile(r"([\w-]+)[\\/]+SKILL\.md")


def loaded_skills(uses: Sequence[ToolUse], names: Sequence[str]) -> tuple[str, ...]:
    """Return which of ``names`` were loaded, in that order: by a tool for skills, or by a look at their SKILL.md."""
    loads: dict[str, None] = {}
    for use in uses:
        if use.name in _LOAD_TOOLS:
            name = _argument(use).rpartition(":")[2].removeprefix("/")
            loads |= dict.fromkeys([name] if name in names else [])
        elif use.name not in _LIST_TOOLS:
            paths = _DOCUMENTS.findall(use.arguments)
            loads |= dict.fromkeys(name for name in paths if name in names)
    return tuple(loads)


def _argument(use: ToolUse) -> str:
    try:
        values = json.loads(use.arguments)
    except ValueError:
        return ""
    values = values if isinstance(values, dict) else {}
    return next((value for key in ("skill", "name") if isinstance(value := values.get(key), str)), "")


@dataclass(slots=True)
class ToolLog:
    """The tools that an agent used, in order, and how each use ended."""

    uses: list[ToolUse] = field(default_factory=list)
    _ids: list[str] = field(default_factory=list)
    _ends: dict[str, bool] = field(default_factory=dict)

    def begin(self, identity: str, name: str, arguments: object) -> None:
        words = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        self.uses.append(ToolUse(name=name, arguments=words))
        self._ids.append(identity)

    def end(self, identity: str, *, is_success: bool) -> None:
        self._ends[identity] = is_success

    def loading(self, names: Sequence[str], *, is_whole: bool) -> Loading | None:
        """Return whether one of the skills ``names`` was loaded; None if there are none.

        ``is_whole`` says whether the events show all that the agent did. What they leave open is unknown: a use whose
        end is missing, a command that failed, and one that reads a SKILL.md of which it does not say whose it is.
        """
        if not names:
            return None
        values = {self._loading_by(use, names, identity) for identity, use in zip(self._ids, self.uses, strict=True)}
        if Loading.LOADED in values:
            return Loading.LOADED
        return Loading.NOT_LOADED if is_whole and Loading.UNKNOWN not in values else Loading.UNKNOWN

    def _loading_by(self, use: ToolUse, names: Sequence[str], identity: str) -> Loading:
        is_success = self._ends.get(identity)
        if loaded_skills([use], names):
            return Loading.LOADED if is_success else Loading.NOT_LOADED if is_success is False else Loading.UNKNOWN
        is_nameless = use.arguments.count(DOCUMENT) > len(_DOCUMENTS.findall(use.arguments))
        is_look = use.name not in _LOAD_TOOLS | _LIST_TOOLS
        return Loading.UNKNOWN if is_nameless and is_look and is_success is not False else Loading.NOT_LOADED
