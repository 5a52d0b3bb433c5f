from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from rule_run import write_rule_run
from sample_run import RUN, write_run

from skillgit.errors import ExitCode


@pytest.fixture
def history(repo, skillgit):
    """Run a command line in the repository of the sample run."""
    write_run(repo)
    return lambda *arguments: skillgit("-C", str(repo.workdir), *arguments)


def test_the_page_is_written_where_the_user_says(history, repo, tmp_path):
    ended = history("report", RUN, "--output", str(tmp_path / "page.html"))
    assert (ended.code, ended.err) == (0, "")
    assert ended.text.startswith(f"wrote {tmp_path / 'page.html'} · run {RUN} · best v3 · ")
    assert (tmp_path / "page.html").read_bytes().startswith(b"<!DOCTYPE html>")
    assert history("report").code == 0
    assert (repo.workdir / "report.html").read_bytes() == (tmp_path / "page.html").read_bytes()


def test_stdout_gets_the_page_and_nothing_else(history, tmp_path):
    history("report", "--output", str(tmp_path / "page.html"))
    ended = history("report", "--output", "-")
    assert ended.out == (tmp_path / "page.html").read_bytes()
    assert ended.err == ""


def test_json_names_the_file_and_what_it_tells(history, tmp_path):
    document = json.loads(history("report", "--output", str(tmp_path / "page.html"), "--json").out)
    assert document["schema"] == "skillgit.report/1"
    assert (document["run"], document["version"]) == (RUN, 3)
    assert document["bytes"] == (tmp_path / "page.html").stat().st_size


def test_a_page_that_is_there_is_replaced_whole(history, tmp_path):
    (tmp_path / "real.html").write_text("old")
    (tmp_path / "real.html").chmod(0o640)
    (tmp_path / "link.html").symlink_to("real.html")
    assert history("report", "--output", str(tmp_path / "link.html")).code == 0
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_bytes().endswith(b"</html>\n")
    assert stat.S_IMODE((tmp_path / "real.html").stat().st_mode) == 0o640
    assert {path.name for path in tmp_path.glob("*.html")} | {path.name for path in tmp_path.glob(".*")} == {
        "real.html",
        "link.html",
    }


def test_the_past_has_a_page_of_its_own(history):
    page = history("report", "--as-of", "v1", "--output", "-").text
    assert "not finished" in page
    assert 'href="#v1"' in page
    assert 'href="#v2"' not in page


def test_a_page_can_be_shown_in_the_browser(history, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("webbrowser.open", lambda address: seen.append(address) or not seen[1:])
    assert history("report", "--output", str(tmp_path / "a page.html"), "--open").err == ""
    assert seen == [(tmp_path / "a page.html").as_uri()]
    assert "there is no browser" in history("report", "--output", str(tmp_path / "a page.html"), "--open").err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nothing",), ExitCode.NOT_FOUND, "there is no run 'nothing'"),
        (("--output", "."), ExitCode.USAGE, "is a folder"),
        (("--output", "no/such/page.html"), ExitCode.NOT_FOUND, "there is no folder"),
        (("--output", "-", "--json"), ExitCode.USAGE, "--output - cannot be combined with"),
        (("--output", "-", "--open"), ExitCode.USAGE, "--output - cannot be combined with"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(history, arguments, code, said):
    ended = history("report", *arguments)
    assert ended.code == code
    assert said in ended.err
    assert ended.out == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_page_that_cannot_be_written_is_said(history):
    ended = history("report", "--output", "/dev/full")
    assert ended.code == ExitCode.CONFLICT
    assert "the disk is full: cannot write /dev/full: No space left on device" in ended.err


def test_a_repository_without_runs_says_so(repo, skillgit):
    ended = skillgit("-C", str(repo.workdir), "report")
    assert ended.code == ExitCode.NOT_FOUND
    assert "there are no runs yet" in ended.err


def test_escapes_of_strangers_do_not_reach_the_page(repo, skillgit):
    write_rule_run(repo)
    assert b"\x1b" not in skillgit("-C", str(repo.workdir), "report", "--output", "-").out


def test_the_past_of_a_run_is_named_by_a_version_of_that_run(history, repo):
    write_run(repo, "younger", events=2)
    repo.raw.config["skillgit.run"] = "younger"
    assert "run younger has no v2" in history("report", "--as-of", "v2", "--output", "-").err
    wanted = history("report", RUN, "--as-of", f"{RUN}/v2", "--output", "-")
    for words in (("report", RUN, "--as-of", "v2"), ("report", "--as-of", "v2", RUN)):
        assert history(*words, "--output", "-").out == wanted.out
    assert history("cost", RUN, "--as-of", "v2").out == history("cost", RUN, "--as-of", f"{RUN}/v2").out
