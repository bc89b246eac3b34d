"""The command line: it parses, calls and prints. One file per verb, imported only when called.

What goes wrong is printed once, here: a `WaywiserError` as one line with its own exit code, and
what nobody foresaw as one line that asks for a report.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence

DEBUG_VARIABLE = "WAYWISER_DEBUG"
"""Set to 1 for the whole story of an error that nobody foresaw."""

FAILED = 2
"""Exit code of what could not be done, usage errors included."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, a signal of a scheduler or a closed terminal, as shells have it."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What the system says where an output takes no more."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command ``waywiser``; always raises `SystemExit`."""
    from waywiser.cli import cmake, streams

    streams.prepare()
    words = sys.argv[1:] if arguments is None else arguments
    if list(words) == [cmake.OPTION] and (folder := cmake.folder()):
        # Builds ask this while they are configured: they do not wait for the verbs to load.
        print(folder)
        sys.exit(0)
    sys.exit(run(words, exits=True))


def run(arguments: Sequence[str], *, exits: bool = False) -> int:
    """Runs one command line and returns its exit code. ``exits``: then the process ends."""
    from waywiser.cli import streams
    from waywiser.cli.brief import brief_unless_lasting
    from waywiser.cli.call import call
    from waywiser.visible import visible
    from waywiser.words import WaywiserError

    try:
        with brief_unless_lasting(arguments, exits=exits):
            code = call(arguments)
        sys.stdout.flush()
        return code
    except WaywiserError as error:
        streams.say(f"waywiser: error: {visible(str(error))}\n")
        return error.exit_code
    except BrokenPipeError:
        # Whoever read the output has had enough; that is no error. Nothing more can be said.
        streams.give_up(sys.stdout)
        return 0
    except KeyboardInterrupt:
        streams.say("waywiser: interrupted\n")
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            streams.give_up(sys.stdout)
            where = error.filename or "the output"
            streams.say(f"waywiser: error: {where}: cannot be written: {error.strerror}\n")
            return FAILED
        if os.environ.get(DEBUG_VARIABLE) == "1":
            traceback.print_exc()
        else:
            streams.say(_unforeseen(error) + "\n")
        return FAILED


def _unforeseen(error: Exception) -> str:
    from waywiser.visible import visible

    said = visible(" ".join(f"{type(error).__name__}: {error}".split()))
    return (
        f"waywiser: error: this is a mistake in waywiser, please report it: {said} "
        f"(set {DEBUG_VARIABLE}=1 for the whole story)"
    )
