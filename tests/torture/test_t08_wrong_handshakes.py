"""T08: Whatever a server answers in the handshake, it is connected soon or refused with a reason."""

import json
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import ConnectTimeout, HandshakeFailed, Unreachable
from tests.servers import stdio_server
from tests.servers.web import Answer, answers, http_sse, streamable, websocket
from tests.servers.web.given_answers import error, replace_results
from tests.servers.web.streamable import Session
from tests.torture.bystander_host import at_once
from tests.torture.conftest import LEGACY, MODERN

HOSTILE_SERVER = "wrong_handshake.py"
SHORT = {"DRAGOMAN_PROBE_TIMEOUT_MS": 300}

PROBES_THAT_LEAD_TO_LEGACY = {
    "silent on the probe": LEGACY,
    "garbled probe": LEGACY,
    "probe of the wrong shape": LEGACY,
    "exits on the probe": LEGACY,
    "method not found": LEGACY,
    "a code nobody knows": LEGACY,
    "only legacy": "2025-06-18",
    "unsupported, but legacy": LEGACY,
    "unsupported, without a word": LEGACY,
}


@pytest.mark.parametrize(("lie", "revision"), PROBES_THAT_LEAD_TO_LEGACY.items())
async def test_t08_after_any_invalid_answer_to_the_probe_the_legacy_handshake_is_used(
    bystander_host, lie, revision
):
    async with bystander_host(stdio_server(HOSTILE_SERVER, lie), settings=SHORT, wait=False) as a:
        async with at_once(0.3 + 2):
            await a.host.ready(timeout=10)
        assert (a.view.status, a.view.reason) == ("connected", None)
        assert (a.view.era, a.view.protocol_version) == ("legacy", revision)
        seen = (await a.call("seen")).split()
        assert seen.count("server/discover") <= 2
        assert seen.count("initialize") == 1
        await a.serves_still()


@pytest.mark.requirement("TRN-10")
async def test_t08_a_server_that_answers_the_probe_late_is_used_in_the_era_of_its_answer(bystander_host):
    """Its answer to the probe arrives after `initialize` was sent, as with a server that is downloaded
    first."""
    for _ in range(2):
        async with bystander_host(stdio_server(HOSTILE_SERVER, "late with the probe"), settings=SHORT) as a:
            assert (a.view.era, a.view.protocol_version) == ("modern", MODERN)
            assert (await a.call("seen")).split()[:2] == ["server/discover", "initialize"]


@pytest.mark.parametrize("lie", ["exits on the probe", "method not found"])
async def test_t08_the_era_of_a_server_is_remembered_by_the_next_host(bystander_host, lie, tmp_path):
    diary = tmp_path / "starts"
    for visit in range(2):
        async with bystander_host(stdio_server(HOSTILE_SERVER, lie, str(diary)), settings=SHORT) as a:
            seen = (await a.call("seen")).split()
            assert ("server/discover" in seen) == (visit == 0 and lie != "exits on the probe")
    expected = 3 if lie == "exits on the probe" else 2
    assert len(diary.read_text().split()) == expected, "started once a visit, once more after the probe"


REFUSED = {
    "unsupported, forever": "2026-07-28",
    "only the future": "2099-01-01",
    "unknown revision": "1999-01-01",
    "revision is a number": "initialize",
    "capabilities are a list": "initialize",
    "server info is a text": "initialize",
    "result is a text": "initialize",
    "result is missing": "neither a result nor an error",
    "garbled greeting": "malformed",
    "an error": "not today",
}


@pytest.mark.parametrize(("lie", "words"), REFUSED.items())
async def test_t08_a_handshake_without_a_common_version_is_refused_at_once_with_the_reason(
    bystander_host, lie, words
):
    async with bystander_host(stdio_server(HOSTILE_SERVER, lie), settings=SHORT, wait=False) as a:
        async with at_once():
            await a.host.ready(timeout=10)
        error = a.view.error
        assert a.view.status == "failed"
        assert isinstance(error, HandshakeFailed)
        assert (error.server, error.phase) == ("hostile", "handshake")
        assert words in str(error)
        assert "hostile" in str(error)
        assert "\x1b" not in str(error)
        assert error.hint


async def test_t08_an_unsupported_version_error_gets_one_corrected_probe_only(bystander_host, tmp_path):
    diary = tmp_path / "starts"
    async with bystander_host(
        stdio_server(HOSTILE_SERVER, "unsupported, forever", str(diary)), settings=SHORT
    ) as a:
        assert a.view.status == "failed"
        assert len(diary.read_text().split()) == 1


@pytest.mark.parametrize("lie", ["two answers", "capabilities are null"])
async def test_t08_small_deviations_in_the_handshake_do_not_prevent_a_connection(bystander_host, lie):
    async with bystander_host(stdio_server(HOSTILE_SERVER, lie), wait=False) as a:
        async with at_once():
            await a.host.ready(timeout=10)
        assert (a.view.status, a.view.protocol_version) == ("connected", LEGACY)
        assert a.view.instructions is None
        await a.serves_still()


