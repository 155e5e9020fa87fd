"""The settings table: where a value comes from, and what is said of a bad one."""

import pytest

from dragoman.errors import ConfigError
from dragoman.settings import TABLE, Settings

NAMES = [row.name for row in TABLE]


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("MCP_TIMEOUT", 30_000),
        ("MCP_TOOL_TIMEOUT", 100_000_000),
        ("MCP_REQUEST_TIMEOUT_MS", 60_000),
        ("DRAGOMAN_MESSAGE_LIMIT_BYTES", 64 * 1024 * 1024),
        ("DRAGOMAN_PROBE_TIMEOUT_MS", 3_000),
        ("DRAGOMAN_WRITE_STALL_MS", 30_000),
    ],
)
def test_the_defaults(name: str, default: int):
    assert Settings(environ={})[name] == default


def test_every_setting_is_declared_once_and_explained():
    assert len(set(NAMES)) == len(NAMES)
    assert all(row.help.endswith(".") and row.unit and row.default >= row.minimum for row in TABLE)


@pytest.mark.parametrize(
    ("environ", "overrides", "value"),
    [
        ({}, {}, 30_000),
        ({"MCP_TIMEOUT": "5000"}, {}, 5000),
        ({"MCP_TIMEOUT": " 5000 \n"}, {}, 5000),
        ({"MCP_TIMEOUT": ""}, {}, 30_000),
        ({"MCP_TIMEOUT": "  "}, {}, 30_000),
        ({"MCP_TIMEOUT": "5000"}, {"MCP_TIMEOUT": 7}, 7),
        ({"mcp_timeout": "5000"}, {}, 30_000),
        ({"MCP_TIMEOUT": "1"}, {}, 1),
    ],
    ids=str,
)
def test_overrides_win_over_the_environment_and_that_over_the_default(
    environ: dict[str, str], overrides: dict[str, int], value: int
):
    assert Settings(overrides, environ)["MCP_TIMEOUT"] == value


def test_milliseconds_can_be_had_as_seconds():
    assert Settings({"MCP_TIMEOUT": 1500}, {}).seconds("MCP_TIMEOUT") == 1.5


def test_the_process_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MCP_TIMEOUT", "123")

    assert Settings()["MCP_TIMEOUT"] == 123


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["abc", "1.5", "0", "-1", "1e3", "30s", "0x10", "9" * 5000])
def test_a_bad_text_names_the_setting_and_says_what_it_is_for(name: str, text: str):
    with pytest.raises(ConfigError, match=name) as caught:
        Settings(environ={name: text})
    assert caught.value.hint


@pytest.mark.parametrize("value", [0, -1, 1.5, "5000", True, None, float("nan")], ids=repr)
def test_a_bad_override_names_the_setting(value: object):
    with pytest.raises(ConfigError, match="MCP_TIMEOUT"):
        Settings({"MCP_TIMEOUT": value}, {})  # type: ignore[dict-item]


def test_a_limit_too_small_for_any_message_is_refused():
    with pytest.raises(ConfigError, match="at least 1024 bytes"):
        Settings({"DRAGOMAN_MESSAGE_LIMIT_BYTES": 100}, {})


def test_an_unknown_setting_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(ConfigError, match="MCP_TIMEOTU") as caught:
        Settings({"MCP_TIMEOTU": 1}, {})
    assert "MCP_TIMEOUT" in (caught.value.hint or "")
