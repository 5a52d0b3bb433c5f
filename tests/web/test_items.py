"""Items over versions, one item with trajectories, and what both print is what the command prints."""

from __future__ import annotations

import html
import json
import re

import pytest
from browser import DESK, NEEDS_CHROMIUM, window
from hypothesis import given
from hypothesis import strategies as st
from program import skillgit
from serving import serving
from trained_runs import RUN

from skillgit.app.history.diff.items import ItemChange
from skillgit.app.history.item import ItemReply
from skillgit.app.recorded.outcomes import ItemOutcome
from skillgit.domain.trajectory import ToolUse, Turn
from skillgit.report.page import FILTERS
from skillgit.view.item import shared, steps
from skillgit.view.items import output_table, outputs
from skillgit.view.surface import UNICODE
from skillgit.view.table import Surface
from skillgit.web.rendering import address

ROW = re.compile(r'<tr><th scope="row"><a href="([^"]+)">([^<]+)</a>.*?(\d+)/(\d+)</td></tr>', re.DOTALL)
CELL = re.compile(r'<a href="([^"]+)" title="\S+ at (v\d+)"><span[^>]*>.</span><span class="hidden">([^<]+)</span>')
FACET = re.compile(r'">([^<]+) <span class="count">(\d+)</span>')


def printed(repository, *words):
    return json.loads(skillgit(*words, "--json", cwd=repository).out)


@pytest.fixture
def client(served):
    with served.visit() as opened:
        yield opened


def test_the_map_says_what_the_command_prints(repository, client):
    page = client.get(address("run", RUN, "items")).text
    listed = printed(repository, "items", RUN)
    rows = {name: (int(solved), int(measured)) for _, name, solved, measured in ROW.findall(page)}
    assert rows == {row["item"]: (row["solved"], row["measured"]) for row in listed["items"]}
    assert f"skillgit items {RUN}" in page
    words = {1.0: "solved", 0.0: ("not solved", "partial credit")}
    cells = [(html.unescape(link), version, said) for link, version, said in CELL.findall(page)]
    outcomes = {row["item"]: row["outcomes"] for row in listed["items"]}
    assert len(cells) == sum(len(row) for row in outcomes.values())
    for link, version, said in cells:
        item = re.search(r"/items/([^?]+)", link)[1]
        assert said in words[outcomes[item][version]]
        assert f"b={version}" in link


@pytest.mark.parametrize(("facet", "option"), [("flaky", "--flaky"), ("never solved", "--never-solved")])
def test_a_facet_lists_the_items_that_the_option_chooses(repository, client, facet, option):
    page = client.get(address("run", RUN, "items", facet=facet)).text
    chosen = [row["item"] for row in printed(repository, "items", RUN, option)["items"]]
    counts = dict(FACET.findall(page))
    assert int(counts.get(facet, 0)) == len(chosen)
    if chosen:
        assert [name for _, name, *_ in ROW.findall(page)] == chosen
        assert f"skillgit items {RUN} {option}" in page


def test_items_that_a_version_fixed_are_those_that_its_comparison_names(repository, client):
    fixed = printed(repository, "diff", f"{RUN}/v0", f"{RUN}/v1", "--items")["fixed"]
    page = client.get(address("run", RUN, "items", facet="fixed:v1")).text
    assert [name for _, name, *_ in ROW.findall(page)] == fixed


def test_an_item_shows_both_trajectories_and_the_way_to_the_next(repository, client):
    names = [row["item"] for row in printed(repository, "items", RUN)["items"]]
    page = html.unescape(client.get(address("run", RUN, "items", names[1], a="v0", b="v1")).text)
    for version in ("v0", "v1"):
        told = printed(repository, "items", RUN, "--item", names[1], "--trajectory", f"{RUN}/{version}")
        assert f">{told['attempt']['answer']}</dd>" in page
        assert told["attempt"]["feedback"] in page
        assert all(turn["content"] in page for turn in told["turns"])
    for name in (names[0], names[2]):
        assert address("run", RUN, "items", name, a="v0", b="v1") in page


@pytest.mark.parametrize("name", ["v1", "r1", "r2"])
def test_a_key_leads_to_the_next_failure_of_a_version_or_a_candidate(repository, client, name):
    items = [row["item"] for row in printed(repository, "items", RUN)["items"]]
    scores = {row["item"]: row["after"] for row in printed(repository, "show", f"{RUN}/{name}")["items"]}
    failures = [item for item in items if scores[item] is not None and scores[item] < 1]
    assert len(failures) > 1
    page = client.get(address("run", RUN, "items", failures[0], a="v0", b=name)).text
    assert re.search(rf'items/{failures[1]}\?[^"]*" data-hotkey="n"', page)


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_in_a_browser_sides_are_swapped_and_the_facet_that_one_came_from_is_kept(served, browser):
    with window(browser, served, viewport=DESK) as (page, ear):
        page.goto(served.origin + address("run", RUN, "items", facet="never solved"))
        page.locator("tbody th a").first.click()
        page.wait_for_url("**/items/va-*facet=never*")
        answers = page.locator("select[name=a], select[name=b]")
        before = [answer.input_value() for answer in answers.all()]
        page.get_by_role("link", name="swap").click()
        page.wait_for_url(f"**a={before[1]}&b={before[0]}*facet=never*")
        assert [answer.input_value() for answer in answers.all()] == before[::-1]
        page.get_by_role("link", name="Items: never solved").click()
        page.wait_for_url("**/items?facet=never*")
        assert ear.complaints == []


