"""T723: a file of the pid registry is damaged, and very large. The next host starts without delay, ends the
processes listed at its beginning, and removes it."""

import os
import signal
import subprocess
import tracemalloc
from pathlib import Path

import pytest

from dragoman.processes import start_of
from dragoman.transports.orphans import _place, pid_file_dir, sweep  # pyright: ignore[reportPrivateUsage]
from tests.torture.bystander_host import MEGABYTE

HOLE_BYTES = 512 * MEGABYTE


@pytest.mark.requirement("LIF-10")
def test_t723_the_beginning_of_the_file_is_read(home: Path):
    pid_file_dir().mkdir(parents=True)
    damaged = pid_file_dir() / "999999999-1"
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as left:
        damaged.write_text(f"boot {_place()}\n+ {left.pid} {start_of(left.pid)}\n")
        os.truncate(damaged, HOLE_BYTES)
        tracemalloc.start()
        try:
            assert sweep() == [left.pid]
            most_bytes = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert left.wait(10) == -signal.SIGKILL
    assert not damaged.exists()
    assert most_bytes < 20 * MEGABYTE
