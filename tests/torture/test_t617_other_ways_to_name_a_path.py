"""T617: a deny rule about an argument also applies where the home folder is written as `~`, a host is in
punycode or behind a backslash, a Windows drive follows `file://`, or the argument is a text with its value
as JSON; an allow rule does not apply beside a second spelling of its argument."""

from pathlib import Path
from typing import Any

import pytest

from tests.torture.test_t137_spellings_of_arguments import decided

pytestmark = pytest.mark.requirement("PRM-1")


@pytest.mark.parametrize(
    "path",
    [
        "~/.ssh/id",
        "~//.ssh/./id",
        "~/x/../.ssh/id",
        "$HOME/.ssh/id",
        "${HOME}/.ssh/id",
        "%USERPROFILE%\\.ssh\\id",
        "~\\.ssh\\id",
        "%7E/.ssh/id",
        " ~/.SSH/id",
        ["~/a", "~/.ssh/id"],
    ],
)
def test_t617_the_home_folder_written_as_tilde_is_the_same_folder(home: Path, path: Any):
    assert decided("deny", f"path={home}/.ssh/*", path=path) == "deny"
    assert decided("deny", 'path="~/.ssh/*"', path=path) == "deny"


def test_t617_a_rule_with_a_tilde_matches_the_home_folder(home: Path):
    for path in (f"{home}/.ssh/id", f"file://{home}/.ssh/id", f"{home}/.ssh", f"{home}/a/../.ssh/id"):
        assert decided("deny", 'path="~/.ssh/*"', path=path) == "deny"
    assert decided("deny", f"path={home}/.ssh/*", path=f"~{home.name}/.ssh/id") == "deny"


def test_t617_other_folders_are_not_matched(home: Path):
    for path in ("~/ssh/id", "~other/.ssh/id", "/~/.ssh/id", f"{home}2/.ssh/id", "~.ssh/id"):
        assert decided("deny", f"path={home}/.ssh/*", path=path) == "ask"
        assert decided("deny", 'path="~/.ssh/*"', path=path) == "ask"
    assert decided("allow", f"path={home}/*", path="~/x") == "ask", "an allow is compared exactly"


@pytest.mark.parametrize(
    ("rule", "url"),
    [
        ("https://bücher.example/*", "https://xn--bcher-kva.example/x"),
        ("https://bücher.example/*", "https://me@XN--BCHER-KVA.example:443/x"),
        ("https://straße.example/*", "https://xn--strae-oqa.example/"),
        ("https://*.bücher.example/*", "https://a.xn--bcher-kva.example/x"),
        ("https://internal.example.com/*", "https://evil.example\\@internal.example.com/x"),
        ("https://evil.example/*", "https://evil.example\\@internal.example.com/x"),
    ],
)
def test_t617_a_host_in_punycode_or_behind_a_backslash_is_the_same_host(rule: str, url: str):
    assert decided("deny", f"url={rule}", url=url) == "deny"


@pytest.mark.parametrize(
    "path", ["file:///C:/Windows/x", "file:///c:/windows", "\\\\?\\C:\\Windows\\x", "\\\\.\\C:\\Windows\\x"]
)
def test_t617_a_windows_drive_is_the_same_in_every_form(path: str):
    assert decided("deny", "path=C:\\Windows\\*", path=path) == "deny"
    assert decided("deny", "path=C:/Windows/*", path=path) == "deny"


@pytest.mark.parametrize("value", ['["/etc/x"]', ' {"p": "/etc/x"}', '[{"/etc/x": 1}]', '["\\u002fetc/x"]'])
def test_t617_json_in_a_text_is_compared_like_the_parsed_value(value: str):
    assert decided("deny", "path=/etc/*", path=value) == "deny"
    assert decided("allow", "path!=/etc/*", path=value) == "ask"


def test_t617_a_key_inside_json_in_a_text_is_found():
    for value in ('{"b": "x"}', '[{"B ": ["x"]}]', {"b": '["x"]'}, ['{"b":"x"}']):
        assert decided("deny", "a.b=x", a=value) == "deny"
    assert decided("deny", "a.b=x", a='{"b": "y"}') == "ask"
    assert decided("deny", "a.b=x", a='{"b": "x"') == "ask", "it is no JSON"
    assert decided("deny", "a.b=x", a="[" + " " * 1_000_001) == "deny", "too large to be compared"


def test_t617_an_allow_rule_does_not_apply_beside_the_same_name_with_blanks():
    assert decided("allow", "path=/data/*", path="/data/x") == "allow"
    assert decided("allow", "path=/data/*", **{"path": "/data/x", "path ": "/etc/x"}) == "ask"
    assert decided("allow", "path=/data/*", **{"path": "/data/x", "\tPath": "/etc/x"}) == "ask"
