"""`dragoman mcp login`, `logout`, `whoami`, `reconnect`, and `dragoman auth status`, `logout`."""

from __future__ import annotations

import json
import re
import socket
import stat
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.auth.http import NetworkAccess
from dragoman.auth.metadata import AuthServer
from dragoman.auth.stores.base import Vault
from dragoman.auth.tokens import Account, OAuthClient, Tokens, encode_account
from dragoman.auth.xaa import IdentityProvider
from tests.e2e.command import plain
from tests.e2e.forked import run
from tests.e2e.person import Person
from tests.e2e.sign_in_site import SECRET, SignInSite

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CLI-1")]


@pytest.fixture
def site(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignInSite]:
    """With an entry `s` for it in the person's settings."""
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "MCP_CLIENT_SECRET"):
        monkeypatch.delenv(name, raising=False)
    with SignInSite() as here:
        write_servers(home, s=here.entry)
        yield here


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that follows the page it is given."""
    program = tmp_path / "browser"
    script = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=30).read()"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(program))


def write_servers(home: Path, **servers: dict[str, Any]) -> None:
    folder = home / ".dragoman"
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"mcpServers": servers}))


def secret_files(home: Path) -> list[Path]:
    folder = home / ".dragoman" / "auth"
    return sorted(each for each in folder.glob("*") if each.suffix in (".json", ".secret"))


def store(home: Path) -> str:
    return f"in files that only you can read below {home}/.dragoman/auth"


def words_of(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


@pytest.mark.requirement("AUT-1", "AUT-2", "AUT-11")
def test_login_in_the_browser(site: SignInSite, browser: None, home: Path) -> None:
    done = run("mcp", "login", "s")
    assert done.returncode == 0, done.stderr
    assert words_of(done.stdout) == (
        f"Signed in to s at {site.origin}. The tokens are {store(home)}. Connected, 1 tool."
    )
    assert "Your browser opens the page to sign in to s at 127.0.0.1:" in done.stderr
    assert "Waiting for the browser to return" in done.stderr
    assert "canary" not in done.stdout + done.stderr
    for file in home.rglob("*"):
        if file.is_file():
            assert b"canary" not in file.read_bytes(), f"{file} holds a token in plain text"
    assert [stat.S_IMODE(file.stat().st_mode) for file in secret_files(home)] == [0o600, 0o600]
    assert run("call", "mcp__s__look", "--yes").stdout.strip() == "seen"


def test_login_as_json(site: SignInSite, browser: None, home: Path) -> None:
    done = run("mcp", "login", "s", "--json")
    assert json.loads(done.stdout) == {
        "server": "s",
        "status": "connected",
        "toolCount": 1,
        "issuer": site.origin,
        "store": store(home),
    }


def test_another_account_at_the_same_server(site: SignInSite, browser: None, home: Path) -> None:
    assert "needs-auth" in run("mcp", "list").stdout
    done = run("mcp", "login", "s", "--identity", "work")
    assert done.returncode == 0, done.stderr
    assert "scope=read" in page_in(done.stderr)
    assert "if its entry has oauth.identity: 'work'." in words_of(done.stdout)
    assert run("mcp", "whoami", "s").returncode == 4
    assert run("mcp", "whoami", "s", "--identity", "work").returncode == 0
    done = run("mcp", "login", "s", "--identity", "work", "--json")
    assert json.loads(done.stdout)["issuer"] == site.origin
    write_servers(home, s={**site.entry, "oauth": {"identity": "work"}})
    assert run("call", "mcp__s__look", "--yes").stdout.strip() == "seen"
    assert run("mcp", "logout", "s", "--identity", "work").stdout == "Signed out of s.\n"
    assert [each.split("-")[1] for each in site.revoked] == ["refresh", "access"]


def page_in(shown: str) -> str:
    found = re.search(r"http\S+/authorize\S+", shown)
    assert found is not None, shown
    return found[0]


def address_after(page: str) -> str:
    """Where a browser ends that cannot load the last page."""

    class Stop(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *args: Any, **kwargs: Any) -> None:
            return None

    try:
        urllib.request.build_opener(Stop).open(page, timeout=30)
    except urllib.error.HTTPError as answer:
        return answer.headers["Location"]
    raise AssertionError("no redirect")


@pytest.mark.requirement("AUT-10")
def test_login_with_a_pasted_address(site: SignInSite) -> None:
    with Person("mcp", "login", "s", "--no-browser") as person:
        page = page_in(person.sees("address: "))
        person.type(b"http://127.0.0.1:9/callback?code=other&state=other\n")
        assert "That address does not belong to this sign-in." in person.sees("address: ")
        person.type(address_after(page).encode() + b"\n")
        code, shown = person.ends()
        assert person.is_as_before
    assert code == 0, shown
    assert "Signed in to s" in words_of(shown)


@pytest.mark.requirement("AUT-10")
def test_a_browser_on_this_machine_completes_the_sign_in(site: SignInSite) -> None:
    with Person("mcp", "login", "s", "--no-browser") as person:
        page = page_in(person.sees("address: "))
        urllib.request.urlopen(page, timeout=30).close()
        code, shown = person.ends()
        assert person.is_as_before
    assert code == 0, shown
    assert shown.lstrip(" ").startswith("\r\nSigned in to s") or shown.startswith("\nSigned in to s"), shown


@pytest.mark.requirement("AUT-10")
def test_login_on_another_device(site: SignInSite) -> None:
    with Person("mcp", "login", "s", "--device") as person:
        shown = person.sees("Waiting for the code to be entered (Ctrl-C to stop)")
        assert f"{site.origin}/activate" in shown
        assert "WDJB-MJHT" in shown
        site.device_approved.set()
        code, rest = person.ends()
    assert code == 0, rest
    assert "Signed in to s" in words_of(rest)


@pytest.mark.requirement("AUT-10")
def test_login_in_the_browser_after_one_on_another_device(
    site: SignInSite, browser: None, home: Path
) -> None:
    site.device_approved.set()
    assert run("mcp", "login", "s", "--device").returncode == 0
    assert run("mcp", "logout", "s").returncode == 0
    done = run("mcp", "login", "s")
    assert done.returncode == 0, done.stderr
    assert site.registrations == 2, "the client of the first had no redirect URI"


@pytest.mark.requirement("AUT-6")
def test_login_requests_the_scopes_of_the_challenge_also_from_a_stored_one(
    site: SignInSite, browser: None, home: Path
) -> None:
    assert "needs-auth" in run("mcp", "list").stdout
    assert "scope=read" in page_in(run("mcp", "login", "s").stderr)


@pytest.mark.requirement("AUT-1")
def test_ctrl_c_leaves_no_listener_no_file_and_no_spinner(
    site: SignInSite, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", "/bin/true")
    with Person("mcp", "login", "s") as person:
        page = page_in(person.sees("Waiting for the browser"))
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(page).query)
        port = urllib.parse.urlsplit(query["redirect_uri"][0]).port
        assert port is not None
        socket.create_connection(("127.0.0.1", port)).close()
        person.type(b"\x03")
        output = person.finish()
        assert person.is_as_before
    assert person.process.returncode == 130
    assert plain(output).rstrip().endswith("interrupted")
    assert "Traceback" not in output
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    assert secret_files(home) == []
    assert output.count("\x1b[?25l") == output.count("\x1b[?25h"), "the cursor is shown again"


@pytest.mark.requirement("AUT-5")
def test_logout_revokes_and_deletes_tokens(site: SignInSite, browser: None, home: Path) -> None:
    run("mcp", "login", "s")
    assert site.tokens != set()
    done = run("mcp", "logout", "s")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Signed out of s.\n", "")
    assert [each.split("-")[1] for each in site.revoked] == ["refresh", "access"]
    assert site.tokens == set()
    assert run("mcp", "logout", "s").stdout == "s: not signed in.\n"
    assert run("mcp", "whoami", "s").returncode == 4
    assert json.loads(run("mcp", "logout", "s", "--json").stdout) == {
        "server": "s",
        "wasSignedIn": False,
        "problem": None,
    }


@pytest.mark.requirement("AUT-5")
def test_logout_while_the_authorization_server_is_unreachable(browser: None, home: Path) -> None:
    with SignInSite() as site:
        write_servers(home, s=site.entry)
        assert run("mcp", "login", "s").returncode == 0
    done = run("mcp", "logout", "s")
    assert (done.returncode, done.stdout) == (0, "Signed out of s.\n")
    assert "the refresh token could not be revoked" in done.stderr
    assert run("mcp", "whoami", "s").stdout == "s: not signed in\n"


def test_the_hint_for_a_server_without_a_file_entry_works(
    site: SignInSite, browser: None, home: Path
) -> None:
    write_servers(home)
    url = site.entry["url"]
    name = url.removeprefix("http://").partition("/")[0].replace(".", "-").replace(":", "-")
    command = f"dragoman mcp login --mcp-config SERVER {name}"
    for words in (("tools", url), ("call", url, "look")):
        done = run(*words)
        assert done.returncode == 4
        assert f"hint: Run `{command}`; SERVER is the URL" in plain(done.stderr)
    assert run(*command.replace("SERVER", url).split()[1:]).returncode == 0
    assert run("tools", url).returncode == 0


def test_whoami_and_auth_status(site: SignInSite, browser: None, home: Path) -> None:
    done = run("mcp", "whoami", "s")
    assert (done.returncode, done.stdout) == (4, "s: not signed in\n")
    assert done.stderr == "  hint: Run `dragoman mcp login s`.\n"
    assert run("auth", "status").stdout == "! s  not signed in\n"
    run("mcp", "login", "s")

    words = f"signed in at {site.origin}, token valid for 59 min"
    done = run("mcp", "whoami", "s")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            f"s: {words}",
            f"  resource: {site.origin}/mcp",
            "  client id: registered-1",
            "  scopes: read",
            f"  tokens: {store(home)}",
        ],
    )
    assert run("auth", "status").stdout == f"✓ s  {words}\nTokens are {store(home)}.\n"
    (state,) = json.loads(run("auth", "status", "--json").stdout)["servers"]
    lasts = state.pop("expiresInSeconds")
    assert 3500 < lasts <= 3600
    assert state == {
        "server": "s",
        "status": "signed-in",
        "issuer": site.origin,
        "resource": f"{site.origin}/mcp",
        "clientId": "registered-1",
        "scopes": ["read"],
        "isRefreshable": True,
        "store": store(home),
    }


@pytest.mark.requirement("AUT-6")
def test_reconnect_asks_a_server_again_that_is_remembered_as_needing_a_sign_in(
    site: SignInSite, home: Path
) -> None:
    first = run("mcp", "list")
    assert "needs" in first.stdout
    site.tokens.add("")  # now everybody may come in
    assert "1 tool" not in run("mcp", "list").stdout, "it is remembered"
    done = run("mcp", "reconnect", "s")
    assert (done.returncode, done.stdout) == (0, f"✓ s  user  http  1 tool  {site.origin}/mcp\n")
    site.tokens.clear()
    assert run("mcp", "reconnect", "s").returncode == 4


def test_servers_without_sign_in(site: SignInSite, home: Path) -> None:
    header = {"Authorization": "Bearer canary-of-the-entry"}
    write_servers(
        home,
        open={**site.entry, "url": f"{site.origin}/open"},
        header={**site.entry, "headers": header},
        local={"command": "true"},
    )
    done = run("mcp", "login", "open")
    assert (done.returncode, done.stdout) == (3, "")
    assert "does not require a sign-in" in done.stderr
    for name in ("header", "local"):
        for command in ("login", "logout", "whoami"):
            done = run("mcp", command, name)
            assert (done.returncode, done.stdout) == (3, ""), command
            assert "does not use OAuth" in words_of(done.stderr), command
            assert "canary" not in done.stderr
    for command in ("login", "logout", "whoami", "reconnect"):
        done = run("mcp", command, "unknown")
        assert (done.returncode, done.stdout) == (5, ""), command
    assert run("auth", "status").stdout == "! open  not signed in\n"


# --- `mcp add` with OAuth options ---


def files_with(home: Path, text: str) -> list[Path]:
    return [each for each in home.rglob("*") if each.is_file() and text.encode() in each.read_bytes()]


@pytest.mark.requirement("AUT-2", "AUT-11")
def test_a_client_secret_is_stored_and_sent_to_its_issuer_only(
    site: SignInSite, browser: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_CLIENT_SECRET", SECRET)
    url = f"{site.origin}/mcp"
    added = run(
        *("mcp", "add", "-s", "user", "known", url, "--client-id", "a client", "--client-secret"),
        *("--issuer", site.origin, "--callback-port", str(_free_port())),
    )
    assert added.returncode == 0, added.stderr
    monkeypatch.delenv("MCP_CLIENT_SECRET")
    entry = json.loads((home / ".dragoman" / "settings.json").read_text())["mcpServers"]["known"]
    assert entry["oauth"]["clientSecret"].startswith("secret-store:")
    assert entry["oauth"]["issuer"] == site.origin
    login = run("mcp", "login", "known")
    assert login.returncode == 0, login.stderr
    assert site.token_logins == [f"a%20client:{urllib.parse.quote(SECRET, safe='')}"]
    assert site.registrations == 0
    shown = [added, login, run("mcp", "get", "known"), run("mcp", "list"), run("auth", "status", "--json")]
    assert SECRET not in "".join(each.stdout + each.stderr for each in shown)
    assert files_with(home, SECRET) == []


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


@pytest.mark.requirement("AUT-5")
def test_a_server_that_is_removed_leaves_no_secret(
    site: SignInSite, browser: None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_CLIENT_SECRET", SECRET)
    words = ("--client-id", "c", "--client-secret", "--issuer", site.origin)
    assert run("mcp", "add", "-s", "user", "known", f"{site.origin}/mcp", *words).returncode == 0
    assert run("mcp", "login", "known").returncode == 0
    assert len(secret_files(home)) == 4
    done = run("mcp", "remove", "known")
    assert (done.returncode, done.stderr) == (0, "")
    assert secret_files(home) == []
    assert site.tokens == set()


@pytest.mark.requirement("AUT-5")
def test_every_account_of_a_server_that_is_removed_is_signed_out(
    site: SignInSite, browser: None, home: Path
) -> None:
    assert run("mcp", "login", "s").returncode == 0
    assert run("mcp", "login", "s", "--identity", "work").returncode == 0
    assert len(site.tokens) == 2
    done = run("mcp", "remove", "s")
    assert (done.returncode, done.stderr) == (0, "")
    assert site.tokens == set()
    assert secret_files(home) == []


@pytest.mark.requirement("AUT-8")
def test_the_company_sign_on_is_shown_and_ended(site: SignInSite, home: Path) -> None:
    done = run("auth", "logout")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no identity provider is set" in done.stderr
    provider = {"issuer": site.origin, "clientId": "company", "enabled": True}
    (home / ".dragoman" / "settings.json").write_text(json.dumps({"xaaIdp": provider}))
    assert run("auth", "status").stdout == "! company sign-on  not signed in\n"
    _store_company_tokens(site)
    assert run("auth", "status").stdout.startswith(f"✓ company sign-on  signed in at {site.origin}")
    done = run("auth", "logout")
    assert (done.returncode, done.stdout) == (0, "Signed out of the company's identity provider.\n")
    assert site.revoked == ["canary-refresh", "canary-access"]
    assert secret_files(home) == []
    assert run("auth", "logout").stdout == "the company's identity provider: not signed in.\n"


def _store_company_tokens(site: SignInSite) -> None:
    """As after a sign-in; what a browser does there is tested with real providers."""
    idp = IdentityProvider(issuer=site.origin, client_id="company", access=NetworkAccess())
    server = AuthServer(
        issuer=site.origin, token_endpoint=f"{site.origin}/token", revocation_endpoint=f"{site.origin}/revoke"
    )
    account = Account(
        resource=site.origin,
        auth_server=server,
        client=OAuthClient("company"),
        tokens=Tokens("canary-access", refresh_token="canary-refresh"),
    )
    Vault().put(idp.entry.key, encode_account(account))


@pytest.mark.requirement("AUT-11")
def test_without_an_issuer_the_person_is_asked_before_the_secret_is_sent(
    site: SignInSite, browser: None, home: Path
) -> None:
    with Person("mcp", "add", "known", f"{site.origin}/mcp", "--client-id", "c", "--client-secret") as person:
        person.sees("Client secret: ")
        person.type(SECRET.encode() + b"\n")
        code, shown = person.ends()
    assert (code, SECRET in shown) == (0, False), shown
    refused = run("mcp", "login", "known")
    assert refused.returncode != 0
    assert f"the client secret was not sent to {site.origin}" in words_of(refused.stderr)
    assert site.token_logins == []
    with Person("mcp", "login", "known") as person:
        person.answers("y/n", "n")
        code, shown = person.ends()
    assert (code != 0, site.token_logins) == (True, [])
    with Person("mcp", "login", "known") as person:
        assert f"will be sent to {site.origin}" in words_of(person.answers("y/n", "y"))
        code, shown = person.ends()
    assert code == 0, shown
    assert len(site.token_logins) == 1
    assert files_with(home, SECRET) == []


@pytest.mark.requirement("AUT-8")
def test_company_sign_on_is_an_option_of_add(site: SignInSite, home: Path) -> None:
    done = run("mcp", "add", "-s", "user", "c", f"{site.origin}/mcp", "--xaa", "--client-id", "here")
    assert done.returncode == 0, done.stderr
    entry = json.loads((home / ".dragoman" / "settings.json").read_text())["mcpServers"]["c"]
    assert entry["oauth"] == {"clientId": "here", "xaa": True}
    login = run("mcp", "login", "c")
    assert login.returncode != 0
    assert "no identity provider is set" in words_of(login.stderr)


@pytest.mark.parametrize("option", [["--client-id", "x"], ["--client-secret"], ["--issuer", "x"], ["--xaa"]])
def test_oauth_options_are_for_urls(site: SignInSite, option: list[str]) -> None:
    done = run("mcp", "add", *option, "local", "true")
    assert done.returncode == 2
    assert "OAuth options apply to URLs only" in done.stderr


def test_a_client_secret_needs_a_client_id(site: SignInSite) -> None:
    done = run("mcp", "add", "x", f"{site.origin}/mcp", "--client-secret")
    assert done.returncode == 2
    assert "--client-secret needs --client-id" in done.stderr


# --- A store that cannot be opened ---


@pytest.fixture
def locked_store(site: SignInSite, browser: None, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign-in whose tokens are encrypted with a passphrase that is not known any more."""
    monkeypatch.setenv("DRAGOMAN_SECRETS_PASSPHRASE", "canary of the passphrase")
    assert run("mcp", "login", "s").returncode == 0
    monkeypatch.setenv("DRAGOMAN_SECRETS_PASSPHRASE", "canary of another one")


