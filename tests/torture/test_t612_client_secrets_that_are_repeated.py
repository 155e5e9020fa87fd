"""T612: an authorization server repeats the client secret of an `Authorization: Basic` header, encoded or
decoded; the error does not contain it."""

import base64
from urllib.parse import quote, unquote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from dragoman.auth.errors import Rejected
from dragoman.auth.http import NetworkAccess, OAuthHttp
from dragoman.auth.metadata import AuthServer
from dragoman.auth.token_endpoint import client_authentication, request_token
from dragoman.auth.tokens import OAuthClient

pytestmark = pytest.mark.requirement("AUT-1")


async def repeats_credentials(request: web.Request) -> web.Response:
    """Answers with the credentials in three forms."""
    sent = request.headers["Authorization"].partition(" ")[2]
    decoded = base64.b64decode(sent).decode()
    text = f"{sent} | {decoded} | {unquote(decoded)} | {decoded.partition(':')[2]}"
    return web.json_response({"error": "invalid_client", "error_description": text}, status=401)


@pytest.mark.parametrize("secret", ["0123456789abcdef", "desk-client-0123", "p/w: + é ü 0123"])
async def test_t612_an_error_of_a_token_endpoint_contains_no_client_secret(secret: str):
    app = web.Application()
    app.router.add_post("/token", repeats_credentials)
    async with TestServer(app, host="127.0.0.1") as site:
        origin = f"http://127.0.0.1:{site.port}"
        http, server = OAuthHttp(f"{origin}/mcp", NetworkAccess()), AuthServer(origin, f"{origin}/token")
        fields, headers = client_authentication(OAuthClient("desk-client", secret, "client_secret_basic"))
        with pytest.raises(Rejected) as refused:
            await request_token(http, server, {"grant_type": "client_credentials", **fields}, headers=headers)
    for form in (secret, quote(secret, safe=""), "0123", headers["Authorization"].partition(" ")[2]):
        assert form not in str(refused.value)
