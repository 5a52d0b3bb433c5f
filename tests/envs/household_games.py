"""Games that the tests of alfworld play: one with the commands that win it, and all that are shipped."""

from __future__ import annotations

import json
from typing import Any

from skillgit_envs.alfworld import SHIPPED

POTATO = {
    "recipe": {
        "task": "pick_heat_then_place_in_recep",
        "room": "kitchen",
        "thing": "Potato",
        "target": "DiningTable",
        "seed": 5,
    }
}
WINS = (
    "go to garbagecan 1",
    "take potato 1 from garbagecan 1",
    "go to microwave 1",
    "heat potato 1 with microwave 1",
    "go to diningtable 1",
    "move potato 1 to diningtable 1",
)


def shipped() -> list[dict[str, Any]]:
    return [
        row for split in ("train", "val", "test") for row in json.loads((SHIPPED / split / "items.json").read_text())
    ]
