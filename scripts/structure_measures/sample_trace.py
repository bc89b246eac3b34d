"""The types that carry a sample to the verdict of ``check``, by a trace of its calls.

Two surveys of one machine are checked against one baseline, and differ in their times alone: the
one is slower than the other. A type carries the sample if the objects of the type that functions
take or return before there is a verdict differ between the two checks.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

SCRIPTS = Path(__file__).resolve().parents[1]

SLOWER = (1.25, 1.3)
"""How many times as long as in the file the transfers of each survey last. Both surveys are slower
than the baseline, so that their checks take the same course."""

VERDICT = "Checkup"
"""The type that says the verdict: the first object of it ends the trace."""

PACKAGE = "waywiser"
DEEPEST = 3
"""Containers within containers that are searched for objects."""


class Carriers(NamedTuple):
    """What carries a sample to the verdict."""

    types: list[str]
    files: list[str]
    """The modules with functions that take or return an object of such a type."""


def carriers(tree: Path, baseline: Path, profile: Path) -> Carriers:
    """Traces the code of ``tree``, each check in a process of its own."""
    traced = []
    for factor in SLOWER:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(baseline, Path(folder, "baseline.wwp"))
            shutil.copy(profile, Path(folder, "profile.wwp"))
            slow_down(Path(folder, "profile.wwp"), factor)
            command = [sys.executable, "-m", "structure_measures.sample_trace"]
            paths = os.pathsep.join((str(tree / "python"), str(SCRIPTS)))
            done = subprocess.run(
                command,
                cwd=folder,
                env={
                    **os.environ,
                    "PYTHONPATH": paths,
                    "PYTHONHASHSEED": "0",
                    "XDG_CACHE_HOME": str(Path(folder, "cache")),  # nothing is kept of former runs
                },
                stdout=subprocess.PIPE,
                check=False,
            )
            if done.returncode:
                sys.exit(f"{tree}: the trace of a check ended with {done.returncode}")
            traced.append(json.loads(done.stdout))
    first, second = traced
    differing = [name for name in first if first[name] != second.get(name)]
    files = {file for name in differing for file in first[name]["files"]}
    return Carriers(sorted(differing), sorted(files))


def slow_down(file: Path, factor: float) -> None:
    """Multiplies all times of the samples of a profile; docs/profile-schema.md describes the
    file."""
    import msgspec
    import numpy as np

    with contextlib.closing(sqlite3.connect(file)) as connection, connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_info(visit)")]
        for row in connection.execute("SELECT * FROM visit").fetchall():
            visit = dict(zip(columns, row, strict=True))
            for name in ("span", "host", "transfers"):
                if visit[name] is not None:
                    times = np.frombuffer(zlib.decompress(visit[name]), "<f8") * factor
                    visit[name] = zlib.compress(times.tobytes())
            values = [visit[name] for name in columns[:-1]]
            values.append(zlib.crc32(msgspec.msgpack.encode(values)))
            places = ", ".join("?" * len(columns))
            connection.execute(f"REPLACE INTO visit VALUES ({places})", values)


class Trace:
    """Collects the objects that functions of the package take and return, up to the verdict."""

    def __init__(self) -> None:
        self.objects: dict[int, object] = {}
        self.files: defaultdict[type, set[str]] = defaultdict(set)
        self.is_over = False

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if self.is_over or event not in ("call", "return") or not _is_own(module):
            return
        for each in _objects([result] if event == "return" else _arguments(frame)):
            self.objects[id(each)] = each
            self.files[type(each)].add(module)
            self.is_over |= type(each).__name__ == VERDICT

    def by_type(self) -> dict[str, dict[str, object]]:
        """What the objects of each type hold, and the modules that they were in."""
        contents: defaultdict[type, set[str]] = defaultdict(set)
        known: dict[int, str] = {}
        for each in self.objects.values():
            contents[type(each)].add(_content(each, known))
        return {
            f"{kind.__module__}.{kind.__qualname__}": {
                "content": _digest(*sorted(held)),
                "files": sorted(self.files[kind]),
            }
            for kind, held in contents.items()
        }


def _is_own(module: str) -> bool:
    return module.partition(".")[0] == PACKAGE


def _arguments(frame: FrameType) -> list[object]:
    code = frame.f_code
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [frame.f_locals.get(name) for name in names]


def _objects(value: object, depth: int = 0) -> Iterator[object]:
    """The objects of the package in a value and in the containers in it."""
    if _is_own(type(value).__module__):
        yield value
    elif depth <= DEEPEST and isinstance(value, (tuple, list, set, frozenset)):
        for each in value:
            yield from _objects(each, depth + 1)
    elif depth <= DEEPEST and isinstance(value, dict):
        yield from _objects([*value, *value.values()], depth + 1)


def _content(value: Any, known: dict[int, str]) -> str:
    """A digest of all that a value holds; of what is no value of the package, no container, no
    array and no plain value, only the type."""
    if value is None or isinstance(value, (int, float, str, bytes)):
        return repr(value)
    if id(value) not in known:
        known[id(value)] = "..."  # while it is within itself
        known[id(value)] = _digest(type(value).__name__, *_parts(value, known))
    return known[id(value)]


def _parts(value: Any, known: dict[int, str]) -> list[str]:
    if isinstance(value, dict):
        return [_content(each, known) for pair in value.items() for each in pair]
    if isinstance(value, (set, frozenset)):
        return sorted(_content(each, known) for each in value)
    if isinstance(value, (tuple, list)):
        return [_content(each, known) for each in value]
    if type(value).__module__ == "numpy":
        return [value.tobytes().hex()]
    if not _is_own(type(value).__module__):
        return []
    names = {*getattr(value, "__dict__", ()), *getattr(value, "__struct_fields__", ())}
    return [_content(getattr(value, name), known) for name in sorted(names)]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


READ_FILES = (("--within", "0"), ("--no-measure",))
"""The option that lets `check` measure nothing: of today's trees, and of former ones."""


def main() -> None:
    """Checks ``profile.wwp`` against ``baseline.wwp`` and prints the trace as JSON."""
    from waywiser.cli import run

    trace, code = Trace(), 2
    for option in READ_FILES:
        if trace.is_over or code != 2:
            break
        trace = Trace()
        words = ["check", "profile.wwp", "--baseline", "baseline.wwp", *option]
        sys.setprofile(trace)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            code = run(words)
        sys.setprofile(None)
    if not trace.is_over:
        sys.exit(f"waywiser check ended with {code} and without a verdict")
    json.dump(trace.by_type(), sys.stdout)


if __name__ == "__main__":
    main()
