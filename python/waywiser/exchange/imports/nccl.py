"""The JSON of nccl-tests (``-J FILE``, written since 2.17 of them).

A collective is a transfer over the GPUs of all ranks by the executor ``nccl``, of the bytes that
the tool calls its size; ``gpu:N`` is the GPU of rank N. A sendrecv is the copies from each GPU to
the next, started together. With ``-I`` every iteration is a sample; without, the one time is
a mean over iterations, and marked as such. Of several processes the time of an iteration is the
longest of theirs. Of the mean over iterations, ``-a`` says which statistic over threads and
processes it is; one that is not usual is a part of the series' name (``of-ranks=max``). Times are
in microseconds. ``env`` is not stored: it is the environment of the user.

The file lists one device for each process, also where a process has several: then the number of
ranks is threads × GPUs × processes, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from waywiser.exchange.imports.commands.command_line import CommandLine, commands_in
from waywiser.exchange.imports.foreign_file import (
    ForeignFile,
    ForeignGpu,
    ForeignSeries,
    Malformed,
    clipped,
    hosts_of,
    list_of,
    number_of,
    object_of,
    only_host,
    parse_each,
    plain,
    text_of,
)
from waywiser.exchange.imports.google_benchmark import started
from waywiser.exchange.imports.summary import is_time, summary
from waywiser.words import (
    COLLECTIVE,
    MOST_TOGETHER,
    SUMMARY,
    Failure,
    Memory,
    Path,
    Place,
    Samples,
    Transfer,
    Unsupported,
    Workload,
)
from waywiser.words.collective import ROOT

MOST_COUNT = 4096
"""Ranks, threads or GPUs: more is no count of them."""

MOST_IN_RING = 64
"""Ranks of a sendrecv, which is written as one transfer of each."""

RING = "sendrecv"

COLLECTIVES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "scatter": "scatter",
    "gather": "gather",
}
"""The tool's name -> what the GPUs do together."""

ROOTED = ("broadcast", "reduce", "scatter", "gather")
"""Those with a root."""

_AVERAGE = re.compile(r"(?<!\S)(?:-a\s*|--average[=\s]\s*)([0-9])(?!\S)")
STATISTICS = {"0": "rank0", "1": "mean", "2": "min", "3": "max"}
"""What ``-a`` makes of the times of threads and processes -> its name here."""
USUAL = "mean"
"""The statistic without ``-a``."""
LONGEST = "longest"
"""The statistic of single iterations of several processes."""
UNSEEN = (
    "the command is not in the text: which statistic over threads and processes the times are (-a) "
    "is unknown; without that option it is their mean"
)

_ROOT = re.compile(r"^\s*-?[0-9]{1,6}\s*$")

_WORD = re.compile(r"[a-z0-9_]{1,20}")
_PCI = re.compile(r"^(?:0x)?[0-9a-fA-F:.]{2,16}$")


def _with_settings(
    found: Iterable[ForeignSeries], command: CommandLine | None
) -> Iterator[ForeignSeries]:
    """The series with the settings of the command that measured them."""
    settings = command.settings if command else None
    return (replace(each, settings=settings) for each in found)


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
    wrong_notes, unsupported_paths = _bad_ends(top, where)
    command = next(iter(commands_in(" ".join(arguments), {})), None)
    config = config | {"statistic": statistic_of(" ".join(arguments))}
    reason = why_not(collective, ranks, len(groups))
    if reason:
        unsupported_paths.append(Unsupported(collective or "an unknown collective", reason))
    else:
        notes = (*notes_of(ranks, gpus), *wrong_notes)
        good, damaged = parse_each(
            rows,
            lambda row, place: list(measured_of(row, collective, ranks, config, place, notes)),
            f"{where}: results",
        )
        measured += _with_settings(chain.from_iterable(good), command)
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


