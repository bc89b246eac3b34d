"""``waywiser export``: a profile in the formats of other programs, or settings of theirs."""

from __future__ import annotations

import io
import os
import shutil
import sys

import waywiser
from waywiser.cli.app import given_of, print_verb, verb
from waywiser.words import WaywiserError


@verb("Write a profile, settings, a policy or a model for other programs.")
def export(
    files: list[str],
    summary: bool = False,
    format: str = "",
    output: str = "",
    for_: str = "",
    piece: str = "",
    source: str = "",
    ranks_per_gpu: int = 1,
) -> None:
    """Write a profile's samples or a summary, its policy for waywiser.transfer, or settings and a
    model for other programs.

    FILE...: A profile (.wwp); with --for waywiser several of one machine; with --format parquet a
        folder of profiles.
    --summary: Write a row per path and size: bandwidth, latency and intervals.
    --format FORMAT: json, csv (a row per sample), parquet (the same, with
        pyarrow) or google-benchmark (its JSON, under Comm|Scope's names); by default what the name
        of -o says, else json. parquet of a folder of profiles is a data set: a file for each past
        day. With --for slurm, mpich or openmpi: json has the reasons too.
    -o, --output FILE: By default standard output, or with -. A terminal gets more than a screen of
        text only with -. Of a folder of profiles the data set is written to this folder, by default
        beside them.
    --for PROGRAM: Write for another program. waywiser: which method is fastest for each copy, as
        waywiser.transfer reads it; a former policy is replaced. ucx, vllm, sglang, flexkv,
        kv-offload (JSON): settings from what was measured. reframe (JSON): references for a test of
        ReFrame. slurm, mpich (options), openmpi (a rankfile): one process for each GPU on the
        better NUMA node; standard error has the reasons. simgrid, astra-sim, model (JSON): the
        model of the machine. normal-values: rows for a table of what machines reach, which name
        no host, user, address or serial number; they are shown before -o FILE is written.
    --piece SIZE: Bytes of one piece of the KV cache, as 32KiB, for --for sglang or flexkv.
    --source SOURCE: The page (https://...) or the repository (owner/name:path) where others find
        the profile, for --for normal-values; by default "sent", for rows that you send.
    --ranks-per-gpu N: For --for slurm, mpich or openmpi; by default 1.

    waywiser export node.wwp --for waywiser -o machine.json
        write the policy of this machine for waywiser.transfer
    waywiser export nodes --format parquet
        write a data set of all profiles of a folder
    """
    given = given_of(locals())
    is_of_folder = format == "parquet" and os.path.isdir(files[0])
    screen = None
    if not output and not is_of_folder:
        screen = OneScreen() if sys.stdout.isatty() else None
        given["output"] = screen or "-"
    found = waywiser.export(*given.pop("files"), **given)
    if screen is not None:
        sys.stdout.write(screen.text)
    print_verb(found)


class TooLongForScreen(WaywiserError):
    """Text that a terminal is not asked to show."""


class OneScreen(io.StringIO):
    """Keeps what is written. Raises `TooLongForScreen` as soon as it has more lines than the
    terminal, less one for the next prompt."""

    def __init__(self) -> None:
        super().__init__(newline="")
        self._size = shutil.get_terminal_size()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._lines() >= self._size.lines:
            raise TooLongForScreen(
                f"this is more than the {self._size.lines} lines of the terminal",
                remedy="write it to a file with -o FILE, or to the terminal with -o -",
            )
        return written

    @property
    def text(self) -> str:
        """What was written."""
        return self.getvalue()

    def _lines(self) -> int:
        """Lines of the terminal, which folds long ones."""
        width = max(1, self._size.columns)
        return sum(max(1, -(-len(line) // width)) for line in self.text.splitlines())
