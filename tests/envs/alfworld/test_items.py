from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillgit.domain.evaluation import Split
from skillgit.errors import ConfigError, DataError
from skillgit.plugin.plugin_identity import install_command
from skillgit_envs import alfworld
from skillgit_envs.alfworld import ALFWorld, games
from skillgit_envs.alfworld.games import TASK_TYPES

GAME = {"pddl_domain": "d", "grammar": "g", "pddl_problem": "p", "solvable": True}
NAMES = ("pick_and_place_simple-Mug-None-Desk-1", "look_at_obj_in_light-Book-None-DeskLamp-2")


def put(folder: Path, name: str, **changes: Any) -> Path:
    path = folder / name / "trial_1" / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({**GAME, "pddl_problem": name, **changes}))
    return path


def manifest(folder: Path, split: str, rows: list[dict[str, object]]) -> None:
    (folder / split).mkdir(parents=True, exist_ok=True)
    (folder / split / "items.json").write_text(json.dumps(rows))


def load(root: Path, **options: str | int) -> dict[Split, list[str]]:
    environment = ALFWorld(options, root)
    return {split: [item.id for item in environment.items(split)] for split in Split}


def test_the_shipped_games_have_all_six_task_types_in_every_split(tmp_path):
    environment = ALFWorld({}, tmp_path)
    for split, count in ((Split.TRAIN, 24), (Split.SELECTION, 18), (Split.TEST, 24)):
        found = environment.items(split)
        assert len(found) == count
        assert {item.task_type for item in found} == set(TASK_TYPES)
    assert len(ALFWorld({"limit": 2}, tmp_path).items(Split.TEST)) == 2


def test_folders_are_named_as_the_published_data_names_them(tmp_path):
    for split in ("train", "valid_seen", "valid_unseen", "valid_train"):
        for name in NAMES:
            put(tmp_path / "json_2.1.1" / split, name)
    found = load(tmp_path, split_mode="split_dir", split_dir="json_2.1.1")
    assert found[Split.SELECTION] == [f"valid_seen/{name}/trial_1" for name in sorted(NAMES)]
    assert found[Split.TEST][0].startswith("valid_unseen/")
    assert len(found[Split.TRAIN]) == 2
    environment = ALFWorld({"split_mode": "split_dir", "split_dir": "json_2.1.1"}, tmp_path)
    (item, _) = environment.items(Split.TRAIN)
    assert item.task_type == "look_at_obj_in_light"
    assert item.content["gamefile"] == f"train/{NAMES[1]}/trial_1/game.tw-pddl"
    assert alfworld.opening(item, environment._games)["game"]["pddl_problem"] == NAMES[1]


def test_games_that_alfworld_leaves_out_are_left_out(tmp_path):
    for split in ("train", "val", "test"):
        put(tmp_path / split, NAMES[0])
        put(tmp_path / split, "pick_and_place_with_movable_recep-Pen-Bowl-Desk-3")
        put(tmp_path / split, "pick_and_place_simple-AppleSliced-None-Fridge-4")
        put(tmp_path / split, NAMES[1], solvable=False)
    found = load(tmp_path, split_mode="split_dir", split_dir=".")
    assert [len(ids) for ids in found.values()] == [1, 1, 1]


def test_a_folder_of_games_is_divided_by_ratio(tmp_path):
    for number in range(10):
        put(tmp_path / "all", f"{NAMES[0]}{number}")
    found = load(tmp_path, data_path="all", split_ratio="2:1:7")
    assert [len(ids) for ids in found.values()] == [2, 1, 7]


def test_manifests_of_the_reference_are_read(tmp_path, monkeypatch):
    data = tmp_path / "data"
    paths = {split: put(data / split, NAMES[0]) for split in ("train", "val", "test")}
    for split, path in paths.items():
        row = {"id": f"{split}:0", "gamefile": path.relative_to(data).as_posix(), "task_type": "pick_and_place"}
        manifest(tmp_path / "split", split, [row])
    options: dict[str, Any] = {"split_mode": "split_dir", "split_dir": "split"}
    assert load(tmp_path, **options, data_root="data")[Split.SELECTION] == ["val:0"]
    monkeypatch.setenv("ALFWORLD_DATA", str(data))
    (item,) = ALFWorld(options, tmp_path).items(Split.TEST)
    assert item.task_type == "pick_and_place_simple"
    assert set(item.content) == {"gamefile", "sha256"}


