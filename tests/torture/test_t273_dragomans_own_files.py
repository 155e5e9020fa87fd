"""T273: a model that works in the home folder cannot read the tokens of servers without permission."""

import json
from pathlib import Path

import pytest

from tests.e2e.fake_provider import FakeProvider
from tests.e2e.forked import run

pytestmark = pytest.mark.requirement("AGT-2")
CANARY = "canary-token-0123456789"


def told(home: Path, calls: list[tuple[str, dict[str, str]]], *options: str) -> list[str]:
    """The tool results that a model which works in the home folder receives."""
    with FakeProvider([*calls], ["Done."]) as provider:
        said = ("--model", "openai-chat:gpt-5.5", "--base-url", f"{provider.url}/v1", "-p", "go", *options)
        done = run(*said, cwd=home)
        assert done.returncode == 0, done.stderr
        return provider.tool_results(1)


@pytest.fixture(autouse=True)
def files(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-a-provider")
    path = home / ".dragoman" / "state" / "tokens" / "one.json"
    path.parent.mkdir(parents=True)
    for each in (path, home / "notes.json"):
        each.write_text(json.dumps({"access_token": CANARY}))
    (home / "link.json").symlink_to(path)
    return path


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": ".dragoman/state/tokens/one.json"}),
        ("Read", {"file_path": "link.json"}),
        ("Grep", {"pattern": CANARY[:9], "path": ".dragoman"}),
        ("Grep", {"pattern": CANARY[:9], "path": ".dragoman/state/tokens/one.json"}),
        ("Glob", {"pattern": "**/*", "path": ".dragoman"}),
    ],
    ids=["Read", "through a link", "Grep", "Grep in a file", "Glob"],
)
def test_t273_dragomans_own_folder_needs_a_rule(home: Path, tool: str, arguments: dict[str, str]):
    (result,) = told(home, [(tool, arguments)])
    assert result.startswith(f"{tool} was not allowed: no rule allows it")


def test_t273_a_search_of_everything_leaves_dragomans_folder_out(home: Path):
    (result,) = told(home, [("Grep", {"pattern": CANARY[:9]})])
    assert [line.partition(":")[0] for line in result.splitlines() if CANARY in line] == ["notes.json"]


def test_t273_a_rule_allows_dragomans_folder(home: Path):
    (result,) = told(home, [("Read", {"file_path": "link.json"})], "--allowed-tools", "Read")
    assert CANARY in result


def test_t273_other_files_of_the_folder_need_no_rule(home: Path):
    (result,) = told(home, [("Read", {"file_path": "notes.json"})])
    assert CANARY in result
