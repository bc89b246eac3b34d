"""Whether a topology can be of the machine that files are about.

Facts that both state and that differ are contradictions: the number of GPUs, their models, their
PCI addresses and the number of CPUs. Facts that the files lack are only said: bounds then rest on
the word of the one who named the topology.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu, hosts_of
from waywiser.machine.machine import Machine

_ADDRESS = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?")

UNCHECKED = (
    "the files state neither addresses nor models of GPUs: nothing shows that the topology is of "
    "the machine that was measured"
)

THREADS = (1, 2, 4, 8)
"""Threads of a core: they may have been switched on or off between two records."""

CONTRADICTS = "the topology contradicts the files: "


def contradictions(found: Sequence[ForeignFile], machine: Machine) -> list[str]:
    """What the files and the topology state differently, a sentence each."""
    files = [each for each in found if _is_of_one_host(each)]
    return list(dict.fromkeys(fact for each in files for fact in _of_file(each, machine)))


def unchecked(found: Sequence[ForeignFile], machine: Machine) -> str:
    """A note if nothing in the files could be compared with the topology; empty otherwise."""
    gpus = (gpu for each in found if _is_of_one_host(each) for gpu in each.gpus)
    stated = any(gpu.name or _address(gpu.pci) for gpu in gpus)
    return "" if stated or not machine.gpus else UNCHECKED


def _is_of_one_host(found: ForeignFile) -> bool:
    """Files of ranks on several hosts number GPUs by rank."""
    return len(hosts_of(found.gpus)) < 2


def _of_file(found: ForeignFile, machine: Machine) -> Iterator[str]:
    here = {gpu.index: gpu for gpu in machine.gpus}
    at = {_address(gpu.pci): gpu.index for gpu in machine.gpus if _address(gpu.pci)}
    if len(found.gpus) > len(here):
        yield f"the results are of {len(found.gpus)} GPUs, and the topology has {len(here)}"
    for gpu in found.gpus:
        if gpu.index in here:
            yield from _of_gpu(gpu, here[gpu.index].name, here[gpu.index].pci, at)
    cpus, known = found.environment.get("num_cpus"), sum(each.cpus for each in machine.packages)
    cores = sum(each.cores for each in machine.packages)
    if isinstance(cpus, int) and known and cpus not in (known, *(cores * n for n in THREADS)):
        yield f"the results are of {cpus} CPUs, and the topology has {known}"


def _of_gpu(gpu: ForeignGpu, name: str, pci: str, at: dict[str, int]) -> Iterator[str]:
    theirs, ours = gpu.name.lower(), name.lower()
    if theirs and ours and theirs not in ours and ours not in theirs:
        yield f"the results are of {gpu.name} at gpu:{gpu.index}, where the topology has {name}"
    address, expected = _address(gpu.pci), _address(pci)
    if address and expected and address != expected:
        other = f", where it has gpu:{at[address]}" if address in at else ", which it does not have"
        yield (
            f"gpu:{gpu.index} of the results is at {address}{other}; its own gpu:{gpu.index} is at "
            f"{expected}"
        )


def _address(text: str) -> str:
    """``0000:1b:00`` of any way of writing a PCI address; empty for another text."""
    match = _ADDRESS.fullmatch(text.strip().lower())
    if match is None:
        return ""
    domain = int(match[1] or "0", 16)
    return f"{domain:04x}:{int(match[2], 16):02x}:{int(match[3], 16):02x}"
