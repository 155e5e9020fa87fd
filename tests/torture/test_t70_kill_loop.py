"""T70: Writers killed at random points.

The file is always complete, and their temporary files are removed later. The kills happen in a
separate process (this file, run as a program), which forks one writer per kill. Half of the writers
exit between two steps of Python, half are killed from outside at a random time."""

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.jsonc import set_value
from dragoman.config.writer import edit, edit_state

LIFE_IN_WRITES = 4
"""How many writes a writer that is killed from outside can make, at most."""


def generation(number: int) -> dict[str, Any]:
    """Content that shows whether it is complete."""
    return {"number": number, "payload": payload(number)}


def payload(number: int) -> str:
    return f"{number:08}" * 8000


def number_in(path: Path) -> int:
    content = json.loads(path.read_text())
    if content != generation(content["number"]):
        raise ValueError("a mixture")
    return content["number"]


def write_settings(path: Path) -> None:
    def change(text: str) -> str:
        number = json.loads(text)["number"] + 1
        return set_value(set_value(text, ["payload"], payload(number)), ["number"], number)

    edit(path, change, private=False)


def write_state(path: Path) -> None:
    edit_state(path, lambda state: generation(state["number"] + 1))


def write_in_place(path: Path) -> None:
    content = json.loads(path.read_text())
    with open(path, "w") as file:
        file.write(json.dumps(generation(content["number"] + 1)))


WRITERS: dict[str, Callable[[Path], None]] = {
    "settings": write_settings,
    "state": write_state,
    "careless": write_in_place,
}


# --- the program ---


def steps_of(write: Callable[[Path], None], path: Path) -> tuple[range, range]:
    """The steps of one write: all, and those at which a temporary file exists next to the file."""
    steps, telling = 0, [0]

    def count(*_: Any) -> None:
        nonlocal steps
        steps += 1
        if leftovers(path):
            telling.append(steps)

    sys.setprofile(count)
    write(path)
    sys.setprofile(None)
    return range(1, steps + 1), range(telling[1], telling[-1] + 1) if telling[1:] else range(1, steps + 1)


def die_after(steps: int) -> None:
    def count(*_: Any) -> None:
        nonlocal steps
        steps -= 1
        if steps <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


def fork(work: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(1)
    return pid


def killed_between_steps(write: Callable[[Path], None], path: Path, steps: range) -> int:
    last = random.choice(steps)

    def work() -> None:
        die_after(last)
        write(path)

    return os.waitpid(fork(work), 0)[1]


def killed_from_outside(write: Callable[[Path], None], path: Path, life_seconds: float) -> int:
    alive, held_by_writer = os.pipe()

    def work() -> None:
        while True:
            write(path)

    pid = fork(work)
    os.close(held_by_writer)
    select.select([alive], [], [], random.uniform(0, life_seconds))
    os.kill(pid, signal.SIGKILL)
    os.close(alive)
    return os.waitpid(pid, 0)[1]


def leftovers(path: Path) -> list[str]:
    return [name for name in os.listdir(path.parent) if name != path.name]


def main(writer: str, path: Path, kills: int) -> dict[str, Any]:
    write = WRITERS[writer]
    path.write_text(json.dumps(generation(0)))
    write(path)  # modules that are imported late are loaded from now on
    started = time.perf_counter()
    write(path)
    life_seconds = LIFE_IN_WRITES * (time.perf_counter() - started)
    steps = steps_of(write, path)
    last = number_in(path)
    report: dict[str, Any] = {"broken": 0, "lost": 0, "unkilled": 0, "left_behind": 0, "unswept": 0}
    for kill in range(kills):
        if kill % 2:
            ended = killed_between_steps(write, path, random.choice(steps))
        else:
            ended = killed_from_outside(write, path, life_seconds)
        report["unkilled"] += ended != signal.SIGKILL
        try:
            report["lost"] += number_in(path) < last
            last = number_in(path)
        except ValueError:
            report["broken"] += 1
            path.write_text(json.dumps(generation(last)))
        report["left_behind"] += bool(leftovers(path))
        if kill % 10 == 9:
            write(path)
            report["unswept"] += len(leftovers(path))
    report["generations"] = last
    return report


if __name__ == "__main__":
    random.seed(sys.argv[4])
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))


# --- the tests ---


def killing(writer: str, folder: Path, kills: int) -> dict[str, Any]:
    folder.mkdir()
    command = [sys.executable, __file__, writer, str(folder / "file.json"), str(kills), f"{writer} T70"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("writer", ["settings", "state"])
def test_t70_a_killed_writer_leaves_the_old_or_the_new_content(home: Path, writer: str):
    report = killing(writer, home / "killing", kills=500)

    assert (report["broken"], report["lost"], report["unkilled"]) == (0, 0, 0)
    assert report["unswept"] == 0
    # The kills happened at relevant moments: some writes were finished, and temporary files were left behind.
    assert report["generations"] > 80
    assert report["left_behind"] > 50


@pytest.mark.slow
def test_t70_a_writer_that_writes_in_place_is_detected(home: Path):
    assert killing("careless", home / "killing", kills=100)["broken"] > 0