async def test_t08_a_handshake_without_an_answer_ends_at_the_connect_timeout(bystander_host):
    settings = {"MCP_TIMEOUT": 700, **SHORT}
    async with bystander_host(
        stdio_server(HOSTILE_SERVER, "silent on the greeting"), settings=settings, wait=False
    ) as a:
        async with at_once(0.7 + 1.5):
            await a.host.ready(timeout=10)
        error = a.view.error
        assert isinstance(error, ConnectTimeout)
        assert "hostile: handshake failed: no answer within 0.7 s" in str(error)


@pytest.mark.parametrize("protocol", ["2026-07-28", "2024-11-05"])
async def test_t08_a_pinned_revision_is_not_replaced_silently(bystander_host, protocol):
    lie = "only legacy" if protocol == "2026-07-28" else "unknown revision"
    async with bystander_host(stdio_server(HOSTILE_SERVER, lie, protocol=protocol), settings=SHORT) as a:
        assert isinstance(a.view.error, HandshakeFailed)
        assert protocol in str(a.view.error)


# The same over the network.


def entry(kind: str, url: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "url": url, **more}


HTTP_PROBES_THAT_LEAD_TO_LEGACY = {
    "silence": answers.never(),
    "a page": answers.html(),
    "204": answers.empty(204),
    "202": answers.empty(202),
    "400": answers.status(400),
    "404": answers.status(404),
    "405": answers.status(405),
    "501 in words": answers.error(-32601, status=404),
    "method not found": answers.error(-32601),
    "a code nobody knows": answers.error(7),
    "no session": answers.error(-32000, "Bad Request: no valid session ID provided", status=400),
    "garbled": answers.body(lambda _: b'{"jsonrpc":"2.0","result":{{{'),
    "somebody else's answer": answers.foreign_id(),
    "the wrong shape": answers.body(
        lambda ask: answers.reply_to(ask, result={"supportedVersions": "all of them"})
    ),
    "unsupported, without a word": answers.error(-32022),
    "unsupported, but legacy": answers.error(-32022, status=400, data={"supported": [LEGACY]}),
}


UNCERTAIN = ("silence", "a page", "204", "202", "garbled", "somebody else's answer", "the wrong shape")


@pytest.mark.requirement("TRN-10")
@pytest.mark.parametrize("lie", HTTP_PROBES_THAT_LEAD_TO_LEGACY)
async def test_t08_after_any_invalid_answer_to_the_probe_over_http_the_legacy_handshake_is_used(
    bystander_host, lie
):
    probe = HTTP_PROBES_THAT_LEAD_TO_LEGACY[lie]
    async with streamable(revisions=(LEGACY,), on={"server/discover": probe}) as server:
        async with bystander_host(entry("http", server.url), settings=SHORT, wait=False) as a:
            async with at_once(0.3 + 2):
                await a.host.ready(timeout=10)
            assert (a.view.status, a.view.reason) == ("connected", None)
            assert (a.view.era, a.view.protocol_version) == ("legacy", LEGACY)
            assert await a.call("echo", text="in") == "in"
        async with Host({"again": entry("http", server.url)}, settings=SHORT) as host:
            assert (await host.ready(timeout=10))["again"].era == "legacy"
        # A missing answer may be caused by the network, so it is not remembered; every other result is.
        assert len(server.asked("server/discover")) == (2 if lie in UNCERTAIN else 1)


