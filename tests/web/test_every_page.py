"""Every page, as a browser has it: readable by everybody, quiet, whole on a desk and on a phone, in both themes."""

from __future__ import annotations

import html
import json
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import sample_run
from browser import DESK, NEEDS_CHROMIUM, PHONE, barriers, overflow, window
from harvested import SKILL
from program import new_repository, skillgit
from read_page import parsed
from serving import OTHER, serving
from soaking import soak
from trained_runs import RUN

from skillgit.domain.event import Models
from skillgit.store.repo import Repo
from skillgit.verbs.command_line import read_words
from skillgit.web.pages import ROUTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser
    from serving import Served

FILES = {
    "/compare/items.csv",
    "/curve.csv",
    "/events.csv",
    "/run/{run}/events.csv",
    "/runs.csv",
    "/run/{run}/live/stream",
    "/run/{run}/report",
    "/run/{run}/{event}/export",
    "/run/{run}/picture/{digest}",
}
"""Addresses that answer with something else than a page."""
QUERIES = {
    "/": ["", "?sort=cost&q=score>.1", f"?show={RUN}&show={OTHER}&by=call&within=20-200&base={RUN}"],
    "/compare": ["", f"?rev={RUN}/v0&rev={RUN}/v1", f"?rev={RUN}&rev={OTHER}&rev={RUN}/v0&view=split"],
    "/new": ["", "?config=demo", f"?from={RUN}"],
    "/events": ["", "?q=event:rejected"],
    "/run/{run}": ["", f"?within=2-5&base={OTHER}/v0"],
    "/run/{run}/events": ["", "?q=event:rejected"],
    "/run/{run}/items": ["", "?facet=flaky"],
    "/run/{run}/{event}": ["?view=text&diff=split", "?diff=word"],
    "/run/{run}/{event}/why": ["?file=SKILL.md&line=10"],
}
"""What is asked of pages behind their addresses."""
EVENTS = ("v0", "r1", "end")
SETTINGS = [("dark", DESK), ("light", PHONE), ("light", DESK)]


def addresses(served: Served, *, every: bool = True) -> Iterator[str]:
    """Yield addresses of all pages, with ``every`` question or the last one; a name without example ends the test."""
    item = json.loads(skillgit("items", RUN, "--json", cwd=served.repository).out)["items"][0]["item"]
    examples = {"run": RUN, "event": "v1", "item": item, "skill": SKILL}
    yield from (f"/run/{RUN}/{event}" for event in EVENTS)
    for route in ROUTES:
        if route.method == "POST" or route.path in FILES or "{id}" in route.path:
            continue
        path = re.sub(r"{(\w+)(?::\w+)?}", lambda hole: quote(examples[hole[1]], safe=""), route.path)
        yield from (path + query for query in QUERIES.get(route.path, [""])[None if every else -1 :])


@pytest.mark.slow
@NEEDS_CHROMIUM
@pytest.mark.parametrize(
    ("theme", "size", "contrasts"),
    [("dark", DESK, 4), soak("light", PHONE, 0), *(soak(theme, size, 1) for theme, size in SETTINGS)],
)
def test_it_is_quiet_fits_its_window_and_keeps_nobody_out(
    served: Served, browser: Browser, theme: str, size: dict[str, int], contrasts: int
):
    """Look at every page with axe, on each ``contrasts``-th at the contrast of its texts too; without it at none."""
    faults = {}
    with window(browser, served, viewport=size, color_scheme=theme) as (page, ear):
        for number, address in enumerate(addresses(served, every=contrasts == 1)):
            answer = page.goto(served.origin + address)
            missing = answer.status == 404
            complaints = [text for text in ear.complaints if not (missing and "404" in text)]
            ear.complaints.clear()
            faults[address] = [
                *complaints,
                *overflow(page),
                *(barriers(page, contrast=number % contrasts == 0) if contrasts else []),
                *([answer.status] if answer.status >= 500 else []),
            ]
    assert {address: fault for address, fault in faults.items() if fault} == {}
    assert len(faults) > len(ROUTES) // 2


STORY = (
    "compare?rev={run}/v0&rev={run}/v1&rev=other",
    "run/{run}/items/va-002?find=answer",
    "run/{run}/v1",
    "run/{run}",
)
"""The pages on which people find out what a training changed."""


