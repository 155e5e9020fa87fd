"""A server with resources, templates, prompts, completion and change notifications, in both eras.

As a script it uses stdio (`library.py [ttl_ms]`). As an object it is passed to a host or used behind a test
web server. Standard library only. Its tools change it:

    touch {uri}      the resource changes; subscribers are notified
    acquire {name}   adds a resource and a prompt; both lists are reported as changed
    heard {}         the received methods, as JSON
    die {}           the process ends
"""

import base64
import json
import os
import sys

LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
MODERN = ("2026-07-28",)
META_VERSION = "io.modelcontextprotocol/protocolVersion"
META_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "Who reads?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}


def _blob(data):
    return base64.b64encode(data).decode()


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.error = {"code": code, "message": message}


class Client:
    """One conversation: how to speak to it, and what it wants to hear of."""

    def __init__(self, send):
        self.send = send
        self.subscribed = set()
        self.listens = {}

    def tell(self, method, **params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})


class Library:
    def __init__(self, *, revisions=(*MODERN, *LEGACY), ttl_ms=None, subscribe=True, changes=True):
        self.revisions = revisions
        self.ttl_ms = ttl_ms
        self.heard = []
        self.calls = []
        """Whole requests, in order."""
        self.on_change = None
        """Called with the method and parameters of each notification, besides telling clients."""
        self._clients = []
        self.capabilities = {
            "tools": {},
            "resources": {"subscribe": subscribe, "listChanged": changes},
            "prompts": {"listChanged": changes},
            "completions": {},
        }
        self.holdings = {
            "book://divan": {"mimeType": "text/plain", "text": "Poems"},
            "book://atlas": {"mimeType": "image/png", "blob": _blob(PIXEL)},
            "book://deed": {"mimeType": "application/pdf", "blob": _blob(b"%PDF-1.7 deed")},
            "book://empty": None,
            "book://secret": {"text": "for those who say who they are"},
        }
        self.lists_templates = True
        self.prompts = ["review", "greet", "ask"]
        self.names_of_books = ["divan", "deed", "atlas"]

    # What it says.

    def result(self, client, message):
        method, params = message["method"], message.get("params") or {}
        self.heard.append(method)
        self.calls.append(message)
        match method:
            case "initialize":
                return self._initialize(params)
            case "server/discover":
                return self._discover(params)
            case "ping":
                return {}
            case "tools/list":
                names = ("touch", "acquire", "heard", "die")
                return self._page(
                    [{"name": name, "inputSchema": {"type": "object"}} for name in names], "tools", params
                )
            case "tools/call":
                return self._call(params)
            case "resources/list":
                items = [
                    {"uri": uri, "name": uri[7:], "description": f"The {uri[7:]}"} for uri in self.holdings
                ]
                return self._page(items, "resources", params)
            case "resources/templates/list":
                items = [{"uriTemplate": "book://{name}{?page}", "name": "any book"}]
                return self._page(items if self.lists_templates else [], "resourceTemplates", params)
            case "resources/read":
                return self._read(params)
            case "resources/subscribe":
                self._check(params["uri"])
                client.subscribed.add(params["uri"])
                return {}
            case "resources/unsubscribe":
                client.subscribed.discard(params["uri"])
                return {}
            case "prompts/list":
                return self._page([self._prompt(name) for name in self.prompts], "prompts", params)
            case "prompts/get":
                return self._get(params)
            case "completion/complete":
                return self._complete(params)
        raise Refused(-32601, f"unknown method {method}")

    def _initialize(self, params):
        ours = [revision for revision in LEGACY if revision in self.revisions]
        if not ours:
            raise Refused(-32022, "too old")
        wanted = params["protocolVersion"]
        version = wanted if wanted in ours else ours[0]
        info = {"name": "library", "version": "1"}
        return {"protocolVersion": version, "capabilities": self.capabilities, "serverInfo": info}

    def _discover(self, params):
        if (params.get("_meta") or {}).get(META_VERSION) not in self.revisions or MODERN[
            0
        ] not in self.revisions:
            raise Refused(-32601, "unknown method server/discover")
        return {"supportedVersions": list(self.revisions), "capabilities": self.capabilities, **self._keeps()}

    def _keeps(self):
        return {} if self.ttl_ms is None else {"ttlMs": self.ttl_ms, "cacheScope": "private"}

    def _page(self, items, key, params):
        """Two at a time; the first cursor is an empty string, as it may be."""
        cursor = params.get("cursor")
        start = 0 if cursor is None else int(cursor or 2)
        page = {key: items[start : start + 2], **self._keeps()}
        if start + 2 < len(items):
            page["nextCursor"] = "" if start == 0 else str(start + 2)
        return page

    def _check(self, uri):
        if uri.partition("?")[0] not in self.holdings:
            raise Refused(-32602 if MODERN[0] in self.revisions else -32002, f"no such book: {uri}")

    def _read(self, params):
        uri = params["uri"]
        self._check(uri)
        if uri == "book://secret" and "inputResponses" not in params:
            return {"resultType": "input_required", "inputRequests": {"who": QUESTION}, "requestState": "s"}
        held = self.holdings[uri.partition("?")[0]]
        return {"contents": [] if held is None else [{"uri": uri, **held}], **self._keeps()}

    def _prompt(self, name):
        arguments = [
            {"name": "book", "description": "Which", "required": True},
            {"name": "tone"},
        ]
        return {"name": name, "description": f"To {name}", "arguments": [] if name == "greet" else arguments}

    def _get(self, params):
        if params["name"] not in self.prompts:
            raise Refused(-32602, "no such prompt")
        if params["name"] == "ask" and "inputResponses" not in params and MODERN[0] in self.revisions:
            return {"resultType": "input_required", "inputRequests": {"who": QUESTION}}
        text = f"{params['name']}: {json.dumps(params.get('arguments') or {}, sort_keys=True)}"
        messages = [
            {"role": "user", "content": {"type": "text", "text": text + "\u200b\x1b[31m"}},
            {
                "role": "assistant",
                "content": {"type": "image", "data": _blob(PIXEL), "mimeType": "image/png"},
            },
        ]
        return {"description": "Said\u202e so", "messages": messages}

    def _complete(self, params):
        argument, known = params["argument"], params.get("context", {}).get("arguments", {})
        values = self.names_of_books if argument["name"] in ("book", "name") else ["kind", "stern"]
        if known:
            values = [f"{value} for {'/'.join(known.values())}" for value in values]
        values = [value for value in values if value.startswith(argument["value"])]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    def _call(self, params):
        arguments = params.get("arguments") or {}
        match params["name"]:
            case "touch":
                self.touch(arguments["uri"], arguments.get("times", 1))
            case "acquire":
                self.acquire(arguments["name"])
            case "heard":
                return {"content": [{"type": "text", "text": json.dumps(self.heard)}]}
            case "die":
                os._exit(3)
        return {"content": [{"type": "text", "text": "done"}]}

    # Changes.

    def touch(self, uri, times=1):
        for number in range(times):
            part = uri.replace("#", str(number))
            self._tell("notifications/resources/updated", uri=part)

    def acquire(self, name):
        self.holdings[f"book://{name}"] = {"text": name}
        self.prompts.append(name)
        self._tell("notifications/resources/list_changed")
        self._tell("notifications/prompts/list_changed")

    def _tell(self, method, **params):
        for client in list(self._clients):
            if client.listens:
                for identity, wanted in client.listens.items():
                    if wants(wanted, method, params):
                        client.tell(method, **params, _meta={META_SUBSCRIPTION: identity})
            elif not params or any(is_part(params["uri"], each) for each in client.subscribed):
                client.tell(method, **params)
        if self.on_change is not None:
            self.on_change(method, params)

    # Conversations.

    def take(self, client, message):
        method, identity = message.get("method"), message.get("id")
        if method == "notifications/cancelled":
            client.listens.pop(message["params"]["requestId"], None)
        elif method == "subscriptions/listen":
            self.heard.append(method)
            self.calls.append(message)
            wanted = client.listens[identity] = message["params"]["notifications"]
            meta = {META_SUBSCRIPTION: identity}
            client.tell("notifications/subscriptions/acknowledged", notifications=wanted, _meta=meta)
        elif identity is not None and method is not None:
            try:
                result = {"resultType": "complete", **self.result(client, message)}
                client.send({"jsonrpc": "2.0", "id": identity, "result": result})
            except Refused as refused:
                client.send({"jsonrpc": "2.0", "id": identity, "error": refused.error})

    async def serve(self, end):
        client = Client(lambda message: end.send(json.dumps(message).encode()))
        self._clients.append(client)
        try:
            while (data := await end.receive()) is not None:
                self.take(client, json.loads(data))
        finally:
            self._clients.remove(client)

    def run_stdio(self):
        def send(message):
            sys.stdout.write(json.dumps(message) + "\n")
            sys.stdout.flush()

        client = Client(send)
        self._clients.append(client)
        for line in sys.stdin:
            self.take(client, json.loads(line))


def wants(wanted, method, params):
    """Whether a modern client that listens for this wants to hear it."""
    if method == "notifications/resources/updated":
        return any(is_part(params["uri"], each) for each in wanted.get("resourceSubscriptions", ()))
    return bool(wanted.get(f"{method.split('/')[1]}ListChanged"))


def is_part(uri, whole):
    return uri == whole or uri.startswith(whole + "/")


if __name__ == "__main__":
    Library(ttl_ms=int(sys.argv[1]) if len(sys.argv) > 1 else None).run_stdio()
