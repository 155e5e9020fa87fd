"""Facts of the protocol, as the specification states them."""

import pytest

from dragoman import protocol


def test_the_revisions_newest_first():
    assert protocol.REVISIONS == ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
    assert list(protocol.REVISIONS) == sorted(protocol.REVISIONS, reverse=True)


@pytest.mark.parametrize(
    ("revision", "era"),
    [
        ("2026-07-28", "modern"),
        ("2025-11-25", "legacy"),
        ("2025-06-18", "legacy"),
        ("2025-03-26", "legacy"),
        ("2024-11-05", "legacy"),
    ],
)
def test_the_era_of_a_revision(revision: str, era: str):
    assert protocol.era_of(revision) == era


def test_the_reserved_keys_and_codes():
    assert protocol.META_PROTOCOL_VERSION == "io.modelcontextprotocol/protocolVersion"
    assert protocol.META_CLIENT_INFO == "io.modelcontextprotocol/clientInfo"
    assert protocol.META_CLIENT_CAPABILITIES == "io.modelcontextprotocol/clientCapabilities"
    assert protocol.META_SERVER_INFO == "io.modelcontextprotocol/serverInfo"
    assert protocol.META_LOG_LEVEL == "io.modelcontextprotocol/logLevel"
    assert protocol.META_SUBSCRIPTION_ID == "io.modelcontextprotocol/subscriptionId"
    codes = {name: value for name, value in vars(protocol).items() if isinstance(value, int)}
    assert codes == {
        "PARSE_ERROR": -32700,
        "INVALID_REQUEST": -32600,
        "METHOD_NOT_FOUND": -32601,
        "INVALID_PARAMS": -32602,
        "INTERNAL_ERROR": -32603,
        "RESOURCE_NOT_FOUND": -32002,
        "HEADER_MISMATCH": -32020,
        "MISSING_CLIENT_CAPABILITY": -32021,
        "UNSUPPORTED_PROTOCOL_VERSION": -32022,
        "URL_ELICITATION_REQUIRED": -32042,
    }