@pytest.mark.slow
@NEEDS_CHROMIUM
@pytest.mark.parametrize("width", [320, 390, 1400])
def test_the_pages_of_a_change_keep_nobody_out_at_any_width(served: Served, browser: Browser, width: int):
    faults = {}
    with window(browser, served, viewport={"width": width, "height": 844}) as (page, ear):
        for path in STORY:
            page.goto(f"{served.origin}/{path.format(run=RUN)}")
            for theme in ("light", "dark"):
                page.emulate_media(color_scheme=theme)
                # contrast, which takes axe longest, depends on the theme and not on the width
                faults[path, theme] = [*overflow(page), *barriers(page, contrast=width == 390), *ear.complaints]
    assert {place: fault for place, fault in faults.items() if fault} == {}


NAMED = re.compile(r"in a terminal:</span> <code data-copy>([^<]+)</code>")
ODD = ["/?sort=nothing&order=up", f"/run/{RUN}/items?sort=nothing&facet=nothing", "/new?run=--help"]
"""Addresses that someone typed."""


def test_the_command_that_a_page_names_is_one_that_the_program_takes(served: Served):
    named = {}
    with served.visit() as client:
        for address in (*addresses(served), *ODD):
            named[address] = NAMED.findall(client.get(address).text)
    for address, commands in named.items():
        for command in commands:
            program, *words = shlex.split(html.unescape(command))
            assert program == "skillgit", address
            assert read_words(words), address
    assert len([*filter(None, named.values())]) > 10


@pytest.mark.soak
def test_it_is_html_as_the_standard_has_it(served: Served):
    with served.visit() as client:
        for address in addresses(served):
            answer = client.get(address)
            assert answer.status_code in {200, 404}, address
            parsed(answer.text)


@pytest.mark.soak
@pytest.mark.slow
def test_html_validate_has_nothing_to_say(served: Served, tmp_path):
    if shutil.which("npx") is None:
        pytest.skip("npx is not installed")
    rules = {"extends": ["html-validate:recommended"], "rules": {"long-title": "off", "no-trailing-whitespace": "off"}}
    (tmp_path / ".htmlvalidate.json").write_text(json.dumps(rules))
    with served.visit() as client:
        for number, address in enumerate(addresses(served)):
            (tmp_path / f"{number:03}.html").write_text(client.get(address).text, encoding="utf-8")
    command = ["npx", "--yes", "html-validate@11", "--formatter", "text", "*.html"]
    answer = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
    if "ERR" in answer.stderr:
        pytest.skip("html-validate cannot be fetched")
    assert answer.stdout.strip() == ""


LONG_RUN = "searchqa-qwen3-235b-learning-rate-4-seed-1234-no-slow-update"
LONG_MODEL = (
    "azure_openai/ft:gpt-5.5-mini-2026-10-01:acme_corporation:customer_support_v7_that_cannot_be_divided:Ab12Cd34"
)


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_long_names_of_runs_and_models_fit_every_window(tmp_path: Path, browser: Browser, monkeypatch):
    monkeypatch.setattr(sample_run, "MODELS", Models(target=LONG_MODEL, optimizer=LONG_MODEL))
    repository = new_repository(tmp_path / "repository")
    sample_run.append_run(Repo.discover(repository), LONG_RUN)
    pages = [route.path for route in ROUTES if route.method != "POST" and route.path not in FILES]
    names = {"run": LONG_RUN, "event": "r2", "item": "q04"}
    paths = [re.sub(r"{(\w+)(?::\w+)?}", lambda hole: names.get(hole[1], "{}"), path) for path in pages]
    paths = [path for path in paths if "{}" not in path]
    queries = (f"/compare?rev={LONG_RUN}/v0&rev={LONG_RUN}/v1", f"/?show={LONG_RUN}", f"/new?from={LONG_RUN}")
    with serving(repository) as server, window(browser, server) as (page, _):
        for width in (320, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            faults = {path: overflow(page) for path in (*paths, *queries) if page.goto(server.origin + path)}
            assert {path: fault for path, fault in faults.items() if fault} == {}, width
            page.goto(server.origin)
            name = page.get_by_role("link", name=LONG_RUN).first
            assert name.evaluate("link => link.closest('th').scrollWidth <= link.closest('th').clientWidth")
    assert len(paths) > len(pages) // 2
