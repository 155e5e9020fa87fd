"""T116: Python interpreters with a build suffix in their names do not import modules from the working
folder."""

import pytest

from dragoman.config.model import ServerConfig
from dragoman.config.policy import Policy
from dragoman.config.policy_subjects import as_started


@pytest.mark.parametrize(
    "command",
    ["python3.13t", "python3.14td", "python3-dbg", "pythonw.exe", "graalpy", "/opt/x/bin/python3.13t"],
)
def test_t116_an_interpreter_of_any_build_is_recognised_as_python(command: str):
    config = ServerConfig(command=command, args=("-m", "server"), env={"PYTHONSAFEPATH": ""})

    assert as_started(config, Policy()).env == {"PYTHONSAFEPATH": "1"}


def test_t116_another_program_is_not_recognised_as_python():
    config = ServerConfig(command="pythonista", args=("x",))

    assert as_started(config, Policy()).env == {}
