"""What a server inherits of our environment."""

import pytest

from dragoman.transports.process import INHERITED, minimal_environment
from dragoman.transports.reaper import SIGNAL_STEPS

OURS = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LANG": "C.UTF-8",
    "AWS_SECRET_ACCESS_KEY": "s3cret",
    "ANTHROPIC_API_KEY": "s3cret",
    "PYTHONPATH": "/evil",
    "LD_PRELOAD": "/evil.so",
    "SSH_AUTH_SOCK": "/tmp/agent",
}


@pytest.mark.requirement("TRN-1")
def test_only_the_necessary_variables_are_inherited():
    assert minimal_environment(OURS, {}) == {"PATH": "/bin", "HOME": "/home/me", "LANG": "C.UTF-8"}


@pytest.mark.requirement("TRN-1")
def test_the_entrys_variables_are_added_and_take_precedence():
    env = minimal_environment(OURS, {"PATH": "/opt/bin", "TOKEN": "t"})

    assert env == {"PATH": "/opt/bin", "HOME": "/home/me", "LANG": "C.UTF-8", "TOKEN": "t"}


def test_an_exported_shell_function_is_not_inherited():
    assert minimal_environment({"PATH": "/bin", "TERM": "() { :; }; evil"}, {}) == {"PATH": "/bin"}


@pytest.mark.parametrize("name", INHERITED)
def test_no_inherited_variable_can_contain_secrets_or_code(name: str):
    assert not any(word in name for word in ("KEY", "TOKEN", "SECRET", "PASS", "PRELOAD", "PYTHON", "NODE"))


@pytest.mark.requirement("TRN-1")
def test_the_sequence_of_stop_signals_ends_within_600_ms():
    assert sum(seconds for seconds, _ in SIGNAL_STEPS) <= 0.6
    assert [number.name for _, number in SIGNAL_STEPS] == ["SIGINT", "SIGTERM", "SIGKILL"]
