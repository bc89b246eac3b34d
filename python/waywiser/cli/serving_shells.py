"""The verb that serves shells."""

from __future__ import annotations

from typing import Annotated

import typer

from waywiser.cli.app import app
from waywiser.cli.command_help import Verb


@app.command(cls=Verb, short_help="Print a script that completes words in your shell.")
def completion(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")],
) -> int:
    """Print a script for bash, zsh or fish that completes commands, options, executors, memories,
    terms of --only, presets and profiles."""
    from waywiser.cli.completion import run_completion

    return run_completion(shell)
