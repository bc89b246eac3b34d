"""The JSON of nccl-tests (``-J FILE``, written since 2.17 of them).

Collectives that only move bytes have a counterpart: the transfers that they amount to, started
together, by the executor ``nccl``; ``gpu:N`` is the GPU of rank N. Those that also add (all_reduce,
reduce, reduce_scatter) have none. With ``-I`` every iteration is a sample; without, the one time is
a mean over iterations, and marked as such. Of several processes the time of an iteration is the
longest of theirs. Times are in microseconds. ``env`` is not stored: it is the environment of the
user.

The file lists one device for each process, also where a process has several: then the number of
ranks is threads × GPUs × processes, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu, ForeignSeries, only_host
from waywiser.exchange.imports.google_benchmark import started
from waywiser.exchange.imports.reading import (
    clipped,
    list_of,
    number_of,
    object_of,
    parse_each,
    plain,
    text_of,
)
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.words import Memory, Path, Place, Transfer, Workload
from waywiser.words.records import Failure, Samples, Unsupported

MOST_COUNT = 4096
"""Ranks, threads or GPUs: more is no count of them."""

MOST_RANKS = 64
"""Ranks of collectives that are written as transfers between all of them."""

Pairs = Callable[[int, int], list[tuple[int, int]]]


def _ring(ranks: int, root: int) -> list[tuple[int, int]]:
    return [(rank, (rank + 1) % ranks) for rank in range(ranks)]


def _all(ranks: int, root: int) -> list[tuple[int, int]]:
    return [(a, b) for a in range(ranks) for b in range(ranks) if a != b]


def _from_root(ranks: int, root: int) -> list[tuple[int, int]]:
    return [(root, rank) for rank in range(ranks) if rank != root]


def _to_root(ranks: int, root: int) -> list[tuple[int, int]]:
    return [(rank, root) for rank in range(ranks) if rank != root]


COLLECTIVES: dict[str, tuple[Pairs, bool]] = {
    "sendrecv": (_ring, False),
    "all_gather": (_all, True),
    "alltoall": (_all, True),
    "broadcast": (_from_root, False),
    "scatter": (_from_root, True),
    "gather": (_to_root, True),
}
"""Name -> who sends to whom, and whether ``size`` is shared among the ranks."""

_ROOT = re.compile(r"^\s*-?[0-9]{1,6}\s*$")
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter", "a reduction")
"""Collectives that also compute."""

_WORD = re.compile(r"[a-z0-9_]{1,20}")
_PCI = re.compile(r"^(?:0x)?[0-9a-fA-F:.]{2,16}$")


def read(value: Any, where: str) -> ForeignFile:
    """Raises `Malformed` if a key is missing or is not what the format has there."""
    top = object_of(value, where)
    rows = list_of(top.get("results"), f"{where}: results")
    arguments = [text_of(each, f"{where}: args") for each in list_of(top.get("args", []), where)]
    config = object_of(top.get("config", {}), f"{where}: config")
    gpus = tuple(_gpus(config, where))
    collective = _collective(arguments)
    groups = {str(each.get("group")) for each in config.get("devices", [])}
    ranks = ranks_of(config, gpus)
    measured: list[ForeignSeries] = []
    unsupported_paths: list[Unsupported] = []
    reason = why_not(collective, ranks, len(groups))
    if reason:
        unsupported_paths.append(Unsupported(collective or "an unknown collective", reason))
    else:
        notes = unnamed(ranks, gpus)
        good, damaged = parse_each(
            rows,
            lambda row, place: list(measured_of(row, collective, ranks, config, place, notes)),
            f"{where}: results",
        )
        measured += chain.from_iterable(good)
        unsupported_paths += damaged
    version = top.get("nccl_version", "")
    date = text_of(top.get("start_time", ""), f"{where}: start_time")
    return ForeignFile(
        format="nccl",
        tool="nccl-tests",
        version=f"NCCL {version}" if isinstance(version, int) else clipped(str(version)),
        date=date,
        started=started(date),
        hostname=only_host(gpus),
        gpus=gpus,
        environment={"args": clipped(" ".join(arguments))} | plain(config, _PLAIN_CONFIG),
        measured=tuple(measured),
        unsupported_paths=tuple(unsupported_paths),
    )


_PLAIN_CONFIG = (
    "nthreads",
    "ngpus",
    "minimum_bytes",
    "maximum_bytes",
    "warmup_iters",
    "iterations",
    "aggregated_iterations",
    "validation",
    "graph",
)


def _collective(arguments: Sequence[str]) -> str:
    """The collective by the program's name: ``./build/all_gather_perf``."""
    for word in arguments[:1]:
        return word.rpartition("/")[2].removesuffix("_mpi").removesuffix("_perf")
    return ""


