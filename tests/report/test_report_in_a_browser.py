"""The page as a browser has it. Needs what the project does not: Chromium, Playwright and axe-core."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from trained_runs import small_run, user

from skillgit.app.deliver.report import report
from skillgit.report.page import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AXE = Path(os.environ.get("AXE_CORE", ""))
NEEDED = "needs Chromium on PATH, the package playwright, and AXE_CORE=path/to/axe.min.js"

playwright = pytest.importorskip("playwright.sync_api", reason=NEEDED)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None or not AXE.is_file(), reason=NEEDED),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(report(user(small_run(tmp_path_factory)), None)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_fits_its_window_and_axe_finds_nothing(browser, address: str, width: int, scheme: str) -> None:
    size = {"width": width, "height": 900}
    shown = browser.new_page(viewport=size, color_scheme=scheme)
    said: list[str] = []
    shown.on("console", lambda message: said.append(message.text))
    shown.on("request", lambda request: said.append(request.url) if not request.url.startswith("file:") else None)
    shown.goto(address)
    assert said == []
    assert shown.evaluate("document.documentElement.scrollWidth") == width
    assert shown.evaluate("getComputedStyle(document.body).marginTop") == "0px", "the policy lets the page's style pass"

    shown = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True).new_page()
    shown.goto(address)
    shown.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
    shown.evaluate(AXE.read_text(encoding="utf-8"))
    found = shown.evaluate("axe.run()")
    assert [(rule["id"], rule["nodes"][0]["html"]) for rule in found["violations"]] == []


def test_a_link_opens_what_it_leads_to(browser, address: str) -> None:
    shown = browser.new_page()
    shown.goto(f"{address}#v1")
    assert shown.locator("#v1").is_visible()
    assert not shown.locator("#v2").is_visible()
