"""The system's own files (/proc, /sys, /etc) under a root that tests replace."""

from __future__ import annotations

import os
import re
from pathlib import Path

from waywiser.words import ranges_of


class SystemFiles:
    """Reads small files below ``root``; whatever is missing or forbidden reads as None."""

    def __init__(self, root: str | Path = "/") -> None:
        self.root = Path(root)

    def text(self, path: str) -> str | None:
        """Contents without surrounding white space, or None."""
        try:
            return (self.root / path.lstrip("/")).read_text(errors="replace").strip("\0 \n\t")
        except OSError:
            return None

    def integer(self, path: str) -> int | None:
        """The file's one decimal or 0x-prefixed number, or None if it holds none."""
        text = self.text(path)
        try:
            return int(text, 0) if text is not None else None
        except ValueError:
            return None

    def data(self, path: str, most: int) -> bytes:
        """The first ``most`` bytes, or as many as may be read; empty if none."""
        try:
            with (self.root / path.lstrip("/")).open("rb") as file:
                return file.read(most)
        except OSError:
            return b""

    def real(self, path: str) -> str:
        """The path without symbolic links, written from ``/``; empty if it is missing."""
        try:
            found = (self.root / path.lstrip("/")).resolve(strict=True)
            return "/" + str(found.relative_to(self.root.resolve()))
        except (OSError, ValueError, RuntimeError):
            return ""

    def link(self, path: str) -> str:
        """The last part of what a symbolic link points at; empty without a link there."""
        try:
            return os.path.basename(os.readlink(self.root / path.lstrip("/")))
        except OSError:
            return ""

    def may_open(self, path: str) -> bool | None:
        """Whether this process may open a file to read and write it; None if it is missing. Opens
        nothing: to open the node of a GPU wakes it up."""
        place = self.root / path.lstrip("/")
        if os.access(place, os.R_OK | os.W_OK, effective_ids=True):
            return True
        return False if os.path.lexists(place) else None

    def chosen(self, path: str) -> str | None:
        """The word in brackets of a file of choices: ``always [madvise] never``."""
        match = re.search(r"\[(.*?)\]", self.text(path) or "")
        return match[1] if match else None

    def fields(self, path: str) -> dict[str, str]:
        """Lines ``key: value`` or ``key=value``; the first of equal keys counts."""
        found: dict[str, str] = {}
        for line in (self.text(path) or "").splitlines():
            key, separator, value = line.partition("=" if "=" in line.split(":")[0] else ":")
            if separator:
                found.setdefault(key.strip(), value.strip().strip('"'))
        return found

    def kibibytes(self, path: str) -> dict[str, int]:
        """Those of `fields` that are numbers, as /proc/meminfo has them: of KiB."""
        fields = self.fields(path).items()
        return {name: int(value.split()[0]) for name, value in fields if value[:1].isdigit()}

    def find(self, pattern: str) -> list[str]:
        """Paths below the root that match the glob pattern, sorted, written from ``/``."""
        try:
            matches = sorted(self.root.glob(pattern.lstrip("/")))
        except OSError:
            return []
        return ["/" + str(match.relative_to(self.root)) for match in matches]

    def names(self, directory: str) -> list[str]:
        """Names of the entries of a directory, sorted; empty if it is missing."""
        try:
            return sorted(entry.name for entry in (self.root / directory.lstrip("/")).iterdir())
        except OSError:
            return []


def parse_list(text: str) -> tuple[int, ...]:
    """The kernel's lists of numbers: ``0-3,8`` is (0, 1, 2, 3, 8)."""
    numbers: set[int] = set()
    for piece in filter(None, (part.strip() for part in text.split(","))):
        first, _, last = piece.partition("-")
        if first.isdigit() and (last or first).isdigit():
            numbers.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(numbers))


def format_list(numbers: tuple[int, ...]) -> str:
    """The inverse of `parse_list`: (0, 1, 2, 3, 8) is ``0-3,8``."""
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges_of(numbers))
