"""An authorization server and two MCP servers, in a thread of this process. Standard library only.

`/mcp` needs a token, `/open` none. The simulated browser agrees to everything at once.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import threading
import urllib.parse
from http import HTTPStatus
from typing import Any, Self

METADATA = "/.well-known/oauth-protected-resource/mcp"
SECRET = "the client's own secret"
CODE = "device_code"
DEVICE = f"urn:ietf:params:oauth:grant-type:{CODE}"


class SignInSite:
    """`with SignInSite() as site`: what was asked for is in the lists."""

    def __init__(self) -> None:
        self.token_forms: list[dict[str, str]] = []
        self.token_logins: list[str] = []
        """User names and passwords of token requests."""
        self.revoked: list[str] = []
        self.registrations = 0
        self.device_approved = threading.Event()
        self.tokens: set[str] = set()
        """Valid access tokens."""
        self.handler: type[http.server.BaseHTTPRequestHandler] = _Handler
        self._codes: dict[str, str] = {}
        self._number = 0

    def __enter__(self) -> Self:
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler)
        self._server.site = self  # type: ignore[attr-defined]
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def entry(self) -> dict[str, Any]:
        return {"type": "http", "url": f"{self.origin}/mcp", "protocol": "2025-11-25"}

    def metadata(self) -> dict[str, Any]:
        endpoints = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "registration_endpoint": "register",
            "revocation_endpoint": "revoke",
            "device_authorization_endpoint": "device",
        }
        return {
            "issuer": self.origin,
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": True,
            **{name: f"{self.origin}/{path}" for name, path in endpoints.items()},
        }

    def authorize(self, query: dict[str, str]) -> str:
        """Where the browser goes when the person has agreed."""
        code = self._new("code")
        self._codes[code] = query["code_challenge"]
        answer = {"code": code, "state": query["state"], "iss": self.origin}
        return f"{query['redirect_uri']}?{urllib.parse.urlencode(answer)}"

    def token(self, form: dict[str, str], login: str | None) -> dict[str, Any]:
        self.token_forms.append(form)
        if login is not None:
            self.token_logins.append(login)
        if form["grant_type"] == "authorization_code":
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            if self._codes.pop(form["code"], "") != base64.urlsafe_b64encode(digest).rstrip(b"=").decode():
                return {"error": "invalid_grant"}
        if form["grant_type"] == DEVICE and not self.device_approved.is_set():
            return {"error": "authorization_pending"}
        access = self._new("access")
        self.tokens.add(access)
        return {
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": self._new("refresh"),
            "scope": "read",
        }

    def device(self) -> dict[str, Any]:
        page = f"{self.origin}/activate"
        return {
            CODE: self._new(CODE),
            "user_code": "WDJB-MJHT",
            "verification_uri": page,
            "verification_uri_complete": f"{page}?user_code=WDJB-MJHT",
            "expires_in": 600,
            "interval": 0.05,
        }

    def _new(self, kind: str) -> str:
        self._number += 1
        return f"canary-{kind}-{self._number}-of-the-site"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def site(self) -> SignInSite:
        return self.server.site  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        return

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        given = dict(urllib.parse.parse_qsl(query))
        match path:
            case "/.well-known/oauth-protected-resource/mcp":
                resource = f"{self.site.origin}/mcp"
                self._say({"resource": resource, "authorization_servers": [self.site.origin]})
            case "/.well-known/oauth-authorization-server":
                self._say(self.site.metadata())
            case "/authorize":
                self._say(None, HTTPStatus.FOUND, {"Location": self.site.authorize(given)})
            case "/activate":
                self.site.device_approved.set()
                self._say({})
            case _:
                self._say(None, HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        form = dict(urllib.parse.parse_qsl(body.decode()))
        match self.path:
            case "/register":
                self.site.registrations += 1
                self._say({"client_id": f"registered-{self.site.registrations}"}, HTTPStatus.CREATED)
            case "/token":
                kind, _, login = self.headers.get("Authorization", "").partition(" ")
                reply = self.site.token(form, base64.b64decode(login).decode() if kind == "Basic" else None)
                self._say(reply, HTTPStatus.BAD_REQUEST if "error" in reply else HTTPStatus.OK)
            case "/revoke":
                self.site.revoked.append(form["token"])
                self.site.tokens.discard(form["token"])
                self._say({})
            case "/device":
                self._say(self.site.device())
            case "/mcp" if self.headers.get("Authorization", "")[7:] not in self.site.tokens:
                challenge = f'Bearer resource_metadata="{self.site.origin}{METADATA}", scope="read"'
                self._say(None, HTTPStatus.UNAUTHORIZED, {"WWW-Authenticate": challenge})
            case _:
                self._answer(json.loads(body))

    def do_DELETE(self) -> None:
        self._say(None)

    def _answer(self, message: dict[str, Any]) -> None:
        if "id" not in message:
            self._say(None, HTTPStatus.ACCEPTED)
            return
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "site", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "look", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": "seen"}]},
        }
        result = results.get(message["method"], {})
        self._say({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _say(
        self, document: Any, status: HTTPStatus = HTTPStatus.OK, headers: dict[str, str] | None = None
    ) -> None:
        body = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        if document is not None:
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body)
