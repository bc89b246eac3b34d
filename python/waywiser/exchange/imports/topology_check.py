"""Whether a topology can be of the machine that files are about.

Facts that both state and that differ are contradictions: the number of GPUs, their models, their
PCI addresses and the number of CPUs. Facts that the files lack are only said: bounds then rest on
the word of the one who named the topology.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignGpu, hosts_of
from waywiser.machine import Machine

_ADDRESS = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.([0-7]))?")

UNCHECKED = (
    "the files state neither addresses nor models of GPUs: nothing shows that the topology is of "
    "the machine that was measured"
)

BY_RANK = (
    "the files number the GPUs of several hosts by rank: of these, only the models were compared "
    "with the topology"
)

THREADS = (1, 2, 4, 8)
"""Threads of a core: they may have been switched on or off between two records."""

CONTRADICTS = "the topology contradicts the files: "


def contradictions(found: Sequence[ForeignFile], machine: Machine) -> list[str]:
    """What the files and the topology state differently, a sentence each."""
    facts = (
        fact
        for each in found
        for fact in (_of_file if _is_of_one_host(each) else _of_ranks)(each, machine)
    )
    return list(dict.fromkeys(facts))


def between_files(found: Sequence[ForeignFile]) -> str:
    """How two files of one tool and one host differ in what a GPU is, so that they are of two
    machines or number the GPUs differently; empty if none do."""
    seen: dict[tuple[str, int], ForeignGpu] = {}
    for file in found:
        for gpu in file.gpus if _is_of_one_host(file) else ():
            other = seen.setdefault((file.format, gpu.index), gpu)
            if gpu.name and other.name and _differ(gpu.name, other.name):
                return f"gpu:{gpu.index} is {other.name} in one and {gpu.name} in another"
            one, two = _address(other.pci), _address(gpu.pci)
            if one and two and one != two:
                return f"gpu:{gpu.index} is at {one} in one and at {two} in another"
            if not (other.name and one):
                seen[file.format, gpu.index] = replace(
                    other, name=other.name or gpu.name, pci=other.pci or gpu.pci
                )
    return ""


def _of_ranks(found: ForeignFile, machine: Machine) -> Iterator[str]:
    """Compares the models alone: GPUs of several hosts are numbered by rank."""
    models = dict.fromkeys(gpu.name for gpu in found.gpus if gpu.name)
    here = dict.fromkeys(gpu.name for gpu in machine.gpus if gpu.name)
    if models and here and all(_differ(one, other) for one in models for other in here):
        yield f"the results are of {', '.join(models)}, and the topology has {', '.join(here)}"


def _differ(one: str, other: str) -> bool:
    """Whether two names are of different models; one of them may lack the maker or the memory."""
    words = [set(re.split(r"[^a-z0-9]+", name.lower())) - {""} for name in (one, other)]
    return not (words[0] <= words[1] or words[1] <= words[0])


def unchecked(found: Sequence[ForeignFile], machine: Machine) -> str:
    """A note if nothing in the files could be compared with the topology; empty otherwise."""
    if not machine.gpus:
        return ""
    gpus = (gpu for each in found if _is_of_one_host(each) for gpu in each.gpus)
    if any(gpu.name or _address(gpu.pci) for gpu in gpus):
        return ""
    return BY_RANK if any(gpu.name for each in found for gpu in each.gpus) else UNCHECKED


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
    if gpu.name and name and _differ(gpu.name, name):
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
