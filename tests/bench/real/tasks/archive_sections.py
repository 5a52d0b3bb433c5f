"""Make a task of Debian's archive: name and summary of a package, to be answered with its section.

Nothing here makes the labels: a section is what the archive says. ``apt-cache dumpavail`` is read, or its text::

    python tests/bench/real/tasks/archive_sections.py FOLDER [--from dumpavail.txt]
"""

from __future__ import annotations

import sys
from pathlib import Path

from available import packages
from drawing import DUMMY, Candidate, Source, Task, main

LICENCE = (
    "Names, summaries and sections are metadata of the Debian archive; the summaries have the licences of their "
    "packages, all of which Debian distributes."
)
SAME_FOR_ALL = {"debug", "oldlibs"}
"""Sections of detached symbols and transitional packages, which a word of every summary gives away."""


def read(path: Path | None) -> Source:
    text, records = packages(path)
    return text.source(
        licence=LICENCE,
        candidates=[
            Candidate(
                key=record.name,
                origin=record.source,
                stratum=record.section,
                row={"question": f"Package: {record.name}\nSummary: {record.summary}", "answer": record.section},
                provenance=record.provenance,
            )
            for record in records
            if record.section and record.section not in SAME_FOR_ALL and not DUMMY.search(record.summary)
        ],
    )


TASK = Task(
    name="archive-section",
    title="Archive section",
    description=(
        "Names the section of the Debian archive that a package belongs to. Use when a package needs a section."
    ),
    instruction=(
        "Say in which section of the Debian archive the package belongs. Answer with the name of the section alone."
    ),
    read=read,
)

if __name__ == "__main__":
    sys.exit(main(TASK))
