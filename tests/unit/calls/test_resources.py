"""Resources for programs and for models: which server is asked what, and what becomes of failures."""

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from dragoman.calls.reading_tools import LISTED_LIMIT, describe, resource_tools
from dragoman.calls.resources import ResourceReader, Resources
from dragoman.calls.sending import Listed
from dragoman.catalog.resources import Resource, ResourceTemplate
from dragoman.catalog.tools import BuiltinTool
from dragoman.content.blocks import TextBlock
from dragoman.content.media import TEXT_LIMIT
from dragoman.content.redact import Redactor
from dragoman.errors import (
    CallError,
    ConnectionLost,
    InvalidArguments,
    MalformedReply,
    NotConnected,
    RemoteError,
)
from dragoman.names import ServerName
from dragoman.servers.lists import PROMPTS, RESOURCES, TEMPLATES, ListContext, ListReader, notifies_changes
from dragoman.servers.read_cache import ReadCache
from dragoman.settings import Settings
from dragoman.testing import FakeClock
from tests.unit.fakes import Nobody, allowed_requests

pytestmark = pytest.mark.requirement("CAT-9")
BOX = ServerName("box")
Reply = Mapping[str, Any] | Exception


class Session:
    """Answers by method; several answers one after the other, the last of them for ever."""

    def __init__(self, server: str, **replies: Reply | list[Reply]) -> None:
        self.server = server
        self.driver = SimpleNamespace(era="modern", revision="2026-07-28")
        self.lost_cause = None
        self.asked: list[tuple[str, Any]] = []
        self._replies = {
            method: list(reply) if isinstance(reply, list) else [reply] for method, reply in replies.items()
        }

    async def request(self, method: str, params: Any, *, before_send: Any, **options: Any) -> Raw:
        before_send()
        self.asked.append((method, params))
        replies = self._replies[method.rpartition("/")[0].replace("/", "_") + "_" + method.rpartition("/")[2]]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, Exception):
            raise reply
        return Raw(json.dumps(reply).encode())


class FakeServer:
    """A server with a session, or without one and the reason."""

    request_seconds = 5.0
    redactor = None
    requests: Any = Nobody()

    def __init__(
        self, registry: "Servers", name: str, session: Session | None, absence: str | None = None
    ) -> None:
        self.name = ServerName(name)
        self.absence = absence
        self._registry = registry
        self._session = session
        about = ListContext(self.name, Settings({}, {}), registry.clock, Redactor(()))
        self.resources = ListReader(RESOURCES, about)
        self.templates = ListReader(TEMPLATES, about)
        self.prompts = ListReader(PROMPTS, about)
        self.reads = ReadCache(registry.clock)

    def session(self) -> Any:
        return self._session

    async def wait_for_session(self, seconds: float) -> Any:
        self._registry.waited += 1
        raise NotConnected(self.name, "failed", "it fell over")

    def offers(self, capability: str) -> bool:
        return capability in self._registry.capabilities

    def notifies_changes(self, capability: str) -> bool:
        return notifies_changes(self._registry.capabilities, capability)


class Servers(dict[str, Any]):
    """A registry of such servers."""

    def __init__(self, *sessions: Session, away: Mapping[str, str | None] | None = None) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.capabilities: dict[str, Any] = {"resources": {"listChanged": True}, "prompts": {}}
        self.waited = 0
        for session in sessions:
            self[session.server] = FakeServer(self, session.server, session)
        for name, reason in (away or {}).items():
            self[name] = FakeServer(self, name, None, reason)

    def find(self, name: str) -> Any:
        return self.get(name)

    def naming_servers(self) -> list[str]:
        return list(self)


def resources_of(servers: Any) -> Resources:
    return Resources(ResourceReader(servers), allowed_requests())


def tools_of(servers: Any) -> tuple[BuiltinTool, BuiltinTool]:
    return resource_tools(resources_of(servers), ResourceReader(servers))


def listing(*uris: str) -> dict[str, Any]:
    return {"resources": [{"uri": uri} for uri in uris]}


async def test_all_servers_are_read_and_one_failure_does_not_affect_the_others():
    servers = Servers(
        Session("b", resources_list=listing("x:b")),
        Session("a", resources_list=listing("x:a")),
        Session("c", resources_list=RemoteError("c", -32603, "on fire")),
        away={"d": "it has failed: no such program", "e": None},
    )
    found = await resources_of(servers).list()

    assert [(each.server, each.uri) for each in found] == [("a", "x:a"), ("b", "x:b")]
    assert found.problems == (
        "c: the list of resources is incomplete: c answered error -32603: on fire",
        "d: it has failed: no such program",
    )
    assert servers.waited == 0, "there is no wait for an absent server"


async def test_a_server_without_resources_is_not_read():
    box = Session("box")
    servers = Servers(box)
    servers.capabilities = {"tools": {}}

    assert (await resources_of(servers).list()).problems == ()
    assert (await resources_of(servers).list("box")).problems == ("box: it offers no resources",)
    with pytest.raises(CallError, match="box offers no resources"):
        await resources_of(servers).read("box", "x:a")
    assert box.asked == []


async def test_a_named_server_that_is_absent_or_unknown_is_an_error():
    servers = Servers(away={"box": "it has failed"})
    for act in (resources_of(servers).list("box"), resources_of(servers).read("box", "x:a")):
        with pytest.raises(NotConnected, match="it fell over"):
            await act
    with pytest.raises(NotConnected, match="bax is not configured") as caught:
        await resources_of(servers).read("bax", "x:a")
    assert caught.value.hint == "There are: box."


