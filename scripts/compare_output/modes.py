"""Where the output of a command goes: a pipe, or a terminal of some width, with or without colour;
and the machine that it runs on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TWO_GPUS = "two GPUs"
NO_GPU = "no GPU"


@dataclass(frozen=True)
class Mode:
    """A pipe if it has no columns."""

    columns: int = 0
    colour: bool = False

    def __str__(self) -> str:
        if not self.columns:
            return "pipe"
        return f"{self.columns} columns, {'colour' if self.colour else 'plain'}"


PIPE = Mode()
TERMINALS = tuple(Mode(columns, colour) for columns in (60, 80, 200) for colour in (True, False))
ALL = (PIPE, *TERMINALS)
FEW = (PIPE, Mode(60, False), Mode(80, True), Mode(200, True))


@dataclass(frozen=True)
class Command:
    """One command line, with what is run before it and is not recorded."""

    words: tuple[str, ...]
    mode: Mode = PIPE
    inputs: tuple[str, ...] = ()
    """Files and folders that it reads, as `inputs.Inputs` names them."""
    before: tuple[tuple[str, ...], ...] = ()
    machine: str = NO_GPU

    @property
    def name(self) -> str:
        """What identifies it in every record."""
        lines = [" ".join(map(_quoted, words)) for words in (*self.before, self.words)]
        on = "" if self.machine == NO_GPU else f", {self.machine}"
        return f"{' && '.join(lines)} [{self.mode}{on}]"

    def as_json(self) -> dict[str, Any]:
        return {
            "words": self.words,
            "columns": self.mode.columns,
            "colour": self.mode.colour,
            "inputs": self.inputs,
            "before": self.before,
            "machine": self.machine,
        }


def _quoted(word: str) -> str:
    return word if word and not set(word) & set(" ;<>*'\"") else repr(word)
