"""T753: a log file that is not Dragoman's, with gigabytes and no newline, is not read in full by `dragoman
logs`; its end is shown. (3 GB: 20 s, or a traceback where memory is limited.)."""

import resource
import sys
from pathlib import Path
from subprocess import run

import pytest

from dragoman import log_files

pytestmark = pytest.mark.requirement("ASK-6")
SIZE = 3 * 1024**3
MEMORY_BYTES = 1024**3
LINE = b'{"time": "now", "text": "the last line"}\n'
READ = (
    "import sys, pathlib; from dragoman import log_files; "
    "print([each['text'] for each in log_files.read(pathlib.Path(sys.argv[1]), 3)])"
)


def test_t753_only_the_end_of_the_file_is_read(tmp_path: Path):
    path = tmp_path / "server.jsonl"
    with path.open("wb") as file:
        file.truncate(SIZE)
        file.seek(SIZE)
        file.write(b"\n" + LINE)
    done = run(
        [sys.executable, "-c", READ, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES)),
    )
    assert (done.stdout, done.stderr) == ("['the last line']\n", "")


def test_t753_a_log_of_usual_size_is_read_in_full(tmp_path: Path):
    path = tmp_path / "server.jsonl"
    path.write_bytes(LINE * 1000)
    assert len(list(log_files.read(path, 3))) == 1000
