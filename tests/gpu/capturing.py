"""Captures graphs in torch's global mode while eight threads copy: run by its test."""

from __future__ import annotations

import threading

import torch

from waywiser import transfer

MIB = 1 << 20
SIZE = 24 * MIB  # staged by threads of the library
THREADS = 8
GRAPHS = 25
LEAST_ROUNDS = 3


class Copier(threading.Thread):
    """Copies to the GPU and back until `ending` is set, and compares every byte."""

    def __init__(self, number: int) -> None:
        super().__init__(daemon=True)
        self.sent = torch.randint(0, 256, (SIZE,), dtype=torch.uint8)
        self.there = torch.empty(SIZE, dtype=torch.uint8, device="cuda")
        self.back = torch.empty(SIZE, dtype=torch.uint8, pin_memory=number % 2 == 1)
        self.few = torch.zeros(4096, dtype=torch.uint8, device="cuda")
        # Every other thread stays on the legacy default stream.
        self.stream = torch.cuda.Stream() if number % 4 < 2 else torch.cuda.default_stream()
        self.ending = threading.Event()
        self.rounds = 0
        self.failure = ""

    def run(self) -> None:
        try:
            while not self.ending.is_set():
                self.back.zero_()
                transfer.copy(self.there, self.sent, stream=self.stream)
                transfer.copy(self.back, self.there, stream=self.stream)
                transfer.copy(self.few, self.sent[:4096], stream=self.stream)
                if not torch.equal(self.sent, self.back):
                    raise RuntimeError("bytes differ")
                self.rounds += 1
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"


def capture(pinned: torch.Tensor, number: int) -> None:
    """Records a copy and a kernel, and checks what they do when the graph runs."""
    result = torch.zeros(MIB, dtype=torch.float32, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="global"):
        transfer.copy(result, pinned)
        result.add_(1)
    pinned.fill_(number)
    graph.replay()
    torch.cuda.synchronize()
    expected = float(number + 1)
    if not bool((result == expected).all()):
        raise SystemExit(f"graph {number}: {result[0].item()} instead of {expected}")


def main() -> None:
    pinned = torch.zeros(MIB, dtype=torch.float32, pin_memory=True)
    threads = [Copier(number) for number in range(THREADS)]
    torch.cuda.synchronize()
    for thread in threads:
        thread.start()
    graphs = 0
    while graphs < GRAPHS or min(thread.rounds for thread in threads) < LEAST_ROUNDS:
        capture(pinned, graphs)
        graphs += 1
        if any(thread.failure for thread in threads):
            break
    for thread in threads:
        thread.ending.set()
    for thread in threads:
        thread.join()
    failures = sorted({thread.failure for thread in threads if thread.failure})
    if failures:
        raise SystemExit("; ".join(failures))
    print(f"{graphs} graphs, {sum(thread.rounds for thread in threads)} copies there and back")


if __name__ == "__main__":
    main()
