from __future__ import annotations

import json
import re
import shutil

import httpx2
import pytest
from browser import DESK, NEEDS_CHROMIUM, window
from program import git, new_repository, skillgit
from read_page import by_id, number, parsed, rows, text
from serving import OTHER, serving
from trained_runs import RUN


@pytest.fixture(scope="module")
def client(served):
    with served.visit() as visit:
        yield visit


def listed(repository, *words: str) -> list[dict]:
    return json.loads(skillgit("runs", *words, "--json", cwd=repository).out)["runs"]


WORDS = [
    *("skill", "steps", "score", "best_version", "gain", "test", "test-gain"),
    *("versions", "cost", "updated", "state", "model", "environment"),
]
COLUMNS = "&".join(f"column={word}" for word in ["name", *WORDS])


def names(client: httpx2.Client, address: str) -> list[str]:
    return [row[1] for row in rows(parsed(client.get(address).text))]


def test_the_table_has_the_numbers_of_the_command(client, repository):
    page = parsed(client.get(f"/?{COLUMNS}").text)
    heads = [
        "tick",
        "run",
        "scores",
        "skill",
        "steps",
        "best",
        "version",
        "gain",
        "test",
        "test gain",
        "counts",
        "spent",
        "age",
    ]
    heads += ["state", "models", "environment"]
    for cells, run in zip(rows(page), listed(repository), strict=True):
        row = dict(zip(heads, cells, strict=True))
        assert row["run"] == run["name"]
        assert run["outcome"] in row["state"]
        for head, score, items in (("best", "best_score", "best_items"), ("test", "best_test", "test_items")):
            assert number(row[head].split()[0]) == pytest.approx(run[score], abs=5e-5)
            low, _, high = row[head].split()[1:]
            assert float(low) <= run[score] <= float(high)
            assert run[items] in {20, 8}
        assert number(row["gain"]) == pytest.approx(run["best_score"] - run["first_score"], abs=5e-5)
        assert number(row["test gain"]) == pytest.approx(run["best_test"] - run["first_test"], abs=5e-5)
        assert run["target"] in row["models"]
        assert f"{run['calls']:,} calls" in row["spent"]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("sort=-score", ("--sort", "-score")),
        ("sort=name", ("--sort", "name")),
        ("sort=-calls&q=score%3E.1", ("--sort", "-calls", "--filter", "score>.1")),
        ("q=oth&state=improved", ("--filter", "oth", "--filter", "state=improved")),
    ],
)
def test_sorting_and_filters_are_those_of_the_command(client, repository, query, words):
    answer = client.get(f"/?{query}").text
    shown = [row[1] for row in rows(parsed(answer)) if len(row) > 1]
    assert shown == [run["name"] for run in listed(repository, *words)]
    assert "skillgit runs --" in answer


@pytest.mark.parametrize("words", [(), ("model", "steps", "test-gain"), WORDS])
def test_columns_are_chosen_by_their_headings_and_links_keep_the_choice(client, words):
    asked = "&".join(f"column={word}" for word in ("name", *words))
    page = parsed(client.get(f"/?{asked}" if words else "/").text)
    heads = [text(element) for element in page.iter("th") if element.get("scope") == "col"]
    boxes = [label for label in page.iter("label") if len(label) and label[0].get("name") == "column"]
    assert [text(box) for box in boxes if box[0].get("checked") is not None] == [
        head for head in heads if head not in {"run", "scores"}
    ]
    assert len({*heads}) == len(heads)
    assert len(boxes) == len(WORDS)
    links = [element.get("href") for element in page.iter("a") if "sort=" in (element.get("href") or "")]
    assert all(set(re.findall(r"column=([\w-]+)", link)) == ({"name", *words} if words else set()) for link in links)


