"""`dragoman completion`: the script that makes a shell complete commands, servers and tools."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from dragoman.cli.main import COMPLETION, cli


@click.command("completion", short_help="Print the script that completes commands, servers and tools.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Prints the completion script for SHELL. Put one of these lines where your shell reads its settings:

    \b
    eval "$(dragoman completion bash)"          in ~/.bashrc
    eval "$(dragoman completion zsh)"           in ~/.zshrc
    dragoman completion fish | source           in ~/.config/fish/config.fish

    Names of servers come from your configuration files. Names of tools are those that `dragoman tools` or
    `dragoman call` listed last: completion starts no server.
    """
    found = get_completion_class(shell)
    assert found is not None  # it is one of the choices
    click.echo(found(cli, {}, "dragoman", COMPLETION).source())
