"""What the command says when the operating system refuses something."""

import pytest

from dragoman.cli.main import report_system_error


def test_a_file_that_cannot_be_used_is_named(capsys: pytest.CaptureFixture[str]):
    error = PermissionError(13, "Permission denied", "/a/logs/\x1b[31maudit.jsonl")
    assert report_system_error(error) == 1
    said = capsys.readouterr()
    assert said.err == "error: /a/logs/\\x1b[31maudit.jsonl cannot be used: Permission denied\n"
    assert said.out == ""
