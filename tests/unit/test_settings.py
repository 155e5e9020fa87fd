"""The settings table: where a value comes from, and what is said of a bad one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.settings import NAMES as ALL_NAMES
from dragoman.settings import TABLE, Layer, Setting, Settings, SettingValue

NAMES = [row.name for row in TABLE]


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("MCP_TIMEOUT", 30_000),
        ("MCP_TOOL_TIMEOUT", 100_000_000),
        ("MCP_REQUEST_TIMEOUT_MS", 60_000),
        ("DRAGOMAN_MESSAGE_LIMIT_BYTES", 64 * 1024 * 1024),
        ("DRAGOMAN_PROBE_TIMEOUT_MS", 3_000),
        ("DRAGOMAN_WRITE_STALL_MS", 30_000),
        ("DRAGOMAN_RECONNECT_ATTEMPTS", 5),
        ("DRAGOMAN_RECONNECT_WAIT_MS", 1_000),
        ("DRAGOMAN_RECONNECT_LONGEST_WAIT_MS", 30_000),
        ("DRAGOMAN_REPEAT_SAFE_CALLS", 0),
        ("DRAGOMAN_IDLE_STOP_MS", 300_000),
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
def test_overrides_take_precedence_over_the_environment_and_that_over_the_default(
    environ: dict[str, str], overrides: dict[str, int], value: int
):
    assert Settings(overrides, environ)["MCP_TIMEOUT"] == value


def test_milliseconds_are_available_as_seconds():
    assert Settings({"MCP_TIMEOUT": 1500}, {}).seconds("MCP_TIMEOUT") == 1.5


def test_the_process_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MCP_TIMEOUT", "123")

    assert Settings()["MCP_TIMEOUT"] == 123


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ["abc", "1.5", "-1", "1e3", "30s", "0x10", "9" * 5000])
def test_an_invalid_text_is_reported_with_the_setting_and_its_purpose(name: str, text: str):
    with pytest.raises(ConfigError, match=name) as caught:
        Settings(environ={name: text})
    assert caught.value.hint


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_a_value_below_the_minimum_is_reported_and_the_minimum_is_accepted(row: Setting):
    with pytest.raises(ConfigError, match=row.name) as caught:
        Settings(environ={row.name: str(row.minimum - 1)})
    assert caught.value.hint
    assert Settings(environ={row.name: str(row.minimum)})[row.name] == row.minimum


def test_only_settings_that_may_be_off_can_be_zero():
    assert {row.name for row in TABLE if row.minimum == 0} == {
        "DRAGOMAN_ENABLE_XAA",
        "DRAGOMAN_RECONNECT_ATTEMPTS",
        "DRAGOMAN_REPEAT_SAFE_CALLS",
        "DRAGOMAN_SAMPLING_PER_MINUTE",
        "DRAGOMAN_SECRET_FORM_FIELDS",
        "DRAGOMAN_STOP_WAIT_MS",
        "DRAGOMAN_TOOL_SHARE_PERCENT",
    }


@pytest.mark.parametrize("value", [0, -1, 1.5, "5000", True, None, float("nan")], ids=repr)
def test_an_invalid_override_is_reported_with_the_setting(value: object):
    with pytest.raises(ConfigError, match="MCP_TIMEOUT"):
        Settings({"MCP_TIMEOUT": value}, {})  # type: ignore[dict-item]


def test_a_limit_too_small_for_any_message_is_refused():
    with pytest.raises(ConfigError, match="at least 1024 bytes"):
        Settings({"DRAGOMAN_MESSAGE_LIMIT_BYTES": 100}, {})


def test_an_unknown_setting_is_refused_and_the_known_ones_are_listed():
    with pytest.raises(ConfigError, match="MCP_TIMEOTU") as caught:
        Settings({"MCP_TIMEOTU": 1}, {})
    assert "MCP_TIMEOUT" in (caught.value.hint or "")


@pytest.mark.requirement("CFG-9")
@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("MCP_TIMEOUT", 30_000),
        ("MCP_TOOL_TIMEOUT", 100_000_000),
        ("MCP_REQUEST_TIMEOUT_MS", 60_000),
        ("MAX_MCP_OUTPUT_TOKENS", 25_000),
        ("MCP_SERVER_CONNECTION_BATCH_SIZE", 3),
        ("MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE", 20),
    ],
)
def test_the_documented_limits(name: str, default: int):
    assert Settings(environ={})[name] == default


def test_the_names_are_those_of_the_table():
    assert set(NAMES) == ALL_NAMES


# --- files ---

ROWS = st.sampled_from(TABLE)
GOOD = st.integers(1024, 10**9)
BAD: st.SearchStrategy[object] = st.sampled_from([0, -1, "soon", "1.5", "", None, True, 1.5, [], {}])
LAYERS = st.lists(st.none() | GOOD | GOOD.map(str) | BAD, max_size=3)


def layers_of(place: str, row: Setting, values: list[object]) -> list[Layer]:
    """None: the file does not speak of it."""
    numbered = enumerate(values)
    return [Layer(f"{place} {n}", {} if value is None else {row.name: value}) for n, value in numbered]


def usable(layers: list[Layer], row: Setting) -> list[SettingValue]:
    said: list[SettingValue] = []
    for layer in layers:
        value = layer.values.get(row.name)
        text = value.strip() if isinstance(value, str) else ""
        number = int(text) if text.isdecimal() else value
        if type(number) is int and number >= row.minimum:
            said.append(SettingValue(number, layer.source))
    return said


@pytest.mark.requirement("CFG-9")
@given(ROWS, LAYERS, st.none() | GOOD, st.none() | GOOD, LAYERS)
def test_the_precedence_is_managed_files_then_code_then_environment_then_other_files(
    row: Setting, managed: list[object], code: int | None, environment: int | None, files: list[object]
):
    high, low = layers_of("managed", row, managed), layers_of("file", row, files)
    settings = Settings(
        {} if code is None else {row.name: code},
        {} if environment is None else {row.name: str(environment)},
        managed=high,
        files=low,
    )
    expected = [
        *usable(high, row),
        *([] if code is None else [SettingValue(code, "code")]),
        *([] if environment is None else [SettingValue(environment, "environment")]),
        *usable(low, row),
        SettingValue(row.default, "default"),
    ]
    assert list(settings.values_of(row.name)) == expected
    assert settings[row.name] == expected[0].value


@pytest.mark.requirement("CFG-9")
@given(ROWS, LAYERS, LAYERS)
def test_every_value_of_a_file_is_used_or_reported(row: Setting, managed: list[object], files: list[object]):
    layers = [*layers_of("managed", row, managed), *layers_of("file", row, files)]
    settings = Settings(environ={}, managed=layers[: len(managed)], files=layers[len(managed) :])
    spoken = [layer.source for layer in layers if row.name in layer.values]
    taken = [said.source for said in settings.values_of(row.name)[:-1]]
    told = [problem.partition(":")[0] for problem in settings.problems]
    assert sorted(taken + told) == sorted(spoken)
    assert all(row.name in problem for problem in settings.problems)


def test_adopted_values_are_visible_in_existing_settings_objects():
    held = Settings(environ={})
    held.adopt(Settings({"MCP_TIMEOUT": 5}, {}, files=[Layer("f", {"MCP_TOOL_TIMEOUT": "x"})]))
    assert held["MCP_TIMEOUT"] == 5
    assert held.values_of("MCP_TIMEOUT")[0].source == "code"
    assert len(held.problems) == 1


def test_a_layer_may_contain_other_members():
    settings = Settings(environ={}, files=[Layer("f", {"PATH": "/bin", "MCP_TIMEOUT": 7})])
    assert settings["MCP_TIMEOUT"] == 7
    assert settings.problems == []
