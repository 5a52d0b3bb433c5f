from __future__ import annotations

import json

import pytest
from sample_run import RUN, write_run

from skillgit.app.history.item import Attempt, ItemTrajectory
from skillgit.app.history.items import ItemColumn, ItemTable
from skillgit.app.recorded.outcomes import ItemLine, ItemOutcome
from skillgit.domain.trajectory import Turn
from skillgit.errors import ExitCode
from skillgit.view import item as item_render
from skillgit.view.score_tables import chosen, lines, sign
from skillgit.view.surface import UNICODE, Screen
from skillgit.view.text import width

NOT = UNICODE.rejected


@pytest.fixture
def history(repo, skillgit):
    """Run a command line in the repository of the sample run."""
    write_run(repo)
    return lambda *arguments: skillgit("-C", str(repo.workdir), *arguments)


def column(number: int, **changes: object) -> ItemColumn:
    values = {"name": f"v{number}", "commit": "0" * 40, "version": number, "score": number / 100, "measured": True}
    flags = {"bound": False, "n": 1, "scored": 1, "solved": 1, "is_best": False, "is_head": False}
    return ItemColumn(**(values | flags | changes))


def cell(hard: float | None, value: float | None = None, **changes: object) -> ItemOutcome:
    return ItemOutcome(hard=hard, soft=hard, value=hard if value is None else value, **changes)


def table_of(count: int, **changes: object) -> ItemTable:
    columns = tuple(column(number, is_best=number == 7) for number in range(count))
    line = ItemLine(
        item="an-item", task_type="kind", first="v0", flips=0, solved=count, measured=count, share=1.0, doubts=(),
        cells=tuple(cell(1.0) for _ in columns),
    )  # fmt: skip
    return ItemTable(**({"run": "r", "metric": "hard", "columns": columns, "rows": (line,), "items": 1} | changes))


def test_the_table_is_aligned_and_ends_in_the_scores(history):
    ended = history("items", "--sort", "flips", "--json")
    rows = json.loads(ended.out)["items"]
    assert rows[0]["item"] == "q04"
    shown = history("items")
    body = shown.text.splitlines()
    assert len({line.rindex(".") for line in body if line.startswith("score")}) == 1
    heads = [line for line in body if line.startswith(" ")]
    assert heads[0].split() == ["v0", "v1", "v2", "v3", "first", "flips", "solved"]
    assert body[-1] == f"10 items of the selection split, run {RUN}"
    assert shown.err == ""


def test_machine_formats_have_every_number(history):
    document = json.loads(history("items", "--json", "--rejected").out)
    assert (document["schema"], document["run"], document["metric"]) == ("skillgit.items/1", RUN, "hard")
    assert [told["name"] for told in document["versions"]] == ["v0", "v1", "r2", "v2", "v3", "r5"]
    q04 = document["items"][3]
    assert q04["outcomes"] == {"v0": 1.0, "v1": 0.0, "r2": 0.0, "v2": 1.0, "v3": 1.0, "r5": 1.0}
    plain = history("items", "--plain").text.splitlines()
    assert plain[3].split("\t") == ["q04", "default", "v0", "2", "3", "4", "0.75", "", "v0=1.0,v1=0.0,v2=1.0,v3=1.0"]
    assert [row["item"] for row in json.loads(history("items", "--json").text)["items"]][:2] == ["q01", "q02"]


def test_nothing_of_the_kind_is_said_and_no_error(history):
    ended = history("items", "--flaky")
    assert (ended.code, ended.text) == (0, "")
    assert ended.err == f"no item of run {RUN} matches (10 in total)\n"


