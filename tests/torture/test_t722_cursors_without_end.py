"""T722: pages with almost no items, and with a new cursor of megabytes each. Cursors are kept while a list
is read, so they count towards its size."""

import json
import sys
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.catalog.paging import LIST_LIMIT_BYTES
from tests.torture.bystander_host import MEGABYTE, at_once, resident_bytes

SERVER = """
import json, sys

METHOD, KEY, ITEM, PADDING = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), "c" * int(sys.argv[4])
CAPABILITIES = {METHOD.partition("/")[0]: {}}
INFO = {"name": "s", "version": "1"}
INITIALIZED = {"protocolVersion": "2025-06-18", "capabilities": CAPABILITIES, "serverInfo": INFO}
UNKNOWN = {"error": {"code": -32601, "message": "unknown"}}
pages = 0

def answer(method):
    global pages
    if method == "initialize":
        return {"result": INITIALIZED}
    if method != METHOD:
        return UNKNOWN
    pages += 1
    return {"result": {KEY: [ITEM], "nextCursor": f"{pages}{PADDING}"}}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"])}
        sys.stdout.write(json.dumps(reply) + "\\n")
        sys.stdout.flush()
"""
PADDING_BYTES = 8 * MEGABYTE
PAGES = LIST_LIMIT_BYTES // PADDING_BYTES
LISTS = {
    "tools": ("tools/list", {"name": "a", "inputSchema": {"type": "object"}}),
    "prompts": ("prompts/list", {"name": "a"}),
    "resources": ("resources/list", {"uri": "x:1", "name": "a"}),
    "resourceTemplates": ("resources/templates/list", {"uriTemplate": "x:{a}", "name": "a"}),
}


@pytest.mark.requirement("CAT-5")
@pytest.mark.parametrize("key", LISTS)
async def test_t722_reading_ends_at_the_size_limit_of_the_list(tmp_path: Path, key: str):
    method, item = LISTS[key]
    (tmp_path / "server.py").write_text(SERVER)
    arguments = [str(tmp_path / "server.py"), method, key, json.dumps(item), str(PADDING_BYTES)]
    before = resident_bytes()
    async with Host({"box": {"command": sys.executable, "args": arguments}}) as host:
        async with at_once(20):
            await host.ready(timeout=30)
            lists = {
                "prompts": host.prompts.list,
                "resources": host.resources.list,
                "resourceTemplates": host.resources.templates,
            }
            if key == "tools":
                found, problems = len(host.tools()), host.servers["box"].problems
            else:
                listed = await lists[key]()
                found, problems = len(listed), listed.problems
        assert (host.servers["box"].status, found) == ("connected", 1)
        assert any("is incomplete: it is too large" in problem for problem in problems), problems
    assert resident_bytes() - before < 6 * LIST_LIMIT_BYTES
