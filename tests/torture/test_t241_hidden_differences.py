"""T241: the diff in a permission question shows every line that a program would read."""

from pathlib import Path

import pytest

from dragoman.agent.builtin.files import proposed_change
from dragoman.tui.permission_question import diff_text

pytestmark = pytest.mark.requirement("AGT-3")
SEPARATORS = ["\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]


@pytest.mark.parametrize("separator", SEPARATORS)
@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_t241_a_comment_that_becomes_a_command_is_shown_in_the_diff(
    tmp_path: Path, tool: str, separator: str
):
    path = tmp_path / "run.sh"
    path.write_bytes(f"# see{separator}rm -rf ~\n".encode())
    arguments = {
        "Edit": {"old_string": separator, "new_string": "\n"},
        "Write": {"content": "# see\nrm -rf ~\n"},
    }
    diff = proposed_change(tool, {"file_path": str(path), **arguments[tool]}) or ""
    escape = separator.encode("ascii", "backslashreplace").decode() if separator > "\x7f" else ""
    escape = escape or f"\\x{ord(separator):02x}"
    assert diff_text(diff).plain.split("\n")[1:] == [f"-# see{escape}rm -rf ~", "+# see", "+rm -rf ~"]


def test_t241_a_file_with_other_line_endings_is_shown_as_usual(tmp_path: Path):
    path = tmp_path / "run.bat"
    path.write_bytes(b"one\r\ntwo\r\n")
    change = {"file_path": str(path), "old_string": "two", "new_string": "three"}
    assert proposed_change("Edit", change) == "@@ -1,2 +1,2 @@\n one\n-two\n+three"
