"""The MPI library of this machine: found by its ``mpicc``, which compiles the bridge to it once.

``mpicc`` is looked for in this order: ``--mpicc``, ``WAYWISER_MPICC``, ``PATH``, and the Python
environment that runs Waywiser (the packages mpich and openmpi have one). The compiled bridge is
kept in the user's cache under a name made of its source, the path of ``mpicc``, the output of
``mpicc -show`` and the architecture. Ranks load it and never compile.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from waywiser.measure.probe.environment import worker_environment
from waywiser.words import Value, WaywiserError
from waywiser.words.atomic_write import replaced_file
from waywiser.words.user_cache import VARIABLE as CACHE_VARIABLE
from waywiser.words.user_cache import user_cache

VARIABLE = "WAYWISER_MPICC"
"""Names the ``mpicc`` to use, if ``--mpicc`` does not."""

SOURCES = Path(__file__).resolve().parents[2] / "lib" / "mpi"
"""The folder of ``bridge.c`` and ``bridge.h``."""

_SECONDS = 120.0
"""Seconds for a compiler on a slow file system; it takes 0.3 s elsewhere."""

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
    def _named(self) -> tuple[str, str]:
        found = _NAME.match(self.text)
        return (found[1], found[2]) if found else (self.text, "")


class _Compiled(Value, frozen=True):
    """What is kept beside a bridge, so that no process need load the library to know its name."""

    text: str


def find_library(mpicc: str = "", environment: Mapping[str, str] = os.environ) -> MpiLibrary:
    """The MPI library to use, its bridge compiled if it was not. ``mpicc`` is that of ``--mpicc``.
    Raises `MpiError`, and `CacheError` where there is no place for the bridge."""
    found = find_mpicc(mpicc, environment)
    folder = user_cache(
        "mpi", "the folder of compiled bridges", f"name a folder with {CACHE_VARIABLE}"
    )
    bridge = folder / f"bridge-{_key(found.path)}.so"
    described = bridge.with_suffix(".json")
    was_cached = bridge.exists() and described.exists()
    if not was_cached:
        _compile(found.path, bridge)
        _describe(found.path, bridge, described)
    text = msgspec.json.decode(described.read_bytes(), type=_Compiled).text
    return MpiLibrary(found, str(bridge), text, launcher_beside(found.path), was_cached)


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
            [mpicc, "-show"], capture_output=True, timeout=_SECONDS, check=False
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


def _compile(mpicc: str, bridge: Path) -> None:
    """Compiles the bridge and renames it into place: others may do the same at this time."""
    try:
        with replaced_file(bridge) as part:
            command = [mpicc, "-O2", "-fPIC", "-shared", "-o", str(part), str(_source("bridge.c"))]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
            if done.returncode:
                raise MpiError(
                    f"mpicc cannot compile the bridge to MPI: {_first_error(done.stderr)}",
                    where=mpicc,
                    remedy="compile any MPI program with it, or name another with --mpicc",
                )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MpiError(f"the bridge to MPI cannot be compiled: {error}", where=mpicc) from error


def _first_error(text: str) -> str:
    """The first line that states an error, else the first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    stated = (line for line in lines if re.search(r"\berror\b|cannot|not found", line, re.I))
    return next(stated, lines[0] if lines else "it printed nothing")


def _describe(mpicc: str, bridge: Path, described: Path) -> None:
    """Stores what the library calls itself, as a process of its own finds it. A bridge that does
    not load is removed."""
    command = [sys.executable, "-m", "waywiser.measure.ranks.library_text", str(bridge)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
        env=worker_environment(),
    )
    if done.returncode:
        bridge.unlink(missing_ok=True)
        lines = done.stderr.strip().splitlines()
        raise MpiError(
            f"the MPI library does not load: {lines[-1] if lines else 'it ended the process'}",
            where=mpicc,
            remedy="load the module of this MPI, which sets LD_LIBRARY_PATH",
        )
    with replaced_file(described) as part:
        part.write_bytes(msgspec.json.encode(_Compiled(done.stdout.strip())))
