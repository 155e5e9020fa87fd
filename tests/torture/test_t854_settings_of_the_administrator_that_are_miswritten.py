"""T854: the administrator switches off forms that ask for secrets, with `false` in place of 0, or with a key
in lower case. The setting was left out, and the value of the person's environment was used."""

from pathlib import Path
from typing import Any

import pytest

from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-9")
NAME = "DRAGOMAN_SECRET_FORM_FIELDS"
MANAGED = "managed/managed-mcp.json"
VALUES = [False, None, 0.0, "off", "false", "", -1, [0]]
KEYS = [NAME.lower(), f"{NAME} ", NAME.replace("_", "-")]


def seen(home: Path, document: dict[str, Any]) -> Any:
    projects.write(home / MANAGED, document)
    return projects.seen(given={"box": {"command": "/bin/echo"}})


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_t854_no_server_is_used_until_the_value_is_corrected(
    home: Path, monkeypatch: pytest.MonkeyPatch, value: Any
):
    monkeypatch.setenv(NAME, "1")
    box = seen(home, {"env": {NAME: value}}).servers["box"]
    assert box.eligibility == "refused"
    assert f"managed-mcp.json, line 3, column 5: env: {NAME} must be " in box.reason


@pytest.mark.parametrize("key", KEYS)
def test_t854_no_server_is_used_until_the_key_is_corrected(home: Path, key: str):
    box = seen(home, {"env": {key: 0}}).servers["box"]
    assert box.eligibility == "refused"
    assert f'"env": "{key}" must be written "{NAME}"' in box.reason


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"Env": {NAME: 0}}, '"Env" must be written "env"'),
        ({"env": [NAME]}, '"env" must be an object'),
        ({NAME: 0}, f'"{NAME}" must be in "env"'),
    ],
)
def test_t854_the_same_with_the_object(home: Path, document: dict[str, Any], reason: str):
    box = seen(home, document).servers["box"]
    assert box.eligibility == "refused"
    assert reason in box.reason


def test_t854_a_setting_that_is_right_comes_before_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(NAME, "1")
    configuration = seen(home, {"env": {NAME: "0", "EDITOR": "vi"}})
    assert (configuration.settings[NAME], configuration.problems) == (0, ())


@pytest.mark.parametrize("key", KEYS)
def test_t854_in_a_persons_file_it_is_reported(home: Path, key: str):
    file = projects.write(home / ".dragoman/settings.json", {"env": {key: 0}})
    configuration = projects.seen(given={"box": {"command": "/bin/echo"}})
    assert configuration.servers["box"].eligibility == "ready"
    problem = f'env: "{key}" is a variable, not a setting; the setting is written "{NAME}"'
    assert configuration.problems == (f"{file}, line 3, column 5: {problem}",)
