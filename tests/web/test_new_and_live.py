"""A run from the form to its end, over HTTP: what is planned, launched, watched, stopped and continued."""

from __future__ import annotations

import asyncio
import html
import json
import re
from typing import TYPE_CHECKING

import httpx2
import pytest
from browser import DEADLINE_MS, NEEDS_CHROMIUM
from playwright.sync_api import expect
from program import new_repository, skillgit
from serving import NOW, serving

from skillgit.web.application import Broadcast

if TYPE_CHECKING:
    from pathlib import Path

LONG = ("o.train.num_epochs", "30")
"""So many epochs that a run does not end before it is stopped."""


def csrf(client: httpx2.Client) -> dict[str, str]:
    return {"csrf": re.search(r'name="csrf" value="([^"]+)"', client.get("/new").text)[1]}


def document(*words: str, cwd: Path) -> dict:
    return json.loads(skillgit(*words, "--json", cwd=cwd).out)


def parts(client: httpx2.Client, run: str):
    """Yield what the stream of a live run sends, as name and HTML."""
    with client.stream("GET", f"/run/{run}/live/stream") as answer:
        for line in answer.iter_lines():
            if line.startswith("data: "):
                sent = json.loads(line.removeprefix("data: "))
                yield sent["part"], sent["html"]


def states(content: str) -> set[str]:
    return set(re.findall(r'<p class="state"><span class="outcome [a-z]+">([^<]+)<', content))


def await_part(client: httpx2.Client, run: str, name: str, text: str, allowed: set[str] | None = None) -> None:
    """Watch a run until a part says ``text``; until then its state is one of ``allowed``."""
    while True:  # a stream ends after a while, and the tests have a limit of their own
        for part, content in parts(client, run):
            assert allowed is None or states(content) <= allowed
            if part == name and text in content:
                return


@pytest.fixture
def empty(tmp_path):
    return new_repository(tmp_path / "repository")


def test_the_form_holds_what_config_prints_and_the_plan_is_that_of_the_dry_run(served):
    settings = document("config", "demo", cwd=served.repository)["settings"]
    plan = document("train", "demo", "--run", "fresh", "-o", "train.batch_size=20", "--dry-run", cwd=served.repository)
    with served.visit() as client:
        page = client.get("/new", params={"config": "demo"}).text
        for entry in settings:
            assert f'data-key="{entry["key"]}"' in page
        fields = {**csrf(client), "config": "demo", "run": "fresh", "o.train.batch_size": "20", "part": "1"}
        answer = html.unescape(client.post("/new/check", data=fields).text)
    assert "-o train.batch_size=20" in answer
    assert f"{plan['total']['calls']:,} calls" in answer
    assert all(fact in answer for fact in plan["facts"].values())
    assert all(note in answer for note in plan["notes"])


def test_the_configuration_of_a_skill_with_tasks_is_chosen_already(empty):
    with serving(empty) as server, server.visit() as client:
        for config, year in (("demo", "1871"), ("tasks/default", "1872")):
            page = client.get("/new").text
            assert re.findall(r'<option[^>]*value="([^"]+)"[^>]* selected', page)[:1] == [config]
            name = next((empty / "skills").iterdir()).name
            skillgit("tasks", "add", "--skill", name, "--prompt", f"Is it {year}?", "--answer", year, cwd=empty)


def test_a_value_that_is_wrong_is_said_at_its_field_and_starts_nothing(served):
    with served.visit() as client:
        fields = {**csrf(client), "config": "demo", "run": "fresh", "o.train.batch_size": "0"}
        assert 'data-error-of="train.batch_size"' in client.post("/new/check", data={**fields, "part": "1"}).text
        launched = client.post("/new", data=fields)
        assert launched.status_code == httpx2.codes.BAD_REQUEST
        assert client.get("/run/fresh/live").status_code == httpx2.codes.NOT_FOUND


def test_only_keys_of_the_form_reach_the_command(served):
    with served.visit() as client:
        fields = {
            **csrf(client),
            "config": "demo",
            "run": "fresh",
            "o.no.such": "1",
            "words": "--max-calls",
            "part": "1",
        }
        answer = html.unescape(client.post("/new/check", data=fields).text)
        assert "skillgit train demo --run fresh<" in answer
        assert client.post("/new/check", data=fields | {"config": "../../etc/passwd"}).status_code == 400
        assert client.post("/new", data=fields | {"run": "--help"}).status_code == 400


