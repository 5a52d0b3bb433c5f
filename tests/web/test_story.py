"""The whole way of a person who has a link and no terminal, by mouse on a desk and by keyboard on a phone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from browser import DESK, NEEDS_CHROMIUM, PHONE, window
from program import skillgit
from serving import NOW, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

pytestmark = [pytest.mark.slow, NEEDS_CHROMIUM]
FAR = 600
"""Presses of Tab after which something counts as out of reach."""


@dataclass(frozen=True, slots=True)
class Person:
    """Someone at a page, who has a mouse or uses the keyboard only."""

    page: Page
    mouse: bool

    def use(self, part: Locator) -> None:
        """Follow a link, press a button, or open what is shut."""
        part = part.first
        part.wait_for()
        sign = part.locator("circle")  # of a curve: the rest of its link is what the mouse brings up
        if self.mouse:
            (sign if sign.count() else part).click()
        else:
            self._walk_to(part)
            self.page.keyboard.press("Enter")

    def enter(self, field: Locator, text: str) -> None:
        if self.mouse:
            field.click()
        else:
            self._walk_to(field)
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.type(text)

    def _walk_to(self, part: Locator) -> None:
        for _ in range(FAR):
            if part.evaluate("part => part === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(part)


@pytest.mark.parametrize(
    ("mouse", "size", "theme"),
    [
        pytest.param(True, DESK, "dark", id="by mouse on a desk", marks=pytest.mark.soak),
        pytest.param(False, PHONE, "light", id="by keyboard on a phone"),
    ],
)
def test_from_an_empty_repository_to_a_comparison_for_a_colleague(
    tmp_path: Path, browser: Browser, *, mouse: bool, size: dict[str, int], theme: str
):
    skillgit("init", "skills", "--env", "searchqa", cwd=tmp_path)
    with (
        serving(tmp_path / "skills", **NOW) as server,
        window(browser, server, viewport=size, color_scheme=theme, accept_downloads=True) as (page, ear),
        browser.new_context(viewport=PHONE) as other,
    ):
        person = Person(page, mouse)
        launch(person)
        stop_and_go_on(person)
        read_a_rule(person)
        address = compare(person)
        share(person, other.new_page(), address)
        assert ear.complaints == []


def launch(person: Person) -> None:
    """Choose, change two values, read what it would cost, and begin."""
    page = person.page
    page.get_by_role("heading", name="New run").wait_for()
    assert page.get_by_label("Configuration").input_value() == "demo"
    person.enter(page.get_by_label("train.num_epochs", exact=True), "40")
    person.enter(page.get_by_label("train.batch_size", exact=True), "12")
    page.get_by_text("-o train.num_epochs=40").wait_for()
    plan = page.get_by_role("complementary")
    plan.get_by_text("-o train.batch_size=12").wait_for()
    verdict = page.locator("[data-part=verdict]")
    verdict.get_by_text(re.compile(r"at most [\d,]+ calls, about .* tokens")).wait_for()
    plan.get_by_text(re.compile(r"gains of less than [\d.]+ points")).wait_for()
    person.use(page.get_by_role("button", name="Launch"))


def stop_and_go_on(person: Person) -> None:
    """Watch the curve grow without a reload, stop, continue, stop at once."""
    page = person.page
    drawing = page.get_by_role("figure").locator("svg:visible a")
    drawing.nth(2).wait_for(state="attached")
    page.evaluate("window.same = true")
    drawing.nth(4).wait_for(state="attached")
    assert page.evaluate("window.same"), "the page was not loaded again"
    person.use(page.get_by_text("Stop", exact=True))
    person.use(page.get_by_role("button", name="Stop after this step"))
    page.get_by_text("stopped", exact=True).first.wait_for()
    person.use(page.get_by_text("Continue", exact=True))
    person.use(page.get_by_role("button", name="Continue"))
    page.get_by_text("running", exact=True).first.wait_for()
    person.use(page.get_by_text("Stop", exact=True))
    person.use(page.get_by_role("button", name="Stop now"))
    page.get_by_text("stopped", exact=True).first.wait_for()


def read_a_rule(person: Person) -> None:
    """Open a version by its sign on the curve, and from its text the evidence of a rule."""
    page = person.page
    person.use(page.get_by_role("figure").locator("svg:visible").get_by_role("link", name=re.compile(r"^v1\b")))
    page.get_by_role("heading", name=re.compile(r"^v1: ")).wait_for()
    with page.expect_download() as download:
        person.use(page.get_by_role("link", name="Download .skill"))
    assert download.value.suggested_filename.endswith(".skill")
    person.use(page.locator("summary:has(#text)"))
    person.use(page.locator(".skill-text").get_by_role("link", name=re.compile("v1")))
    page.get_by_role("heading", name=re.compile("Why|rule", re.IGNORECASE)).first.wait_for()
    assert page.url.split("?")[0].endswith("/v1/why")
    page.get_by_text(re.compile(r"tr-\d+")).first.wait_for()
    page.go_back()
    page.get_by_role("heading", name=re.compile(r"^v1: ")).wait_for()


def compare(person: Person) -> str:
    page = person.page
    person.use(page.get_by_role("link", name="compare with the seed"))
    page.get_by_role("heading", name=re.compile(r"v0 and .*v1")).wait_for()
    page.get_by_text(re.compile(r"\d+ fixed|\d+ broken")).first.wait_for()
    address: str = page.url
    page.reload()
    page.get_by_role("heading", name="Rules").wait_for()
    return address


def share(person: Person, theirs: Page, address: str) -> None:
    """Make a link for a colleague, who sees the same and can change nothing."""
    page = person.page
    person.use(page.get_by_text("Share", exact=True))
    person.enter(page.get_by_label("Viewer link to this page for"), "Ada")
    person.use(page.get_by_role("button", name="Make the link"))
    link = page.get_by_text(re.compile(r"token=")).first.inner_text().strip()
    theirs.goto(link)
    assert theirs.url == address
    theirs.get_by_role("heading", name=re.compile(r"v0 and .*v1")).wait_for()
    assert theirs.get_by_role("link", name="New run").count() == 0
    theirs.goto(address.partition("/compare")[0] + "/new")
    theirs.get_by_text("this link only reads").wait_for()
