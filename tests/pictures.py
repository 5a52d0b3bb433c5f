"""Take all pictures of the documents: ``python tests/pictures.py``.

The repository is that of ``make demo``, and the real run that comes with skillgit is replayed in it. ``facts.json``
beside the pictures says what they show, so that ``test_pictures.py`` notices when the program shows something else. It
needs Chromium.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import moving
from browser import DESK, PROGRAM, chromium
from documents import DOCS
from once import copy_folder
from played_session import WATCHED_ANSWERS, Player, training
from program import git, new_repository, skillgit, surroundings
from textual.pilot import Pilot
from wire import wire_server

from skillgit.app.workspace.context import Context
from skillgit.tui.app import SkillgitApp

sys.path.append(str(Path(__file__).parent / "web"))
from serving import NOW, serving, until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from playwright.sync_api import Browser, Page

IMAGES = DOCS / "images"
RUN, REHEARSAL = "sections", "demo"
AFTERWARDS = {"SKILLGIT_CLOCK": "2026-11-21T18:00:00Z"}
SIZE = 104, 32
AT_HOME = {name: value for name, value in surroundings().items() if name != "NO_COLOR"}
PAGES = {
    "runs": f"/?show={REHEARSAL}&show={RUN}&by=step",
    "run": f"/run/{RUN}",
    "version": f"/run/{RUN}/v1",
    "compare": f"/compare?rev={RUN}/v0&rev={RUN}/v2#items",
}
FIGURE = re.compile(
    r"[≤+-]?\.\d{4}\b|\b\d+ (?:fixed|broken|items?|steps?|versions?|runs?)\b"
    r"|\b(?:skill|slow|run): [\w ]+|▶? ?\b\d [A-Z]\w+|▶\w+|v\d+ → v\d+"
)
TITLES = "[...document.querySelectorAll('h1, h2, h3, th')].map(part => part.textContent.trim()).filter(Boolean)"
Facts = dict[str, list[str]]


def sample(folder: Path) -> Path:
    """Return a repository with a rehearsal and the replay of a real run, always with the same commits."""
    repository = new_repository(folder)
    skillgit("train", "demo", "--run", REHEARSAL, "-q", cwd=repository)
    skillgit("train", f"recorded/archive-{RUN}", "--run", RUN, "-q", cwd=repository, env=AFTERWARDS)
    return repository


# --- the moving picture -------------------------------------------------------------------------------------------


def story(repository: Path) -> str:
    """Return the moving picture: a line of a skill, the failures that it comes from, and what it brought."""
    why, log, diff = (
        moving.typed(command, repository)
        for command in ("skillgit why libghc", f"skillgit log {RUN} --graph", "skillgit diff v0 v2 --items")
    )
    rows = cut(why)
    text = "\n".join(map(moving.plain, why))
    (after, before) = re.search(r"gate +hard (\S+) > current (\S+),", text).groups()
    header, *_ = map(moving.plain, diff)
    fixed, broken = re.search(r"(\d+) fixed · (\d+) broken", "\n".join(map(moving.plain, diff))).groups()
    scenes = [
        moving.Scene(
            "skillgit why libghc",
            rows,
            [
                moving.Mark("Why is this line in the skill?", block(rows, "rule"), 1.5),
                moving.Mark("Because tasks failed without it,", block(rows, "because"), 2.5),
                moving.Mark("a model found what they have in common,", block(rows, "analysts"), 2.2),
                moving.Mark(f"and held-out tasks went from {before} to {after}.", block(rows, "gate", "broken"), 2.8),
            ],
        ),
        moving.Scene(
            f"skillgit log {RUN} --graph",
            log,
            [
                moving.Mark(
                    "Every decision is a git commit: accepted ●, rejected \N{MULTIPLICATION SIGN}, merged ◆.",
                    range(0),
                    4,
                )
            ],
        ),
        moving.Scene(
            "skillgit diff v0 v2 --items",
            diff,
            [moving.Mark(f"Seed to best: {fixed} held-out tasks fixed, {broken} broken.", range(0), 5)],
        ),
    ]
    assert re.search(r"\.\d{4} \d+/\d+ → \.\d{4} \d+/\d+", header)
    still = f"From failed tasks to a rule: {before} → {after} on held-out tasks."
    return moving.picture(scenes, still, "What skillgit why, log and diff print about the training of a small model")


def cut(why: list[str]) -> list[str]:
    """Return the parts of what ``why`` prints that tell the story, with ⋮ where something is left out."""
    shown: list[str] = []
    label, failures = "", 0
    for row in why:
        text = moving.plain(row)
        label = text[:9].strip() or label
        failures += label == "because" and text.lstrip().startswith("\N{MULTIPLICATION SIGN}")
        if text and (
            label in {"or", "reason", "edits", "looks", "since", "cost"} or (label == "because" and failures > 2)
        ):
            shown += ["         ⋮"] if shown[-1].strip() != "⋮" else []
        elif text or label in {"rule", "or", "from"}:
            shown.append(row)
    return shown[:-1] if shown[-1].strip() == "⋮" else shown


def block(rows: list[str], first: str, last: str = "") -> range:
    """Return the rows from one label to the end of another's, as a scene counts them."""
    labels = [moving.plain(row)[:9].strip() for row in rows]
    begin, end = labels.index(first), labels.index(last or first) + 1
    while end < len(rows) and rows[end] and not labels[end] and rows[end].strip() != "⋮":
        end += 1
    return range(begin + 1, end + 1)


# --- screens ------------------------------------------------------------------------------------------------------


class Screens:
    """The screens in this process, as ``played_session.Terminal``."""

    def __init__(self, pilot: Pilot[None]) -> None:
        self._pilot = pilot

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*(key.lower() if len(key) > 1 else key for key in keys))

    async def shown(self) -> str:
        lines = self._pilot.app.screen._compositor.render_strips()
        return "\n".join(line.text for line in lines)


