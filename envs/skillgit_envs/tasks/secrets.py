"""What no skill may quote of a task: the accepted answers, the task with its files, and what its checks look for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from skillgit.domain.leaks import Secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillgit.domain.trajectory import Item
    from skillgit_envs.tasks.attachments import Attachments
    from skillgit_envs.tasks.checks.check import Fields


def secrets_in(item: Item, attachments: Attachments) -> Secrets:
    """Return the secrets of ``item``; files that are no text hold none.

    Raises:
        EnvironmentFaultError: A file has gone or changed since the items were read.
    """
    checks = cast("Sequence[Fields]", item.content["checks"])
    files = cast("Sequence[dict[str, str]]", item.content["files"])
    sources = [entry for check in checks if check["type"] in {"python", "command"} for entry in check["files"]]
    return Secrets(
        answers=tuple(answer for check in checks for answer in _answers(check)),
        inputs=(str(item.content["prompt"]), *_texts(files, attachments)),
        checks=(*(text for check in checks for text in _criteria(check)), *_texts(sources, attachments)),
    )


def _answers(check: Fields) -> Iterator[str]:
    if check["type"] == "choice":
        yield from (check["choices"][label] for label in check["answers"])
        return
    yield from check.get("answers", ())
    yield from (value if isinstance(value, str) else json.dumps(value) for value in check.get("fields", {}).values())
    if "against" in check:
        yield check["against"]


def _criteria(check: Fields) -> Iterator[str]:
    yield from check.get("criteria", ())
    yield from (check[name] for name in ("pattern", "function") if name in check)
    if "command" in check:
        yield " ".join(check["command"])


def _texts(entries: Sequence[Any], attachments: Attachments) -> Iterator[str]:
    for entry in entries:
        try:
            yield attachments.read(entry).decode()
        except UnicodeDecodeError:
            continue
