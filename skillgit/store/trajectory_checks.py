"""Whether every file of the evidence can be read: tables of rollouts and the trajectories that they name.

No number of the history follows from them, so that only a check that is told to look deep opens them all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pygit2

from skillgit.domain.untrusted.documents import loads
from skillgit.store.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from skillgit.store.record import Recorded
    from skillgit.store.repo import Repo

_TABLE = re.compile(r"(?:rollout|selection|test-v\d+)\.json")
_TRAJECTORY = re.compile(r"(?:.+/)?trajectories/[^/]+\.json")


def trajectory_problems(repo: Repo, records: Sequence[Recorded]) -> Iterator[Problem]:
    """Yield which files in the evidence of ``records``, as far as it is here, cannot be read."""
    readable: dict[str, str] = {}
    for record in records:
        found = repo.raw.get(record.evidence) if record.evidence else None
        if isinstance(found, pygit2.Tree):
            for sentence in _problems(dict(_files(found)), readable):
                yield Problem(commit=record.commit, sentence=sentence)


def _problems(files: Mapping[str, pygit2.Blob], readable: dict[str, str]) -> Iterator[str]:
    """Yield what is wrong with ``files``; ``readable`` are those that were read, with the item of a trajectory."""
    for path, blob in files.items():
        if not path.endswith(".json") or str(blob.id) in readable:
            continue
        try:
            readable[str(blob.id)] = _item(path, loads(blob.data))
        except (ValueError, TypeError, KeyError, RecursionError):
            yield f"{path} in the evidence cannot be read"
    for path in filter(_TABLE.fullmatch, files):
        if str(files[path].id) not in readable:
            continue
        for row in loads(files[path].data):
            named = row.get("trajectory")
            if named is None:
                continue
            trajectory = files.get(str(named))
            if trajectory is None:
                yield f"{path} in the evidence names '{named}', which it lacks"
            elif readable.get(str(trajectory.id), row["id"]) != row["id"]:
                yield f"{path} in the evidence names '{named}' for {row['id']}, and it is of another item"


def _item(path: str, document: object) -> str:
    """Return the item of the trajectory ``path``, empty for another file.

    Raises:
        TypeError: It has another shape than such a file.
        KeyError: It lacks something.
    """
    if _TABLE.fullmatch(path):
        if not isinstance(document, list) or not all(isinstance(row, dict) and "id" in row for row in document):
            raise TypeError(path)
    elif _TRAJECTORY.fullmatch(path):
        if not isinstance(document, dict) or not isinstance(document["turns"], list):
            raise TypeError(path)
        if not all(isinstance(turn["role"], str) and isinstance(turn["content"], str) for turn in document["turns"]):
            raise TypeError(path)
        return str(document["id"])
    return ""


def _files(folder: pygit2.Tree, prefix: str = "") -> Iterator[tuple[str, pygit2.Blob]]:
    """Yield path and content of every file that is here; what is missing is told elsewhere."""
    for entry in folder:
        if isinstance(entry, pygit2.Tree):
            yield from _files(entry, f"{prefix}{entry.name}/")
        elif isinstance(entry, pygit2.Blob):
            yield f"{prefix}{entry.name}", entry