@NEEDS_CHROMIUM
def test_what_people_marked_is_in_sight_on_a_desk_and_on_a_phone(tmp_path, repository, browser):
    copy = shutil.copytree(repository, tmp_path / "copy", ignore=shutil.ignore_patterns("serve"))
    for name in ("stable-for-production", "second-opinion-asked", "v2-ok"):
        git("tag", name, f"{RUN}/v1", cwd=copy)
    skillgit("note", f"{RUN}/v1", "It should quote the passage before it answers. " * 4, cwd=copy)
    with serving(copy) as server:
        for width, is_card in ((1280, False), (390, True), (320, True)):
            with window(browser, server, viewport={"width": width, "height": 800}) as (page, ear):
                page.goto(f"{server.origin}/")
                row = page.locator("tbody tr", has_text="stable-for-production@v1")
                for head in ("best", "gain", "spent", "age", "state", "tags", "notes"):
                    cell = row.locator(f"td[data-head={head}]")
                    box = cell.bounding_box()
                    assert 0 <= box["x"] < box["x"] + box["width"] <= width, (head, width)
                    assert cell.evaluate("e => getComputedStyle(e, '::before').content") == (
                        f'"{head}"' if is_card else "none"
                    )
                region = page.get_by_role("region", name="Table of runs")
                assert region.evaluate("e => e.scrollWidth <= e.clientWidth")
                assert ear.complaints == []


def test_a_filter_that_means_nothing_is_explained(client):
    answer = client.get("/?q=score%3Emuch")
    assert answer.status_code == httpx2.codes.BAD_REQUEST
    assert "not a number" in answer.text


def test_curves_lie_over_each_other(client):
    page = parsed(client.get(f"/?show={RUN}&show={OTHER}&by=call").text)
    title = text(by_id(page, "overlay-wide"))
    assert RUN in title
    assert OTHER in title
    lines = [element for element in page.iter() if element.get("class") == "run-line"]
    assert len({element.get("d") for element in lines[:2]}) == 2
    links = [element.get("href") for element in page.iter("a")]
    assert f"/compare?rev={RUN}&rev={OTHER}" in links
    assert client.get("/?show=none").status_code == httpx2.codes.NOT_FOUND
    assert client.get(f"/?show={RUN}&by=moon").status_code == httpx2.codes.BAD_REQUEST


def test_an_empty_repository_leads_to_a_new_run(tmp_path):
    with serving(new_repository(tmp_path / "empty")) as server, httpx2.Client(base_url=server.origin) as client:
        client.get(server.link)
        answer = client.get("/")
        assert (answer.status_code, answer.headers["location"]) == (303, "/new")


def test_a_run_that_cannot_be_read_is_named(tmp_path, repository):
    copy = shutil.copytree(
        repository, tmp_path / "copy", ignore=shutil.ignore_patterns("serve")
    )  # which changes with servers
    skillgit("runs", cwd=copy)
    (copy / ".git" / "refs" / "heads" / "run").mkdir(parents=True, exist_ok=True)
    (copy / ".git" / "refs" / "heads" / "run" / "broken").write_text(
        (copy / ".git" / "refs" / "heads" / "main").read_text()
    )
    with serving(copy) as server, server.visit() as client:
        page = parsed(client.get("/").text)
        told = text(next(element for element in page.iter("section") if element.get("aria-labelledby") == "broken"))
        assert "broken" in told
        assert names(client, "/") == [run["name"] for run in listed(copy)]


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_in_a_browser_a_curve_is_zoomed_by_hand_and_by_key_and_the_address_keeps_it(served, browser):
    with window(browser, served, viewport=DESK) as (page, ear):
        page.goto(f"{served.origin}/run/{RUN}?base={OTHER}")
        place = page.locator("svg.curve.wide").bounding_box()
        y = place["y"] + 12
        page.mouse.move(place["x"] + place["width"] * 0.3, y)
        page.mouse.down()
        page.mouse.move(place["x"] + place["width"] * 0.7, y)
        page.mouse.up()
        page.wait_for_url("**within=*")
        first, last = map(float, re.search(r"within=([\d.]+)-([\d.]+)", page.url).groups())
        assert 0 < first < last < 6
        assert f"base={OTHER}" in page.url
        assert page.locator("svg.wide .baseline text").text_content().startswith(OTHER)
        page.keyboard.press("0")
        page.wait_for_url(re.compile("^[^=]*base=other&focus=curve$"))
        page.go_back()
        page.wait_for_url("**within=*")
        assert ear.complaints == []
