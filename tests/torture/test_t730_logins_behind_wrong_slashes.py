"""T730: the slashes of a URL with a login are miscounted, or its `@` is missing or encoded: no command
prints the password, and it is redacted in text that a server repeats."""

from pathlib import Path

import pytest

from dragoman.config.masking import masked_entry, masked_url, secrets_of
from dragoman.config.model import ServerConfig
from tests.e2e import forked
from tests.torture.projects import servers, user

pytestmark = pytest.mark.requirement("CFG-4")
SECRET = "hunter22"
URLS = {
    "no scheme": f"//u:{SECRET}@h/x",
    "no scheme, one slash": f"/u:{SECRET}@h/x",
    "no name of the scheme": f"://u:{SECRET}@h/x",
    "one slash": f"https:/u:{SECRET}@h/x",
    "three slashes": f"https:///u:{SECRET}@h/x",
    "four slashes": f"https:////u:{SECRET}@h/x",
    "no colon": f"https//u:{SECRET}@h/x",
    "the colon behind": f"https//:u:{SECRET}@h/x",
    "backslashes": f"https:\\\\u:{SECRET}@h/x",
    "a blank": f"https ://u:{SECRET}@h/x",
    "in a path": f"https://h//u:{SECRET}@i/x",
    "@ encoded": f"https://u:{SECRET}%40h/x",
    "@ forgotten": f"https://u:{SECRET}/x",
    "another @": f"https://u:{SECRET}＠h/x",
}
LONGER = (
    f"a=b,https:/u:{SECRET}@h",
    f"<//u:{SECRET}@h>",
    f"a\n//u:{SECRET}@h",
    f"https://a/ https:/u:{SECRET}@h",
)
COMMANDS = [("mcp", "list"), ("mcp", "list", "--json"), ("mcp", "get", "box"), ("config", "explain")]


@pytest.mark.parametrize("url", URLS.values(), ids=URLS.keys())
def test_t730_no_command_prints_the_password(home: Path, url: str):
    entries = {
        "box": {"url": url},
        "by-argument": {"command": "x", "args": [url, "--base", url, f"--api={url}"], "disabled": True},
        "by-helper": {"url": "http://127.0.0.1:9/", "headersHelper": f"curl '{url}'", "disabled": True},
    }
    user(home, servers(**entries))
    for command in COMMANDS:
        ended = forked.run(*command)
        assert "box" in ended.stdout
        assert SECRET not in ended.stdout + ended.stderr


@pytest.mark.parametrize("url", URLS.values(), ids=URLS.keys())
def test_t730_the_password_is_redacted_in_text_of_its_server(url: str):
    assert any(SECRET in secret for secret in secrets_of(ServerConfig(command="x", args=(url,))))


def test_t730_text_that_is_not_a_login_is_unchanged():
    urls = (
        "https://h:8080/@scope/x",
        "https://[::1]:80/a",
        "https://h:${PORT}/",
        "https://h:/",
        "file:///C:/x/pkg@1.0",
    )
    assert [masked_url(each) for each in urls] == list(urls)
    assert masked_url("https:///u:p@h/x") == "https:///•••@h/x"


@pytest.mark.parametrize("text", LONGER)
def test_t730_the_password_is_redacted_inside_a_longer_text(text: str):
    entry = {"command": "x", "args": [text]}
    assert SECRET not in str(masked_entry(entry))
    assert any(SECRET in secret for secret in secrets_of(ServerConfig(command="x", args=(text,))))


def test_t730_an_image_with_a_tag_and_a_digest_is_unchanged():
    image = "registry.example/team/image:tag@sha256:0a1b"
    assert masked_entry({"command": "docker", "args": ["run", image]})["args"] == ["run", image]
