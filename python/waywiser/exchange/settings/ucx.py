"""``ucx.conf``: bandwidths and latencies from which UCX chooses its protocols.

UCX multiplies by 1024: ``51.6GBs`` is 51.6 * 2^30 bytes per second, which are 55.4 GB/s. A line
with several keys needs a value for each key: UCX rejects the line if one is missing and no value
without a key stands for it. So keys that were not measured get the value that UCX has built in.

The sources of UCX that this follows: openucx/ucx, version 1.22.0, commit 8a65956:
src/ucs/config/parser.c (``ucs_config_sscanf_bw``, ``ucs_config_sscanf_key_value``),
src/uct/cuda/cuda_copy/cuda_copy_iface.c, src/uct/cuda/cuda_ipc/cuda_ipc_iface.c,
src/ucs/sys/topo/base/topo.c.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from waywiser.curves import Curve, Group, Point, Subject
from waywiser.curves.headline import headline
from waywiser.exchange.settings.origin import (
    OmittedSetting,
    SettingsError,
    commented,
    head_lines,
    omitted_lines,
    rate_origin,
    time_origin,
)
from waywiser.words import Workload, grouped

BUILT_IN = {"default": "10000MBs", "h2d": "8300MBs", "d2h": "11660MBs", "d2d": "320GBs"}
"""The keys of ``UCX_CUDA_COPY_BW`` with the values that UCX has built in."""

GROUPS: dict[str, tuple[Group, ...]] = {
    "default": ("pageable H2D", "pageable D2H"),
    "h2d": ("H2D",),
    "d2h": ("D2H",),
    "d2d": ("local copy",),
}
"""The copies that each of them is about."""

LARGEST_LATENCY = 4096
"""Bytes of the largest copy whose time is a latency."""

_DIGITS = 3
_UNITS = (("T", 2**40), ("G", 2**30), ("M", 2**20), ("K", 2**10))


def ucx_bandwidth(bytes_per_second: float) -> str:
    """``51.6GBs``: bytes per second in UCX's binary units, with three digits."""
    prefix, unit = next(
        ((prefix, unit) for prefix, unit in _UNITS if bytes_per_second >= unit), _UNITS[-1]
    )
    return f"{_three_digits(bytes_per_second / unit)}{prefix}Bs"


def ucx_time(seconds: float) -> str:
    """``2.53us``, with three digits."""
    return f"{_three_digits(seconds * 1e6)}us"


def _three_digits(value: float) -> str:
    decimals = max(0, _DIGITS - 1 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{decimals}f}"


def ucx_conf(subject: Subject) -> str:
    """The text of the file. Raises `SettingsError` if the profile has nothing that UCX reads."""
    parts = (_copy_bandwidth, _peer_bandwidth, _peer_latency, _distance)
    made = [part(subject) for part in parts]
    lines = [each for each in made if isinstance(each, str)]
    omitted = [each for each in made if isinstance(each, OmittedSetting)]
    if not lines:
        raise SettingsError(
            "the profile has no copies between host and GPU or between GPUs",
            remedy=subject.surveyed("measure them: waywiser survey --preset check"),
        )
    head = head_lines(subject, "Settings for UCX")
    where = "UCX reads it as $UCX_CONFIG_DIR/ucx.conf or ~/ucx.conf; check it with: ucx_info -c"
    texts = [commented([*head, where]), *lines, commented(omitted_lines(omitted))]
    return "\n".join(filter(None, texts))


def _copy_bandwidth(subject: Subject) -> str | OmittedSetting:
    """``UCX_CUDA_COPY_BW``: copies between host and GPU, and within a GPU."""
    groups = _by_group(subject)
    sources: dict[str, Point] = {}
    for key, names in GROUPS.items():
        slowest = [_slowest(groups.get(name, [])) for name in names]
        known = [point for point in slowest if point is not None]
        if len(known) == len(names):
            sources[key] = min(known, key=lambda point: point.rate)
    if not sources.keys() - {"default"}:
        return OmittedSetting("UCX_CUDA_COPY_BW", "no H2D, D2H or local copy was measured")
    comments = ["Copies of one process. The slowest GPU counts, at the largest size that several "
                "processes measured."]  # fmt: skip
    values = []
    for key, value in BUILT_IN.items():
        origin = f"not measured; UCX needs a value: {value} is its built-in one"
        if (point := sources.get(key)) is not None:
            origin, value = rate_origin(point), ucx_bandwidth(point.rate)
        comments.append(f"{key}: {origin}")
        values.append(f"{key}:{value}")
    comments.append(
        "Assumed: host memory is pinned (h2d, d2h); other memory is pageable (default: the slower "
        "of its two directions)."
    )
    return commented(comments) + f"UCX_CUDA_COPY_BW={','.join(values)}\n"


def _peer_bandwidth(subject: Subject) -> str | OmittedSetting:
    """``UCX_CUDA_IPC_BW``: copies between GPUs of two processes."""
    point, assumed = _of_peers(subject, lambda curve: curve.plateau)
    if point is None:
        return OmittedSetting("UCX_CUDA_IPC_BW", "no copy between two GPUs was measured")
    comments = ["Copies between GPUs of two processes. The slowest pair counts.",
                f"{rate_origin(point)}", *assumed]  # fmt: skip
    return commented(comments) + f"UCX_CUDA_IPC_BW={ucx_bandwidth(point.rate)}\n"


