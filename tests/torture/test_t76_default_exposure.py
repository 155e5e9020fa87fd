"""T76: With default options the gateway is reachable from this machine only, and never without a token."""

from pathlib import Path

import pytest

from dragoman.gateway.access import Addresses, RequestRefused
from tests.e2e.forked import run

pytestmark = pytest.mark.requirement("GWY-3")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:0"])
def test_t76_no_other_machine_is_served_before_callers_are_configured(address: str):
    ended = run("serve", "--mcp-config", "demo", "--http", address)
    assert ended.returncode == 3
    host = address.rpartition(":")[0].strip("[]")
    assert ended.stderr == (
        f"error: {host} can be reached from other machines, and no callers are named\n"
        "  hint: Give --config with the callers, or listen on 127.0.0.1.\n"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "it names neither callers nor oauth"),
        ('{"callers": {"ada": {}}}', "the token of caller 'ada' has fewer than 16 characters"),
        (
            '{"callers": {"a": {"token": "0123456789abcdef"}, "b": {"token": "0123456789abcdef"}}}',
            "the callers 'a' and 'b' have the same token",
        ),
    ],
)
def test_t76_a_file_that_allows_callers_without_a_token_is_refused(home: Path, text: str, problem: str):
    file = home / "gateway.json"
    file.write_text(text)
    file.chmod(0o600)
    ended = run("serve", "--mcp-config", "demo", "--config", str(file))
    assert (ended.returncode, ended.stderr.splitlines()[0]) == (3, f"error: {file}: {problem}")


def test_t76_a_file_with_tokens_that_is_readable_by_others_is_refused(home: Path):
    file = home / "gateway.json"
    file.write_text('{"callers": {"ada": {"token": "0123456789abcdef"}}}')
    file.chmod(0o644)
    ended = run("serve", "--mcp-config", "demo", "--config", str(file))
    assert ended.returncode == 3
    assert (
        ended.stderr == f"error: {file} contains tokens, and others can read it\n  hint: chmod 600 {file}\n"
    )


def test_t76_the_allowed_host_names_of_a_loopback_gateway_are_those_of_this_machine():
    addresses = Addresses.of("127.0.0.1", 8931)
    assert addresses.hosts == {"localhost:8931", "127.0.0.1:8931", "[::1]:8931"}
    with pytest.raises(RequestRefused):
        addresses.check(["localhost"], [])
