"""The sign-in settings of a server's entry, in the form that this package uses."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from dragoman.auth.metadata import TrustRules
from dragoman.auth.tokens import HiddenRepr
from dragoman.names import shell_quoted
from dragoman.urls import parse_url

if TYPE_CHECKING:
    from dragoman.auth.tokens import Account
    from dragoman.auth.xaa import IdentityProvider

Grant = Literal["authorization_code", "client_credentials", "workload_identity", "xaa"]


class ConfiguredClient(HiddenRepr, frozen=True):
    """The client settings of the entry."""

    client_id: str | None = None
    client_secret: str | None = None
    metadata_url: str | None = None
    """URL of a client metadata document (CIMD)."""
    auth_method: str | None = None


class SignInTarget(Struct, frozen=True, kw_only=True):
    """The server to sign in to, and the settings of its entry."""

    url: str
    metadata_url: str | None = None
    """`oauth.authServerMetadataUrl`: trusted, because the person configures it."""
    resource: str | None = None
    """`oauth.resource`"""
    issuer: str | None = None
    """The only issuer that may be used: from the entry, or the one that issued the stored tokens."""
    entry_issuer: str | None = None
    """`oauth.issuer`: the issuer that metadata at a configured URL must state, too."""
    rules: TrustRules = TrustRules()
    is_identity_provider: bool = False
    """Whether the URL is the issuer itself, without a protected resource."""
    has_secret: bool = False
    """Whether a secret or a refresh token would be sent; then no endpoint is guessed."""


class OAuthSettings(HiddenRepr, frozen=True, kw_only=True):
    server: str
    url: str
    is_given: bool = False
    """Whether no file defines it: it was given on the command line, or by a program."""
    headers: Mapping[str, str] = {}
    route: tuple[str, ...] = ()
    """The entry's proxy and certificate files, if it has any."""
    identity: str = ""
    """The identity of one of several accounts at the server; empty for the default one."""
    client: ConfiguredClient = ConfiguredClient()
    grant: Grant = "authorization_code"
    scopes: tuple[str, ...] = ()
    callback_port: int | None = None
    metadata_url: str | None = None
    issuer: str | None = None
    resource: str | None = None
    sends_resource: bool = True
    rules: TrustRules = TrustRules()
    allow_private: bool = False
    private_key: str | None = None
    """The private key (PEM or JWK) with which the client authenticates (`private_key_jwt`)."""
    signing_algorithm: str | None = None
    workload_token: str | None = None
    """The JWT of a workload identity, or the file that holds it (`@/path`)."""
    dpop: bool = False
    is_identity_provider: bool = False
    """Whether it is the company's identity provider, whose `url` is its issuer."""
    identity_provider: IdentityProvider | None = None
    """Where a person signs in, with the grant `xaa`."""

    def login_hint(self, option: str = "") -> str:
        """The command by which a person signs in. `option`: the command-line option for the account store."""
        option = f"{option} " if option else ""
        if not self.is_given:
            return f"Run `dragoman mcp login {option}{shell_quoted(self.server)}`."
        return (
            f"Run `dragoman mcp login {option}--mcp-config SERVER {shell_quoted(self.server)}`; SERVER is "
            "the URL, the file or the JSON text by which it was given. The sign-in is kept."
        )

    @property
    def key(self) -> str:
        """The key of the stored account: the server's name, its configuration, and the identity."""
        facts: list[Any] = [
            str(parse_url(self.url)),
            sorted((name.lower(), value) for name, value in self.headers.items()),
            self.client.client_id,
            self.client.metadata_url,
            self.grant,
            # The settings that decide to whom, and through whom, a stored token is sent: an entry of the same
            # name and URL with another proxy is another account.
            self.route,
            self.metadata_url,
            self.issuer,
            self.resource,
            sorted(self.rules.endpoint_origins),
            self.allow_private,
        ]
        digest = hashlib.sha256(repr(facts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return "|".join(each for each in (self.server, digest, self.identity) if each)

    @property
    def stored_keys(self) -> tuple[str, ...]:
        """The keys of all stored accounts from which its tokens are obtained."""
        if self.grant != "xaa" or self.identity_provider is None:
            return (self.key,)
        return self.key, self.identity_provider.entry.key

    def wanted(self, issuer: str | None) -> SignInTarget:
        """`issuer`: the one that issued the stored tokens."""
        return SignInTarget(
            url=self.url,
            metadata_url=self.metadata_url,
            resource=self.resource,
            issuer=self.issuer or issuer,
            entry_issuer=self.issuer,
            rules=self.rules,
            has_secret=self.has_secret,
            is_identity_provider=self.is_identity_provider,
        )

    @property
    def has_secret(self) -> bool:
        return any((self.client.client_secret, self.private_key, self.workload_token))

    @property
    def is_unattended(self) -> bool:
        """Whether tokens are obtained without a person."""
        return self.grant != "authorization_code"

    def is_pinned(self, stored: Account | None) -> bool:
        """Whether the issuer of the entry's secrets is known: the entry names it, or a secret was sent to it
        before. A sign-in without a secret is not enough, because the server named its issuer."""
        is_known = stored is not None and stored.client.authenticates
        return self.issuer is not None or self.metadata_url is not None or is_known
