from __future__ import annotations

import itertools
from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from machine.captured import CAPTURES, machine
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import Capture, load_capture
from waywiser.machine.facts import DeviceAccess, PciFacts, SilentGpu
from waywiser.machine.machine import Machine, UnusableGpu, UnusableState
from waywiser.machine.silent_gpus import EXCLUDED
from waywiser.machine.unusable_gpus import lost_text

WHOLE = load_capture(CAPTURES / "h200-vm-8gpu.json")
ADDRESSES = [gpu.pci for gpu in WHOLE.nvml.gpus] if WHOLE.nvml else []

Kind = tuple[PciFacts, SilentGpu | None]
"""What the kernel and NVML say of a GPU; no silence if it answers."""


def answering() -> Kind:
    return PciFacts("", driver="nvidia", access="open"), None


KINDS: dict[UnusableState | None, Sequence[Kind]] = {
    None: [answering()],
    "lost": [
        (PciFacts("", driver="nvidia", access="open"), SilentGpu(-1, "", 6, "Not Found")),
        (PciFacts("", driver="nvidia", access="open"), SilentGpu(3, "", 15, "GPU is lost")),
        (PciFacts("", driver=None, access=""), SilentGpu(3, "", 999, "Unknown Error")),
        (PciFacts("", driver=None, access="open"), SilentGpu(-1, "", 6, "Not Found")),
    ],
    "not given": [
        (PciFacts("", driver="nvidia", access=access), SilentGpu(-1, "", 6, "Not Found"))
        for access in ("denied", "absent", "hidden")
    ]
    + [
        (PciFacts("", driver="nvidia", access=""), SilentGpu(2, "", 4, "no permission")),
        (PciFacts("", driver="nvidia", access="open"), SilentGpu(-1, "", EXCLUDED, "excluded")),
    ],
    "other driver": [(PciFacts("", driver="vfio-pci"), SilentGpu(-1, "", 6, "Not Found"))],
    "no driver": [(PciFacts("", driver=""), SilentGpu(-1, "", 6, "Not Found"))],
    "unknown": [
        (PciFacts(""), SilentGpu(-1, "", 6, "Not Found")),
        (PciFacts("", driver="nvidia", access=""), None),
    ],
}
VARIANTS = [(state, kind) for state, kinds in KINDS.items() for kind in kinds]


def node(kinds: Sequence[tuple[UnusableState | None, Kind]]) -> Capture:
    """A machine of H200s in these states."""
    assert WHOLE.nvml is not None
    pci, silent, gpus = [], [], []
    for gpu, (state, (facts, silence)) in zip(WHOLE.nvml.gpus, kinds, strict=False):
        pci.append(msgspec.structs.replace(facts, address=gpu.pci))
        if state is None:
            gpus.append(gpu)
        elif silence is not None:
            silent.append(msgspec.structs.replace(silence, pci=gpu.pci))
    count = len(kinds)
    tree = WHOLE.hwloc
    for address in ADDRESSES[count:]:
        tree = tree.replace(f'pci_busid="{address}" pci_type="0302', 'pci_type="0200')
    return msgspec.structs.replace(
        WHOLE,
        hwloc=tree,
        system=msgspec.structs.replace(WHOLE.system, pci=tuple(pci)),
        nvml=msgspec.structs.replace(WHOLE.nvml, gpus=tuple(gpus), silent=tuple(silent)),
    )


@given(st.lists(st.sampled_from(VARIANTS), min_size=1, max_size=8))
def test_each_gpu_of_the_bus_answers_or_has_a_state(
    kinds: list[tuple[UnusableState | None, Kind]],
) -> None:
    found = machine_from(node(kinds))
    states = [state for state, _ in kinds]
    assert [gpu.pci for gpu in found.gpus] == [
        address for address, state in zip(ADDRESSES, states, strict=False) if state is None
    ]
    assert [gpu.index for gpu in found.gpus] == list(range(len(found.gpus)))
    assert [(gpu.pci, gpu.state) for gpu in found.unusable_gpus] == [
        (address, state) for address, state in zip(ADDRESSES, states, strict=False) if state
    ]
    _says_each(found)


