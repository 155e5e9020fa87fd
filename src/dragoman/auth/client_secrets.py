"""Secrets of entries in the secret store; configuration files hold a reference.

A reference is valid only for the server and the URL for which it was stored: an entry of a project cannot use
the secret of another server.
"""

from __future__ import annotations

import secrets

import msgspec
from msgspec import Struct

from dragoman.auth.errors import Refused
from dragoman.auth.references import REFERENCE, is_reference
from dragoman.auth.stores.base import StoreFailed, Vault
from dragoman.urls import parse_url


class _Stored(Struct):
    server: str
    url: str
    secret: str


def store_client_secret(vault: Vault, server: str, url: str, secret: str) -> str:
    """Stores the secret; returns the reference to write into the entry. Raises `StoreFailed`."""
    name = secrets.token_hex(8)
    stored = _Stored(server, str(parse_url(url)), secret)
    vault.put(f"client-secret|{name}", msgspec.json.encode(stored))
    return f"{REFERENCE}{name}"


def forget_client_secret(vault: Vault, reference: str | None, server: str, url: str) -> None:
    """Deletes the secret of a reference, if it was stored for this server. Raises `StoreFailed`."""
    if reference is None or not is_reference(reference):
        return
    try:
        read_client_secret(vault, reference, server, url)
    except Refused:
        return
    vault.delete(f"client-secret|{reference.removeprefix(REFERENCE)}")


def read_client_secret(vault: Vault, reference: str, server: str, url: str) -> str:
    """The secret of a reference; `Refused` if there is none for this server."""
    try:
        data = vault.get(f"client-secret|{reference.removeprefix(REFERENCE)}")
        stored = None if data is None else msgspec.json.decode(data, type=_Stored)
    except (StoreFailed, msgspec.DecodeError) as error:
        raise Refused(f"its secret cannot be read: {error}") from None
    if stored is None:
        raise Refused(
            "its secret is not in the secret store of this machine",
            "Add the server again, or write the secret as ${VARIABLE}.",
        )
    if (stored.server, stored.url) != (server, str(parse_url(url))):
        raise Refused("the secret that its entry refers to was stored for another server")
    return stored.secret
