"""Traces: what is asked of models, as OpenTelemetry spans by its conventions for generative AI.

A span is sent for what a provider was sent and the ledger took down; an answer that the ledger had makes none. They lie
within spans of rollouts, of events and of the command. Off unless the standard variables name a collector, and then the
work never waits for it: spans leave in a thread, and a collector that takes none is said once.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from skillgit import __version__
from skillgit.calls.ledger import Charge, run_of
from skillgit.domain.cost import Cost
from skillgit.lazy import loaded_on_use
from skillgit.plugin.backend import Message, Reply, ToolCall
from skillgit.plugin.plugin_identity import install_command
from skillgit.plugin.redaction import Redactor, redact

if TYPE_CHECKING:
    from opentelemetry.trace import Span

    from skillgit.calls.route import CallOrder
    from skillgit.errors import BackendError

with loaded_on_use():
    from opentelemetry import _logs as events
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http import _log_exporter as event_exporter
    from opentelemetry.exporter.otlp.proto.http import trace_exporter
    from opentelemetry.sdk import _logs as event_sdk
    from opentelemetry.sdk import resources
    from opentelemetry.sdk import trace as trace_sdk
    from opentelemetry.sdk._logs import export as event_export
    from opentelemetry.sdk.trace import export as span_export

_ALL, _SPANS, _EVENTS = (f"OTEL_EXPORTER_OTLP{part}_ENDPOINT" for part in ("", "_TRACES", "_LOGS"))
CONTENT: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_WITH_CONTENT = frozenset({"true", "1", "span_only", "span_and_event"})
_FINISHES = {"tool_calls": "tool_call", "refusal": "content_filter"}  # where the conventions have another word
_PATIENCE_S, _LITTLE_PATIENCE_S = 5.0, 1.0  # for the last spans, and where some did not arrive before
_QUEUE: Final = 65536  # spans that may wait: local models answer faster than a collector takes them

Value = str | float | Sequence[str] | None
Facts = Mapping[str, Value]
Scored = Callable[[Mapping[str, object]], None]


class Traces:
    """The spans of one command; ``environ`` has the standard variables, and ``remark`` says what keeps spans back."""

    def __init__(self, environ: Mapping[str, str], remark: Callable[[str], None]) -> None:
        is_off = environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or environ.get("OTEL_TRACES_EXPORTER") == "none"
        self._endpoint = "" if is_off else environ.get(_SPANS) or environ.get(_ALL, "")
        wants_events = environ.get("OTEL_LOGS_EXPORTER") != "none"
        self._has_events = wants_events and bool(environ.get(_EVENTS) or environ.get(_ALL))
        self._environ, self._remark = environ, remark
        self._shows_content = environ.get(CONTENT, "").lower() in _WITH_CONTENT
        self._tracer: trace.Tracer | None = None
        self._logger: events.Logger | None = None
        self._ends: list[Callable[[], None]] = []
        self._faults, self._redactor = _Faults(), Redactor(())
        self._commands: dict[str, Span] = {}
        self._events: dict[str, Span] = {}
        self._entered = ""

    def enter(self, scope: str) -> None:
        """Begin the span of the event ``scope``, and end that of the one before it."""
        if self._endpoint and self._tracer is None:
            self._begin()
        if self._tracer is None:
            return
        self._redactor = Redactor.now()
        if self._entered != scope and self._entered in self._events:
            self._events.pop(self._entered).end()
        self._entered = scope
        self._event(scope)

    def within(self, scope: str) -> Span | None:
        """Return the span that what is done now for ``scope`` lies in; None where nothing is sent."""
        if self._tracer is None:
            return None
        current = trace.get_current_span()
        return current if current.get_span_context().is_valid else self._event(scope)

    # Calls

    def answered(self, order: CallOrder, reply: Reply, charge: Charge) -> None:
        """Send the span of a call that was answered."""
        if self._tracer is None or order.route.inner is not None:
            return
        finish = _FINISHES.get(reply.finish_reason, reply.finish_reason)
        attributes = {"gen_ai.response.model": reply.model, "gen_ai.response.finish_reasons": [finish]}
        if self._shows_content:
            parts = [*_texts(reply.text), *map(_tool_call, reply.tool_calls)]
            answer = [{"role": "assistant", "parts": parts, "finish_reason": finish}]
            attributes["gen_ai.output.messages"] = json.dumps(self._redactor.json(answer), ensure_ascii=False)
        self._call(order, {**attributes, **_usage(charge.cost)}, charge.cost.seconds)

    def failed(self, order: CallOrder, error: BackendError, charge: Charge | None, seconds: float) -> None:
        """Send the span of an attempt that failed; its tokens are those that were charged for it."""
        if self._tracer is None or order.route.inner is not None:
            return
        usage = _usage(charge.cost) if charge is not None and charge.cost.calls else {}
        self._call(order, usage, seconds, error)

    @contextmanager
    def agent(self, order: CallOrder) -> Iterator[Span | None]:
        """Send the span of an agent that works in the block; what it asks lies within."""
        if self._tracer is None:
            yield order.span
            return
        facts = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": order.route.backend_name}
        name = f"invoke_agent {order.route.backend_name}"
        with self._open(name, order.span or self._event(order.scope), {**facts, **self._asked(order)}) as span:
            yield span

    # Rollouts

    @contextmanager
    def rollout(self, scope: str, item: str, stage: str, sample: int) -> Iterator[Scored]:
        """Send the span of a rollout; what is yielded takes its outcome as a row."""
        if self._tracer is None:
            yield lambda _: None
            return
        facts: Facts = {"skillgit.item": item, "skillgit.stage": stage, "skillgit.sample": sample}
        with self._open("rollout", self.within(scope), facts) as span, trace.use_span(span):
            yield lambda row: self._evaluated(span, row)

    def _evaluated(self, span: Span, row: Mapping[str, object]) -> None:
        if "failed" in row:
            self._fail(span, str(row["kind"]), str(row["failed"]))
            return
        for name in ("hard", "soft"):
            score = float(str(row[name]))
            span.set_attribute(f"skillgit.{name}", score)
            if self._logger is None:
                continue
            facts: Facts = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": score}
            label = {"gen_ai.evaluation.score.label": "pass" if score == 1 else "fail"} if name == "hard" else {}
            why = {"gen_ai.evaluation.explanation": str(row["feedback"])} if self._shows_content else {}
            record = events.LogRecord(
                timestamp=time.time_ns(),
                context=trace.set_span_in_context(span),
                severity_number=events.SeverityNumber.INFO,
                event_name="gen_ai.evaluation.result",
                attributes=self._clean({**facts, **label, **why}),
            )
            self._logger.emit(record)

    # Spans

    def _event(self, scope: str) -> Span:
        if scope not in self._events:
            run = run_of(scope)
            if run not in self._commands:
                facts = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.workflow.name": run}
                self._commands[run] = self._start(f"invoke_workflow {run}", None, facts)
            event = scope.removeprefix(f"{run}/")
            facts = {"skillgit.run": run, "skillgit.event": event}
            self._events[scope] = self._start(event.partition("-")[0], self._commands[run], facts)
        return self._events[scope]

    def _call(self, order: CallOrder, facts: Facts, seconds: float, error: BackendError | None = None) -> None:
        end, request = time.time_ns(), order.request
        facts = {"gen_ai.operation.name": "chat", **self._asked(order), **facts}
        if self._shows_content:
            facts["gen_ai.input.messages"] = json.dumps(
                self._redactor.json([_message(message) for message in request.messages]), ensure_ascii=False
            )
        start, parent = end - int(seconds * 1e9), order.span or self._event(order.scope)
        span = self._start(f"chat {request.model}", parent, facts, kind=trace.SpanKind.CLIENT, start=start)
        if error is not None:
            self._fail(span, str(getattr(error, "status_code", None) or type(error).__name__), error.message)
        span.end(end)

    def _asked(self, order: CallOrder) -> dict[str, Value]:
        request, address = order.request, urlsplit(order.route.served.address)
        return {
            "gen_ai.provider.name": order.route.backend.info.provider or order.route.backend_name,
            "gen_ai.request.model": request.model,
            "gen_ai.request.max_tokens": request.max_output_tokens,
            "gen_ai.request.temperature": request.temperature,
            "gen_ai.request.top_p": request.top_p,
            "gen_ai.request.seed": request.seed,
            "server.address": address.hostname,
            "server.port": address.port,
            "skillgit.role": order.role,
            "skillgit.stage": order.stage,
            "skillgit.call": order.key,
        }

    def _start(
        self,
        name: str,
        parent: Span | None,
        facts: Facts,
        *,
        kind: trace.SpanKind | None = None,
        start: int | None = None,
    ) -> Span:
        if self._tracer is None:
            raise AssertionError(name)
        self._tell()
        # A command is a trace of its own: what a plug-in has under way is not its parent.
        context = trace.set_span_in_context(trace.INVALID_SPAN if parent is None else parent)
        kind = trace.SpanKind.INTERNAL if kind is None else kind
        return self._tracer.start_span(
            self._redactor.text(name), context, kind=kind, attributes=self._clean(facts), start_time=start
        )

    @contextmanager
    def _open(self, name: str, parent: Span | None, facts: Facts) -> Iterator[Span]:
        span = self._start(name, parent, facts)
        try:
            yield span
        except BaseException as error:
            self._fail(span, type(error).__name__, str(error))
            raise
        finally:
            span.end()

    def _fail(self, span: Span, kind: str, reason: str) -> None:
        span.set_attribute("error.type", kind)
        # Providers quote questions in their messages.
        span.set_status(trace.StatusCode.ERROR, self._redactor.text(reason) if self._shows_content else None)

    def _clean(self, facts: Facts) -> dict[str, str | float | Sequence[str]]:
        values = {name: value for name, value in facts.items() if value is not None and value != ""}
        return {name: self._redactor.text(value) if isinstance(value, str) else value for name, value in values.items()}

    # The collector

    def _begin(self) -> None:
        endpoint, self._endpoint = self._endpoint, ""
        host = urlsplit(endpoint).hostname or "the collector"
        try:
            self._connect()
        except ImportError:
            hint = f"install it with: {install_command('otel')}"
            self._remark(f"no traces are sent to {host}: OpenTelemetry is not installed; {hint}")
        except Exception as error:  # noqa: BLE001 - the SDK reads variables of its own, and no training fails for them
            self._remark(f"no traces are sent to {host}: {redact(str(error))}; check the variables OTEL_*")
        else:
            self._faults.host = host

    def _connect(self) -> None:
        environ = self._environ
        service = {} if environ.get("OTEL_SERVICE_NAME") else {"service.name": "skillgit"}
        resource = resources.Resource.create({**service, "service.version": __version__})
        queue = None if environ.get("OTEL_BSP_MAX_QUEUE_SIZE") else _QUEUE
        exporter = span_export.BatchSpanProcessor(trace_exporter.OTLPSpanExporter(), max_queue_size=queue)
        spans = trace_sdk.TracerProvider(resource=resource, shutdown_on_exit=False)
        spans.add_span_processor(exporter)
        self._ends.append(spans.shutdown)
        if self._has_events:
            logs = event_sdk.LoggerProvider(resource=resource, shutdown_on_exit=False)
            sender = event_exporter.OTLPLogExporter()
            logs.add_log_record_processor(event_export.BatchLogRecordProcessor(sender, max_queue_size=queue))
            self._ends.append(logs.shutdown)
            self._logger = logs.get_logger("skillgit", __version__)
        self._tracer = spans.get_tracer("skillgit", __version__)
        self._faults.listen()

    def _tell(self) -> None:
        # Here, and not where the fault is found: what says it to the user lives in this thread.
        if sentence := self._faults.news():
            self._remark(sentence)

    async def aclose(self) -> None:
        """End all spans, and wait a few seconds at most for the collector to take the last ones."""
        if self._tracer is None:
            return
        self._tell()
        for span in (*self._events.values(), *self._commands.values()):
            span.end()
        self._tracer = self._logger = None
        senders = [Thread(target=end, daemon=True) for end in self._ends]
        for sender in senders:
            sender.start()
        until = time.monotonic() + (_LITTLE_PATIENCE_S if self._faults.complaint else _PATIENCE_S)
        for sender in senders:
            await asyncio.to_thread(sender.join, max(0.0, until - time.monotonic()))
        if any(sender.is_alive() for sender in senders) and not self._faults.complaint:
            self._faults.complaint = "it does not answer"
        self._tell()
        self._faults.leave()


class _Faults(logging.Handler):
    """Keeps the first of what the SDK, which sends in a thread, has to complain of, and the rest off the terminal."""

    host = ""
    complaint = ""
    is_reported = False

    def listen(self) -> None:
        logger = logging.getLogger("opentelemetry")
        logger.addHandler(self)
        logger.propagate = False

    def leave(self) -> None:
        logger = logging.getLogger("opentelemetry")
        logger.removeHandler(self)
        logger.propagate = not logger.handlers

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING and not self.complaint:
            self.complaint = " ".join(redact(record.getMessage()).split())[:200]

    def news(self) -> str:
        """Return what to say, once."""
        if not self.complaint or self.is_reported:
            return ""
        self.is_reported = True
        return f"traces do not arrive at {self.host}, and the work goes on without them: {self.complaint}"


def _usage(cost: Cost) -> dict[str, Value]:
    return {
        "gen_ai.usage.input_tokens": cost.tokens_in,
        "gen_ai.usage.output_tokens": cost.tokens_out,
        "gen_ai.usage.cache_read.input_tokens": cost.cached or None,
        "gen_ai.usage.cache_creation.input_tokens": cost.cache_written or None,
        "gen_ai.usage.reasoning.output_tokens": cost.reasoning or None,
        "skillgit.usd": None if cost.unpriced else cost.usd,
    }


def _message(message: Message) -> dict[str, object]:
    if message.role == "tool":
        parts: list[dict[str, object]] = [
            {"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}
        ]
    else:
        parts = [*_texts(message.text), *map(_tool_call, message.tool_calls)]
    return {"role": message.role, "parts": parts}


def _texts(text: str) -> list[dict[str, object]]:
    return [{"type": "text", "content": text}] if text else []


def _tool_call(call: ToolCall) -> dict[str, object]:
    return {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
