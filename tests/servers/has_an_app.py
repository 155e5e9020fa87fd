"""Has a tool with a page for its results (MCP Apps). The argument is its era.

The page is not listed. `_meta` of a result has `declared`: the extensions that the client has declared.
"""

import sys

from _kit import (
    LEGACY,
    MODERN,
    discovered,
    error_of,
    initialized,
    is_call,
    listed,
    messages,
    result_of,
    send,
    tool,
)

IS_MODERN = sys.argv[1] == "modern"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
PAGE = {
    "uri": "ui://board/page",
    "mimeType": "text/html;profile=mcp-app",
    "text": "<h1>Board</h1>",
    "_meta": {"ui": {"csp": {"connectDomains": ["https://api.example"]}}},
}
UI = {"resourceUri": "ui://board/page", "visibility": ["model", "app"]}
declared = {}

for message in messages():
    method, params = message.get("method"), message.get("params", {})
    if method == "server/discover":
        answer = discovered(message, [MODERN])
        answer["result"]["capabilities"]["resources"] = {}
        send(answer if IS_MODERN else error_of(message, -32601, "unknown"))
    elif method == "initialize":
        declared = params["capabilities"].get("extensions", {})
        send(initialized(message, protocolVersion=LEGACY, capabilities={"tools": {}, "resources": {}}))
    elif method == "tools/list":
        send(listed(message, tool("move", _meta={"ui": UI})))
    elif method in ("resources/list", "resources/templates/list"):
        send(result_of(message, {"resources": [], "resourceTemplates": []}))
    elif method == "resources/read":
        send(result_of(message, {"contents": [PAGE]}))
    elif is_call(message):
        if IS_MODERN:
            declared = params["_meta"][CAPABILITIES].get("extensions", {})
        meta = {"view": {"zoom": 2}, "declared": declared}
        text = [{"type": "text", "text": "moved"}]
        send(result_of(message, {"content": text, "structuredContent": {"board": [1]}, "_meta": meta}))
