"""Items over versions, one item with trajectories, and what both print is what the command prints."""

from __future__ import annotations

import html
import json
import re

import pytest
from browser import DESK, NEEDS_CHROMIUM, PHONE, barriers, overflow, window
from program import skillgit
from serving import serving
from trained_runs import RUN

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


@pytest.mark.soak
@NEEDS_CHROMIUM
@pytest.mark.slow
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_map_leads_to_an_item_and_keeps_its_facet(served, browser, size):
    with window(browser, served, viewport=size) as (page, ear):
        page.goto(served.origin + address("run", RUN, "items", facet="fixed:v1"))
        assert (overflow(page), barriers(page)) == ([], [])
        page.locator("td.s a").first.click()
        page.wait_for_url("**/items/*?**facet=fixed%3Av1**")
        assert (overflow(page), barriers(page), ear.complaints) == ([], [], [])