def test_an_id_with_a_slash_is_one_name_and_an_unknown_version_is_refused(client):
    page = client.get(address("run", RUN, "items", "no/such%2Fitem"))
    assert page.status_code == 404
    assert "no/such%2Fitem" in html.unescape(page.text)
    assert client.get(address("run", RUN, "items", "va-001", a="<b>")).status_code == 404


def test_a_question_is_searched(client):
    page = client.get(address("run", RUN, "items", q="board GAME")).text
    assert len(ROW.findall(page)) == 1
    assert "No item matches" in client.get(address("run", RUN, "items", q="<script>")).text


@pytest.mark.slow
def test_a_picture_that_was_shown_is_a_raster_file_and_nothing_else(tmp_path):
    folder = tmp_path / "repository"
    skillgit("init", folder, "--env", "docvqa", cwd=tmp_path)
    short = ("-o", "train.num_epochs=1", "-o", "optimizer.use_slow_update=false", "-o", "env.limit=3")
    skillgit("train", "docvqa/default", "--run", RUN, "-q", *short, cwd=folder)
    with serving(folder) as server, server.visit() as visitor:
        page = visitor.get(address("run", RUN, "items", "11")).text
        picture = visitor.get(html.unescape(re.search(r'<img src="([^"]+)"', page)[1]))
        assert (picture.status_code, picture.headers["content-type"]) == (200, "image/png")
        assert picture.content.startswith(b"\x89PNG")
        assert picture.headers["x-content-type-options"] == "nosniff"
        assert picture.headers["content-disposition"].startswith("attachment")
        for item, digest in (("11", "0" * 16), ("no-such", "0" * 16)):
            assert visitor.get(address("run", RUN, "picture", digest, item=item)).status_code == 404


CALL = ToolUse(name="grep", arguments='{"word": "x"}')


@given(st.lists(st.sampled_from(["system", "user", "assistant", "tool"])), st.integers(0, 3))
def test_a_conversation_is_a_tree_that_loses_no_turn(roles, calls):
    uses = (CALL,) * calls
    turns = [
        Turn(role=role, content=f"{number}", tool_calls=uses if role == "assistant" else ())
        for number, role in enumerate(roles)
    ]
    tree = [*steps(turns)]
    told = [turn for step in tree for turn in (step.turn, *(brought for _, brought in step.calls if brought))]
    assert told == turns
    assert all([call for call, _ in step.calls] == [*step.turn.tool_calls] for step in tree)
    other = Turn(role="user", content="another")
    assert shared([turns, [other, *turns]]) == 0
    count = shared([turns, [*turns, other]])
    assert "assistant" not in roles[:count]
    assert count == len(roles) or roles[count] == "assistant"


def test_equal_prompts_stand_once_and_a_search_marks_what_it_finds(repository, client):
    told = printed(repository, "items", RUN, "--item", "va-002", "--trajectory", f"{RUN}/v0")
    prompt, reply = told["turns"][0]["content"], told["turns"][-1]["content"]
    at = {"a": "v0", "b": "v1"}
    page = html.unescape(client.get(address("run", RUN, "items", "va-002", **at)).text)
    assert (page.count(prompt), page.count("The same prompt in both")) == (1, 1)
    word = max(re.findall(r"\w+", told["attempt"]["answer"]), key=len)
    page = html.unescape(client.get(address("run", RUN, "items", "va-002", **at, find=word.upper())).text)
    marked = re.sub("</?mark>", "", page)
    assert (f"<mark>{word}</mark>" in page, reply in marked) == (True, True)
    page = client.get(address("run", RUN, "items", "va-002", **at, find="<b>never</b>")).text
    assert "0 turns have" in page
    assert "<b>never" not in page
    assert reply not in html.unescape(page)


@pytest.mark.parametrize(
    ("value", "hard", "sign"),
    [(0.0, 0.0, UNICODE.rejected), (0.4, 0.0, "◐"), (1.0, 1.0, UNICODE.passed), (None, None, "!")],
)
def test_an_outcome_has_one_sign_on_every_page(value, hard, sign):
    outcome = ItemOutcome(hard=hard, soft=0.4, value=value)
    assert FILTERS["mark"](outcome).sign == sign
    change = ItemChange(item="i", task_type="", before=value, after=value, change="fail")
    reply = ItemReply(is_solved=None if hard is None else hard >= 1)
    row = next(outputs([[change]], {"i": (reply, reply)}))
    shown = [cell.text for cell in output_table(["r/v0", "r/v1"]).drawn([row], Surface.PAGE)[1][0][3:5]]
    assert all(text.startswith(sign if value is not None else "·") for text in shown)
