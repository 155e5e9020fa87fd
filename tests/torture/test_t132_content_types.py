"""T132: a Content-Type header with very many parameters is parsed quickly."""

import pytest

from tests.servers.web import Answer, Ask, answers
from tests.servers.web.answers import reply_to
from tests.torture.bystander_host import at_once
from tests.torture.network import Way, end_of, serves

LENGTH = 8000
FILLERS = {"quotes": '"', "semicolons": ";", "parameters": "a=b;", "comments": "(a", "escapes": 'a="\\\\'}


def with_content_type(media_type: str, filler: str, spell=reply_to, status: int = 200) -> Answer:
    def raw(ask: Ask) -> bytes:
        said = f"{media_type};{filler * (LENGTH // len(filler))}"
        body = spell(ask)
        head = f"HTTP/1.1 {status} Some\r\nContent-Type: {said}\r\nContent-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    return answers.raw(raw)


def one_event(ask: Ask) -> bytes:
    return b"data: " + reply_to(ask) + b"\n\n"


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize("filler", FILLERS)
async def test_t132_a_long_content_type_is_parsed_without_delay(bystander_host, era, filler):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server)) as a:
        for media_type, spell in {"application/json": reply_to, "Text/Event-Stream ": one_event}.items():
            server.on["tools/call"] = answers.first(1, with_content_type(media_type, FILLERS[filler], spell))
            async with at_once():
                assert await end_of(a, "echo") == "fine"
        server.on["tools/call"] = answers.first(
            1, with_content_type("text/plain", FILLERS[filler], status=500)
        )
        async with at_once():
            assert "HTTP 500 Some: " in str(await end_of(a, "echo"))
        await serves(a)


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize(
    "said", ["json", "application/", "/", "a/b/c", "application/json, text/html", "\x7fa/b"]
)
async def test_t132_a_value_that_is_not_a_media_type_is_reported_as_data_of_unknown_type(
    bystander_host, said
):
    way = Way("http", replies="json")
    async with way.server() as server, bystander_host(way.entry(server)) as a:
        server.on["tools/call"] = answers.first(1, with_content_type(said, "x"))
        ended = str(await end_of(a, "echo"))
        assert "it answered a request with application/octet-stream instead of JSON or events" in ended
