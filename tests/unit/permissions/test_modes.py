"""Which permission mode a host is in."""

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.permissions.modes import MEANINGS, MODES, effective


def part(scope: str, mode: str | None = None, disable: str | bool | None = None):
    return scope, f"{scope}.json", PermissionRules(default_mode=mode, disable_bypass_permissions_mode=disable)


@pytest.mark.requirement("PRM-2")
@pytest.mark.parametrize(
    ("wanted", "in_code", "parts", "mode", "problem"),
    [
        (None, False, [], "default", None),
        ("default", False, [], "default", None),
        ("bypassPermissions", True, [], "bypassPermissions", None),
        ("auto", True, [], "auto", None),
        # what files say
        (None, False, [part("user", "auto")], "auto", None),
        ("default", False, [part("user", "bypassPermissions")], "bypassPermissions", None),
        ("default", True, [part("user", "bypassPermissions")], "default", None),
        (None, False, [part("enterprise", "dontAsk"), part("user", "auto")], "dontAsk", None),
        (None, False, [part("user", "auto"), part("enterprise", "dontAsk")], "dontAsk", None),
        (None, False, [part("user", "auto"), part("local", "plan")], "plan", None),
        (None, False, [part("project", "dontAsk"), part("local", "plan")], "plan", None),
        (None, False, [part("project", "dontAsk"), part("user", "auto")], "dontAsk", None),
        # a project cannot reduce questions
        (None, False, [part("project", "bypassPermissions")], "default", "only in your own settings"),
        (None, False, [part("local", "auto")], "default", "only in your own settings"),
        (None, False, [part("plugin", "auto"), part("user", "plan")], "plan", None),
        (None, False, [part("project", "auto"), part("user", "plan")], "plan", "only in your own settings"),
        (None, False, [part("local", "default"), part("user", "plan")], "plan", "is not used"),
        (None, False, [part("local", "default"), part("user", "dontAsk")], "dontAsk", "is not used"),
        (None, False, [part("project", "default"), part("user", "plan")], "plan", "is not used"),
        (None, False, [part("plugin", "default"), part("user", "plan")], "plan", None),
        (None, False, [part("local", "plan"), part("user", "dontAsk")], "dontAsk", "is not used"),
        (None, False, [part("local", "dontAsk"), part("user", "plan")], "plan", "is not used"),
        (None, False, [part("local", "plan"), part("user", "plan")], "plan", None),
        (None, False, [part("local", "default"), part("project", "plan")], "plan", "is not used"),
        (None, False, [part("local", "default"), part("user", "auto")], "default", None),
        (None, False, [part("local", "default"), part("user", "bypassPermissions")], "default", None),
        (None, False, [part("local", "default"), part("dynamic", "plan")], "plan", "is not used"),
        (None, False, [part("dynamic", "default"), part("user", "plan")], "default", None),
        ("plan", False, [part("local", "default")], "plan", "is not used"),
        ("dontAsk", False, [part("local", "plan")], "dontAsk", "is not used"),
        (None, False, [part("local", "plan"), part("enterprise", "default")], "default", None),
        # an administrator forbids to bypass
        ("bypassPermissions", True, [part("enterprise", disable="disable")], "default", "forbids"),
        ("bypassPermissions", True, [part("enterprise", disable=True)], "default", "forbids"),
        ("bypassPermissions", True, [part("enterprise", disable="yes")], "default", "forbids"),
        ("bypassPermissions", True, [part("enterprise", disable=False)], "bypassPermissions", None),
        ("bypassPermissions", True, [part("user", disable="disable")], "bypassPermissions", None),
        (
            None,
            False,
            [part("user", "bypassPermissions"), part("enterprise", None, True)],
            "default",
            "forbids",
        ),
        (None, False, [part("enterprise", "bypassPermissions", True)], "default", "forbids"),
        ("auto", True, [part("enterprise", disable=True)], "auto", None),
        # unknown modes
        ("acceptEdits", True, [], "default", "'acceptEdits' is not known"),
        ("Default", True, [], "default", "not known"),
        (None, False, [part("user", "yolo")], "default", "user.json: defaultMode 'yolo' is not known"),
        (None, False, [part("local", "yolo"), part("user", "plan")], "plan", "local.json"),
        ("yolo", True, [part("user", "plan")], "plan", "not known"),
    ],
)
def test_the_mode_in_effect(wanted, in_code, parts, mode, problem):
    found, trouble = effective(wanted, parts, asked_in_code=in_code)
    assert found == mode
    assert (trouble is None) is (problem is None)
    assert problem is None or problem in trouble


def test_every_mode_is_described():
    assert set(MEANINGS) == set(MODES)
