"""What is known of executors and kinds of memory without the native library."""

from __future__ import annotations

import runpy

import msgspec

from machine.captured import machine
from tree import ROOT
from waywiser.machine.bounds import bound
from waywiser.machine.machine import Machine
from waywiser.machine.traits import ExecutorTraits, MemoryTraits, Traits
from waywiser.words import Memory, Workload

FILE = ROOT / "python" / "waywiser" / "machine" / "traits.json"
SCRIPT = ROOT / "scripts" / "declared-traits"

RELAYED = Workload.parse("pinned@numa:0 -> device@gpu:0 by relay")
PLAIN = Workload.parse("pinned@numa:0 -> device@gpu:0 by copy-engine")


def rate(of: Machine, workload: Workload) -> float:
    found = bound(of, workload)
    assert found is not None
    return found.bytes_per_second


def test_the_file_has_what_the_registry_declares() -> None:
    current = runpy.run_path(str(SCRIPT))["declared"]()
    assert FILE.read_bytes() == current, f"run: python {SCRIPT.name} > {FILE.name}"


def test_an_executor_that_nobody_knows_uses_all_and_is_no_reference() -> None:
    unknown = Traits().executor("teleport")
    assert unknown == ExecutorTraits("teleport")
    assert unknown.uses_cpus and not unknown.is_undisturbed
    assert (unknown.route, unknown.reference, unknown.alternative) == ("shortest", "", None)
    memory = Traits().memory("molasses")
    assert memory == MemoryTraits("molasses")
    assert memory.is_moved_by_cpus and not memory.is_reached_by_gpus


def test_each_class_of_paths_has_its_reference() -> None:
    known = Traits()
    executors = [known.reference_executor(paths) for paths in ("gpu", "host", "unified", "file")]
    assert executors == ["copy-engine", "cpu", "prefetch", "direct-io"]
    assert known.reference_memory("gpu", "numa") == "pinned"
    assert known.reference_memory("gpu", "gpu") == "device"
    assert known.reference_memory("host", "numa") == "pageable"
    assert known.reference_memory("host", "gpu") == ""


def test_gpus_reach_locked_memory_and_their_own() -> None:
    known = Traits()
    reached = {each.name for each in declared().memories if each.is_reached_by_gpus}
    assert reached == {"device", "pinned", "write-combined"}
    staged = {each.name for each in declared().memories if each.is_moved_by_cpus}
    assert staged == {"file", "mapped", "pageable"}
    assert known.same_memory("write-combined") == "pinned"
    assert known.same_memory("pageable") == "pageable"
    ends = [Memory.parse(text) for text in ("pinned@numa:0", "device@gpu:0")]
    assert known.are_reached_by_gpus(*ends)


def declared() -> Traits:
    return msgspec.json.decode(FILE.read_bytes(), type=Traits)


def test_what_a_profile_stores_counts_before_what_this_version_declares() -> None:
    here = machine("h200-vm-8gpu")
    assert here.traits == Traits()
    assert rate(here, RELAYED) > 2 * rate(here, PLAIN)
    stored = Traits((ExecutorTraits("relay"), ExecutorTraits("copy-engine", route="over relays")))
    other = msgspec.structs.replace(here, traits=stored)
    assert rate(other, RELAYED) == rate(here, PLAIN)
    assert rate(other, PLAIN) == rate(here, RELAYED)


def test_a_machine_of_an_earlier_program_has_the_traits_of_this_version() -> None:
    before = msgspec.to_builtins(machine("h200-vm-8gpu"))
    del before["traits"]
    read = msgspec.convert(before, Machine)
    assert read.traits.executor("staged").route == "through host"
    assert read.traits.executor("nccl").route == "between ranks"


def test_known_traits_of_a_later_program_are_read() -> None:
    later = b'{"name": "warp", "family": "kernels", "route": "shortest", "colour": "blue"}'
    assert msgspec.json.decode(later, type=ExecutorTraits).family == "kernels"
