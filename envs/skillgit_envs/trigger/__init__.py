"""Trigger: which skill of a library an agent loads for a request, or that it loads none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from skillgit.domain.evaluation import Outcome, Scored, Split, mean
from skillgit.domain.ids import short_digest
from skillgit.domain.leaks import Secrets
from skillgit.domain.skill import Skill
from skillgit.domain.skill_listing import LibrarySkill, ListingAgent, listing
from skillgit.domain.statistics import wilson_interval
from skillgit.domain.trajectory import Item, ToolUse, Trajectory, Turn
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.backend import Message, Reply, Tool, assistant, system, user
from skillgit.plugin.card import read_card
from skillgit.plugin.data_rows import Row, text_field
from skillgit.plugin.environment import Judge, SummaryShare, Target
from skillgit.plugin.skill_library import library_skill, read_library
from skillgit.plugin.skill_loads import LOAD_TOOL, loaded_skills
from skillgit.plugin.skill_marks import marked
from skillgit_envs.shipped_environment import PackagedEnvironment, fields_hint

OWN = "@"  # in an item: the skill that is measured, under any name
LOADS, NEAR_MISS = "should load", "near miss"
INSTALLED = "agent"
BODY = "This skill is loaded. Say so in one sentence and end: the work itself is not wanted here."
"""What a copy says that an agent loads: it has decided by then, and the rest would only cost."""
LOAD_SKILL = Tool(
    name=LOAD_TOOL,
    description="Load the instructions of an installed skill.",
    parameters={
        "type": "object",
        "properties": {"name": {"type": "string", "description": "The skill's name, as it is listed."}},
        "required": ["name"],
        "additionalProperties": False,
    },
)
_HINT = fields_hint("trigger")
_FOR_ITSELF = "loads"
_INSTEAD = "loads "


class Trigger(PackagedEnvironment):
    """Requests, of which each is one for a skill of a library or for none."""

    info = read_card(Path(__file__).parent)

    def __init__(self, options: Mapping[str, str | float | bool], root: Path) -> None:
        super().__init__(options, root)
        self._client, self._repeats = self._text("client"), int(self._options["repeats"])
        self._window = int(self._options["window"])
        if self._repeats < 1 or self._window < 0:
            raise ConfigError("env.repeats is at least 1, and env.window at least 0", hint="leave them out")

    @cached_property
    def _library(self) -> Mapping[str, LibrarySkill]:
        name = self._text("library")
        folder = self._root / name if name else self._folder / "library"
        library = read_library(folder)
        if not library:
            hint = "env.library is a folder of folders with a SKILL.md"
            raise ConfigError(f"there are no installed skills in {folder}", hint=hint)
        return library

    @property
    def installs_skills(self) -> bool:
        return self._client == INSTALLED

    @property
    def digest(self) -> str:
        skills = [[skill.name, skill.description, skill.when, skill.is_silent] for skill in self._library.values()]
        texts = [self._prompt_file("system"), BODY, LOAD_SKILL.fields()]
        return short_digest([self.info.name, self._client, self._window, skills, *texts])

    def items(self, split: Split) -> Sequence[Item]:
        """Return the items of a split, a request's repetitions side by side: they are never in two splits."""
        items = super().items(split)
        if self._repeats == 1:
            return items
        return tuple(
            replace(item, id=f"{item.id}.{number}", content={**item.content, "repeat": number})
            for item in items
            for number in range(1, self._repeats + 1)
        )

    def item(self, row: Row, content: dict[str, Any], folder: Path) -> Item | None:
        where, name, is_for_it = row.where, content["skill"], row.fields.get("should_trigger")
        if not isinstance(is_for_it, bool | None):
            raise DataError(f"{where} has a should_trigger that is neither true nor false", hint=_HINT)
        if is_for_it is None and "skill" not in row.fields:
            raise DataError(f"{where} says neither should_trigger nor skill", hint=_HINT)
        if is_for_it and name:
            raise DataError(f"{where} says should_trigger and names a skill", hint="name another skill, or say true")
        content["skill"] = OWN if is_for_it else name
        loads = content["skill"] == OWN or (is_for_it is None and name)
        kind = content.pop("task_type") or (LOADS if loads else NEAR_MISS)
        if content["skill"] not in {OWN, "", *self._library}:
            hint = "check env.library; should_trigger: true is for the skill that is measured"
            raise DataError(f"{where} is for {name}, which is not installed", hint=hint)
        identity = text_field(where, row.fields, "id") or f"t-{short_digest(content)}"
        return super().item(row, {**content, "id": identity, "task_type": kind}, folder)

    @property
    def _most_replies(self) -> int:
        return 1

    def target_prompt(self) -> str:
        """Return what a model is shown that is not an agent, the skill behind its neighbours."""
        neighbours = "\n".join(f"- {skill.folder}: {skill.description}" for skill in self._library.values())
        return self._prompt_file("system").replace("{listing}", f"{neighbours}\n{{skill}}")

    def secrets(self, item: Item) -> Secrets:
        return Secrets(inputs=(str(item.content["request"]),))

    def _skills(self, skill: Skill) -> list[LibrarySkill]:
        """Return the library with ``skill`` in place of its installed copy."""
        library = {**self._library, skill.name: library_skill(skill.name, skill.document)}
        return list(library.values())

    def _messages(self, request: str, skills: Sequence[LibrarySkill]) -> tuple[Message, ...]:
        if self._client == INSTALLED:
            copies = "\n".join(_copy(skill) for skill in skills)
            return system(copies), user(request)
        table = listing(ListingAgent(self._client), skills, self._window or None)
        return system(self._prompt_file("system").replace("{listing}", table.text)), user(request)

    async def rollout(self, item: Item, skill: Skill, target: Target) -> Trajectory:
        request, skills = str(item.content["request"]), self._skills(skill)
        tools = () if self._client == INSTALLED else (LOAD_SKILL,)
        reply = await target.chat(self._messages(request, skills), tools)
        loads = loaded_skills(_uses(reply), [each.folder for each in skills])
        calls = tuple(ToolUse(name=call.name, arguments=call.arguments) for call in reply.tool_calls)
        answer = replace(assistant(reply.text).turn(), tool_calls=calls)
        turns = (Turn(role="user", content=request), answer)
        products = {"loads": json.dumps(loads).encode(), "skill": skill.name.encode()}
        return Trajectory(item_id=item.id, turns=turns, answer=", ".join(loads) or "none", products=products)

    async def score(self, item: Item, trajectory: Trajectory, judge: Judge) -> tuple[Scored, str]:
        """Return whether the right skill was loaded; the parts of the score say which were."""
        del judge
        products = trajectory.products
        own, loads = products.get("skill", b"").decode(), tuple(json.loads(products.get("loads", b"[]")))
        name = str(item.content["skill"])
        right = (own if name == OWN else name,) if name else ()
        hard = float(loads == right)
        soft = hard or (0.5 if right and right[0] in loads else 0.0)
        parts = [(_FOR_ITSELF, float(own in loads)), *((f"{_INSTEAD}{name}", 1.0) for name in loads if name != own)]
        sentence = f"It is a request for {right[0]}" if right else "It is a request for no skill"
        return Scored(hard, soft, tuple(parts)), f"{sentence}; loaded: {', '.join(loads) or 'none'}."

    def conditions(self) -> str:
        library = list(self._library.values())
        names = [self._client] if self._client != INSTALLED else list(ListingAgent)
        tables = [listing(ListingAgent(name), library, self._window or None) for name in names]
        sizes = (f"{table.size:,} of {table.budget:,} {table.unit} of {table.agent.label}" for table in tables)
        return f"{len(library)} installed skills, {', '.join(sizes)}; client {self._client}"

    def summary(self, items: Sequence[Item], outcomes: Mapping[str, Outcome]) -> Sequence[SummaryShare]:
        """Return recall, false positives on near misses and the skills that were taken in place of the right one."""
        own = [item for item in items if item.content["skill"] == OWN]
        rest = [item for item in items if item.content["skill"] != OWN]
        parts = {name for outcome in outcomes.values() if isinstance(outcome, Scored) for name, _ in outcome.parts}
        return (
            _share("recall", own, outcomes, _FOR_ITSELF),
            _share("false positives", rest, outcomes, _FOR_ITSELF),
            *(
                _share(f"{name.removeprefix(_INSTEAD)} in its place", own, outcomes, name)
                for name in sorted(parts - {_FOR_ITSELF})
                if any(dict(_parts(outcomes.get(item.id))).get(name) for item in own)
            ),
        )


