"""T302: a model that works in the root folder does not read the keys of providers in /proc."""

import os
import subprocess

import pytest

from tests.e2e.command import DRAGOMAN
from tests.e2e.fake_provider import FakeProvider

pytestmark = pytest.mark.requirement("AGT-2")
CANARY = "key-of-a-provider-0123456789"


def told(tool: str, arguments: dict[str, str], *options: str) -> str:
    """What a model that works in the root folder is told of its call."""
    with FakeProvider([(tool, arguments)], ["Done."]) as provider:
        said = ["--model", "openai-chat:gpt-5.5", "--base-url", f"{provider.url}/v1", "-p", "go", *options]
        # A long first value: the beginning of the file looks like a text.
        env = {"FIRST": "x" * 100, **os.environ, "OPENAI_API_KEY": CANARY}
        done = subprocess.run(
            [DRAGOMAN, *said], cwd="/", env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
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
def test_t302_processes_need_a_rule(home: object, tool: str, arguments: dict[str, str]):
    assert told(tool, arguments).startswith(f"{tool} was not allowed: no rule allows it")


def test_t302_a_rule_allows_it(home: object):
    assert CANARY in told("Read", {"file_path": "/proc/self/environ"}, "--allowed-tools", "Read")
