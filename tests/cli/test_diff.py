from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import diff_sample as sample
import pytest

from skillgit.errors import ExitCode

GOLDEN = Path(__file__).parent / "golden" / "diff"
PLAIN, DATA = ("history.diff.text.diff", sample.DIFFED), ("history.diff.text.diff", sample.AS_DATA)
STAT, ITEMS = ("history.diff.stat.stat", sample.STAT), ("history.diff.items.items", sample.ITEMS)
RULES = ("history.diff.rules.rule_diff", sample.RULES)
CASES = {
    "colour": (DATA, ("--color=always", "diff", "v6", "v7")),
    "same-colour": (("history.diff.text.diff", sample.SAME), ("--color=always", "diff", "v6", "v7")),
    "side-by-side": (DATA, ("diff", "v6", "v7", "--side-by-side")),
    "side-by-side-colour": (DATA, ("--color=always", "diff", "v6", "v7", "--side-by-side")),
    "json": (DATA, ("diff", "v6", "v7", "--json")),
    "stat": (STAT, ("diff", "v6", "v7", "--stat")),
    "stat-unmeasured": (("history.diff.stat.stat", sample.UNMEASURED_STAT), ("diff", "main", "v7", "--stat")),
    "stat-stopped": (("history.diff.stat.stat", sample.STOPPED_STAT), ("diff", "v6", "r18", "--stat")),
    "stat-other": (("history.diff.stat.stat", sample.OTHER_STAT), ("diff", "other/v6", "v7", "--stat")),
    "stat-json": (STAT, ("diff", "v6", "v7", "--stat", "--json")),
    "items": (ITEMS, ("diff", "v6", "v7", "--items")),
    "items-stopped": (("history.diff.items.items", sample.STOPPED_ITEMS), ("diff", "v6", "r18", "--items")),
    "items-settled": (("history.diff.items.items", sample.SETTLED_ITEMS), ("diff", "v6", "r18", "--items")),
    "items-other": (("history.diff.items.items", sample.OTHER_ITEMS), ("diff", "other/v6", "v7", "--items")),
    "items-other-json": (
        ("history.diff.items.items", sample.OTHER_ITEMS),
        ("diff", "other/v6", "v7", "--items", "--json"),
    ),
    "items-other-seed": (("history.diff.items.items", sample.OTHER_SEED_ITEMS), ("diff", "other/v6", "v7", "--items")),
    "items-json": (ITEMS, ("diff", "v6", "v7", "--items", "--json")),
    "items-plain": (ITEMS, ("diff", "v6", "v7", "--items", "--plain")),
    "rules": (RULES, ("diff", "v6", "v7", "--rules")),
    "rules-colour": (RULES, ("--color=always", "diff", "v6", "v7", "--rules")),
    "rules-json": (RULES, ("diff", "v6", "v7", "--rules", "--json")),
    "rules-plain": (RULES, ("diff", "v6", "v7", "--rules", "--plain")),
    "rules-apart": (("history.diff.rules.rule_diff", sample.APART), ("diff", "other/v1", "v7", "--rules")),
    "rules-same": (("history.diff.rules.rule_diff", sample.SAME_RULES), ("diff", "v6", "v7", "--rules")),
}


@pytest.mark.parametrize("name", CASES)
def test_every_form_of_a_difference_is_golden(name, skillgit, fake):
    (verb, result), arguments = CASES[name]
    fake(verb, result)
    ended = skillgit(*arguments)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(ended.out)
    assert ended.err == ""
    assert ended.out == path.read_bytes()


def test_no_golden_file_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CASES)


def test_on_a_pipe_the_text_is_bytes_as_they_are(skillgit, fake):
    strange = b"+caf\xe9 \x1b[31m\r\n"
    fake("history.diff.text.diff", replace(sample.DIFFED, text=strange))
    assert skillgit("diff", "v6", "v7").out == strange


def test_a_pipe_is_not_kept_waiting_for_data_that_it_does_not_see(skillgit, fake):
    calls = fake(*PLAIN)
    skillgit("diff", "v6", "v7", "-U", "1", "--", "SKILL.md", "docs")
    skillgit("diff", "v6..v7", "--word")
    skillgit("diff", "v7", "--", "SKILL.md")
    asked = {"lines": None, "words": False, "colour": False, "as_data": False}
    assert calls == [
        ("v6", "v7", ("SKILL.md", "docs"), asked | {"lines": 1}),
        ("v6", "v7", (), asked | {"words": True}),
        ("v7", None, ("SKILL.md",), asked),
    ]