@pytest.mark.slow
def test_a_training_is_launched_once_survives_the_server_is_stopped_and_goes_on(empty):
    with serving(empty, **NOW) as first, first.visit() as client:
        fields = {**csrf(client), "config": "demo", "run": "fresh", LONG[0]: LONG[1]}
        answers = [client.post("/new", data=fields), client.post("/new", data=fields)]  # the second click
        for answer in answers:
            assert answer.url.path == "/run/fresh/live"
            assert states(answer.text) in ({"starting"}, {"running"}), "from the click on it was understood"
            assert 'data-when="over" hidden' in answer.text, "what was just started is not to be continued"
        await_part(client, "fresh", "curve", "<svg", {"starting", "running"})
        first.process.kill()
        first.process.wait()
    with serving(empty, **NOW) as second, second.visit() as client:
        await_part(client, "fresh", "now", ">running<")
        client.post("/run/fresh/stop", data={**csrf(client), "how": "step"})
        await_part(client, "fresh", "now", ">stopped<")
        assert states(client.post("/run/fresh/continue", data=csrf(client)).text) in ({"starting"}, {"running"})
        await_part(client, "fresh", "now", ">running<", {"starting", "running"})
        client.post("/run/fresh/stop", data={**csrf(client), "how": "now"})
        await_part(client, "fresh", "now", ">stopped<")


def test_what_changes_is_looked_for_once_however_many_watch():
    looks: list[int] = []

    def look():
        looks.append(len(looks))
        return {"same": "as before", "number": str(min(len(looks), 2))}

    async def viewer(broadcast: Broadcast) -> list[str]:
        texts = []
        async for data in broadcast.stream(lambda: True):
            texts += [line.removeprefix("data: ") for line in data.decode().splitlines() if line.startswith("data")]
            if '{"part": "number", "html": "2"}' in texts:
                return texts
        raise AssertionError

    async def watched() -> list[list[str]]:
        broadcast = Broadcast(look, lambda: 0.01)
        seen = await asyncio.gather(*(viewer(broadcast) for _ in range(20)))
        while broadcast.viewers:  # noqa: ASYNC110 - the loop closes the generators
            await asyncio.sleep(0)
        assert broadcast._task is None, "no viewer is left"
        return seen

    seen = asyncio.run(watched())
    assert len(looks) <= 3
    for texts in seen:
        assert texts.count('{"part": "same", "html": "as before"}') == 1


def test_an_unknown_run_and_a_viewer_get_what_they_may(served):
    with served.visit() as client:
        unknown = client.get("/run/unknown/live")
        assert unknown.status_code == client.get("/run/unknown/live/stream").status_code == 404
        assert client.get("/run/small/live").status_code == 200
        assert client.post("/run/unknown/stop", data={**csrf(client), "how": "step"}).status_code == 404
        assert client.post("/run/unknown/stop", data={**csrf(client), "how": "twice"}).status_code == 400


@pytest.mark.slow
@NEEDS_CHROMIUM
def test_in_a_browser_a_value_is_checked_while_it_is_typed_and_the_curve_grows_by_itself(empty, browser):
    with serving(empty, **NOW) as server:
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(server.link)
        page.goto(f"{server.origin}/new")
        page.get_by_label("train.num_epochs").fill("0")
        page.locator("[data-key='train.num_epochs'] .error:not(:empty)").wait_for()
        page.get_by_role("button", name="Launch").click()
        page.locator("[data-part=verdict] .error", has_text="train.num_epochs").wait_for()
        assert page.url.endswith("/new"), "our message says what is wrong, and no bubble of the browser"
        page.get_by_label("train.num_epochs").fill("30")
        page.locator("[data-checked]", has_text="-o train.num_epochs=30").wait_for()
        cost = page.locator("[data-part=verdict]", has_text="calls")
        for place in (0, 10**6):  # wherever one reads, the decision and what it costs are in the window
            page.evaluate("place => scrollTo(0, place)", place)
            for part in (cost, page.get_by_role("button", name="Launch")):
                assert part.bounding_box()["y"] + part.bounding_box()["height"] <= 720
        assert page.evaluate(
            "[...document.querySelectorAll('aside .scroll')].every(b => b.scrollWidth <= b.clientWidth)"
        )
        page.get_by_role("button", name="Launch").click()
        expect(page).to_have_title(re.compile(r"^[0-9]+/[0-9]+ · [.0-9]+ · demo$"), timeout=DEADLINE_MS)
        page.locator("[data-part=curve] svg.wide .mark").nth(4).wait_for()
        page.locator("[data-part=log] tbody tr").nth(4).wait_for()
        page.get_by_text("Stop", exact=True).click()
        page.get_by_role("button", name="Stop after this step").click()
        page.locator(".state .outcome", has_text="stopped").wait_for()
        page.get_by_text("Continue", exact=True).first.click()
        page.get_by_role("button", name="Continue").click()
        page.locator(".state .outcome", has_text="running").wait_for()
        page.get_by_text("Stop", exact=True).click()
        page.get_by_role("button", name="Stop now").click()
        page.locator(".state .outcome", has_text="stopped").wait_for()
