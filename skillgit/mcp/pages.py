"""Long lists page by page: what comes next stays the same while a run is trained."""

from __future__ import annotations

import base64
import hmac
import json
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Final, TypeVar

from skillgit.app.history.log import LogRequest, log
from skillgit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillgit.app.workspace.context import Context

_Result = TypeVar("_Result")
_Row = TypeVar("_Row")
_SIGNED: Final = 16  # bytes of a cursor that say that this server made it


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    tip: str  # the newest event when the first page was read, behind which later pages cut history off
    offset: int


class Pager:
    """Gives lists in pages; a cursor is good for the question that it came with, and for this server only."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._key = context.entropy(32)

    def page(
        self,
        question: Sequence[object],
        cursor: str,
        limit: int,
        ask: Callable[[Context], _Result],
        rows_of: Callable[[_Result], Sequence[_Row]],
    ) -> tuple[_Result, Sequence[_Row], str]:
        """Return the result of ``ask``, a page of its rows, and the cursor of the next page, empty at the end."""
        mark = self._read(cursor, question) if cursor else _Mark(tip=self._tip(), offset=0)
        result = ask(replace(self._context, as_of=mark.tip) if cursor else self._context)
        if not cursor and len(rows_of(result)) > limit and self._tip() != mark.tip:
            # an event came in between; the pages to come do not know it
            result = ask(replace(self._context, as_of=mark.tip))
        rows = rows_of(result)
        end = mark.offset + limit
        rest = self._written(replace(mark, offset=end), question) if len(rows) > end and mark.tip else ""
        return result, rows[mark.offset : end], rest

    def _tip(self) -> str:
        rows = log(self._context, LogRequest(all_runs=True, limit=1)).rows
        return rows[0].commit if rows else ""

    def _written(self, mark: _Mark, question: Sequence[object]) -> str:
        data = json.dumps([mark.tip, mark.offset]).encode()
        return base64.urlsafe_b64encode(self._signature(data, question) + data).decode()

    def _read(self, cursor: str, question: Sequence[object]) -> _Mark:
        try:
            content = base64.urlsafe_b64decode(cursor.encode("ascii"))
        except (UnicodeEncodeError, ValueError):
            content = b""
        signature, data = content[:_SIGNED], content[_SIGNED:]
        if not hmac.compare_digest(signature, self._signature(data, question)):
            raise UsageError(
                "this cursor belongs to another question or to another server", hint="ask again without a cursor"
            )
        tip, offset = json.loads(data)
        return _Mark(tip=tip, offset=offset)

    def _signature(self, data: bytes, question: Sequence[object]) -> bytes:
        text = json.dumps([data.decode("latin-1"), *question]).encode()
        return hmac.new(self._key, text, sha256).digest()[:_SIGNED]
