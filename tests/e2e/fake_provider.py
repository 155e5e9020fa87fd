"""A model provider on loopback with the wire formats of Anthropic and OpenAI. Standard library.

It follows a script: for each request a list of parts, texts and tool calls, or an error. The real client
libraries connect to it.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Self

Part = str | tuple[str, dict[str, Any] | str]
"""A text, or a tool's name and its arguments, or their JSON text, which may be wrong."""


class Status(NamedTuple):
    """An error instead of an answer."""

    code: int
    retry_after: str | None = None


class Cut(NamedTuple):
    """An answer of which the end is missing. `cleanly`: the connection is closed as if it were complete."""

    parts: list[Part]
    cleanly: bool = False


class Holds(NamedTuple):
    """An answer of which the end does not come."""

    parts: list[Part]


class Other(NamedTuple):
    """Something that is no answer of a model, with status 200."""

    content_type: str
    text: str


Step = list[Part] | Other | int | Status | Cut | Holds | Callable[["FakeProvider"], list[Part]]
"""What a request is answered with; a function is given the provider, which has the request already."""


class FakeProvider:
    def __init__(self, *script: Step) -> None:
        self.script = list(script)
        self.requests: list[dict[str, Any]] = []
        """The bodies of the requests."""
        self.keys: list[str] = []
        self.released = threading.Event()
        """Set at the end: answers that hold are given up."""
        self.is_holding = threading.Event()

    def __enter__(self) -> Self:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.provider = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def tool_results(self, number: int) -> list[str]:
        """The texts of the tool results in a request, in each format."""
        body, found = self.requests[number], list[str]()
        for item in body.get("input", ()):
            if item.get("type") == "function_call_output":
                found.append(_text(item["output"]))
        for message in body.get("messages", ()):
            if message["role"] == "tool":
                found.append(_text(message["content"]))
            elif isinstance(message["content"], list):
                parts = [part for part in message["content"] if part.get("type") == "tool_result"]
                found += [_text(part["content"]) for part in parts]
        return found

    def tools(self, number: int) -> list[str]:
        """The names of the tools in a request, in their order."""
        offered = self.requests[number].get("tools", ())
        return [tool.get("name") or tool["function"]["name"] for tool in offered]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        provider: FakeProvider = self.server.provider  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        provider.requests.append(body)
        provider.keys.append(self.headers.get("x-api-key") or self.headers.get("Authorization") or "")
        step = provider.script.pop(0) if provider.script else 500
        if callable(step):
            step = step(provider)
        if isinstance(step, int):
            step = Status(step)
        if isinstance(step, Status):
            self._refuse(step)
            return
        if isinstance(step, Other):
            self._send(200, step.content_type, step.text.encode())
            return
        parts = step if isinstance(step, list) else step.parts
        events = list(self._format()(parts))
        if not isinstance(step, list):
            events = events[: -_TAIL[self._format()]]
        self._answer(events, is_whole=isinstance(step, list) or (isinstance(step, Cut) and step.cleanly))
        if isinstance(step, Holds):
            provider.is_holding.set()
            provider.released.wait()

    def _format(self) -> Callable[[list[Part]], Iterator[str]]:
        if self.path.endswith("/messages"):
            return _anthropic
        return _chat if self.path.endswith("/completions") else _responses

    def _refuse(self, status: Status) -> None:
        data = json.dumps({"type": "error", "error": {"type": "x", "message": "no"}}).encode()
        headers = {} if status.retry_after is None else {"Retry-After": status.retry_after}
        self._send(status.code, "application/json", data, **headers)

    def _send(self, code: int, content_type: str, data: bytes, **headers: str) -> None:
        self.send_response(code)
        for name, value in {
            **headers,
            "Content-Type": content_type,
            "Content-Length": str(len(data)),
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _answer(self, events: list[str], *, is_whole: bool) -> None:
        data = "".join(events).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data) if is_whole else len(data) + 1000))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        self.close_connection = True

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
            delta = {"type": "input_json_delta", "partial_json": _json(arguments)}
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
        yield chunk({"tool_calls": [{"index": place, "function": {"arguments": _json(arguments)}}]})
        place += 1
    yield chunk({}, "tool_calls" if place else "stop")
    yield chunk(None, usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
    yield "data: [DONE]\n\n"


def _responses(parts: list[Part]) -> Iterator[str]:
    def event(name: str, **fields: Any) -> str:
        return f"event: {name}\ndata: {json.dumps({'type': name, 'sequence_number': 0, **fields})}\n\n"

    head = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-5.5", "output": [], "tools": []}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto"}
    yield event("response.created", response={**head, "status": "in_progress"})
    for place, part in enumerate(parts):
        if isinstance(part, str):
            where = {"item_id": f"msg_{place}", "output_index": place, "content_index": 0}
            item = {"id": f"msg_{place}", "type": "message", "role": "assistant", "status": "in_progress"}
            yield event("response.output_item.added", output_index=place, item={**item, "content": []})
            yield event("response.output_text.delta", delta=part, logprobs=[], **where)
            continue
        name, arguments = part
        item = {"id": f"fc_{place}", "type": "function_call", "call_id": f"call_{place}", "name": name}
        yield event("response.output_item.added", output_index=place, item={**item, "arguments": ""})
        yield event(
            "response.function_call_arguments.delta",
            item_id=f"fc_{place}",
            output_index=place,
            delta=_json(arguments),
        )
        done = {**item, "arguments": _json(arguments), "status": "completed"}
        yield event("response.output_item.done", output_index=place, item=done)
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    yield event("response.completed", response={**head, "status": "completed", "usage": usage})


def _json(arguments: dict[str, Any] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


_TAIL = {_anthropic: 2, _chat: 3, _responses: 1}
"""How many events at the end say that the answer is complete."""
