"""Damaged texts: a typed error of one line or figures of the text, and nothing else.

``MUTATED_TEXTS=20000`` tries more of them.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from exchange.imports.made_texts import NOISE, made
from exchange.imports.test_made_texts import read
from waywiser.exchange.imports.foreign_file import ForeignSeries, ImportFailed

COUNT = int(os.environ.get("MUTATED_TEXTS", "240"))
PARTS = 8
DATA = Path(__file__).parent / "data"
FILES = [
    path.read_text() for path in sorted(DATA.iterdir()) if path.suffix in (".txt", ".out", ".csv")
]
WORDS = ("mpirun -np 3 ", "$ ", "export UCX_TLS=tcp\n", "D D", "osu_bw", ": ", "nan", "-1", "\x00",
         "'", '"', "$(", "\\\n", "[1,0]<stdout>:", "0: ", "# OSU MPI-CUDA Latency Test v7.5\n",
         "# Size       Avg Latency(us)\n", "nvbandwidth Version: v0.8\n", "&&", " | ")  # fmt: skip


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 5)):
        lines = text.split("\n")
        n = rng.randrange(len(lines))
        kind = rng.randrange(8)
        if kind == 0:
            del lines[n]
        elif kind == 1:
            lines.insert(rng.randrange(len(lines)), lines[n])
        elif kind == 2:
            other = rng.randrange(len(lines))
            lines[n], lines[other] = lines[other], lines[n]
        elif kind == 3:
            lines[n] = lines[n][: rng.randrange(len(lines[n]) + 1)]
        elif kind == 4:
            at = rng.randrange(len(lines[n]) + 1)
            lines[n] = f"{lines[n][:at]}{rng.choice(WORDS)}{lines[n][at:]}"
        elif kind == 5:
            lines.insert(n, rng.choice(NOISE))
        elif kind == 6:
            lines = lines[: n + 1]
        else:
            at = rng.randrange(len(lines[n]) + 1)
            character = rng.choice("0123456789.,:[]<>#$|&;'\"\\ \t")
            lines[n] = f"{lines[n][:at]}{character}{lines[n][at + 1 :]}"
        text = "\n".join(lines) or "x"
    return text


def figures(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?", text)]


def is_in(series: ForeignSeries, seconds: float, known: list[float]) -> bool:
    """Whether a time is a figure of the text: in µs, ms, s or ns, or as a rate of its bytes."""
    workload = series.workload
    sizes = {workload.bytes, *(each.bytes for each in workload.transfers)}
    forms = [seconds, seconds * 1e3, seconds * 1e6, seconds * 1e9]
    forms += [size / seconds / unit for size in sizes for unit in (1e6, 1e9)]
    return any(abs(form - each) <= 2e-3 * each + 1e-12 for form in forms for each in known if each)


@pytest.mark.parametrize("part", range(PARTS))
def test_no_value_that_is_not_in_the_text(part: int, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for n in range(part, COUNT, PARTS):
        rng = random.Random(f"mutation {n}")
        text = rng.choice(FILES) if n % 3 == 0 else made(rng).text
        text = mutated(rng, text)
        path.write_text(text)
        try:
            files = read(path)
        except ImportFailed as error:
            assert "\n" not in str(error)
            continue
        known = figures(text)
        for series in (each for file in files for each in file.measured):
            for seconds in series.samples.span:
                assert is_in(series, seconds, known), f"{series.workload}: {seconds}\n{text}"