def _says_each(found: Machine) -> None:
    """An error names the lost GPUs and no other, and notes name the others once each."""
    error, notes = lost_text(found), "\n".join(found.notes)
    assert bool(error) == bool(found.lost_gpus)
    for gpu in found.unusable_gpus:
        assert (gpu.pci in error) == (gpu.state == "lost")
        assert notes.count(gpu.pci) == (gpu.state != "lost")
    for answers in found.gpus:
        assert answers.pci not in error and answers.pci not in notes
    assert bool(found.gpus) != bool(found.gpu_reason)


def test_a_lost_gpu_is_named_by_its_address_and_the_others_keep_the_numbers_of_cuda() -> None:
    found = machine("lost-gpu")
    assert lost_text(found) == (
        "1 NVIDIA GPU does not answer: 0000:b1:00.0 (GPU is lost); the others are gpu:0-2"
    )
    assert [gpu.pci for gpu in found.gpus] == ["0000:17:00.0", "0000:31:00.0", "0000:ca:00.0"]
    assert found.gpus[2].peers == (0, 1)


def test_a_container_names_what_it_was_not_given_and_has_no_error() -> None:
    found = machine("container")
    assert lost_text(found) == ""
    (note,) = [note for note in found.notes if "not given to this process" in note]
    assert note.startswith("6 NVIDIA GPUs are not given to this process: 0000:00:06.0, ")
    assert len(found.gpus) == 2


def test_a_gpu_that_answered_hwloc_is_given_to_the_process() -> None:
    """A capture of an older version, which did not record drivers and access."""
    capture = node([(None, answering()), ("lost", (PciFacts(""), None))])
    opened = f'<object type="PCIDev" pci_busid="{ADDRESSES[1]}" pci_type="0302 [10de:2335] '
    assert opened in capture.hwloc
    tail = '[10de:0000] a1" pci_link_speed="0.000000">'
    inner = '<object type="OSDev" name="nvml1" subtype="NVML" osdev_type="1"/>'
    seen = capture.hwloc.replace(f"{opened}{tail}", f"{opened}{tail}{inner}")
    assert seen != capture.hwloc
    states = [
        [gpu.state for gpu in machine_from(each).unusable_gpus]
        for each in (capture, msgspec.structs.replace(capture, hwloc=seen))
    ]
    assert states == [["unknown"], ["lost"]]


def test_numbers_without_an_address_have_those_that_are_left() -> None:
    kinds = [(None, answering()), ("lost", (PciFacts("", driver="nvidia", access="open"), None))]
    capture = node(kinds)  # type: ignore[arg-type]
    assert capture.nvml is not None
    silent = (SilentGpu(1, "", 15, "GPU is lost"),)
    nvml = msgspec.structs.replace(capture.nvml, silent=silent)
    found = machine_from(msgspec.structs.replace(capture, nvml=nvml))
    assert found.unusable_gpus == (UnusableGpu(ADDRESSES[1], "lost", "GPU is lost"),)
    bare = msgspec.structs.replace(capture.system, pci=())
    hidden = msgspec.structs.replace(
        capture, nvml=nvml, system=bare, hwloc=capture.hwloc.replace("0302 [10de", "0200 [10de")
    )
    (gpu,) = machine_from(hidden).unusable_gpus
    assert str(gpu) == "address unknown (number 1 of the driver: GPU is lost)"


@pytest.mark.parametrize("count", [1, 2, 8])
def test_no_gpu_at_all_has_the_reason_that_all_have(count: int) -> None:
    denied: DeviceAccess = "denied"
    kinds = {
        "not given": PciFacts("", driver="nvidia", access=denied),
        "lost": PciFacts("", driver="nvidia", access="open"),
    }
    for state, facts in kinds.items():
        found = machine_from(node([(state, (facts, None))] * count))  # type: ignore[list-item]
        assert found.gpus == ()
        says = "given to this process" if state == "not given" else "not answer"
        assert says in found.gpu_reason
        assert ("--gres=gpu:N" in found.gpu_reason) == (state == "not given")


def test_without_a_driver_no_gpu_is_lost() -> None:
    kinds = list(itertools.repeat(VARIANTS[0], 3))
    capture = node(kinds)
    assert capture.nvml is not None
    nvml = msgspec.structs.replace(
        capture.nvml, driver="", gpus=(), reason="no NVIDIA driver (install it)"
    )
    found = machine_from(msgspec.structs.replace(capture, nvml=nvml))
    assert found.unusable_gpus == ()
    assert found.gpu_reason.startswith("3 NVIDIA GPUs on the PCI bus, but no NVIDIA driver")
