from __future__ import annotations

import json
import subprocess
from typing import get_args, get_type_hints

import pytest
from agent_of_history import asked, with_agent
from hostile_run import ACTS, write_hostile_run
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError
from once import copy_folder
from program import QUICK, SKILLGIT, git, new_repository, skillgit, surroundings
from rule_run import DATES_EXACTLY, READ, TRIED
from soaking import sampled
from trained_runs import RUN, user

from skillgit.app.recorded.step_evidence import TrajectoryPattern
from skillgit.domain.untrusted.model_text import visible
from skillgit.mcp import answers
from skillgit.verbs.cost import COST
from skillgit.verbs.diff import ITEM_DIFF, RULE_DIFF, SHOWN_EVENT, TEXT_DIFF
from skillgit.verbs.items import ITEM_STORY, ITEM_TABLE
from skillgit.verbs.log import LOG
from skillgit.verbs.rules import BLAME, WHY
from skillgit.verbs.runs import RUNS

QUESTIONS = {
    "runs": ({}, ("runs",)),
    "versions": ({}, ("log",)),
    "show": ({"revision": "best"}, ("show", "best")),
    "why": ({"rule": "3"}, ("why", "3")),
    "blame": ({"limit": 100}, ("blame",)),
    "items": ({}, ("items",)),
    "cost": ({}, ("cost",)),
}
OF_THE_SERVER = {"notice", "next_cursor", "revision", "document", "whole_diff", "default_run", "total"}


def is_part_of(answer, document) -> bool:
    """Say whether everything in ``answer`` is in ``document``, what the server adds of its own left out."""
    if isinstance(answer, dict):
        return all(
            is_part_of(value, document[key]) if key in document else value in ([], "", None)
            for key, value in answer.items()
            if key not in OF_THE_SERVER
        )
    if isinstance(answer, list):
        rows = iter(document)
        return all(any(is_part_of(part, row) for row in rows) for part in answer)
    if isinstance(answer, str) and answer != document:
        return visible(document).startswith(answer.partition("… (")[0])
    return answer == document


def test_tools_only_read_and_name_no_repository(trained):
    async def play(agent):
        return agent.tools

    tools = with_agent(user(trained), play)
    assert set(tools) == {*QUESTIONS, "diff"}
    for tool in tools.values():
        assert tool.annotations.read_only_hint
        assert not tool.annotations.open_world_hint
        assert not {"directory", "repository", "repo"} & set(tool.input_schema["properties"])
        assert tool.input_schema["additionalProperties"] is False


@pytest.mark.parametrize("tool", sampled(QUESTIONS, 3))
def test_an_answer_is_part_of_what_the_command_prints(tool, trained):
    arguments, words = QUESTIONS[tool]
    answer = asked(user(trained), tool, **arguments)
    document = json.loads(skillgit(*words, "--json", cwd=trained).out)
    assert is_part_of(answer, document)
    assert answer["notice"] == answers.NOTICE


@pytest.mark.parametrize("of", ["text", "rules", "items"])
def test_a_difference_is_part_of_what_the_command_prints(of, trained):
    ways = {} if of == "text" else {of: True}
    answer = asked(user(trained), "diff", a="v0", b="best", **ways)
    words = () if of == "text" else (f"--{of}",)
    assert is_part_of(answer, json.loads(skillgit("diff", "v0", "best", *words, "--json", cwd=trained).out))
    assert answer["text" if of == "text" else of]


WAYS = [
    {"rule": "exactly this order"},
    {"rule": DATES_EXACTLY},
    {"rule": DATES_EXACTLY, "revision": "v2"},
]


def test_one_call_says_why_a_rule_stands(rules):
    async def play(agent):
        return [await agent.ask("why", **way) for way in WAYS]

    for answer in with_agent(rules, play):
        assert answer["rule"]["text"] == DATES_EXACTLY
        assert answer["origin"]["revision"].endswith("/v2")
        assert answer["gate"]["verdict"]["score"] > answer["gate"]["verdict"]["current"]
        (tried,) = answer["tried"]
        assert tried["text"] == f"- {TRIED}"
        assert tried["event"]["revision"].endswith("/r2")
        assert tried["event"]["decision"] == "reject"


def test_a_rule_is_named_by_its_words_its_line_or_a_line_of_a_file(trained):
    async def play(agent):
        lines = (await agent.ask("blame", limit=100))["lines"]
        rule = next(line for line in lines if line["step"] and line["text"].startswith("- "))
        number, words = str(rule["line"]), rule["text"].lstrip("- ")
        ways = [{"rule": number}, {"rule": words}, {"rule": f"SKILL.md:{number}"}, {"rule": number, "revision": RUN}]
        return [await agent.ask("why", **way) for way in [*ways, {"rule": number, "skill": "searchqa"}]]

    stories = with_agent(user(trained), play)
    assert len({story["origin"]["revision"] for story in stories}) == 1
    assert all(story["failures"] for story in stories)


