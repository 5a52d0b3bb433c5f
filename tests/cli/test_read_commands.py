from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import cli_sample as sample
import cost_sample
import pytest

from skillgit.app.history.log import Log
from skillgit.app.history.requests import LogRequest
from skillgit.app.proposals.usefulness import ListedModels, SkillOnModel, UsefulnessReport
from skillgit.app.recorded.score_summary import SkillComparison
from skillgit.app.setup.basis import ResultBasis
from skillgit.app.setup.environment_profile import (
    EnvironmentProfile,
    ItemField,
    ItemSample,
    ProfiledEnvironment,
    Requirement,
    ScorerChoice,
)
from skillgit.app.setup.models import PromptRoom
from skillgit.app.setup.plugins import (
    InstalledPlugin,
    PluginKind,
    StrategyInfo,
    StrategySetting,
)
from skillgit.app.sources.data_check import DataCheck, SplitSummary
from skillgit.app.train.doctor import Checkup, Found, Machine, Program, RoleHealth
from skillgit.app.upkeep.fsck import Checked
from skillgit.domain.cost import Caps, Cost
from skillgit.domain.evaluation import Split
from skillgit.domain.event_kinds import EventKind
from skillgit.domain.finding import REPAIR, UNREACHABLE, Finding
from skillgit.domain.trajectory import Picture, Turn
from skillgit.domain.usefulness import Advice
from skillgit.errors import ExitCode, HistoryError
from skillgit.plugin.backend import BackendInfo, Price
from skillgit.plugin.environment import CallBounds, EnvironmentInfo, Option, PublicSource, SourceKind

GOLDEN = Path(__file__).parent / "golden"

