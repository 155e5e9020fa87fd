"""A person at a terminal: reads what the command shows, and answers what it asks."""

import json
import os
import select
import termios
import time
from pathlib import Path
from typing import Any, Self

from tests.e2e.command import LIMIT_SECONDS, config, plain
from tests.e2e.forked import Terminal
from tests.servers import stdio_server

ASKED = ": "
"""How a question's last line ends, behind its keys."""


class Person(Terminal):
    """`sees` waits for a text, `answers` presses keys at the next question."""

    def __enter__(self) -> Self:
        super().__enter__()
        self._read = 0
        self.manners = termios.tcgetattr(self._master)
        return self

    def sees(self, text: str) -> str:
        """Everything from where the last look ended to this text."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while (at := plain(self._output.decode(errors="replace")).find(text, self._read)) < 0:
            left = deadline - time.monotonic()
            ready = select.select([self._master], [], [], max(0.0, left))[0]
            assert ready, f"{text!r} never appeared in {self._output.decode(errors='replace')!r}"
            try:
                data = os.read(self._master, 65536)
            except OSError:
                data = b""
            assert data, f"ended before {text!r}: {self._output.decode(errors='replace')!r}"
            self._output += data
        start, self._read = self._read, at + len(text)
        return plain(self._output.decode(errors="replace"))[start : self._read]

    def answers(self, keys: str, key: str | bytes) -> str:
        """Waits for the question with these keys, and presses one; what was shown."""
        shown = self.sees(f"  {keys}{ASKED}")
        self.type(key.encode() if isinstance(key, str) else key)
        return shown

    def ends(self) -> tuple[int, str]:
        """Exit code, and everything that appeared since the last look."""
        whole = plain(self.finish())
        return self.process.returncode, whole[self._read :]

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal echoes and waits for lines again, as it did."""
        return termios.tcgetattr(self._master)[3] == self.manners[3]


def tool(name: str, **annotations: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, "annotations": annotations}


def offering(*tools: dict[str, Any]) -> tuple[str, str]:
    """Words for a server `s` with these tools; each answers with its own name."""
    return "--mcp-config", config(
        s=stdio_server("lists_given_pages.py", json.dumps([{"tools": list(tools)}]))
    )


def settings(home: Path, *, scope: str = "user", **rules: Any) -> Path:
    """Writes permission rules into a file of that scope."""
    place = {
        "user": home / ".dragoman" / "settings.json",
        "local": home / "work" / ".dragoman" / "settings.local.json",
        "enterprise": home / "managed" / "managed-mcp.json",
    }[scope]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"permissions": rules}))
    return place
