"""Runs a program with the tracer, which the driver loads into it and into its descendants.

The tracer is a library of `native/src/trace`. The CUDA driver loads it when a process first uses a
GPU (``CUDA_INJECTION64_PATH``), and each process writes a file of its own. The program keeps its
standard streams, its terminal and its exit code.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from waywiser.measure.supervise.foreground import run_in_foreground
from waywiser.profile import Trace, TraceError
from waywiser.profile.trace_file import read_processes
from waywiser.version import __version__

INJECTION = "CUDA_INJECTION64_PATH"
FOLDER = "WAYWISER_TRACE_FOLDER"
NEXT_INJECTION = "WAYWISER_TRACE_NEXT_INJECTION"
CUPTI = "WAYWISER_CUPTI"
CUPTI_FOLDERS = "WAYWISER_TRACE_CUPTI_FOLDERS"
PATCHED = "WAYWISER_TRACE_PATCH"

LIBRARY = Path(__file__).resolve().parents[2] / "lib" / "libwaywiser_trace.so"
PATCH_FOLDER = Path(__file__).resolve().parent / "patch_site"


class CommandNotFound(TraceError):
    """There is no such command; the exit code is that of a shell."""

    exit_code = 127


class CommandNotStarted(TraceError):
    """The command is there and cannot be started; the exit code is that of a shell."""

    exit_code = 126


def traced(command: Sequence[str], *, cupti: str = "", patched: bool = False) -> Trace:
    """Runs a command with the tracer and returns what was recorded when it has ended.

    Raises `TraceError`: the tracer is not built, or the command cannot be started.
    """
    require_tracer(cupti)
    started = datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        folder = Path(tempfile.mkdtemp(prefix="waywiser-trace-"))
    except OSError as error:
        raise TraceError(
            f"there is no folder for what is recorded: {error}", remedy="set TMPDIR"
        ) from error
    begun = time.monotonic()
    try:
        environment = trace_environment(os.environ, folder, cupti=cupti, patched=patched)
        exit_code = _run(command, environment)
        processes, unreadable = read_processes(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Trace(
        command=tuple(map(printable, command)),
        started=started,
        seconds=time.monotonic() - begun,
        exit_code=exit_code,
        host=socket.gethostname(),
        waywiser=__version__,
        processes=tuple(processes),
        unreadable=tuple(unreadable),
        patched=patched,
    )


def printable(word: str) -> str:
    """A word of a command line as UTF-8; bytes that are none as ``\\xe9``."""
    return os.fsencode(word).decode(errors="backslashreplace")


def require_tracer(cupti: str = "") -> None:
    """Raises `TraceError` if the tracer is not built, or if ``cupti`` is no file."""
    if not LIBRARY.is_file():
        raise TraceError(
            "the tracer is not built", where=str(LIBRARY), remedy="make build, or install the wheel"
        )
    if cupti and not os.path.isfile(cupti):
        raise TraceError("there is no such library", where=cupti, remedy="name libcupti.so.12")


def trace_environment(
    variables: Mapping[str, str], folder: Path, *, cupti: str = "", patched: bool = False
) -> dict[str, str]:
    """The environment of a program that is traced into a folder. A profiler that was to be loaded
    in this place is loaded by the tracer."""
    found = dict(variables)
    former = found.get(INJECTION, "")
    if former and former != str(LIBRARY):
        found[NEXT_INJECTION] = former
    found[INJECTION] = str(LIBRARY)
    found[FOLDER] = str(folder)
    if cupti:
        found[CUPTI] = os.path.abspath(cupti)
    found[CUPTI_FOLDERS] = os.pathsep.join(_cupti_folders())
    if patched:
        own = [str(PATCH_FOLDER), *filter(None, (found.get("PYTHONPATH"),))]
        found["PYTHONPATH"] = os.pathsep.join(own)
        found[PATCHED] = str(Path(__file__).resolve().parents[3])
    return found


def _cupti_folders() -> Iterator[str]:
    """Where wheels of this Python have CUPTI."""
    site = sysconfig.get_paths()["platlib"]
    for packages in dict.fromkeys((site, *(path for path in sys.path if "packages" in path))):
        for parts in (("nvidia", "cuda_cupti", "lib"), ("nvidia", "cu13", "lib")):
            if os.path.isdir(folder := os.path.join(packages, *parts)):
                yield folder


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Runs it to its end, and returns its exit code."""
    try:
        return run_in_foreground(command, environment)
    except FileNotFoundError:
        raise CommandNotFound(f"{command[0]}: command not found") from None
    except OSError as error:
        raise CommandNotStarted(f"{command[0]}: {error.strerror}") from error
