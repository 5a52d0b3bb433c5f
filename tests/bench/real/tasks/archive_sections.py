"""Make a task of Debian's archive: name and summary of a package, to be answered with its section.

Nothing here makes the labels: a section is what the archive says. ``apt-cache dumpavail`` is read, or its text::

    python tests/bench/real/tasks/archive_sections.py FOLDER [--from dumpavail.txt]
"""

from __future__ import annotations

import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from shutil import which

from drawing import Candidate, Missing, Source, Task, main, paragraphs

LICENCE = (
    "Names, summaries and sections are metadata of the Debian archive; the summaries have the licences of their "
    "packages, all of which Debian distributes."
)
SAME_FOR_ALL = {"debug", "oldlibs"}
"""Sections of detached symbols and transitional packages, which a word of every summary gives away."""
_DUMMY = re.compile(r"\b(?:transitional|dummy) |\bdebug(?:ging)? symbols\b", re.IGNORECASE)


def available(path: Path | None) -> str:
    """Return the text of ``apt-cache dumpavail``."""
    if path is not None:
        return path.read_text(encoding="utf-8")
    if which("apt-cache") is None:
        raise Missing("There is no apt-cache here: run this on Debian, or name the text of its dumpavail with --from.")
    done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=False)
    if done.returncode:
        raise Missing(f"apt-cache dumpavail failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()


def read(path: Path | None) -> Source:
    text = available(path)
    by_name: dict[str, Candidate] = {}
    for fields in paragraphs(text):
        name, summary = fields.get("Package", ""), fields.get("Description", "").partition("\n")[0]
        section = fields.get("Section", "").rpartition("/")[2]
        # A package from elsewhere is not in the archive's pool, and its section follows no rule of the archive.
        in_pool = fields.get("Filename", "").startswith("pool/")
        if not (name and summary and section and in_pool) or section in SAME_FOR_ALL or _DUMMY.search(summary):
            continue
        by_name[name] = Candidate(
            key=name,
            origin=fields.get("Source", name).partition(" ")[0],
            stratum=section,
            row={"question": f"Package: {name}\nSummary: {summary}", "answer": section},
            provenance={
                "package": name,
                "version": fields.get("Version", ""),
                "sha256": fields.get("SHA256", ""),
            },
        )
    if not by_name:
        raise Missing("The archive's lists have no package: run apt-get update first.")
    return Source(
        name="apt-cache dumpavail" if path is None else path.name,
        digest=sha256(text.encode()).hexdigest(),
        licence=LICENCE,
        candidates=list(by_name.values()),
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
