"""T146: a tool lock with a lone surrogate is refused with a readable error, like every other damaged
one."""

from pathlib import Path

import pytest

from dragoman.catalog.lock import admission
from dragoman.errors import ConfigFileError

HALF = "\\ud800"
LOCKS = {
    "in a definition": f'{{"x": {{"digest": "1", "definition": {{"description": "{HALF}"}}}}}}',
    "in a name": f'{{"{HALF}": {{"digest": "1", "definition": {{}}}}}}',
}


@pytest.mark.parametrize("tools", LOCKS.values(), ids=list(LOCKS))
def test_t146_a_lone_surrogate_is_refused_with_a_readable_error(tmp_path: Path, tools: str):
    lock = tmp_path / ".mcp.lock"
    lock.write_text(f'{{"version": 1, "servers": {{"box": {tools}}}}}')
    with pytest.raises(ConfigFileError, match=r"the digest of tool .* is not of its definition"):
        admission(lock)