def _bad_ends(top: Mapping[str, Any], where: str) -> tuple[tuple[str, ...], list[Unsupported]]:
    """What `ended_badly` says of wrong results and errors of the file. Raises `Malformed`."""
    wrong = object_of(top.get("out_of_bounds", {}), f"{where}: out_of_bounds").get("count", 0)
    errors = list_of(top.get("errors", []), f"{where}: errors")
    return ended_badly(
        number_of(wrong, f"{where}: out_of_bounds.count"), [clipped(str(each)) for each in errors]
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
    if collective not in COLLECTIVES and collective != RING:
        return "Waywiser does not know this collective"
    if not ranks:
        return "it lists no GPU, so the number of ranks is unknown"
    if groups > 1:
        return f"its ranks are in {groups} groups, each with a collective of its own"
    most = MOST_IN_RING if collective == RING else MOST_TOGETHER
    if not 2 <= ranks <= most:
        return f"it has {ranks} ranks, which are not imported: 2 to {most} are"
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


def notes_of(ranks: int, gpus: Sequence[ForeignGpu]) -> tuple[str, ...]:
    """What the file says of where its ranks are."""
    found = []
    hosts = hosts_of(gpus)
    if len(gpus) < ranks:
        found.append(
            f"the file names the GPUs of {len(gpus)} of its {ranks} ranks; the number of ranks is "
            "threads × GPUs × processes"
        )
    elif all(gpu.host for gpu in gpus):
        where = f"of one node, {hosts[0]}" if len(hosts) == 1 else f"of {len(hosts)} nodes"
        found.append(f"gpu:N is the GPU of rank N; all ranks are {where}")
    return tuple(found)


def statistic_of(command: str) -> str:
    """What the times of threads and processes became, by the options of a command: the last one
    counts."""
    given = _AVERAGE.findall(command)
    return STATISTICS.get(given[-1], USUAL) if given else USUAL


def variant_of(config: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, str]:
    """What names the operation besides the collective, where it is not the tool's default."""
    found: dict[str, str] = {}
    kind = clipped(str(row.get("type", "float")), 20)
    if kind != "float" and _WORD.fullmatch(kind):
        found["type"] = kind
    operator = clipped(str(row.get("redop", "none")), 20)
    if operator not in ("none", "sum") and _WORD.fullmatch(operator):
        found["op"] = operator
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
    size, root = _size_and_root(row, where)
    if not size or root >= ranks:
        return
    root = root if collective in ROOTED else 0
    for placement, parameters in (("out_of_place", {}), ("in_place", {"in-place": "yes"})):
        result = row.get(placement)
        if result is None:
            continue
        result = object_of(result, f"{where}.{placement}")
        samples, failure = _samples(row, placement, result, where)
        statistic = str(config.get("statistic", USUAL))
        if any(flag & SUMMARY == 0 for flag in samples.flags):
            statistic = LONGEST if _of_several(row, placement) else USUAL
        own = variant | ({"of-ranks": statistic} if statistic != USUAL else {})
        transfers = _transfers(collective, ranks, root, size, {**parameters, **own})
        yield ForeignSeries(
            name=" ".join([collective, *own.values(), f"{placement} of {size}"]),
            family=collective,
            workload=Workload(transfers),
            mode="host",
            samples=samples,
            failure=failure,
            notes=notes,
        )


def _size_and_root(row: Mapping[str, Any], where: str) -> tuple[int, int]:
    """The bytes of a row and its root. Raises `Malformed`."""
    size = int(number_of(row.get("size"), f"{where}.size"))
    if not 0 <= size <= 2**50:
        raise Malformed(f"{size} bytes", where=f"{where}.size")
    text = text_of(row.get("root", "0"), f"{where}.root")
    if not _ROOT.match(text):
        raise Malformed("the root is not a rank", where=f"{where}.root")
    return size, max(0, int(text))


def _transfers(
    collective: str, ranks: int, root: int, size: int, settings: dict[str, str]
) -> tuple[Transfer, ...]:
    if collective == RING:
        gpus = [Memory("device", Place("gpu", rank)) for rank in range(ranks)]
        own = {COLLECTIVE: RING, **settings}
        paths = (Path(gpus[n], gpus[(n + 1) % ranks], "nccl") for n in range(ranks))
        return tuple(Transfer(path, size, own) for path in paths)
    own = {COLLECTIVE: COLLECTIVES[collective], **settings}
    if root:
        own[ROOT] = str(root)
    together = Memory("device", Place("gpu", 0, last=ranks - 1))
    return (Transfer(Path(together, together, "nccl"), size, own),)


def _of_several(row: Mapping[str, Any], placement: str) -> bool:
    """Whether its iterations are those of several processes."""
    return len(row.get(f"{placement}_per_iter", {}).get("per_process_max_times_us", [])) > 1


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
    wrong = result.get("nwrong")  # null if it was not checked
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
    _require_one_bandwidth(row, result, seconds, place)
    return summary(seconds), None


def _require_one_bandwidth(
    row: Mapping[str, Any], result: Mapping[str, Any], seconds: float, where: str
) -> None:
    """Raises `Malformed` if the time and the bandwidth of a row contradict each other."""
    stated, size = result.get("alg_bw"), row.get("size")
    if not isinstance(stated, int | float) or not isinstance(size, int) or not stated > 0:
        return
    if abs(size / seconds / 1e9 - stated) > ROUNDING + SAME * stated:
        raise Malformed(
            f"{stated:g} GB/s and {seconds * 1e6:g} µs are not of the same {size:,} bytes, so that "
            "one of them is wrong",
            where=where,
        )


ROUNDING = 0.006
"""GB/s: a bandwidth is printed with two decimals."""
SAME = 0.02
"""A printed time of three digits agrees with its bandwidth this well."""


def ended_badly(wrong: float, errors: Sequence[str]) -> tuple[tuple[str, ...], list[Unsupported]]:
    """(a note for each series of a run with ``wrong`` values, the errors that ended it)."""
    said = f"the tool found {wrong:g} wrong values in this run"
    failed = [Unsupported("the end of the run", f"the tool failed: {each}") for each in errors[:1]]
    return (said,) if wrong > 0 else (), failed
