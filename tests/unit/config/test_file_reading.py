"""Configuration files, read without trusting them."""

import os
import socket
from pathlib import Path

import pytest

from dragoman.config import file_reading
from dragoman.config.file_reading import parse_object, read_object, read_text
from dragoman.errors import ConfigFileError

FILE = Path("settings.json")


def failure(path: Path = FILE) -> ConfigFileError:
    with pytest.raises(ConfigFileError) as caught:
        read_object(path)
    assert caught.value.hint
    assert str(path) in str(caught.value)
    return caught.value


def test_a_file_that_does_not_exist_is_none():
    assert read_text(FILE) is None
    assert read_object(FILE) is None
    assert read_text(Path("nowhere/settings.json")) is None
    FILE.write_text("{}")
    assert read_text(FILE / "below-a-file") is None


def test_a_text_is_read_unchanged_including_line_ends():
    FILE.write_bytes('{"a": "é\u2028",\r\n "b": 1}\r\n'.encode())
    assert read_text(FILE) == '{"a": "é\u2028",\r\n "b": 1}\r\n'
    assert read_object(FILE) == ('{"a": "é\u2028",\r\n "b": 1}\r\n', {"a": "é\u2028", "b": 1})


def test_a_symlink_is_followed():
    FILE.write_text("{}")
    Path("link").symlink_to(FILE)
    assert read_text(Path("link")) == "{}"


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(
    ("content", "line", "column", "words"),
    [
        (b'{"a": 1,\n  "b": }', 2, 8, "a value was expected"),
        (b"\n [1]", 2, 2, "not an object"),
        (b"null", 1, 1, "not an object"),
        (b"", 1, 1, "the text is empty"),
        (b"\0\0\0\0", 1, 1, "NUL"),
        (b'{"a": "\xc3\xa9",\n "b": "\xff"}', 2, 8, "not valid UTF-8"),
        ("{}".encode("utf-16"), 1, 1, "UTF-16"),
        (b"\xef\xbb\xbf{}", 1, 1, "byte-order mark"),
    ],
)
def test_a_broken_file_is_reported_with_file_line_and_reason(
    content: bytes, line: int, column: int, words: str
):
    FILE.write_bytes(content)
    error = failure()
    assert (error.line, error.column) == (line, column)
    assert words in error.reason


def test_comments_are_read_where_they_are_allowed():
    FILE.write_text("{} // mine")
    assert parse_object(FILE, "{} // mine", comments=True) == {}
    assert "comments are not allowed" in failure().reason


def test_a_large_file_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_reading, "LIMIT_BYTES", 1024**2)
    FILE.write_bytes(b"{" + b" " * (1024**2 - 2) + b"}")
    assert read_object(FILE)
    FILE.write_bytes(b"{" + b" " * (1024**2 - 1) + b"}")
    assert "larger than 1 MB" in failure().reason


def test_what_is_not_a_regular_file_is_refused_without_waiting():
    Path("folder").mkdir()
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for path in (Path("folder"), Path("pipe"), Path("socket"), Path("/dev/zero"), Path("/dev/null")):
            assert "file" in failure(path).reason


def test_a_file_that_may_not_be_read_is_refused(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    error = failure()
    assert error.reason == "the file cannot be read: Permission denied"


def test_a_circular_symlink_is_refused():
    Path("loop").symlink_to("loop")
    assert "cannot be read" in failure(Path("loop")).reason


@pytest.mark.parametrize("name", ["a\0b", "a" * 300])
def test_an_impossible_name_is_refused(name: str):
    with pytest.raises(ConfigFileError, match=r"(?i)name"):
        read_text(Path(name))
