"""What our workloads are called in Comm|Scope, where it has them: the way back of `commscope`.

Other people's plots choose curves by these names. What Comm|Scope does not measure keeps its text
from here, with a slash and its bytes behind.
"""

from __future__ import annotations

from waywiser.words import Memory, Transfer, Workload

WORDS = {"pageable": "Host", "pinned": "Pinned", "write-combined": "WC", "device": "GPU"}
"""Our kinds of memory -> their words."""


def name_of(workload: Workload) -> str:
    """As ``Comm_cudaMemcpyAsync_PinnedToGPU/0/1/log2(N):20/manual_time``."""
    head = _theirs(workload)
    if head is None:
        text = workload.curve.replace("/", ":")
        return f"{text}/bytes:{workload.bytes}" if workload.bytes else text
    return f"{head}/{_size(workload.size)}/manual_time"


def counters_of(workload: Workload) -> dict[str, int]:
    """Theirs for the places and the size of a workload that they have too."""
    counters = {"bytes": workload.size} if workload.size else {}
    if _theirs(workload) is None or not workload.copies:
        return counters
    ends = _ends(workload.copies[0])
    if ends[0].place.kind == ends[1].place.kind:
        return {**counters, "src_id": ends[0].place.index, "dst_id": ends[1].place.index}
    return {**counters, **{_ID[end.place.kind]: end.place.index for end in ends}}


_ID = {"gpu": "cuda_id", "numa": "numa_id"}


def _size(size: int) -> str:
    exponent = size.bit_length() - 1
    return f"log2(N):{exponent}" if size == 1 << exponent else f"bytes:{size}"


def _ends(transfer: Transfer) -> tuple[Memory, Memory]:
    return transfer.path.source, transfer.path.destination


def _theirs(workload: Workload) -> str | None:
    """Family and places, without the size; None if Comm|Scope has no such benchmark."""
    transfers = workload.copies
    if not transfers or workload.shared or any(t.layout or not t.bytes for t in transfers):
        return None
    first = transfers[0]
    if any(end.variant or end.place.kind == "file" for end in _ends(first)):
        return None
    duplex = (
        len(transfers) == 2
        and transfers[1].path == first.path.opposite
        and ((transfers[1].bytes, transfers[1].parameters) == (first.bytes, first.parameters))
    )
    if len(transfers) > 1 and not duplex:
        return None
    family = _family(first, duplex)
    if family is None:
        return None
    flush = "_flush" if workload.cache == "flushed" else ""
    return f"{family}{flush}/{_places(first)}"


def _places(transfer: Transfer) -> str:
    """The places in a name: of a host and a GPU the node first; else the source first."""
    source, to = (end.place for end in _ends(transfer))
    if source.kind == "gpu" and to.kind == "numa":
        source, to = to, source
    return f"{source.index}/{to.index}"


def _family(transfer: Transfer, duplex: bool) -> str | None:
    source, to = _ends(transfer)
    kinds = (source.kind, to.kind)
    between = kinds == ("device", "device") and source.place != to.place
    executor, settings = transfer.path.executor, dict(transfer.parameters)
    if executor == "copy-engine" and set(kinds) <= set(WORDS):
        return _copy(kinds, between, settings, duplex)
    if kinds == ("managed", "managed") and not settings and executor in ("prefetch", "page-fault"):
        how = "Prefetch" if executor == "prefetch" else "Demand"
        ends = ["GPU" if end.place.kind == "gpu" else "Host" for end in (source, to)]
        if duplex:
            return f"Comm_{how}_Duplex_{ends[0]}{ends[1]}" if ends[1] == "GPU" else None
        return f"Comm_UM_{how}_{ends[0]}To{ends[1]}"
    if executor == "cpu" and kinds == ("pageable", "pageable") and not duplex:
        return "libc_memcpy_NUMAToNUMA" if settings == {"side": "push"} else None
    return None


def _copy(
    kinds: tuple[str, str], between: bool, settings: dict[str, str], duplex: bool
) -> str | None:
    api = settings.pop("api", "peer" if between else "async")
    peer = settings.pop("peer", "on")
    if settings or (kinds[0] == kinds[1] == "device" and not between):
        return None
    call = {"async": "cudaMemcpyAsync", "peer": "cudaMemcpyPeerAsync"}.get(api)
    if call is None:
        return None
    suffix = "Peer" if between and peer == "on" else ""
    if not duplex:
        return f"Comm_{call}_{WORDS[kinds[0]]}To{WORDS[kinds[1]]}{suffix}"
    if between:
        return f"Comm_{call}_Duplex_GPUGPU{suffix}"
    host = kinds[0]
    return f"Comm_{call}_Duplex_{WORDS[host]}" if host in ("pageable", "pinned") else None
