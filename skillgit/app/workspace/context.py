"""Where the outside world enters: working directory, environment variables, clock and chance."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from skillgit.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything from outside that a use case may look at."""

    directory: Path  # where to look for the repository; relative paths refer to it
    environ: Mapping[str, str]
    clock: Callable[[], datetime]  # returns the time, in UTC
    entropy: Callable[[int], bytes]  # returns so many random bytes
    skill: str = ""  # the skill that is meant, by name or path; empty where none is named
    remark: Callable[[str], None] = field(default=lambda _: None, compare=False)  # says to the user what work waits for
    as_of: str = ""  # the revision after which history is cut off, for use cases that only read; empty for all of it

    @classmethod
    def from_process(cls, directory: Path | None = None) -> Context:
        """Return this process's context; ``SKILLGIT_CLOCK`` (RFC 3339) stops the clock, for equal commit ids."""
        where = (directory or Path()).resolve()
        if not where.is_dir():
            raise UsageError(f"there is no folder {where}", hint="check the path after -C")
        return cls(
            directory=where,
            environ=dict(os.environ),
            clock=_clock(os.environ.get("SKILLGIT_CLOCK", "")),
            entropy=os.urandom,
        )


def _clock(instant: str) -> Callable[[], datetime]:
    if not instant:
        return lambda: datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(instant)
    except ValueError:
        raise UsageError(
            f"SKILLGIT_CLOCK is '{instant}', not a time", hint="write it like 2026-11-21T12:00:00Z"
        ) from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return lambda: moment.astimezone(UTC)
