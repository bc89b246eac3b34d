"""What else differs between the sides of a comparison: every file of either side counts."""

from __future__ import annotations

from typing import Any

import nodes
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.differences import another_machine
from waywiser.curves.subject import Subject
from waywiser.machine.machine import PlacedRank

SURVEYED = {"kernel": "6.1", "governor": ["performance"], "variables": {"CUDA_DEVICE_ORDER": "PCI"}}


def survey(seed: int, file: str, driver: str = "580.159", **environment: Any) -> Subject:
    made = nodes.node(seed, gpus=2, blocks=2, created=f"2026-11-{10 + seed}")
    machine = replace(made.machine, driver=driver)
    return replace(made, file=file, machine=machine, environment=SURVEYED | environment)


def notes(base: list[Subject], new: list[Subject]) -> tuple[str, ...]:
    return compare(base, new).notes


def test_nothing_is_said_of_what_is_equal() -> None:
    assert notes([survey(1, "a"), survey(2, "b")], [survey(3, "c"), survey(4, "d")]) == ()


def test_a_driver_of_a_later_new_file_counts() -> None:
    (note,) = notes([survey(1, "a")], [survey(2, "b"), survey(3, "c", driver="590")])
    assert note == "another driver: 580.159 before, 580.159 (b) and 590 (c) now"


def test_files_of_the_base_that_differ_among_themselves_are_said() -> None:
    (note,) = notes([survey(1, "a"), survey(2, "b", driver="590")], [survey(3, "c")])
    assert note == "another driver: 580.159 (a) and 590 (b) before, 580.159 now"


def test_the_environment_counts_also_what_one_side_has_not() -> None:
    base = [survey(1, "a")]
    later = survey(3, "c", kernel="6.2", variables={"CUDA_VISIBLE_DEVICES": "0,1"})
    (note,) = notes(base, [survey(2, "b"), later])
    assert note.startswith("another environment: kernel 6.1 before, 6.1 (b) and 6.2 (c) now; ")
    assert "CUDA_DEVICE_ORDER PCI before, PCI (b) and none (c) now" in note
    assert "CUDA_VISIBLE_DEVICES none before, none (b) and 0,1 (c) now" in note
    assert notes(base, [replace(survey(2, "b"), environment={})]) == ()  # it says nothing of it


def test_isolation_is_compared_between_surveys_that_recorded_it() -> None:
    recorded = {"kernel": "6.1", "gpu_confidential": "off"}
    older = survey(1, "a", kernel="6.1")
    passed = survey(1, "a", **recorded, iommu_types=["identity"])
    translated = survey(2, "b", **recorded, iommu_types=["DMA-FQ"])
    assert notes([older], [translated]) == ()
    (note,) = notes([passed], [translated])
    assert note == "another environment: iommu types identity before, DMA-FQ now"


def exchanged(node: Subject, uuid: str) -> Subject:
    gpus = (replace(node.machine.gpus[0], uuid=uuid), *node.machine.gpus[1:])
    return replace(node, machine=replace(node.machine, gpus=gpus))


def test_a_gpu_that_was_exchanged_in_one_of_several_files_is_said() -> None:
    base, new = [survey(1, "a")], [survey(2, "b"), exchanged(survey(3, "c"), "GPU-x")]
    found = compare(base, new)
    (note,) = found.notes
    assert note == (
        "gpu:0 is another device (GPU-node0-0 before, GPU-x now) in c: a change of its paths can "
        "be the other GPU, not a fault; make a new baseline"
    )
    assert [(old.uuid, now.uuid) for old, now in found.exchanged_gpus] == [("GPU-node0-0", "GPU-x")]
    (note,) = notes([*base, exchanged(survey(4, "d"), "GPU-x")], [survey(2, "b")])
    assert note == "gpu:0 is GPU-x and not GPU-node0-0 in d of the base"


def test_a_gpu_that_is_gone_from_one_of_several_files_is_said() -> None:
    base = [survey(1, "a")]
    less = replace(nodes.without(survey(3, "c"), "0000:02:00.0"), file="c")
    found = compare(base, [survey(2, "b"), less])
    assert "gpu:1 (0000:02:00.0, GPU-node0-1) is gone in c" in found.notes
    assert not found.of("missing")
    assert "gpu:1 (0000:02:00.0, GPU-node0-1) is gone" in compare(base, [less]).notes
    assert any(note.endswith("is not in c of the base") for note in notes([*base, less], base[:1]))


def test_gpus_have_the_names_of_the_first_new_file_that_has_them() -> None:
    base = survey(1, "a")
    shifted = replace(nodes.without(survey(2, "b"), "0000:01:00.0"), file="b")
    (path,) = [p for p in compare([base], [shifted]).paths if p.curve == nodes.h2d(1)]
    assert [str(device.place) for device in path.devices] == ["gpu:0"]
    whole = [p for p in compare([base], [shifted, survey(3, "c")]).paths if p.curve == nodes.h2d(0)]
    assert [device.uuid for device in whole[0].devices] == ["GPU-node0-0"]


def test_a_survey_that_is_compared_with_itself_is_said() -> None:
    base = survey(1, "a")
    again = replace(base, file="backup")
    assert notes([base], [again]) == ("backup is the same survey as a: it has no new information",)


def test_what_an_unfinished_survey_has_not_is_no_loss() -> None:
    base, begun = survey(1, "a"), survey(2, "my b")
    begun = replace(begun, points=begun.points[:3])
    groups = compare([base], [begun])
    assert groups.counts["missing"] > 0 == groups.counts["suspected"]
    found = compare([base], [replace(begun, unfinished=True)])
    assert found.counts["missing"] == 0
    assert found.counts["skipped"] == len(base.points) - 3
    assert any("b is unfinished" in n and "--resume -o 'my b'" in n for n in found.notes)