HOSTILE = [
    ("why", {"rule": "a\0b"}, "hidden characters"),
    ("why", {"rule": "x" * 401}, "at most 400"),
    ("why", {"rule": "../../../etc/passwd:1"}, "there is no file"),
    ("why", {"rule": "y", "skill": "../other"}, "there is no skill '../other'"),
    ("show", {"revision": "v7\x1b[2J"}, "hidden characters"),
    ("show", {"revision": "--help"}, "there is no revision '--help'"),
    ("show", {"revision": "nope/v1"}, "hint: "),
    ("blame", {"path": "/etc/passwd"}, "there is no file"),
    ("blame", {"lines": "-1"}, "names no lines"),
    ("versions", {"limit": 10**12}, "less than or equal to 100"),
    ("versions", {"run": "nope"}, "nope"),
    ("versions", {"cursor": "AAAA"}, "hint: ask again without a cursor"),
    ("items", {"item": "no-such-item"}, "hint: "),
    ("items", {"flaky": "yes; DROP TABLE event"}, "Input should be"),
    ("cost", {"by": "password"}, "Input should be"),
    ("diff", {"a": "v0", "b": "v999"}, "hint: "),
    ("runs", {"name": "score>high"}, "which is not a number"),
    ("show", {"rev": "v1"}, "show has no argument rev\nhint: it has revision"),
    ("why", {}, "why cannot take this rule: Field required"),
]


def test_hostile_arguments_are_refused_with_a_sentence(trained):
    async def play(agent):
        return [await agent.refused(tool, **arguments) for tool, arguments, _ in HOSTILE]

    for (tool, _, reason), text in zip(HOSTILE, with_agent(user(trained), play), strict=True):
        assert reason in text
        assert "Traceback" not in text
        assert "pydantic" not in text
        assert text != f"Error executing tool {tool}"


def test_an_answer_without_a_repository_is_a_sentence(tmp_path):
    async def play(agent):
        return await agent.refused("runs")

    text = with_agent(user(tmp_path), play)
    assert "hint: " in text


LISTS = [
    ("versions", "events", {}),
    ("blame", "lines", {}),
    ("items", "items", {}),
    ("diff", "rules", {"a": "v0", "b": "best", "rules": True}),
]


