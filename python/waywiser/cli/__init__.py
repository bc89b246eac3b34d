"""The command line: it parses, calls and prints. One file per verb, imported only when called.

What goes wrong is printed once, here: a `WaywiserError` as one line with its own exit code, and
what nobody foresaw as one line that asks for a report.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

DEBUG_VARIABLE = "WAYWISER_DEBUG"
"""Set to 1 for the whole story of an error that nobody foresaw."""

FAILED = 2
"""Exit code of what could not be done, usage errors included."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command ``waywiser``; always raises `SystemExit`."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit code."""
    from waywiser.cli.app import call
    from waywiser.words import WaywiserError

    try:
        return call(arguments)
    except WaywiserError as error:
        print(f"waywiser: error: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read the output has had enough; that is no error. Nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("waywiser: interrupted", file=sys.stderr)
        return FAILED
    except Exception as error:
        if os.environ.get(DEBUG_VARIABLE) == "1":
            traceback.print_exc()
        else:
            print(_unforeseen(error), file=sys.stderr)
        return FAILED


def _unforeseen(error: Exception) -> str:
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return (
        f"waywiser: error: this is a mistake in waywiser, please report it: {said} "
        f"(set {DEBUG_VARIABLE}=1 for the whole story)"
    )