async def test_a_resource_is_returned_unchanged():
    box = Session("box", resources_read={"contents": [{"uri": "x:a", "text": "a\u202eb"}]})
    found = await resources_of(Servers(box)).read("box", "x:a")

    assert box.asked == [("resources/read", {"uri": "x:a"})]
    assert found.text == "a\u202eb"


@pytest.mark.parametrize("code", [-32602, -32002])
async def test_both_not_found_codes_give_an_error_with_the_next_step(code: int):
    box = Session("box", resources_read=RemoteError("box", code, "unknown resource"))
    with pytest.raises(RemoteError) as caught:
        await resources_of(Servers(box)).read("box", "x:a")
    assert "list its resources" in (caught.value.hint or "")


@pytest.mark.parametrize("uri", ["", "x" * 9000, "a\nb", "a\x00"], ids=lambda uri: ascii(uri)[:10])
async def test_an_invalid_uri_is_not_sent(uri: str):
    box = Session("box")
    with pytest.raises(InvalidArguments):
        await resources_of(Servers(box)).read("box", uri)
    assert box.asked == []


async def test_a_lost_read_request_is_retried_once():
    lost = ConnectionLost("box", "gone", may_have_run=True)
    box = Session("box", resources_read=[lost, {"contents": []}])
    assert (await resources_of(Servers(box)).read("box", "x:a")).contents == ()
    box = Session("box", resources_read=lost)
    with pytest.raises(ConnectionLost):
        await resources_of(Servers(box)).read("box", "x:a")
    assert len(box.asked) == 2


async def test_a_reply_without_contents_is_malformed():
    with pytest.raises(MalformedReply, match="no 'contents'"):
        await resources_of(Servers(Session("box", resources_read={}))).read("box", "x:a")


@pytest.mark.requirement("CAT-5")
@pytest.mark.parametrize(
    ("more", "asked"), [({}, 2), ({"ttlMs": 0}, 2), ({"ttlMs": 60_000}, 1), ({"ttlMs": -1}, 2)], ids=str
)
async def test_a_resource_is_cached_only_with_a_ttl_of_its_server(more: dict[str, Any], asked: int):
    box = Session("box", resources_read={"contents": [], **more})
    resources = resources_of(Servers(box))
    for _ in range(2):
        await resources.read("box", "x:a")

    assert len(box.asked) == asked


@pytest.mark.requirement("CAT-5")
async def test_a_cached_resource_is_read_again_after_an_update_notification():
    box = Session("box", resources_read={"contents": [], "ttlMs": 60_000})
    servers = Servers(box)
    resources = resources_of(servers)
    await resources.read("box", "x:a")
    await resources.read("box", "x:b")
    servers["box"].reads.changed()
    await resources.read("box", "x:a")

    assert [params["uri"] for _, params in box.asked] == ["x:a", "x:b", "x:a"]


# For models.


def test_both_tools_are_deferred_and_only_reading_is_asked_about():
    tools = tools_of(Servers())

    assert [tool.name for tool in tools] == ["list_mcp_resources", "read_mcp_resource"]
    assert [tool.defers for tool in tools] == [True, True]
    assert [tool.needs_permission for tool in tools] == [False, True]
    assert [tool.hints.read_only for tool in tools] == [True, True]
    assert tools[1].input_schema["required"] == ["uri"]
    assert [tool.server_argument for tool in tools] == ["server", "server"], "rules about it hold"


async def test_a_model_is_given_the_list_as_json():
    templates = {"resourceTemplates": [{"uriTemplate": "x:{a}", "name": "any"}]}
    box = Session("box", resources_list=listing("x:a"), resources_templates_list=templates)
    list_them, _ = tools_of(Servers(box, away={"d": "it has failed"}))

    assert json.loads(str(await list_them.run({}))) == {
        "resources": [{"server": "box", "uri": "x:a", "name": "x:a"}],
        "resourceTemplates": [{"server": "box", "uriTemplate": "x:{a}", "name": "any"}],
        "problems": ["d: it has failed"],
    }


async def test_a_model_is_given_cleaned_text():
    box = Session("box", resources_read={"contents": [{"uri": "x:a", "text": "a\u202eb"}, 7]})
    _, read_one = tools_of(Servers(box))

    blocks: Any = await read_one.run({"server": "box", "uri": "x:a"})
    assert blocks[0] == TextBlock("ab")
    assert "part 2 is left out" in blocks[1].text


@pytest.mark.parametrize(("count", "length"), [(10_000, 10), (300, 2000), (0, 0)])
def test_however_long_the_lists_are_a_model_gets_json_of_a_bounded_length(count: int, length: int):
    resources = tuple(
        Resource(server=BOX, uri=f"x:{number}", name="n", description="d" * length) for number in range(count)
    )
    templates = tuple(
        ResourceTemplate(server=BOX, uri_template=f"x:{number}", name="n", description="d" * length)
        for number in range(count)
    )
    text = describe(Listed(resources, ("p" * 100,) * 50), Listed(templates))
    shown = json.loads(text)

    assert len(text) <= TEXT_LIMIT
    assert len(shown["resources"]) <= LISTED_LIMIT
    if count:
        assert f"{count - len(shown['resources'])} more resources" in shown["notShown"]
