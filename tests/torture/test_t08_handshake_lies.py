"""T08: whatever a server says at the door, it is connected soon or refused with a reason."""

import pytest

from dragoman import ConnectTimeout, HandshakeFailed
from tests.servers import zoo
from tests.torture.arena import at_once
from tests.torture.conftest import LEGACY

LIES = "lies_at_the_door.py"
SHORT = {"DRAGOMAN_PROBE_TIMEOUT_MS": 300}

PROBES_THAT_LEAD_TO_LEGACY = {
    "silent on the probe": LEGACY,
    "late with the probe": LEGACY,
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
async def test_t08_whatever_the_probe_meets_the_legacy_handshake_follows(arena, lie, revision):
    async with arena(zoo(LIES, lie), settings=SHORT, wait=False) as a:
        async with at_once(0.3 + 2):
            await a.host.ready(timeout=10)
        assert (a.view.status, a.view.reason) == ("connected", None)
        assert (a.view.era, a.view.protocol_version) == ("legacy", revision)
        seen = (await a.call("seen")).split()
        assert seen.count("server/discover") <= 2
        assert seen.count("initialize") == 1
        await a.serves_still()


@pytest.mark.parametrize("lie", ["silent on the probe", "exits on the probe", "method not found"])
async def test_t08_the_verdict_is_remembered_by_the_next_host(arena, lie, tmp_path):
    diary = tmp_path / "starts"
    for visit in range(2):
        async with arena(zoo(LIES, lie, str(diary)), settings=SHORT) as a:
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
async def test_t08_what_cannot_be_agreed_on_is_refused_at_once_and_says_why(arena, lie, words):
    async with arena(zoo(LIES, lie), settings=SHORT, wait=False) as a:
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


async def test_t08_unsupported_forever_gets_one_corrective_probe_and_no_more(arena, tmp_path):
    diary = tmp_path / "starts"
    async with arena(zoo(LIES, "unsupported, forever", str(diary)), settings=SHORT) as a:
        assert a.view.status == "failed"
        assert len(diary.read_text().split()) == 1


@pytest.mark.parametrize("lie", ["two answers", "capabilities are null"])
async def test_t08_harmless_oddities_do_not_keep_a_server_out(arena, lie):
    async with arena(zoo(LIES, lie), wait=False) as a:
        async with at_once():
            await a.host.ready(timeout=10)
        assert (a.view.status, a.view.protocol_version) == ("connected", LEGACY)
        assert a.view.instructions is None
        await a.serves_still()


async def test_t08_silence_at_the_greeting_ends_with_the_time_allowed(arena):
    settings = {"MCP_TIMEOUT": 700, **SHORT}
    async with arena(zoo(LIES, "silent on the greeting"), settings=settings, wait=False) as a:
        async with at_once(0.7 + 1.5):
            await a.host.ready(timeout=10)
        error = a.view.error
        assert isinstance(error, ConnectTimeout)
        assert "hostile: handshake failed: no answer within 0.7 s" in str(error)


@pytest.mark.parametrize("protocol", ["2026-07-28", "2024-11-05"])
async def test_t08_a_pinned_revision_is_not_given_up_silently(arena, protocol):
    lie = "only legacy" if protocol == "2026-07-28" else "unknown revision"
    async with arena(zoo(LIES, lie, protocol=protocol), settings=SHORT) as a:
        assert isinstance(a.view.error, HandshakeFailed)
        assert protocol in str(a.view.error)
