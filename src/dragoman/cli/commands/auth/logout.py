"""`dragoman auth logout`: ends the sign-in at the company's identity provider."""

from __future__ import annotations

import click

from dragoman.cli.common import load_and_report
from dragoman.cli.options import json_option
from dragoman.cli.sign_ins import company_credentials, sign_out_and_report
from dragoman.errors import ConfigError


@click.command("logout")
@json_option
def command(as_json: bool) -> None:
    """Signs out at the company's identity provider (`xaaIdp`): its tokens are revoked, then deleted.

    Tokens of servers stay until they expire; `dragoman mcp logout` revokes those of one server.
    """
    credentials = company_credentials(load_and_report())
    if credentials is None:
        raise ConfigError(
            "no identity provider is set", hint="`dragoman mcp logout NAME` signs out of a server."
        )
    sign_out_and_report("the company's identity provider", credentials, as_json=as_json)
