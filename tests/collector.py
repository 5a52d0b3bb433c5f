"""A collector of traces on the loopback: it reads what arrives by OpenTelemetry's own messages and keeps it."""

from __future__ import annotations

import gzip
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from served import JsonHandler, listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A span, or an event of the span ``parent``."""

    name: str
    id: str
    parent: str
    facts: dict[str, Any]
    seconds: float = 0.0


@dataclass(slots=True)
class Collector:
    url: str = ""
    spans: list[Sent] = field(default_factory=list)
    events: list[Sent] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    arrived: Callable[[], object] = lambda: None  # called after each request
    answers: bool = True

    def take(self, path: str, body: bytes) -> None:
        self.bodies.append(body)
        if path.endswith("/v1/traces"):
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.spans += map(_span, scope.spans)
        else:
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                for scope in resource.scope_logs:
                    for record in scope.log_records:
                        facts = _facts(record.attributes)
                        self.events.append(
                            Sent(name=record.event_name, id="", parent=record.span_id.hex(), facts=facts)
                        )
        self.arrived()

    def die(self) -> None:
        """Answer no further request."""
        self.answers = False

    def named(self, name: str) -> list[Sent]:
        return [span for span in self.spans if span.name.split()[0] == name]


def environment(url: str) -> dict[str, str]:
    """Return the variables by which a command sends to the collector at ``url``."""
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "50"}


@contextmanager
def collector() -> Iterator[Collector]:
    """Collect while the block lasts, on a free port."""

    class Handler(JsonHandler, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            if not taken.answers:
                self.close_connection = True
                return
            body = self.rfile.read(int(self.headers["Content-Length"]))
            packed = self.headers.get("Content-Encoding") == "gzip"
            taken.take(self.path, gzip.decompress(body) if packed else body)
            self.send_json({})

    taken = Collector()
    with listening(Handler) as address:
        taken.url = address.removesuffix("/v1")
        yield taken


def _span(span: Any) -> Sent:
    return Sent(
        name=span.name,
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        facts=_facts(span.attributes),
        seconds=(span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
    )


def _facts(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
