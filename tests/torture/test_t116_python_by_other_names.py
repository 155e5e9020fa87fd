"""T116: interpreters of Python with a build's mark in their names take no module from the folder either."""

import pytest

from dragoman.config.model import ServerConfig
from dragoman.config.policy import Policy
from dragoman.config.policy_subjects import as_started


@pytest.mark.parametrize(
    "command",
    ["python3.13t", "python3.14td", "python3-dbg", "pythonw.exe", "graalpy", "/opt/x/bin/python3.13t"],
)
def test_t116_an_interpreter_of_any_build_is_one(command: str):
    config = ServerConfig(command=command, args=("-m", "server"), env={"PYTHONSAFEPATH": ""})

    assert as_started(config, Policy()).env == {"PYTHONSAFEPATH": "1"}


def test_t116_another_program_is_none():
    config = ServerConfig(command="pythonista", args=("x",))

    assert as_started(config, Policy()).env == {}