def greeting(**changes: Any) -> dict[str, Any]:
    about = {"name": "liar", "version": "1"}
    return {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": about, **changes}


def answer_with(result: Any) -> Answer:
    return answers.body(lambda ask: answers.reply_to(ask, result=result))


HTTP_REFUSED = {
    "unsupported, forever": (answers.error(-32022, status=400, data={"supported": [MODERN]}), None, MODERN),
    "only the future": (answer_with({"supportedVersions": ["2099-01-01"]}), None, "2099-01-01"),
    "unknown revision": (None, answer_with(greeting(protocolVersion="1999-01-01")), "1999-01-01"),
    "revision is a number": (None, answer_with(greeting(protocolVersion=5)), "initialize"),
    "capabilities are a list": (None, answer_with(greeting(capabilities=[])), "initialize"),
    "server info is a text": (None, answer_with(greeting(serverInfo="me")), "initialize"),
    "result is a text": (None, answer_with("hello"), "initialize"),
    "result is missing": (
        None,
        answers.body(lambda ask: json.dumps({"jsonrpc": "2.0", "id": ask.id}).encode()),
        "neither a result nor an error",
    ),
    "garbled greeting": (None, answers.body(lambda _: b'{"jsonrpc":"2.0","result":{{{'), "no reply"),
    "a page": (None, answers.html(), "text/html"),
    "202": (None, answers.empty(202), "nothing"),
    "somebody else's answer": (None, answers.foreign_id(), "no reply"),
    "an error": (None, answers.error(-32603, "not today \x1b[2J"), "not today"),
}


@pytest.mark.requirement("TRN-10")
@pytest.mark.parametrize(("probe", "greeting", "words"), HTTP_REFUSED.values(), ids=HTTP_REFUSED.keys())
async def test_t08_a_handshake_without_a_common_version_over_http_is_refused_at_once(
    bystander_host, probe, greeting, words
):
    on = {"server/discover": probe or answers.error(-32601, status=404)}
    async with streamable(revisions=(LEGACY,), on=on) as server:
        if greeting is not None:
            server.on["initialize"] = greeting
        async with bystander_host(entry("http", server.url), settings=SHORT, wait=False) as a:
            async with at_once():
                await a.host.ready(timeout=10)
            assert isinstance(a.view.error, HandshakeFailed)
            assert words in str(a.view.error)
            assert "\x1b" not in str(a.view.error)
            assert a.view.error.hint
            assert len(server.asked("server/discover")) <= 2, "one corrective probe and no more"
            assert len(server.asked("initialize")) <= 1


@pytest.mark.requirement("TRN-10")
@pytest.mark.parametrize("kind", ["sse", "ws"])
@pytest.mark.parametrize("lie", ["unknown revision", "an error"])
async def test_t08_a_handshake_without_a_common_version_is_refused_over_the_other_transports(
    bystander_host, kind, lie
):
    lies = {
        "unknown revision": lambda _: greeting(protocolVersion="1999-01-01"),
        "an error": lambda _: error(-32603, "1999-01-01 \x1b[2J"),
    }
    async with {"sse": http_sse, "ws": websocket}[kind](revisions=(LEGACY,)) as server:
        replace_results(server, {"initialize": lies[lie]})
        async with bystander_host(entry(kind, server.url), settings=SHORT, wait=False) as a:
            async with at_once():
                await a.host.ready(timeout=10)
            assert isinstance(a.view.error, HandshakeFailed)
            assert "1999-01-01" in str(a.view.error)
            assert "\x1b" not in str(a.view.error)


async def test_t08_of_two_answers_to_initialize_in_one_stream_the_first_counts(bystander_host):
    def twice(reply: bytes) -> bytes:
        first = {**json.loads(reply), "result": greeting()}
        second = {**first, "result": greeting(protocolVersion="2024-11-05", instructions="I lied")}
        return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in (first, second))

    on = {"server/discover": answers.status(404), "initialize": answers.events(twice)}
    async with streamable(revisions=(LEGACY,), sessions=False, on=on) as server:
        session = server.sessions[""] = Session(server, "")  # created beforehand: outlasts the host
        opening = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {}}
        session.conversation.say({"jsonrpc": "2.0", "id": "o", "method": "initialize", "params": opening})
        async with bystander_host(entry("http", server.url)) as a:
            assert (a.view.status, a.view.protocol_version) == ("connected", LEGACY)
            assert a.view.instructions is None


FAILURES = {
    "500": (answers.status(500), 500),
    "502": (answers.html(502), 502),
    "503": (answers.status(503, retry_after="1"), 503),
    "429": (answers.status(429), 429),
    "hangs up": (answers.hang_up(), None),
    "a stream without the reply": (answers.events(lambda _: b": nothing\n\n"), None),
}


@pytest.mark.parametrize(("trouble", "status"), FAILURES.values(), ids=FAILURES.keys())
async def test_t08_a_failure_during_the_probe_does_not_decide_the_era(bystander_host, trouble, status):
    """A gateway whose server is not available must not turn a modern server into a legacy one."""
    async with streamable(revisions=(MODERN,)) as server:
        server.on["server/discover"] = answers.first(1, trouble)
        async with bystander_host(entry("http", server.url)) as a:
            assert isinstance(a.view.error, Unreachable)
            assert a.view.error.status == status
            assert server.asked("initialize") == []
            assert (await a.host.reconnect("hostile")).status == "connected"
            assert a.view.era == "modern"


SILENT = {
    "http": lambda: streamable(revisions=(LEGACY,), on={"initialize": answers.never()}),
    "http, dripping": lambda: streamable(revisions=(LEGACY,), on={"initialize": answers.drip(0.05)}),
    "http, an idle stream": lambda: streamable(
        revisions=(LEGACY,), on={"initialize": answers.drip(0.05, headers=answers.EVENTS)}
    ),
    "sse, no endpoint": lambda: http_sse(endpoint=None),
    "sse": lambda: http_sse(on={"initialize": answers.empty(202)}),
}


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("kind", SILENT)
async def test_t08_a_handshake_without_an_answer_over_the_network_ends_at_the_connect_timeout(
    bystander_host, kind
):
    settings = {"MCP_TIMEOUT": 700, **SHORT}
    async with (
        SILENT[kind]() as server,
        bystander_host(entry(kind[:4].rstrip(","), server.url), settings=settings, wait=False) as a,
    ):
        async with at_once(0.7 + 1.5):
            await a.host.ready(timeout=10)
        assert isinstance(a.view.error, ConnectTimeout)
        assert "no answer within 0.7 s" in str(a.view.error)
