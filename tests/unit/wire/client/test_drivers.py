"""How the two eras spell requests, byte for byte."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocol import BATCHING_REVISION, LEGACY_REVISIONS
from dragoman.wire.client.legacy import LegacyDriver
from dragoman.wire.client.modern import ModernDriver

CLIENT = {"name": "dragoman", "version": "9"}
CAPABILITIES = {"roots": {}}

legacy = LegacyDriver("2025-11-25", CLIENT, CAPABILITIES)
modern = ModernDriver("2026-07-28", CLIENT, CAPABILITIES)

META = (
    b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientInfo":{"name":"dragoman","version":"9"},'
    b'"io.modelcontextprotocol/clientCapabilities":{"roots":{},'
    b'"extensions":{"io.modelcontextprotocol/tasks":{}}}'
)
CANCELLED = (
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"too slow"}}'
)


@pytest.mark.parametrize(
    ("params", "wants_progress", "expected"),
    [
        pytest.param(None, False, b'{"jsonrpc":"2.0","id":7,"method":"m"}', id="bare"),
        pytest.param({}, False, b'{"jsonrpc":"2.0","id":7,"method":"m","params":{}}', id="empty params"),
        pytest.param({"a": 1}, False, b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1}}', id="params"),
        pytest.param(
            None,
            True,
            b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{"progressToken":7}}}',
            id="progress",
        ),
        pytest.param(
            {"a": 1},
            True,
            b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"a":1,"_meta":{"progressToken":7}}}',
            id="params and progress",
        ),
    ],
)
def test_a_legacy_request(params: dict[str, object] | None, wants_progress: bool, expected: bytes):
    assert legacy.encode(7, "m", params, wants_progress) == expected


@pytest.mark.parametrize(
    ("params", "wants_progress", "expected"),
    [
        pytest.param(None, False, b'"params":{"_meta":{%s}}' % META, id="bare"),
        pytest.param({}, False, b'"params":{"_meta":{%s}}' % META, id="empty params"),
        pytest.param({"a": 1}, False, b'"params":{"a":1,"_meta":{%s}}' % META, id="params"),
        pytest.param(None, True, b'"params":{"_meta":{%s,"progressToken":7}}' % META, id="progress"),
        pytest.param(
            {"a": 1},
            True,
            b'"params":{"a":1,"_meta":{%s,"progressToken":7}}' % META,
            id="params and progress",
        ),
    ],
)
def test_a_modern_request_describes_itself(
    params: dict[str, object] | None, wants_progress: bool, expected: bytes
):
    encoded = modern.encode(7, "m", params, wants_progress)

    assert encoded == b'{"jsonrpc":"2.0","id":7,"method":"m",' + expected + b"}"


@given(st.text(), st.none() | st.dictionaries(st.text(), st.integers(0, 9)), st.booleans())
def test_every_modern_request_carries_revision_client_and_capabilities(
    method: str, params: dict[str, int] | None, wants_progress: bool
):
    meta = json.loads(modern.encode(1, method, params, wants_progress))["params"]["_meta"]

    assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert meta["io.modelcontextprotocol/clientInfo"] == CLIENT
    assert meta["io.modelcontextprotocol/clientCapabilities"] == {
        **CAPABILITIES,
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    }
    assert meta.get("progressToken") == (1 if wants_progress else None)


def test_encoding_does_not_change_the_callers_parameters():
    params = {"a": 1}
    for driver in (legacy, modern):
        driver.encode(1, "m", params, True)

    assert params == {"a": 1}


@pytest.mark.parametrize("driver", [legacy, modern])
def test_a_cancellation_names_the_request_and_the_reason(driver: LegacyDriver | ModernDriver):
    assert driver.encode_cancel(7, "too slow") == CANCELLED


def test_a_legacy_initialize_sends_revision_capabilities_and_client():
    opening = legacy.encode(1, "initialize", legacy.opening_params(), False)

    assert opening == (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{"roots":{}},"clientInfo":{"name":"dragoman","version":"9"}}}'
    )


def test_only_legacy_servers_may_send_requests():
    assert (legacy.era, legacy.servers_may_ask) == ("legacy", True)
    assert (modern.era, modern.servers_may_ask) == ("modern", False)


def test_batches_are_accepted_in_one_revision_only():
    accepting = [r for r in LEGACY_REVISIONS if LegacyDriver(r, CLIENT, {}).accepts_batches]

    assert accepting == [BATCHING_REVISION] == ["2025-03-26"]
    assert not modern.accepts_batches


TRACE = {"traceparent": "00-1-2-01", "progressToken": "the caller's"}


@pytest.mark.parametrize("driver", [legacy, modern], ids=["legacy", "modern"])
@pytest.mark.parametrize("wants_progress", [True, False])
def test_the_callers_meta_is_kept(driver: LegacyDriver | ModernDriver, wants_progress: bool):
    sent = json.loads(driver.encode(7, "m", {"a": 1, "_meta": TRACE}, wants_progress))["params"]["_meta"]

    assert sent["traceparent"] == "00-1-2-01"
    assert sent["progressToken"] == (7 if wants_progress else "the caller's")


def test_the_protocols_own_keys_in_meta_cannot_be_replaced():
    forged = {"io.modelcontextprotocol/protocolVersion": "1999-01-01", "x": 1}
    sent = json.loads(modern.encode(7, "m", {"_meta": forged}, False))["params"]["_meta"]

    assert sent["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert sent["x"] == 1


def test_other_declared_extensions_are_kept_beside_the_one_for_tasks():
    driver = ModernDriver("2026-07-28", CLIENT, {"extensions": {"x/ui": {"a": 1}}})
    sent = json.loads(driver.encode(7, "m", None, False))["params"]["_meta"]

    assert sent["io.modelcontextprotocol/clientCapabilities"]["extensions"] == {
        "x/ui": {"a": 1},
        "io.modelcontextprotocol/tasks": {},
    }


LEVEL = "io.modelcontextprotocol/logLevel"
RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t"}}


@pytest.mark.requirement("ASK-6")
def test_a_modern_request_carries_the_log_level_beside_everything_else():
    driver = ModernDriver("2026-07-28", CLIENT, CAPABILITIES)
    assert driver.set_log_level("warning")
    for params, wants_progress in ((None, False), ({"a": 1}, False), ({"_meta": {**TRACE, **RELATED}}, True)):
        meta = json.loads(driver.encode(7, "m", params, wants_progress))["params"]["_meta"]
        assert meta[LEVEL] == "warning"
        assert meta["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        if wants_progress:
            assert (meta["traceparent"], meta["progressToken"]) == ("00-1-2-01", 7)
            assert meta["io.modelcontextprotocol/related-task"] == {"taskId": "t"}
    kept = json.loads(driver.encode(7, "m", {"_meta": {LEVEL: "debug"}}, False))["params"]["_meta"]
    assert kept[LEVEL] == "debug"
    driver.set_log_level(None)
    assert LEVEL not in json.loads(driver.encode(7, "m", {"a": 1}, False))["params"]["_meta"]


@pytest.mark.requirement("ASK-6")
def test_a_legacy_server_is_sent_the_log_level_with_a_request():
    assert not LegacyDriver("2025-11-25", CLIENT, {}).set_log_level("debug")