def test_words_are_painted_by_git(skillgit, fake):
    calls = fake(*PLAIN)
    skillgit("--color=always", "diff", "v6", "v7", "--word")
    skillgit("--color=always", "diff", "v6", "v7", "--word", "--json")
    assert [call[-1]["colour"] for call in calls] == [True, False]


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith("-json")])
def test_documents_name_their_schema(name, skillgit, fake):
    (verb, result), arguments = CASES[name]
    fake(verb, result)
    document = json.loads(skillgit(*arguments).out)
    assert document["schema"] == f"skillgit.diff-{name.partition('-')[0]}/1"


@pytest.mark.parametrize(
    ("options", "verb", "same", "different"),
    [
        ((), "history.diff.text.diff", sample.SAME, sample.DIFFED),
        (("--word",), "history.diff.text.diff", sample.SAME, sample.DIFFED),
        (("--side-by-side",), "history.diff.text.diff", sample.SAME, sample.AS_DATA),
        (("--stat",), "history.diff.stat.stat", replace(sample.STAT, text=""), sample.STAT),
        (("--items",), "history.diff.items.items", replace(sample.ITEMS, fixed=(), broken=()), sample.ITEMS),
        (("--rules",), "history.diff.rules.rule_diff", sample.SAME_RULES, sample.RULES),
    ],
)
def test_it_exits_with_1_only_if_asked_to(options, verb, same, different, *, skillgit, fake):
    fake(verb, different)
    assert skillgit("diff", "a", "b", *options).code == ExitCode.OK
    assert skillgit("diff", "a", "b", "--exit-code", *options).code == ExitCode.NO
    if options != ("--side-by-side",):
        assert skillgit("diff", "a", "b", "--exit-code", "--json", *options).code == ExitCode.NO
    fake(verb, same)
    assert skillgit("diff", "a", "b", "--exit-code", *options).code == ExitCode.OK


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("v1", "v2", "--plain"), "--plain needs --items or --rules"),
        (("v1", "v2", "--stat", "--plain"), "--plain needs --items or --rules"),
        (("..v2",), "name two versions, as in v3 v7 or v3..v7"),
        (("v1", "v2", "--items", "--", "SKILL.md"), "--items cannot be combined with PATH"),
        (("v1", "v2", "--rules", "--stat"), "--stat cannot be combined with --rules"),
        (("v1", "v2", "--items", "--rules"), "--rules cannot be combined with --items"),
        (("v1", "v2", "--word", "--side-by-side"), "--word cannot be combined with --side-by-side"),
        (("v1", "v2", "--word", "--stat"), "--word cannot be combined with --stat"),
        (("v1", "v2", "--stat", "-U", "1"), "--unified cannot be combined with --stat"),
        (("v1", "v2", "--rules", "-U1"), "--unified cannot be combined with --rules"),
        (("v1", "v2", "--side-by-side", "--json"), "--side-by-side is for people; --json has the same lines"),
    ],
)
def test_what_does_not_go_together_is_told(arguments, said, skillgit):
    ended = skillgit("diff", *arguments)
    assert (ended.code, ended.out) == (ExitCode.USAGE, b"")
    assert ended.err == f"skillgit: {said}\nhint: skillgit diff --help\n"


@pytest.mark.parametrize(
    ("given", "meant"), [("v3..v7", ("v3", "v7")), ("v3..", ("v3", "head")), ("a/v3..", ("a/v3", "a/head"))]
)
def test_a_range_without_an_end_goes_on_to_the_newest_version(given, meant, skillgit, fake):
    asked = fake("history.diff.stat.stat", sample.STAT)
    assert skillgit("diff", given, "--stat").code == ExitCode.OK
    assert asked[0][:2] == meant


def test_three_dots_are_told_to_mean_nothing(skillgit):
    ended = skillgit("diff", "v3...v7")
    assert (ended.code, ended.out) == (ExitCode.USAGE, b"")
    assert "three dots" in ended.err
    assert ended.err.endswith("hint: write two: v3..v7\n")


