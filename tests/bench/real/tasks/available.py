"""The packages that a Debian archive has, as apt knows them: ``apt-cache dumpavail``, or a file with its text."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from shutil import which

from drawing import Candidate, Missing, Source, paragraphs


@dataclass(frozen=True, slots=True, kw_only=True)
class Available:
    """The text that was read, and its name for people."""

    name: str
    text: str

    def source(self, *, licence: str, candidates: Sequence[Candidate]) -> Source:
        digest = sha256(self.text.encode()).hexdigest()
        return Source(name=self.name, digest=digest, licence=licence, candidates=candidates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    name: str
    source: str
    summary: str
    fields: Mapping[str, str]

    @property
    def section(self) -> str:
        """Return its section without the archive's component, such as ``contrib/``."""
        return self.fields.get("Section", "").rpartition("/")[2]

    @property
    def provenance(self) -> dict[str, str]:
        version, digest = self.fields.get("Version", ""), self.fields.get("SHA256", "")
        return {"package": self.name, "source": self.source, "version": version, "sha256": digest}


def packages(path: Path | None) -> tuple[Available, list[Package]]:
    """Return what is available, and the packages in it by name: those in the archive's pool, with a summary."""
    available = (
        _dumped()
        if path is None
        else Available(name=path.name, text=path.read_text(encoding="utf-8", errors="replace"))
    )
    by_name = {package.name: package for package in _in_pool(available.text)}
    if not by_name:
        raise Missing("The archive's lists have no package: run apt-get update first.")
    return available, [by_name[name] for name in sorted(by_name)]


def _in_pool(text: str) -> Iterator[Package]:
    for fields in paragraphs(text):
        name, summary = fields.get("Package", ""), fields.get("Description", "").partition("\n")[0]
        # A package from elsewhere is not in the pool, and follows no rule of the archive.
        if name and summary and fields.get("Filename", "").startswith("pool/"):
            yield Package(
                name=name, source=fields.get("Source", name).partition(" ")[0], summary=summary, fields=fields
            )


def _dumped() -> Available:
    if which("apt-cache") is None:
        raise Missing("There is no apt-cache here: run this on Debian, or name the text of its dumpavail with --from.")
    done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, check=False)
    if done.returncode:
        raise Missing(f"apt-cache dumpavail failed: {done.stderr.decode(errors='replace').strip()}")
    return Available(name="apt-cache dumpavail", text=done.stdout.decode(errors="replace"))
