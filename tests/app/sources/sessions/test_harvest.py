"""Sessions that the real programs kept become drafts: the planted requests, and nothing of what was planted in them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import planted
import pytest
import worlds
from driven_agents import program
from hypothesis import given
from hypothesis import strategies as st
from once import copy_folder
from soaking import sampled, soak
from wire import wire_server

from skillgit.app.setup.plan import Plan
from skillgit.app.sources.harvest import Harvested, harvest
from skillgit.app.sources.harvest_episodes import episodes
from skillgit.app.sources.requests import DraftRequest
from skillgit.app.sources.sessions.session import AgentSession, SessionAgent, SessionTurn, SkillUse
from skillgit.app.workspace.context import Context
from skillgit.domain.evaluation import Split
from skillgit.domain.trajectory import Trajectory
from skillgit.errors import UsageError
from skillgit.plugin.registry import load_environment
from skillgit.view.surface import Screen
from skillgit.view.tasks import harvested as lines_of

if TYPE_CHECKING:
    from collections.abc import Callable


AGENTS = tuple(worlds.WORLDS)
VARIABLES = {"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "opencode": "OPENCODE_DB", "copilot": "COPILOT_HOME"}


@dataclass(frozen=True)
class Harvest:
    folder: Path
    result: Harvested
    again: Callable[..., Harvested | Plan]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.result.path.read_text().splitlines()]


def context_of(folder: Path, agent: str, state: Path) -> Context:
    home, value = (planted.secrets()[kind] for kind in ("home", "variable"))
    environ = {**os.environ, VARIABLES[agent]: str(state), "HOME": home, "DEPLOY_TOKEN": value}
    return replace(Context.from_process(folder), environ=environ)


def harvesting(folder: Path, agent: str, state: Path) -> Harvest:
    context = context_of(folder, agent, state)

    def again(**more: Any) -> Harvested | Plan:
        return harvest(context, DraftRequest(**{"subject": "totals", "source": agent, **more}))

    result = again()
    assert isinstance(result, Harvested)
    return Harvest(folder, result, again)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Harvest]:
    """Return what is harvested from the recordings of an agent, with secrets wherever something can be planted."""
    harvests: dict[str, Harvest] = {}

    def of(agent: str) -> Harvest:
        if agent not in harvests:
            folder, state = planted.lay_out(tmp_path_factory.mktemp(agent), agent, planted.planted())
            harvests[agent] = harvesting(folder, agent, state)
        return harvests[agent]

    return of


def check_harvest(agent: str, harvest: Harvest, *, most_missed: int = 0) -> None:
    requests = {row["prompt"] for row in harvest.rows}
    missed = {start for start in worlds.EPISODES[agent] if not any(text.startswith(start) for text in requests)}
    assert len(missed) <= most_missed, missed
    assert len(requests) == len(worlds.EPISODES[agent]) - len(missed)
    everything = harvest.result.path.read_text()
    assert worlds.HEADLESS not in everything
    assert worlds.SUBAGENT not in everything
    assert harvest.result.left_out["of headless runs"] >= 1
    assert harvest.result.unknown == {}
    assert len(harvest.result.drafts) + sum(harvest.result.not_drafted.values()) == harvest.result.turns
    assert harvest.result.is_met


def check_nothing_leaks(harvest: Harvest) -> None:
    drafts = harvest.result.path.parents[1]
    written = {file: file.read_bytes() for file in drafts.rglob("*") if file.is_file()}
    names = "\n".join(str(file.relative_to(drafts)) for file in written)
    shown = "\n".join(lines_of(harvest.result, Screen()))
    texts = [
        *(content.decode(errors="replace") for content in written.values()),
        names,
        json.dumps(asdict(harvest.result), default=str),
        shown,
    ]
    leaks = [(kind, text[:80]) for kind, value in planted.secrets().items() for text in texts if value in text]
    assert leaks == []
    halves = [
        value[: len(value) // 2] for kind, value in planted.secrets().items() if kind in ("anthropic", "github", "npm")
    ]
    assert [half for half in halves for text in texts if half in text] == []


@pytest.mark.parametrize("agent", AGENTS)
def test_what_people_asked_for_is_drafted_and_nothing_that_was_planted_is_written(recorded, agent):
    check_harvest(agent, recorded(agent))
    check_nothing_leaks(recorded(agent))


def test_sub_agents_notifications_and_summaries_are_told_by_count(recorded):
    counts = recorded("claude").result.left_out
    assert counts["of sub-agents"] == 1
    assert counts["in notifications of tasks"] >= 1
    assert counts["in summaries of compacted sessions"] >= 1
    assert counts["in texts of skills"] >= 5
    assert recorded("opencode").result.left_out["of sub-agents"] == 1


def test_signals_follow_from_what_was_done(recorded):
    signals = {row["prompt"][:14]: row["origin"]["signals"] for row in recorded("claude").rows}
    assert signals["sum the invoic"][::2] == ["correction", "failed-then-passed"]
    assert signals["Round the shar"] == ["correction", "interruption"]
    assert signals["Send the invoi"] == ["correction", "refusal"]
    assert signals["count the righ"] == ["rewind"]
    assert signals["Write the head"] == ["correction", "repeat"]
    uses = {row["prompt"][:14]: row["origin"]["use"] for row in recorded("claude").rows}
    assert uses["sum the invoic"] == "user"
    assert uses["Round the shar"] == "model"
    assert uses["Collect the in"] == "offered"


def test_a_dry_run_says_of_no_draft_how_it_is_scored_before_a_command_was_tried_and_counts_the_same(recorded):
    harvest = recorded("claude")
    path = harvest.result.path
    path.rename(path.with_name("away"))
    try:
        dry = harvest.again(dry_run=True)
    finally:
        path.with_name("away").rename(path)
    checks = {(trial.check, draft.check) for trial, draft in zip(dry.drafts, harvest.result.drafts, strict=True)}
    assert ("untried", "command") in checks
    assert checks <= {("untried", "command"), ("untried", "judge"), ("judge", "judge")}
    assert (dry.redacted, dry.turns, dry.not_drafted) == (
        harvest.result.redacted,
        harvest.result.turns,
        harvest.result.not_drafted,
    )


def test_a_skill_that_nobody_names_and_a_folder_that_is_not_there_are_told(recorded):
    result = recorded("copilot").again(subject="totls", dry_run=True)
    assert (result.drafts, result.is_met, result.places) == ((), False, (str(recorded("copilot").folder),))
    text = "\n".join(lines_of(result, Screen()))
    assert f"looked for sessions in {result.places[0]}; --all-projects reads all" in text
    assert "no session that was read names a skill totls" in text
    with pytest.raises(UsageError, match="there is no folder /nope"):
        recorded("copilot").again(projects=(Path("/nope"),))
    with pytest.raises(UsageError, match="has a slash") as refusal:
        recorded("copilot").again(subject="../x")
    assert refusal.value.hint == "give the skill by its name, as SKILL.md has it"


SEEN = st.builds(
    SessionTurn,
    id=st.uuids().map(str),
    prompt=st.sampled_from(["Sum the invoices", "sum the invoice", "Go on", "Why?"]),
    date=st.just("2026-11-20"),
    is_live=st.booleans(),
    interrupted=st.booleans(),
    uses=st.dictionaries(st.sampled_from(["totals", "other"]), st.just(SkillUse.USER)),
)


@given(turns=st.lists(SEEN, max_size=8), is_offered=st.booleans())
def test_for_all_sessions_each_turn_belongs_to_one_request(turns, is_offered):
    offers = {"totals": "Sum invoices"} if is_offered else {}
    session = AgentSession(agent=SessionAgent.CLAUDE, path=Path("x"), turns=turns, offers=offers)
    groups = [group for group, _ in episodes(session, "totals")]
    assert sorted(turn.id for group in groups for turn in group) == sorted(turn.id for turn in turns)


def test_a_fork_belongs_to_the_group_of_its_session(recorded):
    rows = recorded("claude").rows
    assert len({row["group"] for row in rows}) == 1
    assert len({row["origin"]["session"] for row in rows}) == 2


@pytest.mark.parametrize("agent", sampled(AGENTS, 2))
def test_a_reviewed_draft_tells_good_from_bad_in_a_run(recorded, agent, tmp_path):
    row = next(row for row in recorded(agent).rows if "sum the invoice" in row["prompt"])
    assert row["check"]["type"] == "command"
    assert row["origin"]["commit"] or agent == "opencode"
    copy_folder(recorded(agent).result.path.parent / "files", tmp_path / "files")
    others = [{"prompt": split, "answer": "-", "split": split} for split in ("selection", "test")]
    text = "".join(f"{json.dumps(task)}\n" for task in ({**row, "status": "reviewed", "split": "train"}, *others))
    (tmp_path / "tasks.jsonl").write_text(text)
    plugin = load_environment("tasks", tmp_path)
    options = {option.name: option.default for option in plugin.info.options}
    environment = plugin({**options, "data_path": "tasks.jsonl", "split_mode": "ratio"}, tmp_path)
    item = environment.items(Split.TRAIN)[0]

    def score(code: str) -> float:
        answer = f"Here it is:\n```app.py\ndef total(xs):\n    return {code}\n```\n"
        trajectory = Trajectory(item_id=item.id, turns=(), answer=answer)
        return asyncio.run(environment.score(item, trajectory, None))[0].hard

    assert score("sum(map(int, xs))") == 1
    if agent == "claude":
        assert score("0") == 0


def test_a_second_harvest_brings_nothing_back(recorded):
    harvest = recorded("codex")
    before = harvest.result.path.read_bytes()
    dropped = [{"id": row["id"], "group": row["group"], "status": "dropped"} for row in harvest.rows]
    try:
        harvest.result.path.write_text("".join(f"{json.dumps(row)}\n" for row in dropped))
        result = harvest.again()
        assert result.drafts == ()
        assert result.not_drafted["drafted, accepted or dropped before"] == len(dropped)
    finally:
        harvest.result.path.write_bytes(before)


@pytest.mark.parametrize("agent", AGENTS)
def test_other_projects_are_not_read_unless_all_are_allowed(recorded, agent, tmp_path):
    harvest = recorded(agent)
    result = harvest.again(projects=(tmp_path,), dry_run=True)
    assert (result.sessions, result.turns, result.other_projects) == (0, 0, 1)
    assert harvest.again(all_projects=True, dry_run=True).sessions > 0


def test_a_dry_run_writes_nothing(tmp_path):
    folder, state = planted.lay_out(tmp_path, "copilot", worlds.SLOTTED)
    environ = {**os.environ, "COPILOT_HOME": str(state)}
    context = replace(Context.from_process(folder), environ=environ)
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    result = harvest(context, DraftRequest(subject="totals", source="copilot", dry_run=True))
    assert len(result.drafts) == 2
    seals = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    assert [path.name for path in seals] in ([], ["seal"])


def test_the_judges_model_writes_criteria_where_no_command_checks(tmp_path):
    folder, state = planted.lay_out(tmp_path, "copilot", planted.planted())
    context = context_of(folder, "copilot", state)
    secret = planted.secrets()["anthropic"]
    reply = json.dumps({"criteria": [f"It rounds, as {secret} says."]})
    with wire_server(scripted=(("graded by", reply),), keep=True) as wire:
        overrides = ("model.judge_backend=openai_compatible", "model.judge=grader")
        overrides += (f"model.openai_compatible_base_url={wire.url}/v1",)
        request = DraftRequest(subject="totals", source="copilot", rubric=True, overrides=overrides)
        plan = harvest(context, replace(request, dry_run=True))
        assert isinstance(plan, Plan)
        assert plan.total.calls == 2
        assert not wire.log()
        result = harvest(context, request)
        questions = [entry.document["messages"][1]["content"] for entry in wire.log() if entry.document.get("messages")]
    rows = [json.loads(line) for line in result.path.read_text().splitlines()]
    assert [row.get("criteria") for row in rows] == [None, ["It rounds, as [redacted] says."]]
    assert result.cost.calls == len(questions) == 1
    assert "Whole numbers" in questions[0]
    assert not [value for value in planted.secrets().values() if value in questions[0]]


def test_what_is_older_is_left_out(recorded):
    result = recorded("copilot").again(since="2027-01-01", dry_run=True)
    assert (result.drafts, result.not_drafted["older than --since"]) == ((), 2)
    with pytest.raises(UsageError, match="neither a date nor an age"):
        recorded("copilot").again(since="yesterday", dry_run=True)


def test_a_folder_of_sessions_is_read_whoever_kept_them(recorded, tmp_path):
    harvest = recorded("codex")
    copy_folder(harvest.folder.parent / "state", tmp_path / "copy")
    assert harvest.again(source=f"sessions:{tmp_path / 'copy'}", dry_run=True).sessions == 2


@pytest.mark.parametrize("agent", [soak(agent) for agent in AGENTS])
def test_sessions_kept_now_by_the_installed_programs(agent, tmp_path):
    if not program(agent) or not shutil.which("tmux"):
        pytest.skip(f"{agent} or tmux is not installed (SKILLGIT_{agent.upper()} names the program)")
    values = planted.planted()
    # A person can paste anything, but a terminal takes no name of a file with so many signs.
    state = worlds.WORLDS[agent](
        tmp_path, values | {"prompt": planted.secrets()["anthropic"], "follow": planted.secrets()["iban"]}
    )
    harvest = harvesting(tmp_path / "shop", agent, state)
    check_harvest(agent, harvest, most_missed=int(agent == "claude"))
    check_nothing_leaks(harvest)
