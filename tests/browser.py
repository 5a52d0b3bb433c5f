"""Chromium without a window, driven by Playwright, and what is wrong with a page that it shows."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Iterator

    from serving import Served

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDS_CHROMIUM = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")
DEADLINE_MS = 60_000
"""Milliseconds after which what should happen counts as not happening, however busy the machine is."""
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
_AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
_OPTIONS = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser; nothing else in the thread may run an event loop meanwhile."""
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=PROGRAM, args=list(_OPTIONS))
        yield opened
        opened.close()


@contextmanager
def window(browser: Browser, server: Served, **options: object) -> Iterator[tuple[Page, Ear]]:
    """Open a page that came in by the link of ``server``, in a context with ``options``, and listen to it."""
    with browser.new_context(**options) as context:
        page = context.new_page()
        ear = Ear(page, server.origin)
        page.goto(server.link)
        yield page, ear


@dataclass(frozen=True, slots=True)
class Ear:
    """Hears what a page complains about, and what it asks of anything but ``origin``."""

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(DEADLINE_MS)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self._note(request.url))

    def _note(self, address: str) -> None:
        if not address.startswith((self.origin, "data:")):
            self.complaints.append(address)


def barriers(page: Page, *, contrast: bool = True) -> list[tuple[str, str]]:
    """Return what axe-core finds on a page with all its parts open: the rule, and what breaks it first.

    Four fifths of the time go into the ``contrast`` of its texts.
    """
    page.evaluate("window.shut = [...document.querySelectorAll('details:not([open])')]")
    page.evaluate("window.shut.forEach(part => { part.open = true })")
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)
    rules = {} if contrast else {"color-contrast": {"enabled": False}}
    report = page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], rules})", rules)
    page.evaluate("window.shut.forEach(part => { part.open = false })")
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in report["violations"]]


def overflow(page: Page) -> list[str]:
    """Return what reaches beyond the right edge of the window, if the page can be scrolled there."""
    found: list[str] = page.evaluate(
        """() => {
            const edge = document.documentElement.clientWidth;
            if (document.documentElement.scrollWidth <= edge) return [];
            return [...document.body.querySelectorAll('*')]
                .filter(part => part.getBoundingClientRect().right > edge + 1 && !part.closest('.scroll'))
                .map(part => part.outerHTML.slice(0, 120)).slice(0, 3).concat('wider than its window');
        }"""
    )
    return found
