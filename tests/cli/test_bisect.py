from __future__ import annotations

import json

import cli_sample as sample
import pytest
from sample_run import RUN, write_run
from soaking import sampled_rows

from skillgit.app.history.bisect import Bisected, Flip
from skillgit.app.history.item import Attempt
from skillgit.app.history.requests import ItemsRequest
from skillgit.app.recorded.outcomes import ItemOutcome
from skillgit.domain.cost import Cost
from skillgit.errors import ExitCode
from skillgit.view.item import bisect_lines
from skillgit.view.surface import Screen


@pytest.fixture
def history(repo, skillgit):
    """Run a command line in the repository of the sample run."""
    write_run(repo)
    return lambda *arguments: skillgit("-C", str(repo.workdir), *arguments)


def attempt(name: str, hard: float, **changes: object) -> Attempt:
    cell = ItemOutcome(hard=hard, soft=hard, value=hard)
    values = {"name": name, "commit": "0" * 40, "version": int(name[1:]), "title": "t", "outcome": cell}
    return Attempt(**(values | changes))


def bisected(**changes: object) -> Bisected:
    flip = Flip(older="v3", newer="v7", change="broken")
    values = {
        "run": "r",
        "item": "q1",
        "first": "v0",
        "last": "v9",
        "flip": flip,
        "older": attempt("v3", 1.0, answer="1063 ft", feedback="correct"),
        "newer": attempt("v7", 0.0, answer="324 m", feedback="expected feet"),
        "suspects": ("v4", "v5", "v6", "v7"),
        "row": None,
        "edits": (),
        "diff": "",
        "flips": (flip,),
    }
    return Bisected(**(values | changes))


def test_the_version_is_named_first_with_its_line_its_change_and_both_outcomes(history):
    ended = history("items", "v0..", "--item", "q08")
    body = ended.text.splitlines()
    assert ended.code == 0
    assert body[0] == "v3 fixed q08"
    assert "quote the span" in body[2]
    assert "   +- Quote the span that you rely on." in body
    assert [line.split()[0] for line in body[-2:]] == ["v2", "v3"]


def test_no_change_is_a_no(history):
    ended = history("items", "v0..", "--item", "q10")
    assert ended.code == ExitCode.NO
    assert ended.text.startswith("no measured version from v0 to v3 solves q10\n")
    both = history("items", "v0..v3", "--item", "q04")
    assert "both v0 and v3 solve q04; it changed in between" in both.text
    assert "the outcome flipped 2 times:" in both.text


def test_json_has_everything(history):
    document = json.loads(history("items", "v0..", "--item", "q08", "--json").out)
    assert (document["schema"], document["run"], document["suspects"]) == ("skillgit.bisect/1", RUN, ["v3"])
    assert document["row"]["version"] == 3
    assert document["flip"] == {"older": "v2", "newer": "v3", "change": "fixed"}


@pytest.mark.parametrize(
    ("arguments", "code"),
    sampled_rows(
        [
            (("--measure",), ExitCode.USAGE),
            (("--item", "q08", "--dry-run"), ExitCode.USAGE),
            (("--item", "q08", "v1..v1"), ExitCode.USAGE),
            (("--item", "q08", "v1...v2"), ExitCode.USAGE),
            (("--item", "q08", "v1..v3", "--plain"), ExitCode.USAGE),
            (("--item", "q80", "v0.."), ExitCode.NOT_FOUND),
            (("--item", "q08", "v1..v9"), ExitCode.NOT_FOUND),
            (("--item", "q08", "nobody/v0.."), ExitCode.NOT_FOUND),
        ],
        4,
    ),
)
def test_mistakes_are_one_sentence(arguments, code, history):
    ended = history("items", *arguments)
    assert (ended.code, ended.text) == (code, "")
    assert "skillgit: " in ended.err or "Error" in ended.err


def test_a_range_says_what_is_missing_and_how_to_narrow_it():
    shown = list(bisect_lines(bisected(), Screen(), sample.NOW))
    assert shown[0] == "one of v4 to v7 broke q1; 3 versions between v3 and v7 were not measured on it"
    assert shown[-1] == "next: skillgit items r/v3..r/v7 --item q1 --measure"
    assert shown[2].split() == ["v3", "✓", "1.0000", "1063", "ft", "correct"]
    two = list(bisect_lines(bisected(suspects=("v6", "v7")), Screen(), sample.NOW))
    assert two[0] == "one of v6 to v7 broke q1; 1 version between v3 and v7 was not measured on it"


def test_what_was_rolled_out_is_told_with_its_cost():
    shown = list(
        bisect_lines(bisected(measured=("v5",), cost=Cost(calls=1, tokens_in=10, tokens_out=2)), Screen(), sample.NOW)
    )
    assert shown[-1] == "rolled out v5, noted on refs/notes/skillgit/evals · 1 call · 10 in · 2 out"


def test_the_request_is_handed_on(skillgit, fake):
    calls = fake("history.bisect.bisect", bisected())
    options = (
        "--measure",
        "--config",
        "demo",
        "-o",
        "train.seed=1",
        "--max-calls",
        "3",
        "--max-tokens",
        "4",
        "--max-usd",
        "0.5",
        "-q",
    )
    assert skillgit("items", "--item", "q1", "v1..v3", *options).code == 0
    request, _ = calls[0]
    assert request == ItemsRequest(
        item="q1",
        run="v1..v3",
        measure=True,
        config="demo",
        overrides=("train.seed=1",),
        max_calls=3,
        max_tokens=4,
        max_usd=0.5,
    )
