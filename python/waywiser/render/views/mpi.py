"""The MPI library of this machine, and what it can do with each kind of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from waywiser.measure.ranks.mpi_library import MpiLibrary
from waywiser.measure.ranks.tries import Try
from waywiser.render.parts import Block, Facts, Section, Sheet, SheetCell, Words
from waywiser.words import grouped

NOT_TRIED = "waywiser doctor --try tries each kind of memory"


def library_parts(
    library: MpiLibrary, launcher: str, tries: Sequence[Try] | None
) -> Iterator[Block | Section]:
    """What was found, the ``launcher`` that is used instead of the library's own, and the
    ``tries``; None if nothing was tried."""
    compiled = "compiled before" if library.was_cached else "compiled now"
    yield Facts(
        (
            ("library", f"{library.name} {library.version}".rstrip()),
            ("mpicc", f"{library.mpicc.path} (found by {library.mpicc.found_by})"),
            (
                "launcher",
                launcher or library.launcher or "none beside mpicc; describe one with --launcher",
            ),
            ("bridge", f"{library.bridge} ({compiled})"),
            ("memory of GPUs", stated_text(library, tries)),
        )
    )
    if tries is not None:
        yield Section("", "", (_table(tries), *_reasons(tries)))


def stated_text(library: MpiLibrary, tries: Sequence[Try] | None) -> str:
    """What the library states about memory of CUDA, which it does once it has started."""
    if not tries:
        return f"not known; {NOT_TRIED}"
    says = {1: "states that it takes", 0: "states that it does not take"}
    stated = says.get(tries[0].cuda_stated, "does not state whether it takes")
    return f"{library.name} {stated} memory of CUDA"


def _table(tries: Sequence[Try]) -> Sheet:
    operations = list(dict.fromkeys(each.operation for each in tries))
    by_memory = grouped((each.memory, each) for each in tries)
    rows = (
        (memory, *(_cell(each) for each in of_memory)) for memory, of_memory in by_memory.items()
    )
    caption = "yes: all bytes arrived between two ranks"
    return Sheet.of("Tried with MPI", ("memory", *operations), rows, caption)


def _cell(tried: Try) -> SheetCell:
    if tried.right is None:
        return SheetCell("not tried")
    return SheetCell(mark="yes" if tried.right else "no")


def _reasons(tries: Sequence[Try]) -> Iterator[Words]:
    reasons = grouped(
        (each.reason, f"{each.operation} of {each.memory}") for each in tries if each.reason
    )
    for reason, members in reasons.items():
        yield Words(f"{', '.join(members)}: {reason}")