def test_an_item_tells_its_story(history):
    body = history("items", "--item", "q07").text.splitlines()
    assert body[0].startswith("q07  default  run ")
    assert [line.split()[:2] for line in body if line[:1] in {"v", "r"}] == [
        ["v0", NOT],
        ["v1", "✓"],
        ["r2", NOT],
        ["v2", "✓"],
        ["v3", "✓"],
        ["r5", "✓"],
    ]
    assert body[-1] == "first solved by v1 · 3 of 4 versions solve it · flips at v1"
    document = json.loads(history("items", "--item", "q07", "--json").out)
    assert (document["schema"], document["every"], document["flips"]) == ("skillgit.item/1", 6, ["v1"])
    assert document["attempts"][0]["hard"] == 0.0
    assert len(history("items", "--item", "q07", "--plain").text.splitlines()) == 6


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("--item", "q70"), ExitCode.NOT_FOUND, f"skillgit: run {RUN} has no selection item 'q70'"),
        (("--type", "strange"), ExitCode.NOT_FOUND, "no items of the task type 'strange'"),
        (("--trajectory", "v1"), ExitCode.USAGE, "--trajectory needs --item"),
        (("--item", "q07", "--type", "t"), ExitCode.USAGE, "--type cannot be combined with --item"),
        (("--item", "q07", "--never-solved"), ExitCode.USAGE, "--never-solved cannot be combined with --item"),
        (("--item", "q07", "--flaky"), ExitCode.USAGE, "--flaky cannot be combined with --item"),
        (("--item", "q07", "--solved"), ExitCode.USAGE, "--solved cannot be combined with --item"),
        (("--item", "q07", "--rejected"), ExitCode.USAGE, "--rejected cannot be combined with --item"),
        (("--item", "q07", "--sort", "flips"), ExitCode.USAGE, "--sort cannot be combined with --item"),
        (("--item", "q07", "--trajectory", "v1"), ExitCode.NOT_FOUND, "no trajectory of q07 under v1"),
        (("nobody",), ExitCode.NOT_FOUND, "no run 'nobody'"),
    ],
)
def test_errors_are_one_sentence_with_a_hint(arguments, code, sentence, history):
    ended = history("items", *arguments)
    assert (ended.code, ended.text) == (code, "")
    assert sentence in ended.err


@pytest.mark.parametrize("columns", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("count", [1, 3, 10, 100])
def test_a_table_never_overflows_a_terminal(columns, count):
    shown = list(lines(table_of(count), Screen(terminal=True, width=columns)))
    assert max(map(width, shown[:3])) <= max(columns, 50)
    fits = sum(char == "✓" for char in shown[1])
    assert fits == count or f"{fits} of {count} versions fit" in shown[-1]


def test_every_version_is_shown_where_it_is_asked_for():
    shown = list(lines(table_of(100), Screen(terminal=True, width=80), every=True))
    assert shown[1].count("✓") == 100


def test_thinning_keeps_the_ends_and_the_best():
    columns = table_of(100).columns
    places = chosen(columns, 5)
    assert (len(places), places[0], places[-1]) == (5, 0, 99)
    assert 7 in places
    assert places == sorted(set(places))
    assert chosen(columns, 0) == list(range(100))
    assert chosen(columns[:3], 5) == [0, 1, 2]
    assert chosen(columns, 2) == [0, 99]


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (None, "-"),
        (cell(1.0), "+"),
        (cell(0.0), "x"),
        (cell(0.0, 0.44), "4"),
        (cell(0.0, 0.01), "1"),
        (cell(None), "!"),
        (cell(1.0, measured=False), "(+)"),
    ],
)
def test_an_outcome_is_one_sign_in_ascii_too(outcome, shown):
    assert sign(outcome, Screen(unicode=False)) == shown


def test_what_a_model_said_cannot_move_the_cursor(skillgit, fake):
    attempt = Attempt(name="v1", commit="0" * 40, version=1, title="t", outcome=cell(1.0), answer="a\x1b[2Jb")
    turns = (
        Turn(role="user", content="ask\x1b]0;title\x07"),
        Turn(role="assistant", content="tell\rover"),
    )
    fake("history.item.item_trajectory", ItemTrajectory(run="r", item="q1", attempt=attempt, turns=turns))
    ended = skillgit("items", "--item", "q1", "--trajectory", "v1")
    assert "ask^[]0;title^G" in ended.text
    assert "a^[[2Jb" in ended.text
    assert b"\x1b" not in ended.out


def test_a_long_prompt_is_shown_from_both_ends():
    text = item_render.excerpt(f"begin {'word ' * 400} end")
    assert text.startswith("begin")
    assert text.endswith("end")
    assert " … " in text
    assert item_render.excerpt("short \n text") == "short text"
