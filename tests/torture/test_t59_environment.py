"""T59: A server gets a short list of the host's environment variables; variables that its entry adds are
checked."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.direct import open_session
from dragoman import Host
from dragoman.config.policy import loader_variables
from dragoman.config.scopes import SCOPES, Sources
from dragoman.transports.process import INHERITED
from tests.e2e.command import DRAGOMAN
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import Canary, eligibilities, servers, write

SAFE = {
    "HOME": "/home/somebody",
    "LANG": "en_GB.UTF-8",
    "LC_ALL": "C.UTF-8",
    "LC_CTYPE": "C.UTF-8",
    "LOGNAME": "somebody",
    "SHELL": "/bin/sh",
    "TERM": "xterm",
    "TMPDIR": "/tmp",
    "TZ": "UTC",
    "USER": "somebody",
}
"""Values of the variables that may be passed on; `PATH` is the one of the test."""

SECRETS = {
    "ANTHROPIC_API_KEY": "s3cret",
    "OPENAI_API_KEY": "s3cret",
    "AWS_SECRET_ACCESS_KEY": "s3cret",
    "GITHUB_TOKEN": "s3cret",
    "MY_OWN_TOKEN": "s3cret",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "LD_PRELOAD": "",
    "LD_LIBRARY_PATH": "/tmp/lib",
    "PYTHONPATH": "/tmp/python",
    "PYTHONSTARTUP": "/tmp/start.py",
    "NODE_OPTIONS": "--require /tmp/x.js",
    "BASH_ENV": "/tmp/env.sh",
    "GIT_SSH_COMMAND": "/tmp/ssh",
    "HTTPS_PROXY": "http://proxy.example.com",
    "https_proxy": "http://proxy.example.com",
    "SSL_CERT_FILE": "/tmp/ca.pem",
    "OTEL_EXPORTER_OTLP_HEADERS": "s3cret",
    "MCP_TIMEOUT": "30000",
    "DRAGOMAN_MESSAGE_LIMIT_BYTES": "100000",
    "VIRTUAL_ENV": "/tmp/venv",
    "PWD": "/tmp",
    "OLDPWD": "/tmp",
    "_": "/tmp/x",
    "home": "lower case",
    "XHOME": "alike",
    "HOMEX": "alike",
    "BASH_FUNC_ls%%": "() { echo s3cret; }",
}


SERVERS = Path(__file__).parents[1] / "servers"
FOR_PYTHON = {"PYTHONSAFEPATH": "1", "PYTHONPATH": str(SERVERS)}
"""What a server gets that is a script for a Python interpreter."""


@pytest.fixture
def host_environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with many private variables; returns those that a server should get."""
    safe = {**SAFE, "HOME": str(home)}  # the leak check finds our processes by it
    for name, value in {**safe, **SECRETS}.items():
        monkeypatch.setenv(name, value)
    return {**safe, "PATH": os.environ["PATH"]}


def environment_of(pid: int | None) -> dict[str, str]:
    """The environment as it was at the start of the process, before its own program could change anything."""
    return without_marker(Path(f"/proc/{pid}/environ").read_text())


def without_marker(text: str) -> dict[str, str]:
    """The variables, without the one by which Dragoman finds the server's processes."""
    found = dict(pair.split("=", 1) for pair in text.split("\0") if pair)
    assert re.fullmatch(r"[0-9a-f]{16}\.[0-9]+", found.pop("DRAGOMAN_SERVER_PROCESS"))
    return found


async def seen_by_child(given: Mapping[str, Any]) -> dict[str, str]:
    async with Host({"box": given}) as host:
        view = (await host.ready(timeout=30))["box"]
        assert view.status == "connected", view.reason
        return environment_of(view.pid)


async def test_t59_a_server_gets_exactly_the_listed_variables(host_environment: dict[str, str]):
    assert await seen_by_child(stdio_server("well_behaved.py")) == {**host_environment, **FOR_PYTHON}
    assert set(host_environment) == set(INHERITED)


async def test_t59_a_server_gets_the_variables_of_its_entry(host_environment: dict[str, str]):
    own = {"TOKEN": "${GITHUB_TOKEN}", "EMPTY": "", "LANG": "de_DE.UTF-8", "lower": "x", "MANY": "a=b=c\nd"}
    expected = {**host_environment, **own, "TOKEN": "s3cret", **FOR_PYTHON}
    assert await seen_by_child(stdio_server("well_behaved.py", env=own)) == expected