def test_what_was_asked_for_is_said_where_it_differs() -> None:
    base = replace(survey(1, "a"), request='{"preset":"standard"}')
    new = replace(survey(2, "b"), request='{"preset":"quick","only":["gpu:1"],"sizes":"64MiB"}')
    (note,) = notes([base], [new])
    assert (
        note
        == "another plan: --preset standard before, --preset quick --only gpu:1 --sizes 64MiB now"
    )


def test_another_machine_is_said_with_what_differs() -> None:
    base = survey(1, "a")
    other = replace(survey(2, "b"), machine=replace(nodes.machine("node9", 2), driver="580.159"))
    assert another_machine([base], [other]) == "host node0 before, node9 now"
    unnamed = replace(other, machine=replace(other.machine, hostname="unknown"))
    assert another_machine([base], [unnamed]) == "no GPU has the same UUID"
    one, none = (nodes.machine("node9", gpus) for gpus in (1, 0))
    assert another_machine([base], [replace(other, machine=one)]) == (
        "host node0 before, node9 now; GPUs 2 × Test GPU before, 1 × Test GPU now"
    )
    assert "host node0" in another_machine([base], [replace(other, machine=none)])


def test_a_host_that_lost_a_gpu_is_the_same_machine_and_one_with_another_gpu_is_not() -> None:
    base = survey(1, "a")
    lost = nodes.without(base, "0000:02:00.0")
    none = replace(base, machine=replace(base.machine, gpus=()))
    renamed = replace(base, machine=replace(base.machine, hostname="node9"))
    for new in (lost, none, renamed):
        assert not another_machine([base], [new])
    assert "another host: node0 before, node9 now" in notes([base], [renamed])
    single = nodes.machine("node0", 1)
    exchanged = replace(single, gpus=(replace(single.gpus[0], uuid="GPU-new"),))
    pair = [replace(base, machine=each) for each in (single, exchanged)]
    assert another_machine(pair[:1], pair[1:]) == "no GPU has the same UUID"
    model = replace(exchanged, gpus=(replace(exchanged.gpus[0], name="Other GPU"),))
    assert "GPUs 1 × Test GPU before, 1 × Other GPU now" in another_machine(
        pair[:1], [replace(base, machine=model)]
    )


@given(st.integers(0, 3), st.integers(0, 3), st.booleans())
def test_whether_it_is_another_machine_does_not_depend_on_the_direction(
    one: int, other: int, renamed: bool
) -> None:
    first = replace(survey(1, "a"), machine=nodes.machine("node0", one))
    second = replace(first, machine=nodes.machine("node9" if renamed else "node0", other))
    assert not another_machine([first], [first])
    sides = bool(another_machine([first], [second])), bool(another_machine([second], [first]))
    assert sides[0] == sides[1] == renamed


def test_models_that_a_tool_does_not_show_are_no_other_class() -> None:
    base, new = survey(1, "a"), survey(2, "b")
    gpus = tuple(replace(gpu, name="unknown GPU") for gpu in new.machine.gpus)
    unknown = replace(new, machine=replace(new.machine, gpus=gpus, cpu_model="unknown processor"))
    assert notes([base], [unknown]) == ()


def test_a_class_of_hardware_is_that_of_a_fleet() -> None:
    def of(gpus: int, host: str) -> Subject:
        return nodes.node(1, host, gpus=gpus)

    four, one = of(4, "four"), of(1, "one")
    assert "GPUs 4 × Test GPU before, 1 × Test GPU now" in another_machine([four], [one])
    three = nodes.without(of(4, "three"), "0000:02:00.0")
    none = replace(four, machine=replace(four.machine, gpus=()))
    for incomplete in (three, none):
        assert not any("another class" in note for note in notes([four], [incomplete]))
    numa = (*four.machine.numa, replace(four.machine.numa[0], index=1))
    wider = replace(four, machine=replace(four.machine, numa=numa))
    sides = "4 × Test GPU, 1 NUMA node before, 4 × Test GPU, 2 NUMA nodes now"
    assert f"another class of hardware: {sides}" in notes([four], [wider])


def test_libraries_of_messages_and_collectives_are_said_as_drivers_are() -> None:
    base = survey(1, "a")
    with_library = replace(base, machine=replace(base.machine, messages="MPICH 5.0.2"))
    other = survey(2, "b")
    machine = replace(other.machine, messages="Open MPI 5.0.11", nccl="2.28.9")
    (note,) = notes([with_library], [replace(other, machine=machine)])
    assert note == "another MPI library: MPICH 5.0.2 before, Open MPI 5.0.11 now", "one has no NCCL"
    before = replace(base, machine=replace(base.machine, nccl="2.27.3"))
    (note,) = notes([before], [replace(other, machine=machine)])
    assert note == "another NCCL: 2.27.3 before, 2.28.9 now"


def test_ranks_elsewhere_are_said() -> None:
    base, other = survey(1, "a"), survey(2, "b")
    local, remote = (PlacedRank(0, (0, 1), node, 0) for node in (0, 1))
    with_local = replace(base, machine=replace(base.machine, ranks=(local,)))
    with_remote = replace(other, machine=replace(other.machine, ranks=(remote,)))
    (note,) = notes([with_local], [with_remote])
    assert note == (
        "another placement of ranks: rank:0 on CPUs 0-1 of numa:0 with gpu:0 before, "
        "rank:0 on CPUs 0-1 of numa:1 with gpu:0 now"
    )