ENVIRONMENT = InstalledPlugin(
    kind=PluginKind.ENVIRONMENT,
    name="searchqa",
    reference="skillgit_envs.searchqa:SearchQA",
    info=EnvironmentInfo(
        name="searchqa",
        summary="Answer a trivia question from search results.",
        fields={"question": "What is asked.", "context": "Search results."},
        scorer="hard is exact match, soft is token F1.",
        source="Written for this project.",
        options=(
            Option(name="max_turns", type=int, default=1, help="Turns of a rollout."),
            Option(name="data_path", type=str, default="", help="Folder of the data."),
        ),
        task_types=("jeopardy", "units"),
        licence="MIT",
        public=PublicSource(
            kind=SourceKind.HUGGINGFACE,
            place="someone/searchqa",
            revision="c0ffee",
            files=("data/*.parquet",),
            convert="skillgit_envs.searchqa:published",
            layout="Place it and name it with env.data_path.",
        ),
    ),
    error="",
)
PROFILED = ProfiledEnvironment(
    kind=PluginKind.ENVIRONMENT,
    name=ENVIRONMENT.name,
    reference=ENVIRONMENT.reference,
    info=ENVIRONMENT.info,
    error="",
    profile=EnvironmentProfile(
        counts={Split.TRAIN: 60, Split.SELECTION: 40, Split.TEST: 1200},
        calls=CallBounds(target=(1200, 2400), judge=(0, 1200)),
        scorers=(
            ScorerChoice(name="rules", summary="exact match", default=True, judge=False),
            ScorerChoice(name="official", summary="as the authors do, score.py", default=False, judge=True),
        ),
        needs=(
            Requirement(name="judge", purpose="a model that scores with env.scorer: official", present=None),
            Requirement(name="sandbox", purpose="runs tools", present=True, detail="landlock"),
            Requirement(name="games", purpose="the games", present=False, detail="pip install 'skillgit[games]'"),
        ),
        sample=ItemSample(
            id="q1",
            split=Split.TRAIN,
            task_type="jeopardy",
            fields=(
                ItemField(name="question", value="Who drew\nthis? " * 20, shown=True),
                ItemField(name="answers", value=["Ada", "Ada L."], shown=False),
            ),
            prompt=(
                Turn(role="system", content="\x1b[31mAnswer.\n\n# Skill"),
                Turn(
                    role="user",
                    content="x" * 250,
                    pictures=(Picture(digest="0123456789abcdef", media_type="image/png", size=1500),),
                ),
            ),
            tools=("grep", "read"),
        ),
        fault="the test split is empty: bring more",
    ),
)
BROKEN = InstalledPlugin(
    kind=PluginKind.ENVIRONMENT,
    name="third",
    reference="third:Env",
    info=None,
    error="environment 'third' cannot be loaded",
)
STRATEGY = InstalledPlugin(
    kind=PluginKind.STRATEGY,
    name="racing",
    reference="skillgit.strategies.racing:Racing",
    info=StrategyInfo(
        summary="several steps at once",
        description="Rounds of several\nsteps.\n\nEach step studies its own items.",
        keys=(StrategySetting(key="train.round_steps", default="4", meaning="Steps of a round."),),
    ),
    error="",
)
FOREIGN_STRATEGY = InstalledPlugin(
    kind=PluginKind.STRATEGY,
    name="luck",
    reference="theirs.luck:Luck",
    info=StrategyInfo(summary="tries its luck"),
    error="",
)
BACKEND = InstalledPlugin(
    kind=PluginKind.BACKEND,
    name="offline",
    reference="skillgit_backends.offline:OfflineBackend",
    info=BackendInfo(
        name="offline",
        summary="Simulate models without a network.",
        models=("target", "optimizer"),
        needs_network=False,
        prices={"target": Price(usd_in=0.0, usd_out=0.0), "optimizer": Price(usd_in=1.25, usd_out=10.0)},
    ),
    error="",
)
ANSWERS = RoleHealth(
    role="target",
    backend="openai_chat",
    model="gpt-5-mini",
    place="api.openai.com",
    credential="the key in OPENAI_API_KEY",
    answers=True,
    latency_ms=412,
    answered_by="gpt-5-mini-2025-08-07",
    parameters={"temperature": 0.5, "stop": ["END"]},
    counted=True,
    is_local=False,
    price=Price(usd_in=0.25, usd_out=2.0),
    price_source="table",
    room=PromptRoom(context=400_000, source="table", prompt=3120, reply=16384),
    fit="fits",
)
REFUSES = RoleHealth(
    role="optimizer",
    backend="qwen_chat",
    model="big",
    place="gpu:8000",
    credential="no key",
    answers=False,
    fault=Finding(
        rule=UNREACHABLE,
        sentence="qwen_chat: the connection to gpu:8000 broke: ConnectionRefusedError",
        hint="check the network, and model.qwen_chat_base_url where it is set",
    ),
    is_local=False,
    price=None,
    price_source="",
)
JUDGE = replace(
    ANSWERS,
    role="judge",
    counted=False,
    room=PromptRoom(context=32_768, source="server", prompt=30_000, reply=16384),
    fit="near",
    price=Price(usd_in=0.0, usd_out=0.0),
)
CHECKUP = Checkup(
    machine=Machine(
        python="3.13.1",
        system="Linux",
        git="2.47.0",
        sqlite="3.46.0",
        programs=(
            Program(name="bubblewrap", path="/usr/bin/bwrap", purpose="keeps commands apart"),
            Program(name="libreoffice", path="", purpose="computes spreadsheets"),
        ),
    ),
    repository=Found(path="/home/me/skills/.git", runs=2),
    config="mine.yaml",
    roles=(ANSWERS, REFUSES, JUDGE),
    prices_of="2026-11-21",
    contexts_of="2026-11-21",
    notes=(),
)
PLUGINS = (ENVIRONMENT, BROKEN, BACKEND, STRATEGY, FOREIGN_STRATEGY)
TEST = SplitSummary(split=Split.TEST, items=3, used=3, types={"date": 3}, digest="0" * 12, step=1 / 3, detectable=None)
SOUND = DataCheck(environment="searchqa", splits=(TEST,), findings=(), notes=(), exit_code=ExitCode.OK)
MACHINE_ONLY = replace(CHECKUP, repository=None, config="", roles=())
PROBLEMS = (
    Finding(run=sample.RUN, commit=sample.oid("4b9ede6"), sentence="its parent is not v7"),
    Finding(run=sample.RUN, commit="", sentence="tag v8 is missing", hint=REPAIR),
)
CHECKED = Checked(runs=3, commits=97, problems=PROBLEMS)
NARROW = Log(run=sample.RUN, rows=(replace(sample.V8, title="言葉の長さ " * 12), sample.R18))

