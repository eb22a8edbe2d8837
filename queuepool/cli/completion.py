"""Completion of verbs and flags in a shell, by click's own scripts."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class, shell_complete

from queuepool.cli import output
from queuepool.cli.group import COMPLETE

_PROGRAM = "queuepool"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script for verbs and flags

    For bash, put this into ~/.bashrc; for zsh, into ~/.zshrc with zsh instead of bash:

        eval "$(queuepool completion bash)"

    For fish: queuepool completion fish > ~/.config/fish/completions/queuepool.fish
    """
    script = get_completion_class(shell)
    assert script, "click knows these three"
    output.raw(script(context.find_root().command, {}, _PROGRAM, COMPLETE).source().encode())


def answer(verbs: click.Group, asked: str) -> int:
    """Print the possible completions in the format of the shell's script; ``asked`` is the value of ``COMPLETE``."""
    return shell_complete(verbs, {}, _PROGRAM, COMPLETE, asked)