@pytest.mark.requirement("AUT-5")
def test_logout_deletes_tokens_that_cannot_be_decrypted(locked_store: None, home: Path) -> None:
    done = run("mcp", "logout", "s")
    assert (done.returncode, done.stdout) == (0, "Signed out of s.\n")
    assert words_of(done.stderr) == (
        "! the tokens could not be revoked: the stored secret cannot be decrypted with "
        "DRAGOMAN_SECRETS_PASSPHRASE"
    )
    assert secret_files(home) == []


def test_remove_deletes_tokens_that_cannot_be_decrypted(locked_store: None, home: Path) -> None:
    done = run("mcp", "remove", "s")
    assert done.returncode == 0
    assert "Removed s from user" in done.stdout
    assert "the tokens could not be revoked" in words_of(done.stderr)
    assert secret_files(home) == []


@pytest.mark.parametrize("command", [("mcp", "whoami", "s"), ("auth", "status"), ("mcp", "list")])
def test_a_store_that_cannot_be_opened_is_reported(locked_store: None, command: tuple[str, ...]) -> None:
    done = run(*command)
    assert "Traceback" not in done.stderr
    assert "cannot be decrypted with DRAGOMAN_SECRETS_PASSPHRASE" in words_of(done.stdout + done.stderr)
    assert "canary" not in done.stdout + done.stderr


def test_a_sign_in_for_a_gateway_with_an_unreachable_store_names_the_store(
    site: SignInSite, tmp_path: Path
) -> None:
    file = tmp_path / "gateway.json"
    store = {"redis": "redis://127.0.0.1:1/0", "key": "k" * 40}
    file.write_text(json.dumps({"callers": {"ci": {"token": "t" * 20}}, "store": store}))
    file.chmod(0o600)
    done = run("mcp", "login", "s", "--gateway", str(file))
    assert (done.returncode, done.stdout) == (4, "")
    first, hint = done.stderr.splitlines()
    assert first.startswith("error: s: sign-in failed: the gateway's store does not answer (Redis at ")
    assert hint == (
        "  hint: The accounts of a gateway are in its store, which must answer. "
        "Start it, or correct `store` in the gateway's file."
    )
