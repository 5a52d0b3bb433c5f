"""What the lists of commands are called and look like where programs read them."""

from __future__ import annotations

from typing import NamedTuple


class RowFormat(NamedTuple):
    """A list in machine formats; names are fields, separated by spaces.

    Attributes:
        schema: The shape of the JSON document.
        rows: The field of the document that holds the rows.
        columns: The columns of ``--plain``, fields of a row.
        head: The fields of the result that the document has before the rows.
    """

    schema: str
    rows: str
    columns: str
    head: str = ""


_PLUGIN = "name reference error"
LISTS = {
    "backends": RowFormat("backends/1", "backends", _PLUGIN),
    "blame": RowFormat(
        "blame/1",
        "lines",
        "line run version commit kind origin step epoch source support score delta fixed broken items "
        "author restored text",
        "run version commit path",
    ),
    "cost": RowFormat(
        "cost/1",
        "rows",
        "run role stage model version step epoch kind origin "
        "calls tokens_in tokens_out cached cache_written reasoning unpriced usd seconds share",
        "run by share_of total unpriced unfinished",
    ),
    "diff --items": RowFormat(
        "diff-items/1",
        "items",
        "item task_type before after change",
        "a b differs metric fixed broken gained lost stable_pass stable_fail not_measured missing p p_worse types "
        "checks length notes",
    ),
    "diff --rules": RowFormat(
        "diff-rules/1",
        "rules",
        "change file first last region deed by version step commit source support gain text before",
        "a b kept",
    ),
    "envs": RowFormat("envs/1", "environments", _PLUGIN),
    "fetch": RowFormat("fetch/1", "refs", "ref run old new", "remote url"),
    "fsck": RowFormat("fsck/1", "problems", "run commit repairable sentence remark", "runs commits mended"),
    "gc": RowFormat("gc/1", "runs", "run folded unfolded attic dropped freed left"),
    "install --list": RowFormat("adopted/1", "places", "place skill name state newer time commit"),
    "items": RowFormat("items/1", "items", "item task_type first flips solved measured share doubts outcomes"),
    "items --checks": RowFormat("checks/1", "checks", "check version items score", "run versions"),
    "items --item": RowFormat(
        "item/1", "attempts", "name commit hard soft failed measured answer feedback trajectory title"
    ),
    "log": RowFormat(
        "log/1",
        "events",
        "run commit kind version base step epoch score delta measured decision origin time is_best is_head refs "
        "bound title",
        "run",
    ),
    "matrix": RowFormat(
        "matrix/1",
        "scores",
        "version commit model score hard soft n scored measured differs source time others",
        "run split metric models",
    ),
    "note --list": RowFormat("notes/1", "notes", "id name commit author time text"),
    "push": RowFormat("push/1", "refs", "ref run state old new cause reason", "remote url dry_run"),
    "remote": RowFormat("remote/1", "remotes", "name url push_url"),
    "replay": RowFormat(
        "replay/1", "events", "commit label kind gate patch differing lacking title", "run same differing index history"
    ),
    "runs": RowFormat(
        "runs/1",
        "runs",
        "name environment skill outcome running_pid steps total_steps versions rejected merges best_version best_score "
        "first_score metric started updated calls tokens_in tokens_out usd first_test best_test",
    ),
}
"""Command to its list."""
