"""The tools Glob and Grep. Grep runs ripgrep, or grep if ripgrep is not installed. Both programs search in
linear time, whatever the pattern is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from dragoman.agent.builtin.workspace import BuiltinToolError, Workspace
from dragoman.calls.requests import object_schema
from dragoman.catalog.tools import BuiltinTool
from dragoman.names import counted
from dragoman.own_threads import in_own_thread
from dragoman.programs import CommandFailure, Watches, run, search_path

FILE_LIMIT: Final = 200
SCAN_LIMIT: Final = 200_000
"""The most files that are read for one pattern."""
MATCH_LIMIT: Final = 250
OUTPUT_LIMIT_BYTES: Final = 100_000
GREP_SECONDS: Final = 30.0
SKIPPED: Final = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})

_CONTEXT_LINE: Final = re.compile(r"\d+-")
FOLDER: Final = "path"
_FOLDER_SCHEMA: Final = {
    "type": "string",
    "description": "The folder to search, or one file; the working directory if left out",
}


MayRead = Callable[[Path], bool]
"""Whether no rule about Read denies a file or requires a question."""


def find_tools(workspace: Workspace, watchdog: Watches, may_read: MayRead) -> list[BuiltinTool]:
    is_inside = partial(workspace.is_path_inside, name=FOLDER)
    return [
        BuiltinTool(
            "Glob",
            partial(_glob, workspace),
            description=(
                f"Finds files by name: '**/*.py', 'src/*.ts'. Returns up to {FILE_LIMIT}, the newest first. "
                f"Folders such as {', '.join(sorted(SKIPPED)[:3])} are left out."
            ),
            input_schema=object_schema(
                {"pattern": {"type": "string", "minLength": 1}, FOLDER: _FOLDER_SCHEMA}, "pattern"
            ),
            annotations={"readOnlyHint": True, "openWorldHint": False},
            needs_no_rule=is_inside,
            complete=partial(workspace.with_full_path, "Glob", name=FOLDER),
            by_other_names=partial(workspace.by_other_names, name=FOLDER),
        ),
        BuiltinTool(
            "Grep",
            partial(_grep, workspace, watchdog, may_read),
            description="Searches the contents of files for a regular expression, line by line.",
            input_schema=object_schema(
                {
                    "pattern": {
                        "type": "string",
                        "minLength": 1,
                        "description": "An extended regular expression",
                    },
                    FOLDER: _FOLDER_SCHEMA,
                    "glob": {"type": "string", "description": "Only files with such a name: '*.py'"},
                    "ignore_case": {"type": "boolean"},
                    "context": {"type": "integer", "minimum": 0, "maximum": 20},
                    "output": {
                        "enum": ["lines", "files", "count"],
                        "description": "lines (if left out): the lines that match; files: only the names "
                        "of files; count: the number of matching lines in each file",
                    },
                },
                "pattern",
            ),
            annotations={"readOnlyHint": True, "openWorldHint": False},
            needs_no_rule=is_inside,
            complete=partial(workspace.with_full_path, "Grep", name=FOLDER),
            by_other_names=partial(workspace.by_other_names, name=FOLDER),
        ),
    ]


async def _glob(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    folder = workspace.path_in(arguments, FOLDER)
    pattern = str(arguments["pattern"])
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        raise BuiltinToolError(
            "the pattern must be relative and must not contain ..; give the folder as path"
        )
    is_hidden = _is_never_hidden if workspace.is_private(folder) else workspace.is_private
    found, is_cut = await in_own_thread(partial(_find_files, folder, pattern, is_hidden))
    if not found:
        return f"No file in {folder} matches the pattern."
    more = f"\n({len(found)} files; the {FILE_LIMIT} newest are shown.)" if len(found) > FILE_LIMIT else ""
    cut = f"\n(Only the first {SCAN_LIMIT} files were checked.)" if is_cut else ""
    return "\n".join(str(path) for path in found[:FILE_LIMIT]) + more + cut


def _is_never_hidden(path: Path) -> bool:
    return False


def _find_files(folder: Path, pattern: str, is_hidden: Callable[[Path], bool]) -> tuple[list[Path], bool]:
    """The files that match, the newest first, and whether the scan stopped at its limit."""
    times: dict[Path, float] = {}
    wanted = pattern if "/" in pattern or pattern.startswith("**") else f"**/{pattern}"
    for number, path in enumerate(_files(folder)):
        if number == SCAN_LIMIT:
            return _newest(times), True
        if _matches(path.relative_to(folder), wanted) and not is_hidden(path):
            with contextlib.suppress(FileNotFoundError):  # the file was removed meanwhile
                times[path] = path.lstat().st_mtime
    return _newest(times), False


def _newest(times: Mapping[Path, float]) -> list[Path]:
    return sorted(times, key=lambda path: (-times[path], str(path)))


def _files(folder: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (Path(base, name) for name in sorted(names))


def _matches(path: Path, pattern: str) -> bool:
    """Whether a relative path matches a pattern, where `**` matches any number of folders."""
    return _parts_match(path.parts, tuple(part for part in pattern.split("/") if part))


def _parts_match(parts: tuple[str, ...], patterns: tuple[str, ...]) -> bool:
    """Takes linear time: `reached` holds the positions in the pattern that match the parts so far."""
    reached = _after_wildcards({0}, patterns)
    for part in parts:
        following: set[int] = set()
        for place in reached:
            if place < len(patterns):
                if patterns[place] == "**":
                    following.add(place)
                elif Path(part).match(patterns[place]):
                    following.add(place + 1)
        reached = _after_wildcards(following, patterns)
    return len(patterns) in reached


def _after_wildcards(places: set[int], patterns: tuple[str, ...]) -> set[int]:
    """The positions, and those behind each `**` at them, because `**` may match no folder."""
    found = set(places)
    for place in sorted(places):
        while place < len(patterns) and patterns[place] == "**":
            place += 1
            found.add(place)
    return found


async def _grep(
    workspace: Workspace, watchdog: Watches, may_read: MayRead, arguments: Mapping[str, Any]
) -> str:
    path = workspace.path_in(arguments, FOLDER)
    programs = search_path()
    command = grep_command(arguments, has_ripgrep=shutil.which("rg", path=programs) is not None)
    folder, target = (path, ".") if path.is_dir() else (path.parent, path.name)
    line = f"{shlex.join([*command, target])} | head -c {OUTPUT_LIMIT_BYTES}"
    env = {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL") if name in os.environ}
    env["PATH"] = programs
    try:
        async with asyncio.timeout(GREP_SECONDS):
            ended = await run(
                line, env=env, cwd=str(folder), limit_bytes=2 * OUTPUT_LIMIT_BYTES, watchdog=watchdog
            )
    except TimeoutError:
        raise BuiltinToolError(
            f"the search took longer than {GREP_SECONDS:g} s. Search a smaller folder."
        ) from None
    except (CommandFailure, FileNotFoundError) as failed:
        raise BuiltinToolError(f"the search failed: {failed}") from None
    text = ended.stdout.decode("utf-8", "replace")
    if not text and ended.stderr:
        raise BuiltinToolError(f"the search failed: {ended.stderr.decode('utf-8', 'replace')[:500]}")
    is_list = arguments.get("output") == "files"
    records = ((name, "") for name in text.split("\0")[:-1]) if is_list else matches_in(text)

    def is_readable(name: str) -> bool:
        return all(may_read(Path(os.path.realpath(folder / each))) for each in possible_names(name))

    # In a thread: comparing thousands of names with rules would block the event loop.
    lines, left_out = await asyncio.to_thread(readable, records, is_readable)
    note = f"({counted(left_out, 'file')} left out because of a rule about Read.)" if left_out else ""
    shown = _cut(lines, is_cut=len(text) >= OUTPUT_LIMIT_BYTES)
    return "\n".join(filter(None, (shown, note))) or "Nothing matches."


def matches_in(text: str) -> Iterator[tuple[str, str]]:
    """Yields each matching line with the name of its file, which may contain line breaks. The text has a NUL
    after each name."""
    begun = ""  # the first lines of a name with line breaks
    for line in text.split("\n"):
        name, end, found = line.partition("\0")
        if end:
            yield begun + name, found
        begun = "" if end or line == "--" else f"{begun}{line}\n"


def possible_names(name: str) -> list[str]:
    """The possible names of a file. The lines before the last one can be part of the name, or messages of the
    program: ripgrep prints a message for a binary file."""
    lines = name.split("\n")
    return ["\n".join(lines[start:]) for start in range(len(lines))]


def readable(records: Iterable[tuple[str, str]], may_read: Callable[[str], bool]) -> tuple[list[str], int]:
    """The lines from files that may be read, and the number of files that are left out."""
    allowed: dict[str, bool] = {}
    shown: list[str] = []
    for name, found in records:
        if name not in allowed:
            allowed[name] = may_read(name)
        if allowed[name]:
            shown.append(f"{name}{_separator(found)}{found}")
    return shown, list(allowed.values()).count(False)


def _separator(found: str) -> str:
    """The separator after the name of a file: `:`, or `-` for a line of context."""
    return "-" if _CONTEXT_LINE.match(found) else ":" if found else ""


def grep_command(arguments: Mapping[str, Any], *, has_ripgrep: bool) -> list[str]:
    """The search program and its options, without the folder."""
    output, context = arguments.get("output", "lines"), int(arguments.get("context", 0))
    pattern, glob = str(arguments["pattern"]), arguments.get("glob")
    options = ["-i"] if arguments.get("ignore_case") else []
    if output == "lines" and context:
        options.append(f"-C{context}")
    options += {"lines": ["-n"], "files": ["-l"], "count": ["-c"]}[output]
    if has_ripgrep:
        names = [] if glob is None else ["-g", str(glob)]
        return [
            "rg",
            "--no-config",
            "--null",
            "--color=never",
            "--max-columns=500",
            "-H",
            *options,
            *names,
            "-e",
            pattern,
            "--",
        ]
    names = [] if glob is None else [f"--include={glob}"]
    skipped = [f"--exclude-dir={name}" for name in sorted(SKIPPED)]
    return ["grep", "-rEIHZ", "--color=never", *options, *names, *skipped, "-e", pattern, "--"]


def _cut(lines: Sequence[str], *, is_cut: bool) -> str:
    shown = [line[:1000].removeprefix("./") for line in lines[:MATCH_LIMIT]]
    if len(lines) > MATCH_LIMIT or is_cut:
        shown.append(
            f"(Only {MATCH_LIMIT} lines are shown. Search a smaller folder, or use a longer pattern.)"
        )
    return "\n".join(shown)
