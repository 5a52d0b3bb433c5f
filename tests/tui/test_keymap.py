from __future__ import annotations

import re

import pytest
from documents import check_part, page
from hypothesis import given
from hypothesis import strategies as st
from textual.keys import _character_to_key

from skillgit.tui import keymap

PLACES = {
    "app": "Everywhere",
    "history": "History",
    "list": "Lists and texts",
    "wide": "Wide texts",
    "find": "Searches",
    "tabs": "Tabs",
    "diff": "Differences",
    "items": "Items of two versions",
    "compare": "Compare",
    "item": "Item",
    "event": "Event",
    "printed": "Text",
    "drafts": "Drafts",
    "live": "Live",
    "dialog": "Dialogs",
}


def tables() -> str:
    lines: list[str] = []
    told: set[str] = set()
    for place, title in PLACES.items():
        rows = [key for key in keymap.at(place) if key.id not in told]
        told |= {key.id for key in rows}
        if rows:
            lines += [f"#### {title}\n", "| key | id | does |", "|---|---|---|"]
            lines += [f"| {keys(key)} | `{key.id}` | {key.label} |" for key in rows]
            lines.append("")
    return "\n".join(lines)


def keys(key: keymap.Key) -> str:
    return " ".join(f"`{keymap.shown(one)}`" for one in key.keys)


def test_the_document_lists_every_key():
    check_part("surfaces.md", "keymap", tables())
    assert all(f"`{key.id}`" in page("surfaces.md") for key in keymap.KEYS)


def test_ids_are_names_that_git_can_hold():
    assert len(keymap.BY_ID) == len(keymap.KEYS)
    for key in keymap.KEYS:
        assert re.fullmatch(r"skillgit\.tui\.keymap\.[a-z]+\.[a-z0-9-]+", key.setting)


@pytest.mark.parametrize("places", [("app", "history", "list", "tabs"), ("app", "compare", "tabs", "diff", "find")])
def test_no_two_keys_of_a_screen_are_the_same(places):
    bound: dict[str, str] = {}
    nearer = [{"list.open", "compare.open"}, {"app.quit", "screen.close"}]  # what the screen does goes first
    for key in keymap.at(*places):
        for one in key.keys:
            assert bound.get(one) is None or {key.id, bound[one]} in nearer, (one, key.id, bound.get(one))
            bound[one] = key.id


def test_defaults_work_in_every_terminal():
    for key in keymap.KEYS:
        for one in key.keys:
            assert not one.startswith(("alt+", "ctrl+shift+")), key.id
    usual = {key.id: [one for one in key.keys if not re.fullmatch(r"f\d+", one)] for key in keymap.KEYS}
    assert all(usual.values()), "function keys are extras"


def test_keys_have_the_names_that_textual_gives_them():
    for name, sign in keymap._SIGNS.items():
        if len(sign) == 1:
            assert _character_to_key(sign) == name


def test_a_user_binds_other_keys_by_id():
    found = keymap.rebound(
        {"skillgit.tui.keymap.history.compare": "d", "skillgit.tui.keymap.list.page-down": "ctrl+f ^n, ?"}
    )
    assert found == {"history.compare": "d", "list.page_down": "ctrl+f,ctrl+n,question_mark"}
    assert keymap.rebound({"skillgit.tui.keymap.history.mark": "  "}) == {}


def test_what_is_in_force_is_what_users_bound():
    told = {key.id: keys for key, keys in keymap.in_force({"history.compare": "d,ctrl+k"})}
    assert told["history.compare"] == ("d", "^k")
    assert told["app.help"] == ("?",)


@given(st.lists(st.sampled_from([one for key in keymap.KEYS for one in key.keys]), min_size=1))
def test_what_help_shows_can_be_written_into_the_configuration(names):
    assert keymap.read_keys(" ".join(map(keymap.shown, names))) == tuple(names)
