"""Make a task of Debian's archive: the record of a package, to be answered with a form of two of its tags.

The labels are debtags, which volunteers gave the packages: what a package is for those who install it, and the language
that it is written in. ``apt-cache dumpavail`` is read, or its text::

    python tests/bench/real/tasks/package_facets.py FOLDER [--from dumpavail.txt]
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

from available import Package, packages
from drawing import DUMMY, Candidate, Source, Task, main

LICENCE = (
    "Names, summaries, dependencies and tags are metadata of the Debian archive; the summaries have the licences of "
    "their packages, all of which Debian distributes."
)
FACETS = ("role", "implemented-in")
SOURCES = 12
"""A pair of tags is drawn if so many source packages have it: what a few have is no convention."""
DEPENDENCIES = 10
"""A record with more of them is left out, for it would be cut."""
_UNKNOWN = "TODO"  # what a tag says that nobody has decided


def facets(package: Package) -> dict[str, str]:
    """Return the two tags of a package; none unless it has one of each."""
    tags: dict[str, list[str]] = defaultdict(list)
    for tag in re.split(r"[,\s]+", package.fields.get("Tag", "")):
        facet, _, value = tag.partition("::")
        tags[facet].append(value)
    form = {facet: tags[facet][0] for facet in FACETS if len(tags[facet]) == 1}
    return form if len(form) == len(FACETS) and _UNKNOWN not in form.values() else {}


def dependencies(package: Package) -> list[str]:
    """Return the names of the packages that it depends on; of alternatives, the first."""
    terms = package.fields.get("Depends", "").replace("\n", " ").split(",")
    return [match[0] for term in terms if (match := re.match(r"[^\s:(|]+", term.strip()))]


def read(path: Path | None) -> Source:
    available, records = packages(path)
    forms = [(package, form) for package in records if not DUMMY.search(package.summary) and (form := facets(package))]
    origins: dict[str, set[str]] = defaultdict(set)
    for package, form in forms:
        origins["/".join(form.values())].add(package.source)
    candidates = []
    for package, form in forms:
        stratum, needs = "/".join(form.values()), dependencies(package)
        if len(origins[stratum]) < SOURCES or len(needs) > DEPENDENCIES:
            continue
        record = {"Package": package.name, "Summary": package.summary, "Depends": ", ".join(needs) or "nothing"}
        candidates.append(
            Candidate(
                key=package.name,
                origin=package.source,
                stratum=stratum,
                row={
                    "question": "\n".join(f"{name}: {value}" for name, value in record.items()),
                    "checks": [{"type": "json", "fields": form}],
                },
                provenance=package.provenance,
            )
        )
    return available.source(licence=LICENCE, candidates=candidates)


TASK = Task(
    name="package-facets",
    title="Package facets",
    description="Gives the debtags of a Debian package. Use when a package needs its role and its language.",
    instruction=(
        "Give the debtags of the package as a JSON object with two fields: role, such as program or plugin, "
        "and implemented-in, such as c or perl."
    ),
    read=read,
)

if __name__ == "__main__":
    sys.exit(main(TASK))
