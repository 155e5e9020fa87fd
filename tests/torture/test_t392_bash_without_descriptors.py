"""T392: a Bash command of the agent cannot be started because no file descriptors are left."""

import errno
import os
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.agent.builtin.shell import RunningCommand
from dragoman.transports.orphans import ProcessWatchdog


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.usefixtures("few_descriptors")
@pytest.mark.requirement("AGT-3")
@pytest.mark.parametrize("left", range(5))
async def test_t392_no_temporary_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    opened, before = list[int](), len(os.listdir("/proc/self/fd"))
    with pytest.raises(OSError) as failed:
        try:
            while True:
                opened.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            for descriptor in opened[:left]:
                os.close(descriptor)
            del opened[:left]
            await RunningCommand.start("true", tmp_path, "marker", ProcessWatchdog())
        finally:
            for descriptor in opened:
                os.close(descriptor)
    assert failed.value.errno == errno.EMFILE
    assert list(tmp_path.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == before
