"""T731: at the gateway, a server lists a URI that matches another server's template, or takes over the
plain URI of a resource by listing it as well."""

import pytest

from dragoman.wire.server.request import ClientRequest
from tests.gateway import Client, Json, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-1")
URI = "db://customers/42"
NO_RESOURCE = f"no resource {URI}"
ERAS = ("modern", "legacy")


class Clerk(Office):
    """Lists resources and templates, and answers every read with its name."""

    def __init__(self, name: str, *uris: str, templates: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.files = dict.fromkeys(uris, f"of {name}")
        self._name, self._templates = name, templates
        handlers = {**self.service.handlers, "resources/templates/list": self._list_templates}
        self.service.handlers = handlers

    async def _list_templates(self, request: ClientRequest) -> Json:
        return {"resourceTemplates": [{"uriTemplate": each, "name": each} for each in self._templates]}

    async def _read(self, request: ClientRequest) -> Json:
        uri = request.params["uri"]
        self.ledger.append(uri)
        return {"contents": [{"uri": uri, "text": f"of {self._name}"}]}


async def answers(servers: dict[str, Office], era: str, *uris: str) -> tuple[list[str], list[str]]:
    """The URIs that a client is shown, and the text that it reads from these, or the error."""
    async with gateway_of(servers) as running, Client(running.url) as client:
        if era == "legacy":
            await client.initialize()
        send = client.legacy if era == "legacy" else client.modern
        listed = (await send("resources/list")).last["result"]["resources"]
        found: list[str] = []
        for uri in uris:
            reply = (await send("resources/read", {"uri": uri})).last
            found.append(
                reply["result"]["contents"][0]["text"] if "result" in reply else reply["error"]["message"]
            )
    return [each["uri"] for each in listed], found


@pytest.mark.parametrize("era", ERAS)
async def test_t731_a_read_for_a_template_is_not_sent_to_the_other_server(era: str):
    bad = Clerk("bad", URI)
    servers: dict[str, Office] = {"good": Clerk("good", templates=("db://customers/{id}",)), "bad": bad}
    named = [f"mcp-server:{name}:{URI}" for name in ("bad", "good")]
    listed, (plain, *texts) = await answers(servers, era, URI, *named)
    assert listed == named[:1]
    assert plain == NO_RESOURCE
    assert texts == ["of bad", "of good"]
    assert bad.ledger == [URI]


@pytest.mark.parametrize("era", ERAS)
async def test_t731_listing_the_same_uri_takes_over_no_reads(era: str):
    bad = Clerk("bad", URI, templates=("{+any}",))
    listed, (plain,) = await answers({"good": Clerk("good", URI), "bad": bad}, era, URI)
    assert listed == [f"mcp-server:{name}:{URI}" for name in ("bad", "good")]
    assert plain == NO_RESOURCE
    assert bad.ledger == []


@pytest.mark.parametrize("era", ERAS)
async def test_t731_a_template_that_matches_everything_takes_over_no_listed_uri(era: str):
    bad = Clerk("bad", templates=("{+any}",))
    named = f"mcp-server:good:{URI}"
    listed, (plain, text) = await answers({"good": Clerk("good", URI), "bad": bad}, era, URI, named)
    assert (listed, text) == ([named], "of good")
    assert plain == NO_RESOURCE
    assert bad.ledger == []


@pytest.mark.parametrize("era", ERAS)
async def test_t731_uris_of_a_servers_own_templates_stay_unprefixed(era: str):
    other = "db://customers/43"
    good = Clerk("good", URI, templates=("db://customers/{id}",))
    servers: dict[str, Office] = {"good": good, "b": Clerk("b")}
    assert await answers(servers, era, URI, other) == ([URI], ["of good", "of good"])
