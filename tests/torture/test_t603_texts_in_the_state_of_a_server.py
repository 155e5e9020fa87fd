"""T603: texts that a server sends about itself during initialization contain no hidden or control
characters wherever a program reads them, also in `host.servers`."""

import json
import sys
from pathlib import Path

import pytest

from dragoman import Host

pytestmark = pytest.mark.requirement("CAT-2")

TRICK = "a\x1b[2J\u202eb\u200bc\U000e0041d\x07e"
SERVER = """
import json, sys

for line in sys.stdin:
    message = json.loads(line)
    result = {"tools": []}
    if message["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "instructions": TRICK,
                  "serverInfo": {"name": TRICK, "version": TRICK, "title": TRICK}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
ESCAPED = "a\\x1b[2J\\u202eb\\u200bc\\U000e0041d\\x07e"


async def test_t603_the_state_of_a_server_has_cleaned_texts(tmp_path: Path):
    file = tmp_path / "server.py"
    file.write_text(SERVER.replace("TRICK", json.dumps(TRICK)))
    entry = {"command": sys.executable, "args": [str(file)], "protocol": "legacy"}
    async with Host({"s": entry}) as host:
        await host.ready()
        status = host.servers["s"]
    assert status.instructions == "abcde"
    assert status.server_info == {"name": ESCAPED, "version": ESCAPED, "title": ESCAPED}
