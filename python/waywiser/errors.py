"""The base of every error that the package raises on purpose. Imports nothing."""

from __future__ import annotations


class WaywiserError(Exception):
    """Base of every error this package raises on purpose: one line, with what, where and remedy.

    ``exit_code`` is what the command line exits with when the error reaches the edge.
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        line = f"{where}: {what}" if where else what
        super().__init__(f"{line} ({remedy})" if remedy else line)
