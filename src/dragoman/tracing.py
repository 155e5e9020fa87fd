"""Spans of OpenTelemetry: connecting, reading lists, calls, and requests for tokens.

No spans are made, and OpenTelemetry is not imported, unless the program or `configure` has set a tracer
provider of its SDK. Spans hold names of servers and tools, never arguments, results or secrets. The context
of a call's span is sent to the server in `_meta` (W3C trace context).
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from dragoman.errors import ConfigError
from dragoman.version import VERSION

KEYS: Final = ("traceparent", "tracestate", "baggage")
"""The keys of a trace context in `_meta`."""
_LIBRARY: Final = "opentelemetry"
_ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_tracer: Any = None


def start() -> None:
    """Starts making spans, if the program uses OpenTelemetry."""
    global _tracer
    sdk = sys.modules.get(f"{_LIBRARY}.sdk.trace")
    if _tracer is None and sdk is not None:  # many libraries import the interface alone
        trace = _module("trace")
        if isinstance(trace.get_tracer_provider(), sdk.TracerProvider):
            _tracer = trace.get_tracer("dragoman", VERSION)


def is_on() -> bool:
    return _tracer is not None


def configure(environ: Mapping[str, str] = os.environ) -> None:
    """Sends spans to the endpoint that a variable of OpenTelemetry names, if there is one. `ConfigError` if
    the extra `otel` is not installed."""
    variable = next((name for name in _ENDPOINT_VARIABLES if name in environ), None)
    if variable is None:
        return
    try:
        sdk = _module("sdk.trace")
        exporting = _module("sdk.trace.export")
        otlp = _module("exporter.otlp.proto.http.trace_exporter")
    except ImportError:
        raise ConfigError(
            f"{variable} is set, but OpenTelemetry is not installed",
            hint="In a clone: pip install '.[otel]'. Or unset the variable.",
        ) from None
    provider = sdk.TracerProvider()
    provider.add_span_processor(exporting.BatchSpanProcessor(otlp.OTLPSpanExporter()))
    _module("trace").set_tracer_provider(provider)


class Span:
    """A span, or a placeholder if no spans are made."""

    def __init__(self, span: Any = None) -> None:
        self._span = span

    def fail(self, kind: str) -> None:
        """Marks the span as failed. `kind`: a short name for the error."""
        if self._span is not None:
            trace = _module("trace")
            self._span.set_attribute("error.type", kind)
            self._span.set_status(trace.Status(trace.StatusCode.ERROR))


@contextmanager
def span(name: str, parent: Mapping[str, Any] | None = None, **attributes: str) -> Generator[Span]:
    """Makes one span of the block. `parent`: a trace context from `_meta`, if the work was requested by
    another process. In the names of attributes, `__` is replaced by a dot."""
    if _tracer is None:
        yield Span()
        return
    trace = _module("trace")
    context = None
    if parent and "traceparent" in parent:
        context = _module("propagate").extract({key: parent[key] for key in KEYS if key in parent})
    given = {key.replace("__", "."): value for key, value in attributes.items()}
    # The text of an exception may contain a secret or text of a server, so only its type is kept.
    with _tracer.start_as_current_span(
        name,
        context=context,
        kind=trace.SpanKind.CLIENT,
        attributes=given,
        record_exception=False,
        set_status_on_exception=False,
    ) as made:
        found = Span(made)
        try:
            yield found
        except Exception as error:
            found.fail(type(error).__name__)
            raise


def current_context() -> dict[str, str]:
    """The trace context of the current span, in the form of `_meta`."""
    carrier: dict[str, str] = {}
    if _tracer is not None:
        _module("propagate").inject(carrier)
    return carrier


def _module(name: str) -> Any:
    return importlib.import_module(f"{_LIBRARY}.{name}")
