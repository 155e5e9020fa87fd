"""Where the other hosts keep their files."""

from pathlib import Path

import pytest

from dragoman.config.interchange.formats import FORMATS, Place

HOME, PROJECT = Path("/home/ada"), Path("/src/engine")


def test_the_keys_of_the_formats():
    assert list(FORMATS) == [
        "claude-code",
        "claude-desktop",
        "cursor",
        "vscode",
        "codex",
        "gemini",
        "windsurf",
    ]
    assert all(key == row.key and row.title for key, row in FORMATS.items())


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize(
    ("key", "platform", "environ", "expected"),
    [
        ("claude-code", "linux", {}, ["user ~/.claude.json", "project .mcp.json"]),
        ("claude-code", "linux", {"CLAUDE_CONFIG_DIR": "/c"}, ["user /c/.claude.json", "project .mcp.json"]),
        ("claude-desktop", "linux", {}, ["user ~/.config/Claude/claude_desktop_config.json"]),
        ("claude-desktop", "linux", {"XDG_CONFIG_HOME": "/x"}, ["user /x/Claude/claude_desktop_config.json"]),
        (
            "claude-desktop",
            "darwin",
            {},
            ["user ~/Library/Application Support/Claude/claude_desktop_config.json"],
        ),
        ("claude-desktop", "win32", {}, ["user ~/AppData/Roaming/Claude/claude_desktop_config.json"]),
        ("claude-desktop", "win32", {"APPDATA": "/roam"}, ["user /roam/Claude/claude_desktop_config.json"]),
        ("cursor", "darwin", {}, ["user ~/.cursor/mcp.json", "project .cursor/mcp.json"]),
        (
            "vscode",
            "linux",
            {},
            [
                "project .vscode/mcp.json",
                "user ~/.config/Code/User/mcp.json",
                "user ~/.config/Code - Insiders/User/mcp.json",
            ],
        ),
        (
            "vscode",
            "darwin",
            {},
            [
                "project .vscode/mcp.json",
                "user ~/Library/Application Support/Code/User/mcp.json",
                "user ~/Library/Application Support/Code - Insiders/User/mcp.json",
            ],
        ),
        ("codex", "linux", {}, ["user ~/.codex/config.toml", "project .codex/config.toml"]),
        ("codex", "linux", {"CODEX_HOME": "/k"}, ["user /k/config.toml", "project .codex/config.toml"]),
        ("gemini", "linux", {}, ["user ~/.gemini/settings.json", "project .gemini/settings.json"]),
        (
            "windsurf",
            "linux",
            {},
            ["user ~/.codeium/windsurf/mcp_config.json", "user ~/.codeium/mcp_config.json"],
        ),
    ],
)
def test_the_paths_most_common_first(key: str, platform: str, environ: dict[str, str], expected: list[str]):
    places = FORMATS[key].places(HOME, PROJECT, platform, environ)
    assert [told(place) for place in places] == expected


def told(place: Place) -> str:
    if place.level == "project":
        return f"project {place.path.relative_to(PROJECT).as_posix()}"
    path = place.path.as_posix()
    return f"user {path.replace(HOME.as_posix(), '~')}"


def test_without_a_project_there_are_only_paths_of_the_user():
    for row in FORMATS.values():
        assert {place.level for place in row.places(HOME, None, "linux", {})} == {"user"}
