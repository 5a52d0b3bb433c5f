"""``make bench-serve``: what the pages of ``skillgit serve`` weigh and cost, beside the limits of their design.

``first_page_kb`` is what a browser loads of the first page, style, script and icon included; ``first_page_cpu_ms_10k``
is the server's processor time for it at 10,000 events in a hundred runs. ``slowest_page_cpu_ms_100k`` is that of the
page that costs most, of all there are, at 100,000 events in a hundred runs. Both are means of many requests, the first
one of each page apart, with what git's own processes use. ``viewers_50_core_share`` is the
share of a core that the server takes while fifty pages watch a training.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1] / "web"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import measure
from bench.histories.fast_import import write_history
from program import SKILLGIT, skillgit, surroundings
from serving import NOW, serving
from viewers import viewers_core_share

from skillgit.web.pages import ROUTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx2
    from serving import Served

LIMITS = {
    "first_page_kb": 100.0,
    "first_page_cpu_ms_10k": 150.0,
    "slowest_page_cpu_ms_100k": 300.0,
    "viewers_50_core_share": 0.10,
}
EVENTS = measure.sized({"10k": 10_000, "100k": 100_000}, {"10k": 40, "100k": 60})
REQUESTS = measure.sized(20, 1)
VIEWERS, WATCHED_S = measure.sized((50, 20.0), (2, 1.0))
FILES = {
    "/events.csv",
    "/run/{run}/live/stream",
    "/run/{run}/report",
    "/run/{run}/{event}/export",
    "/run/{run}/picture/{digest}",
}
"""What is no page: the report holds a whole run, and is written once; a download has every event there is."""


class PageCost(NamedTuple):
    """A page, the events that there were, and the mean processor time of a request."""

    address: str
    events: str
    cpu_ms: float


def main() -> None:
    figures: dict[str, float] = {}
    pages: list[PageCost] = []
    with tempfile.TemporaryDirectory(prefix="skillgit-bench-") as folder:
        for name, events in EVENTS.items():
            repository = Path(folder, name)
            write_history(repository, events)
            skillgit("runs", cwd=repository)
            with serving(repository) as server, server.visit() as client:
                if name == "10k":
                    figures["first_page_kb"] = weight(client) / 1000
                    figures["first_page_cpu_ms_10k"] = cost(server, client, "/", name).cpu_ms
                else:
                    pages += [cost(server, client, address, name) for address in addresses(client)]
        figures["slowest_page_cpu_ms_100k"] = max(page.cpu_ms for page in pages)
        figures["viewers_50_core_share"] = watched(Path(folder, "live"))
    pages.sort(key=lambda page: -page.cpu_ms)
    rows = [("page", "events", "ms of processor"), *((p.address, p.events, f"{p.cpu_ms:.0f}") for p in pages[:12])]
    limits = "  ".join(f"{name} {figures[name]:.3g} (at most {limit:g})" for name, limit in LIMITS.items())
    measure.report(f"Pages of skillgit serve\n{limits}", rows, {name: round(figures[name], 3) for name in LIMITS})


def weight(client: httpx2.Client) -> int:
    """Return the bytes of the first page and of all that it loads."""
    page = client.get("/").text
    loaded = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page))
    return len(page.encode()) + sum(len(client.get(address).content) for address in loaded)


def addresses(client: httpx2.Client) -> Iterator[str]:
    """Yield an address of each page, of the run whose history is the longest."""
    run = re.findall(r'href="/run/([^"/?]+)"', client.get("/?sort=-steps").text)[0]
    best = re.findall(rf'href="/run/{re.escape(run)}/(v\d+)', client.get(f"/run/{run}").text)[0]
    item = re.findall(rf'href="/run/{re.escape(run)}/items/([^"/?]+)', client.get(f"/run/{run}/items").text)
    examples = {"run": run, "event": best, "item": item[0] if item else ""}
    for route in ROUTES:
        names = re.findall(r"{(\w+)", route.path)
        if route.method == "GET" and route.path not in FILES and all(examples.get(name) for name in names):
            path = re.sub(r"{(\w+)(:\w+)?}", lambda hole: quote(examples[hole[1]], safe="%"), route.path)
            yield path + {"/run/{run}/{event}/why": "?file=SKILL.md&line=12"}.get(route.path, "")
    yield f"/run/{run}/events?q=event:rejected"
    yield f"/compare?rev={run}/v0&rev={run}/{best}"
    for axis in ("step", "call", "dollar"):
        yield f"/?show={run}&by={axis}"


def cost(server: Served, client: httpx2.Client, address: str, events: str) -> PageCost:
    client.get(address)
    before = server.cpu_ms()
    for _ in range(REQUESTS):
        client.get(address)
    return PageCost(address, events, (server.cpu_ms() - before) / REQUESTS)


def watched(repository: Path) -> float:
    """Let a training run with fifty viewers, and return what its server takes."""
    skillgit("init", repository.name, "--env", "searchqa", cwd=repository.parent)
    words = ("-C", str(repository), "train", "demo", "--run", "demo", "-q", "-o", "train.num_epochs=400")
    with (
        serving(repository, **NOW) as server,
        server.visit() as client,
        subprocess.Popen([*SKILLGIT, *words], env=surroundings(**NOW), stdout=subprocess.DEVNULL) as training,
    ):
        while "running" not in client.get("/").text:
            time.sleep(0.05)
        share = viewers_core_share(
            server.process.pid,
            server.origin,
            dict(client.cookies),
            "demo",
            viewers=VIEWERS,
            seconds=WATCHED_S,
        )
        csrf = re.findall(r'name="csrf" value="([^"]+)"', client.get("/run/demo/live").text)[0]
        client.post("/run/demo/stop", data={"how": "now", "csrf": csrf})
        training.wait()
    return share


if __name__ == "__main__":
    main()
