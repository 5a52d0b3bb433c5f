"""Lists that have a renderer of their own for people, by command: their documents and fields for programs."""

from __future__ import annotations

from typing import Any, Final

from skillgit.view.table import Table

LISTS: Final[dict[str, Table[Any]]] = {
    "blame": Table(
        "blame/1",
        "lines",
        "line run version commit kind origin step epoch source support score delta fixed broken items "
        "author restored text",
        head="run version commit path",
    ),
    "config": Table("config/1", "settings", "key value origin", head="name path digest notes"),
    "diff --rules": Table(
        "diff-rules/1",
        "rules",
        "change file first last region deed by version step commit source support gain text before",
        head="a b kept",
    ),
    "fsck": Table("fsck/1", "problems", "run commit repairable sentence remark", head="runs commits mended remade"),
    "gc": Table("gc/1", "runs", "run folded unfolded attic dropped freed left"),
    "items": Table("items/1", "items", "item task_type first flips solved measured share doubts outcomes"),
    "items --checks": Table("checks/1", "checks", "check version items score", head="run versions"),
    "items --item": Table(
        "item/1", "attempts", "name commit hard soft failed measured answer feedback trajectory title"
    ),
    "log": Table(
        "log/1",
        "events",
        "run commit kind version base step epoch score delta measured decision origin time is_best is_head refs "
        "bound title skill",
        head="run",
    ),
    "matrix": Table(
        "matrix/1",
        "scores",
        "version commit model score hard soft n scored measured differs source time others",
        head="run split metric models",
    ),
    "note --list": Table("notes/1", "notes", "id name commit author time text"),
    "push": Table("push/1", "refs", "ref run state old new cause reason", head="remote url dry_run"),
    "plugins": Table("plugins/1", "plugins", "kind name reference error"),
}
"""Command to its list."""
