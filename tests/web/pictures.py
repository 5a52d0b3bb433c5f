"""Take the pictures of the pages of ``skillgit serve``, each at two widths and in two themes.

``python tests/web/pictures.py build/demo docs/images``: the repository is that of ``make demo``, of which a copy is
shown, with a second run beside the first and a third that is being trained. It needs Chromium.
"""

from __future__ import annotations

import base64
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from once import copy_folder

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser import DESK, PHONE, PROGRAM, chromium
from program import SKILLGIT, skillgit, surroundings
from serving import NOW, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from serving import Served

RUN = "demo"
PAGES = {
    "runs": f"/?show={RUN}&show=second&by=step",
    "new-run": "/new?config=demo",
    "run": f"/run/{RUN}",
    "live": "/run/third/live",
    "events": f"/run/{RUN}/events",
    "version": f"/run/{RUN}/v4",
    "rule": f"/run/{RUN}/v4/why?file=SKILL.md&line=10",
    "items": f"/run/{RUN}/items",
    "item": f"/run/{RUN}/items/va-015?a=v0&b=v3",
    "compare": f"/compare?rev={RUN}/v0&rev={RUN}/v4",
    "cost": f"/run/{RUN}/cost",
    "settings": f"/run/{RUN}/settings",
    "activity": "/activity",
}
QUALITY = 80


def main(repository: Path, folder: Path) -> None:
    """Take all pictures."""
    if PROGRAM is None:
        sys.exit("chromium is not installed")
    with TemporaryDirectory(prefix="pictures-") as temporary:
        copy = copy_folder(repository, Path(temporary) / "skills")
        skillgit("train", "demo", "--run", "second", "-q", "-o", "train.seed=7", "-o", "train.batch_size=30", cwd=copy)
        words = ("-C", str(copy), "train", "demo", "--run", "third", "-q", "-o", "train.num_epochs=400")
        with (
            serving(copy, **NOW) as server,
            chromium() as browser,
            subprocess.Popen([*SKILLGIT, *words], env=surroundings(**NOW)) as training,
        ):
            try:
                for size in (DESK, PHONE):
                    for theme in ("light", "dark"):
                        take(server, browser, folder, size, theme)
            finally:
                stop(server)
                training.wait()


def take(server: Served, browser: Browser, folder: Path, size: dict[str, int], theme: str) -> None:
    with browser.new_context(viewport=size, color_scheme=theme) as context:
        page = context.new_page()
        page.goto(server.link)
        for name, address in PAGES.items():
            answer = page.goto(server.origin + address)
            assert answer is not None
            assert answer.ok, address
            if name == "new-run":
                page.get_by_text("at most").first.wait_for()
            if name == "live":
                page.locator("svg:visible a").nth(3).wait_for(state="attached", timeout=180_000)
            (folder / f"serve-{name}-{size['width']}-{theme}.webp").write_bytes(picture(page))


def picture(page: Page) -> bytes:
    """Return what the window shows, in the smallest format that browsers and hosts of repositories show."""
    session = page.context.new_cdp_session(page)
    answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(answer["data"])


def stop(server: Served) -> None:
    with server.visit() as client:
        page = client.get("/run/third/live").text
        csrf = page.partition('name="csrf" value="')[2].partition('"')[0]
        client.post("/run/third/stop", data={"how": "now", "csrf": csrf})


if __name__ == "__main__":
    main(*(Path(argument).resolve() for argument in sys.argv[1:3]))
