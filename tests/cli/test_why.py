from __future__ import annotations

import json
import subprocess

import pytest
from asking import ask
from rule_run import DATES, DATES_EXACTLY, METRES, TRIED, UNITS, write_rule_run
from soaking import sampled_rows

from skillgit.app.attribution.why import why
from skillgit.app.workspace.context import Context
from skillgit.view.surface import UNICODE, Screen
from skillgit.view.text import width
from skillgit.view.why import lines

SIGN = UNICODE.rejected


@pytest.fixture
def here(repo):
    write_rule_run(repo)
    return repo.workdir


def labelled(text: str) -> dict[str, str]:
    """Return label to text of a story; further lines belong to the label above them."""
    found: dict[str, str] = {}
    label = ""
    for line in text.splitlines():
        label = line[:9].strip() or label
        found[label] = f"{found.get(label, '')}\n{line[9:].strip()}".strip()
    return found


def test_a_story_goes_from_the_failures_to_the_gate(here, skillgit) -> None:
    done = skillgit("-C", str(here), "why", UNITS)
    told = labelled(done.text)

    assert (done.code, done.err) == (0, "")
    assert told["rule"] == f'{UNITS}\nskills/demo/SKILL.md line 8, under "Demo"'
    assert told["from"].startswith("v1  ● accepted, new best   .6000 +.2000\nskill: answer in the unit")
    assert told["because"].startswith(f"2 of the step's 3 rollouts, which failed; edit 1 of 2, replace\n{SIGN} t1\n")
    assert "asked     How tall is the tower in feet?" in told["because"]
    assert 'scorer    expected "1,063 ft"' in told["because"]
    assert told["analysts"] == "the unit is missing (2 of 3)"
    assert told["edits"] == "4 proposals merged · 2 chosen · 2 applied · budget 4"
    assert told["gate"].startswith(
        "hard .6000 > current .4000, best .4000 → accept_new_best (strict; 3 fixed, 1 broken"
    )
    assert told["fixed"] == "3 items: q05 q06 q07"
    assert told["broken"] == "1 item: q04"
    assert told["since"] == "it is in v5, the newest version, line 8"
    assert told["cost"].endswith("for all of v1")


def test_wordings_attempts_and_ends_are_told(here, skillgit) -> None:
    told = labelled(skillgit("-C", str(here), "why", DATES_EXACTLY).text)
    assert told["before"] == f"v1 said: {DATES}"
    assert told["tried"] == f"{SIGN} r2, before, rejected with .4000 -.2000\nas        - {TRIED}"

    told = labelled(skillgit("-C", str(here), "why", "metres").text)
    assert told["rule"].startswith(f"{METRES}\nnot in this text; ")
    assert told["since"] == "v1 removed it (skill: answer in the unit, say dates in full)"


def test_escapes_of_models_are_shown(here, skillgit) -> None:
    answered = skillgit("-C", str(here), "why", UNITS).text
    person = skillgit("-C", str(here), "why", "tables").text

    assert "answered  ^[[2Jseven" in answered
    assert "Ada ^[[31mLovelace" in person
    assert "\x1b" not in answered + person


@pytest.mark.parametrize("columns", [60, 80, 132])
def test_a_story_fits_the_screen(here, columns: int) -> None:
    context = Context.from_process(here)
    screen = Screen(terminal=True, width=columns, unicode=False)
    for what in (UNITS, DATES_EXACTLY, "metres", "read", "tables", "1"):
        shown = [screen.encodable(line) for line in lines(ask(why, context, what), screen, context.clock())]
        assert max(map(width, shown)) <= columns
        assert all(line.isascii() for line in shown)


def test_colours_only_repeat_what_is_said(here) -> None:
    context = Context.from_process(here)
    story, now = ask(why, context, UNITS), context.clock()
    painted = list(lines(story, Screen(terminal=True, colour=True, width=100), now))
    plain = list(lines(story, Screen(terminal=True, width=100), now))

    assert any("\x1b[" in line for line in painted)
    assert [_unpainted(line).rstrip() for line in painted] == plain


def _unpainted(line: str) -> str:
    import re  # noqa: PLC0415 - of one test

    return re.sub(r"\x1b\[[0-9;]*m", "", line)


def test_a_document_holds_the_whole_story(here, skillgit) -> None:
    document = json.loads(skillgit("-C", str(here), "why", "8", "--rev", "v1", "--json").out)

    assert document["schema"] == "skillgit.why/1"
    assert document["rule"]["text"] == UNITS
    assert document["origin"]["version"] == 1
    assert [seen["item"] for seen in document["failures"]] == ["t1", "t2"]
    assert document["gate"]["verdict"]["score"] == 0.6
    assert document["later"][-1]["fate"] == "stands"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    sampled_rows(
        [
            (("zebra crossing",), 3, ", now or before, is like 'zebra crossing'"),
            (("",), 2, "the argument LINE|FILE:LINE|TEXT is empty"),
            (("900",), 2, "none at 900"),
            (("5", "--file", "references/units.md"), 2, "lines"),
            (("7", "--rev", "v99"), 3, "has no v99"),
            (("7", "--skill", "nobody"), 3, "there is no skill 'nobody'"),
            (("7", "--file", "nothing.md"), 3, "no file 'nothing.md'"),
            ((), 2, "missing argument"),
        ],
        3,
    ),
)
def test_mistakes_are_told_with_a_hint(here, skillgit, arguments, code: int, said: str) -> None:
    done = skillgit("-C", str(here), "why", *arguments)

    assert (done.code, done.out) == (code, b"")
    assert said in done.err
    assert "hint: " in done.err


def test_a_clone_says_how_to_fetch_the_evidence(here, skillgit, tmp_path) -> None:
    subprocess.run(["git", "clone", "-q", "--no-local", here, tmp_path / "clone"], check=True)
    done = skillgit("-C", str(tmp_path / "clone"), "why", UNITS)

    assert done.code == 0
    assert "skillgit pull --evidence" in done.err
    assert "edits" in done.text
