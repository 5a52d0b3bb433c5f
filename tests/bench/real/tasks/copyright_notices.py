"""Make a task of Debian's files of copyright: a notice and the start of its licence, to be answered with a form.

The labels are those of the packages' maintainers, in the machine-readable form of these files (DEP-5): the short name
of the licence, the first holder and the years. The packages installed on this machine are read, or on another one::

    python tests/bench/real/tasks/copyright_notices.py FOLDER [--from ROOT]
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from drawing import Candidate, Missing, Source, Task, main, paragraphs
from installed import ROOT, notices

LICENCE = (
    "Each notice is a quotation from the copyright file of the package that SOURCE.json names, and has that package's "
    "licence; texts of licences may be distributed as they are."
)
EXCERPT = 560
"""Characters of a licence that are shown: so many that the third clause of a BSD licence begins in them."""
SOURCES = 3
"""A short name is drawn if so many source packages have it: what one writes alone is no convention."""
_FAMILIES = {"gpl": "GPL", "lgpl": "LGPL", "agpl": "AGPL", "gfdl": "GFDL", "gfdl-niv": "GFDL-NIV"}
_NAMES = {
    "mit": "Expat",  # DEP-5: there are many licences of that name, and this one is called Expat
    "expat": "Expat",
    "isc": "ISC",
    "zlib": "Zlib",
    "x11": "X11",
    "public-domain": "public-domain",
    "pd": "public-domain",
    "bsl": "BSL-1.0",
    "bsl-1": "BSL-1.0",
    "boost-1": "BSL-1.0",
    "apache": "Apache-2.0",
    "apache-2": "Apache-2.0",
    "mpl-1.1": "MPL-1.1",
    "mpl-2": "MPL-2.0",
    "cc0": "CC0-1.0",
    "cc0-1": "CC0-1.0",
    "artistic": "Artistic",
    "ofl-1.1": "OFL-1.1",
    "fsfap": "FSFAP",
    "unicode": "Unicode",
    "bsd-2": "BSD-2-clause",
    "bsd-2-clause": "BSD-2-clause",
    "bsd-3": "BSD-3-clause",
    "bsd-3-clause": "BSD-3-clause",
    "bsd-4-clause": "BSD-4-clause",
}
_YEARS = r"(?:19|20)\d\d(?:\s*[-,]\s*(?:(?:19|20)\d\d|\d\d(?!\d)))*"
_LINE = re.compile(
    rf"(?:Copyright:?\s*)?(?:\([cC]\)|©)?\s*(?P<years>{_YEARS}),?\s+(?:by\s+)?"
    r"(?P<holder>[^\W\d_][^<>@\d:;/*]{2,60}?)\s*(?:<[^<>]*>)?(?:[.,]? All rights reserved)?\.?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    copyright: str
    licence: str
    text: str


def short_name(name: str) -> str:
    """Return a licence's short name in the spelling of DEP-5; "" for one that it does not know, or no version."""
    folded = re.sub(r"\s+", "-", name.strip().lower()).replace("-or-later", "+").removesuffix("-only")
    folded = re.sub(r"\.0(?=\+?$)", "", folded)
    family, _, version = folded.rpartition("-")
    if family in _FAMILIES and re.fullmatch(r"\d(?:\.\d)?\+?", version):
        return f"{_FAMILIES[family]}-{version}"
    return _NAMES.get(folded, "")


def of_files(text: str) -> Iterator[Notice]:
    """Yield the notices of a file of copyright whose licences it has in full."""
    if "copyright-format" not in text[:1000]:
        return
    stanzas = list(paragraphs(text))
    texts: dict[str, str] = {}
    for stanza in stanzas:
        name, _, body = stanza.get("License", "").partition("\n")
        # What is said of Debian's own copies of licences is no part of a licence, and names it.
        body = re.split(r"(?:On|In) Debian[\w/ ]* (?:systems?|machines?)", body)[0]
        if body.strip():
            texts.setdefault(name.strip(), " ".join(line for line in body.split() if line != "."))
    for stanza in stanzas:
        name = stanza.get("License", "").partition("\n")[0].strip()
        if "Files" in stanza and "Copyright" in stanza and len(texts.get(name, "")) >= EXCERPT // 6:
            yield Notice(copyright=stanza["Copyright"], licence=name, text=texts[name])


def form(notice: Notice) -> dict[str, str]:
    """Return the fields of a notice; none if a line of it can be read in more than one way."""
    licence = short_name(notice.licence)
    lines = [line.strip() for line in notice.copyright.splitlines() if line.strip()]
    matches = [match for line in lines if (match := _LINE.fullmatch(line))]
    if not licence or not 1 <= len(lines) <= 4 or len(matches) < len(lines):
        return {}
    years: list[int] = []
    for match in matches:
        for digits in re.findall(r"\d+", match["years"]):
            years.append(int(digits) if len(digits) == 4 else years[-1] // 100 * 100 + int(digits))
    first, last = min(years), max(years)
    holder = matches[0]["holder"].rstrip(" .,")
    return {"licence": licence, "holder": holder, "years": str(first) if first == last else f"{first}-{last}"}


def shown(notice: Notice) -> dict[str, str]:
    """Return what is asked about, and apart from it the start of the licence, which many notices have in common."""
    lines = "\n".join(line.strip() for line in notice.copyright.splitlines() if line.strip())
    excerpt = notice.text if len(notice.text) <= EXCERPT else notice.text[:EXCERPT].rpartition(" ")[0] + " …"
    return {"context": excerpt, "question": lines}


def read(path: Path | None) -> Source:
    root = path or ROOT
    candidates: dict[str, Candidate] = {}
    origins: dict[str, set[str]] = defaultdict(set)
    digest = sha256()
    for package, text in notices(root):
        digest.update(text.encode())
        for notice in of_files(text):
            if not (fields := form(notice)):
                continue
            row = shown(notice)
            key = "\n\n".join(row.values())
            origins[fields["licence"]].add(package.source)
            candidates.setdefault(
                key,
                Candidate(
                    key=key,
                    origin=package.source,
                    stratum=fields["licence"],
                    row={**row, "checks": [{"type": "json", "fields": fields}]},
                    provenance=package.provenance(text),
                ),
            )
    if not candidates:
        raise Missing(
            f"No package has a machine-readable file of copyright below {root / 'usr/share/doc'}: some images of "
            "containers leave these files out."
        )
    return Source(
        name="files of copyright of installed packages",
        digest=digest.hexdigest(),
        licence=LICENCE,
        candidates=[item for item in candidates.values() if len(origins[item.stratum]) >= SOURCES],
    )


TASK = Task(
    name="copyright-notice",
    title="Copyright notice",
    description="Reads a notice of copyright into a form. Use when the licence of files is to be recorded.",
    instruction=(
        "Read the notice and the start of its licence, and give a JSON object with the fields licence, holder and years."
    ),
    read=read,
)

if __name__ == "__main__":
    sys.exit(main(TASK))
