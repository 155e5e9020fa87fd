"""Small stdio servers for tests, one behaviour in each file.

`stdio_server("well_behaved.py")` is the config entry that starts one.
"""

import sys
from pathlib import Path
from typing import Any

SERVER_PROGRAMS = Path(__file__).parent


def stdio_server(habit: str, *args: str, **fields: Any) -> dict[str, Any]:
    """The config entry of a test server; `fields` are further fields of the entry."""
    return {"command": sys.executable, "args": ["-S", "-E", str(SERVER_PROGRAMS / habit), *args], **fields}
