"""Lists that have a renderer of their own for people, by command: their documents and fields for programs."""

from __future__ import annotations

from typing import Any, Final

from skillgit.view.table import Table

_PLUGIN = "name reference error"
LISTS: Final[dict[str, Table[Any]]] = {
    "backends": Table("backends/1", "backends", _PLUGIN),
    "blame": Table(
        "blame/1",
        "lines",
        "line run version commit kind origin step epoch source support score delta fixed broken items "
        "author restored text",
        head="run version commit path",
    ),
    "envs": Table("envs/1", "environments", _PLUGIN),
    "fsck": Table("fsck/1", "problems", "run commit repairable sentence remark", head="runs commits mended"),
    "gc": Table("gc/1", "runs", "run folded unfolded attic dropped freed left"),
    "note --list": Table("notes/1", "notes", "id name commit author time text"),
    "push": Table("push/1", "refs", "ref run state old new cause reason", head="remote url dry_run"),
    "replay": Table(
        "replay/1",
        "events",
        "commit label kind gate patch differing lacking title",
        head="run same differing index history",
    ),
    "plugins": Table("plugins/1", "plugins", f"kind {_PLUGIN}"),
    "strategies": Table("strategies/1", "strategies", _PLUGIN),
}
"""Command to its list."""
