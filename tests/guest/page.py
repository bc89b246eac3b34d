"""Writes the table of docs/results/2026-11-29-emulated-placement.md, from the emulated machine with
two sockets: python tests/guest/page.py"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / each) for each in ("scripts", "tests", "tests/guest")]

from test_guests import MPICC, compiled_bridge, exports  # noqa: E402

from guest_machines.image import image  # noqa: E402
from guest_machines.run import run_script  # noqa: E402
from guest_machines.table import GUESTS  # noqa: E402
from waywiser.machine.system_files import format_list, parse_list  # noqa: E402

PAGE = ROOT / "docs" / "results" / "2026-11-29-emulated-placement.md"
BEGIN, END = "<!-- made -->\n", "<!-- end -->\n"
EVERY = "0-3"
"""The CPUs of threads that are not bound."""

FIGURES = (
    ("copies", "figure 2", lambda text: "numa" in text and "staged" not in text),
    ("copies", "figures 3 and 5", lambda text: text.startswith("device@gpu:0 -> device@gpu:1")),
    ("copies", "section II.B", lambda text: "pageable@numa" in text and "staged" in text),
    ("copies", "section IV.B", lambda text: "file@" in text),
    ("messages", "figure 4", lambda text: "@rank" in text),
)
"""The part of what was found, the figure of the paper, and whether a workload is of it."""


def table(found: dict[str, Any]) -> Iterator[str]:
    """The rows, as Markdown."""
    yield "| paper | transfer of 1 MiB | buffers verified | bound memory | bound threads on CPUs |"
    yield "|---|---|---|---|---|"
    for part, figure, is_of in FIGURES:
        for row in found[part]:
            text = row["workload"].replace(" of 1048576", "")
            if is_of(text):
                states = [state for _, state, _ in row["buffers"]]
                verified = f"{states.count('verified')} of {len(states)}"
                nodes = _by_rank(row["nodes"], lambda known: f"node {format_list(known)}")
                cpus = _by_rank(row["threads"], format_list)
                cells = (figure, f"`{text}`", row["failure"] or verified, nodes, cpus)
                yield f"| {' | '.join(cells)} |"


def _by_rank(pairs: list[tuple[int, str]], said: Any) -> str:
    """What is known of each rank; of workers, which are no ranks, all together."""
    ranks = sorted({rank for rank, _ in pairs})
    known = {}
    for rank in ranks:
        own = [set(parse_list(each)) for of, each in pairs if of == rank and each != EVERY]
        known[rank] = said(tuple(sorted(set[int]().union(*own))))
    if len(ranks) == 1:
        return str(known[ranks[0]])
    return "; ".join(f"rank {rank}: {each}" for rank, each in known.items()) or "none"


def write(found: dict[str, Any]) -> None:
    """Puts the table between the marks of the page."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + "".join(f"{row}\n" for row in table(found)) + END + after)


def main() -> None:
    guest = GUESTS["two-sockets"]
    script = f"{exports()}\n{ROOT}/.venv/bin/python {ROOT}/tests/guest/inside.py figures\n"
    with tempfile.TemporaryDirectory() as folder:
        files = compiled_bridge(Path(folder)) if MPICC.exists() else {}
    ended = run_script(guest, image(guest.processor), script, files=files, seconds=900.0)
    write(json.loads(ended.files["facts.json"])["figures"])


if __name__ == "__main__":
    main()
