"""Spans of OpenTelemetry, and the trace context that servers are sent."""

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dragoman import Host, tracing
from dragoman.testing import InMemoryServer
from dragoman.testing.server import ToolContext
from tests.gateway import Client, gateway_of
from tests.servers.web import streamable

pytestmark = pytest.mark.requirement("LIB-4")
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("dragoman"))
    yield exporter
    provider.shutdown()


def shown(exporter: InMemorySpanExporter) -> list[tuple[str, dict[str, Any], str]]:
    return [
        (span.name, dict(span.attributes or {}), span.status.status_code.name)
        for span in exporter.get_finished_spans()
    ]


async def test_connecting_listing_and_calling_are_spans(spans: InMemorySpanExporter):
    async with streamable() as upstream:
        entry = {"web": {"type": "http", "url": upstream.url}}
        async with Host(entry, permission_mode="bypassPermissions") as host:
            await host.ready()
            await host.call("mcp__web__echo", {"text": "secret text"})
        (ask,) = upstream.asked("tools/call")
    assert shown(spans) == [
        ("connect", {"dragoman.server": "web"}, "UNSET"),
        ("tools/list", {"mcp.method.name": "tools/list", "dragoman.server": "web"}, "UNSET"),
        (
            "tools/call echo",
            {"mcp.method.name": "tools/call", "gen_ai.tool.name": "echo", "dragoman.server": "web"},
            "UNSET",
        ),
    ]
    call = spans.get_finished_spans()[-1]
    expected = [f"{call.context.trace_id:032x}", f"{call.context.span_id:016x}"]
    assert ask.meta["traceparent"].split("-")[1:3] == expected
    assert "secret text" not in str(shown(spans))


async def test_a_failed_call_is_a_failed_span(spans: InMemorySpanExporter):
    server = InMemoryServer("s")

    def fail(arguments: dict[str, Any], context: ToolContext) -> str:
        raise ValueError("no")

    server.add_tool("fail", fail)
    async with Host({"s": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        await host.call("mcp__s__fail")
    name, attributes, status = shown(spans)[-1]
    assert (name, attributes["error.type"], status) == ("tools/call fail", "tool_error", "ERROR")


async def test_the_trace_of_a_gateways_client_continues_to_the_server(spans: InMemorySpanExporter):
    async with streamable() as upstream:
        served = gateway_of({"web": {"type": "http", "url": upstream.url}})
        async with served as running, Client(running.url) as client:
            call = {"name": "web__echo", "arguments": {"text": "hi"}}
            await client.modern("tools/call", call, meta={"traceparent": PARENT, "tracestate": "a=b"})
        (ask,) = upstream.asked("tools/call")
    span = spans.get_finished_spans()[-1]
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    assert ask.meta["traceparent"] == f"00-0af7651916cd43dd8448eb211c80319c-{span.context.span_id:016x}-01"
    assert ask.meta["tracestate"] == "a=b"


async def test_without_opentelemetry_the_trace_of_a_client_is_passed_on_unchanged():
    assert not tracing.is_on()
    async with streamable() as upstream:
        served = gateway_of({"web": {"type": "http", "url": upstream.url}})
        async with served as running, Client(running.url) as client:
            call = {"name": "web__echo", "arguments": {"text": "hi"}}
            await client.modern("tools/call", call, meta={"traceparent": PARENT})
        (ask,) = upstream.asked("tools/call")
    assert ask.meta["traceparent"] == PARENT
