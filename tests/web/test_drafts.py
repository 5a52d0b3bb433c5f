"""The page of drafts: what an operator does there, by mouse, by keys and by form, and what nobody else sees."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import TYPE_CHECKING

import pytest
from browser import NEEDS_CHROMIUM, barriers, window
from harvested import SKILL, draft, write_drafts
from playwright.sync_api import expect
from program import new_repository
from serving import serving

from skillgit.store.repo import Repo

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


def tree(repository: Path) -> dict[Path, bytes]:
    """Return the bytes of drafts and tasks."""
    folders = (Repo.discover(repository).private_dir / "drafts" / SKILL, repository / "tasks")
    return {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


def drafts_of(repository: Path) -> list[str]:
    path = Repo.discover(repository).private_dir / "drafts" / SKILL / "drafts.jsonl"
    return path.read_text(encoding="utf-8").splitlines()


def tasks(repository: Path) -> dict[str, dict[str, object]]:
    path = repository / "tasks" / f"{SKILL}.jsonl"
    rows = map(json.loads, path.read_text().splitlines()) if path.exists() else ()
    return {row["id"]: row for row in rows}


def test_forms_accept_edit_and_drop_and_a_viewer_sees_no_draft(repository):
    with serving(repository) as server, server.visit() as owner, server.visit(server.invite()) as viewer:
        page, before = owner.get(PATH).text, tree(repository)
        states = dict(re.findall(r'name="id" value="(\w+)">\s*<input type="hidden" name="state" value="(\w+)"', page))
        assert [*states] == [*NAMES, "secret"]
        assert f"skillgit tasks review --skill {SKILL}" in page

        def answered(name: str, answer: str, **more: str) -> tuple[int, str]:
            response = server.post(owner, PATH, id=name, state=states[name], answer=answer, **more)
            return response.status_code, response.text

        assert answered("one", "accept")[0] == 200
        assert answered("two", "drop")[0] == 200
        for typed in ("prompt: why?", "", "\n\n- a\n\tb: [ \u202e\x1b ^M <b>&amp;</textarea>\n\n", "a: [\n"):
            for _ in range(2):  # what comes back is sent again, as a browser sends it
                code, text = answered("three", "edit", text=typed.replace("\n", "\r\n"))
                boxes = [unescape(box) for box in re.findall(r"<textarea[^>]*>\n(.*?)</textarea>", text, re.DOTALL)]
                assert (code, boxes[0]) == (400, typed)
        assert answered("three", "edit", text="prompt: |\r\n  Why?\r  So!\r\nanswer: so\r\n")[0] == 200
        for name, answer, did in (
            ("three", "accept", "edited"),
            ("three", "edit", "edited"),
            ("one", "drop", "accepted"),
        ):
            code, text = answered(name, answer, text="prompt: mine")
            assert (code, f"{name} was {did} in another window" in text) == (409, True)
            assert ("Question of four" in text, "prompt: mine" in text) == (True, answer == "edit")
        assert answered("secret", "accept")[0] == 400
        assert {name: row["prompt"] for name, row in tasks(repository).items()} == {"one": "How long is pier one?"}
        assert json.loads(drafts_of(repository)[2])["prompt"] == "Why?\nSo!\n"
        # what is in the box when a draft is accepted is the task
        assert answered("four", "accept", text="prompt: [\r\n")[0] == 400
        assert answered("four", "accept", text="prompt: Why four?\r\nanswer: so\r\n")[0] == 200
        assert tasks(repository)["four"]["prompt"] == "Why four?"
        for taken in ("accepted four", "edited four", "edited three", "dropped two", "accepted one"):
            page = owner.get(PATH).text
            assert ('<b id="progress">' in page, taken in page) == (True, True)
            state = re.search(r'name="state" value="(\w+)">\s*<button name="answer" value="undo"', page)[1]
            assert server.post(owner, PATH, answer="undo", state=states["four"]).status_code == 409
            text = server.post(owner, PATH, answer="undo", state=state).text
            assert f"taken back: {taken.split()[1]} waits for an answer again" in text
        assert tree(repository) == before
        assert server.post(viewer, PATH, answer="undo").status_code == 403
        refused = server.post(owner, PATH, answer="undo")
        assert (refused.status_code, "there is no answer to take back" in refused.text) == (409, True)
        for path in ("/drafts", PATH):
            refused = viewer.get(path)
            assert refused.status_code == 403
            assert "pier" not in refused.text
        assert server.post(viewer, PATH, id="four", state=states["four"], answer="accept").status_code == 403
        assert "/drafts" not in viewer.get("/").text


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_each_key_has_a_visible_answer_and_an_undo(repository, browser: Browser):
    before = tree(repository)
    with serving(repository) as server, window(browser, server) as (page, ear):
        page.goto(server.origin + "/drafts")
        page.get_by_role("link", name=SKILL).click()
        page.wait_for_url(server.origin + PATH)
        said, progress = page.locator("#said"), page.locator("#progress")

        def seen() -> tuple[str, str, str]:
            """Return the card that is current, the progress and what was said, all in sight."""
            current = page.locator("article[aria-current]")
            for part in (current, said, progress):
                expect(part).to_be_in_viewport()
            return (current.get_attribute("aria-labelledby"), progress.inner_text(), said.inner_text())

        def press(key: str, *, answers: bool = True) -> tuple[str, str, str]:
            if answers:
                with page.expect_navigation():
                    page.keyboard.press(key)
            else:
                page.keyboard.press(key)
            return seen()

        for key, words in (("k", "there is no card above"), ("u", "There is no answer to take back")):
            assert press(key, answers=False)[2] == words
        assert press("j", answers=False)[:2] == ("draft-2", "2 of 5, 0 accepted, 0 dropped")
        assert press("a") == ("draft-2", "3 of 5, 1 accepted, 0 dropped", f"accepted two into {SKILL}.jsonl")
        assert press("d") == ("draft-2", "4 of 5, 1 accepted, 1 dropped", "dropped three")
        page.keyboard.press("e")
        page.keyboard.press("Control+A")
        page.keyboard.insert_text("prompt: Why?\nanswer: so")
        with page.expect_navigation():
            page.locator("article[aria-current]").get_by_role("button", name="Keep the edit").click()
        assert seen() == ("draft-2", "4 of 5, 1 accepted, 1 dropped", "edited four")
        assert press("a")[2] == f"accepted four into {SKILL}.jsonl"
        assert press("a", answers=False)[2].startswith("secret cannot be accepted: prompt:")
        assert press("j", answers=False)[2] == "there is no card below"
        assert {name: row["prompt"] for name, row in tasks(repository).items()} == {
            "two": "How long is pier two?",
            "four": "Why?",
        }
        for name in ("four", "four", "three"):
            assert press("u")[2] == f"taken back: {name} waits for an answer again"
        with page.expect_navigation():
            page.get_by_role("button", name="Undo: accepted two").click()
        assert seen() == ("draft-2", "2 of 5, 0 accepted, 0 dropped", "taken back: two waits for an answer again")
        assert barriers(page) == []
        assert ear.complaints == []
    assert tree(repository) == before


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
        assert [page.get_by_text(text).count() for text in ("1 of 2", "2 of 2", "See the notes.")] == [2, 1, 3]
        assert ear.complaints == []
