"""T146: a tool lock with half a surrogate pair is refused in words, like every other damaged one."""

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
def test_t146_half_a_surrogate_pair_is_refused_in_words(tmp_path: Path, tools: str):
    lock = tmp_path / ".mcp.lock"
    lock.write_text(f'{{"version": 1, "servers": {{"box": {tools}}}}}')
    with pytest.raises(ConfigFileError, match=r"the digest of tool .* is not of its definition"):
        admission(lock)