def test_pages_are_the_whole_list(trained):
    async def play(agent):
        for tool, rows, arguments in LISTS:
            whole = await agent.every(rows, tool, **arguments, limit=100)
            assert len(whole) > 3
            for limit in (len(whole) // 2 + 1, len(whole)):
                assert await agent.every(rows, tool, **arguments, limit=limit) == whole

    with_agent(user(trained), play)


def test_a_cursor_is_good_for_its_question_and_its_server_only(trained):
    async def first(agent):
        cursor = (await agent.ask("versions", limit=2))["next_cursor"]
        return cursor, [
            await agent.refused("versions", limit=2, rejected=False, cursor=cursor),
            await agent.refused("items", cursor=cursor),
            *[
                await agent.refused(
                    "versions", limit=2, cursor=f"{cursor[:at]}{'B' if cursor[at] == 'A' else 'A'}{cursor[at + 1 :]}"
                )
                for at in (0, 30, len(cursor) // 2)
            ],
        ]

    cursor, refusals = with_agent(user(trained), first)

    async def second(agent):
        return await agent.refused("versions", limit=2, cursor=cursor)

    refusals.append(with_agent(user(trained), second))
    assert all("this cursor belongs to another question" in text for text in refusals)


def test_pages_fit_together_while_events_come(trained, tmp_path):
    repository = copy_folder(trained, tmp_path / "repository")

    async def play(agent):
        before = await agent.every("events", "versions", limit=100)
        page = await agent.ask("versions", limit=2)
        skillgit("revert", "--to", "v0", cwd=repository)
        skillgit("fork", "v1", "young", cwd=repository)
        rest = await agent.ask("versions", limit=100, cursor=page["next_cursor"])
        runs = await agent.ask("runs")
        return before, [*page["events"], *rest["events"]], runs, await agent.every("events", "versions", run=RUN)

    before, paged, runs, after = with_agent(user(repository), play)
    assert [row["commit"] for row in paged] == [row["commit"] for row in before]
    assert len(after) == len(before) + 1
    assert {run["name"] for run in runs["runs"]} == {"young", RUN}


def test_texts_and_whole_differences_are_resources(trained):
    async def play(agent):
        shown = await agent.ask("show", revision="best")
        document = (await agent.client.read_resource(shown["document"])).contents[0]
        difference = (await agent.client.read_resource("skillgit://diff/v0/best")).contents[0]
        refusals = []
        for address in (
            "file/best/../../HEAD",
            "file/best/nope.md",
            "file/best%3Ax/SKILL.md",
            "diff/v0/%00",
            "file/nope/SKILL.md",
        ):
            with pytest.raises(MCPError) as refusal:
                await agent.client.read_resource(f"skillgit://{address}")
            refusals.append(str(refusal.value))
        return document.text, difference.text, refusals

    document, difference, refusals = with_agent(user(trained), play)
    assert document.encode() == skillgit("show", "best:SKILL.md", cwd=trained).bytes
    assert difference == skillgit("diff", "v0", "best", cwd=trained).out
    assert not any("Traceback" in text for text in refusals)


def test_credentials_are_masked(trained, monkeypatch):
    commit = git("rev-parse", f"best/{RUN}", cwd=trained).out.strip()
    monkeypatch.setenv("HISTORY_TOKEN", commit)
    answer = asked(user(trained), "show", revision="best")
    assert commit not in json.dumps(answer)
    assert answer["row"]["commit"] == "[redacted]"


def test_an_agent_means_a_skill_as_the_command_does(trained):
    async def play(agent):
        named = [await agent.ask(tool, **arguments, skill="searchqa") for tool, (arguments, _) in QUESTIONS.items()]
        plain = [await agent.ask(tool, **arguments) for tool, (arguments, _) in QUESTIONS.items()]
        refusals = [await agent.refused(tool, **arguments, skill="no") for tool, (arguments, _) in QUESTIONS.items()]
        return named, plain, refusals

    named, plain, refusals = with_agent(user(trained), play)
    assert [{**answer, "next_cursor": ""} for answer in named] == [{**answer, "next_cursor": ""} for answer in plain]
    assert all("there is no skill 'no'" in text for text in refusals)


def test_what_acts_on_a_terminal_is_shown_and_not_done(rules):
    answer = asked(rules, "why", rule="unit that the question asks for")
    assert "\x1b" not in json.dumps(answer, ensure_ascii=False)
    assert any("^[[2Jseven" in attempt["answer"] for attempt in answer["failures"])


def texts_in(value) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in texts_in(part)]
    if isinstance(value, list):
        return [text for part in value for text in texts_in(part)]
    return [value] if isinstance(value, str) else []


def test_no_answer_about_a_hostile_run_holds_what_acts_or_hides(repo):
    write_hostile_run(repo)

    async def play(agent):
        whole = [await agent.ask(tool, **arguments) for tool, (arguments, _) in QUESTIONS.items()]
        whole += [await agent.ask("diff", a="v0", b="v1", rules=rules) for rules in (False, True)]
        return whole

    texts = texts_in(with_agent(user(repo.workdir), play))
    assert any("FORGED" in text for text in texts)
    assert [text for text in texts if ACTS.search(text)] == []


@pytest.mark.slow
@pytest.mark.soak
def test_an_agent_may_ask_while_a_run_is_trained(tmp_path):
    repository = new_repository(tmp_path / "repository")
    words = [*SKILLGIT, "train", "demo", "--run", RUN, "-q", *QUICK]

    async def look(agent):
        (run,) = (await agent.ask("runs"))["runs"] or [None]
        if run is None:
            return 0
        first = await agent.ask("versions", limit=1)
        rest = first["next_cursor"]
        more = (await agent.ask("versions", limit=1, cursor=rest))["events"] if rest else []
        commits = [row["commit"] for row in [*first["events"], *more]]
        assert len(set(commits)) == len(commits)
        await agent.ask("blame")
        return run["versions"] + run["rejected"]

    async def play(agent):
        counts = []
        while training.poll() is None:
            counts.append(await look(agent))
        return counts, await agent.every("events", "versions", limit=2)

    with subprocess.Popen(words, cwd=repository, env=surroundings(), stderr=subprocess.DEVNULL) as training:
        counts, events = with_agent(user(repository), play)
    assert training.returncode == 0
    assert counts == sorted(counts)
    assert len(set(counts)) > 1
    assert len(events) > 3


def test_a_removed_rule_is_found(rules):
    answer = asked(rules, "why", rule=READ, revision="v3")
    assert not answer["here"]


@given(st.text(max_size=30).map(lambda text: text * 90))
def test_every_quote_is_bounded_and_shows_what_is_hidden(text):
    fact = answers.part_type(TrajectoryPattern)(pattern=text, count=1, items=["x"] * 1_000)
    assert len(fact.pattern) <= answers.QUOTE + 40
    assert visible(fact.pattern) == fact.pattern
    assert len(fact.items) == answers.NAMES


def test_runs_say_how_many_there_are_also_where_a_name_narrows_them(trained):
    answer = asked(user(trained), "runs", name="nothing")
    assert (answer["runs"], answer["total"]) == ([], 1)


def classes_in(kind, known: dict[str, type]) -> None:
    for part in get_args(kind):
        classes_in(part, known)
    if getattr(kind, "__name__", "") in answers.FIELDS.keys() - known.keys():
        known[kind.__name__] = kind
        for part in get_type_hints(kind).values():
            classes_in(part, known)


def test_fields_are_those_of_values_that_verbs_answer():
    known = {}
    verbs = (RUNS, LOG, SHOWN_EVENT, WHY, BLAME, ITEM_TABLE, ITEM_STORY, TEXT_DIFF, RULE_DIFF, ITEM_DIFF, COST)
    for verb in verbs:
        classes_in(get_type_hints(verb.run)["return"], known)
    for name, fields in answers.FIELDS.items():
        table = answers._TABLES.get(name)
        computed = {} if table is None else table.computed
        assert {*fields.split()} <= {*get_type_hints(known[name]), *computed}
