from __future__ import annotations

import json
import subprocess
import sys

import pytest
from rule_run import DATES_EXACTLY, READ, TABLES, UNITS, write_rule_run
from soaking import sampled_rows, soak

from skillgit.app.attribution.provenance import Blame, BlameRow
from skillgit.domain.address import Address, address_of
from skillgit.view.lists import LISTS
from skillgit.view.rules import lines
from skillgit.view.surface import Screen
from skillgit.view.text import width


@pytest.fixture
def here(repo):
    write_rule_run(repo)
    return str(repo.workdir)


def row(number: int, text: str = "- A rule.", **changes: object) -> BlameRow:
    values: dict[str, object] = {
        "line": number, "text": text, "commit": "c" * 40, "author": "", "run": "demo", "version": 7, "kind": "accepted",
        "origin": "step", "step": 17, "epoch": 2, "title": "units", "source": "failure", "support": 4,
        "items": ("q17", "q22", "q31"), "fixed": ("q17", "q22"), "broken": ("q03",), "score": 0.725, "delta": 0.025,
        "restored": None,
    }  # fmt: skip
    known = values | changes
    known["address"] = named(known) if known["kind"] else None
    return BlameRow(**known)  # type: ignore[arg-type]


def named(known: dict[str, object]) -> Address:
    facts = ("run", "version", "step", "epoch", "origin")
    return address_of(str(known["kind"]), **{name: known[name] for name in facts})  # type: ignore[arg-type]


def blamed(*rows: BlameRow) -> Blame:
    return Blame(run="demo", version=9, commit="d" * 40, path="skills/demo/SKILL.md", lines=rows, absent=False)


SEED = {
    "run": "",
    "version": None,
    "kind": "",
    "source": "seed",
    "support": None,
    "items": (),
    "fixed": (),
    "broken": (),
}
SEED |= {"step": None, "delta": None, "commit": "5" * 40}
ROWS = blamed(
    row(1, "# Demo", **SEED),
    row(2, "", **SEED),
    row(3),
    row(4, "- Another one.", support=1, items=()),
    row(5, "- Of another run.", run="first", commit="a" * 40, version=3, step=2, fixed=(), broken=()),
    row(
        6, "- By hand.", kind="edited", source="human", author="Ada", commit="b" * 40, version=8, support=None, items=()
    ),
    row(7, "- Again.", commit="e" * 40, restored=9, source="slow", support=None, items=()),
)


def test_a_pipe_gets_every_cell_of_every_line(here, skillgit) -> None:
    done = skillgit("-C", here, "blame")

    assert (done.code, done.err) == (0, "")
    head, *rows = done.text.splitlines()
    assert head.split() == ["from", "step", "rests", "on", "gain", "items", "because", "of", "line"]
    told = {line.partition("│ ")[2].removeprefix("- "): line.partition("│")[0].split() for line in rows}
    assert told[UNITS] == ["v1", "1", "failure", "2", "+.2000", "+3", "-1", "t1", "t2", "8"]
    assert told[DATES_EXACTLY][:4] == ["v2", "3", "failure", "1"]
    assert told[READ] == ["v0", "↩", "v4", "seed", "7"]
    assert told[TABLES][0] == "v5"
    assert "\x1b" not in done.text, "the author's name has an escape in it"
    assert len({line.index("│") for line in rows}) == 1


def test_lines_that_are_no_neighbours_each_show_their_origin() -> None:
    screen = Screen(terminal=True, width=120)
    _, first, second, far = lines(blamed(row(3), row(4), row(8)), screen)
    assert ("v7" in first, "v7" in second, "v7" in far) == (True, False, True)


def test_a_terminal_shows_an_origin_once() -> None:
    shown = list(lines(ROWS, Screen(terminal=True, width=120)))

    assert shown[1].startswith("v0 ")
    assert shown[2].startswith("·  ")
    assert shown[4].split("│")[0].split() == ["·", "failure", "1", "4"]
    assert shown[5].startswith("first/v3")
    assert "Ada" in shown[6]
    assert shown[7].startswith("v7 ↩ v9")


@pytest.mark.parametrize("columns", [60, 72, 80, 100, 120, 200])
def test_lines_fit_the_screen_and_stand_in_columns(columns: int) -> None:
    long = blamed(
        *(row(place, "- " + "word " * 60, commit=str(place % 10) * 40) for place in range(1, 12)), *ROWS.lines
    )
    shown = list(lines(long, Screen(terminal=True, width=columns)))

    assert max(map(width, shown)) <= columns
    assert len({line.index("│") for line in shown[1:]}) == 1
    assert all("…" in line for line in shown[1:12])


def test_a_long_name_of_another_run_leaves_room_for_the_text() -> None:
    rows = blamed(row(1, "- " + "word " * 60, run="searchqa-20261121-" + "k" * 42))
    (_, shown) = lines(rows, Screen(terminal=True, width=80))

    assert shown.startswith("searchqa-202611…/v7 ")
    assert width(shown.partition("│")[2]) >= 30
    assert ("searchqa-20261121-" + "k" * 42 + "/v7 ") in list(lines(rows, Screen()))[1]