@pytest.mark.parametrize("scope", ["user", "project", "local", "plugin", "managed"])
async def test_t59_the_environment_is_the_same_from_every_scope(
    home: Path, scope: str, host_environment: dict[str, str]
):
    entry = stdio_server("well_behaved.py", env={"OWN": "x"})
    file = {
        "user": home / ".dragoman" / "settings.json",
        "project": home / "work" / ".mcp.json",
        "local": home / "work" / ".dragoman" / "settings.local.json",
        "plugin": home / ".dragoman" / "plugins" / "p" / ".mcp.json",
        "managed": home / "managed" / "managed-mcp.json",
    }[scope]
    write(file, servers(box=entry))
    projects.approve(file, "box")
    async with Host.configured() as host:
        view = (await host.ready(timeout=30))["box"]
        assert environment_of(view.pid) == {**host_environment, "OWN": "x", **FOR_PYTHON}


async def test_t59_the_environment_is_the_same_for_agents_and_direct_sessions(
    host_environment: dict[str, str],
):
    async with Host({}) as host, host.for_agent([{"box": stdio_server("well_behaved.py")}]) as agent:
        view = (await agent.ready(timeout=30))["box"]
        assert environment_of(view.pid) == {**host_environment, **FOR_PYTHON}
    session = await open_session(stdio_server("well_behaved.py"))
    try:
        pid = session._connection.details.pid  # type: ignore[reportPrivateUsage]
        assert environment_of(pid) == host_environment
    finally:
        await session.close()


async def test_t59_a_missing_variable_is_not_invented(home: Path, monkeypatch: pytest.MonkeyPatch):
    for name in INHERITED:
        if name not in ("HOME", "PATH"):
            monkeypatch.delenv(name, raising=False)
    expected = {"HOME": str(home), "PATH": os.environ["PATH"], **FOR_PYTHON}
    assert await seen_by_child(stdio_server("well_behaved.py")) == expected


@pytest.mark.parametrize("name", ["SHELL", "TERM", "USER", "TZ"])
async def test_t59_an_exported_shell_function_is_not_inherited(
    name: str, host_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(name, "() { :; }; echo s3cret")
    expected = {key: value for key, value in host_environment.items() if key != name} | FOR_PYTHON
    assert await seen_by_child(stdio_server("well_behaved.py")) == expected


def test_t59_the_command_passes_no_more_than_the_library(home: Path, host_environment: dict[str, str]):
    """The watchdog processes it starts have no secret in their environment either."""
    dump = home / "environment"
    script = f"cat /proc/self/environ > {dump}.new; mv {dump}.new {dump}; exit 3"
    projects.user(home, servers(box={"command": "/bin/sh", "args": ["-c", script], "env": {"OWN": "x"}}))
    subprocess.run([str(DRAGOMAN), "tools"], capture_output=True, timeout=40, stdin=subprocess.DEVNULL)
    found = without_marker(dump.read_text())
    added = {"PWD", "SHLVL", "_", "OLDPWD"}  # set by some shells themselves
    assert {key: value for key, value in found.items() if key not in added} == {
        **host_environment,
        "OWN": "x",
    }


async def test_t59_variables_of_files_are_used_for_entries_and_not_inherited_by_children(home: Path):
    projects.user(
        home, {**servers(box=stdio_server("well_behaved.py", "${FROM_FILE}")), "env": {"FROM_FILE": "s3cret"}}
    )
    async with Host.configured() as host:
        view = (await host.ready(timeout=30))["box"]
        assert view.status == "connected"
        assert "FROM_FILE" not in environment_of(view.pid)


@pytest.mark.parametrize("place", ["project", "local", "plugin"])
def test_t59_variables_of_a_project_are_not_used_for_entries(home: Path, place: str):
    file = {
        "project": home / "work" / ".mcp.json",
        "local": home / "work" / ".dragoman" / "settings.local.json",
        "plugin": home / ".dragoman" / "plugins" / "p" / ".mcp.json",
    }[place]
    write(file, {**servers(), "env": {"FROM_FILE": "x", "PATH": "/tmp/evil"}})
    projects.user(home, servers(box={"command": "x", "args": ["${FROM_FILE}"]}))
    assert eligibilities()["box"] == "broken"
    assert any("env" in problem and str(file) in problem for problem in projects.seen().problems)


# --- variables that make a program run something else ---

LOADERS = [
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "BASH_ENV",
    "ENV",
    "BASH_FUNC_ls%%",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_GLOBAL",
    "PERL5OPT",
    "RUBYOPT",
    "JAVA_TOOL_OPTIONS",
    "NPM_CONFIG_REGISTRY",
    "npm_config_registry",
]

INTERCEPTORS = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
]
"""These variables let another program read or answer the network traffic of a server."""

