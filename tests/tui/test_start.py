from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest
from sample_run import RUN, write_run

from skillgit import forks
from skillgit.app.workspace.workspace import change_stamp
from skillgit.errors import RepositoryNotFoundError
from skillgit.store.repo import Repo
from skillgit.tui import start
from skillgit.tui.app import SkillgitApp
from skillgit.tui.first_picture import named, read_start
from skillgit.tui.start import reading_ahead


def test_the_first_picture_shows_what_was_read_and_reads_nothing(sample, context_of, monkeypatch):
    context = context_of(sample.workdir)
    read = read_start(context, "")
    asked = []
    monkeypatch.setattr(SkillgitApp, "read", lambda _app, function, *_args, **_more: asked.append(function.__name__))

    async def run():
        app = SkillgitApp(context, start=read, watch=False)
        async with app.run_test(size=(104, 30)):
            assert app.screen.current == read.page.rows[0]
            assert app.screen.events.count == read.page.total
            assert app.screen.runs.current.name == RUN
            # only the event under the cursor, once it rests
            assert set(asked) <= {"_detail"}

    asyncio.run(run())


def test_it_is_read_for_the_run_that_was_asked_for(sample, context_of):
    write_run(sample, "other")
    context = context_of(sample.workdir)

    for wanted in (RUN, "other", "oth"):
        read = read_start(context, wanted)
        assert {row.run for row in read.page.rows} == {wanted if wanted == RUN else "other"}
    assert read_start(context, "nothing").page.rows[0].run == read.overview.run


def test_a_repository_without_runs_has_no_page(tmp_path, context_of):
    Repo.init(tmp_path)
    read = read_start(context_of(tmp_path), "")
    assert (read.overview.runs, read.page, read.scores) == ((), None, ((), 1))


def test_another_process_reads_the_same(sample, context_of, monkeypatch):
    context, here = context_of(sample.workdir), os.getpid()
    expected = read_start(context, "")
    monkeypatch.setattr(forks, "can_fork", lambda: True)
    monkeypatch.setattr(
        "skillgit.tui.first_picture.git_settings", lambda _context, _names: {"process": str(os.getpid())}
    )

    with reading_ahead(context, "") as reading:
        told = reading()

    assert (told.overview, told.page, told.scores) == (expected.overview, expected.page, expected.scores)
    assert told.standing == change_stamp(context)
    assert told.settings["process"] != str(here)


def test_an_error_is_raised_where_it_is_waited_for(tmp_path, context_of):
    with reading_ahead(context_of(tmp_path), "") as reading, pytest.raises(RepositoryNotFoundError):
        reading()


def test_a_process_with_threads_reads_itself(sample, context_of):
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    with reading_ahead(context_of(sample.workdir), "") as reading:
        assert reading().overview.run == RUN
    ended.set()
    thread.join()


@pytest.mark.parametrize(
    ("wanted", "found"), [("", ""), ("one", "one"), ("on", ""), ("two", "two-b"), ("three", ""), ("one-", "one-a")]
)
def test_a_run_is_named_in_full_or_by_a_beginning_of_its_own(wanted, found):
    class Row:
        def __init__(self, name):
            self.name = name

    assert named([Row("one"), Row("one-a"), Row("two-b")], wanted) == found


@pytest.mark.parametrize(("ends", "sides"), [(("v1", "v3"), ("v1", "v3")), (("v1", ""), ("v1", "v3"))])
def test_a_range_begins_with_the_comparison_of_its_ends(sample, context_of, monkeypatch, ends, sides):
    apps = []
    monkeypatch.setattr(SkillgitApp, "run", lambda app, **_: apps.append(app))
    start.browse_history(context_of(sample.workdir), "", ends, unicode=True, mouse=True)
    screen = apps[0]._opening()
    assert (screen.a, screen.b) == tuple(f"{RUN}/{side}" for side in sides)


def test_screens_are_loaded_without_libgit2():
    modules = "skillgit.tui.start, skillgit.tui.app, skillgit.tui.screens.history"
    code = f"import sys, {modules}; sys.exit('pygit2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
