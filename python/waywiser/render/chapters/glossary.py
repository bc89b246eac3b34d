"""The product's own terms, for readers who have no documentation at hand."""

from __future__ import annotations

from waywiser.render.parts import Facts, Section

TERMS = (
    ("place", "where memory is: numa:0 (a NUMA node of the host), gpu:1, file:NAME"),
    ("memory", "a kind of memory at a place: pinned, pageable, device, managed"),
    ("executor", "who moves the bytes, for example a copy engine, a kernel or CPU threads"),
    ("path", "source memory -> destination memory by an executor"),
    ("transfer, workload", "one path with bytes and settings; transfers that start together"),
    ("operation", "a call that costs time and moves no bytes: an allocation, a kernel launch"),
    ("sample", "one timed execution"),
    ("replicate, block", "all samples of one process"),
    ("series, curve", "all samples of one workload; the series of one path over sizes"),
    ("survey, profile", "one run that measures a machine; the file that it fills"),
    ("bound", "the theoretical peak bandwidth of the narrowest link on a path"),
    ("headline path", "a path that the owner of a machine asks about first"),
    ("H2D, D2H", "host memory to GPU memory, and back"),
    ("P2P, local copy", "GPU memory to the memory of another GPU; within one GPU"),
    ("host-to-all, all-to-host", "H2D, or D2H, of all GPUs at once"),
    ("pinned, pageable", "host memory that a GPU reaches by itself; all other host memory"),
    ("bidirectional, concurrent", "both directions of a path at once; several paths at once"),
    ("equivalent paths", "paths that the topology shows as alike and that should be equally fast"),
    ("crossover", "the size, or the number of pieces, from which another method is faster"),
    ("contention", "what transfers that run together cost one another"),
    ("interval", "a 95 % confidence interval; ± is half its width as a share of the value"),
    ("noise", "how far the medians of processes, and of surveys, differ without a cause"),
    ("quality flag", "a reason to trust a number less, with a remedy"),
    ("finding", "a statement with its evidence and its number, and what to do about it"),
)
"""Terms with their meanings, as the glossary of the documentation has them."""


def glossary() -> Section:
    """The terms with their meanings."""
    return Section("glossary", "Glossary", (Facts(TERMS),))
