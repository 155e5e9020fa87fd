"""The server of the end-to-end tests; its first argument is the mode. Standard library only.

serves: offers tools, resources and prompts, some of them with dangerous characters in every text that a
person may see; with the word `worse` after any mode, more of them. `e2e://counter` counts how often it is
read; a subscribed resource changes once, after it was read.
waits FILE: never answers a call, but writes its pid into FILE when it gets one.
dies: writes to stderr and exits with 3.   greets: answers `initialize` with an unknown revision.
refuses: answers `initialize` with an error.   hangs_up: exits with 4 when a tool is called.
"""

import base64
import json
import os
import sys

# Title and clipboard by OSC, screen and colours by CSI (7- and 8-bit), carriage return, backspace, bell, NUL,
# bidirectional overrides and isolates, zero-width and tag characters, a line separator.
EVIL = (
    "\x1b]0;owned\x07\x1b]52;c;cm0=\x1b\\\x1b[2J\x1b[7;5mblink\x9b31mred\rover\x08\x7f\x00"
    "\u202egnp.exe\u2066\u200b\u2028\U000e0041end"
)
# Links by OSC 8, device control and other strings (7- and 8-bit), a reset, next line, and a tower of marks.
WORSE = (
    f"{EVIL}\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x07\x1bP1$r0m\x1b\\\x90q\x9c\x9d0;title\x9c\x1b_apc\x1b\\"
    "\x1b^pm\x1b\\\x1bc\x85\x84\x1b(0\x0e\u2029\ufeff\u00ada" + "\u0301" * 600 + "ก" + "\u0e49" * 300
)
PIXEL = b"\x89PNG\r\n\x1a\n\x00\xff\x00"
ANY = {"type": "object"}
TYPED = {
    "type": "object",
    "properties": {
        "word": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "array"},
        "free": {},
    },
}


def tool(name, schema=ANY):
    return {"name": name, "title": said, "description": f"{said} {name}", "inputSchema": schema}


def schema_with_evil_texts():
    part = {"type": said, "description": said, "enum": [said], "default": said, "title": said}
    inner = {"type": "object", "properties": {"deep": part}}
    return {"type": "object", "properties": {"part": part, "list": {"type": "array", "items": inner}}}


def tools():
    evil_name = {"type": "object", "properties": {said: {"type": "string"}}}
    annotated = {"name": "annotated", "annotations": {"title": said, "destructiveHint": True}}
    return [
        tool("echo", TYPED),
        *map(tool, ("text", "error", "fail", "odd", "structured", "progress")),
        tool(said),
        tool("described", {**schema_with_evil_texts(), "description": said}),
        {**annotated, "inputSchema": ANY, "outputSchema": schema_with_evil_texts()},
        tool("misnamed", evil_name),
        {"name": f"bad {said}", "inputSchema": said},
    ]


def resources():
    evil = {"name": said, "title": said, "description": said, "mimeType": said}
    return [
        {"uri": "e2e://note", "name": "note", "description": "A note.", "mimeType": "text/plain", "size": 6},
        {"uri": "e2e://pixel", "name": "pixel", "mimeType": "image/png"},
        {"uri": "e2e://counter", "name": "counter"},
        {"uri": "e2e://error", "name": "error"},
        {"uri": "e2e://evil", **evil},
        {"uri": f"e2e://{said}", "name": "unusable"},
    ]


def templates():
    return [
        {"uriTemplate": "e2e://pages/{number}{?language}", "name": "page", "description": "A page."},
        {"uriTemplate": "e2e://evil/{gap}", "name": said, "description": said},
        {"uriTemplate": "e2e://" + said + "/{gap}", "name": "unusable"},
    ]


def prompts():
    name = {"name": "name", "description": "Whom to greet.", "required": True}
    evil = {"name": "gap", "title": said, "description": said, "required": True}
    return [
        {"name": "greet", "description": "Greets somebody.", "arguments": [name, {"name": "tone"}]},
        {"name": "evil", "title": said, "description": said, "arguments": [evil]},
        {"name": "misnamed", "arguments": [{"name": said}]},
        {"name": said},
    ]


counted = 0
subscribed = set()


def answer_read(params):
    global counted
    uri = params["uri"]
    if uri.startswith("e2e://evil"):
        return contents(
            {"uri": said, "mimeType": said, "text": said}, {"uri": uri, "mimeType": said, "blob": ""}
        )
    if uri.startswith("e2e://pages/"):
        return contents({"uri": uri, "text": f"page {uri[12:]}"})
    match uri:
        case "e2e://note":
            return contents({"uri": uri, "text": "a note"})
        case "e2e://pixel":
            blob = base64.b64encode(PIXEL).decode()
            return contents({"uri": uri, "mimeType": "image/png", "blob": blob})
        case "e2e://counter":
            counted += 1
            return contents({"uri": uri, "text": f"read {counted} times\n"})
        case _:
            return {"error": {"code": -32002, "message": f"no such thing: {said}", "data": said}}


