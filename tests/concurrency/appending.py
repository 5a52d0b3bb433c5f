"""A process that trains: ``appending.py REPOSITORY EVENTS PROGRESS``.

After each event it says in the file PROGRESS, which is replaced whole, what every reader must see from now on.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from bench.histories.story import gain_of, run_story

from skillgit.store.event_writer import RunWriter
from skillgit.store.lock import RunLock
from skillgit.store.repo import Repo

RUN = "demo"


def main() -> None:
    folder, events, progress = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    repo, version = Repo.discover(folder), 0
    with RunLock(repo, RUN, lambda: datetime.now(UTC)):
        writer = RunWriter(repo, RUN, lambda: datetime.now(UTC))
        for number, chapter in enumerate(islice(run_story(RUN, 3, gain_of(events)), events), start=1):
            recorded = writer.append(chapter.event, chapter.skill, chapter.evidence)
            version = version if (made := recorded.event.new_version) is None else made
            young = progress.with_suffix(".young")
            young.write_text(json.dumps({"events": number, "commit": recorded.commit, "version": version}))
            os.replace(young, progress)  # noqa: PTH105 - one move, seen whole or not at all


if __name__ == "__main__":
    main()
