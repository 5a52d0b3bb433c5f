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
    "fsck": Table("fsck/1", "problems", "run commit repairable sentence remark", head="runs commits mended remade"),
    "gc": Table("gc/1", "runs", "run folded unfolded attic dropped freed left"),
    "note --list": Table("notes/1", "notes", "id name commit author time text"),
    "push": Table("push/1", "refs", "ref run state old new cause reason", head="remote url dry_run"),
    "plugins": Table("plugins/1", "plugins", "kind name reference error"),
}
"""Command to its list."""