async def history(player: Player) -> None:
    """The history, with a version that a step brought."""
    await player.go_to(player.version_with("accepted", 5))


async def compare(player: Player) -> None:
    """Two versions side by side."""
    await player.go_to(1)
    await player.press("w")
    await player.go_to(2)
    await player.press("c")
    await player.sees("▶Text", r"\d+ fixed")
    await player.press("S")
    await player.sees("side by side|│")


async def item(player: Player) -> None:
    """One item over all versions."""
    await compare(player)
    await player.press("Tab", "Tab")
    await player.sees("▶Items")
    await player.press("Enter")
    await player.sees(r"Item \S+ ", "1 user")


async def live(player: Player) -> None:
    """A run that is being trained."""
    await player.sees("L live")
    await player.press("L")
    await player.sees(r"step [2-9]/", r"(v1|r1|s1) ")


async def take(repository: Path, run: str, play: Callable[[Player], Awaitable[None]]) -> tuple[str, str]:
    """Return the screen at the end of ``play``, as SVG and as text."""
    moment = datetime.fromisoformat(moving.LATER)
    clock = (lambda: datetime.now(moment.tzinfo)) if play is live else lambda: moment
    context = Context(directory=repository, environ=AT_HOME, clock=clock, entropy=os.urandom)
    app = SkillgitApp(context, run)
    async with app.run_test(size=SIZE, notifications=True) as pilot:
        screens = Screens(pilot)
        player = Player(screens, repository, run)
        await player.sees("1 Runs", "2 History", "3 Score", "epoch")
        await play(player)
        if play is not live:
            await app.workers.wait_for_complete()
        await pilot.pause()
        return app.export_screenshot(title="skillgit tui"), await screens.shown()


def screens(repository: Path) -> Iterator[tuple[str, str, Facts]]:
    """Yield name, SVG and facts of each screen; a training waits for ever at one place for the last of them."""
    git("config", "skillgit.tui.theme", "dark", cwd=repository)
    for run, play in ((REHEARSAL, history), (RUN, compare), (RUN, item)):
        svg, text = asyncio.run(take(repository, run, play))
        yield play.__name__, svg, facts([], text)
    copy = copy_folder(repository, repository.with_name("watched"))
    with wire_server(answers=WATCHED_ANSWERS, process=True) as wire, training(copy, wire, **NOW):
        until(lambda: len(wire.log()) >= WATCHED_ANSWERS)
        svg, text = asyncio.run(take(copy, REHEARSAL, live))
        yield live.__name__, svg, facts([], re.sub(r"\b\d+ July\b", "", text))  # an answer, which may come later


# --- pages --------------------------------------------------------------------------------------------------------


def pages(repository: Path, browser: Browser) -> Iterator[tuple[str, Page, Facts]]:
    """Yield name, window and facts of each page, and of a report."""
    with (
        serving(repository, SKILLGIT_CLOCK=moving.LATER) as server,
        browser.new_context(viewport=DESK, color_scheme="light") as context,
    ):
        page = context.new_page()
        page.goto(server.link)
        for name, address in PAGES.items():
            answer = page.goto(server.origin + address)
            assert answer is not None
            assert answer.ok, address
            yield f"serve-{name}", page, facts(page.evaluate(TITLES), page.inner_text("main"))
        report = repository / "report.html"
        skillgit("report", RUN, "--output", report, cwd=repository)
        page.goto(report.as_uri())
        yield "report", page, facts(page.evaluate(TITLES), page.inner_text("body"))


def facts(titles: list[str], text: str) -> Facts:
    """Return what somebody would notice in a picture: its titles, scores and counts, each once."""
    return {"titles": [*dict.fromkeys(titles)], "figures": [*dict.fromkeys(FIGURE.findall(text))]}


def webp(page: Page) -> bytes:
    """Return what the window shows, in the smallest format that browsers and hosts of repositories show."""
    answer = page.context.new_cdp_session(page).send("Page.captureScreenshot", {"format": "webp", "quality": 85})
    return base64.b64decode(answer["data"])


def main() -> None:
    """Take all pictures."""
    if PROGRAM is None:
        sys.exit("chromium is not installed")
    taken: dict[str, bytes] = {}
    found: dict[str, Facts] = {}
    with TemporaryDirectory(prefix="pictures-") as temporary:
        repository = sample(Path(temporary) / "skills")
        moving_one = story(repository)
        taken["why.svg"], taken["why-still.svg"] = moving_one.encode(), moving.still(moving_one).encode()
        with chromium() as browser:
            for name, page, said in pages(repository, browser):
                taken[f"{name}.webp"], found[name] = webp(page), said
        os.environ.update(AT_HOME)  # what skillgit keeps beside history is thrown away for another home
        drawn = [*screens(repository)]
        with chromium() as browser:
            page = browser.new_page()
            for name, svg, said in drawn:
                # with the fonts that this machine has: nothing is loaded from elsewhere
                local = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
                page.set_content(f"<style>body {{ margin: 0 }} svg {{ display: block; width: 1010px }}</style>{local}")
                page.set_viewport_size({"width": 1010, "height": round(page.locator("svg").bounding_box()["height"])})
                taken[f"{name}.webp"], found[name] = webp(page), said
    taken["facts.json"] = json.dumps(found, indent=1, ensure_ascii=False).encode() + b"\n"
    IMAGES.mkdir(exist_ok=True)
    for old in IMAGES.iterdir():
        old.unlink()
    for name, picture in taken.items():
        (IMAGES / name).write_bytes(picture)


if __name__ == "__main__":
    main()
