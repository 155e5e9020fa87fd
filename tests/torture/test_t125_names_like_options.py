"""T125: a shell does not complete a project's server name that a command would take for an option."""

import os
from pathlib import Path

from tests.e2e.forked import run
from tests.torture.projects import servers, write


def test_t125_a_server_name_like_an_option_is_not_completed(home: Path):
    entry = {"command": "/bin/true"}
    write(home / "work" / ".mcp.json", servers(**{"--yes": entry, "-y": entry, "a-b": entry}))
    env = {**os.environ, "_DRAGOMAN_COMPLETE": "bash_complete", "COMP_CWORD": "3"}

    for command in ("approve", "get"):
        done = run(env={**env, "COMP_WORDS": f"dragoman mcp {command} "})
        assert done.stdout.split() == ["plain,a-b"], command
