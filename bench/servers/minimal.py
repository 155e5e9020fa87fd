"""A stdio MCP server that costs almost nothing, so that a measurement shows the client.

Start it with `python -S -E minimal.py [--tools N] [--cpu N]`. It reads blocks, finds what it needs in each
line with `bytes.partition` instead of parsing JSON, fills a template and writes all answers at once.
A line that does not look like the compact JSON of the usual clients takes the slow way through `json`.

Speaks 2026-07-28 (`server/discover`) and the handshake revisions (`initialize`). Its tools: `echo(text)`;
`big(size)`, a text of that many characters; `count()`, how many echo and big calls have arrived.
"""

import os
import sys

SCHEMA = b'{"type":"object","properties":{"%b":{"type":"%b","description":"%b"}},"required":["%b"]}'
TOOL = b'{"name":"%b","description":"%b","inputSchema":%b}'
INFO = b'{"name":"minimal","version":"1"}'
REPLY = b'{"jsonrpc":"2.0","id":%b,"result":%b}\n'
ECHO = (
    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":"%b"}],'
    b'"isError":false,"resultType":"complete"}}\n'
)
FAILURE = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,"message":"Method not found"}}\n'
DISCOVERED = (
    b'{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,'
    b'"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":' + INFO + b"}}"
)
INITIALIZED = b'{"protocolVersion":"%b","capabilities":{"tools":{}},"serverInfo":' + INFO + b"}"

calls = 0


def tool_list(number: int) -> bytes:
    """The result of tools/list: the three tools, then fillers, `number` in all (at least three)."""
    tools = [
        TOOL % (b"echo", b"Say it again", SCHEMA % (b"text", b"string", b"What to say", b"text")),
        TOOL % (b"big", b"A long text", SCHEMA % (b"size", b"integer", b"Characters", b"size")),
        TOOL % (b"count", b"Calls so far", b'{"type":"object"}'),
    ]
    filler = SCHEMA % (b"text", b"string", b"A sentence that says what this argument is for", b"text")
    about = b"Filler tool with a description as long as the ones that real servers bring along, number %d"
    tools += [TOOL % (b"tool_%d" % n, about % n, filler) for n in range(3, number)]
    return b'{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[%b]}' % b",".join(tools)


def between(text: bytes, before: bytes, after: bytes) -> bytes:
    return text.partition(before)[2].partition(after)[0]


def answer(line: bytes, tools: bytes) -> bytes:
    """The reply to one line; nothing for a notification."""
    global calls
    head, _, params = line.partition(b'"params":')
    ident = between(head, b'"id":', b",").rstrip(b"}")
    method = between(head, b'"method":"', b'"')
    if method == b"tools/call" and ident:
        if b'"name":"echo"' in params and b"\\" not in params:
            calls += 1
            return ECHO % (ident, between(params, b'"text":"', b'"'))
        if b'"name":"big"' in params:
            calls += 1
            return ECHO % (ident, b"x" * int(between(params, b'"size":', b"}").partition(b",")[0]))
        if b'"name":"count"' in params:
            return ECHO % (ident, b"%d" % calls)
    elif ident:
        if method == b"tools/list":
            return REPLY % (ident, tools)
        if method == b"server/discover":
            return REPLY % (ident, DISCOVERED)
        if method == b"initialize":
            return REPLY % (ident, INITIALIZED % between(params, b'"protocolVersion":"', b'"'))
    return answer_slowly(line, tools)


def answer_slowly(line: bytes, tools: bytes) -> bytes:
    """Bring a line into the shape that `answer` knows; what stays unknown in that shape gets an error."""
    import json

    message = json.loads(line)
    if "method" not in message or "id" not in message:
        return b""
    ident = json.dumps(message["id"]).encode()
    if message["method"] == "tools/call" and message["params"]["name"] == "echo":
        global calls
        calls += 1
        return ECHO % (ident, json.dumps(message["params"]["arguments"]["text"])[1:-1].encode())
    ordered = {key: message[key] for key in ("jsonrpc", "id", "method", "params") if key in message}
    compact = json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode()
    return answer(compact, tools) if compact != line else FAILURE % ident


def main() -> None:
    options = dict(zip(sys.argv[1::2], map(int, sys.argv[2::2])))
    if "--cpu" in options:
        os.sched_setaffinity(0, {options["--cpu"]})
    tools = tool_list(options.get("--tools", 3))
    rest = b""
    while block := os.read(0, 1 << 20):
        *lines, rest = (rest + block).split(b"\n")
        output = memoryview(b"".join([answer(line, tools) for line in lines]))
        while output:
            output = output[os.write(1, output) :]


if __name__ == "__main__":
    main()
