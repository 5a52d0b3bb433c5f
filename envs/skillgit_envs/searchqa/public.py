"""Where the public SearchQA stands, and how its rows become those of a data file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.errors import DataError
from skillgit.plugin.environment import PublicSource, SourceKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LICENCE = "items that come with it: MIT, as skillgit; the public data states no licence"

SOURCE = PublicSource(
    kind=SourceKind.HUGGINGFACE,
    place="lucadiliello/searchqa",
    revision="c1a979068ba118d85467179b704031d113d689cc",
    files=("data/*.parquet",),
    convert=f"{__name__}:convert",
    layout=(
        "place one *.jsonl or *.json file with id (or key), question, context and answers in each row, and name it with"
        " env.data_path; a manifest of ids beside it is named with env.split_dir and env.split_mode=split_dir"
    ),
)


def convert(rows: Iterable[Mapping[str, object]]) -> Iterator[dict[str, object]]:
    """Return rows of a data file; a missing context is an empty one.

    Args:
        rows: Rows of the dataset, with ``key``, ``question``, ``context`` and ``answers``.

    Raises:
        DataError: A row has not these fields.
    """
    for number, row in enumerate(rows, start=1):
        lacking = [name for name in ("key", "question", "answers") if not row.get(name)]
        if lacking:
            raise DataError(
                f"row {number} of the public data has no {lacking[0]}; it has {', '.join(row) or 'nothing'}",
                hint="the dataset has changed its form: take the revision that skillgit envs searchqa names",
            )
        yield {
            "id": row["key"],
            "question": row["question"],
            "context": row.get("context") or "",
            "answers": row["answers"],
        }