def _peer_latency(subject: Subject) -> str | OmittedSetting:
    """``UCX_CUDA_IPC_LAT``: the time of a small copy between GPUs, without the call."""
    point, assumed = _of_peers(subject, _smallest)
    if point is None:
        return OmittedSetting(
            "UCX_CUDA_IPC_LAT",
            f"no copy of {LARGEST_LATENCY} bytes or less between two GPUs was timed by the GPU",
        )
    comments = [
        "Latency of a copy between GPUs of two processes. The slowest pair counts.",
        time_origin(point),
        "Assumed: time on the GPU; UCX adds the time of the call (UCX_CUDA_IPC_OVERHEAD).",
        *assumed,
    ]
    return commented(comments) + f"UCX_CUDA_IPC_LAT={ucx_time(point.seconds)}\n"


def _distance(subject: Subject) -> str | OmittedSetting:
    """``UCX_DISTANCE_BW``: what a link between the sockets leaves of a GPU's bandwidth."""
    machine = subject.machine
    name = "UCX_DISTANCE_BW"
    if len(machine.numa) < 2:
        return OmittedSetting(name, "the system shows one NUMA node; UCX estimates it (auto)")
    slowest = _slowest(_remote(subject))
    if slowest is None:
        return OmittedSetting(
            name,
            "no copy between a GPU and pinned memory of another NUMA node was measured, or the "
            "system does not say which node is the GPU's",
        )
    comments = [
        "Between devices of two NUMA nodes (sys). phb and node are left to UCX (auto).",
        rate_origin(slowest),
        "Assumed: a copy between a GPU and memory of the other node is as fast as one between "
        "devices of two nodes.",
    ]
    return commented(comments) + f"{name}=auto,sys:{ucx_bandwidth(slowest.rate)}\n"


def _by_group(subject: Subject) -> dict[Group, list[Curve]]:
    groups = headline(subject.machine, (curve.workload for curve in subject.curves))
    return grouped((groups[c.text], c) for c in subject.curves if c.text in groups)


def _slowest(curves: Iterable[Curve]) -> Point | None:
    """The slowest of the curves at the plateau of each."""
    points = [point for curve in curves if (point := curve.plateau) is not None]
    return min(points, key=lambda point: point.rate, default=None)


def _smallest(curve: Curve) -> Point | None:
    """The smallest size, if it shows a latency and the GPU timed it."""
    first = curve.measured[0]
    timed = first.mode not in ("", "host") and 0 < first.bytes <= LARGEST_LATENCY
    return first if timed else None


def _of_peers(
    subject: Subject, chosen: Callable[[Curve], Point | None]
) -> tuple[Point | None, list[str]]:
    """The slowest copy between two GPUs, and what is assumed. Reads of memory of another process
    count, else writes to it, else copies of one process."""
    processes = list(_between_processes(subject))
    reads = [each for each in processes if each.path and each.path.source.variant]
    for curves, assumed in (
        (reads, "Assumed: UCX reads the memory of the other process (get)."),
        (processes, "Assumed: UCX writes the memory of the other process (put)."),
        (
            _by_group(subject).get("P2P", []),
            "Assumed: memory of another process is as fast as memory of the same process.",
        ),
    ):
        points = [point for curve in curves if (point := chosen(curve)) is not None]
        if points:
            return max(points, key=lambda point: point.seconds / point.bytes), [assumed]
    return None, []


def _between_processes(subject: Subject) -> Iterator[Curve]:
    """Copies between two GPUs of which one side belongs to another process."""
    for curve in subject.curves:
        path = curve.path
        if path is None or not _is_reference(subject, curve.workload):
            continue
        gpus = {place for place in path.places if place.kind == "gpu"}
        if len(gpus) == 2 and any(end.variant == {"from": "ipc"} for end in path.ends):
            yield curve


def _remote(subject: Subject) -> Iterator[Curve]:
    """Copies between a GPU and pinned memory of a NUMA node that is not the GPU's."""
    machine = subject.machine
    pinned = machine.traits.reference_memory("gpu", "numa")
    for curve in subject.curves:
        path = curve.path
        if path is None or not path.is_plain or not _is_reference(subject, curve.workload):
            continue
        nodes = {end.place.index for end in path.ends if end.kind == pinned}
        gpus = (machine.gpu(place.index) for place in path.places if place.kind == "gpu")
        own = {gpu.numa for gpu in gpus if gpu is not None}
        if nodes and own and min(own) >= 0 and not nodes & own:
            yield curve


def _is_reference(subject: Subject, workload: Workload) -> bool:
    """Whether it is one contiguous copy with default settings by the executor that paths of GPUs
    are compared by."""
    transfer = workload.transfer
    return (
        transfer is not None
        and workload.cache == "warm"
        and transfer.layout is None
        and not transfer.parameters
        and transfer.path.executor == subject.machine.traits.reference_executor("gpu")
    )
