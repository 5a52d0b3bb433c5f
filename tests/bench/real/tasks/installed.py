"""What is installed on a Debian system, from its files: packages, their sources, and their notices of copyright."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from drawing import Missing, paragraphs

ROOT = Path("/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    name: str
    source: str
    version: str
    fields: Mapping[str, str]

    def provenance(self, text: str) -> dict[str, str]:
        """Return what a draw records of an item that was made of ``text``."""
        digest = sha256(text.encode()).hexdigest()
        return {"package": self.name, "source": self.source, "version": self.version, "sha256": digest}


def packages(root: Path) -> tuple[str, list[Package]]:
    """Return the text of dpkg's list below ``root``, and the packages in it by name."""
    path = root / "var/lib/dpkg/status"
    if not path.is_file():
        raise Missing(f"There is no {path}: run this on Debian, or name the root of a Debian system with --from.")
    text = path.read_text(encoding="utf-8", errors="replace")
    by_name = {
        fields["Package"]: Package(
            name=fields["Package"],
            source=fields.get("Source", fields["Package"]).partition(" ")[0],
            version=fields.get("Version", ""),
            fields=fields,
        )
        for fields in paragraphs(text)
        if "Package" in fields and fields.get("Status", "").endswith(" installed")
    }
    return text, [by_name[name] for name in sorted(by_name)]


def notices(root: Path) -> Iterator[tuple[Package, str]]:
    """Yield each file of copyright below ``root``, with the first package that has it."""
    texts: set[str] = set()
    for package in packages(root)[1]:
        path = root / "usr/share/doc" / package.name / "copyright"
        if path.is_file() and (text := path.read_text(encoding="utf-8", errors="replace")) not in texts:
            texts.add(text)
            yield package, text