SCRIPT = """
import sys
sys.path.insert(0, {folder!r})
import diff_sample, {module} as module
module.{verb} = lambda *args, **kwargs: diff_sample.{result}
from skillgit.cli.main import run
sys.exit(run({arguments!r}))
"""


def on_a_terminal(verb: str, result: str, *arguments: str, **environ: str) -> str:
    """Run a command line on a pseudo-terminal and return what it shows."""
    import pty  # noqa: PLC0415 - POSIX only

    module, _, name = f"skillgit.app.{verb}".rpartition(".")
    values = {"folder": str(Path(__file__).parent), "module": module, "verb": name, "result": result}
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(**values, arguments=list(arguments))],
        stdout=other,
        stderr=other,
        stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "64", "PYTHONUTF8": "1"} | environ,
    )
    os.close(other)
    parts: list[bytes] = []
    try:
        while part := os.read(main, 4096):
            parts.append(part)
    except OSError:
        pass  # Linux says so when the other end is closed
    assert process.wait() == 0
    os.close(main)
    return b"".join(parts).decode().replace("\r\n", "\n")


def test_a_terminal_gets_changed_words_headings_and_moved_lines():
    shown = on_a_terminal("history.diff.text.diff", "AS_DATA", "--no-pager", "diff", "v6", "v7")
    assert "unit of the \x1b[m\x1b[32;7mquestion, and say it\x1b[m" in shown
    assert "\x1b[1m## Verify units\x1b[m" in shown
    assert "(moved to line 16)" in shown
    assert "^[[2Jgap" in shown


def test_without_colour_nothing_but_the_colour_is_gone():
    shown = on_a_terminal("history.diff.text.diff", "AS_DATA", "--no-pager", "diff", "v6", "v7", NO_COLOR="1")
    assert "\x1b" not in shown
    assert "\n- Answer in the unit of the table.\n+ Answer in the unit of the question, and say it.\n" in shown


def test_a_pager_that_paints_diffs_gets_the_plain_one(tmp_path):
    stand_in = tmp_path / "delta"
    stand_in.write_text("#!/bin/sh\nsed 's/^/delta:/'\n")
    stand_in.chmod(0o755)
    for setting in ({}, {"NO_COLOR": "1"}):
        shown = on_a_terminal(
            "history.diff.text.diff", "DIFFED", "diff", "v6", "v7", SKILLGIT_PAGER=str(stand_in), **setting
        )
        assert [line.removeprefix("delta:") for line in shown.splitlines()] == [
            line.replace("\x1b", "^[") for line in sample.PATCH.splitlines()
        ]
        assert shown.startswith("delta:diff --git ")


def test_two_columns_keep_to_the_width_and_to_ascii():
    shown = on_a_terminal(
        "history.diff.text.diff",
        "AS_DATA",
        *("--no-pager", "diff", "v6", "v7", "--side-by-side"),
        NO_COLOR="1",
        PYTHONUTF8="0",
        PYTHONIOENCODING="ascii",
    )
    assert shown.isascii()
    assert all(len(line) <= 64 for line in shown.splitlines() if " | " in line)
    assert "11 - Answer in the unit of the | 11 + Answer in the unit of the\n" in shown
    assert "     table.                    |      question, and say it.\n" in shown


def test_rules_are_wrapped_where_the_terminal_ends():
    shown = on_a_terminal(
        "history.diff.rules.rule_diff", "RULES", "--no-pager", "diff", "v6", "v7", "--rules", NO_COLOR="1"
    )
    assert all(len(line) <= 64 for line in shown.splitlines()[1:])
    assert "was: Always answer" in shown
    assert "                 support 5 failure  +.0250\n" in shown


def test_equal_texts_print_nothing_on_a_pipe_and_stderr_names_both_with_their_run(skillgit, fake):
    """Versions named without their run are of the default run, which may be another than the one that is meant."""
    fake("history.diff.text.diff", replace(CASES["same-colour"][0][1], text=b""))
    ended = skillgit("diff", "v6", "v7")
    assert (ended.code, ended.out) == (0, b"")
    assert ended.err == "searchqa-20261121-7k2m/v6 and searchqa-20261121-7k2m/v7 have the same text\n"
