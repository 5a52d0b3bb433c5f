"""JSON of evidence and notes, which strangers may have written: what is damaged or not as it should be is left out."""

from __future__ import annotations

from skillgit.domain.untrusted.json_limits import loads
from skillgit.store.evidence import read_evidence
from skillgit.store.repo import Repo


def parsed(content: bytes | str | None) -> object:
    try:
        return loads(content or b"null")
    except (ValueError, RecursionError):
        return None


def evidence_file(repo: Repo, tree: str, name: str) -> object:
    """Return the JSON file ``name`` of the evidence in ``tree``; None where there is none that can be read."""
    return parsed((read_evidence(repo, tree, (name,)) or {}).get(name))


def members(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def entries(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def objects(value: object) -> list[dict[str, object]]:
    return [row for row in entries(value) if isinstance(row, dict)]
