#!/usr/bin/env python
"""Imports the same files by two versions of the program, and prints what differs:
``python benchmarks/compare_imports.py OLD NEW FILE...``. OLD and NEW are folders with the package
``waywiser``; a FILE may be a folder, which is imported as one.

Two imports are equal if they have the same rows: series, bytes, block, time, repetitions and rate.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

COLUMNS = ("curve", "bytes", "block", "span_seconds", "repetitions", "gb_per_s", "simulated")

Rows = Counter[tuple[str, ...]]


def run(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "waywiser", *arguments],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )


def imported(package: Path, file: Path, folder: Path) -> Rows | str:
    """The rows of ``file``, or the message that rejects it."""
    profile = folder / "imported.wwp"
    profile.unlink(missing_ok=True)
    done = run(package, "import", str(file), "-o", str(profile))
    if done.returncode != 0 or not profile.exists():
        lines = done.stderr.strip().splitlines()
        return lines[0] if lines else f"ended with {done.returncode}"
    rows = run(package, "export", str(profile), "--format", "csv").stdout.splitlines()
    return Counter(tuple(row[name] for name in COLUMNS) for row in csv.DictReader(rows))


def difference(old: Rows | str, new: Rows | str) -> str | None:
    """A sentence, or None for equal imports."""
    if old == new:
        return None
    if isinstance(old, str):
        now = new if isinstance(new, str) else f"{new.total()} rows"
        return f"rejected before: {old}; now: {now}"
    if isinstance(new, str):
        return f"{old.total()} rows before, now rejected: {new}"
    return f"{(old - new).total()} of {old.total()} rows are gone, {(new - old).total()} are new"


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the imports of two versions.")
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    options = parser.parse_args()
    same = 0
    with tempfile.TemporaryDirectory() as name:
        for file in options.files:
            found = [imported(each, file, Path(name)) for each in (options.old, options.new)]
            text = difference(*found)
            if text is None:
                same += 1
            else:
                print(f"{file.name}: {text}")
    print(f"{same} of {len(options.files)} are equal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