def contents(*parts):
    return {"result": {"contents": parts}}


def answer_prompt(params):
    arguments = params.get("arguments") or {}
    words = f"Hello, {arguments.get('name')}!" if params["name"] == "greet" else said
    messages = [{"role": "user", "content": {"type": "text", "text": words}}]
    if params["name"] == "evil":
        link = {"type": "resource_link", "uri": said, "name": said}
        image = {"type": "image", "data": "AAAA", "mimeType": said}
        inner = {"type": "resource", "resource": {"uri": said, "text": said}}
        more = [link, image, inner, {"type": said}, {"type": "text", "text": 3}]
        messages += [{"role": said, "content": block} for block in more]
    return {"result": {"description": words, "messages": messages}}


def answer_completion(params):
    argument = params["argument"]
    known = {
        "name": ["Ann", "Anna", "Bert"],
        "number": ["1", "12"],
        "gap": [said, EVIL],
        "tone": ["kind", "stern"],
    }
    values = [each for each in known.get(argument["name"], ()) if each.startswith(argument["value"])]
    others = params.get("context", {}).get("arguments", {})
    values = [f"{value} to {others['name']}" if "name" in others else value for value in values]
    return {"result": {"completion": {"values": values, "total": 9, "hasMore": argument["name"] == "name"}}}


def write(message):
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def text(words):
    return [{"type": "text", "text": words}]


def answer_call(params):
    """The `result` or `error` of one call."""
    arguments = params.get("arguments") or {}
    match params["name"]:
        case "echo":
            return {"result": {"content": text(json.dumps(arguments)), "structuredContent": arguments}}
        case "error":
            return {"error": {"code": -32000, "message": said, "data": said}}
        case "fail":
            return {"result": {"content": text(said), "isError": True}}
        case "odd":
            link = {"type": "resource_link", "uri": said, "name": said}
            image = {"type": "image", "data": "AAAA", "mimeType": said}
            inner = {"type": "resource", "resource": {"uri": said, "text": said}}
            return {"result": {"content": [link, image, inner, {"type": said}]}}
        case "structured":
            return {"result": {"content": [], "structuredContent": {said: said}}}
        case "progress":
            token = params["_meta"]["progressToken"]
            report = {"progressToken": token, "progress": 1, "message": said}
            write({"method": "notifications/progress", "params": report})
            log = {"level": "error", "logger": said, "data": {said: said}}
            write({"method": "notifications/message", "params": log})
            return {"result": {"content": text("done")}}
        case _:
            return {"result": {"content": text(said)}}


def answer_initialize(mode, params):
    if mode == "refuses":
        return {"error": {"code": -32603, "message": said}}
    revision = said if mode == "greets" else params["protocolVersion"]
    info = {"name": said, "version": said, "title": said}
    capabilities = {
        "tools": {},
        "resources": {"subscribe": True},
        "prompts": {},
        "completions": {},
        "logging": {},
    }
    return {
        "result": {
            "protocolVersion": revision,
            "capabilities": capabilities,
            "serverInfo": info,
            "instructions": said,
        }
    }


def answer(mode, method, params):
    match method:
        case "initialize":
            return answer_initialize(mode, params)
        case "tools/list":
            return {"result": {"tools": tools()}}
        case "tools/call":
            return answer_call(params)
        case "resources/list":
            return {"result": {"resources": resources()}}
        case "resources/templates/list":
            return {"result": {"resourceTemplates": templates()}}
        case "resources/read":
            return answer_read(params)
        case "resources/subscribe":
            subscribed.add(params["uri"])
            return {"result": {}}
        case "resources/unsubscribe":
            return {"result": {}}
        case "prompts/list":
            return {"result": {"prompts": prompts()}}
        case "prompts/get":
            return answer_prompt(params)
        case "completion/complete":
            return answer_completion(params)
        case _:
            return {"error": {"code": -32601, "message": "unknown method"}}


said = WORSE if "worse" in sys.argv else EVIL
"""What is put wherever a person may see it."""


def main():
    mode, *more = sys.argv[1:]
    sys.stderr.buffer.write(f"{said}\nlast words\n{EVIL}\n".encode())
    sys.stderr.flush()
    if mode == "dies":
        sys.exit(3)
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message:
            continue
        if method == "tools/call" and mode == "hangs_up":
            os._exit(4)
        if method == "tools/call" and mode == "waits":
            with open(f"{more[0]}.new", "w") as file:
                file.write(str(os.getpid()))
            os.rename(f"{more[0]}.new", more[0])
            continue
        write({"id": message["id"], **answer(mode, method, params)})
        if method == "resources/read" and params["uri"] in subscribed:
            subscribed.discard(params["uri"])
            write({"method": "notifications/resources/updated", "params": {"uri": params["uri"]}})


if __name__ == "__main__":
    main()