def test_a_changed_game_is_another_item_and_is_not_played(tmp_path):
    path = put(tmp_path, NAMES[0])
    (before,) = alfworld._of_folder(tmp_path, tmp_path)
    path.write_text(json.dumps({**GAME, "pddl_problem": "another"}))
    (after,) = alfworld._of_folder(tmp_path, tmp_path)
    assert before.digest != after.digest
    with pytest.raises(DataError, match="has changed since the run began"):
        alfworld.opening(before, tmp_path)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"gamefile": "g"}, "has no id"),
        ({"id": "a", "task": "dust"}, "neither a gamefile nor a recipe"),
        ({"id": "a", "gamefile": "lost.tw-pddl"}, "cannot be won"),
        ({"id": "a", "gamefile": "text.tw-pddl"}, "is not JSON"),
        ({"id": "a", "gamefile": "else.tw-pddl"}, "is not a game of ALFWorld"),
        ({"id": "a", "recipe": {"task": "dance"}}, "a recipe cannot have the fields task"),
        (
            {"id": "a", "recipe": {"task": "dance", "room": "kitchen", "thing": "Mug", "target": "Shelf", "seed": 1}},
            "is not one that there is",
        ),
    ],
)
def test_rows_that_cannot_be_used_are_named(tmp_path, row, told):
    (tmp_path / "lost.tw-pddl").write_text(json.dumps({**GAME, "solvable": False}))
    (tmp_path / "text.tw-pddl").write_text("not a game")
    (tmp_path / "else.tw-pddl").write_text("[]")
    for split in ("train", "val", "test"):
        manifest(tmp_path / "split", split, [row])
    with pytest.raises(DataError, match=r"items\.json, item 1.*") as raised:
        load(tmp_path, split_mode="split_dir", split_dir="split", data_root=".")
    assert told in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize("count", [1, 3, 9])
def test_all_games_that_are_missing_are_told_in_one_message(tmp_path, count):
    there = put(tmp_path / "data", NAMES[0])
    for split in ("train", "val", "test"):
        rows = [{"id": f"{split}:{n}", "gamefile": f"{split}/{n}.tw-pddl"} for n in range(count)]
        rows += [{"id": "there", "gamefile": there.relative_to(tmp_path / "data").as_posix()}] * (split == "test")
        manifest(tmp_path / "split", split, rows)
    with pytest.raises(DataError) as raised:
        load(tmp_path, split_mode="split_dir", split_dir="split", data_root="data")
    assert raised.value.message.startswith(f"{3 * count} games that the data name cannot be found from ")
    assert "test/0.tw-pddl" in raised.value.message
    assert len(raised.value.message) < 500
    assert "env.data_root" in raised.value.hint


@given(st.lists(st.sampled_from(["link", "a b", "ä", "trial_1"]), max_size=3), st.booleans())
def test_a_game_is_named_from_its_folder_whatever_leads_there(parts, absolute):
    root = Path("/data") if absolute else Path("data")
    assert games.name_below(root, root.joinpath(*parts, games.GAME)) == "/".join([*parts, games.GAME])
    assert games.name_below(root / "x" / "..", root.joinpath(*parts, games.GAME)) == "/".join([*parts, games.GAME])
    assert games.name_below(Path("/elsewhere"), Path("/data", *parts)) == str(Path("/data", *parts))


def test_without_the_engine_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(games, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="without textworld, alfworld, gymnasium") as raised:
        load(tmp_path)
    assert install_command("alfworld") in raised.value.hint


@pytest.mark.parametrize(("name", "value"), [("max_steps", 0), ("history_length", -1)])
def test_limits_that_make_no_sense_are_refused(tmp_path, name, value):
    with pytest.raises(ConfigError, match=f"env.{name} is {value}"):
        ALFWorld({name: value}, tmp_path)


def test_the_digest_tells_what_decides_an_outcome(tmp_path):
    plain = ALFWorld({}, tmp_path).digest
    assert plain == ALFWorld({"limit": 3}, tmp_path).digest
    for name, value in (("max_steps", 30), ("history_length", 2), ("admissible_commands", False)):
        assert ALFWorld({name: value}, tmp_path).digest != plain
