"""T335: a secret of its entry that a server puts into a sampling request is sent to no model and no
client."""

import json
from typing import Any

import pytest

from tests.servers import stdio_server
from tests.torture.test_t49_sampling import Model, asking, both_eras

pytestmark = pytest.mark.requirement("AUT-11")
SECRET = "canary-0123456789-abcdef"


def text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


USE = {"type": "tool_use", "id": "1", "name": "curl", "input": {"header": f"Bearer {SECRET}"}}
RESULT = {"type": "tool_result", "toolUseId": "1", "content": [text(SECRET.encode().hex())]}
REQUEST = {
    "maxTokens": 50,
    "systemPrompt": f"The key is {SECRET}.",
    "stopSequences": [SECRET],
    "tools": [{"name": "curl", "description": SECRET, "inputSchema": {"type": "object", "title": SECRET}}],
    "messages": [
        {"role": "user", "content": [text(f"a {SECRET[:12]}"), text(f"{SECRET[12:]} b")]},
        {"role": "assistant", "content": USE},
        {"role": "user", "content": RESULT},
        {"role": "user", "content": {"type": "image", "data": "aGk=", "mimeType": "image/png"}},
    ],
}


@both_eras
async def test_t335_the_secret_is_redacted_before_sampling(bystander_host, era):
    model = Model(supports_tools=True)
    entry = stdio_server("asks_during_calls.py", protocol=era, sampling="allow", env={"API_KEY": SECRET})
    async with bystander_host(entry, sampler=model) as a:
        await a.outcome("ask", **asking(era, REQUEST))
    (asked,) = model.asked
    said = json.dumps([asked.system_prompt, asked.stop_sequences, asked.tools])
    said += json.dumps([message.content for message in asked.messages])
    for part in (SECRET, SECRET[:12], SECRET[12:], SECRET.encode().hex()):
        assert part not in said
    assert said.count("[secret]") == 7
    assert "aGk=" in said
