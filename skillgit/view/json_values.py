"""What programs read: values as JSON, and the lists of commands.

Names are those of the dataclass fields, times are RFC 3339 in UTC, ids are complete.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import PurePath
from typing import NamedTuple

from skillgit.domain.address import Address
from skillgit.domain.cost import Cost
from skillgit.view.numbers import rfc3339

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def plain_value(value: object) -> Json:
    """Return ``value`` as JSON can hold it; a TypeError where it has no place in a document."""
    if isinstance(value, Enum):
        return plain_value(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, PurePath | Address):
        return str(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return _container(value)


def named_values(value: object) -> dict[str, Json]:
    document = plain_value(value)
    if not isinstance(document, dict):
        raise TypeError(f"{type(value).__name__} is no JSON object")
    return document


def picked(value: object, names: str) -> dict[str, object]:
    """Return some fields of ``value``, named with spaces between, as a mapping."""
    return {name: getattr(value, name) for name in names.split()}


def _container(value: object) -> Json:
    if isinstance(value, Cost):
        return {field.name: plain_value(getattr(value, field.name)) for field in fields(value)} | {
            "usd": value.known_usd
        }
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((plain_value(inner) for inner in value), key=str)
    if isinstance(value, list | tuple):
        return [plain_value(inner) for inner in value]
    if isinstance(value, type):
        return value.__name__
    raise TypeError(f"{type(value).__name__} has no JSON form")


class RowFormat(NamedTuple):
    """A list in machine formats; names are fields, separated by spaces."""

    schema: str  # the shape of the JSON document
    rows: str  # the field of the document that holds the rows
    columns: str  # the columns of `--plain`, fields of a row
    head: str = ""  # the fields of the result that the document has before the rows


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
        "a b differs metric fixed broken gained lost stable_pass stable_fail not_measured missing p p_worse too_few "
        "types checks length notes",
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
        "bound title skill",
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
        "first_score metric started updated calls tokens_in tokens_out usd first_test best_test best_items "
        "test_items target optimizer unpriced rehearsal",
    ),
    "plugins": RowFormat("plugins/1", "plugins", f"kind {_PLUGIN}"),
    "strategies": RowFormat("strategies/1", "strategies", _PLUGIN),
    "whence": RowFormat("whence/1", "skills", "place skill version release state told_by commit"),
}
"""Command to its list."""
