"""Reads parts of a saved result. Uses the standard library only, because it also runs in a child process.

There are three ways to read (lines, an offset, words or an expression), each with an answer of bounded size
that says how to continue. `asked` answers a request about an open file; `main` does the same as
a program, with the file as its standard input, and ends itself when its time or memory is used up.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

PIECE_BYTES = 256 * 1024
LINE_LIMIT = 300
"""The maximum length of a line that is shown for a match, in characters."""
MATCH_LIMIT = 200
SECONDS = 10
MEMORY_BYTES = 4 * 1024**3
LINE_BYTES = 1024 * 1024
"""A longer line is searched in parts."""


class BadQuestion(ValueError):
    """The question cannot be answered; the text says why."""


def asked(file: BinaryIO, question: dict[str, Any], limit: int) -> str:
    """Answers a question, in about `limit` characters at most."""
    if "lines" in question:
        return lines(file, question["lines"], limit)
    if "grep" in question:
        return matches(file, question["grep"], limit)
    return piece(file, int(question.get("offset", 0)), limit)


def piece(file: BinaryIO, offset: int, limit: int) -> str:
    """The text from an offset, in bytes."""
    size = file.seek(0, 2)
    if not 0 <= offset < max(size, 1):
        raise BadQuestion(f"the offset has to be from 0 to {max(0, size - 1)}")
    file.seek(offset)
    data = file.read(4 * limit)
    # From the start of one character to the start of another.
    begun = len(data) - len(data.lstrip(bytes(range(0x80, 0xC0)))) if offset else 0
    text = data[begun:].decode("utf-8", "replace")[:limit]
    end = offset + begun + len(text.encode("utf-8", "replace"))
    if size - end <= 0:
        return f"{text}\n[the end of the result]"
    return f"{text}\n[{size - end} more bytes: continue with offset={end}]"


def lines(file: BinaryIO, wanted: str, limit: int) -> str:
    """Lines by their numbers, from 1 on: `100-200`, `100-`, `7`."""
    match = re.fullmatch(r"\s*(\d{1,12})\s*(?:(-)\s*(\d{1,12})?)?\s*", wanted)
    if not match:
        raise BadQuestion('lines are given as "100-200", "100-" or "7"')
    first = int(match[1])
    last = int(match[3]) if match[3] else (sys.maxsize if match[2] else first)
    if first < 1 or last < first:
        raise BadQuestion("the first line has number 1, and the last is not before the first")
    start = _line_start(file, first)
    if start is None:
        raise BadQuestion(f"there is no line {first}: the result has {_line_count(file)} lines")
    return _lines_from(file, start, first, last, limit)


def _lines_from(file: BinaryIO, start: int, first: int, last: int, limit: int) -> str:
    file.seek(start)
    shown: list[str] = []
    number, room, at = first, limit, start
    while number <= last and (line := file.readline(4 * room + 4)):
        text = line.decode("utf-8", "replace")
        if len(text.rstrip("\n")) > room:
            text = text[:room]
            at += len(text.encode("utf-8", "replace"))
            return f"{''.join(shown)}{text}\n[line {number} continues: continue with offset={at}]"
        shown.append(text)
        at += len(line)
        room -= len(text)
        number += 1
        if room <= 0:
            break
    text = "".join(shown)
    is_all = not file.read(1)
    end = (
        "the end of the result" if is_all else f'continue with lines="{number}-{number + number - first - 1}"'
    )
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}[lines {first}-{number - 1}; {end}]"


def _line_start(file: BinaryIO, number: int) -> int | None:
    """Where a line begins."""
    file.seek(0)
    at, left = 0, number - 1
    while left and (data := file.read(PIECE_BYTES)):
        count = data.count(b"\n")
        if count >= left:
            place = -1
            for _ in range(left):
                place = data.find(b"\n", place + 1)
            at += place + 1
            left = 0
        else:
            at, left = at + len(data), left - count
    if left:
        return None
    file.seek(at)
    return at if file.read(1) else None


def _line_count(file: BinaryIO) -> int:
    file.seek(0)
    count, last = 0, b"\n"
    while data := file.read(PIECE_BYTES):
        count, last = count + data.count(b"\n"), data[-1:]
    return count + (last != b"\n")


def matches(file: BinaryIO, wanted: str, limit: int) -> str:
    """Lines that contain the words, ignoring case; or, for text between slashes, lines that match the regular
    expression."""
    if not wanted:
        raise BadQuestion("there is nothing to look for")
    hits = _expression_hits(file, wanted[1:-1]) if is_expression(wanted) else _word_hits(file, wanted)
    shown: list[str] = []
    room = limit
    for number, offset, text, is_whole in hits:
        # In a long line, such as JSON without line ends, the number alone does not tell where to continue
        # reading.
        line = f"{number}: {text}" if is_whole else f"{number}, offset={offset}: {text}"
        if len(shown) == MATCH_LIMIT or len(line) > room:
            shown.append(f"[more matches follow; the next is in line {number}, at offset={offset}]")
            break
        shown.append(line)
        room -= len(line) + 1
    return "\n".join(shown) or "[no line matches]"


def is_expression(wanted: str) -> bool:
    return len(wanted) > 2 and wanted[0] == wanted[-1] == "/"


Hit = tuple[int, int, str, bool]
"""A match: line number, offset in the file, the text around it, and whether that is the whole line."""


def _word_hits(file: BinaryIO, wanted: str) -> Iterator[Hit]:
    needle = wanted.encode("utf-8", "replace").lower()
    for number, offset, line in _long_lines(file, len(needle)):
        lowered = line.lower()
        at = lowered.find(needle)
        while at >= 0:
            yield number, offset + at, *_around(line, at)
            at = lowered.find(needle, at + LINE_LIMIT)  # a line without an end has many matches


def _expression_hits(file: BinaryIO, wanted: str) -> Iterator[Hit]:
    try:
        pattern = re.compile(wanted.encode("utf-8", "replace"))
    except (re.error, RecursionError, OverflowError) as error:
        raise BadQuestion(f"the expression cannot be read: {error}") from None
    for number, offset, line in _long_lines(file, 0):
        match = pattern.search(line)
        while match:
            yield number, offset + match.start(), *_around(line, match.start())
            match = pattern.search(line, match.start() + LINE_LIMIT)


def _long_lines(file: BinaryIO, overlap: int) -> Iterator[tuple[int, int, bytes]]:
    """Every line with its number and offset; a very long line in overlapping parts."""
    file.seek(0)
    number, at, before = 1, 0, b""
    while line := file.readline(LINE_BYTES):
        yield number, at - len(before), before + line.removesuffix(b"\n")
        at += len(line)
        if line.endswith(b"\n"):
            number, before = number + 1, b""
        else:
            before = line[-(overlap - 1) :] if overlap > 1 else b""


def _around(line: bytes, begin: int) -> tuple[str, bool]:
    start = max(0, begin - LINE_LIMIT // 3) if len(line) > LINE_LIMIT else 0
    text = line[start : start + 4 * LINE_LIMIT].decode("utf-8", "ignore")
    goes_on = len(text) > LINE_LIMIT or start + 4 * LINE_LIMIT < len(line)
    return f"{'…' if start else ''}{text[:LINE_LIMIT]}{'…' if goes_on else ''}", not start and not goes_on


def main() -> None:
    """`python -c … QUESTION LIMIT < file`: the answer as JSON."""
    try:
        import resource
        import signal
    except ImportError:  # a child without limits could use all memory
        _print({"error": "patterns cannot be searched on this system; use lines or offset"})
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    signal.alarm(2 * SECONDS)
    try:
        answer = {"text": asked(sys.stdin.buffer, json.loads(sys.argv[1]), int(sys.argv[2]))}
    except BadQuestion as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "it takes too much memory; ask for something simpler"}
    _print(answer)


def _print(answer: dict[str, str]) -> None:
    sys.stdout.buffer.write(json.dumps(answer).encode("ascii"))
