"""The ``replay`` backend: answers with what was recorded, for tests, demonstrations and audits.

| setting | default | meaning |
|---|---|---|
| `model.replay_path` | required | a ledger of skillgit (`.git/skillgit/ledger.db`), or a file of JSON lines |

Roles, models and parameters stay as they were recorded: `model.target_backend: replay` with the same `model.target`. A
request is found by its model, parameters, messages and tools (``skillgit.plugin.exchange.request_digest``); one that
was not recorded is an error that says what was asked. Where the same request was recorded several times, the answers
come in the order of their recording, and from the first again after the last.

A line of a JSON lines file is ``{"request": DIGEST, "reply": TEXT}``, or in the place of the text an object with the
keys ``text``, ``finish_reason``, ``tool_calls`` (lists of id, name and arguments) and ``usage`` (``tokens_in``,
``tokens_out``, ``cached``, ``cache_written``, ``reasoning``; estimated at four characters a token where there is none).
A relative path refers to the folder of the configuration that it stands in, as all paths do. Nothing is written to the
record; what was recorded while it is replayed is not seen.
"""

from __future__ import annotations

from skillgit_backends.replay.backend import ReplayBackend

__all__ = ["ReplayBackend"]