def _copy(skill: LibrarySkill) -> str:
    description = " - ".join(filter(None, (skill.description, skill.when)))
    head = f"---\nname: {skill.folder}\ndescription: {json.dumps(description)}\n---"
    return marked(skill.folder, f"{head}\n\n{BODY}", offered=True)


def _uses(reply: Reply) -> list[ToolUse]:
    before = [use for turn in reply.turns for use in turn.tool_calls]
    return [*before, *(ToolUse(name=call.name, arguments=call.arguments) for call in reply.tool_calls)]


def _parts(outcome: Outcome | None) -> tuple[tuple[str, float], ...]:
    return outcome.parts if isinstance(outcome, Scored) else ()


def _share(name: str, items: Sequence[Item], outcomes: Mapping[str, Outcome], part: str) -> SummaryShare:
    """Return the mean of ``part`` over requests, repetitions of one taken together: they are not independent."""
    requests: dict[str, list[float]] = {}
    for item in items:
        values = requests.setdefault(str(item.content["request"]), [])
        outcome = outcomes.get(item.id)
        if isinstance(outcome, Scored):
            values.append(dict(outcome.parts).get(part, 0.0))
    means = [mean(values) for values in requests.values() if values]
    share = mean(means) if means else None
    n = len(means) if outcomes else len(requests)
    return SummaryShare(name=name, share=share, n=n, interval=wilson_interval(0.5 if share is None else share, n))


__all__ = ["Trigger"]
