"""Shared code of the stdio test servers: reads lines, writes replies, and answers the handshake of both eras.

Standard library only, so that a server started with `python -S -E` starts in a few milliseconds. A server
passes one function to `serve`, or iterates over `messages` itself.
"""

import json
import os
import sys
import time

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
META_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
INFO = {"name": "zoo", "version": "1"}
ANY_OBJECT = {"type": "object"}


def write(data, fd=1):
    """All the bytes, unbuffered."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def send(*messages):
    """Each message on a line of its own, all in one write."""
    write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))


def result_of(request, result):
    return {"jsonrpc": "2.0", "id": request["id"], "result": {"resultType": "complete", **result}}


def text_of(request, text):
    return result_of(request, {"content": [{"type": "text", "text": text}]})


def error_of(request, code, message, data=None):
    return {"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": message, "data": data}}


def notification(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def messages():
    """What the host says, until it closes our input."""
    for line in sys.stdin.buffer:
        yield json.loads(line)


def tool(name, schema=ANY_OBJECT, **more):
    return {"name": name, "inputSchema": schema, **more}


def initialized(request, **changes):
    wanted = request["params"]["protocolVersion"]
    return result_of(
        request, {"protocolVersion": wanted, "capabilities": {"tools": {}}, "serverInfo": INFO, **changes}
    )


def discovered(request, versions=(MODERN, LEGACY), **capabilities):
    offered = {"tools": {}, **capabilities}
    about = {"supportedVersions": list(versions), "capabilities": offered, "ttlMs": 0}
    return result_of(request, {**about, "cacheScope": "private", "_meta": {META_SERVER_INFO: INFO}})


def listed(request, *tools, **more):
    return result_of(request, {"tools": list(tools), "ttlMs": 0, "cacheScope": "private", **more})


def is_call(message, name=None):
    return message.get("method") == "tools/call" and name in (None, message["params"]["name"])


def arguments_of(call):
    return call["params"].get("arguments") or {}


def progress_token_of(call):
    return call["params"].get("_meta", {}).get("progressToken")


def introduce(message, *tools):
    """Answers whatever a well-behaved server answers by itself, `echo` included; true if it did."""
    method = message.get("method")
    if method == "initialize":
        send(initialized(message))
    elif method == "server/discover":
        send(discovered(message))
    elif method == "tools/list":
        send(listed(message, tool("echo"), *map(tool, tools)))
    elif method == "ping":
        send(result_of(message, {}))
    elif is_call(message, "echo"):
        send(text_of(message, arguments_of(message).get("message", "")))
    else:
        return False
    return True


def serve(on_call=None, *tools):
    """Answers everything politely, except calls of its own tools: those go to `on_call`."""
    for message in messages():
        if not introduce(message, *tools) and is_call(message):
            on_call(message)


def stay():
    """Lives on, doing nothing, until it is ended."""
    while True:
        time.sleep(60)


def start_sleeper(*, stubborn=False, holds_output=True, escapes=False, forks_twice=False):
    """A child that would sleep for an hour; its pid. A stubborn one does not heed SIGINT and SIGTERM.

    One that forks twice is adopted by init at once.
    """
    import signal

    if forks_twice:
        reading, writing = os.pipe()
        if os.fork():
            os.wait()
            return int(os.read(reading, 20))
        os.setsid()
    pid = os.fork()
    if pid and forks_twice:
        os.write(writing, str(pid).encode())
        os._exit(0)
    if pid:
        return pid
    if stubborn:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    if escapes:
        os.setsid()
    os.close(0)
    if not holds_output:
        os.close(1)
    time.sleep(3600)
    os._exit(0)
