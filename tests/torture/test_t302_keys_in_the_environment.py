"""T302: a model that works in the root folder cannot read provider keys in /proc."""

import os
import subprocess
from typing import Any

import pytest

from tests.e2e import forked
from tests.e2e.command import DRAGOMAN
from tests.e2e.fake_provider import FakeProvider

pytestmark = pytest.mark.requirement("AGT-2")
CANARY = "key-of-a-provider-0123456789"
REFUSED = "{} was not allowed: no rule allows it"


def as_installed(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs in a process with the given environment; a forked process would have its parent's."""
    return subprocess.run(
        [DRAGOMAN, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, **options
    )


def tool_result(run: Any, tool: str, arguments: dict[str, str], *options: str) -> str:
    """The tool result that a model which works in the root folder receives."""
    with FakeProvider([(tool, arguments)], ["Done."]) as provider:
        said = ["--model", "openai-chat:gpt-5.5", "--base-url", f"{provider.url}/v1", "-p", "go", *options]
        # The first value makes the beginning look like a text; the key follows, as a long line is cut.
        others = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
        env = {"FIRST": "x" * 100, "OPENAI_API_KEY": CANARY, **others}
        done = run(*said, cwd="/", env=env)
        assert done.returncode == 0, done.stderr
        (result,) = provider.tool_results(1)
        return result


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "/proc/self/environ"}),
        ("Read", {"file_path": "/dev/fd/../environ"}),
        ("Read", {"file_path": "/proc/thread-self/environ"}),
        ("Grep", {"pattern": CANARY[:10], "path": "/proc/self"}),
        ("Glob", {"pattern": "*", "path": "/proc/self/fd"}),
    ],
    ids=["Read", "by a detour", "of a thread", "Grep", "Glob"],
)
def test_t302_reading_process_files_needs_a_rule(home: object, tool: str, arguments: dict[str, str]):
    assert tool_result(forked.run, tool, arguments).startswith(REFUSED.format(tool))


def test_t302_only_a_rule_allows_reading_process_files(home: object):
    environment = ("Read", {"file_path": "/proc/self/environ"})
    assert tool_result(as_installed, *environment).startswith(REFUSED.format("Read"))
    assert CANARY in tool_result(as_installed, *environment, "--allowed-tools", "Read")
