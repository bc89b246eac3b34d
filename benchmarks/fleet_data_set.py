"""How a data set of a fleet grows: bytes, and the cost of questions and of judging its nights.

    python benchmarks/fleet_data_set.py [--node-nights 1000 10000] [--paths 100] [--checked 10000]
        [--folder FOLDER] [-o FILE] [--figure FILE]

Everything is drawn, in at most `NIGHTS` nights: the bandwidth of each path of a node
has a deviation of 1 % from node to node and of 1 % from night to night, that of eight processes
0.5 %. One path of one node loses 5 % in the middle of the nights. Costs are CPU seconds, wall time
and the memory of each question, which has two CPUs. Every number but the costs follows from the
numbers of nodes, nights and paths.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "python")]

from command_cost import DECIDED, CommandCost, command_cost, waywiser_command  # noqa: E402

NIGHTS = 365
"""Nights of a fleet at most."""

QUESTIONS = ("slow", "shift", "last", "check")
PROCESSES = 8
LOSS = 0.95
BETWEEN_NODES = BETWEEN_NIGHTS = 0.01
BETWEEN_PROCESSES = 0.005
LAST_DAYS = 30
FIRST = datetime(2026, 1, 1, 3, tzinfo=UTC)

SLOW = f"""SELECT host, name, median(seconds) FROM nights WHERE followed AND
    day > CAST((SELECT max(day)::DATE FROM nights) - {LAST_DAYS} AS VARCHAR)
    GROUP BY ALL ORDER BY ALL"""

SHIFTS = """WITH night AS (SELECT host, name, day, ln(seconds) AS value FROM nights WHERE followed),
    halves AS (SELECT host, name, avg(value) OVER before AS before, avg(value) OVER after AS after,
        count(*) OVER before AS earlier, count(*) OVER after AS later, day FROM night
        WINDOW before AS (PARTITION BY host, name ORDER BY day
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            after AS (PARTITION BY host, name ORDER BY day
                ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING))
    SELECT host, name, day, exp(before - after) AS ratio FROM halves WHERE earlier > 0
    ORDER BY abs(after - before) * sqrt(earlier * later / (earlier + later)) DESC LIMIT 1"""


def draw(folder: Path, nodes: int, nights: int, paths: int) -> tuple[str, str, str]:
    """Writes the days of a fleet, and returns the host, the path and the day of the loss."""
    record, cpus = _record(), len(os.sched_getaffinity(0))
    pool = ProcessPoolExecutor(min(cpus, nights), get_context("spawn"))
    with pool:
        one_night = partial(_draw_night, folder, nodes, nights, paths, record)
        list(pool.map(one_night, range(nights)))
    day = (FIRST + timedelta(days=nights // 2)).date().isoformat()
    return _host(nodes // 2), _name(paths // 2), day


def _host(node: int) -> str:
    return f"n{node:05}"


def _name(path: int) -> str:
    return f"H2D gpu:{path % 8} of path {path}"


def _draw_night(folder: Path, nodes: int, nights: int, paths: int, record: str, night: int) -> None:
    import pyarrow as arrow

    from waywiser.analysis.dataset.columns import STEPS
    from waywiser.analysis.dataset.engines import arrow_schema
    from waywiser.analysis.dataset.files import PACKED_LEVEL, write_table
    from waywiser.analysis.dataset.rows import two_digits

    rng = np.random.default_rng([nodes, nights, paths])
    hosts, names = list(map(_host, range(nodes))), list(map(_name, range(paths)))
    curves = [f"pinned@numa:0 -> device@gpu:{n % 8} by drawn[{n}]" for n in range(paths)]
    base = np.log(rng.uniform(0.5e-3, 5e-3, paths))
    own = base + rng.normal(0, BETWEEN_NODES, (nodes, paths))
    rows = nodes * paths
    rng = np.random.default_rng([nodes, nights, paths, night])
    began = FIRST + timedelta(days=night)
    logs = own + rng.normal(0, BETWEEN_NIGHTS, (nodes, paths))
    if night >= nights // 2:
        logs[nodes // 2, paths // 2] -= np.log(LOSS)
    apart = rng.normal(0, BETWEEN_PROCESSES, (rows, PROCESSES))
    apart -= np.median(apart, axis=1, keepdims=True)
    seconds = np.exp(logs.ravel())

    def each_node(values: Sequence[Any]) -> Any:
        index = arrow.array(np.repeat(np.arange(nodes, dtype=np.int32), paths))
        return arrow.DictionaryArray.from_arrays(index, arrow.array(values))

    def each_path(values: Sequence[Any]) -> Any:
        index = arrow.array(np.tile(np.arange(paths, dtype=np.int32), nodes))
        return arrow.DictionaryArray.from_arrays(index, arrow.array(values))

    gpus = [json.dumps([{"index": 0, "uuid": f"GPU-{host}", "pci": ""}]) for host in hosts]
    columns = {
        "run": each_node([f"{night:08x}{n:08x}" for n in range(nodes)]),
        "host": each_node(hosts),
        "measured": arrow.repeat(arrow.scalar(began, arrow.timestamp("ms", "UTC")), rows),
        "class": arrow.repeat("8 × Drawn GPU; Drawn CPU", rows),
        "number": arrow.array(np.tile(np.arange(paths, dtype=np.int32), nodes)),
        "path": each_path(curves),
        "name": each_path(names),
        "group": arrow.repeat("H2D", rows),
        "bytes": arrow.array(np.full(rows, 2**26)),
        "followed": arrow.array(np.ones(rows, bool)),
        "processes": arrow.array(np.full(rows, PROCESSES, np.int32)),
        "seconds": arrow.array(seconds.astype(np.float32)),
        "fastest": arrow.array((seconds * np.exp(apart.min(axis=1))).astype(np.float32)),
        "noise": arrow.array(two_digits(apart.std(axis=1, ddof=1))),
        "shift": arrow.array(np.zeros(rows, np.float32)),
        "deviations": arrow.ListArray.from_arrays(
            np.arange(rows + 1, dtype=np.int32) * PROCESSES,
            np.rint(apart * STEPS).astype(np.int32).ravel(),
        ),
        "gpus": each_node(gpus),
        "facts": arrow.repeat('{"driver":"580.1"}', rows),
        "driver": arrow.repeat("580.1", rows),
        "record": arrow.array([record, *[None] * (paths - 1)] * nodes),
        "file": each_node([f"{host}-{night}.wwp" for host in hosts]),
        "file_bytes": arrow.array(np.full(rows, 300_000)),
        "file_modified": arrow.array(np.full(rows, night + 1)),
        "metric": arrow.repeat("time", rows),
    }
    schema = arrow_schema(arrow)
    empty = arrow.repeat("", rows)
    table = arrow.Table.from_arrays(
        [_plain(columns.get(field.name, empty)).cast(field.type) for field in schema],
        schema=schema,
    )
    day = began.date().isoformat()
    write_table(table, folder / f"day={day}" / "all-drawn.parquet", PACKED_LEVEL)


def _plain(column: Any) -> Any:
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _record() -> str:
    """The record of a run of a simulated machine."""
    from kept import RESULTS, unpacked
    from waywiser.analysis.dataset.rows import read_rows

    with tempfile.TemporaryDirectory() as folder:
        kept = RESULTS / "2026-11-22-check-two-gpus" / "check-1.wwp.xz"
        return str(read_rows(str(unpacked(kept, Path(folder) / "a.wwp"))).columns["record"][0])


def ask(what: str, folder: str) -> None:
    """Answers one question, in a process of its own, and prints what was found."""
    import waywiser

    relation = waywiser.fleet(folder, since=_last_days(folder)[0] if what == "slow" else "")
    found = relation.query("nights", SLOW if what == "slow" else SHIFTS).fetchall()
    print(len(found) if what == "slow" else found)


def _last_days(folder: str | Path) -> list[str]:
    return [path.name[4:] for path in sorted(Path(folder).glob("day=*"))][-LAST_DAYS:]


def cost(what: str, folder: Path) -> CommandCost:
    """Returns what a question costs, or a check of all nights or of the last ones."""
    if what == "check":
        return command_cost(waywiser_command("check", folder), DECIDED)
    if what == "last":
        first = _last_days(folder)[0]
        return command_cost(
            waywiser_command("check", folder, "--since", f"{first}/{first}"), DECIDED
        )
    return command_cost([sys.executable, __file__, "--ask", what, "--folder", str(folder)])


def growth(
    sizes: Sequence[int], paths: int, checked: int, questions: Sequence[str], parent: Path
) -> Iterator[dict[str, Any]]:
    """What each number of node-nights costs."""
    for size in sizes:
        nodes = max(4, round(size**0.5), -(-size // NIGHTS))
        nights = max(2, round(size / nodes))
        folder = parent / f"{size}"
        shutil.rmtree(folder, ignore_errors=True)
        planted = draw(folder, nodes, nights, paths)
        stored = sum(path.stat().st_size for path in folder.rglob("*.parquet"))
        row: dict[str, Any] = {
            "node_nights": nodes * nights, "nodes": nodes, "nights": nights, "paths": paths,
            "bytes_a_row": stored / (nodes * nights * paths), "megabytes": stored / 1e6,
        }  # fmt: skip
        for what in questions:
            if what in ("last", "check") and size > checked:
                continue
            found = cost(what, folder)
            row |= {
                f"{what}_cpu_s": found.cpu_seconds,
                f"{what}_wall_s": found.wall_seconds,
                f"{what}_mib": found.most_mib,
            }
            if what in ("shift", "check"):
                row[f"{what}_found"] = all(word in found.output for word in planted[:2])
        yield row
        shutil.rmtree(folder, ignore_errors=True)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [f"| {' | '.join(name.replace('_', ' ') for name in names)} |"]
    lines.append("|" + "---|" * len(names))
    for row in rows:
        cells = (row.get(name, "") for name in names)
        texts = (f"{c:,.1f}" if isinstance(c, float) else f"{c}" for c in cells)
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def draw_figure(rows: Sequence[dict[str, Any]], file: Path) -> None:
    """CPU seconds and bytes over node-nights."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6.4, 4))
    labels = {"slow": f"medians of {LAST_DAYS} nights", "shift": "the one shift of all nights",
              "last": f"waywiser check --since {LAST_DAYS}d/{LAST_DAYS}d",
              "check": "waywiser check of all nights"}  # fmt: skip
    for what, label in labels.items():
        known = [(r["node_nights"], r[f"{what}_cpu_s"]) for r in rows if f"{what}_cpu_s" in r]
        if known:
            axis.loglog(*zip(*known, strict=True), "o-", label=label)
    axis.set_xlabel("node-nights")
    axis.set_ylabel("CPU seconds")
    axis.legend()
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    words = argparse.ArgumentParser(description="How a data set of a fleet grows.")
    words.add_argument(
        "--node-nights", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_100]
    )
    words.add_argument("--paths", type=int, default=100)
    words.add_argument("--checked", type=int, default=10_000, help="node-nights that are checked")
    words.add_argument("--folder", type=Path)
    words.add_argument("--questions", choices=QUESTIONS, nargs="+", default=[*QUESTIONS])
    words.add_argument("--ask", choices=("slow", "shift"), help=argparse.SUPPRESS)
    words.add_argument("-o", "--output", type=Path)
    words.add_argument("--figure", type=Path)
    given = words.parse_args()
    if given.ask:
        ask(given.ask, str(given.folder))
        return
    with tempfile.TemporaryDirectory(prefix="waywiser-fleet-") as temporary:
        parent = given.folder or Path(temporary)
        rows = list(growth(given.node_nights, given.paths, given.checked, given.questions, parent))
    text = table(rows)
    if given.output:
        given.output.write_text(text)
    else:
        print(text, end="")
    if given.figure:
        draw_figure(rows, given.figure)


if __name__ == "__main__":
    main()
