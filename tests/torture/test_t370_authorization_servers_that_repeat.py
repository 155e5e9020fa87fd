"""T370: an authorization server repeats in an error what it was sent; no part of that is printed."""

from urllib.parse import parse_qsl

import pytest
from aiohttp import web
from joserfc.jwk import ECKey

from dragoman.errors import DragomanError
from tests.servers.web import Ask
from tests.servers.web.auth_world import AuthWorld, Browser
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("AUT-11")

SECRET = "cAnary/client secret+"
"""Encoded in a form and in a header."""
PLAIN = frozenset({"grant_type", "client_id", "resource", "scope", "redirect_uri", "client_assertion_type"})
KEY = ECKey.generate_key("P-256").as_pem(private=True).decode()
CLIENTS = {
    "basic": {"clientSecret": SECRET},
    "post": {"clientSecret": SECRET, "tokenAuthMethod": "client_secret_post"},
    "key": {"grant": "client_credentials", "privateKey": KEY, "signingAlgorithm": "ES256"},
}


class Repeating:
    """Answers with an error that contains one of the secrets of the request."""

    def __init__(self, number: int, status: int) -> None:
        self._number = number
        self._status = status
        self.sent: list[str] = []

    async def __call__(self, ask: Ask) -> web.StreamResponse:
        form = dict(parse_qsl(ask.body.decode()))
        self.sent = [value for name, value in form.items() if name not in PLAIN]
        self.sent += filter(None, [ask.headers.get("Authorization", "").partition(" ")[2]])
        said = self.sent[self._number % len(self.sent)]
        return web.json_response({"error": "invalid_client", "error_description": said}, status=self._status)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize(
    ("client", "path"),
    [("basic", "/token"), ("basic", "/device"), ("post", "/token"), ("post", "/device"), ("key", "/token")],
)
async def test_t370_an_error_of_an_authorization_server_is_reported_without_the_values_sent_to_it(
    client: str, path: str, status: int, number: int
):
    async with AuthWorld() as world:
        world.on[path] = repeating = Repeating(number, status)
        entry = {"clientId": "me", "issuer": world.auth.origin, **CLIENTS[client]}
        async with host_of(world, **entry) as host:
            await host.ready(timeout=20)
            with pytest.raises(DragomanError) as refused:
                await host.sign_in("x", Browser(), on_device=path == "/device")
            shown = f"{refused.value} {refused.value.hint} {host.servers['x']}"
    assert "invalid_client" in str(refused.value)
    assert repeating.sent
    assert not [each for each in repeating.sent if each[:40] in shown]
