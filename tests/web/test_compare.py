"""Versions and runs beside each other, and that the page prints what ``skillgit diff`` prints."""

from __future__ import annotations

import html
import json
import re

import pytest
from browser import DESK, NEEDS_CHROMIUM, PHONE, barriers, overflow, window
from program import skillgit
from serving import OTHER
from trained_runs import RUN

from skillgit.web.rendering import address

LISTS = re.compile(r'<details class="change-list".*?<summary>(\w+) .*?</details>', re.DOTALL)
LINK = re.compile(r'href="(/run/[^"]+/items/([^"?]+)\?[^"]*)"')


def printed(repository, *words):
    return json.loads(skillgit(*words, "--json", cwd=repository).out)


@pytest.fixture
def client(served):
    with served.visit() as opened:
        yield opened


def compared(client, *revisions, **more):
    return html.unescape(client.get(address("compare", rev=revisions, **more)).text)


def listed(page):
    return {found[1]: [item for _, item in LINK.findall(found[0])] for found in LISTS.finditer(page)}


def test_two_versions_differ_as_the_command_says(repository, client):
    sides = f"{RUN}/v0", f"{RUN}/v1"
    page = compared(client, *sides)
    told = printed(repository, "diff", *sides, "--items")
    groups = {kind: told[kind] for kind in ("fixed", "gained", "broken", "lost") if told[kind]}
    assert listed(page) == groups
    assert skillgit("diff", *sides, "--items", cwd=repository).out.splitlines()[-1].split(" · ")[0] in page
    assert f"skillgit diff {sides[0]} {sides[1]} --items" in page
    rules = printed(repository, "diff", *sides, "--rules")
    changes = re.findall(r'<span class="change">(\w+)</span>', page)
    assert changes == [row["change"] for row in rules["rules"]]


def test_every_link_to_an_item_carries_the_pair_that_is_shown(client):
    page = compared(client, f"{RUN}/v0", f"{RUN}/v1")
    assert LINK.findall(page)
    assert all("a=v0&b=v1" in link for link, _ in LINK.findall(page))


def test_runs_are_compared_by_their_best_versions_and_the_setup_comes_first(repository, client):
    page = compared(client, RUN, OTHER, f"{RUN}/v0")
    best = {row["name"]: row["best_version"] for row in printed(repository, "runs")["runs"]}
    assert f"{RUN}/v{best[RUN]}, {OTHER}/v{best[OTHER]} and {RUN}/v0" in page
    assert "seed differs: 42 against 7" in page
    assert page.index("seed differs") < page.index('id="text"') < page.index('id="rules"') < page.index('id="cost"')
    assert compared(client, RUN, OTHER, view="split").count('class="halves"') >= 1


def test_too_many_sides_and_unknown_ones_are_refused(client):
    assert client.get(address("compare", rev=[f"{RUN}/v{number}" for number in range(5)])).status_code in {400, 404}
    assert client.get(address("compare", rev=[RUN, "<script>alert(1)</script>"])).status_code == 404
    assert "<script>alert" not in client.get(address("compare", rev=[RUN, "<script>alert(1)</script>"])).text
    assert client.get("/compare").status_code == 200


@pytest.mark.soak
@NEEDS_CHROMIUM
@pytest.mark.slow
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_comparison_fits_its_window_and_has_no_barriers(served, browser, size):
    with window(browser, served, viewport=size) as (page, ear):
        for revisions in ((f"{RUN}/v0", f"{RUN}/v1"), (RUN, OTHER, f"{RUN}/v0")):
            page.goto(served.origin + address("compare", rev=revisions, view="split"))
            assert (overflow(page), barriers(page)) == ([], [])
        page.get_by_role("link", name="swap").click()
        page.wait_for_url("**rev=small%2Fv0&rev=other**")
        assert ear.complaints == []