MODELS = UsefulnessReport(
    base="main",
    listed=(ListedModels(server="openai_chat 127.0.0.1:8000", known=5, new=("openai_chat/reader-2",)),),
    skills=(
        SkillOnModel(
            skill="skills/town",
            model="openai_chat/reader-2",
            answer="harms",
            action=Advice.RETIRE,
            sentence="a gain of 0.1 is ruled out at 0.05, and it scores lower than without; 0.0258 is left to gain",
            text="skills/town/SKILL.md of main (c1dcf19)",
            basis=ResultBasis(
                run="small", reason="the default run", target="openai_chat reader-2", data="160 of tasks"
            ),
            items=155,
            of=160,
            needed=155,
            score=0.9355,
            without=0.9742,
            compared=SkillComparison(
                name="main",
                against="none",
                split="test",
                metric="hard",
                n=155,
                delta=-0.0387,
                interval=(-0.071, -0.0065),
                p=0.9713,
                fixed=("q1",),
                broken=("q2", "q3"),
            ),
            p_worse=0.0112,
            p_worth=0.0012,
            branch="retire/town",
            commit="b" * 40,
            noted=1,
            cost=Cost(calls=310, tokens_in=9000, tokens_out=800, usd=0.5),
        ),
        SkillOnModel(
            skill="skills/lake",
            model="openai_chat/reader-2",
            sentence="lake has no reviewed tasks",
            hint="skillgit tasks draft --skill lake",
            error=ExitCode.USAGE,
        ),
    ),
    cost=Cost(calls=310, tokens_in=9000, tokens_out=800, usd=0.5),
    exit_code=ExitCode.USAGE,
)

CASES = {
    "log": (("history.log.log", sample.LOG), ("log",)),
    "log-graph": (("history.log.log", sample.LOG), ("log", "--graph")),
    "log-graph-all": (("history.log.log", sample.ALL), ("log", "--graph", "--all")),
    "log-colour": (("history.log.log", sample.LOG), ("--color=always", "log", "--graph")),
    "log-wide-characters": (("history.log.log", NARROW), ("log",)),
    "log-json": (("history.log.log", sample.LOG), ("log", "--json")),
    "log-plain": (("history.log.log", sample.LOG), ("log", "--plain")),
    "runs": (("history.run_list.run_list", sample.RUN_LIST), ("runs",)),
    "runs-colour": (("history.run_list.run_list", sample.RUN_LIST), ("--color=always", "runs")),
    "runs-json": (("history.run_list.run_list", sample.RUN_LIST), ("runs", "--json")),
    "runs-plain": (("history.run_list.run_list", sample.RUN_LIST), ("runs", "--plain")),
    "status": (("history.status.status", sample.STATUS), ("status",)),
    "status-json": (("history.status.status", sample.STATUS), ("status", "--json")),
    "status-empty": (("history.status.status", sample.EMPTY_STATUS), ("status",)),
    "show-colour": (("history.show.show", sample.SHOWN["v7"]), ("--color=always", "show", "v7")),
    "show-json": (("history.show.show", sample.SHOWN["v7"]), ("show", "v7", "--json")),
    **{f"show-{name}": (("history.show.show", shown), ("show", name)) for name, shown in sample.SHOWN.items()},
    "cost": (("history.cost.cost", cost_sample.SPENDING), ("cost",)),
    "cost-colour": (("history.cost.cost", cost_sample.SPENDING), ("--color=always", "cost")),
    "cost-json": (("history.cost.cost", cost_sample.SPENDING), ("cost", "--json")),
    "cost-plain": (("history.cost.cost", cost_sample.SPENDING), ("cost", "--plain")),
    "cost-by-model": (("history.cost.cost", cost_sample.UNPRICED_SPENDING), ("cost", "--by", "model")),
    "cost-by-version": (("history.cost.cost", cost_sample.VERSION_SPENDING), ("cost", "--by", "version")),
    "cost-by-step": (("history.cost.cost", cost_sample.STEP_SPENDING), ("cost", "--by", "step")),
    "cost-all": (("history.cost.cost", cost_sample.RUNS_SPENDING), ("cost", "--all")),
    "fsck": (("upkeep.fsck.fsck", CHECKED), ("fsck",)),
    "fsck-json": (("upkeep.fsck.fsck", CHECKED), ("fsck", "--json")),
    "fsck-plain": (("upkeep.fsck.fsck", CHECKED), ("fsck", "--plain")),
    "plugins": (("setup.plugins.every_plugin", PLUGINS), ("plugins",)),
    "plugins-json": (("setup.plugins.every_plugin", PLUGINS), ("plugins", "--json")),
    "plugins-plain": (("setup.plugins.every_plugin", PLUGINS), ("plugins", "--plain")),
    "plugins-environment": (("setup.environment_profile.described", (PROFILED,)), ("plugins", "searchqa")),
    "plugins-environment-json": (
        ("setup.environment_profile.described", (PROFILED,)),
        ("plugins", "searchqa", "--json"),
    ),
    "plugins-strategy": (("setup.environment_profile.described", (STRATEGY,)), ("plugins", "racing")),
    "plugins-backend": (("setup.environment_profile.described", (BACKEND,)), ("plugins", "offline")),
    "propose-model": (
        ("proposals.usefulness.judge_usefulness", MODELS),
        ("propose", "-q", "--model", "new"),
    ),
    "propose-model-json": (
        ("proposals.usefulness.judge_usefulness", MODELS),
        ("propose", "-q", "--model", "new", "--json"),
    ),
    "doctor": (("train.doctor.doctor", CHECKUP), ("doctor", "mine.yaml")),
    "doctor-json": (("train.doctor.doctor", CHECKUP), ("doctor", "mine.yaml", "--json")),
    "doctor-machine": (("train.doctor.doctor", MACHINE_ONLY), ("doctor",)),
}


