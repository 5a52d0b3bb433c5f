"""The documents of OfficeQA: where they are, which of them an item names, and which of them the target may see."""

from __future__ import annotations

import hashlib
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from urllib.parse import parse_qs, urlsplit

from skillgit.domain.ids import short_digest
from skillgit.errors import ConfigError, DataError, EnvironmentFaultError

PAGE_CHARACTERS = 24_000
ALL_CHARACTERS = 80_000
_MARK = re.compile(r"^[-=]{3,} *PAGE +(\d+) *[-=]{3,}[ \t]*$", re.MULTILINE)


def pages_of(where: str, sources: Sequence[str], addresses: Sequence[str]) -> list[tuple[str, int]]:
    """Return document and page of each address, such as ``…?page=15``: one for each document, or any number for one."""
    documents = list(sources) * len(addresses) if len(sources) == 1 else list(sources)
    if not addresses or len(documents) != len(addresses):
        problem = f"{where} has {len(addresses)} source_docs for {len(sources)} source_files"
        raise DataError(problem, hint="env.oracle_pages needs one for each")
    return [(document, _page(where, address)) for document, address in zip(documents, addresses, strict=True)]


def _page(where: str, address: str) -> int:
    query = parse_qs(urlsplit(address).query)
    number = next((query[key][0] for key in ("page", "pagenum", "page_id") if key in query), "")
    if not (number.isascii() and number.isdigit()):
        raise DataError(f"{where}: {address[:80]} names no page", hint="env.oracle_pages needs ?page=NUMBER")
    return int(number)


def page_text(where: str, corpus: Corpus, document: str, number: int) -> str:
    pieces = _MARK.split(corpus.text(document))
    pages = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if str(number) not in pages:
        problem = f"has no page {number}" if pages else "does not mark its pages"
        message = f"{where}: {document} {problem}"
        raise DataError(message, hint="env.oracle_pages needs texts with lines like '--- PAGE 15 ---'")
    return pages[str(number)].strip()


def oracle(where: str, corpus: Corpus, references: Sequence[tuple[str, int]]) -> str:
    """Return the pages ``references`` as the target reads them, each and all of them cut to their limits."""
    sections, budget = [], ALL_CHARACTERS
    for document, number in dict.fromkeys(references):
        text = page_text(where, corpus, document, number)[: min(PAGE_CHARACTERS, budget)]
        budget -= len(text)
        if text:
            sections.append(f'<page document="{document}" number="{number}">\n{text}\n</page>')
    return "\n\n".join(sections)


SUFFIXES = (".txt", ".md")
_TRANSFORMED = "transformed"
"""The folder in which the published corpus keeps its texts next to other forms of the same documents."""


class Corpus:
    """A folder of text documents; of one with the folder ``transformed``, only that counts."""

    def __init__(self, folder: Path) -> None:
        inner = folder / _TRANSFORMED
        self.folder = (inner if inner.is_dir() else folder).resolve()
        self._names: tuple[str, ...] | None = None
        self._stems: dict[str, list[str]] = {}
        self._digests: dict[str, str] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of all documents in the folder, in a fixed order."""
        if self._names is None:
            paths = (path for path in self.folder.rglob("*") if path.suffix in SUFFIXES and path.is_file())
            self._names = tuple(sorted(path.relative_to(self.folder).as_posix() for path in paths))
            if not self._names:
                problem = f"there is no document in {self.folder}"
                raise DataError(problem, hint="set env.docs_dir to the folder of the *.txt or *.md files")
            for name in self._names:
                self._stems.setdefault(PurePosixPath(name).stem, []).append(name)
        return self._names

    def refuse_keys(self, data: Sequence[Path]) -> None:
        """Check that no data file is among the documents, where the target could read its answers."""
        for path in (path.resolve() for path in data):
            if path.is_relative_to(self.folder):
                raise ConfigError(
                    f"the data at {path} are in the folder of the documents, where the target would find the answers",
                    hint="move the documents into a folder of their own, and set env.docs_dir to it",
                )

    def refuse_closed(self) -> None:
        """Check that every user of this machine may read the documents; tools that root starts run as nobody."""
        paths = [self.folder, *(self.folder / name for name in self.names)]
        folders = {folder for path in paths[1:] for folder in path.parents if folder.is_relative_to(self.folder)}
        permissions = dict.fromkeys(paths, stat.S_IROTH) | dict.fromkeys(folders, stat.S_IROTH | stat.S_IXOTH)
        unreadable = [path for path, bits in permissions.items() if path.stat().st_mode & bits != bits]
        if unreadable:
            problem = f"the tools, which do not run as root, cannot read {unreadable[0]}"
            raise ConfigError(problem, hint=f"chmod -R o+rX {self.folder}")

    def find(self, where: str, name: str) -> str:
        """Return the path of the document that an item calls ``name``, with its folders or without, in any format."""
        if name in self.names:
            return name
        candidates = self._stems.get(PurePosixPath(name).stem, [])
        if len(candidates) == 1:
            return candidates[0]
        wrong = f"there is no document {name}"
        if candidates:
            wrong = f"{len(candidates)} documents are called {name}: {', '.join(candidates)},"
        raise DataError(f"{where}: {wrong} in {self.folder}", hint="set env.docs_dir, or fix source_files")

    def text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            problem = f"document {name} cannot be read: {error.strerror}"
            raise EnvironmentFaultError(problem, hint="check the folder") from error

    def digest(self, own: Sequence[str]) -> str:
        """Identify the bytes of the documents ``own``, and all others by their names and sizes."""
        if "" not in self._digests:
            self._digests[""] = short_digest([(name, (self.folder / name).stat().st_size) for name in self.names])
        for name in own:
            if name not in self._digests:
                self._digests[name] = hashlib.sha256(self.text(name).encode()).hexdigest()
        return short_digest([self._digests[name] for name in ("", *own)])

    @contextmanager
    def shown(self, names: Sequence[str]) -> Iterator[Path]:
        """Make a folder that holds the documents ``names`` alone, for as long as it is looked into."""
        with TemporaryDirectory(prefix="skillgit-documents-") as scratch:
            folder = Path(scratch).resolve()
            folder.chmod(0o755)  # who looks into it is another user
            for name in names:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                try:
                    shutil.copyfile(self.folder / name, folder / name)
                except OSError as error:
                    problem = f"document {name} cannot be copied: {error.strerror}"
                    raise EnvironmentFaultError(problem, hint="check the folder and the disk") from error
            yield folder