def why_not(collective: str, ranks: int, groups: int) -> str:
    """Why a collective of ranks in so many groups has no counterpart; empty if it has one."""
    if collective in REDUCTIONS:
        return "it also computes: only collectives that move bytes are imported"
    if collective not in COLLECTIVES:
        return "Waywiser does not know this collective"
    if not ranks:
        return "it lists no GPU, so the number of ranks is unknown"
    if groups > 1:
        return f"its ranks are in {groups} groups, each with a collective of its own"
    if not 2 <= ranks <= MOST_RANKS:
        return f"its {ranks} ranks are not written as transfers: 2 to {MOST_RANKS} are"
    return ""


def ranks_of(config: Mapping[str, Any], gpus: Sequence[ForeignGpu]) -> int:
    """The number of ranks; 0 if no GPU is listed, since the number of processes is unknown then.

    Every process has threads × GPUs of them, by rank. The list has the first of each process alone
    (JSON), or lacks the last of some (text, which the tool cuts).
    """
    highest = max((gpu.index + 1 for gpu in gpus), default=0)
    threads, each = config.get("nthreads"), config.get("ngpus")
    if not isinstance(threads, int) or not isinstance(each, int) or threads * each < 1:
        return highest
    of_one = min(threads * each, MOST_COUNT)
    return -(-highest // of_one) * of_one


def unnamed(ranks: int, gpus: Sequence[ForeignGpu]) -> tuple[str, ...]:
    """A note if the file names the devices of some ranks only."""
    if len(gpus) >= ranks:
        return ()
    return (
        f"the file names the GPUs of {len(gpus)} of its {ranks} ranks; the number of ranks is "
        "threads × GPUs × processes",
    )


def variant_of(config: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, str]:
    """What names the operation besides the collective, where it is not the tool's default."""
    found: dict[str, str] = {}
    kind = clipped(str(row.get("type", "float")), 20)
    if kind != "float" and _WORD.fullmatch(kind):
        found["type"] = kind
    for key, word, default in (
        ("aggregated_iterations", "aggregated", 1),
        ("graph", "graph", 0),
        ("unalign", "unalign", 0),
    ):
        value = config.get(key, default)
        if isinstance(value, int) and value != default:
            found[word] = str(value)
    if str(config.get("blocking_collectives", "false")).lower() in ("true", "1", "2"):
        found["blocking"] = "yes"
    return found


def _gpus(config: dict[str, Any], where: str) -> Iterator[ForeignGpu]:
    seen: set[int] = set()
    for n, each in enumerate(list_of(config.get("devices", []), f"{where}: config.devices")):
        place = f"{where}: config.devices[{n}]"
        device = object_of(each, place)
        rank = int(number_of(device.get("rank", n), f"{place}.rank"))
        if rank in seen or not 0 <= rank < 4096:
            raise Malformed(f"rank {rank} is named twice, or is none", where=place)
        seen.add(rank)
        pci = text_of(device.get("device_hex", ""), f"{place}.device_hex")
        yield ForeignGpu(
            rank,
            name=text_of(device.get("device_info", ""), f"{place}.device_info"),
            pci=address_of(pci),
            host=text_of(device.get("hostname", ""), f"{place}.hostname"),
        )


def address_of(text: str) -> str:
    """The PCI address of a device as the tool writes it; empty for anything else."""
    text = text.strip()
    return text if _PCI.match(text) and ":" in text else ""


def measured_of(
    value: Any,
    collective: str,
    ranks: int,
    config: Mapping[str, Any],
    where: str,
    notes: tuple[str, ...] = (),
) -> Iterator[ForeignSeries]:
    """The series of one row: out of place and in place. Raises `Malformed`."""
    row = object_of(value, where)
    variant = variant_of(config, row)
    size = int(number_of(row.get("size"), f"{where}.size"))
    if not 0 <= size <= 2**50:
        raise Malformed(f"{size} bytes", where=f"{where}.size")
    text = text_of(row.get("root", "0"), f"{where}.root")
    if not _ROOT.match(text):
        raise Malformed("the root is not a rank", where=f"{where}.root")
    root = max(0, int(text))
    pairs, shared = COLLECTIVES[collective]
    each = size // ranks if shared else size
    if not each or root >= ranks:
        return
    for placement, parameters in (("out_of_place", {}), ("in_place", {"in-place": "yes"})):
        result = row.get(placement)
        if result is None:
            continue
        transfers = tuple(
            Transfer(
                Path(_of_rank(source), _of_rank(to), "nccl"),
                each,
                {"collective": collective, **parameters, **variant},
            )
            for source, to in pairs(ranks, root)
        )
        samples, failure = _samples(
            row, placement, object_of(result, f"{where}.{placement}"), where
        )
        yield ForeignSeries(
            name=" ".join([collective, *variant.values(), f"{placement} of {size}"]),
            family=collective,
            workload=Workload(transfers),
            mode="host",
            samples=samples,
            failure=failure,
            notes=notes,
        )


def _of_rank(rank: int) -> Memory:
    return Memory("device", Place("gpu", rank))


def _iterations(per_iteration: dict[str, Any], where: str) -> list[float]:
    """Seconds of each iteration: of several processes the longest of theirs. Raises `Malformed` for
    processes with different numbers of iterations."""
    place = f"{where}.per_process_max_times_us"
    processes = list_of(per_iteration.get("per_process_max_times_us", []), place)
    lists = [list_of(each, place) for each in processes] or [
        list_of(per_iteration.get("times_us", []), f"{where}.times_us")
    ]
    if len({len(each) for each in lists}) > 1:
        raise Malformed("processes have different numbers of iterations", where=place)
    return [
        max(number_of(each, f"{where}.times_us") for each in times) * 1e-6
        for times in zip(*lists, strict=True)
    ]


def _samples(
    row: dict[str, Any], placement: str, result: dict[str, Any], where: str
) -> tuple[Samples, Failure | None]:
    place = f"{where}.{placement}"
    wrong = result.get("nwrong")  # null if nobody checked
    if wrong is not None and (count := number_of(wrong, f"{place}.nwrong")) > 0:
        return Samples(), Failure("wrong-bytes", f"{count:g} values were wrong, as the tool says")
    times = _iterations(
        object_of(row.get(f"{placement}_per_iter", {}), f"{place}_per_iter"), f"{place}_per_iter"
    )
    if times and all(map(is_time, times)):
        return Samples(tuple(times), repetitions=(1,) * len(times), flags=(0,) * len(times)), None
    if "time" not in result and "cpu_time" in result:
        raise Malformed(
            "its times are those of the CPU's calls (-C), not of the transfers",
            where=place,
            remedy="run it without -C",
        )
    seconds = number_of(result.get("time"), f"{place}.time") * 1e-6
    if not is_time(seconds):
        return Samples(), Failure("foreign", "its time is 0, or no time")
    return summary(seconds), None
