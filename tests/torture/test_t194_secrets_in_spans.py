"""T194: a span contains no secret, whatever fails during it."""

import sys
from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dragoman import Host, tracing
from dragoman.auth import token_endpoint
from dragoman.auth.errors import Unavailable

pytestmark = pytest.mark.requirement("LIB-4")
SECRET = "sk-canary-0123456789abcdef"
ANSWERS_WITH_ITS_KEY = """
import json, os, sys
for line in sys.stdin:
    error = {"code": -32000, "message": "bad key " + os.environ["API_KEY"]}
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line).get("id"), "error": error}), flush=True)
"""


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("dragoman"))
    yield exporter
    provider.shutdown()


async def test_t194_a_failed_connection_records_its_error_type_in_the_span_without_text(
    spans: InMemorySpanExporter,
):
    entry = {"command": sys.executable, "args": ["-c", ANSWERS_WITH_ITS_KEY], "env": {"API_KEY": SECRET}}
    async with Host({"s": {**entry, "protocol": "legacy"}}) as host:
        await host.ready(timeout=30)
        assert host.servers["s"].status == "failed"
    (span,) = spans.get_finished_spans()
    assert SECRET not in span.to_json()
    assert (span.status.status_code.name, span.status.description) == ("ERROR", None)
    assert dict(span.attributes or {}) == {"dragoman.server": "s", "error.type": "HandshakeFailed"}


async def test_t194_a_failed_token_request_records_neither_query_nor_text(
    spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch
):
    async def fail(*_: object) -> None:
        raise Unavailable(f"no answer to {SECRET}")

    monkeypatch.setattr(token_endpoint, "_post", fail)
    server = token_endpoint.AuthServer(
        issuer="https://login.example.com", token_endpoint=f"https://login.example.com/token?key={SECRET}"
    )
    with pytest.raises(Unavailable):
        await token_endpoint.request_token(None, server, {"grant_type": "refresh_token"})  # type: ignore[arg-type]
    (span,) = spans.get_finished_spans()
    assert SECRET not in span.to_json()
    assert (span.attributes or {})["url.full"] == "https://login.example.com/token"
