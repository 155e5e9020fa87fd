"""Callers of the gateway with sign-ins of their own at one server."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Collection, Iterator
from typing import Any

import pytest

from dragoman.events import ServerLogged
from dragoman.gateway import callers as callers_module
from dragoman.gateway.access import KnownCaller, RequestRefused
from dragoman.gateway.settings import CallerEntry, View
from dragoman.interaction import Caller
from dragoman.testing import InMemoryServer
from tests.callers_site import Browser, CallersSite, begin, call, names, signed_in
from tests.gateway import ADA, BOB, LEGACY, Client, Json, Running, gateway_of
from tests.integration.waiting import until
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-3")
FORMS: Json = {"elicitation": {"form": {}}}
SHARED = ["files__look"]
WAITING = [*SHARED, "tracker__authenticate"]
SIGNED_IN = [*SHARED, "tracker__look", "tracker__whoami"]


@pytest.fixture
def site() -> Iterator[CallersSite]:
    with CallersSite() as running:
        yield running


def files() -> InMemoryServer:
    server = InMemoryServer("files")
    server.add_tool("look", lambda arguments, context: "seen by all")
    server.contents.add_resource("file:///a", "shared")
    server.contents.add_prompt("hello", "hello", (), {})
    return server


@contextlib.asynccontextmanager
async def gateway(site: CallersSite, **options: Any) -> AsyncIterator[Running]:
    async with gateway_of({"files": files(), "tracker": site.entry}, own=["tracker"], **options) as running:
        yield running


async def test_a_caller_without_a_sign_in_sees_shared_tools_and_authenticate(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada:
        assert await names(ada) == WAITING
        assert await call(ada, "files__look") == "seen by all"
        assert await call(ada) == "Unknown tool: tracker__whoami"


async def test_each_caller_uses_its_own_account(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        await signed_in(ada, site, "anna")
        assert await names(bob) == WAITING
        await signed_in(bob, site, "bert")
        assert await names(ada) == SIGNED_IN
        for _ in range(2):
            assert [await call(ada), await call(bob)] == ["anna", "bert"]


async def test_resources_prompts_and_instructions_are_those_of_the_callers_account(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        for client, account in ((ada, "anna"), (bob, "bert")):
            await signed_in(client, site, account)
            listed = (await client.modern("resources/list")).last["result"]["resources"]
            assert [each["uri"] for each in listed] == ["file:///a", "account://me"]
            for _ in range(2):  # the second is read from memory
                read = (await client.modern("resources/read", {"uri": "account://me"})).last["result"]
                assert read["contents"] == [{"uri": "account://me", "text": account}]
            prompts = (await client.modern("prompts/list")).last["result"]["prompts"]
            assert [each["name"] for each in prompts] == ["files__hello", "tracker__greet"]
            said = (await client.modern("prompts/get", {"name": "tracker__greet"})).last["result"]
            assert said["messages"][0]["content"]["text"] == account
            found = (await client.modern("server/discover")).last["result"]
            assert found["instructions"] == f"## tracker\nfor {account}"
        async with Client(running.url, ADA) as again:
            assert (await again.initialize()).last["result"]["instructions"] == "## tracker\nfor anna"


@contextlib.asynccontextmanager
async def notices(client: Client) -> AsyncIterator[list[str]]:
    """The methods of the notifications that a client of the legacy era gets meanwhile."""
    found: list[str] = []

    async def read(response: Any) -> None:
        async for line in response.content:
            if line.startswith(b"data: {"):
                found.append(json.loads(line[6:])["method"])

    async with client.http.get(client.url, headers=client.headers) as response:
        reading = asyncio.create_task(read(response))
        try:
            yield found
        finally:
            reading.cancel()


async def test_clients_of_the_caller_are_notified_of_its_new_tools_and_no_others(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        for client in (ada, bob):
            await client.initialize()
            assert len((await client.legacy("tools/list")).last["result"]["tools"]) == 2
        async with notices(ada) as of_ada, notices(bob) as of_bob, Client(running.url) as other:
            for found in (
                of_ada,
                of_bob,
            ):  # each one's own server has answered by now that it wants a sign-in
                await until(lambda found=found: len(found) == 3)
                found.clear()
            await signed_in(other, site, "anna")
            await until(lambda: "notifications/tools/list_changed" in of_ada)
            listed = (await ada.legacy("tools/list")).last["result"]["tools"]
            assert [tool["name"] for tool in listed] == SIGNED_IN
            assert of_bob == []


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (CallerEntry(token=ADA, servers=("files",)), SHARED),
        (CallerEntry(token=ADA, tools=("files__*",)), SHARED),
        (CallerEntry(token=ADA, tools=("track",)), []),
        (CallerEntry(token=ADA, servers=("tracker",)), ["tracker__authenticate"]),
        (CallerEntry(token=ADA, tools=("tracker__who*",)), ["tracker__authenticate"]),
        (CallerEntry(token=ADA, tools=("*__look",)), WAITING),
    ],
)
async def test_only_a_caller_that_may_use_the_server_is_offered_a_sign_in(
    site: CallersSite, entry: CallerEntry, expected: list[str]
):
    async with gateway(site, callers={"ada": entry}) as running, Client(running.url) as ada:
        assert await names(ada) == expected
        assert len(running.gateway.callers or ()) == ("tracker__authenticate" in expected)
        if "tracker__authenticate" not in expected:
            assert await call(ada, "tracker__authenticate") == "Unknown tool: tracker__authenticate"


async def test_a_view_without_the_server_offers_no_sign_in_and_one_with_it_does(site: CallersSite):
    views = {"a": View(servers=("files",)), "b": View(servers=("tracker",), rename={"tracker__look": "peek"})}
    async with gateway(site, views=views) as running, Client(f"{running.url}/a") as a:
        assert await names(a) == SHARED
        async with Client(f"{running.url}/b") as b, Client(running.url) as ada:
            assert await names(b) == ["tracker__authenticate"]
            await signed_in(ada, site, "anna")
            assert await names(b) == ["peek", "tracker__whoami"]
            assert [await call(b, "peek"), await call(a, "tracker__look")] == [
                "anna",
                "Unknown tool: tracker__look",
            ]


async def test_what_a_rule_denies_is_not_offered_before_or_after_a_sign_in(site: CallersSite):
    async with gateway(site, rules={"deny": ["mcp__tracker"]}) as running, Client(running.url) as ada:
        assert await names(ada) == SHARED
        assert await call(ada, "tracker__authenticate") == "Unknown tool: tracker__authenticate"
    async with gateway(site, rules={"deny": ["mcp__tracker__look"]}) as running, Client(running.url) as ada:
        await signed_in(ada, site, "anna")
        assert await names(ada) == [*SHARED, "tracker__whoami"]


async def test_plain_names_are_unique_for_each_caller(site: CallersSite):
    async with gateway(site, plain_names=True) as running, Client(running.url) as ada:
        assert await names(ada) == ["look", "authenticate"]
        async with Browser(site, "anna") as browser:
            await browser.sign_in(await begin(ada, "authenticate"))
        await until(lambda: has_names(ada, ["files__look", "tracker__look", "whoami"]))
        assert await call(ada, "whoami") == "anna"
        async with Client(running.url, BOB) as bob:
            assert await names(bob) == ["look", "authenticate"]


async def has_names(client: Client, expected: list[str]) -> bool:
    return await names(client) == expected


async def test_a_callers_server_with_a_name_similar_to_a_shared_one_has_distinct_tool_names(
    site: CallersSite,
):
    servers = {"a.b": site.entry, "a_b": files()}
    async with gateway_of(servers, own=["a.b"]) as running, Client(running.url) as ada:
        sign_in, shared = await names(ada)
        assert shared.startswith("a_b__look_")
        assert sign_in == "a_b__authenticate"
        async with Browser(site, "anna") as browser:
            await browser.sign_in(await begin(ada, sign_in))
        await until(lambda: has_count(ada, 3))
        found = await names(ada)
        assert len(set(found)) == 3
        assert shared in found
        assert {await call(ada, name) for name in found} == {"anna", "seen by all"}


async def has_count(client: Client, count: int) -> bool:
    return len(await names(client)) == count


async def test_a_server_that_does_not_answer_delays_only_the_first_list_of_its_caller(site: CallersSite):
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        writer.close()

    hanging = await asyncio.start_server(never, "127.0.0.1", 0)
    port = hanging.sockets[0].getsockname()[1]
    servers = {"files": files(), "tracker": {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}}
    async with hanging, gateway_of(servers, own=["tracker"]) as running, Client(running.url) as ada:
        async with asyncio.timeout(10):
            assert await names(ada) == SHARED
        async with asyncio.timeout(0.9):  # the first list has waited a second
            assert await names(ada) == SHARED
            assert await call(ada, "files__look") == "seen by all"
            assert len((await ada.modern("resources/list")).last["result"]["resources"]) == 1


async def test_the_servers_of_an_idle_caller_are_closed_and_reopened_by_its_next_request(
    site: CallersSite, monkeypatch: pytest.MonkeyPatch
):
    async with gateway(site) as running, Client(running.url) as ada:
        hosts = running.gateway.callers
        assert hosts is not None
        await signed_in(ada, site, "anna")
        hosts.close_idle()
        assert len(hosts) == 1
        monkeypatch.setattr(callers_module, "IDLE_SECONDS", -1.0)
        hosts.close_idle()
        assert len(hosts) == 0
        assert await call(ada) == "anna"  # the call waits for the connection
        assert len(hosts) == 1


async def test_when_too_many_callers_have_servers_the_longest_unused_are_closed(
    site: CallersSite, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(callers_module, "HOSTS_LIMIT", 1)
    async with gateway(site) as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        await signed_in(ada, site, "anna")
        await signed_in(bob, site, "bert")
        for _ in range(3):
            assert [await call(ada), await call(bob)] == ["anna", "bert"]
        assert len(running.gateway.callers or ()) == 1
        link = await begin_again(running, bob)
        reports: list[str] = []
        running.gateway.report = reports.append
        assert await names(ada) == SHARED, "the only place is taken by a sign-in that is under way"
        last = (await ada.modern("tools/call", {"name": "tracker__whoami", "arguments": {}})).last
        assert last["error"] == {
            "code": -32603,
            "message": "Unknown tool: tracker__whoami; the tools of tracker cannot be used now: too many "
            "callers use servers with accounts of their own. Try again in a minute.",
            "data": {"code": "too-many-callers", "retryAfter": 60},
        }
        assert await call(ada, "files__look") == "seen by all"
        (report,) = reports
        assert report.startswith("ada is served without tracker: too many callers use servers with accounts")
        async with ada.http.get(f"http://127.0.0.1:{running.port}/metrics", headers=ada.headers) as response:
            assert "dragoman_caller_hosts_refused_total 3" in (await response.text()).splitlines()
        assert link
        assert await call(bob, "files__nothing") == "Unknown tool: files__nothing"


async def begin_again(running: Running, client: Client) -> str:
    hosts = running.gateway.callers
    assert hosts is not None
    own = hosts.find(Caller("bob"))
    assert own is not None
    await own.host.sign_out("tracker")
    return await begin(client)


async def test_no_session_is_shared_by_two_callers(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        await signed_in(ada, site, "anna")
        await signed_in(bob, site, "bert")
        assert sorted(account for account, _ in site.sessions) == ["anna", "bert"]
        assert len({session for _, session in site.sessions}) == 2


async def test_headers_are_compared_with_the_arguments_of_a_callers_tool_even_before_it_is_connected(
    site: CallersSite,
):
    async with gateway(site) as running, Client(running.url) as ada:
        await signed_in(ada, site, "anna")
        hosts = running.gateway.callers
        assert hosts is not None
        for _ in range(2):
            ada.headers["Mcp-Param-Region"] = "north"
            params: Json = {"name": "tracker__whoami", "arguments": {"region": "south"}}
            refused = await ada.modern("tools/call", params)
            assert (refused.status, refused.last["error"]["code"]) == (400, -32020)
            ada.headers["Mcp-Param-Region"] = "south"
            assert (await ada.modern("tools/call", params)).status == 200
            await hosts.close()


@contextlib.asynccontextmanager
async def office_over_http(site: CallersSite, office: Office) -> AsyncIterator[str]:
    """An office that admits the accounts of the site: its URL."""
    metadata: Json = {"authorization_servers": [site.origin]}
    path = "/.well-known/oauth-protected-resource/mcp"

    async def identify(authorization: Collection[str]) -> KnownCaller:
        token = next(iter(authorization), "").removeprefix("Bearer ")
        if token not in site.tokens:
            where = metadata["resource"].replace("/mcp", path)
            raise RequestRefused(401, "", {"WWW-Authenticate": f'Bearer resource_metadata="{where}"'})
        return KnownCaller(Caller(site.owners[token]))

    async with gateway_of(
        {"office": office}, plain_names=True, identify=identify, documents={path: metadata}
    ) as running:
        metadata["resource"] = running.url
        yield running.url


async def test_questions_progress_logs_and_subscriptions_reach_the_client_of_the_caller(site: CallersSite):
    office = Office((LEGACY,))
    async with office_over_http(site, office) as url:
        servers = {"tracker": {"type": "http", "url": url, "protocol": LEGACY}}
        async with gateway_of(servers, own=["tracker"]) as running, Client(running.url) as ada:
            async with Browser(site, "anna") as browser:
                await browser.sign_in(await begin(ada))
            await until(lambda: has_count(ada, 6))
            params: Json = {"name": "tracker__count", "arguments": {"to": 2}}
            meta: Json = {"progressToken": "p", "io.modelcontextprotocol/logLevel": "info"}
            counted = await ada.modern("tools/call", params, meta=meta)
            assert sorted(each.get("method", "") for each in counted.messages) == [
                "",
                "notifications/message",
                "notifications/message",
                "notifications/progress",
                "notifications/progress",
            ]
            params = {"name": "tracker__ask", "arguments": {}}
            for name in ("Ada", "Bob"):
                asked = (await ada.modern("tools/call", params, capabilities=FORMS)).last["result"]
                (key,) = asked["inputRequests"]
                params["requestState"] = asked["requestState"]
                params["inputResponses"] = {key: {"action": "accept", "content": {"name": name}}}
            last = (await ada.modern("tools/call", params, capabilities=FORMS)).last["result"]
            said = json.loads(last["content"][0]["text"])
            assert [each["content"]["name"] for each in said] == ["Ada", "Bob"]
            await ada.initialize()
            async with notices(ada) as of_ada:
                await ada.legacy("resources/subscribe", {"uri": "file:///a"})
                await ada.legacy("tools/call", {"name": "tracker__touch", "arguments": {"uri": "file:///a"}})
                await until(lambda: "notifications/resources/updated" in of_ada)


class Logged:
    """A request of a client that notes the log messages for it."""

    def __init__(self) -> None:
        self.request = self
        self.texts: list[str] = []

    def log(self, level: str, text: str, logger: str) -> None:
        self.texts.append(text)


async def test_log_messages_reach_their_caller_while_another_uses_the_same_server(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        assert await names(ada) == await names(bob) == WAITING
        hosts = running.gateway.callers
        assert hosts is not None
        own, other = hosts.find(Caller("ada")), hosts.find(Caller("bob"))
        assert own is not None
        assert other is not None
        of_ada, of_bob, of_all = Logged(), Logged(), Logged()
        requests: list[tuple[Any, Any]] = [
            (own.host, of_ada),
            (other.host, of_bob),
            (running.host, of_all),
        ]
        for host, request in requests:
            running.gateway.request_began(host, "tracker", request)
        for host, text in ((own.host, "for ada"), (other.host, "for bob")):
            event = ServerLogged(server="tracker", level="info", text=text, is_message=True)
            host._bus.publish(event)  # pyright: ignore[reportPrivateUsage]
        await until(lambda: of_ada.texts and of_bob.texts)
        for host, request in requests:
            running.gateway.request_ended(host, "tracker", request)
        assert [of_ada.texts, of_bob.texts, of_all.texts] == [["for ada"], ["for bob"], []]


async def test_a_running_call_of_a_callers_server_may_finish_when_the_gateway_ends(
    site: CallersSite,
):
    async with Client("") as ada:
        async with gateway(site) as running:
            ada.url = running.url
            await signed_in(ada, site, "anna")
            site.may_answer.clear()
            calling = asyncio.create_task(call(ada))
            await until(lambda: site.calls == 1)
            asyncio.get_running_loop().call_later(0.2, site.may_answer.set)
        assert await calling == "anna"


PAGES: Json = {"elicitation": {"url": {}}}
SIGN_IN: Json = {"name": "tracker__authenticate", "arguments": {}}
DONE = "The sign-in to tracker is done. Its tools can be used now."


async def test_a_client_with_url_elicitation_gets_the_sign_in_page(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada, Browser(site, "anna") as browser:
        asked = (await ada.modern("tools/call", SIGN_IN, capabilities=PAGES)).last["result"]
        ((key, question),) = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        link = question["params"]["url"]
        assert question["params"] == {"mode": "url", "message": "Sign in to tracker", "url": link}
        assert link.startswith(f"http://127.0.0.1:{running.port}/sign-in/")
        answered = {
            **SIGN_IN,
            "requestState": asked["requestState"],
            "inputResponses": {key: {"action": "accept"}},
        }
        ending = asyncio.create_task(ada.modern("tools/call", answered, capabilities=PAGES))
        assert (await browser.sign_in(link)).title == "You are signed in"
        assert (await ending).last["result"]["content"][0]["text"] == DONE
        assert await call(ada) == "anna"


@pytest.mark.requirement("ASK-2")
async def test_a_legacy_client_with_the_page_is_notified_when_the_sign_in_ends(
    site: CallersSite,
):
    async with gateway(site) as running, Client(running.url) as ada, Browser(site, "anna") as browser:
        await ada.initialize(PAGES)
        message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": SIGN_IN}
        seen: list[Json] = []
        async with ada.http.post(ada.url, headers=ada.headers, json=message) as response:
            async for line in response.content:
                if line.startswith(b"data: {"):
                    seen.append(json.loads(line[6:]))
                    if seen[-1].get("method") == "elicitation/create":
                        answer = {"jsonrpc": "2.0", "id": seen[-1]["id"], "result": {"action": "accept"}}
                        await ada.post(answer)
                        await browser.sign_in(seen[-1]["params"]["url"])
        asked, complete, done = seen
        assert complete == {
            "jsonrpc": "2.0",
            "method": "notifications/elicitation/complete",
            "params": {"elicitationId": asked["params"]["elicitationId"]},
        }
        assert done["result"]["content"][0]["text"] == DONE


async def test_after_a_declined_page_the_result_contains_its_url(site: CallersSite):
    async with gateway(site) as running, Client(running.url) as ada:
        asked = (await ada.modern("tools/call", SIGN_IN, capabilities=PAGES)).last["result"]
        ((key, question),) = asked["inputRequests"].items()
        declined: Json = {
            "requestState": asked["requestState"],
            "inputResponses": {key: {"action": "decline"}},
        }
        said = (await ada.modern("tools/call", {**SIGN_IN, **declined}, capabilities=PAGES)).last
        assert question["params"]["url"] in said["result"]["content"][0]["text"]
        assert await names(ada) == WAITING


async def test_tool_search_finds_the_tools_of_the_caller_and_of_no_other(site: CallersSite):
    async with (
        gateway(site, views={"small": View(tool_search=True)}) as running,
        Client(f"{running.url}/small") as ada,
        Client(f"{running.url}/small", BOB) as bob,
        Client(running.url) as other,
    ):
        await signed_in(other, site, "anna")
        for client, found in ((ada, True), (bob, False), (ada, True)):
            params: Json = {"name": "tool_search", "arguments": {"query": "whoami"}}
            said = (await client.modern("tools/call", params)).last["result"]["content"][0]["text"]
            assert ("tracker__whoami" in said) is found
        called: Json = {"name": "call_tool", "arguments": {"name": "tracker__whoami", "arguments": {}}}
        done = (await ada.modern("tools/call", called)).last["result"]
        assert done["content"][0]["text"] == "anna"
