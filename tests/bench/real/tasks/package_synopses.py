"""Make a task of texts with checks: a package's long description, to be answered with its one-line synopsis.

The checks are rules of Debian's policy and developer's reference that a program can look at, and the words that the
answer has in common with the synopsis that the package's maintainer wrote. The list of dpkg is read, or one like it::

    python tests/bench/real/tasks/package_synopses.py FOLDER [--from /var/lib/dpkg/status]
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from drawing import DUMMY, Candidate, Missing, Source, Task, main, paragraphs

LICENCE = "Each description is part of the package that SOURCE.json names, and has that package's licence."
STATUS = Path("/var/lib/dpkg/status")
SHORTEST, LONGEST = 120, 500
"""Characters of a description that are shown: whole paragraphs, but for a first one that is longer."""
WORDS = 0.3
"""The overlap of words with the maintainer's synopsis that passes."""


def checks(name: str, synopsis: str) -> Iterator[dict[str, object]]:
    """Yield what a synopsis is checked for; a rule that the maintainer's own breaks is left out."""
    rules = [
        ("line", r"[^\n]{1,79}", "A synopsis is one line of less than 80 characters."),
        ("article", r"(?i)(?!(?:an?|the)\s)[\s\S]*", "A synopsis does not begin with an article."),
        ("stop", r"[\s\S]*[^.!\s]", "A synopsis is no sentence and has no full stop."),
        ("capital", r"[^A-Z][\s\S]*", "A synopsis begins with a small letter unless it begins with a name."),
        ("name", rf"(?i)(?![\s\S]*\b{re.escape(name)}\b)[\s\S]*", "A synopsis does not repeat the package's name."),
    ]
    for rule, pattern, message in rules:
        if re.fullmatch(pattern, synopsis):
            yield {"type": "regex", "name": rule, "pattern": pattern, "match": "full", "message": message}
    yield {"type": "f1", "name": "words", "answer": synopsis, "pass": WORDS}


def shown(description: str) -> str:
    """Return the first paragraphs of a long description; "" if there is too little of it."""
    text = ""
    for paragraph in re.split(r"\n\.?\n|\n\.$", description.replace("\n.\n", "\n\n")):
        words = " ".join(paragraph.split())
        if text and len(text) + len(words) > LONGEST:
            break
        text = f"{text}\n\n{words}".strip()
    text = text if len(text) <= LONGEST else text[:LONGEST].rpartition(" ")[0] + " …"
    return text if len(text) >= SHORTEST else ""


def read(path: Path | None) -> Source:
    path = path or STATUS
    if not path.is_file():
        raise Missing(f"There is no {path}: run this on Debian, or name a list of dpkg with --from.")
    content = path.read_text(encoding="utf-8", errors="replace")
    candidates: dict[str, Candidate] = {}
    for fields in paragraphs(content):
        name, source = fields.get("Package", ""), fields.get("Source", fields.get("Package", "")).partition(" ")[0]
        synopsis, _, long = fields.get("Description", "").partition("\n")
        section, description = fields.get("Section", "").rpartition("/")[2], shown(long)
        if not (name and section and synopsis and description) or DUMMY.search(synopsis):
            continue
        candidates[name] = Candidate(
            key=name,
            origin=source,
            stratum=section,
            row={
                "question": f"Package: {name}\n\n{description}",
                "checks": list(checks(name, synopsis)),
                "extract": "tag",
            },
            provenance={
                "package": name,
                "source": source,
                "version": fields.get("Version", ""),
                "sha256": sha256(fields["Description"].encode()).hexdigest(),
            },
        )
    if not candidates:
        raise Missing(f"No package in {path} has a long description.")
    return Source(
        name="the list of installed packages",
        digest=sha256(content.encode()).hexdigest(),
        licence=LICENCE,
        candidates=list(candidates.values()),
    )


TASK = Task(
    name="package-synopsis",
    title="Package synopsis",
    description="Writes the one-line synopsis of a Debian package. Use when a package has a long description only.",
    instruction="Write the synopsis of the package from its long description, as one line.",
    read=read,
)

if __name__ == "__main__":
    sys.exit(main(TASK))
