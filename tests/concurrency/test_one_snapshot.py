"""An answer is of one moment, however many use cases it is put together from and whatever a trainer does meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path

import pytest
from asking import ask
from bench.histories.story import gain_of, run_story
from once import copy_folder
from soaking import soak

from skillgit.app.deliver import report as report_room
from skillgit.app.history.cost import cost
from skillgit.app.history.log import log
from skillgit.app.history.requests import LogRequest
from skillgit.app.history.run_list import run_list
from skillgit.app.workspace.context import Context
from skillgit.app.workspace.invitations import Role
from skillgit.app.workspace.workspace import Workspace
from skillgit.cli import main
from skillgit.errors import SkillgitError
from skillgit.index import refresh
from skillgit.store import refs
from skillgit.store.event_writer import RunWriter
from skillgit.store.repo import Repo
from skillgit.verbs.command_line import VerbCommand
from skillgit.view.catalogue import ENTRIES
from skillgit.web import application
from skillgit.web.pages import ROUTES
from skillgit.web.rendering import Access, Visit

RUN, EVENTS = "demo", 12
ARGUMENTS = {
    "show": ["v1"],
    "blame": ["v1"],
    "why": ["1"],
    "items": [RUN],
    "rev-parse": ["v1"],
    "diff": ["v0", "v1"],
    "report": [RUN, "--output", "-"],
    "sql": ["SELECT count(*) FROM run"],
}
"""What commands that read are given to answer at all."""


class Training:
    """A run that goes on by one event whenever somebody opens the index."""

    def __init__(self, repo) -> None:
        self.chapters = run_story(RUN, 3, gain_of(400))
        self.writer = RunWriter(repo, RUN, lambda: datetime.now(UTC))
        self.openings = 0

    def go_on(self, events: int = 1) -> None:
        for chapter in islice(self.chapters, events):
            self.writer.append(chapter.event, chapter.skill, chapter.evidence)


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """A repository with the first events of the run; each training goes on in a copy."""
    repo = Repo.init(tmp_path_factory.mktemp("begun") / "repository")
    Training(repo).go_on(EVENTS)
    return repo.workdir


@pytest.fixture
def repo(begun, tmp_path) -> Repo:
    return Repo.discover(copy_folder(begun, tmp_path / "repository"))


@pytest.fixture
def training(repo, monkeypatch) -> Training:
    training = Training(repo)
    training.chapters = islice(training.chapters, EVENTS, None)
    open_index = refresh.open_index

    def opened(repo):
        index = open_index(repo)
        training.openings += 1
        training.go_on()
        return index

    monkeypatch.setattr(refresh, "open_index", opened)
    return training


@pytest.fixture
def context(repo) -> Context:
    return Context.from_process(repo.workdir)


def reading_commands() -> list[str]:
    commands = {name: main.cli.get_command(None, name) for name in ENTRIES}
    return [
        name
        for name, command in commands.items()
        if isinstance(command, VerbCommand)
        and "as_of" in command.keys
        and "measure" not in {param.name for param in command.params}
    ]


@pytest.mark.parametrize("name", reading_commands())
def test_a_command_that_reads_opens_the_repository_once(name, training, context, capsysbinary):
    code = main.run(["-C", str(context.directory), name, *ARGUMENTS.get(name, [])])
    assert code in {0, 1}, capsysbinary.readouterr().err
    assert training.openings == 1


@pytest.mark.parametrize("path", [route.path for route in ROUTES if route.method == "GET"])
def test_a_page_opens_the_repository_once(path, training, context):
    parameters = {"run": RUN, "event": "v1", "item": "q01", "skill": "demo", "id": "1", "digest": "0" * 64}
    visit = Visit(
        workspace=Workspace(context, still=True),
        access=Access(name="owner", role=Role.OPERATOR, csrf=""),
        path=path,
        parameters=parameters,
        query={"rev": [f"{RUN}/v0", f"{RUN}/v1"], "file": ["SKILL.md"], "line": ["7"]},
    )
    route = next(route for route in ROUTES if route.path == path and route.method == "GET")
    # a page for which this run has no example says so
    with suppress(SkillgitError):
        application._drawn(route, visit)
    assert training.openings <= 1


def test_within_a_snapshot_rows_and_refs_stay(training, context, repo):
    branch = refs.run_branch(RUN)

    def look(workspace):
        tips = workspace.repo.tip(branch), workspace.repo.tips(RUN)
        return tips, run_list(workspace).rows, log(workspace, LogRequest(words=(RUN,))).rows

    with Workspace(context, still=True) as workspace:
        before = look(workspace)
        training.go_on(5)
        assert look(workspace) == before
    (tip, _), (run,), _ = before
    assert repo.tip(branch) != tip
    assert ask(cost, context, RUN).total.calls > run.calls


def test_a_snapshot_of_the_past_is_of_the_same_repository(training, context):
    with Workspace(context, still=True) as workspace:
        first = log(workspace, LogRequest(words=(f"{RUN}/v0..{RUN}/head",))).rows
        training.go_on(3)
        assert log(workspace, LogRequest(words=(f"{RUN}/v0..{RUN}/head",))).rows == first


def contradictions(context: Context) -> list[str]:
    """Return what a report, a page of costs, or ``status`` says in two ways."""
    answer = ask(report_room.report, context, RUN)
    newest = answer.rows[-1]
    pairs = {
        "calls": (answer.run.calls, answer.cost.total.calls),
        "time": (answer.run.updated, newest.time),
        "rejected": (answer.run.rejected, sum(row.kind == "rejected" for row in answer.rows)),
        "versions": (answer.run.versions, sum(row.version is not None for row in answer.rows)),
        "best": (answer.run.best_version, answer.best.version),
    }
    return [f"{name}: {one} and {other}" for name, (one, other) in pairs.items() if one != other]


def status_contradictions(context: Context, capsysbinary) -> list[str]:
    assert main.run(["-C", str(context.directory), "status", "--json"]) == 0
    answer = json.loads(capsysbinary.readouterr().out)
    run, head = answer["run"], answer["head"]
    pairs = {
        "versions": (run["versions"] - 1, head["version"]),
        "best": (run["best_version"], answer["best"]["version"]),
    }
    return [f"{name}: {one} and {other}" for name, (one, other) in pairs.items() if one != other]


def page_contradictions(context: Context) -> list[str]:
    access = Access(name="owner", role=Role.OPERATOR, csrf="")
    route = next(route for route in ROUTES if route.path == "/run/{run}/cost")
    visit = Visit(
        workspace=Workspace(context, still=True), access=access, path=f"/run/{RUN}/cost", parameters={"run": RUN}
    )
    with visit.workspace:
        values = route.page(visit).values
    total = values["report"]["cost"].total
    pairs = {
        "calls": (values["run"].calls, total.calls),
        "stretches": (sum(stretch.calls for stretch, _ in values["rows"]), total.calls),
    }
    return [f"{name}: {one} and {other}" for name, (one, other) in pairs.items() if one != other]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("answers", [12, soak(200)])
def test_no_answer_contradicts_itself_during_a_training(answers, tmp_path: Path, capsysbinary):
    repo = Repo.init(tmp_path / "empty")
    context, progress = Context.from_process(repo.workdir), tmp_path / "progress.json"
    here = Path(__file__).parent
    command = [sys.executable, str(here / "appending.py"), str(repo.workdir), "4000", str(progress)]
    trainer = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(here.parent)})
    try:
        while not progress.exists() or json.loads(progress.read_text())["events"] < 12:
            assert trainer.poll() is None
            time.sleep(0.01)
        torn = []
        for _, kind in zip(range(answers), cycle(("report", "status", "cost page")), strict=False):
            if kind == "report":
                torn += contradictions(context)
            elif kind == "status":
                torn += status_contradictions(context, capsysbinary)
            else:
                torn += page_contradictions(context)
        was_training = trainer.poll() is None
    finally:
        trainer.terminate()
        trainer.wait()
    assert torn == []
    assert was_training
