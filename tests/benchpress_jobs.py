"""Texts of BenchPress for an invented machine, whose times follow simple formulas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np


class InventedCluster(NamedTuple):
    """Two nodes; seconds and seconds per byte."""

    ranks: int = 8
    """Processes of a node."""
    gpus: int = 4
    sizes: int = 12
    jobs: int = 3
    noise: float = 0.01
    """The deviation of a time, as a logarithm."""
    direct: tuple[float, float] = (6e-6, 1.7e-10)
    host: tuple[float, float] = (1.5e-6, 8e-11)
    copy: tuple[float, float] = (10e-6, 2.4e-11)
    off_socket: float = 1.2
    """How much longer a copy across sockets takes."""
    limit: float = 3e-11

    def of_direct(self, count: int, bytes: float) -> float:
        return count * (self.direct[0] + bytes * self.direct[1])

    def of_host(self, count: int, bytes: float) -> float:
        return count * (self.host[0] + bytes * self.host[1])

    def of_copy(self, bytes: float, factor: float = 1.0) -> float:
        return factor * (self.copy[0] + bytes * self.copy[1])

    def of_shares(self, processes: int, bytes: float) -> float:
        return max(self.host[0] + bytes * self.host[1], processes * bytes * self.limit)

    def of_own_copies(self, processes: int, bytes: float) -> float:
        return processes * self.copy[0] + bytes * processes * self.copy[1]

    def time(self, name: str, count: int, bytes: int, processes: int) -> float:
        """The true time of a strategy, with copies on-socket."""
        total = count * bytes
        if name == "direct":
            return self.of_direct(count, bytes)
        if name == "3-step":
            return 2 * self.of_copy(total) + self.of_host(count, bytes)
        shared = self.of_shares(processes, total / processes)
        if name == "all cores":
            return 2 * self.of_copy(total) + shared
        return 2 * self.of_own_copies(processes, total / processes) + shared

    def write(self, folder: Path, seed: int = 0) -> list[Path]:
        """One file for each job, with all tables but those of node_pong."""
        found = []
        for job in range(self.jobs):
            scatter = np.random.default_rng([seed, job]).normal(0, self.noise, 10_000)
            factors = iter(np.exp(scatter).tolist())
            path = folder / f"job.{job}.out"
            path.write_text("\n".join(self._lines(lambda seconds, f=factors: seconds * next(f))))
            found.append(path)
        return found

    def _lines(self, noisy: Callable[[float], float]) -> Iterator[str]:
        sizes = [4 * 2**n for n in range(self.sizes)]

        def row(label: str, times: list[float]) -> str:
            return "\t".join([*([label] if label else []), *(f"{noisy(t):.6e}" for t in times), ""])

        yield "Timing CPU Multiple Messages"
        for n in sizes:
            times = [self.of_host(k, n) for k in range(1, self.ranks + 1)]
            yield row(f"Size {n // 4}", times)
        yield "Timing GPU Multiple Messages"
        for n in sizes:
            times = [self.of_direct(k, n) for k in range(1, self.gpus + 1)]
            yield row(f"Size {n // 4}", times)
        yield "Timing Max-Rate CPU Ping-Pongs"
        for n in sizes:
            yield row(f"Size {n // 4}", [self.of_shares(k, n) for k in range(1, self.ranks + 1)])
        for title in ("Memcpy Host To Device:", "Memcpy Device To Host:"):
            yield title
            for rank in range(0, self.ranks, self.ranks // self.gpus):
                for gpu in range(self.gpus):
                    is_near = 2 * rank // self.ranks == 2 * gpu // self.gpus
                    factor = 1.0 if is_near else self.off_socket
                    yield row(f"CPU {rank}, GPU {gpu}:", [self.of_copy(n, factor) for n in sizes])
        for title in ("Memcpy Host To Device Mult:", "Memcpy Device To Host Mult:"):
            yield title
            for k in range(max(3, self.ranks // self.gpus)):
                yield f"NP {k}"
                yield row("", [self.of_own_copies(k + 1, n) for n in sizes])
