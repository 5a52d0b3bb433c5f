"""The environment ``trigger``: what is detected, how it is scored, and that it measures the rates that were planted."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import TYPE_CHECKING

import pytest

from skillgit.domain.evaluation import Scored, Split
from skillgit.domain.skill import Skill
from skillgit.domain.trajectory import ToolUse, Turn
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.backend import NO_TOKENS, Reply, ToolCall
from skillgit_backends.agent_cli.prompting import assignment
from skillgit_envs.trigger import BODY, LOADS, NEAR_MISS, Trigger, loaded_skills

if TYPE_CHECKING:
    from pathlib import Path

OWN = Skill("pdf", {"SKILL.md": b'---\nname: pdf\ndescription: "Reads PDF files."\n---\n\nRead.\n'})
LIBRARY = {"csv": "Cleans tables.", "sql": "Explains queries."}


class Planted:
    """A target that loads a skill for a request as often as is planted, each time anew."""

    def __init__(self, rates):
        self.rates, self.chance = rates, Random(24)  # noqa: S311 - a stub's
        self.systems: list[str] = []

    async def chat(self, messages, tools=(), form=None):
        del tools, form
        system, request = (message.text for message in messages)
        self.systems.append(system)
        draw = self.chance.random()
        for name, rate in self.rates[request].items():
            if draw < rate:
                call = ToolCall(id="c", name="load_skill", arguments=json.dumps({"name": name}))
                return Reply(text="", usage=NO_TOKENS, tool_calls=(call,))
            draw -= rate
        return Reply(text="No skill.", usage=NO_TOKENS)


def written(folder: Path, rows) -> Path:
    for name, description in LIBRARY.items():
        (folder / "lib" / name).mkdir(parents=True)
        (folder / "lib" / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: {description}\n---\n\nx\n")
    for part in ("train", "val", "test"):
        own = ({**row, "request": row["request"] and f"{row['request']} ({part})"} for row in rows)
        named = ({**row, "id": f"{row['id']}{'' if part == 'train' else part}"} if "id" in row else row for row in own)
        (folder / f"{part}.jsonl").write_text("\n".join(map(json.dumps, named)))
    return folder


def made(folder: Path, **options) -> Trigger:
    return Trigger({"split_mode": "split_dir", "split_dir": ".", "library": "lib", **options}, folder)


def measured(environment: Trigger, target):
    async def outcomes():
        for item in environment.items(Split.TRAIN):
            trajectory = await environment.rollout(item, OWN, target)
            yield item, (await environment.score(item, trajectory, None))[0]

    async def collected():
        return {item.id: score async for item, score in outcomes()}

    scores = asyncio.run(collected())
    return {share.name: share for share in environment.summary(environment.items(Split.TRAIN), scores)}, scores


def test_planted_rates_are_measured(tmp_path):
    """A thousand draws of 40 requests, whose mean rates are known."""
    rows, rates = [], {}
    for number in range(40):
        rows.append({"id": f"y{number}", "request": f"yes {number}", "should_trigger": True})
        rows.append({"id": f"n{number}", "request": f"no {number}", "should_trigger": False, "skill": "csv"})
        hit = (number % 10) / 10 + 0.05
        rates[f"yes {number} (train)"] = {"pdf": hit, "csv": (1 - hit) / 2}
        rates[f"no {number} (train)"] = {"pdf": hit / 4, "csv": 0.5}
    environment = made(written(tmp_path, rows), repeats=25)
    shares, _ = measured(environment, Planted(rates))
    assert shares["recall"].share == pytest.approx(0.5, abs=0.05)
    assert shares["false positives"].share == pytest.approx(0.125, abs=0.05)
    assert shares["csv in its place"].share == pytest.approx(0.25, abs=0.05)
    assert {share.n for share in shares.values()} == {40}, "repetitions of a request count once"
    low, high = shares["recall"].interval
    assert low < 0.5 < high
    assert high - low > 0.2


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_a_target_that_always_or_never_loads_has_recall_one_or_none(tmp_path, rate):
    rows = [{"id": "a", "request": "a", "should_trigger": True}, {"id": "b", "request": "b", "should_trigger": False}]
    rates = {"a (train)": {"pdf": rate}, "b (train)": {"pdf": rate}}
    shares, scores = measured(made(written(tmp_path, rows)), Planted(rates))
    assert (shares["recall"].share, shares["false positives"].share) == (rate, rate)
    assert {item: score.hard for item, score in scores.items()} == {"a": rate, "b": 1 - rate}


def test_the_plan_knows_how_wide_the_intervals_will_be(tmp_path):
    rows = [{"request": f"r{number}", "should_trigger": number < 20} for number in range(30)]
    environment = made(written(tmp_path, rows), repeats=3)
    recall, false_positives = environment.summary(environment.items(Split.TRAIN), {})
    assert (recall.n, false_positives.n, recall.share) == (20, 10, None)
    assert environment.conditions().startswith("2 installed skills, ")
    assert recall.interval[1] - recall.interval[0] < false_positives.interval[1] - false_positives.interval[0]


def test_the_measured_skill_stands_in_place_of_its_installed_copy(tmp_path):
    rows = [{"id": "a", "request": "a", "should_trigger": True}]
    target = Planted({"a (train)": {}})
    for client in ("claude-code", "codex"):
        asyncio.run(_rolled_out(made(written(tmp_path / client, rows), client=client), target))
    assert "- pdf: Reads PDF files.\n" in target.systems[0]
    assert "- csv: Cleans tables. (file: " in target.systems[1]


async def _rolled_out(environment, target):
    return await environment.rollout(environment.items(Split.TRAIN)[0], OWN, target)


def test_an_agent_gets_copies_that_nothing_tells_it_to_load(tmp_path):
    rows = [{"id": "a", "request": "a", "should_trigger": True}]

    class Agent:
        async def chat(self, messages, tools=(), form=None):
            assert (tools, form) == ((), None)
            task = assignment(type("R", (), {"messages": messages})())
            assert {skill.name for skill in task.skills} == {"pdf", "csv", "sql"}
            assert all(skill.document.endswith(f"{BODY}\n") for skill in task.skills)
            assert (task.to_load, task.instructions, task.task) == ((), "", "a (train)")
            uses = (ToolUse(name="Read", arguments="{}"), ToolUse(name="Skill", arguments='{"skill": "any:pdf"}'))
            turns = tuple(Turn(role="assistant", content="", tool_calls=(use,)) for use in uses)
            return Reply(text="It is loaded.", usage=NO_TOKENS, turns=turns)

    environment = made(written(tmp_path, rows), client="agent")
    assert asyncio.run(_rolled_out(environment, Agent())).answer == "pdf"


@pytest.mark.parametrize(
    ("name", "arguments", "loads"),
    [
        ("Skill", '{"skill": "pdf"}', ("pdf",)),
        ("Skill", '{"skill": "plugin:pdf", "args": "x"}', ("pdf",)),
        ("Skill", '{"skill": "other"}', ()),
        ("Skill", "no JSON", ()),
        ("skill", '{"name": "csv"}', ("csv",)),
        ("Read", '{"file_path": "/w/.claude/skills/pdf/SKILL.md"}', ("pdf",)),
        ("command_execution", "bash -lc 'sed -n 1,80p .agents/skills/csv/SKILL.md'", ("csv",)),
        ("exec_command", '{"cmd": "cat .agents/skills/pdf/SKILL.md; cat .agents/skills/csv/SKILL.md"}', ("pdf", "csv")),
        ("exec_command", '{"cmd": "ls .agents/skills/pdf"}', ()),
        ("Task", '{"prompt": "use pdf"}', ()),
    ],
)
def test_what_counts_as_loading(name, arguments, loads):
    assert loaded_skills([ToolUse(name=name, arguments=arguments)], ["pdf", "csv"]) == loads


@pytest.mark.parametrize("order", [("csv", "pdf"), ("pdf", "csv")])
def test_another_skill_beside_the_right_one_is_worth_half(order, tmp_path):
    rows = [{"id": "a", "request": "a", "should_trigger": True}]

    class Both:
        async def chat(self, messages, tools=(), form=None):
            del messages, tools, form
            calls = (ToolCall(id=n, name="load_skill", arguments=json.dumps({"name": n})) for n in order)
            return Reply(text="", usage=NO_TOKENS, tool_calls=tuple(calls))

    _, scores = measured(made(written(tmp_path, rows)), Both())
    assert scores["a"] == Scored(0.0, 0.5, (("loads", 1.0), ("loads csv", 1.0)))


@pytest.mark.parametrize(
    ("row", "kind", "expected"),
    [
        ({"query": "a", "should_trigger": True}, LOADS, "@"),
        ({"query": "a", "should_trigger": False}, NEAR_MISS, ""),
        ({"prompt": "a", "should_trigger": False, "skill": "csv"}, NEAR_MISS, "csv"),
        ({"request": "a", "skill": "csv"}, LOADS, "csv"),
        ({"request": "a", "skill": ""}, NEAR_MISS, ""),
    ],
)
def test_rows_say_which_skill_they_are_for(tmp_path, row, kind, expected):
    request = next(row[name] for name in ("query", "prompt", "request") if name in row)
    environment = made(written(tmp_path, [{"request": request, **row}]))
    (item,) = environment.items(Split.TRAIN)
    assert (item.task_type, item.content["skill"]) == (kind, expected)


@pytest.mark.parametrize(
    "row",
    [
        {"request": "a"},
        {"should_trigger": True},
        {"request": "a", "should_trigger": True, "skill": "csv"},
        {"request": "a", "skill": "not-installed"},
    ],
)
def test_rows_that_do_not_say_it_are_refused(tmp_path, row):
    with pytest.raises(DataError):
        made(written(tmp_path, [{"request": "", **row}])).items(Split.TRAIN)


def test_a_library_without_skills_is_refused(tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(ConfigError, match="no installed skills"):
        _ = made(written(tmp_path, []), library="none").digest