@pytest.mark.parametrize("name", CASES)
def test_every_format_of_every_read_command_is_golden(name, skillgit, fake):
    (verb, result), arguments = CASES[name]
    fake(verb, result)
    fake("sources.data_check.check_data", SOUND)
    ended = skillgit(*arguments)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(ended.out)
    assert ended.out == path.read_bytes()


def test_no_golden_file_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.txt")} >= set(CASES)


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("-json")])
def test_json_documents_name_their_schema_first(name, skillgit, fake):
    (verb, result), arguments = CASES[name]
    fake(verb, result)
    fake("sources.data_check.check_data", SOUND)
    document = json.loads(skillgit(*arguments).out)
    assert next(iter(document)) == "schema"
    assert document["schema"].startswith("skillgit.")
    assert document["schema"].endswith("/1")


def test_a_cell_cannot_end_its_row(skillgit, fake):
    fake("history.log.log", Log(run=sample.RUN, rows=(replace(sample.V8, title="a\tb\nc"),)))
    (line,) = skillgit("log", "--plain").text.splitlines()
    assert line.split("\t")[-2:] == ["a b c", sample.V8.skill]


def test_machine_formats_ignore_colour(skillgit, fake):
    fake("history.log.log", sample.LOG)
    for form in ("--json", "--plain"):
        assert b"\x1b" not in skillgit("--color=always", "log", form).out


def test_model_text_cannot_drive_the_terminal(skillgit, fake):
    evil = replace(sample.V8, title="\x1b]52;c;ZXZpbA==\x07 \x1b[2J hi")
    fake("history.log.log", Log(run=sample.RUN, rows=(evil,)))
    text = skillgit("log").text
    assert "\x1b" not in text
    assert "^[]52;" in text


def test_log_hands_its_options_on(skillgit, fake):
    calls = fake("history.log.log", sample.LOG)
    choice = ("--no-rejected", "-n", "3", "--grep", "unit", "--event", "accepted", "--event", "skipped", "--reverse")
    skillgit("log", "v3..v7", *choice, "--since", "yesterday", "--until", "2026-11-21", "--item", "q17")
    expected = LogRequest(
        words=("v3..v7",),
        with_rejected=False,
        limit=3,
        events=(EventKind.ACCEPTED, EventKind.SKIPPED),
        grep="unit",
        since="yesterday",
        until="2026-11-21",
        items=("q17",),
        reverse=True,
    )
    assert calls == [(expected,)]


