"""Versions and runs beside each other, and that the page prints what ``skillgit diff`` prints."""

from __future__ import annotations

import csv
import html
import json
import re

import pytest
from browser import DESK, NEEDS_CHROMIUM, PHONE, window
from hypothesis import given
from hypothesis import strategies as st
from program import skillgit
from serving import OTHER
from trained_runs import RUN

from skillgit.app.history.diff.items import ItemChange
from skillgit.app.history.item import ItemReply
from skillgit.view.items import FACETS, outputs
from skillgit.web.rendering import address

ROW = re.compile(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', re.DOTALL)
LISTED = ("broken", "lost", "fixed", "gained", "not-measured", "missing", "fail", "pass")
COUNT = re.compile(r'<a href="(/compare[^"]*items=(\w+)#items)">(\d+) (\w+)</a>')
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
    """Return the items in the table of outputs."""
    return [item for item, cells in ROW.findall(page) if LINK.search(cells)]


def test_two_versions_differ_as_the_command_says(repository, client):
    sides = f"{RUN}/v0", f"{RUN}/v1"
    page = compared(client, *sides)
    told = printed(repository, "diff", *sides, "--items")
    for kind in ("fixed", "gained", "broken", "lost"):
        assert listed(compared(client, *sides, items=kind)) == told[kind]
    every = [row["item"] for row in told["items"]]
    order = [row["item"] for kind in LISTED for row in told["items"] if row["change"] == kind]
    assert listed(compared(client, *sides, items="all")) == order
    assert listed(compared(client, *sides, items="all", sort="-item")) == every[::-1]
    assert f"skillgit diff {sides[0]} {sides[1]} --items" in page
    rules = printed(repository, "diff", *sides, "--rules")
    changes = re.findall(r'<span class="change">(\w+)</span>', page)
    assert changes == [row["change"] for row in rules["rules"]]


def test_each_count_of_a_comparison_leads_to_as_many_items(repository, client):
    events = printed(repository, "log", RUN)["events"]
    best = next(row["version"] for row in events if row["is_best"])
    pair = f"{RUN}/v0", f"{RUN}/v{best}"
    told = printed(repository, "diff", *pair, "--items")
    every = {kind: len(told[kind]) for kind in ("fixed", "broken") if told[kind]}
    read = lambda path: COUNT.findall(html.unescape(client.get(path).text))  # noqa: E731 - used twice
    shown = [read(f"/run/{RUN}"), read(address("compare", rev=pair))]
    assert [{kind: int(count) for _, kind, count, _ in counts} for counts in shown] == [every, every] != [{}, {}]
    labels = {"versioned": "v{version}", "rejected": "r{step}"}
    names = [labels[row["kind"]].format(**row) for row in events if row["kind"] in labels]
    shown += [read(f"/run/{RUN}/{name}") for name in names]
    assert any(shown[2:])
    for link, kind, count, word in (found for counts in shown for found in counts):
        assert kind == word
        assert len(listed(html.unescape(client.get(link.partition("#")[0]).text))) == int(count)


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


def differing(repository, *sides) -> list[str]:
    """Return the items whose outcome or answer differs, as the commands print each."""
    scores = {
        row["item"]: (row["before"], row["after"]) for row in printed(repository, "diff", *sides, "--items")["items"]
    }
    names = []
    for item, (before, after) in scores.items():
        attempts = {row["name"]: row for row in printed(repository, "items", RUN, "--item", item)["attempts"]}
        a, b = (attempts[side.rpartition("/")[2]] for side in sides)
        if None not in {before, after} and (before != after or a["answer"] != b["answer"]):
            names.append(item)
    return names


@NEEDS_CHROMIUM
def test_the_filter_different_shows_the_items_whose_outcome_or_answer_differs(repository, served, browser, tmp_path):
    sides = f"{RUN}/v0", f"{RUN}/v1"
    different = differing(repository, *sides)
    told = {row["item"]: row for row in printed(repository, "diff", *sides, "--items")["items"]}
    assert 0 < len(different) < len(printed(repository, "diff", *sides, "--items")["items"])
    with window(browser, served, viewport=DESK) as (page, ear):
        page.goto(served.origin + address("compare", rev=sides, items="all"))
        page.get_by_role("link", name=re.compile("^different")).click()
        page.wait_for_url("**items=different**")
        table = page.get_by_role("region", name="Items of the comparison")
        order = sorted(different, key=lambda item: LISTED.index(told[item]["change"]))
        assert table.locator("tbody th").all_inner_texts() == order
        page.get_by_role("link", name="item", exact=True).click()
        page.wait_for_url("**items=different**sort=item**")
        page.get_by_role("link", name="item", exact=True).click()
        page.wait_for_url("**sort=-item**")
        page.get_by_label("question").uncheck()
        page.get_by_role("button", name="Show").click()
        page.wait_for_url("**column=item&column=task_type&column=change**")
        assert "sort=-item" in page.url
        assert table.locator("tbody th").all_inner_texts() == different[::-1]
        assert "question" not in table.locator("thead").inner_text()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download CSV").click()
        download.value.save_as(tmp_path / "items.csv")
        assert ear.complaints == []
    rows = list(csv.DictReader((tmp_path / "items.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["item"] for row in rows] == different[::-1]
    for row in rows:
        attempts = {own["name"]: own for own in printed(repository, "items", RUN, "--item", row["item"])["attempts"]}
        assert [float(row[side]) for side in sides] == [told[row["item"]][end] for end in ("before", "after")]
        assert [row[f"{side} answer"] for side in sides] == [attempts[end]["answer"] for end in ("v0", "v1")]
        assert row["change"] == told[row["item"]]["change"]
        assert row["question"]


SCORES = st.sampled_from([None, 0.0, 0.5, 1.0])


@given(st.lists(st.tuples(SCORES, SCORES, st.sampled_from(["", "a", "b"]), st.sampled_from(["", "a", "b"]))))
def test_an_item_is_in_the_groups_that_its_outcomes_say(cases):
    def change(before, after):
        return "missing" if None in {before, after} else "fixed" if before < after == 1 else "fail"

    rows = [
        ItemChange(item=str(number), task_type="", before=before, after=after, change=change(before, after))
        for number, (before, after, *_) in enumerate(cases)
    ]
    replies = {str(number): (ItemReply(answer=a), ItemReply(answer=b)) for number, (*_, a, b) in enumerate(cases)}
    for row in outputs([rows], replies):
        before, after, a, b = cases[int(row.item)]
        known = [score for score in (before, after) if score is not None]
        both = len(known) == 2
        assert FACETS["different"](row) == (both and (before != after or bool(a and b and a != b)))
        assert FACETS["failing"](row) == any(score < 1 for score in known)
        assert FACETS["solved by none"](row) == (bool(known) and all(score < 1 for score in known))
        assert FACETS["fixed"](row) == (row.changes == ("fixed",))


def test_too_many_sides_and_unknown_ones_are_refused(client):
    assert client.get(address("compare", rev=[f"{RUN}/v{number}" for number in range(5)])).status_code in {400, 404}
    assert client.get(address("compare", rev=[RUN, "<script>alert(1)</script>"])).status_code == 404
    assert "<script>alert" not in client.get(address("compare", rev=[RUN, "<script>alert(1)</script>"])).text
    assert client.get("/compare").status_code == 200


def test_a_version_without_outcomes_leaves_the_items_of_the_others(client):
    sides = f"{RUN}/v0", f"{RUN}/v1"
    expected = listed(compared(client, *sides, items="different"))
    assert expected
    for names in ((*sides, "main"), ("main", *sides)):
        assert listed(compared(client, *names, items="different")) == expected
        rows = [*csv.DictReader(client.get(address("compare", "items.csv", rev=names)).text.splitlines())]
        assert [row["item"] for row in rows] == expected
    assert client.get(address("compare", "items.csv", rev=[sides[0], "main"])).status_code == 404


def test_a_comparison_with_itself_says_so_and_each_change_names_its_pair(client):
    assert f"Both are {RUN}/v1: there is nothing to compare." in compared(client, f"{RUN}/v1", f"{RUN}/v1")
    page = compared(client, *(f"{RUN}/v{number}" for number in range(3)), items="all")
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', page.partition('id="items"')[2])
    assert [re.sub("<[^>]+>", "", head) for head in heads[:8]] == [
        *("item", "type", "question", "v0", "v1", "v2", "v0 → v1", "v0 → v2")
    ]
    assert page.count("Only the text differs") == 1


@NEEDS_CHROMIUM
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_the_first_broken_item_and_both_answers_are_two_clicks_away(repository, served, browser, size):
    sides = f"{RUN}/v1", f"{RUN}/v0"
    broken = printed(repository, "diff", *sides, "--items")["broken"]
    attempts = {own["name"]: own for own in printed(repository, "items", RUN, "--item", broken[0])["attempts"]}
    with window(browser, served, viewport=size) as (page, ear):
        page.goto(served.origin + address("compare", rev=sides))
        page.get_by_role("link", name=re.compile("^broken")).click()
        row = page.get_by_role("region", name="Items of the comparison").locator("tbody tr").first
        assert row.locator("th").inner_text() == broken[0]
        for cell, version in zip(row.locator("a").all(), ("v1", "v0"), strict=True):
            assert attempts[version]["answer"] in cell.inner_text()
            assert cell.bounding_box()["x"] + cell.bounding_box()["width"] <= size["width"]
        row.locator("a").last.click()
        page.wait_for_url(f"**/items/{broken[0]}?**")
        answers = page.locator("dd.verbatim")
        assert answers.all_inner_texts() == [attempts[version]["answer"] for version in ("v1", "v0")]
        page.keyboard.press("n")
        page.wait_for_url(f"**/items/{broken[1]}?**items=broken**")
        page.keyboard.press("p")
        page.wait_for_url(f"**/items/{broken[0]}?**")
        page.get_by_role("link", name=re.compile("^Comparison of")).click()
        page.wait_for_url("**/compare?**items=broken**")
        assert ear.complaints == []
