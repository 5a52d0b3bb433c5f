from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from browser import DESK, NEEDS_CHROMIUM, window
from program import skillgit
from read_page import number, parsed, rows, section, text
from trained_runs import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from xml.etree.ElementTree import Element

    import httpx2
    from playwright.sync_api import Browser
    from serving import Served

SVG_LINK = "{http://www.w3.org/2000/svg}a"


@pytest.fixture(scope="module")
def visitor(served: Served) -> Iterator[httpx2.Client]:
    with served.visit() as client:
        yield client


@pytest.fixture(scope="module")
def page(visitor: httpx2.Client) -> Element:
    return parsed(visitor.get(f"/run/{RUN}").text)


def asked(repository: Path, *words: str):
    return json.loads(skillgit(*words, "--json", cwd=repository).out)


def test_scores_and_counts_are_those_of_the_commands(repository: Path, page: Element) -> None:
    run = next(row for row in asked(repository, "runs")["runs"] if row["name"] == RUN)
    for split in ("selection", "test"):
        scores = asked(repository, "items", RUN, "--models", "--split", split)["scores"]
        cells = {row["version"]: row for row in scores}
        for shown, version in zip(
            rows(section(page, f"split-{split}")), ("v0", f"v{run['best_version']}"), strict=True
        ):
            assert number(shown[1]) == pytest.approx(cells[version]["hard"], abs=5e-5)
            assert int(shown[4]) == cells[version]["n"]
    facts = text(section(page, "facts"))
    assert f"{run['calls']:,} calls, {run['tokens_in'] + run['tokens_out']:,} tokens" in facts
    skips = asked(repository, "log", RUN, "--event", "skipped")["events"]
    assert f"{run['versions'] - 1} new versions, {run['rejected']} rejected, {len(skips)} skipped" in facts


def test_every_sign_of_the_curve_leads_to_its_event(repository: Path, visitor: httpx2.Client, page: Element) -> None:
    links = {link.get("href") for link in section(page, "curve").iter(SVG_LINK)}
    events = asked(repository, "log", RUN)["events"]
    drawn = {row["version"] for row in events if row["version"] is not None}
    assert {f"/run/{RUN}/v{version}" for version in drawn} <= links
    for link in links:
        assert visitor.get(link).url.path == link


def test_rules_name_what_blame_names(repository: Path, page: Element) -> None:
    lines = {row["line"]: row for row in asked(repository, "blame", f"{RUN}/best")["lines"]}
    rules = [part for part in section(page, "rules").iter("li") if part.get("class") == "rule"]
    assert rules
    for part in rules:
        link = next(part.iter("a"))
        line = lines[int(link.get("href").rpartition("line=")[2])]
        assert text(link) in line["text"]
        chips = text(next(chip for chip in part.iter("span") if (chip.get("class") or "").startswith("chip")))
        assert chips == (line["address"] or "seed").removeprefix(f"{RUN}/")


def test_the_report_is_the_file_that_the_command_writes(repository: Path, visitor: httpx2.Client) -> None:
    answer = visitor.get(f"/run/{RUN}/report")
    assert answer.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{RUN}.html"
    assert answer.text == skillgit("report", RUN, "--output", "-", cwd=repository).out


@pytest.mark.soak
@pytest.mark.slow
@NEEDS_CHROMIUM
def test_a_reader_comes_from_the_curve_to_the_evidence_of_a_rule_by_mouse_and_by_keys(
    served: Served, browser: Browser
) -> None:
    with window(browser, served, viewport=DESK) as (page, ear):
        page.goto(f"{served.origin}/run/{RUN}")
        page.locator(f'.curve.wide a[href="/run/{RUN}/v1"] .target').click()
        page.wait_for_url(f"**/run/{RUN}/v1")
        page.locator("summary:has(#text)").click()
        page.locator(".skill-text .brought.own").first.click()
        page.wait_for_url("**/why?*")
        assert page.get_by_role("heading", name="What it rests on").is_visible()

        page.goto(f"{served.origin}/run/{RUN}")
        for target in (f"/run/{RUN}/v1", f"/run/{RUN}/v1/why"):
            page.locator("summary:has(#text)").press("Enter") if target.endswith("why") else page.keyboard.press("Tab")
            for _ in range(400):
                held = page.evaluate("(document.activeElement.getAttribute('href') || '').split('?')[0]")
                if held == target:
                    break
                page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            page.wait_for_url(f"**{target}*")
        assert page.get_by_role("heading", name="Over the versions").is_visible()
        assert ear.complaints == []
