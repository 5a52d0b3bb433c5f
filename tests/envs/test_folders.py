"""The same data in two folders are the same items, whatever the folders are called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from once import copy_folder

import skillgit_envs
from skillgit.domain.evaluation import Split
from skillgit.plugin.registry import load_environment

GAME = {"pddl_domain": "d", "grammar": "g", "pddl_problem": "p", "solvable": True}
CHECKS = [
    {"type": "python", "function": "checks.py:right"},
    {"type": "command", "command": "sh check.sh", "files": ["check.sh"]},
    {"type": "json", "schema": "form.json"},
]
OWN = {"split_mode": "split_dir", "split_dir": "data"}
SETTINGS = {
    "babyvision": {"image_dir": "data"},
    "docvqa": {"image_dir": "data/pages"},
    "livemathematicianbench": {},
    "mathverse": {"image_dir": "data"},
    "mmrb": {"image_dir": "data"},
    "officeqa": {"docs_dir": "data/bulletins"},
    "sealqa": {"mode": "search", "search_path": "data/pages"},
    "searchqa": {},
    "spreadsheetbench": {"data_root": "data", "scorer": "skillopt"},
    "tasks": {},
}


def games(folder: Path) -> None:
    for split in ("train", "val", "test"):
        for number in range(3):
            path = folder / "data" / split / f"pick_and_place_simple-Mug-None-Desk-{number}" / "trial" / "game.tw-pddl"
            path.parent.mkdir(parents=True)
            path.write_text(json.dumps({**GAME, "pddl_problem": f"{split} {number}"}))
            rows = [{"id": f"{split}:{number}", "gamefile": str(path)}]
            manifest = folder / "manifest" / f"{split}.json"
            manifest.parent.mkdir(exist_ok=True)
            manifest.write_text(json.dumps(rows))


def tasks(folder: Path) -> None:
    (folder / "data/files").mkdir(parents=True)
    for name in ("checks.py", "check.sh", "form.json", "files/a.txt"):
        (folder / "data" / name).write_text("{}")
    (folder / "data/a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    rows = [{"prompt": f"{n}?", "files": ["files"], "images": ["a.png"], "checks": CHECKS} for n in range(9)]
    (folder / "data/tasks.json").write_text(json.dumps(rows))


def shipped(name: str, folder: Path) -> None:
    copy_folder(Path(skillgit_envs.__path__[0]) / name / "data", folder / "data")


def seen(name: str, root: Path, options: dict[str, object]) -> tuple[str, list[tuple[str, str, str]]]:
    environment = load_environment(name, root)(options, root)
    items = [item for split in Split for item in environment.items(split)]
    return environment.digest, [(item.id, item.task_type, item.digest) for item in items]


@pytest.mark.parametrize(
    ("name", "fill", "options"),
    [
        *((name, lambda folder, name=name: shipped(name, folder), OWN | more) for name, more in SETTINGS.items()),
        ("tasks", tasks, {"data_path": "data/tasks.json", "split_ratio": "1:1:1"}),
        ("alfworld", games, OWN),
        ("alfworld", games, {"data_path": "data", "split_ratio": "1:1:1"}),
        ("alfworld", games, {"split_mode": "split_dir", "split_dir": "manifest", "data_root": "data"}),
    ],
)
def test_the_same_data_in_two_folders_have_the_same_digests(name, fill, options, tmp_path, monkeypatch):
    if name == "alfworld":
        monkeypatch.setattr("skillgit_envs.alfworld.games.check_installed", lambda: None)
    places = (tmp_path / "here", tmp_path / "look_at_obj_in_light" / "pick_heat_then_place_in_recep")
    for place in places:
        place.mkdir(parents=True)
        fill(place)
    first, second = (seen(name, place, options) for place in places)
    assert first == second
    assert len(first[1]) >= 3
