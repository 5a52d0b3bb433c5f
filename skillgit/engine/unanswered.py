"""Optimizer calls that will never be answered: their part of an event is left out, and the event says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillgit.engine import artifacts
from skillgit.plugin.redaction import redact

if TYPE_CHECKING:
    from skillgit.calls.client import Unanswered
    from skillgit.engine.session import Session


def unanswered(session: Session, *stages: str) -> str:
    """Return a sentence that says how many calls of ``stages`` will never be answered and why; empty if there are none.

    It speaks of the event in the making.
    """
    calls = [call for call in _calls(session) if call.stage in stages]
    if not calls:
        return ""
    counted = f"A call ({calls[0].stage})" if len(calls) == 1 else f"{len(calls)} calls ({', '.join(stages)})"
    return redact(f"{counted} will never be answered: {calls[0].reason}.")


def unanswered_file(session: Session) -> artifacts.Evidence:
    """Return ``unanswered.json`` with a row for each such call of the event in the making; nothing without any."""
    rows = [{"stage": call.stage, "kind": call.kind.value, "reason": call.reason} for call in _calls(session)]
    return {"unanswered.json": artifacts.json_file(rows)} if rows else {}


def _calls(session: Session) -> list[Unanswered]:
    return [call for call in session.calls.unanswered if call.role == "optimizer"]
