"""The pictures of the documents show what the program says today; ``python tests/pictures.py`` takes them."""

from __future__ import annotations

import json
import re

import pytest
from browser import NEEDS_CHROMIUM, chromium
from documents import DOCS, ROOT
from moving import still
from pictures import IMAGES, pages, sample, screens, story
from program import surroundings

OID = re.compile(r"\b[0-9a-f]{7}\b")
RETAKE = "run python tests/pictures.py"
MOST_BYTES = 400_000

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return sample(tmp_path_factory.mktemp("pictures") / "skills")


def told() -> dict[str, dict[str, list[str]]]:
    return json.loads((IMAGES / "facts.json").read_text(encoding="utf-8"))


def test_the_moving_picture_is_what_the_commands_print_today(repository):
    kept = (IMAGES / "why.svg").read_text(encoding="utf-8")
    assert OID.sub("", kept) == OID.sub("", story(repository)), RETAKE
    assert (IMAGES / "why-still.svg").read_text(encoding="utf-8") == still(kept)
    assert len(kept.encode()) < MOST_BYTES
    assert re.findall(r"<script|@import|url\(|href", kept) == []


def test_the_screens_in_the_pictures_are_those_of_today(repository, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, surroundings()[name])
    assert {name: said for name, _, said in screens(repository)} == {
        name: said for name, said in told().items() if not name.startswith(("serve-", "report"))
    }, RETAKE


@NEEDS_CHROMIUM
def test_the_pages_in_the_pictures_are_those_of_today(repository):
    with chromium() as browser:
        found = {name: said for name, _, said in pages(repository, browser)}
    assert found == {name: said for name, said in told().items() if name.startswith(("serve-", "report"))}, RETAKE


@NEEDS_CHROMIUM
def test_the_moving_picture_moves_where_a_page_shows_it_and_the_other_does_not(tmp_path):
    seen = {}
    with chromium() as browser:
        page = browser.new_page()
        for name in ("why", "why-still"):
            page.goto((IMAGES / f"{name}.svg").as_uri())
            seen[name] = page.evaluate("document.getAnimations().length")
            (tmp_path / "page.html").write_text(f'<img src="{(IMAGES / name).as_uri()}.svg">')
            page.goto((tmp_path / "page.html").as_uri())
            assert page.evaluate("document.images[0].decode().then(() => document.images[0].naturalWidth)") > 0
    assert seen["why"] > len(("why", "log", "diff"))
    assert seen["why-still"] == 0


def test_each_picture_is_shown_and_each_that_is_shown_is_there():
    texts = "\n".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *DOCS.glob("*.md")])
    shown = set(re.findall(r"images/([\w-]+\.(?:svg|webp|png))", texts))
    assert shown == {path.name for path in IMAGES.iterdir()} - {"facts.json"}
