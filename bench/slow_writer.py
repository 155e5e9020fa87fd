"""A model provider on loopback that writes a long answer slowly, in the wire format of Anthropic."""

from __future__ import annotations

import http.server
import itertools
import json
import re
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

PAUSE_SECONDS = 0.02
TEXT = (
    "Some words of an **answer** with `code` in it.\n\n- one point\n- another one\n\n```python\nx = (1, 2)\n"
    "```\n\n"
)
WORDS = re.findall(r"\S+\s*", TEXT.lower())


class SlowWriter:
    """Answers each request with words without end, until the client closes the connection."""

    def __enter__(self) -> Self:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            for event in _events():
                self.wfile.write(event)
                time.sleep(PAUSE_SECONDS)
        except OSError:  # the client has gone
            return

    def log_message(self, format: str, *args: Any) -> None:
        return


def _events() -> Iterator[bytes]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    yield _event("message_start", message={**message, "stop_reason": None, "stop_sequence": None})
    yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for word in itertools.cycle(WORDS):
        yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})


def _event(name: str, **fields: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n".encode()
