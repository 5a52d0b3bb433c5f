"""A column that is added to a list in one line is seen on every surface."""

from __future__ import annotations

import json
import subprocess
import sys

import httpx2
import pytest
from program import surroundings
from read_page import parsed, rows
from trained_runs import small_run

COLUMN = """
import asyncio, sys
from dataclasses import replace
from pathlib import Path
from skillgit.view import runs
from skillgit.view.table import Column

def twice(row: runs.RunRow) -> float:
    return row.best_score + 7

runs.RUNS = replace(runs.RUNS, columns=(*runs.RUNS.columns, Column("twice", twice, head="twice", key="twice", rank=1)))
"""
PROGRAM = f"{COLUMN}\nfrom skillgit.cli.main import run\nsys.exit(run(sys.argv[1:]))"
SCREEN = f"""{COLUMN}
from skillgit.app.workspace.context import Context
from skillgit.tui.app import SkillgitApp

async def look():
    app = SkillgitApp(Context.from_process(Path.cwd()), watch=False)
    async with app.run_test(size=(200, 40)) as pilot:
        runs_pane = app.screen.query_one("#runs")
        while not runs_pane.count:
            await pilot.pause()
        print("".join(part.text for part in runs_pane.painted(0)))

asyncio.run(look())
"""
TOOL = f"""{COLUMN}
from skillgit.verbs.runs import RunsRequest
from skillgit.app.workspace.context import Context
from skillgit.mcp import answers
from skillgit.mcp.arguments import Pace
from skillgit.mcp.server import History
from skillgit.app.workspace.workspace import Workspace

context = Context.from_process(Path.cwd())
with Workspace(context) as workspace:
    print(History(context).runs(workspace, RunsRequest(), Pace(20)).model_dump_json())
print(answers.RUNS.model_json_schema()["$defs"]["RunRow"]["properties"]["twice"]["type"])
"""


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return small_run(tmp_path_factory)


def output(repository, script, *words):
    command = [sys.executable, "-c", script, *words]
    ended = subprocess.run(command, cwd=repository, env=surroundings(), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def twice(repository):
    """What the column holds of the one run."""
    [run] = json.loads(output(repository, PROGRAM, "runs", "--json"))["runs"]
    assert run["twice"] == pytest.approx(run["best_score"] + 7)
    return run["twice"]


def test_a_terminal_has_it(repository, twice):
    head, line = output(repository, PROGRAM, "runs").splitlines()
    assert "twice" in head
    assert f"{twice:.4f}" in line


def test_tab_separated_rows_end_with_it(repository, twice):
    assert float(output(repository, PROGRAM, "runs", "--plain").rstrip("\n").split("\t")[-1]) == twice


def test_it_filters_and_sorts(repository, twice):
    assert output(repository, PROGRAM, "runs", "--filter", f"twice>{twice - 1}", "--sort", "-twice", "--plain")
    assert not output(repository, PROGRAM, "runs", "--filter", f"twice>{twice + 1}", "--plain")


def test_a_screen_has_it(repository, twice):
    assert f"{twice:.4f}" in output(repository, SCREEN)


def test_a_tool_of_agents_has_it_with_its_type(repository, twice):
    answer, kind = output(repository, TOOL).splitlines()
    assert json.loads(answer)["runs"][0]["twice"] == pytest.approx(twice)
    assert kind == "number"


def test_a_page_has_it_and_sorts_by_it(repository, twice):
    command = [sys.executable, "-c", PROGRAM, "serve", "--port", "0"]
    with subprocess.Popen(command, cwd=repository, env=surroundings(), stdout=subprocess.PIPE, text=True) as server:
        try:
            link = server.stdout.readline().strip()
            with httpx2.Client(follow_redirects=True) as client:
                client.get(link)
                page = parsed(client.get(httpx2.URL(link).join("/?sort=twice&column=name&column=twice")).text)
            assert f"{twice:.4f}" in next(rows(page))
            assert any("sort=-twice" in (element.get("href") or "") for element in page.iter("a"))
        finally:
            server.terminate()
