"""T618: a secret that a server repeats is redacted as template languages of error pages escape it, in a URL
inside another URL, and, if hexadecimal, in upper and lower case; an error of an authorization server shows
no token beside it."""

from pathlib import Path
from urllib.parse import quote

import pytest

from dragoman.auth.tokens import rejected
from dragoman.content.redact import HIDDEN, Redactor
from tests.e2e.forked import run
from tests.torture.projects import servers, write

pytestmark = pytest.mark.requirement("AUT-11")
SECRET = "a1/b2+c3=`d4'e5\"f6"
PAGES = {
    "Go": "a1/b2&#43;c3=`d4&#39;e5&#34;f6",
    "Jinja": "a1/b2+c3=`d4&#39;e5&#34;f6",
    "PHP": "a1/b2+c3=`d4&#39;e5&quot;f6",
    "Python": "a1/b2+c3=`d4&#x27;e5&quot;f6",
    "Handlebars": "a1/b2+c3&#x3D;&#x60;d4&#x27;e5&quot;f6",
    "Mustache": "a1&#x2F;b2+c3&#x3D;&#x60;d4&#39;e5&quot;f6",
    "OWASP": "a1&#x2F;b2+c3=`d4&#x27;e5&quot;f6",
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_t618_a_secret_escaped_in_a_page_is_redacted(page: str):
    redactor = Redactor([SECRET])
    assert redactor.text(f"<p>bad key {page}</p>") == f"<p>bad key {HIDDEN}</p>"
    assert redactor.value({"a": [page]}) == {"a": [HIDDEN]}
    assert b"".join(redactor.pieces([page[:5].encode(), page[5:].encode()])) == HIDDEN.encode()


def test_t618_a_secret_in_a_nested_url_is_redacted():
    inner = f"https://a.example/?key={quote(SECRET, safe='')}"
    for twice in (quote(inner, safe=""), quote(inner, safe="").replace("%2F", "%2f").replace("%3D", "%3d")):
        told = Redactor([SECRET]).text(f"https://login.example/?next={twice}")
        assert told.rpartition("%3Fkey%3")[2] in (f"D{HIDDEN}", f"d{HIDDEN}")


@pytest.mark.parametrize(
    "secret", ["0F8FAD5B-D9CB-469F-A165-70867728950E", "9b2d7c0a4e1f8d6b", "9B2D7C0A4E1F8D6B"]
)
def test_t618_letter_case_is_ignored_in_hexadecimal_secrets(secret: str):
    redactor = Redactor([secret])
    assert [redactor.text(each) for each in (secret.lower(), secret.upper())] == [HIDDEN, HIDDEN]


def test_t618_letter_case_matters_in_other_secrets():
    assert Redactor(["Long-Password-1"]).text("long-password-1") == "long-password-1"


def test_t618_an_error_of_an_authorization_server_contains_no_token_beside_it():
    tokens = {"access_token": "token-of-access", "refresh_token": "token-of-refresh", "id_token": 5}
    error = rejected({**tokens, "error": "x", "error_description": "token-of-access, token-of-refresh"})
    assert str(error) == "x: •••, •••"


@pytest.mark.requirement("CFG-12")
def test_t618_an_import_writes_no_client_secret_of_a_stdio_server_into_a_project(home: Path):
    entry = {"command": "server", "oauth": {"clientId": "me", "clientSecret": "canary-secret-1234567"}}
    file = write(home / "theirs.json", servers(box=entry))
    done = run("mcp", "import", "claude-code", str(file), "-s", "project")
    assert "oauth.clientSecret would be written in plain text into the project's folder" in " ".join(
        (done.stdout + done.stderr).split()
    )
    assert not (home / "work" / ".mcp.json").exists()
