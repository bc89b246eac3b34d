"""The lines of code that make a copy by a method: for `waywiser.transfer`, torch and CUDA."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.analysis.policy.candidates import is_of_library
from waywiser.analysis.policy.decision_table import Method
from waywiser.analysis.policy.table import MethodCosts
from waywiser.machine import DECLARED
from waywiser.words import Memory, Path, Transfer, Value

POLITE_BYTES = "4 << 20"
"""Bytes queued on a copy engine of a polite context, as docs/transfer.md has it."""


class CodeLine(Value, frozen=True):
    """A line for one library."""

    library: str
    code: str


def code_lines(
    source: Memory,
    destination: Memory,
    count: int,
    method: Method,
    costs: MethodCosts,
    *,
    polite: bool,
    plain: bool,
    max_threads: int | None,
) -> tuple[CodeLine, ...]:
    """That of the transfer library if it has the method; those of torch and CUDA for a plain copy,
    and for what is one call of CUDA. ``polite`` and ``max_threads`` are those of the request: the
    library makes the copy in the advised way without a policy too."""
    limits = ["relays=[…]"] if costs.relays else []
    reached = all(DECLARED.memory(end.kind).is_reached_by_gpus for end in (source, destination))
    if polite and (reached or not plain):
        limits.append(f"max_queued_bytes={POLITE_BYTES}")
    elif plain and not reached and (polite or max_threads is not None):
        limits.append("plain=True")
    if max_threads is not None and "plain=True" not in limits:
        limits.append(f"threads={max(max_threads, 1)}")
    library = _library(source, destination, count, limits)
    ends = source, destination
    has_it = is_of_library(method, ends, count)
    lines = [CodeLine("waywiser.transfer", library)] if has_it else []
    path = Path(source, destination, method.executor)
    call = DECLARED.call(Transfer(path, parameters=method.settings))
    cuda = call.text if call is not None and call.text.startswith("cuda") else ""
    if plain and cuda and count == 1:
        lines.append(CodeLine("torch", "dst.copy_(src, non_blocking=True)"))
        lines.append(CodeLine("CUDA", f"{_cuda(cuda, source, destination)};"))
    elif plain and cuda:
        loop = "for (i = 0; i < n; ++i) "
        lines.append(CodeLine("CUDA", f"{loop}{_cuda(cuda, source, destination)};"))
    elif call is not None and cuda:
        lines.append(CodeLine("CUDA", f"{cuda}(…)"))
    elif plain and call is not None:
        lines.append(CodeLine("C", f"{call.text}"))
    return tuple(lines)


def _library(source: Memory, destination: Memory, count: int, limits: Sequence[str]) -> str:
    context = f"transfer.Context({', '.join(limits)})." if limits else "transfer."
    if source.place.kind == "file":
        return f'{context}read("FILE", dst)'
    if destination.place.kind == "file":
        return f'{context}write("FILE", src)'
    if count > 1:
        return f"{context}copy_batch(dsts=dsts, srcs=srcs)"
    return f"{context}copy(dst, src)"


def _cuda(call: str, source: Memory, destination: Memory) -> str:
    if call.endswith("PeerAsync"):
        one, other = source.place.index, destination.place.index
        return f"{call}(dst, {other}, src, {one}, bytes, stream)"
    return f"{call}(dst, src, bytes, cudaMemcpyDefault, stream)"
