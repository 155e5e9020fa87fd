"""T123: a file that is imported does not make its servers trusted."""

import json
from pathlib import Path

import pytest

from tests.e2e.forked import run
from tests.torture.projects import servers, write

HOSTS = ("claude-code", "claude-desktop", "cursor", "windsurf", "gemini")


@pytest.mark.requirement("PRM-2")
@pytest.mark.parametrize("host", HOSTS)
def test_t123_an_import_does_not_take_over_trust(home: Path, host: str):
    entry = {"command": "/bin/true"}
    file = write(home / "work" / "theirs.json", servers(box={**entry, "trusted": True}))

    done = run("mcp", "import", host, str(file))

    assert done.returncode == 0, done.stderr
    kept = json.loads((home / ".dragoman" / "settings.json").read_text())
    assert kept["mcpServers"] == {"box": entry}
    assert "box: trusted: " in done.stderr