INSTALLERS = [
    "Npm_Config_Registry",  # npm compares without regard to case
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "HOME",  # .npmrc, .gitconfig, pip.conf, user site-packages
    "XDG_CONFIG_HOME",
    "DOTNET_STARTUP_HOOKS",
    "PYTHONWARNINGS",  # imports the module that it names
]
"""These variables make `npx` and `uvx` fetch from another registry, or make a program load other code."""

UNPROBLEMATIC = [
    "TOKEN",
    "API_KEY",
    "MODE",
    "LANG",
    "MY_PATH",
    "XLD_PRELOAD",
    "PATHS",
    "DEBUG",
    "GITHUB_TOKEN",
]


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("name", [*LOADERS, *INTERCEPTORS, *INSTALLERS])
def test_t59_the_approval_question_warns_of_variables_that_change_how_programs_run(home: Path, name: str):
    write(home / "work" / ".mcp.json", servers(box={"command": "x", "env": {"A": "1", name: "value"}}))
    told = run("mcp", "approve").stderr
    warning = [line for line in told.splitlines() if line.lstrip().startswith("!")]
    assert any(name in line for line in warning)


def test_t59_the_approval_question_does_not_warn_of_other_variables(home: Path):
    assert loader_variables(UNPROBLEMATIC) == ()
    write(
        home / "work" / ".mcp.json", servers(box={"command": "x", "env": dict.fromkeys(UNPROBLEMATIC, "1")})
    )
    assert "!" not in run("mcp", "approve").stderr


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("name", [*LOADERS, *INSTALLERS])
def test_t59_under_an_allow_list_of_commands_an_entry_with_such_variables_is_refused(home: Path, name: str):
    projects.managed(home, {"allowedMcpServers": [{"serverCommand": [sys.executable, "server.py"]}]})
    configuration = projects.seen()

    def admitted(env: dict[str, str]) -> set[str]:
        entry = {"command": sys.executable, "args": ["server.py"], "env": env}
        return {configuration.admit("box", entry, scope=scope).eligibility for scope in SCOPES[:-1]}

    assert admitted({"TOKEN": "x"}) == {"ready"}
    assert admitted({"TOKEN": "x", name: os.environ["PATH"] if name == "PATH" else "x"}) == {"refused"}
    assert admitted({name: ""}) == {"refused"}


@pytest.mark.requirement("CFG-7")
async def test_t59_a_refused_entry_with_loader_variables_does_not_start(home: Path):
    canary = Canary(home / "canary")
    entry = canary.entry("box")
    command = [entry["command"], *entry["args"]]
    projects.managed(home, {"allowedMcpServers": [{"serverCommand": command}]})
    async with Host({"box": {**entry, "env": {"LD_PRELOAD": ""}}, "other": entry}) as host:
        views = await host.ready(timeout=30)
        assert views["box"].status == "disabled"
        assert "LD_PRELOAD" in str(views["box"].reason)
        assert views["other"].status == "connected"


async def test_t59_the_administrators_own_entry_may_set_such_variables(home: Path):
    entry = stdio_server("well_behaved.py", env={"LD_LIBRARY_PATH": "/tmp"})
    allowed = [{"serverCommand": [entry["command"], *entry["args"]]}]
    projects.managed(home, {**servers(box=entry), "allowedMcpServers": allowed})
    async with Host.configured() as host:
        view = (await host.ready(timeout=30))["box"]
        assert view.status == "connected"
        assert environment_of(view.pid)["LD_LIBRARY_PATH"] == "/tmp"


def test_t59_the_path_of_an_entry_determines_where_its_program_is_found_and_checked(home: Path):
    """The lookup of the program and its check use the PATH that the child will have."""
    tool = home / "bin" / "tool"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    projects.managed(home, {"deniedMcpServers": [{"serverCommand": [str(tool)]}]})
    entry = {"command": "tool", "env": {"PATH": str(tool.parent)}}
    assert projects.seen(given={"box": entry}).servers["box"].eligibility == "refused"


def test_t59_the_administrators_variables_need_a_confirmation(home: Path, monkeypatch: pytest.MonkeyPatch):
    projects.managed(home, {"env": {"TEAM": "red", "PATH": "/tmp/evil"}})
    projects.user(home, servers(box={"command": "true", "args": ["${TEAM}"]}))
    assert eligibilities()["box"] == "broken"
    assert set(projects.seen().unconfirmed_variables) == {"TEAM", "PATH"}
    assert Sources.here().approvals_file.exists() is False
