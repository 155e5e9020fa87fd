"""Small stdio servers for tests, one behaviour in each file. `zoo("calm.py")` is the config entry that
starts one.
"""

import sys
from pathlib import Path
from typing import Any

ZOO = Path(__file__).parent


def zoo(habit: str, *args: str, **fields: Any) -> dict[str, Any]:
    """The config entry of a test server; `fields` are further fields of the entry."""
    return {"command": sys.executable, "args": ["-S", "-E", str(ZOO / habit), *args], **fields}
