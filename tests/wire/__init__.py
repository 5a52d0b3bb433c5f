"""A model server on the loopback: real HTTP, several providers' APIs, faults on order, and a log of what was asked.

    with wire_server(latency=0.05, faults=Faults(rate=0.1)) as wire:
        ...  # base URL of the OpenAI dialects: wire.url + "/v1"; of Anthropic's: wire.url
        assert [entry.role for entry in wire.log()] == [...]

``process=True`` runs it in a process of its own (measurements, and runs that are killed).
"""

from __future__ import annotations

from wire.batch_apis import BatchSettings
from wire.faults import KINDS, PASSING, Faults
from wire.handle import Wire, wire_server
from wire.server import Entry, Settings

__all__ = ["KINDS", "PASSING", "BatchSettings", "Entry", "Faults", "Settings", "Wire", "wire_server"]
