"""What a verb has found: as text, and as the document that ``--json`` prints."""

from __future__ import annotations

import html
import io
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from waywiser.words import Status, WaywiserError, visible

if TYPE_CHECKING:
    from waywiser.render.parts import Block, Section

FileName = str | os.PathLike[str]

CLEAN, FINDING, INCONCLUSIVE = 0, 1, 3
"""Exit codes of what was done."""

COLUMNS = 120
"""Width of the text."""


def file_names(names: Iterable[FileName]) -> list[str]:
    """The names of at least one file. Raises `WaywiserError` for none."""
    files = [os.fspath(each) for each in names]
    if not files:
        raise WaywiserError("no file is named", remedy="name a profile (.wwp)")
    return files


class VerbResult:
    """What a verb has found. As text it is what the command prints."""

    def __init__(
        self,
        result: Any,
        document: Callable[[], Any],
        parts: Callable[[], Iterable[Block | Section]],
        *,
        exit_code: int = 0,
        said: Sequence[str] = (),
        content: str | None = None,
    ) -> None:
        """``content`` is the text of a command that prints a file of text."""
        self.result: Any = result
        """What was found, as the types of the packages have it."""
        self._document = document
        self._parts = parts
        self._content = content
        self.exit_code: int = exit_code
        """That of the command."""
        self.said: tuple[str, ...] = tuple(said)
        """What the command says on standard error."""

    @property
    def document(self) -> Any:
        """What ``--json`` prints."""
        return self._document()

    @property
    def parts(self) -> Iterable[Block | Section]:
        """The text of the command before it is laid out."""
        return self._parts()

    def __repr__(self) -> str:
        if self._content is not None:
            return self._content
        from rich.console import Console

        from waywiser.render.terminal import print_parts

        text = io.StringIO()
        console = Console(file=text, width=COLUMNS, color_system=None, legacy_windows=False)
        print_parts(console, self.parts)
        return visible(text.getvalue().rstrip("\n"))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return f"<pre>{html.escape(repr(self))}</pre>"


def exit_code_of(worst: Status) -> int:
    """The exit code for the worst status of all that was compared."""
    return {Status.OK: CLEAN, Status.FAILED: FINDING}.get(worst, INCONCLUSIVE)


def together(results: Sequence[tuple[str, VerbResult]]) -> VerbResult:
    """The result of a verb that gives several, each with a name; one alone is itself."""
    if len(results) == 1:
        return results[0][1]
    return VerbResult(
        {name: each.result for name, each in results},
        lambda: {"schema": 1, **{name: each.document for name, each in results}},
        lambda: (part for _, each in results for part in each.parts),
        exit_code=max(each.exit_code for _, each in results),
        said=[line for _, each in results for line in each.said],
    )
