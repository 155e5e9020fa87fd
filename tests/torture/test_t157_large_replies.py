"""T157: large replies other than tool results do not block the event loop: read in steps, in a thread, or
refused."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.calls.elicitation import ELICITATION_LIMIT_BYTES
from dragoman.catalog.paging import DEFINITION_LIMIT_BYTES
from dragoman.catalog.prompts import ALL_TEXT_LIMIT, MESSAGE_LIMIT, read_prompt_result
from dragoman.catalog.resources import read_contents
from dragoman.connections.session import REPLY_LIMITS_BYTES
from dragoman.content.blocks import ImageBlock, ResourceLinkBlock, TextBlock, UnknownBlock
from dragoman.errors import MessageTooLarge
from dragoman.interaction import FormAnswer, FormElicitation
from dragoman.protocol import INVALID_PARAMS
from tests.cpu_time import CpuTimer
from tests.servers import stdio_server
from tests.servers.web import answers, streamable
from tests.torture.conftest import LEGACY, MODERN
from tests.unit.fakes import reply_of, requests_answered_by

MEGABYTE = 1024 * 1024
SIZE = 16 * MEGABYTE
HIDDEN = "é\u200b"


def large(before: str, piece: str, after: str, size: int = SIZE) -> bytes:
    return (before + piece * (size // len(piece.encode())) + after).encode()


def reply_with(result: bytes) -> Any:
    return answers.body(lambda ask: b'{"jsonrpc":"2.0","id":%d,"result":%b}' % (ask.message["id"], result))


def text_of(text: str) -> str:
    return f'{{"content":{{"type":"text","text":"{text}"}}}}'


PROMPTS = {
    "many messages": ('{"messages":[1', "," + text_of(HIDDEN), "]}"),
    "long messages": ('{"messages":[1', "," + text_of(HIDDEN * 100_000), "]}"),
    "many blocks": ('{"messages":[{"content":[1', f',{{"type":"text","text":"{HIDDEN}"}}', "]}]}"),
    "one text": ('{"messages":[{"content":{"type":"text","text":"', HIDDEN, '"}}]}'),
    "escapes": ('{"messages":[{"content":{"type":"text","text":"', "\\n", '"}}]}'),
    "an unknown block": ('{"messages":[{"content":{"type":"x","y":[1', ",{}", "]}}]}"),
    "slow numbers": ('{"messages":[{"content":{"type":"x","y":[1', ",1e308", "]}}]}"),
    "a description": ('{"messages":[],"description":[1', ",{}", "]}"),
}


@pytest.mark.slow
@pytest.mark.requirement("CAT-10")
@pytest.mark.parametrize("what", PROMPTS)
async def test_t157_a_large_prompt_does_not_block_the_event_loop(bystander_host, what):
    async with streamable(revisions=(MODERN,)) as server:
        server.in_memory.contents.add_prompt("ask", lambda _: "fine", [], {})
        entry = {"url": server.url, "protocol": MODERN, "headers": {"Authorization": "Bearer s3cr3t-0f-it"}}
        async with bystander_host(entry) as a:
            server.on["prompts/get"] = answers.first(1, reply_with(large(*PROMPTS[what])))
            found = await a.host.prompts.get("mcp__hostile__ask", timeout_seconds=30)
            texts = [each.content.text for each in found.messages if isinstance(each.content, TextBlock)]
            assert sum(map(len, texts)) <= ALL_TEXT_LIMIT + 100
            assert len(found.messages) <= MESSAGE_LIMIT
            assert (await a.host.prompts.get("mcp__hostile__ask")).messages[0].content == TextBlock("fine")


RESOURCES = {
    "parts": ('{"contents":[1', ",{}", "]}"),
    "a text": ('{"contents":[{"uri":"a:b","text":"', HIDDEN, '"}]}'),
    "many e": ('{"contents":[{"uri":"a:b","text":"', "e", '"}]}'),
    "escapes": ('{"contents":[{"uri":"a:b","text":"', "\\n", '"}]}'),
    "another member": ('{"contents":[{"uri":"a:b","text":"x","y":[1', ",{}", "]}]}"),
    "a wrong member": ('{"contents":[{"uri":"a:b","text":"x","mimeType":[1', ",{}", "]}]}"),
}


@pytest.mark.slow
@pytest.mark.requirement("CAT-9")
@pytest.mark.parametrize("what", RESOURCES)
async def test_t157_a_large_resource_does_not_block_the_event_loop(bystander_host, what):
    async with streamable(revisions=(MODERN,)) as server:
        server.in_memory.contents.add_resource("a:b", "fine")
        entry = {"url": server.url, "protocol": MODERN, "headers": {"Authorization": "Bearer s3cr3t-0f-it"}}
        async with bystander_host(entry) as a:
            server.on["resources/read"] = answers.first(1, reply_with(large(*RESOURCES[what])))
            found = await a.host.resources.read("hostile", "a:b", timeout_seconds=30)
            texts = {"a text": HIDDEN * (SIZE // 5), "many e": "e" * SIZE, "escapes": "\n" * (SIZE // 2)}
            assert found.text == texts.get(what, "")
            assert bool(found.problems) is (what not in texts)
            assert (await a.host.resources.read("hostile", "a:b")).text == "fine"


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("what", ["[1", '["x"'])
async def test_t157_a_large_completion_is_refused(bystander_host, what):
    piece = "," + what[1:].replace("x", HIDDEN)
    async with streamable(revisions=(MODERN,)) as server:
        server.in_memory.contents.add_prompt("ask", lambda _: "fine", [{"name": "word"}], {})
        async with bystander_host({"url": server.url, "protocol": MODERN}) as a:
            reply = large('{"completion":{"values":' + what, piece, "]}}")
            server.on["completion/complete"] = answers.first(1, reply_with(reply))
            with pytest.raises(MessageTooLarge) as caught:
                await a.host.prompts.complete("mcp__hostile__ask", "word", "x")
            limit = REPLY_LIMITS_BYTES["completion/complete"]
            words = f"the reply from hostile to completion/complete is larger than the limit of {limit} bytes"
            assert str(caught.value).startswith(words)


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
async def test_t157_large_server_instructions_are_refused(bystander_host, revision):
    method = "initialize" if revision == LEGACY else "server/discover"
    start = f'{{"protocolVersion":"{revision}","supportedVersions":["{revision}"],"capabilities":{{"x":[1'
    async with streamable(revisions=(revision,)) as server:
        server.on[method] = reply_with(large(start, ",{}", "]}}"))
        async with bystander_host({"url": server.url}, wait=False) as a:
            await a.host.ready(timeout=20)
            assert a.view.status == "failed"
            limit = REPLY_LIMITS_BYTES[method]
            words = f"the reply from hostile to {method} is larger than the limit of {limit} bytes"
            assert words in (a.view.reason or "")


def tool(name: str, inside: str) -> str:
    return f'{{"name":"{name}","inputSchema":{{{inside}}}}}'


@pytest.mark.requirement("CAT-1")
@pytest.mark.parametrize("key", ["required", "annotations"])
async def test_t157_only_the_large_definition_is_left_out(bystander_host, key):
    inside = large('"required":["a"', f',"{HIDDEN}"', "]", 7 * MEGABYTE).decode()
    odd = tool("odd", inside)
    if key == "annotations":
        odd = '{"name":"odd","inputSchema":{},"annotations":{"x":[1' + ",1e308" * 500_000 + "]}}"
    async with streamable(revisions=(MODERN,)) as server:
        page = f'{{"tools":[{tool("first", "")},{odd},{tool("last", "")}]}}'
        server.on["tools/list"] = reply_with(page.encode())
        async with bystander_host({"url": server.url, "protocol": MODERN}) as a:
            assert [each.definition.name for each in a.host.tools() if each.server == "hostile"] == [
                "first",
                "last",
            ]
            assert a.view.problems == (
                f"tool 'odd' is left out: it is larger than {DEFINITION_LIMIT_BYTES} bytes",
            )


@pytest.mark.requirement("CAT-1")
async def test_t157_many_definitions_below_the_limit_are_read_in_steps(bystander_host):
    inside = large('"é":1,"required":["a"', ',"ééééééééé"', "]", DEFINITION_LIMIT_BYTES - 200).decode()
    names = [f"t{number:02}" for number in range(64)]
    async with streamable(revisions=(MODERN,)) as server:
        page = '{"tools":[' + ",".join(tool(name, inside) for name in names) + "]}"
        server.on["tools/list"] = reply_with(page.encode())
        entry = {"url": server.url, "protocol": MODERN, "headers": {"Authorization": "Bearer s3cr3t-0f-it"}}
        async with bystander_host(entry) as a:
            assert [each.definition.name for each in a.host.tools() if each.server == "hostile"] == names


class Person:
    def __init__(self) -> None:
        self.asked: list[FormElicitation] = []

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.asked.append(question)
        return FormAnswer("decline")


@pytest.mark.requirement("TRN-9")
async def test_t157_a_large_form_is_refused_and_a_smaller_one_is_processed_quickly():
    person = Person()
    start = '{"message":"?","requestedSchema":{"type":"object","x":[1'
    timer = CpuTimer()
    refused = await reply_of(
        requests_answered_by(person), 1, "elicitation/create", Raw(large(start, ",{}", "]}}"))
    )
    below = Raw(large(start, ",{}", "]}}", ELICITATION_LIMIT_BYTES - 200))
    shown = await reply_of(requests_answered_by(person), 2, "elicitation/create", below)

    assert timer.seconds() < 0.25
    error = {
        "code": INVALID_PARAMS,
        "message": f"the elicitation is larger than {ELICITATION_LIMIT_BYTES} bytes",
    }
    assert json.loads(refused)["error"] == error
    assert json.loads(shown)["result"] == {"action": "decline"}
    assert len(person.asked) == 1


NOTIFICATIONS = {
    "progress": (
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"message":"',
        "e",
    ),
    "an update": ('{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"', "e"),
}


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("what", NOTIFICATIONS)
async def test_t157_a_large_notification_does_not_block_the_event_loop(bystander_host, what):
    head, part = NOTIFICATIONS[what]
    async with bystander_host(stdio_server("writes_long_lines.py", protocol=LEGACY)) as a:
        text = await a.call(
            "say",
            head=head,
            part=part,
            times=24 * MEGABYTE,
            tail='","progress":1}}',
            on_progress=lambda _: None,
        )
        assert text == "right"


# Results of reading large replies.


def test_t157_a_large_image_of_a_prompt_is_read_in_full():
    data = "A" * MEGABYTE
    link = {"type": "resource_link", "uri": "a:b", "name": None, "size": 7, "x": "y" * MEGABYTE}
    blocks = [{"type": "image", "data": data, "mimeType": "image/png"}, link, {"type": "x", "y": data}]
    reply = {"messages": [{"role": "assistant", "content": block} for block in blocks], "resultType": None}

    kind, found = read_prompt_result(Raw(msgspec.json.encode(reply)))
    assert kind == "complete"
    assert [message.content for message in found.messages] == [
        ImageBlock(data, "image/png"),
        ResourceLinkBlock("a:b", size=7),
        UnknownBlock({"type": "x"}),
    ]
    assert {message.role for message in found.messages} == {"assistant"}
    assert found.problems == ()


def test_t157_the_total_size_of_the_texts_of_a_prompt_is_limited():
    message = {"role": None, "content": [{"type": "text", "text": "x" * 90_000}] * 5}
    _, found = read_prompt_result(Raw(msgspec.json.encode({"messages": [message] * 5})))

    lengths = [len(each.content.text) for each in found.messages if isinstance(each.content, TextBlock)]
    assert lengths[:11] == [90_000] * 11
    assert sum(lengths) <= ALL_TEXT_LIMIT + 100
    assert found.problems == ("more than 1000 messages or 1000000 characters: the rest is left out",)


@pytest.mark.parametrize("size", [10, MEGABYTE])
def test_t157_a_part_of_a_resource_is_the_same_at_every_size(size):
    text = 'é"\\\n😀' * size
    parts = [
        {"uri": "a:b", "text": text, "mimeType": None, "blob": None, "_meta": []},
        {"uri": "a:b", "text": text, "mimeType": 7},
        {"uri": 7, "text": text},
        {"uri": "a:b", "x": text},
        [text],
    ]
    reply = Raw(json.dumps({"contents": parts, "ttlMs": 5000}).encode())

    kind, found = read_contents(reply)
    assert (kind, found.ttl_seconds) == ("complete", 5.0)
    assert [(part.uri, part.mime_type, part.text == text, part.blob) for part in found.contents] == [
        ("a:b", None, True, None)
    ] * 2
    assert [problem.partition(":")[0] for problem in found.problems] == [
        f"part {number} is left out" for number in (3, 4, 5)
    ]
