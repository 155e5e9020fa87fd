"""Files as the hosts' documentation shows them, read as they are."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.config.expand import expand_entry
from dragoman.config.interchange.formats import Imported, read, write
from dragoman.config.model import parse_entry

SAMPLES = Path(__file__).parent / "samples"
PROJECT = Path("/home/ada/engine")

CLAUDE_CODE_PROJECT = {
    "shared-server": {"command": "/path/to/server", "args": [], "env": {}},
    "api-server": {
        "type": "http",
        "url": "${API_BASE_URL:-https://api.example.com}/mcp",
        "headers": {"Authorization": "Bearer ${API_KEY}"},
    },
    "asana": {"type": "sse", "url": "https://mcp.asana.com/sse"},
    "internal-api": {
        "type": "http",
        "url": "https://mcp.internal.example.com",
        "headersHelper": "/opt/bin/get-mcp-auth-headers.sh",
        "oauth": {
            "clientId": "my-client",
            "callbackPort": 8080,
            "authServerMetadataUrl": "https://auth.example.com/.well-known/openid-configuration",
            "scopes": "channels:read chat:write",
        },
        "timeout": 60000,
        "alwaysLoad": True,
    },
}
CLAUDE_CODE_USER = {
    "notion": {"type": "http", "url": "https://mcp.notion.com/engine"},
    "sentry": {"type": "http", "url": "https://mcp.sentry.dev/mcp"},
    "db": {"type": "stdio", "command": "uvx", "args": ["mcp-server-postgres", "${DATABASE_URL}"]},
}
CLAUDE_DESKTOP = {
    "filesystem": {
        "command": "npx",
        "args": [
            "-y",
            "@modelcontextprotocol/server-filesystem",
            "/Users/username/Desktop",
            "/Users/username/Downloads",
        ],
    },
    "brave-search": {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-brave-search"],
        "env": {"APPDATA": "C:\\Users\\user\\AppData\\Roaming\\", "BRAVE_API_KEY": "..."},
    },
}
CURSOR = {
    "local-server": {
        "type": "stdio",
        "command": "python",
        "args": ["${WORKSPACE_FOLDER:-.}/tools/mcp_server.py"],
        "env": {"API_KEY": "${API_KEY}"},
    },
    "web-api": {
        "type": "http",
        "url": "https://api.example.com/mcp",
        "headers": {"Authorization": "Bearer ${MY_SERVICE_TOKEN}"},
    },
    "events": {"type": "sse", "url": "http://localhost:3000/sse"},
    "oauth-server": {
        "type": "http",
        "url": "https://api.example.com/oauth/mcp",
        "oauth": {
            "clientId": "${MCP_CLIENT_ID}",
            "clientSecret": "${MCP_CLIENT_SECRET}",
            "scopes": ["read", "write"],
        },
    },
}
VSCODE = {
    "github": {"type": "http", "url": "https://api.githubcopilot.com/mcp"},
    "slack": {
        "type": "http",
        "url": "https://mcp.slack.com/mcp",
        "oauth": {"clientId": "example-client-id"},
    },
    "perplexity": {
        "type": "stdio",
        "command": "npx",
        "args": ["-y", "server-perplexity-ask"],
        "env": {"PERPLEXITY_API_KEY": "${INPUT_PERPLEXITY_KEY}"},
    },
    "memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]},
    "boxed": {"type": "stdio", "command": "npx", "args": ["-y", "@example/mcp-server"]},
}
CODEX = {
    "context7": {
        "command": "npx",
        "args": ["-y", "@upstash/context7-mcp"],
        "env": {"LOCAL_TOKEN": "${LOCAL_TOKEN:-}", "MY_ENV_VAR": "MY_ENV_VALUE"},
    },
    "figma": {
        "type": "http",
        "url": "https://mcp.figma.com/mcp",
        "headers": {
            "X-Figma-Region": "us-east-1",
            "X-Tenant": "${FIGMA_TENANT:-}",
            "Authorization": "Bearer ${FIGMA_OAUTH_TOKEN}",
        },
        "oauth": {"clientId": "my-client", "scopes": ["file:read"]},
    },
    "chrome_devtools": {
        "type": "http",
        "url": "http://localhost:3000/mcp",
        "timeout": 45500,
        "enabledTools": ["open", "screenshot"],
        "disabledTools": ["screenshot"],
    },
}
GEMINI = {
    "pythonTools": {
        "command": "python",
        "args": ["-m", "my_mcp_server", "--port", "8080"],
        "cwd": "./mcp-servers/python",
        "env": {"DATABASE_URL": "${DB_CONNECTION_STRING}", "API_KEY": "${EXTERNAL_API_KEY}"},
        "timeout": 15000,
    },
    "httpServer": {
        "type": "http",
        "url": "http://localhost:3000/mcp",
        "headers": {"Authorization": "Bearer ${GITHUB_TOKEN}"},
        "timeout": 5000,
    },
    "discovered": {"type": "sse", "url": "https://api.example.com/sse"},
    "newer": {"type": "http", "url": "https://api.example.com/mcp"},
    "googleCloudServer": {
        "type": "http",
        "url": "https://my-gcp-service.run.app/mcp",
        "oauth": {"scopes": ["https://www.googleapis.com/auth/userinfo.email"]},
    },
    "experimental": {
        "command": "python",
        "args": ["-m", "my_mcp_server"],
        "enabledTools": ["safe_tool", "file_reader"],
        "timeout": 30000,
    },
}
WINDSURF = {
    "github": {
        "command": "npx",
        "args": ["-y", "@modelcontextprotocol/server-github"],
        "env": {"GITHUB_PERSONAL_ACCESS_TOKEN": "${GITHUB_TOKEN}"},
        "disabledTools": ["delete_repository"],
    },
    "remote-http-mcp": {
        "type": "http",
        "url": "https://your-server/mcp",
        "headers": {"API_KEY": "Bearer ${AUTH_TOKEN}"},
    },
    "from-a-file": {
        "type": "sse",
        "url": "https://your-server/sse",
        "headers": {"API_KEY": "${file:/home/ada/key}"},
    },
}

# The file, what is read from it, what was switched off, and (server, field) of what is noted.
TABLE: list[tuple[str, dict[str, Any], tuple[str, ...], set[tuple[str, str | None]]]] = [
    (
        "claude-code.project.json",
        CLAUDE_CODE_PROJECT,
        (),
        {("internal-api", "headersHelper"), ("internal-api", "oauth.authServerMetadataUrl")},
    ),
    ("claude-code.user.json", CLAUDE_CODE_USER, ("sentry",), {("notion", None)}),
    ("claude-desktop.json", CLAUDE_DESKTOP, (), set()),
    ("cursor.json", CURSOR, (), {("local-server", "args[0]"), ("local-server", "envFile")}),
    (
        "vscode.json",
        VSCODE,
        (),
        {
            ("perplexity", "env.PERPLEXITY_API_KEY"),
            ("memory", "envFile"),
            ("boxed", "sandboxEnabled"),
            ("boxed", "sandbox"),
            ("boxed", "dev"),
            ("socket", "url"),
        },
    ),
    (
        "codex.toml",
        CODEX,
        ("chrome_devtools",),
        {
            ("context7", "env_vars"),
            ("chrome_devtools", "default_tools_approval_mode"),
            ("chrome_devtools", "startup_timeout_sec"),
            ("chrome_devtools", "required"),
            ("chrome_devtools", "tools"),
        },
    ),
    (
        "gemini.json",
        GEMINI,
        ("experimental",),
        {
            ("pythonTools", "trust"),
            ("discovered", "url"),
            ("googleCloudServer", "authProviderType"),
            ("googleCloudServer", "oauth.redirectUri"),
        },
    ),
    ("windsurf.json", WINDSURF, ("github",), {("from-a-file", "headers.API_KEY")}),
]
NAMES = [row[0] for row in TABLE]


def text_of(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def imported(name: str) -> Imported:
    return read(name.split(".")[0], text_of(name), source=name, project=PROJECT)


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize(("name", "servers", "disabled", "noted"), TABLE, ids=NAMES)
def test_a_file_as_documented_is_read_unchanged(
    name: str, servers: dict[str, Any], disabled: tuple[str, ...], noted: set[tuple[str, str | None]]
):
    result = imported(name)
    assert result.servers == servers
    assert result.disabled == disabled
    assert {(note.server, note.field) for note in result.notes} == noted


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize("name", NAMES)
def test_every_server_that_is_read_can_be_used_here(name: str):
    values = AnyVariable()
    for server, entry in imported(name).servers.items():
        parse_entry(server, expand_entry(server, entry, values))


class AnyVariable(dict[str, str]):
    """An environment in which every variable is set."""

    def get(self, key: str, default: Any = None) -> Any:
        return "https://value" if "URL" in key else "value"


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize("name", [name for name in NAMES if "user" not in name])
def test_what_was_read_from_a_file_is_already_there_when_it_is_written_back(name: str):
    servers = imported(name).servers
    result = write(name.split(".")[0], text_of(name), servers, source=name)
    assert result.text == text_of(name)
    assert result.unchanged == tuple(servers)
    assert (result.written, result.conflicts) == ((), ())


def test_the_order_of_the_file_is_kept():
    assert list(imported("codex.toml").servers) == ["context7", "figma", "chrome_devtools"]
    assert list(imported("claude-code.user.json").servers) == ["notion", "sentry", "db"]


def test_without_a_project_only_the_servers_of_all_projects_are_read():
    text = text_of("claude-code.user.json")
    result = read("claude-code", text, source="f")
    assert result.servers["notion"]["url"] == "https://mcp.notion.com/mcp"
    assert (list(result.servers), result.disabled) == (["notion", "sentry"], ())
    assert list(read("claude-code", text, source="f", project=Path("/else")).servers) == ["notion", "sentry"]
