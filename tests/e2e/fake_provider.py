"""A model provider on loopback that speaks the wire formats of Anthropic and OpenAI (chat). Standard library.

It follows a script: for each request a list of parts, texts and tool calls, or an HTTP status. The real
client libraries talk to it.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any, Self

Part = str | tuple[str, dict[str, Any]]
"""A text, or a tool's name and its arguments."""


class FakeProvider:
    def __init__(self, *script: list[Part] | int) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        """The bodies of the requests."""
        self.keys: list[str] = []

    def __enter__(self) -> Self:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.provider = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def tool_results(self, number: int) -> list[str]:
        """The texts of the tool results in a request, in either format."""
        found: list[str] = []
        for message in self.requests[number]["messages"]:
            if message["role"] == "tool":
                found.append(message["content"])
            elif isinstance(message["content"], list):
                parts = [part for part in message["content"] if part.get("type") == "tool_result"]
                found += [_text(part["content"]) for part in parts]
        return found


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        provider: FakeProvider = self.server.provider  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        provider.requests.append(body)
        provider.keys.append(self.headers.get("x-api-key") or self.headers.get("Authorization") or "")
        step = provider.script.pop(0) if provider.script else 500
        if isinstance(step, int):
            self._send(step, "application/json", json.dumps({"error": {"type": "x", "message": "no"}}))
            return
        events = _anthropic(step) if self.path.endswith("/messages") else _chat(step)
        self._send(200, "text/event-stream", "".join(events))

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return


def _anthropic(parts: list[Part]) -> Iterator[str]:
    def event(name: str, **fields: Any) -> str:
        return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n"

    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": []}
    yield event(
        "message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage}
    )
    for index, part in enumerate(parts):
        if isinstance(part, str):
            block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": part}
        else:
            name, arguments = part
            block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        yield event("content_block_start", index=index, content_block=block)
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    reason = "end_turn" if all(isinstance(part, str) for part in parts) else "tool_use"
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": 5})
    yield event("message_stop")


def _chat(parts: list[Part]) -> Iterator[str]:
    def chunk(delta: dict[str, Any] | None, reason: str | None = None, **more: Any) -> str:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5.5"}
        return f"data: {json.dumps({**head, 'choices': choices, **more})}\n\n"

    place = 0
    for part in parts:
        if isinstance(part, str):
            yield chunk({"role": "assistant", "content": part})
            continue
        name, arguments = part
        function = {"name": name, "arguments": ""}
        call = {"index": place, "id": f"call_{place}", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
        yield chunk({"tool_calls": [{"index": place, "function": {"arguments": json.dumps(arguments)}}]})
        place += 1
    yield chunk({}, "tool_calls" if place else "stop")
    yield chunk(None, usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
    yield "data: [DONE]\n\n"
