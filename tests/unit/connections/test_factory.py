"""Which transport an entry asks for, and what it is told of the network."""

from typing import Any

import pytest

from dragoman.config.model import ServerConfig, TlsConfig
from dragoman.connections.factory import (
    TransportDependencies,
    inprocess_maker,
    network_of,
    older_maker,
    transport_maker,
)
from dragoman.credentials import Challenge
from dragoman.errors import ConfigError, Unreachable
from dragoman.settings import Settings
from dragoman.transports.control import ControlTransport
from dragoman.transports.http import HttpTransport
from dragoman.transports.sse import SseTransport
from dragoman.transports.stdio import StdioTransport
from dragoman.transports.websocket import WebSocketTransport

URL = "https://box.example/mcp"


def config(kind: str, **more: Any) -> ServerConfig:
    return ServerConfig(type=kind, **more)


def remote(**more: Any) -> ServerConfig:
    return config("http", **{"url": URL, **more})


# --- what it is told of the network ---


def test_by_default_the_network_is_only_an_address():
    network = network_of(remote(), {})

    assert (network.url, network.headers, network.proxy) == (URL, {}, None)
    assert (network.ca_file, network.cert_file, network.key_file) == (None, None, None)


def test_the_address_is_in_canonical_form():
    assert network_of(remote(url="HTTPS://Box.Example:443/mcp"), {}).url == URL


def test_headers_and_certificates_come_from_the_entry():
    tls = TlsConfig(ca="/ca.pem", cert="/cert.pem", key="/key.pem")
    network = network_of(remote(headers={"X": "1"}, tls=tls), {})

    assert network.headers == {"X": "1"}
    assert (network.ca_file, network.cert_file, network.key_file) == ("/ca.pem", "/cert.pem", "/key.pem")


@pytest.mark.parametrize(
    ("environ", "ca"),
    [
        ({}, None),
        ({"DRAGOMAN_CA_FILE": "/ours.pem"}, "/ours.pem"),
        ({"NODE_EXTRA_CA_CERTS": "/theirs.pem"}, "/theirs.pem"),
        ({"DRAGOMAN_CA_FILE": "/ours.pem", "NODE_EXTRA_CA_CERTS": "/theirs.pem"}, "/ours.pem"),
        ({"DRAGOMAN_CA_FILE": "", "NODE_EXTRA_CA_CERTS": "/theirs.pem"}, "/theirs.pem"),
    ],
    ids=str,
)
def test_an_authority_can_be_named_in_the_environment(environ: dict[str, str], ca: str | None):
    assert network_of(remote(), environ).ca_file == ca
    assert network_of(remote(tls=TlsConfig(ca="/entry.pem")), environ).ca_file == "/entry.pem"


def test_a_client_certificate_can_be_named_in_the_environment():
    environ = {"DRAGOMAN_CLIENT_CERT": "/cert.pem", "DRAGOMAN_CLIENT_KEY": "/key.pem"}
    network = network_of(remote(), environ)

    assert (network.cert_file, network.key_file) == ("/cert.pem", "/key.pem")


def test_the_entrys_certificate_is_not_paired_with_the_environments_key():
    environ = {"DRAGOMAN_CLIENT_CERT": "/cert.pem", "DRAGOMAN_CLIENT_KEY": "/key.pem"}
    network = network_of(remote(tls=TlsConfig(cert="/both.pem")), environ)

    assert (network.cert_file, network.key_file) == ("/both.pem", None)


def test_the_entrys_proxy_wins_over_the_environments():
    environ = {"HTTPS_PROXY": "http://environment:1"}

    assert network_of(remote(), environ).proxy == "http://environment:1"
    assert network_of(remote(proxy="http://entry:2"), environ).proxy == "http://entry:2"
    assert network_of(remote(), environ | {"NO_PROXY": "box.example"}).proxy is None


def test_the_process_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://environment:1")

    assert network_of(remote()).proxy == "http://environment:1"


def test_a_network_is_never_printed():
    network = network_of(remote(headers={"Authorization": "Bearer secret"}, proxy="http://u:secret@p"), {})

    assert "secret" not in f"{network} {network!r} {[network]}"


# --- which transport ---


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (config("stdio", command="x"), "local"),
        (remote(), "remote"),
        (config("sse", url=URL), "remote"),
        (config("ws", url="wss://box.example"), "remote"),
        (config("claudeai-proxy", url=URL), "remote"),
        (config("sse-ide"), "remote"),
        (config("ws-ide"), "remote"),
        (config("sdk"), "in-process"),
    ],
    ids=lambda value: getattr(value, "type", value),
)
def test_each_transport_has_its_place(entry: ServerConfig, kind: str):
    assert entry.transport.place == kind


class Bearer:
    async def headers(self) -> dict[str, str]:
        return {"Authorization": "Bearer x"}

    async def renew(self, challenge: Challenge) -> bool:
        return False


class Channel:
    """Never asked anything here."""


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        (config("stdio", command="x"), StdioTransport),
        (remote(), HttpTransport),
        (config("sse", url=URL), SseTransport),
        (config("ws", url="wss://box.example"), WebSocketTransport),
        (config("claudeai-proxy", url=URL), HttpTransport),
        (config("sse-ide", url="http://127.0.0.1:1/sse"), SseTransport),
        (config("ws-ide", url="ws://127.0.0.1:1"), WebSocketTransport),
        (config("sdk"), ControlTransport),
    ],
    ids=lambda value: getattr(value, "type", ""),
)
async def test_each_type_has_its_transport_and_each_connection_a_new_one(
    entry: ServerConfig, transport: type
):
    dependencies = TransportDependencies(control=Channel(), bearer=lambda server: Bearer())  # type: ignore[arg-type]
    make = transport_maker("box", entry, Settings({}, {}), dependencies)
    one, other = make(), make()

    assert type(one) is transport
    assert one is not other


def test_a_type_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="there is no transport 'carrier-pigeon'"):
        transport_maker("box", config("carrier-pigeon"), Settings({}, {}), TransportDependencies())


def test_an_embedded_server_needs_an_embedding_program():
    with pytest.raises(ConfigError, match="embedding program") as caught:
        transport_maker("box", config("sdk"), Settings({}, {}), TransportDependencies())
    assert caught.value.hint


async def test_an_organisations_connector_needs_a_sign_in():
    make = transport_maker(
        "box", config("claudeai-proxy", url=URL), Settings({}, {}), TransportDependencies()
    )
    with pytest.raises(ConfigError, match="sign-in") as caught:
        make()
    assert caught.value.hint


@pytest.mark.parametrize("kind", ["sse-ide", "ws-ide"])
async def test_an_editor_that_is_not_running_is_unreachable(kind: str):
    make = transport_maker("box", config(kind), Settings({}, {}), TransportDependencies())
    with pytest.raises(Unreachable, match="no editor") as caught:
        make()
    assert caught.value.hint


async def test_only_streamable_http_has_something_older_to_fall_back_to():
    make = older_maker("box", remote(), Settings({}, {}), TransportDependencies())
    assert make is not None
    assert type(make()) is SseTransport

    for other in (
        config("stdio", command="x"),
        config("sse", url=URL),
        config("ws", url="wss://b"),
        config("sdk"),
    ):
        assert older_maker("box", other, Settings({}, {}), TransportDependencies()) is None


def test_an_object_that_is_not_a_server_is_refused():
    with pytest.raises(ConfigError):
        inprocess_maker("box", object())
