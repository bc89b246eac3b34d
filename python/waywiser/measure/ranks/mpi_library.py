"""The MPI library of this machine: found by its ``mpicc``, which compiles the bridge to it once.

``mpicc`` is looked for in this order: ``--mpicc``, ``WAYWISER_MPICC``, ``PATH``, and the Python
environment that runs Waywiser (the packages mpich and openmpi have one). The compiled bridge is
kept in the user's cache under a name made of its source, the path of ``mpicc``, the output of
``mpicc -show`` and the architecture. Ranks load it and never compile.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from waywiser.measure.probe.environment import worker_environment
from waywiser.measure.ranks.bridge_file import MOST_BYTES, bridge_folder, sha256_of, store_bridge
from waywiser.words import (
    TemporaryFolder,
    UntrustedPath,
    Value,
    WaywiserError,
    read_regular,
    read_trusted,
)

VARIABLE = "WAYWISER_MPICC"
"""Names the ``mpicc`` to use, if ``--mpicc`` does not."""

SOURCES = Path(__file__).resolve().parents[2] / "lib" / "mpi"
"""The folder of ``bridge.c`` and ``bridge.h``."""

_SECONDS = 120.0
"""Seconds for a compiler on a slow file system; it takes 0.3 s elsewhere."""

_MOST_TEXT_BYTES = 1 << 16
"""What is kept beside a bridge has some hundred bytes."""

_NO_ROOM = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
"""What compilers and linkers print if the folder for temporary files is full."""

_NAME = re.compile(r"\s*(.+?)[\s,:(-]*(?:version[\s:]*|v)?\s*(\d+(?:\.\w+)+)", re.IGNORECASE)
"""Name and version in what a library calls itself: ``Open MPI v5.0.11, package: …``."""


class MpiError(WaywiserError):
    """There is no MPI library, or it cannot be used."""


class Mpicc(Value, frozen=True):
    """A compiler of MPI programs and how it was found."""

    path: str
    found_by: str
    """``--mpicc``, ``WAYWISER_MPICC``, ``PATH`` or ``Python environment``."""


class MpiLibrary(Value, frozen=True):
    """An MPI library whose bridge is compiled."""

    mpicc: Mpicc
    bridge: str
    """The compiled bridge, which ranks load."""
    text: str
    """What the library calls itself, in one line."""
    launcher: str
    """The ``mpiexec`` of the library; empty if none is beside ``mpicc``."""
    was_cached: bool
    """Whether the bridge had been compiled before."""

    @property
    def name(self) -> str:
        """``MPICH``, ``Open MPI``, …"""
        return self._named[0]

    @property
    def version(self) -> str:
        """``5.0.2``; empty if the library does not say."""
        return self._named[1]

    @property
    def needs_shared_memory(self) -> bool:
        """Whether ranks of one machine end without room in ``/dev/shm``. Open MPI takes another
        way."""
        return self.name != "Open MPI"

    @property
    def _named(self) -> tuple[str, str]:
        found = _NAME.match(self.text)
        return (found[1], found[2]) if found else (self.text, "")


class _Compiled(Value, frozen=True):
    """What is kept beside a bridge, so that no process need load the library to know its name."""

    text: str
    sha256: str
    """The hash of the bridge: one that is damaged is compiled again."""


def find_library(mpicc: str = "", environment: Mapping[str, str] = os.environ) -> MpiLibrary:
    """The MPI library to use, its bridge compiled if it was not. ``mpicc`` is that of ``--mpicc``.
    Raises `MpiError`, and `CacheError` where there is no place for the bridge, or one that other
    users may write to."""
    found = find_mpicc(mpicc, environment)
    bridge = bridge_folder() / f"bridge-{_key(found.path)}.so"
    described = bridge.with_suffix(".json")
    compiled = _compiled_before(bridge, described)
    was_cached = compiled is not None
    if compiled is None:
        content = _compile(found.path)
        store_bridge(bridge, content)
        text = _library_text(found.path, bridge)
        compiled = _Compiled(text, hashlib.sha256(content).hexdigest())
        store_bridge(described, msgspec.json.encode(compiled))
    return MpiLibrary(found, str(bridge), compiled.text, launcher_beside(found.path), was_cached)


def _compiled_before(bridge: Path, described: Path) -> _Compiled | None:
    """What is kept beside a bridge; None if either file is missing, damaged or not to be trusted:
    then the bridge is compiled again."""
    try:
        kept = msgspec.json.decode(read_trusted(described, _MOST_TEXT_BYTES), type=_Compiled)
    except (OSError, UntrustedPath, ValueError, RecursionError):
        return None
    return kept if sha256_of(str(bridge)) == kept.sha256 else None


def find_mpicc(given: str = "", environment: Mapping[str, str] = os.environ) -> Mpicc:
    """The ``mpicc`` to use. One that is named is used or an error. Raises `MpiError`."""
    for name, found_by in ((given, "--mpicc"), (environment.get(VARIABLE, ""), VARIABLE)):
        if name:
            path = shutil.which(name, path=environment.get("PATH"))
            if path is None:
                raise MpiError(
                    f"{found_by} names no program that can be run",
                    where=name,
                    remedy="name the mpicc of an MPI library",
                )
            return Mpicc(os.path.abspath(path), found_by)
    for folder, found_by in _folders(environment):
        if path := shutil.which("mpicc", path=folder):
            return Mpicc(os.path.abspath(path), found_by)
    raise MpiError(
        f"no mpicc was found: not with --mpicc, in {VARIABLE}, in PATH or in the Python "
        "environment",
        remedy="load the MPI module of this site, name one with --mpicc PATH, or pip install mpich",
    )


def _folders(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    yield environment.get("PATH") or os.defpath, "PATH"
    yield os.path.join(sys.prefix, "bin"), "Python environment"


def launcher_beside(mpicc: str) -> str:
    """The ``mpiexec`` that belongs to an ``mpicc``: of ``mpicc.mpich`` it is ``mpiexec.mpich``.
    Empty if there is none."""
    folder, name = os.path.split(mpicc)
    own = [name.replace("mpicc", "mpiexec")] if "mpicc" in name else []
    found = (shutil.which(each, path=folder) for each in (*own, "mpiexec", "mpirun"))
    return next(filter(None, found), "")


def _key(mpicc: str) -> str:
    """What the compiled bridge depends on, as a part of a file's name."""
    try:
        shown = subprocess.run(
            [mpicc, "-show"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MpiError(f"mpicc does not run: {error}", where=mpicc) from error
    digest = hashlib.sha256()
    for part in (*(_source(name).read_bytes() for name in ("bridge.h", "bridge.c")), shown):
        digest.update(part + b"\0")
    digest.update(os.fsencode(f"{mpicc}\0{platform.machine()}"))  # nodes may share the folder
    return digest.hexdigest()[:16]


def _source(name: str) -> Path:
    path = SOURCES / name
    if not path.exists():
        raise MpiError(
            "a part of the package is missing",
            where=str(path),
            remedy="build it with 'make survey' or install the wheel again",
        )
    return path


def _compile(mpicc: str) -> bytes:
    """The bridge, compiled in a temporary folder."""
    try:
        with TemporaryFolder("waywiser-mpicc-") as folder:
            made = folder.path / "bridge.so"
            command = [mpicc, "-O2", "-fPIC", "-shared", "-o", str(made), str(_source("bridge.c"))]
            done = _output(command, {**os.environ, "LC_ALL": "C"})
            if done.returncode:
                raise _not_compiled(mpicc, done.stderr)
            if not made.exists():
                raise MpiError("mpicc ended without an error and wrote no file", where=mpicc)
            return read_regular(made, MOST_BYTES)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MpiError(f"the bridge to MPI cannot be compiled: {error}", where=mpicc) from error


def _not_compiled(mpicc: str, printed: str) -> MpiError:
    """The error of a compiler that has failed; it needs temporary files."""
    for line in printed.splitlines():
        if any(reason in line for reason in _NO_ROOM):
            return MpiError(
                "the bridge to MPI cannot be compiled: the folder for temporary files, "
                f"{tempfile.gettempdir()}, is full: {line.strip()}",
                where=mpicc,
                remedy="free space there, or name another folder with TMPDIR",
            )
    return MpiError(
        f"mpicc cannot compile the bridge to MPI: {_first_error(printed)}",
        where=mpicc,
        remedy="compile any MPI program with it, or name another with --mpicc",
    )


def _output(
    command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """What a program prints, in whatever encoding. Raises `OSError` and
    `subprocess.TimeoutExpired`."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_SECONDS,
        check=False,
        env=environment,
    )


def _first_error(text: str) -> str:
    """The first line that states an error, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    stated = (line for line in lines if re.search(r"\berror\b|cannot|not found", line, re.I))
    return next(stated, lines[0] if lines else "it printed nothing")


def _library_text(mpicc: str, bridge: Path) -> str:
    """What the library calls itself, as a process of its own finds it. A bridge that does not load
    is removed."""
    command = [sys.executable, "-m", "waywiser.measure.ranks.library_text", str(bridge)]
    try:
        done = _output(command, worker_environment())
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MpiError(f"the MPI library cannot be tried: {error}", where=mpicc) from error
    if done.returncode:
        bridge.unlink(missing_ok=True)
        lines = done.stderr.strip().splitlines()
        raise MpiError(
            f"the MPI library does not load: {lines[-1] if lines else 'it ended the process'}",
            where=mpicc,
            remedy="load the module of this MPI, which sets LD_LIBRARY_PATH",
        )
    return done.stdout.strip()
