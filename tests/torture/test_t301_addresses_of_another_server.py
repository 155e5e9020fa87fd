"""T301: a server gives its resource the URI under which the gateway offers another server's resource."""

import pytest

from tests.gateway import Client, gateway_of
from tests.servers.office import Office

pytestmark = pytest.mark.requirement("GWY-1")
URI = "memo://plan"


def office(name: str, *uris: str) -> Office:
    found = Office()
    found.files = dict.fromkeys(uris, f"of {name}")
    return found


async def test_t301_a_uri_that_names_a_server_is_routed_to_that_server():
    servers = {
        "archive": office("archive", URI),
        "books": office("books", URI),
        "zoo": office("zoo", f"mcp-server:archive:{URI}", f"mcp-server:books:{URI}"),
    }
    async with gateway_of(servers) as running, Client(running.url) as client:
        listed = (await client.modern("resources/list")).last["result"]["resources"]
        texts: dict[str, str] = {}
        for uri in [each["uri"] for each in listed]:
            read = await client.modern("resources/read", {"uri": uri})
            texts[uri] = read.last["result"]["contents"][0]["text"]
    assert texts == {
        f"mcp-server:archive:{URI}": "of archive",
        f"mcp-server:books:{URI}": "of books",
        f"mcp-server:zoo:mcp-server:archive:{URI}": "of zoo",
        f"mcp-server:zoo:mcp-server:books:{URI}": "of zoo",
    }
