from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from machine.fake_nvml import FakeNvml, h200_answers
from waywiser.machine.nvml_facts import read_nvml
from waywiser.machine.silent_gpus import EXCLUDED

LOST, NO_PERMISSION, UNKNOWN = 15, 4, 999
GPUS = 8


def node(errors: dict[int, int], dead: frozenset[int] = frozenset()) -> FakeNvml:
    """Eight H200s at 0000:00:06.0 to 0000:00:0d.0: those of ``errors`` have no handle, those of
    ``dead`` have one and answer nothing but their address."""
    gpus: list[dict[str, Any]] = []
    for index in range(GPUS):
        answers = h200_answers(index, GPUS)
        if index in errors:
            answers["handle_error"] = errors[index]
        if index in dead:
            answers = {"PciInfo": answers["PciInfo"], "UUID": _lost}
        gpus.append(answers)
    return FakeNvml(gpus)


def _lost() -> str:
    raise FakeNvml.NVMLError(LOST)


def address(index: int) -> str:
    return f"0000:00:{6 + index:02x}.0"


ADDRESSES = [address(index) for index in range(GPUS)]


@given(st.sets(st.integers(0, GPUS - 1), max_size=GPUS), st.sampled_from([LOST, 16, UNKNOWN]))
def test_gpus_without_a_handle_have_the_addresses_that_are_left(
    silent: set[int], error: int
) -> None:
    facts = read_nvml(node(dict.fromkeys(silent, error)), ADDRESSES)
    assert [gpu.pci for gpu in facts.gpus] == [
        a for i, a in enumerate(ADDRESSES) if i not in silent
    ]
    assert [(gpu.index, gpu.pci, gpu.error) for gpu in facts.silent] == [
        (index, address(index), error) for index in sorted(silent)
    ]


@given(st.sets(st.integers(0, GPUS - 1), min_size=1))
def test_a_gpu_that_has_a_handle_and_answers_nothing_is_silent(dead: set[int]) -> None:
    facts = read_nvml(node({}, frozenset(dead)), ADDRESSES)
    assert [(gpu.index, gpu.pci, gpu.reason) for gpu in facts.silent] == [
        (index, address(index), "GPU is lost") for index in sorted(dead)
    ]
    assert len(facts.gpus) == GPUS - len(dead)


def test_without_addresses_of_the_bus_the_number_is_kept() -> None:
    (silent,) = read_nvml(node({3: LOST})).silent
    assert (silent.index, silent.pci, silent.reason) == (3, "", "GPU is lost")


def test_a_gpu_that_is_only_on_the_bus_is_not_counted() -> None:
    facts = read_nvml(node({}), [*ADDRESSES, "0000:40:00.0"])
    (silent,) = facts.silent
    assert (silent.index, silent.pci, silent.error) == (-1, "0000:40:00.0", 6)


def test_of_two_addresses_that_with_the_error_of_the_number_is_taken() -> None:
    """A GPU that NVML does not count lies beside the one that it counts and does not give."""
    between = [*ADDRESSES[:3], "0000:00:08.1", *ADDRESSES[3:]]
    facts = read_nvml(node({3: LOST}), between)
    assert {(gpu.index, gpu.pci) for gpu in facts.silent} == {
        (-1, "0000:00:08.1"),
        (3, address(3)),
    }


def test_of_two_addresses_with_its_error_neither_is_taken() -> None:
    library = node({3: 6})
    facts = read_nvml(library, [*ADDRESSES, "0000:00:08.1"])
    assert {(gpu.index, gpu.pci) for gpu in facts.silent} == {
        (3, ""),
        (-1, "0000:00:08.1"),
        (-1, address(3)),
    }


def test_a_gpu_that_an_administrator_excluded_is_named_so() -> None:
    library: Any = node({})
    library.nvmlGetExcludedDeviceCount = lambda: 1
    info = SimpleNamespace(pciInfo=SimpleNamespace(busId="00000000:40:00.0"))
    library.nvmlGetExcludedDeviceInfoByIndex = lambda index: info
    (silent,) = read_nvml(library, [*ADDRESSES, "0000:40:00.0"]).silent
    assert (silent.pci, silent.error) == ("0000:40:00.0", EXCLUDED)


def test_a_lack_of_permission_is_no_loss() -> None:
    facts = read_nvml(node({0: NO_PERMISSION, 7: LOST}), ADDRESSES)
    assert [gpu.reason for gpu in facts.silent] == ["no permission", "GPU is lost"]


@pytest.mark.parametrize("links", range(1, 21))
def test_active_c2c_links_are_read_with_their_rates(links: int) -> None:
    rates = {(172, link): 45000 - link for link in range(links)}
    states = {(171, link): int(link % 3 != 1) for link in range(links)}
    answers = h200_answers(0) | {"fields": {(170, 0): links} | states | rates}
    (gpu,) = read_nvml(FakeNvml([answers])).gpus
    assert gpu.c2c_links == links
    assert gpu.c2c_mb_per_s == tuple(45000 - link for link in range(links) if link % 3 != 1)


def test_a_gpu_without_an_address_leaves_the_others_theirs() -> None:
    """A Jetson's GPU is on no PCI bus."""
    jetson = h200_answers(0) | {"PciInfo": SimpleNamespace(busId="")}
    facts = read_nvml(FakeNvml([jetson]), [])
    assert [gpu.pci for gpu in facts.gpus] == [""]
    assert facts.silent == ()
