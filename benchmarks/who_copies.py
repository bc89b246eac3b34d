"""Who copies: copy engines or multiprocessors? Observed on this machine's GPUs, as surveys do it.

    python benchmarks/who_copies.py [--repeat N] [--json FILE] [--markdown FILE]

A kernel occupies all multiprocessors of the GPUs at the ends of a copy. A copy that ends meanwhile
needs none of them; one that always ends right after the kernel is made by them. The table has a row
for each call, kind of path and size: in how many of the observations (of each GPU, repeated) which
of the two was seen. It exits with 1 if a kind of copy showed both, or if nothing was seen at all.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from waywiser.curves.who_copies import MADE_BY, ends_text
from waywiser.machine.machine import Machine, machine_line
from waywiser.machine.traits import DECLARED
from waywiser.measure.plan.who_copies import observed_transfers
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import observe_copies
from waywiser.measure.scope import MachineSelection, read_scope
from waywiser.stats.order import median
from waywiser.words import Transfer, format_bytes, format_settings
from waywiser.words.number_format import format_time
from waywiser.words.records import Observation, WhoCopies


def observe(machine: Machine, repeat: int) -> list[WhoCopies]:
    requests = {gpu.index: observed_transfers(machine, gpu) for gpu in machine.gpus}
    found: list[WhoCopies] = []
    for _ in range(repeat):
        observe_copies(requests, machine, ProbeOptions(), found.append)
    return found


def rows(found: Sequence[WhoCopies]) -> dict[tuple[str, str, str], list[Observation]]:
    """The observations by call, kind of path and size."""
    by: dict[tuple[str, str, str], list[Observation]] = {}
    for each in found:
        for copy in each.copies:
            transfer = copy.transfer
            key = _call(transfer), ends_text(transfer.path), format_bytes(transfer.bytes)
            by.setdefault(key, []).append(copy.seen)
        by.setdefault(("cudaMemsetAsync", "device", "1 MiB"), []).append(each.fill)
        by.setdefault(("a kernel", "device", ""), []).append(each.kernel)
    return by


def _call(transfer: Transfer) -> str:
    call = DECLARED.call(transfer)
    shown = dict(transfer.parameters)
    for name in call.settings if call is not None else ():
        shown.pop(name, None)
    layout = f" as {transfer.layout}" if transfer.layout is not None else ""
    name = call.text if call is not None else transfer.path.executor
    return f"{name}{format_settings(shown)}{layout}"


def table(found: Sequence[WhoCopies]) -> Iterator[str]:
    yield "| call | from, to | bytes | alone | while occupied | after the kernel | made |"
    yield "|---|---|---|---|---|---|---|"
    for (call, ends, size), seen in rows(found).items():
        waited = [each.after_seconds for each in seen if each.found == "waited"]
        ended = [each.held_seconds for each in seen if each.found == "ended"]
        times = [_time([each.alone_seconds for each in seen]), _time(ended), _time(waited)]
        yield f"| {' | '.join((call, ends, size, *times, _result(seen)))} |"


def _time(seconds: Sequence[float]) -> str:
    known = [each for each in seconds if each > 0]
    return format_time(median(known), 0.05) if known else ""


def _result(seen: Sequence[Observation]) -> str:
    counts = Counter(each.found for each in seen)
    parts = [f"{MADE_BY[name]} ({n} of {len(seen)})" for name, n in counts.most_common()]
    reasons = sorted({each.reason for each in seen if each.reason})
    return "; ".join([*parts, *reasons])


def document(machine: Machine, found: Sequence[WhoCopies], repeat: int) -> Iterator[str]:
    yield f"{machine_line(machine)}. "
    yield f"Observed {repeat} times on each GPU, in "
    seconds = [each.seconds for each in found if each.failure is None]
    yield f"{_time(seconds)} each.\n\n" if seconds else "no time.\n\n"
    yield "\n".join(table(found)) + "\n"
    for each in found:
        if each.failure is not None:
            yield f"\ngpu:{each.gpu}: {each.failure.kind}: {each.failure.reason}\n"


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--repeat", type=int, default=3, metavar="N")
    words.add_argument("--json", type=Path, metavar="FILE")
    words.add_argument("--markdown", type=Path, metavar="FILE")
    given = words.parse_args()
    machine = read_scope(MachineSelection()).machine
    if not machine.gpus:
        print(machine.gpu_reason, file=sys.stderr)
        return 1
    found = observe(machine, given.repeat)
    text = "".join(document(machine, found, given.repeat))
    print(text, end="")
    if given.markdown:
        given.markdown.write_text(text)
    if given.json:
        given.json.write_bytes(msgspec.json.encode(found) + b"\n")
    decided = [{each.found for each in seen} - {"undecided"} for seen in rows(found).values()]
    return 0 if any(decided) and all(len(each) < 2 for each in decided) else 1


if __name__ == "__main__":
    sys.exit(main())