@pytest.mark.parametrize("words", [("log",), ("log", "--all"), ("runs",), ("status",), ("runs", "--json")])
def test_lists_tell_which_runs_are_left_out(words, skillgit, fake, monkeypatch):
    uses = {
        "log": ("history.log.log", sample.LOG),
        "runs": ("history.run_list.run_list", sample.RUN_LIST),
        "status": ("history.status.status", sample.STATUS),
    }
    fake(*uses[words[0]])
    index = SimpleNamespace(broken={"mine": HistoryError("it is odd", hint="")})
    monkeypatch.setattr("skillgit.app.workspace.workspace.Workspace.index", index)
    ended = skillgit(*words)
    assert ended.err == "run mine is left out, since it cannot be read: it is odd\nhint: skillgit fsck\n"
    assert ended.out


def test_log_takes_a_count_as_git_does(skillgit, fake):
    calls = fake("history.log.log", sample.LOG)
    skillgit("log", "-3", "--grep", "-7", "v3")
    assert calls == [(LogRequest(words=("v3",), limit=3, grep="-7"),)]
    skillgit("log", "-n", "5", "-12")
    assert calls[1] == (LogRequest(limit=12),)
    skillgit("log", "--", "-3")
    assert calls[2] == (LogRequest(words=("-3",)),)


def test_cost_hands_its_options_on(skillgit, fake):
    calls = fake("history.cost.cost", cost_sample.SPENDING)
    skillgit("cost", "other", "--by", "version")
    skillgit("cost", "--all")
    assert calls == [("other", {"by": "version", "all_runs": False}), (None, {"by": None, "all_runs": True})]


@pytest.mark.parametrize("more", [("other",), ("--by", "role")])
def test_the_cost_of_all_runs_is_not_broken_down(more, skillgit, fake):
    fake("history.cost.cost", cost_sample.SPENDING)
    ended = skillgit("cost", "--all", *more)
    assert (ended.code, ended.out) == (2, b"")
    assert "--all cannot be combined with" in ended.err


def test_a_run_that_asked_no_model_and_no_run_at_all_say_so(skillgit, fake):
    nothing = replace(cost_sample.SPENDING.total, calls=0, usd=0.0)
    fake("history.cost.cost", replace(cost_sample.SPENDING, rows=(), total=nothing))
    assert skillgit("cost").text == f"{sample.RUN}\nno model was asked\n"
    fake("history.cost.cost", replace(cost_sample.SPENDING, run="", rows=(), total=nothing))
    ended = skillgit("cost")
    assert (ended.out, ended.err) == (b"", "there are no runs yet\nhint: skillgit train\n")


def test_an_empty_list_says_what_to_do_on_stderr_only(skillgit, fake):
    fake("history.run_list.run_list", sample.NO_RUNS)
    ended = skillgit("runs")
    assert (ended.code, ended.out) == (0, b"")
    assert ended.err == "there are no runs yet\nhint: skillgit train\n"


def test_a_read_is_silent_on_stderr(skillgit, fake):
    fake("history.log.log", sample.LOG)
    assert not skillgit("log").err


def test_an_index_that_cannot_be_used_is_reported(skillgit, fake):
    fake("history.status.status", replace(sample.STATUS, index_fresh=False))
    assert "hint: skillgit fsck --repair" in skillgit("status").err


def test_doctor_ends_with_the_code_of_what_it_found_and_hands_its_options_on(skillgit, fake):
    calls = fake("train.doctor.doctor", CHECKUP)
    fake("sources.data_check.check_data", SOUND)
    assert skillgit("doctor", "mine.yaml", "-o", "train.seed=1", "--no-call").code == ExitCode.SERVICE
    assert calls == [("mine.yaml", ("train.seed=1",), {"call": False, "caps": Caps(), "dry_run": False})]
    assert skillgit("doctor", "-o", "train.seed=1").code == ExitCode.USAGE
    assert len(calls) == 1
