"""What can be wrong with another tool's file: typed, in one line, with file and place."""

from __future__ import annotations

from waywiser.words import WaywiserError


class ImportFailed(WaywiserError):
    """A file, or several together, that cannot be imported. ``exit_code`` is 2."""


class EmptyFile(ImportFailed):
    """A file without a single byte of content, as a benchmark that never ran leaves behind."""


class Malformed(ImportFailed):
    """A file of a known format that breaks its rules: where, what was expected."""


class NoTable(Malformed):
    """A text that names a benchmark and has no table of it."""


class UnknownFormat(ImportFailed):
    """A file that is of none of the formats."""
