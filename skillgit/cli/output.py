"""The only writer of stdout: data, and nothing else.

Text for people follows the terminal's width, colour and encoding. Machine formats (``--json``, ``--jsonl``,
``--plain``, ``-z``) are UTF-8 whatever the locale is, complete, and change only with their schema number. Help and
completion scripts are written by click.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import contextmanager
from enum import StrEnum
from typing import IO, TYPE_CHECKING

from skillgit.cli.render.documents import named_values, plain_value
from skillgit.domain.untrusted.text import escaped_json, visible
from skillgit.errors import SkillgitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from skillgit.cli.pager import Pager
    from skillgit.cli.screen import Screen


class Form(StrEnum):
    """How data is written."""

    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"
    PLAIN = "plain"
    NUL = "nul"


class Output:
    """Writes data to stdout, or to a pager in front of it.

    Args:
        stream: Where bytes go.
        screen: What is known of it.
        encoding: The encoding of text for people.
        pager: Starts the pager, or returns None where there shall be none.
    """

    def __init__(self, stream: IO[bytes], *, screen: Screen, encoding: str, pager: Callable[[], Pager | None]) -> None:
        self.screen = screen
        self._stream = stream
        self._encoding = encoding
        self._pager = pager

    def text(self, lines: Iterable[str]) -> None:
        """Write lines for people."""
        for line in lines:
            self._write(f"{self.screen.shown(line)}\n".encode(self._encoding, errors="replace"))

    def document(self, schema: str, body: object) -> None:
        """Write one JSON document: a dataclass or a mapping, with the name of its shape in front."""
        document = {"schema": f"skillgit.{schema}"} | named_values(body)
        self._write(f"{escaped_json(json.dumps(document, indent=2, ensure_ascii=False))}\n".encode())

    def records(self, rows: Iterable[object]) -> None:
        """Write one JSON object a line, each as soon as it is there."""
        for row in rows:
            text = escaped_json(json.dumps(plain_value(row), ensure_ascii=False, separators=(",", ":")))
            self._write(f"{text}\n".encode())

    def table(self, rows: Iterable[Sequence[object]], *, nul: bool = False) -> None:
        """Write rows of tab-separated cells that end in a newline, or in NUL."""
        for row in rows:
            self._write(("\t".join(map(_cell, row)) + ("\0" if nul else "\n")).encode())

    def listing(
        self,
        form: Form,
        rows: Sequence[object],
        *,
        schema: str,
        name: str,
        columns: Sequence[str],
        head: Mapping[str, object] | None = None,
    ) -> None:
        """Write a list of dataclasses in one of the machine formats.

        Args:
            form: Which one.
            rows: The dataclasses.
            schema: Name and number of the document's shape.
            name: The field of the document that holds the rows.
            columns: The fields of a row that are columns, in their order.
            head: Further fields of the document.
        """
        if form is Form.JSON:
            self.document(schema, {**(head or {}), name: rows})
        elif form is Form.JSONL:
            self.records(rows)
        else:
            self.table(([getattr(row, column) for column in columns] for row in rows), nul=form is Form.NUL)

    def raw(self, data: bytes) -> None:
        """Write bytes as they are; a terminal gets them as text, and what would act on it is shown."""
        if not self.screen.terminal:
            self._write(data)
        elif data:
            self.text(data.decode(errors="replace").removesuffix("\n").split("\n"))

    @contextmanager
    def paged(self) -> Iterator[None]:
        """Show what is written inside in the pager, if there is one."""
        pager = self._pager()
        if pager is None:
            yield
            return
        stdout, self._stream = self._stream, pager.stream
        try:
            yield
        except BrokenPipeError:
            pass  # the reader has seen enough and left the pager
        finally:
            self._stream = stdout
            pager.close()

    def flush(self) -> None:
        """Hand everything to the operating system, so that a failure is noticed while it can still be told."""
        with _named_failure():
            self._stream.flush()

    def _write(self, data: bytes) -> None:
        with _named_failure():
            # With PYTHONUNBUFFERED stdout is a raw file, which may take a part only: of a pipe whose reader left, say.
            while data:
                data = data[self._stream.write(data) :]


@contextmanager
def _named_failure() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise BrokenPipeError from error
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise SkillgitError(
            f"cannot write to stdout: {reason}", hint="check the disk, or the pipe's other end"
        ) from error


def _cell(value: object) -> str:
    plain = plain_value(value)
    if plain is None:
        return ""
    if isinstance(plain, bool):
        return "true" if plain else "false"
    if isinstance(plain, list):
        return ",".join(map(str, plain))
    # A cell must not end its row or its column.
    return visible(str(plain).replace("\t", " ").replace("\n", " "))
