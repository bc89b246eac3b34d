"""The first section, the status of the machine, and the findings that ask for something."""

from __future__ import annotations

from collections.abc import Sequence

from waywiser.render.assessment import advice, assess, first_advice
from waywiser.render.entry import Entry
from waywiser.render.parts import Block, Remarks, Section, Words


def status(entries: Sequence[Entry]) -> Section:
    """OK, Review or Problem for each machine, with the quality of its numbers."""
    several = len(entries) > 1
    blocks: list[Block] = [assess(entry, entry.name if several else "") for entry in entries]
    for entry in entries:
        if entry.subject.machine.untimed:
            whose = entry.name if several else "The machine"
            blocks.append(Words(f"{whose} is {entry.subject.machine.untimed}."))
        if entry.curves and not entry.subject.machine.gpus and not _has_gpu_memory(entry):
            whose = f" of {entry.name}" if several else ""
            why = entry.subject.machine.gpu_reason or "there is no GPU"
            blocks.append(Words(f"Host memory alone{whose} was measured: {why}."))
    return Section("status", "Status", tuple(blocks))


def _has_gpu_memory(entry: Entry) -> bool:
    """Whether any curve has it: of GPUs that are known by the rank that uses them, no machine has
    one."""
    transfers = (each for curve in entry.curves for each in curve.workload.transfers)
    traits = entry.subject.machine.traits
    return any(traits.is_of_gpu(end) for each in transfers for end in each.path.ends)


def findings(entries: Sequence[Entry]) -> Section:
    """The findings that change what a person would do, at most `MOST_ADVICE`."""
    found = first_advice(entries)
    if found:
        remarks = Remarks(found, ranked=True, of=sum(len(advice(entry)) for entry in entries))
        return Section("findings", "Findings", (remarks,))
    text = "No finding asks for a change."
    if not any(answer.answered for entry in entries for answer in entry.answers):
        text = "No question could be answered: too little was measured."
    return Section("findings", "Findings", (Words(text),))
