"""T734: a deny rule for a folder or URL applies to paths through Linux's symlinks to the root folder, and
to the URL behind `view-source:`."""

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook

pytestmark = pytest.mark.requirement("PRM-2")
TOOL = "mcp__box__read"


def decided(rule: str, argument: str, value: str) -> str:
    book = Rulebook.of([("user", "f", PermissionRules(allow=("*",), deny=(rule,)))])
    call = Call(tool=TOOL, arguments={argument: value})
    return decide(call, book.about(call), "default").behaviour


@pytest.mark.parametrize(
    "path",
    ["/proc/self/root/etc/passwd", "/proc/1/root/etc/passwd", "/proc/thread-self/root/etc/passwd",
     "/proc/self/task/1/root/etc/passwd", "/proc/self/root/proc/1/root/etc/passwd",
     "//proc/./self/root//etc/passwd",
     "/proc/self/root/../etc/passwd", "file:///proc/self/root/etc/passwd", "/proc/self/%72oot/etc/passwd",
     "/proc/self/root/etc"],
)  # fmt: skip
def test_t734_a_folder_behind_a_symlink_to_the_root_is_matched(path: str):
    assert decided(f"{TOOL}(path=/etc/*)", "path", path) == "deny"


@pytest.mark.parametrize(
    "path", ["/proc/self/rooted/etc/x", "/proc/x/root/etc/x", "/srv/proc/self/root/etc/x"]
)
def test_t734_other_folders_are_not_matched(path: str):
    assert decided(f"{TOOL}(path=/etc/*)", "path", path) == "allow"


@pytest.mark.parametrize("url", ["view-source:https://evil.example/x", "View-Source: https://evil.example/x"])
def test_t734_a_url_behind_view_source_is_matched(url: str):
    assert decided(f"{TOOL}(url=https://evil.example/*)", "url", url) == "deny"
