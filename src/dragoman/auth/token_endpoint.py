"""Requests to token endpoints, with every way in which a client can authenticate (RFC 6749 §2.3, RFC 7523).

A secret is sent only to the token endpoint of the authorization server it belongs to: callers pass the
`AuthServer` and the `Client` of one `Account`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from dragoman import tracing
from dragoman.auth.errors import Refused, Rejected, Unavailable
from dragoman.auth.http import RETRY_STATUSES, Answer, OAuthHttp
from dragoman.auth.metadata import AuthServer
from dragoman.auth.tokens import OAuthClient, rejected

if TYPE_CHECKING:
    from dragoman.auth.dpop import DpopKey

TEMPORARY_ERRORS: Final = frozenset({"temporarily_unavailable", "server_error"})
"""Errors after which a later request may succeed; the tokens stay valid."""
PAGE_STATUSES: Final = frozenset({301, 302, 303, 307, 308, 403})
"""Statuses with which, in place of the authorization server, a proxy or the sign-in of a network answers if
the answer has no JSON object."""


def choose_auth_method(server: AuthServer, *, has_secret: bool, preferred: str | None = None) -> str:
    """The authentication method: as registered, else the best that the server supports."""
    if preferred in ("none", "client_secret_basic", "client_secret_post", "private_key_jwt"):
        return preferred
    if not has_secret:
        return "none"
    for method in ("client_secret_basic", "client_secret_post"):
        if method in server.token_auth_methods:
            return method
    raise Refused("its authorization server takes client secrets in no way that is supported here")


def client_authentication(client: OAuthClient) -> tuple[dict[str, str], dict[str, str]]:
    """The form fields and the headers by which a client authenticates."""
    match client.auth_method:
        case "client_secret_basic":
            pair = f"{quote(client.client_id, safe='')}:{quote(client.client_secret or '', safe='')}"
            return {}, {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
        case "client_secret_post":
            return {"client_id": client.client_id, "client_secret": client.client_secret or ""}, {}
        case _:
            return {"client_id": client.client_id}, {}


async def request_token(
    http: OAuthHttp,
    server: AuthServer,
    form: Mapping[str, str],
    *,
    headers: Mapping[str, str] | None = None,
    dpop: DpopKey | None = None,
) -> dict[str, Any]:
    """Sends a token request; returns the document of a successful answer. Raises `Rejected` for OAuth errors,
    `Unavailable` for others."""
    address = server.token_endpoint.partition("?")[0]  # a query may contain a key
    with tracing.span("token", url__full=address, dragoman__grant=form.get("grant_type", "")):
        answer = await _post(http, server, form, headers or {}, dpop)
    document = answer.document()
    if answer.status in RETRY_STATUSES or answer.status >= 500:
        raise Unavailable(f"its authorization server answered with HTTP {answer.status}")
    refused = Rejected(f"HTTP {answer.status}", "its authorization server refused the request")
    if document is None:
        if answer.status == 200:
            raise Unavailable("its authorization server did not answer with a JSON object")
        raise Unavailable(refused.cause) if answer.status in PAGE_STATUSES else refused
    if "error" in document:
        refusal = refusal_of(document, form, headers or {})
        raise Unavailable(str(refusal)) if refusal.error in TEMPORARY_ERRORS else refusal
    if answer.status == 200:
        return document
    raise refused


def refusal_of(document: Mapping[str, Any], form: Mapping[str, str], headers: Mapping[str, str]) -> Rejected:
    """The error in an answer, without values that were sent, which an authorization server may repeat."""
    credentials = (form for value in headers.values() for form in _forms_of(value))
    return rejected(document, [*form.values(), *headers.values(), *credentials])


def _forms_of(header: str) -> Iterator[str]:
    """The credentials in a header: as they were sent and, of `Basic`, the client id and the secret."""
    scheme, _, sent = header.partition(" ")
    yield sent
    if scheme == "Basic":
        for part in base64.b64decode(sent).decode().split(":"):
            yield from (part, unquote(part))


async def _post(
    http: OAuthHttp,
    server: AuthServer,
    form: Mapping[str, str],
    headers: Mapping[str, str],
    dpop: DpopKey | None,
) -> Answer:
    if dpop is None:
        return await http.post_form(server.token_endpoint, form, headers)
    proof = dpop.proof("POST", server.token_endpoint)
    answer = await http.post_form(server.token_endpoint, form, {**headers, "DPoP": proof})
    nonce = answer.headers.get("DPoP-Nonce")
    if nonce is not None:
        dpop.remember_nonce(server.token_endpoint, nonce)
        if answer.status in (400, 401) and (answer.document() or {}).get("error") == "use_dpop_nonce":
            proof = dpop.proof("POST", server.token_endpoint)
            return await http.post_form(server.token_endpoint, form, {**headers, "DPoP": proof})
    return answer
