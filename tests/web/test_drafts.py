"""The page of drafts: what an operator does there, by mouse, by keys and by form, and what nobody else sees."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from browser import NEEDS_CHROMIUM, window
from harvested import SKILL, draft, write_drafts
from program import new_repository
from serving import serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser

PATH = f"/drafts/{SKILL}"
NAMES = ("one", "two", "three", "four")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    path = new_repository(tmp_path / "repository")
    rows = [draft(name, prompt=f"How long is pier {name}?") for name in NAMES]
    rows.append(draft("secret", prompt="Use ghp_" + 6 * "a1B2c3"))
    write_drafts(path, rows)
    return path


def tasks(repository: Path) -> dict[str, dict[str, object]]:
    path = repository / "tasks" / f"{SKILL}.jsonl"
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {row["id"]: row for row in rows}


def test_forms_accept_edit_and_drop_and_a_viewer_sees_no_draft(repository):
    with serving(repository) as server, server.visit() as owner, server.visit(server.invite()) as viewer:
        page = owner.get(PATH).text
        states = dict(re.findall(r'name="id" value="(\w+)">\s*<input type="hidden" name="state" value="(\w+)"', page))
        assert [*states] == [*NAMES, "secret"]
        assert f"skillgit tasks review --skill {SKILL}" in page

        def answered(name: str, answer: str, **more: str) -> tuple[int, str]:
            response = server.post(owner, PATH, id=name, state=states[name], answer=answer, **more)
            return response.status_code, response.text

        assert answered("one", "accept")[0] == 200
        assert answered("two", "drop")[0] == 200
        code, text = answered("three", "edit", text="prompt: why?")
        assert (code, "does not say what a right result is" in text, "prompt: why?" in text) == (400, True, True)
        assert answered("three", "edit", text="prompt: Why?\r\nanswer: so\r\n")[0] == 200
        assert answered("three", "accept")[0] == 409  # it is no longer what was shown
        assert answered("secret", "accept")[0] == 400
        assert answered("one", "accept")[0] == 404
        assert [*tasks(repository)] == ["one"]
        for path in ("/drafts", PATH):
            refused = viewer.get(path)
            assert refused.status_code == 403
            assert "pier" not in refused.text
        assert server.post(viewer, PATH, id="four", state=states["four"], answer="accept").status_code == 403
        assert "/drafts" not in viewer.get("/").text


@pytest.mark.soak
@pytest.mark.slow
@NEEDS_CHROMIUM
def test_keys_and_mouse_answer(repository, browser: Browser):
    with serving(repository) as server, window(browser, server) as (page, ear):
        page.goto(server.origin + "/drafts")
        page.get_by_role("link", name=SKILL).click()
        page.wait_for_url(server.origin + PATH)
        page.keyboard.press("j")
        with page.expect_navigation():
            page.keyboard.press("a")
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("k")
        with page.expect_navigation():
            page.keyboard.press("d")
        page.keyboard.press("j")
        page.keyboard.press("e")
        page.get_by_label("Fields of the task").first.fill("prompt: Why?\nanswer: so")
        with page.expect_navigation():
            page.get_by_role("button", name="Keep the edit").first.click()
        with page.expect_navigation():
            page.get_by_role("button", name="Accept").first.click()
        assert page.get_by_role("heading", level=2).all_inner_texts() == ["four", "secret"]
        said = page.locator("#said")
        assert said.inner_text() == f"accepted three into {SKILL}.jsonl"
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("a")
        assert said.inner_text().startswith("secret cannot be accepted: prompt:"), "a key that cannot be says why"
        assert ear.complaints == []
    assert {name: row["prompt"] for name, row in tasks(repository).items()} == {
        "one": "How long is pier one?",
        "three": "Why?",
    }


@pytest.mark.soak
@pytest.mark.slow
@NEEDS_CHROMIUM
def test_on_a_phone_the_page_of_drafts_does_not_scroll_sideways(tmp_path, browser: Browser):
    path = new_repository(tmp_path / "repository")
    name = "h-0123456789ab"
    words = "def total(rows): return sum(row.amount for row in rows if row.paid)\n" * 4
    check = {"type": "regex", "pattern": words}
    more = {"context": "See the notes.", "criteria": [words], "files": [f"files/{name}"], "check": check}
    row = draft(name, prompt=f"Why {words}?", **more)
    write_drafts(path, [row, draft("b", prompt="Why?")], {f"files/{name}/{'deep/' * 9}{'long' * 20}.py": b"y" * 200})
    with serving(path) as server, window(browser, server, viewport={"width": 380, "height": 800}) as (page, ear):
        page.goto(server.origin + PATH)
        for _ in range(2):
            assert page.evaluate("document.documentElement.scrollWidth") == 380
            page.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true })")
        assert [page.get_by_text(text).count() for text in ("1 of 2", "2 of 2", "See the notes.")] == [1, 1, 3]
        assert ear.complaints == []
