"""No text of a stranger or of a model acts on the terminal, whatever screen shows it."""

from __future__ import annotations

import asyncio

import pytest
from hostile_run import ACTS, write_hostile_run
from sample_run import RUN
from soaking import soak

from skillgit.tui.app import SkillgitApp

KEYS = (
    *("down", "down", "enter", "down", "pagedown", "tab", "down", "escape", "end", "enter", "escape"),
    *("c", "down", "enter", "tab", "escape", "escape", "i", "down", "enter", "escape", "escape", "question_mark"),
)


async def _quiet(pilot) -> None:
    for _ in range(3):
        await pilot.pause()
        if any(not worker.is_finished for worker in pilot.app.workers):
            await pilot.app.workers.wait_for_complete()


@pytest.mark.parametrize("size", [(80, 24), soak((160, 50))])
def test_no_screen_lets_text_act(repo, context_of, size):
    write_hostile_run(repo)
    seen: list[str] = []

    async def play() -> None:
        app = SkillgitApp(context_of(repo.workdir), RUN, watch=False)
        async with app.run_test(size=size) as pilot:
            for key in ("", *KEYS):
                if key:
                    await pilot.press(key)
                await _quiet(pilot)
                strips = app.screen._compositor.render_strips()
                seen.append("\n".join("".join(segment.text for segment in strip) for strip in strips))

    asyncio.run(play())
    assert any("FORGED" in text for text in seen)
    for text in seen:
        assert ACTS.search(text) is None, repr(text[:800])
