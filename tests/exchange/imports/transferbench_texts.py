"""Writes invented results as versions of TransferBench print them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

KIND = {"C": "CPU", "G": "GPU", "D": "DMA"}


@dataclass(frozen=True)
class Moved:
    """One transfer: ``G0``, ``D``, 0, 1, ``G1``, its bytes, and milliseconds of each iteration."""

    source: str
    executor: str
    index: int
    count: int
    to: str
    bytes: int
    times: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.times) / len(self.times)

    def figures(self, time: float | None = None) -> tuple[float, float]:
        """GB/s and ms."""
        time = self.mean if time is None else time
        return self.bytes / 1e6 / time, time

    @property
    def workload(self) -> str:
        """As Waywiser names it."""
        source, to = (
            f"{'device@gpu' if end[0] == 'G' else 'pinned@numa'}:{end[1:]}"
            for end in (self.source, self.to)
        )
        peers = self.source[0] == self.to[0] and self.source != self.to
        at_source = int(self.source[1:]) == self.index
        words = {}
        if self.executor == "D" and peers:
            words = {"api": "async"} | ({} if at_source else {"by": "destination"})
        if self.executor != "D" and peers and at_source:
            words["side"] = "push"
        if self.executor == "G":
            words["cus"] = str(self.count)
        if self.executor == "C" and self.count > 1:
            words["threads"] = str(self.count)
        settings = ",".join(f"{key}={words[key]}" for key in sorted(words))
        by = {"D": "copy-engine", "G": "sm", "C": "cpu"}[self.executor]
        return f"{source} -> {to} by {by}{f'[{settings}]' if words else ''} of {self.bytes}"


Test = Sequence[Moved]


def workload(test: Test) -> str:
    return "; ".join(each.workload for each in test)


def invented(rng: random.Random, executors: str = "CGD", iterations: int = 5) -> list[Moved]:
    """A test of one to three transfers, whose first iteration takes far longer."""
    found = []
    while len(found) < rng.choice((1, 1, 2, 3)):
        executor = rng.choice(executors)
        own = rng.randrange(4)
        gpu, node = f"G{own}", f"C{own % 2}"
        if executor == "C":
            own %= 2
            ends = [f"C{own}", rng.choice((f"C{1 - own}", f"G{rng.randrange(4)}"))]
        else:
            ends = [gpu, rng.choice((node, f"G{(own + rng.randrange(1, 4)) % 4}"))]
        rng.shuffle(ends)
        size = 4 * rng.choice((256, 2**18, 2**20, 2**24, 123457))
        usual = max(size / 1e6 / rng.uniform(5, 400), 0.002)
        times = [usual * rng.uniform(0.98, 1.02) for _ in range(iterations)]
        times[0] *= rng.choice((1.0, 250.0))
        count = 1 if executor == "D" else rng.choice((1, 4, 8, 32))
        found.append(Moved(ends[0], executor, own, count, ends[1], size, tuple(times)))
    return found


def _of_executors(test: Test) -> dict[tuple[str, int], list[tuple[int, Moved]]]:
    found: dict[tuple[str, int], list[tuple[int, Moved]]] = {}
    for n, each in enumerate(test):
        found.setdefault((each.executor, each.index), []).append((n, each))
    return found


def _whole(test: Test) -> tuple[float, float, int]:
    """Rate, time and bytes of all transfers."""
    size, time = sum(each.bytes for each in test), max(each.mean for each in test) * 1.01
    return size / 1e6 / time, time, size


def text_102(number: int, test: Test, shown: bool) -> str:
    lines = [f"Test {number}:"]
    for n, each in enumerate(test):
        rate, time = each.figures()
        source, to = (f"{end[0]}{int(end[1:]):02d}" for end in (each.source, each.to))
        route = f"{source} -> [{each.executor}PU {each.index:02d}:{each.count:03d}] -> {to}"
        lines.append(f" Transfer {n:02d}: {route} | {rate:9.3f} GB/s | {time:8.3f} ms | "
                     f"{each.bytes:12d} bytes | Local->Remote   ")  # fmt: skip
    rate, time, size = _whole(test)
    lines.append(f" Aggregate Bandwidth (CPU timed)         | {rate:9.3f} GB/s | {time:8.3f} ms | "
                 f"{size:12d} bytes | Overhead: 0.010 ms")  # fmt: skip
    return "\n".join(lines) + "\n"


def _bars(number: int, test: Test, shown: bool, route: Callable[[Moved], str], total: str) -> str:
    lines = [f"Test {number}:"]
    for (kind, index), found in _of_executors(test).items():
        rate, time, size = _whole([each for _, each in found])
        who = f"{KIND[kind]:>3} {index:02d}"
        lines.append(f" Executor: {who} | {rate:7.3f} GB/s | {time:8.3f} ms | "
                     f"{size:12d} bytes{total.format(rate)}")  # fmt: skip
        for n, each in found:
            rate, time = each.figures()
            lines.append(f"     Transfer {n:02d}  | {rate:7.3f} GB/s | {time:8.3f} ms | "
                         f"{each.bytes:12d} bytes | {route(each)}")  # fmt: skip
            if shown:
                for time, i in sorted((time, i) for i, time in enumerate(each.times, 1)):
                    rate, _ = each.figures(time)
                    lines.append(f"      Iter {i:03d}    | {rate:7.3f} GB/s | {time:8.3f} ms | "
                                 "CUs: 00:01 XCCs: 0")  # fmt: skip
                lines.append("      StandardDev |   1.000 GB/s |    0.100 ms |")
    rate, time, size = _whole(test)
    lines.append(f" Aggregate (CPU)  | {rate:7.3f} GB/s | {time:8.3f} ms | {size:12d} bytes | "
                 "Overhead: 0.010 ms")  # fmt: skip
    return "\n".join(lines) + "\n"


def text_150(number: int, test: Test, shown: bool) -> str:
    def route(each: Moved) -> str:
        engine = ".*" if each.executor == "D" else ""
        return (f"{each.source} -> {KIND[each.executor]}{each.index:02d}{engine}:{each.count:03d}"
                f" -> {each.to}")  # fmt: skip

    return _bars(number, test, shown, route, "")


def text_162(number: int, test: Test, shown: bool) -> str:
    def route(each: Moved) -> str:
        return f"{each.source} -> {each.executor}{each.index:03d}:{each.count:03d} -> {each.to}"

    return _bars(number, test, shown, route, " | {:7.3f} GB/s (sum)")


def _cells(test: Test, shown: bool) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for (kind, index), found in _of_executors(test).items():
        rate, time, size = _whole([each for _, each in found])
        figures = (f"{rate:8.3f} GB/s ", f"{time:8.3f} ms ", f"{size:12d} bytes ")
        rows.append(
            (f" Executor: {KIND[kind]:>3} {index:02d} ", *figures, f" {rate:7.3f} GB/s (sum)")
        )
        for n, each in found:
            rate, time = each.figures()
            figures = (f"{rate:8.3f} GB/s ", f"{time:8.3f} ms ", f"{each.bytes:12d} bytes ")
            who = f"{each.executor}{each.index}:{each.count}"
            route = f" {each.source} -> {who} -> {each.to}"
            rows.append((f"Transfer {n:<4d} ", *figures, route))
            if shown:
                for time, i in sorted((time, i) for i, time in enumerate(each.times, 1)):
                    rate, _ = each.figures(time)
                    rows.append(
                        (f"Iter {i:03d}    ", f"{rate:8.3f} GB/s ", f"{time:8.3f} ms ", "", "")
                    )
                rows.append(("StandardDev ", "   0.100 GB/s ", "   0.100 ms ", "", ""))
    rate, time, size = _whole(test)
    rows.append(("Aggregate (CPU) ", f"{rate:8.3f} GB/s ", f"{time:8.3f} ms ",
                 f"{size:12d} bytes ", " Overhead 0.010 ms"))  # fmt: skip
    return rows


def text_169(number: int, test: Test, shown: bool, border: str = "│") -> str:
    rows = _cells(test, shown)
    widths = [max(len(row[n]) for row in rows) for n in range(5)]
    lines = [
        f" {border.join(c.rjust(w) for c, w in zip(row, widths, strict=True))} " for row in rows
    ]
    line = f"-{'┬'.join('-' * width for width in widths)}-"
    return "\n".join([f"Test {number}:", line, *lines, line.replace("┬", "┴")]) + "\n"


def plain_169(number: int, test: Test, shown: bool) -> str:
    return text_169(number, test, shown, " ")


def csv_169(number: int, test: Test, shown: bool) -> str:
    rows = [",".join(row) + "," for row in _cells(test, shown)]
    return "\n".join(rows) + "\n"


def csv_150(number: int, test: Test, shown: bool) -> str:
    lines = []
    for (kind, index), found in _of_executors(test).items():
        for n, each in found:
            rate, time = each.figures()
            lines.append(f"{number},{n},{each.bytes},{each.source},{kind}{index:02d},{each.to},"
                         f"{each.count},{rate:.3f},{time:.3f},0x7f00,0x7f01")  # fmt: skip
        rate, time, _ = _whole([each for _, each in found])
        size = sum(each.bytes for each in test)
        lines.append(
            f"{number},ALL,{size},ALL,{kind}{index:02d},ALL,4,{rate:.3f},{time:.3f},ALL,ALL"
        )
    rate, time, size = _whole(test)
    lines.append(f"{number},ALL,{size},ALL,ALL,ALL,ALL,{rate:.3f},{time:.3f},ALL,ALL")
    return "\n".join(lines) + "\n"


HEADER = "Test#,Transfer#,NumBytes,Src,Exe,Dst,CUs,BW(GB/s),Time(ms),SrcAddr,DstAddr\n"
TEXT_HEAD = (
    "TransferBench v{}\n===============\n[Common]         (Suppress by setting HIDE_ENV=1)\n"
    "ALWAYS_VALIDATE      =            0 : Validating after all iterations\n"
    "NUM_ITERATIONS       =            5 : Running 5 timed iteration(s)\n"
    "NUM_WARMUPS          =            {} : Running warmup iteration(s) per Test\n"
    "USE_HIP_EVENTS       =            1 : Using HIP events for GFX/DMA Executor timing\n\n"
)
CSV_HEAD = (
    "EnvVar,Value,Description,(TransferBench v{})\nALWAYS_VALIDATE     ,           0,Validating "
    "after all iterations\nNUM_WARMUPS         ,           {},Running warmup iteration(s)\n\n"
)

STYLES: dict[str, tuple[str, Callable[[int, Test, bool], str], str, bool]] = {
    "text 1.02": (TEXT_HEAD.replace("{}", "1.02", 1), text_102, "CG", False),
    "text 1.50": (TEXT_HEAD.replace("{}", "1.50", 1), text_150, "CGD", True),
    "text 1.62": (TEXT_HEAD.replace("{}", "1.62.00", 1), text_162, "CGD", True),
    "text 1.69": (TEXT_HEAD.replace("{}", "1.69.00", 1), text_169, "CGD", True),
    "text 1.69 without borders": (TEXT_HEAD.replace("{}", "1.69.00", 1), plain_169, "CGD", True),
    "csv 1.69": (TEXT_HEAD.replace("{}", "1.69.00", 1), csv_169, "CGD", True),
    "csv 1.62": (CSV_HEAD.replace("{}", "1.62.00", 1) + HEADER, csv_169, "CGD", True),
    "csv 1.50": (CSV_HEAD.replace("{}", "1.50", 1) + HEADER, csv_150, "CGD", False),
}
"""What stands at the top, what writes a test, the executors that the version has, and whether it
shows iterations."""


def written(style: str, tests: Sequence[Test], shown: bool, warmups: int = 3) -> str:
    head, write, _, _ = STYLES[style]
    return head.format(warmups) + "".join(write(n, test, shown) for n, test in enumerate(tests, 1))


PEAK = "{}directional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)"


def peer_matrix(
    rng: random.Random, cpus: int, gpus: int, comma: str = ""
) -> tuple[str, dict[str, float]]:
    """The two tables of p2p, and the rate of each way by ``CPU 00 -> GPU 01`` or, of a pair, by
    ``CPU 00 <-> GPU 01``, both in the order of the row."""
    devices = [f"CPU {n:02d}" for n in range(cpus)] + [f"GPU {n:02d}" for n in range(gpus)]
    known: dict[str, float] = {}
    head = "".join(f"   {device}{comma}" for device in devices)
    lines = [PEAK.format("Uni"),
             f" SRC+EXE\\DST{comma}{head}"]  # fmt: skip
    for source in devices:
        cells = []
        for to in devices:
            known[f"{source} -> {to}"] = round(rng.uniform(5, 900), 2)
            cells.append(f"{known[f'{source} -> {to}']:10.2f}{comma}")
        lines.append(f"  {source}  ->{comma}{''.join(cells)}")
    lines += ["                           CPU->CPU  CPU->GPU  GPU->CPU  GPU->GPU",
              "Averages (During UniDir):     22.23     16.35     23.77     37.74", "",
              PEAK.format("Bi"),
              f"     SRC\\DST{comma}{head}"]  # fmt: skip
    for source in devices:
        rows: dict[str, list[str]] = {"->": [], "<-": [], "<->": []}
        for to in devices:
            if source == to:
                for cells in rows.values():
                    cells.append(f"       N/A{comma}")
                continue
            there, back = (round(rng.uniform(5, 900), 2) for _ in range(2))
            known[f"{source} <-> {to}"] = there
            known[f"{source} <-> {to} back"] = back
            for arrow, rate in zip(rows, (there, back, there + back), strict=True):
                rows[arrow].append(f"{rate:10.2f}{comma}")
        lines += [f"  {source} {arrow:>3}{comma}{''.join(cells)}" for arrow, cells in rows.items()]
        lines.append("")
    return "\n".join(lines) + "\n", known
