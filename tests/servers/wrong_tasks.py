"""Reports the task states that a test gives. The argument is its era.

`run`: `created` is the task in the reply to the call; `states` are the answers to `tasks/get`, one after the
other, the last one repeated (`null`: no answer; `"die"`: the process ends); `result` answers `tasks/result`
(absent: never); `notify` is how many status notifications follow the call. `counts` returns how often each
method was requested.
"""

import json
import os
import sys

from _kit import (
    LEGACY,
    MODERN,
    arguments_of,
    discovered,
    error_of,
    initialized,
    is_call,
    listed,
    messages,
    notification,
    result_of,
    send,
    text_of,
    tool,
    write,
)

EXTENSIONS = {"io.modelcontextprotocol/tasks": {}}
IS_MODERN = sys.argv[1] == "modern"
TASKS = {"cancel": {}, "requests": {"tools": {"call": {}}}}
GOOD = {"taskId": "t", "status": "working", "ttl": None, "ttlMs": None}
counts = {}
script = {}


def expanded(value):
    """`{"repeat": [text, count]}` stands for a long text."""
    if isinstance(value, dict):
        if set(value) == {"repeat"}:
            return value["repeat"][0] * value["repeat"][1]
        return {key: expanded(inner) for key, inner in value.items()}
    return value


def run(call):
    global script
    script = arguments_of(call)
    created = {**GOOD, **expanded(script.get("created", {}))}
    result = {"resultType": "task", **created} if IS_MODERN else {"task": created}
    send({"jsonrpc": "2.0", "id": call["id"], "result": result})
    line = json.dumps(notification("notifications/tasks/status", **created)).encode() + b"\n"
    for _ in range(script.get("notify", 0) // 1000):
        write(line * 1000)


def state(request):
    states = script["states"]
    said = expanded(states.pop(0) if len(states) > 1 else states[0])
    if said == "die":
        os._exit(1)
    if said is not None:
        send(result_of(request, {**GOOD, **said}))


for message in messages():
    method = message.get("method")
    counts[method] = counts.get(method, 0) + 1
    if method == "server/discover":
        found = discovered(message, [MODERN], extensions=EXTENSIONS)
        send(found if IS_MODERN else error_of(message, -32601, "unknown"))
    elif method == "initialize":
        send(initialized(message, protocolVersion=LEGACY, capabilities={"tools": {}, "tasks": TASKS}))
    elif method == "tools/list":
        send(listed(message, tool("run", execution={"taskSupport": "required"}), tool("counts")))
    elif is_call(message, "counts"):
        send(text_of(message, json.dumps(counts)))
    elif is_call(message):
        run(message)
    elif method == "tasks/get":
        state(message)
    elif method == "tasks/result" and "result" in script:
        send(result_of(message, expanded(script["result"])))
    elif method in ("tasks/update", "tasks/cancel", "ping"):
        send(result_of(message, {}))
