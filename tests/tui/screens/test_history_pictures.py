"""What the history looks like; ``pytest --snapshot-update`` draws it anew."""

from __future__ import annotations

import pytest
from soaking import soak

from skillgit.tui import theme

SIZES = [(104, 30), (80, 24), (60, 16)]


@pytest.fixture
def looks(snap_compare, app_of, sample, settled):
    """Compare the screen after some keys with its picture."""

    def compare(*keys: str, size: tuple[int, int] = SIZES[0], wanted: str = theme.DARK.name, unicode: bool = True):
        app = app_of(sample, unicode=unicode)

        async def before(pilot) -> None:
            await settled(pilot)
            app.theme = wanted
            await pilot.press(*keys)
            await settled(pilot)

        return snap_compare(app, terminal_size=size, run_before=before)

    return compare


@pytest.mark.parametrize("size", [SIZES[0], *map(soak, SIZES[1:])], ids=str)
def test_the_history_looks_as_it_should(looks, size):
    assert looks("j", "j", size=size)


@pytest.mark.parametrize("size", [SIZES[0], *map(soak, SIZES[1:])], ids=str)
def test_the_detail_looks_as_it_should(looks, size):
    assert looks("G", "k", "enter", "]", size=size)


@pytest.mark.parametrize("size", [SIZES[0], *map(soak, SIZES[1:])], ids=str)
def test_a_filter_looks_as_it_should(looks, size):
    assert looks("slash", *"event:rej score>.5", size=size)


@pytest.mark.parametrize("size", [SIZES[0], *map(soak, SIZES[1:])], ids=str)
def test_help_looks_as_it_should(looks, size):
    assert looks("question_mark", size=size)


def test_a_question_looks_as_it_should(looks):
    assert looks("G", "k", "space")


def test_light_colours_look_as_they_should(looks):
    assert looks("j", "j", wanted=theme.LIGHT.name)


def test_a_terminal_without_all_signs_looks_as_it_should(looks):
    assert looks("j", "j", unicode=False)
