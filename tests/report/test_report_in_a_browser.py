"""The page as a browser has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from asking import ask
from browser import DESK, NEEDS_CHROMIUM, PHONE, Ear, barriers, chromium, overflow
from soaking import soak
from trained_runs import small_run, user

from skillgit.app.deliver.report import report
from skillgit.report.page import page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page(ask(report, user(small_run(tmp_path_factory)), None)), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.mark.parametrize(
    ("window", "theme"), [(PHONE, "light"), soak(DESK, "dark"), soak(DESK, "light"), soak(PHONE, "dark")]
)
def test_a_page_fits_its_window_and_axe_finds_nothing(browser, address: str, window: dict[str, int], theme: str):
    with browser.new_context(viewport=window, color_scheme=theme) as context:
        shown = context.new_page()
        ear = Ear(shown, address)
        shown.goto(address)
        assert ear.complaints == []
        assert overflow(shown) == []
        assert shown.evaluate("getComputedStyle(document.body).marginTop") == "0px", (
            "the policy passes the page's style"
        )
        assert barriers(shown) == []


def test_a_link_opens_what_it_leads_to(browser, address: str):
    with browser.new_context() as context:
        shown = context.new_page()
        shown.goto(f"{address}#v1")
        assert shown.locator("#v1").is_visible()
        assert not shown.locator("#v2").is_visible()
