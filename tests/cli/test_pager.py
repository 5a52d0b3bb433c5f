from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from skillgit.cli import output as pager
from skillgit.cli.output import Output
from skillgit.view.surface import Screen

PATH = {"PATH": os.environ["PATH"], "HOME": "/nowhere", "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SKILLGIT_PAGER": "head -1", "GIT_PAGER": "sort"}, "head -1"),
        ({"GIT_PAGER": "sort -r", "PAGER": "head"}, "sort -r"),
        ({"PAGER": "head -3"}, "head -3"),
        ({"SKILLGIT_PAGER": "cat"}, ""),
        ({"SKILLGIT_PAGER": ""}, ""),
        ({"PAGER": "cat"}, ""),
        ({"SKILLGIT_PAGER": "there-is-no-such-pager -x"}, ""),
        ({"SKILLGIT_PAGER": "LESS=F head"}, "LESS=F head"),
    ],
)
def test_the_pager_is_ours_then_gits(environ, expected, tmp_path):
    assert pager.choose(PATH | environ, tmp_path) == expected


def test_the_pager_that_a_user_has_configured_counts_and_that_of_a_repository_does_not(tmp_path):
    """A repository that came as an archive brings its configuration along, and a pager is a program."""
    (tmp_path / "mine").write_text("[core]\n\tpager = head -2\n")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "config", "core.pager", "head -3"], check=True)
    assert pager.choose(PATH | {"GIT_CONFIG_GLOBAL": str(tmp_path / "mine")}, tmp_path) == "head -2"
    assert pager.choose(PATH | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_DIR": f"{tmp_path}/.git"}, tmp_path) != "head -3"


@pytest.mark.parametrize(("command", "paints"), [("delta --dark", True), ("/usr/bin/delta", True), ("less -R", False)])
def test_pagers_that_colour_diffs_themselves_are_known(command, paints):
    assert pager.paints_diffs(command) is paints


def test_what_is_written_goes_through_the_pager(tmp_path):
    seen = tmp_path / "seen"
    stdout = io.BytesIO()
    environ = PATH | {"LESS": "mine"}
    output = Output(
        stdout,
        screen=Screen(),
        encoding="utf-8",
        pager=lambda: pager.Pager(f'(cat; echo "$LESS $LV") > "{seen}"', environ),
    )
    with output.paged():
        output.text(["one", "two"])
    output.text(["three"])
    assert seen.read_text() == "one\ntwo\nmine -c\n"
    assert stdout.getvalue() == b"three\n"


def test_leaving_the_pager_early_is_no_error():
    output = Output(io.BytesIO(), screen=Screen(), encoding="utf-8", pager=lambda: pager.Pager("true", PATH))
    with output.paged():
        output.text("x" * 1000 for _ in range(10_000))


SCRIPT = textwrap.dedent("""
    import sys
    sys.path.insert(0, {folder!r})
    import cli_sample, skillgit.app.history.log as module
    module.log = lambda *args, **kwargs: cli_sample.LOG
    from skillgit.cli.main import run
    sys.exit(run({arguments!r}))
""")


def on_a_terminal(*arguments: str, **environ: str) -> str:
    folder = str(Path(__file__).parent)
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(folder=folder, arguments=list(arguments))],
        stdout=other,
        stderr=other,
        stdin=subprocess.DEVNULL,
        env=PATH | {"TERM": "xterm", "COLUMNS": "80", "PYTHONUTF8": "1"} | environ,
    )
    os.close(other)
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:
            break
        if not part:
            break
        parts.append(part)
    assert process.wait() == 0
    os.close(main)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_terminal_gets_colour_and_the_pager():
    text = on_a_terminal("log", SKILLGIT_PAGER="sed 's/^/> /'")
    assert text.count("\n> ") + 1 == 9
    assert "\x1b[1;32m●\x1b[m" in text


def test_no_pager_means_none():
    text = on_a_terminal("--no-pager", "log", SKILLGIT_PAGER="sed 's/^/> /'")
    assert "> " not in text


def test_no_color_and_dumb_terminals_get_no_colour():
    assert "\x1b" not in on_a_terminal("--no-pager", "log", NO_COLOR="1")
    assert "\x1b" not in on_a_terminal("--no-pager", "log", TERM="dumb")


def test_machine_formats_go_past_the_pager():
    text = on_a_terminal("log", "--plain", SKILLGIT_PAGER="sed 's/^/> /'")
    assert "> " not in text
    assert "\x1b" not in text


def test_an_ascii_terminal_gets_ascii():
    text = on_a_terminal("--no-pager", "log", "--graph", PYTHONIOENCODING="ascii", PYTHONUTF8="0", NO_COLOR="1")
    assert text.isascii()
    assert text.startswith("M   v9 ")
