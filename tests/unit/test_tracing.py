"""Spans of OpenTelemetry where it is not used, or not installed."""

import subprocess
import sys

import pytest

from dragoman import tracing
from dragoman.errors import ConfigError


def test_without_a_tracer_provider_there_are_no_spans_and_nothing_is_imported():
    code = """
import sys
from dragoman import tracing
tracing.start()
tracing.configure({})
with tracing.span("call", {"traceparent": "x"}, some__name="value") as span:
    span.fail("error")
assert tracing.current_context() == {}
assert not tracing.is_on()
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_the_opentelemetry_api_alone_enables_no_spans():
    code = """
import opentelemetry.trace, opentelemetry.sdk.trace
from dragoman import tracing
tracing.start()
assert not tracing.is_on()
opentelemetry.trace.set_tracer_provider(opentelemetry.sdk.trace.TracerProvider())
tracing.start()
assert tracing.is_on()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"])
def test_a_collector_without_the_extra_is_an_error_that_states_what_to_install(
    monkeypatch: pytest.MonkeyPatch, variable: str
):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(ConfigError) as caught:
        tracing.configure({variable: "http://127.0.0.1:4318"})
    assert str(caught.value) == f"{variable} is set, but OpenTelemetry is not installed"
    assert caught.value.hint == "In a clone: pip install '.[otel]'. Or unset the variable."
