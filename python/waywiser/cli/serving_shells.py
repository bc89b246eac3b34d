"""The verb that serves shells."""

from __future__ import annotations

from waywiser.cli.verb import verb


@verb("Print a script that completes words in your shell.")
def completion(shell: str) -> int:
    """Print a script for bash, zsh or fish that completes commands, options, executors, memories,
    terms of --only, presets and profiles.

    SHELL: bash, zsh or fish.

    source <(waywiser completion bash)
        complete words in this shell
    waywiser completion fish > ~/.config/fish/completions/waywiser.fish
        complete words in every new fish shell
    """
    from waywiser.cli.completion import run_completion

    return run_completion(shell)