def test_what_matters_less_goes_first_where_there_is_little_room() -> None:
    heads = [next(lines(ROWS, Screen(terminal=True, width=columns))).split() for columns in (120, 96, 88, 60)]

    assert heads[0] == ["from", "step", "rests", "on", "gain", "items", "because", "of", "line"]
    assert "because" not in heads[1]
    assert "step" in heads[1]
    assert heads[3] == ["from", "rests", "on", "gain", "line"]


def test_without_the_signs_it_is_ascii() -> None:
    screen = Screen(terminal=True, unicode=False, width=80)

    assert all(screen.encodable(line).isascii() for line in lines(ROWS, screen))


def test_model_text_is_shown_and_never_takes_effect() -> None:
    shown = list(lines(blamed(row(1, "\x1b[31mred\x1b]0;title\x07\ttab\r")), Screen(terminal=True, width=120)))

    assert shown[1].endswith("^[[31mred^[]0;title^G   tab^M")


def test_an_empty_file_is_no_line() -> None:
    assert list(lines(blamed(), Screen())) == []


def test_machine_formats_hold_everything(here, skillgit) -> None:
    document = json.loads(skillgit("-C", here, "blame", "v1", "--json").out)
    assert document["schema"] == "skillgit.blame/1"
    assert (document["version"], document["path"]) == (1, "skills/demo/SKILL.md")
    by_text = {line["text"]: line for line in document["lines"]}
    assert by_text[f"- {UNITS}"]["items"] == ["t1", "t2"]
    assert by_text[f"- {UNITS}"]["fixed"] == ["q05", "q06", "q07"]

    objects = json.loads(skillgit("-C", here, "blame", "v1", "--json").text)["lines"]
    assert objects == document["lines"]

    plain = [line.split("\t") for line in skillgit("-C", here, "blame", "v1", "--plain").text.splitlines()]
    assert {len(cells) for cells in plain} == {len(LISTS["blame"].names)}
    assert [cells[-1] for cells in plain] == [line["text"] for line in document["lines"]]


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    sampled_rows([("3,4", [3, 4]), ("3,+2", [3, 4]), ("7", [7]), ("8,", [8, 9]), ("9,99", [9])], 2),
)
def test_lines_are_chosen_as_in_git(here, skillgit, wanted: str, numbers: list[int]) -> None:
    document = json.loads(skillgit("-C", here, "blame", "v1", "-L", wanted, "--json").out)

    assert [line["line"] for line in document["lines"]] == numbers


def test_several_stretches_of_lines_are_shown_in_the_order_of_the_file(here, skillgit) -> None:
    document = json.loads(skillgit("-C", here, "blame", "v1", "-L", "8,9", "-L", "3,+2", "-L", "4", "--json").out)

    assert [line["line"] for line in document["lines"]] == [3, 4, 8, 9]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    sampled_rows(
        [
            (("-L", "3", "-L", "x"), 2, "-L x names no lines"),
            (("-L", "4,3"), 2, "names no lines"),
            (("-L", "x"), 2, "names no lines"),
            (("-L", "0"), 2, "names no lines"),
            (("-L", "900"), 2, "none at 900"),
            (("v9",), 3, "has no v9"),
            (("v1", "nothing.md"), 3, "no file 'nothing.md'"),
            (("SKIL.md",), 3, "neither a revision nor a file"),
        ],
        3,
    ),
)
def test_mistakes_are_told_with_a_hint(here, skillgit, arguments, code: int, said: str) -> None:
    done = skillgit("-C", here, "blame", *arguments)

    assert (done.code, done.out) == (code, b"")
    assert said in done.err
    assert "hint: " in done.err


def test_a_clone_says_how_to_fetch_the_evidence(here, skillgit, tmp_path) -> None:
    subprocess.run(["git", "clone", "-q", "--no-local", here, tmp_path / "clone"], check=True)
    done = skillgit("-C", str(tmp_path / "clone"), "blame", "v1")

    assert done.code == 0
    assert "skillgit pull --evidence" in done.err
    assert "t1" not in done.text


def test_it_can_be_looked_at_as_it_stood(here, skillgit) -> None:
    assert skillgit("-C", here, "blame", "--as-of", "v1").out == skillgit("-C", here, "blame", "v1").out


@pytest.mark.parametrize("command", [("blame",), soak(("why", "8"))])
def test_reading_lines_imports_nothing_that_is_slow(here, command: tuple[str, ...]) -> None:
    script = (
        "import sys; from skillgit.cli import main; code = main.run(sys.argv[1:]);"
        "slow = {'pydantic', 'sqlite_utils', 'textual', 'openai', 'skillgit.engine'} & set(sys.modules);"
        "sys.exit(f'{code} {sorted(slow)}' if code or slow else 0)"
    )
    program = [sys.executable, "-c", script, "-C", here]
    subprocess.run([*program, "log"], check=False, capture_output=True)  # it makes the index
    done = subprocess.run([*program, *command], check=False, capture_output=True)

    assert (done.returncode, done.stderr) == (0, b"")
