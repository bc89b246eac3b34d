"""The command line: it parses, calls and prints. One file per verb, imported only when called.

What may happen here: options become one call of the function of the package that has the name of
the verb (`waywiser.check`), and the terminal renderer of `waywiser.render` prints its result.

Types to know: `Verb` (`cli.command_help`), a command with its help; `app` (`cli.app`), all of them.

Never here: statistics, decisions, or a table that the report lays out too.

What goes wrong is printed once, here: a `WaywiserError` as one line with its own exit code, and
unexpected errors as one line that asks for a report.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

DEBUG_VARIABLE = "WAYWISER_DEBUG"
"""Set to 1 for the traceback of an unexpected error."""

FAILED = 2
"""Exit code of what could not be done, usage errors included."""

INTERRUPTED = 130
"""Exit code after Ctrl-C, a signal of a scheduler or a closed terminal, as shells have it."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What the system says if an output takes no more, or is closed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """The command ``waywiser``; always raises `SystemExit`."""
    from waywiser.cli import signals

    try:
        signals.end_by_signals()
        code = _main(arguments)
        if signals.was_interrupted():  # a library may have taken it for an error of its own
            code = INTERRUPTED
        signals.ignore_signals()
    except KeyboardInterrupt:
        # Before the verb began, or again after the first interruption was answered.
        sys.stderr.write("waywiser: interrupted\n")
        code = INTERRUPTED
        signals.ignore_signals()
    sys.exit(code)


def _main(arguments: Sequence[str] | None) -> int:
    try:
        from waywiser.cli import build_folders, memory_guard, streams

        streams.prepare()
        memory_guard.guard_memory()
        words = sys.argv[1:] if arguments is None else arguments
        if len(words) == 1 and (folder := build_folders.folder(words[0])):
            # Builds ask this while they are configured: they do not wait for the verbs to load.
            return _print_line(folder)
        return run(words, exits=True)
    except (OSError, MemoryError, ImportError) as error:
        if _names_limit(error):
            return FAILED
        raise


def _not_utf8(error: UnicodeEncodeError) -> int:
    """Says which name is not UTF-8, and returns the exit code; raises any other such error."""
    from waywiser.cli import streams

    if not any("\ud800" <= c <= "\udfff" for c in error.object[error.start : error.end]):
        raise error
    shown = error.object[max(error.start - 20, 0) : error.end + 20]
    streams.say(f"waywiser: error: a name is not UTF-8: {shown!a}: give the file another name\n")
    return FAILED


def _unexpected(error: Exception) -> int:
    """Says what an error that no module raised on purpose means, and returns the exit code."""
    if _names_limit(error):
        return FAILED
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return _not_written(error)
    if os.environ.get(DEBUG_VARIABLE) == "1":
        import traceback

        traceback.print_exc()
    else:
        from waywiser.cli import streams

        streams.say(_unforeseen(error) + "\n")
    return FAILED


def run(arguments: Sequence[str], *, exits: bool = False) -> int:
    """Runs one command line and returns its exit code. ``exits``: then the process ends."""
    from waywiser.cli import signals, streams
    from waywiser.cli.brief import brief_unless_lasting
    from waywiser.cli.call import call
    from waywiser.words import WaywiserError, visible, with_short_quotes

    try:
        if exits:
            signals.end_by_signals()
        with brief_unless_lasting(arguments, exits=exits):
            code = call(arguments)
        sys.stdout.flush()
        return code
    except WaywiserError as error:
        if _names_limit(error):
            return FAILED
        line = with_short_quotes(visible(str(error)))
        streams.say(f"waywiser: error: {line}\n")
        return error.exit_code
    except BrokenPipeError:
        # The reader has closed its end, which is no error. Nothing more can be said.
        streams.give_up(sys.stdout)
        return 0
    except KeyboardInterrupt:
        streams.say("waywiser: interrupted\n")
        return INTERRUPTED
    except UnicodeEncodeError as error:
        return _not_utf8(error)
    except Exception as error:
        if exits and signals.was_interrupted():
            streams.say("waywiser: interrupted\n")
            return INTERRUPTED
        return _unexpected(error)


def _names_limit(error: Exception) -> bool:
    """Whether an error comes from a limit of the system, which is then named."""
    try:
        from waywiser.machine.met_limit import met_limit

        named = met_limit(error)
        limit = None if named is None else str(named)
    except (MemoryError, OSError, ImportError):  # not even the file that names it can be read
        limit = str(error)
    if limit is None:
        return False
    sys.stderr.write(f"waywiser: error: {limit}\n")
    return True


def _print_line(text: object) -> int:
    try:
        print(text, flush=True)
    except OSError as error:
        return _not_written(error)
    return 0


def _not_written(error: OSError) -> int:
    from waywiser.cli import streams

    streams.give_up(sys.stdout)
    where = error.filename or "the output"
    streams.say(f"waywiser: error: {where}: cannot be written: {error.strerror}\n")
    return FAILED


def _unforeseen(error: Exception) -> str:
    from waywiser.words import visible

    said = visible(" ".join(f"{type(error).__name__}: {error}".split()))
    return (
        f"waywiser: error: this is a mistake in waywiser, please report it: {said} "
        f"(set {DEBUG_VARIABLE}=1 for the traceback)"
    )
