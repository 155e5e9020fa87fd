"""The zoo: small stdio servers, one habit a file. `zoo("calm.py")` is the config entry that starts one."""

import sys
from pathlib import Path
from typing import Any

ZOO = Path(__file__).parent


def zoo(habit: str, *args: str, **fields: Any) -> dict[str, Any]:
    """A config entry for a server of the zoo; `fields` are further fields of the entry."""
    return {"command": sys.executable, "args": ["-S", "-E", str(ZOO / habit), *args], **fields}
