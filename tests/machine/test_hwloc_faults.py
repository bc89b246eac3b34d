from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waywiser.machine import pcie
from waywiser.machine.assemble import machine_from
from waywiser.machine.bounds import bound, why_unbounded
from waywiser.machine.capture import Capture
from waywiser.machine.hwloc_faults import hwloc_version, is_pcie_3_for_later
from waywiser.machine.machine import Machine
from waywiser.words import Workload

P2P = Workload.parse("device@gpu:0 -> device@gpu:1 by copy-engine")
H2D = Workload.parse("pinned@numa:0 -> device@gpu:0 by copy-engine")

DOUBLED = ["2.4.0", "2.5.0", "2.7.0", "2.8.0", "2.9.0"]
RIGHT = ["2.10.0", "2.11.2", "2.12.0rc1", "3.0.0"]
MODELS = {
    "Tesla P100-SXM2-16GB": (4, 20),
    "Tesla V100-SXM2-32GB": (6, 25),
    "Quadro RTX 8000": (2, 25),
    "NVIDIA A100-SXM4-80GB": (12, 25),
    "NVIDIA A30": (4, 25),
    "NVIDIA H100 80GB HBM3": (18, 25),
    "NVIDIA H200": (18, 25),
}
"""Model -> its NVLinks and the GB/s of each, by data sheets."""
MAY_DOUBLE = [name for name in MODELS if "P100" not in name and "V100" not in name]


def file(version: str, model: str, mb_per_s: int, link_speed: float = 0.0) -> Machine:
    """Two GPUs with NVLinks of these MB/s between them, as this version of hwloc writes it."""
    devices = "".join(
        f'<object type="PCIDev" gp_index="{10 + n}" pci_busid="0000:0{n}:00.0" '
        f'pci_type="0302 [10de:20b0] [10de:0000] a1" pci_link_speed="{link_speed:.6f}">'
        f'<object type="OSDev" gp_index="{20 + n}" name="nvml{n}" subtype="NVML" osdev_type="1">'
        f'<info name="GPUModel" value="{model}"/></object></object>'
        for n in range(2)
    )
    text = f"1000000 {mb_per_s} {mb_per_s} 1000000"
    xml = (
        '<topology version="2.0"><object type="Machine" os_index="0" cpuset="0x1" nodeset="0x1">'
        + (f'<info name="hwlocVersion" value="{version}"/>' if version else "")
        + '<object type="NUMANode" os_index="0" cpuset="0x1" nodeset="0x1" local_memory="1024"/>'
        f'<object type="PU" os_index="0" cpuset="0x1"/>{devices}</object>'
        '<distances2hetero nbobjs="2" kind="5" name="NVLinkBandwidth"><indexes length="1">'
        f'OSDev:20 OSDev:21</indexes><u64values length="1">{text}</u64values></distances2hetero>'
        "</topology>"
    )
    return machine_from(Capture(hwloc=xml))


@pytest.mark.parametrize("version", DOUBLED)
@pytest.mark.parametrize("model", MAY_DOUBLE)
def test_old_versions_state_later_nvlinks_with_both_directions(version: str, model: str) -> None:
    lanes, rate = MODELS[model]
    for used in {1, lanes // 2, lanes}:
        found = file(version, model, used * 2 * rate * 1000)
        (link,) = found.gpus[0].nvlinks
        assert (link.lanes, link.gb_per_s_per_lane) == (used, rate)
        (note,) = [note for note in found.notes if "both directions" in note]
        assert version in note and f"{2 * used * rate}.0 GB/s" in note
        peak = bound(found, P2P)
        assert peak is not None and peak.bytes_per_second == used * rate * 1e9


@given(st.sampled_from([*DOUBLED, *RIGHT, "2.9.2"]), st.data())
def test_models_that_were_never_doubled_are_taken_as_they_are(
    version: str, data: st.DataObject
) -> None:
    model = data.draw(st.sampled_from(["Tesla P100-SXM2-16GB", "Tesla V100-SXM2-32GB"]))
    lanes, rate = MODELS[model]
    used = data.draw(st.integers(1, lanes))
    found = file(version, model, used * rate * 1000)
    assert [link.lanes for link in found.gpus[0].nvlinks] == [used]
    assert not any("both directions" in note for note in found.notes)


@given(st.sampled_from(RIGHT), st.sampled_from(sorted(MODELS)), st.data())
def test_later_versions_are_right(version: str, model: str, data: st.DataObject) -> None:
    lanes, rate = MODELS[model]
    used = data.draw(st.integers(1, lanes))
    (link,) = file(version, model, used * rate * 1000).gpus[0].nvlinks
    assert (link.lanes, link.gb_per_s_per_lane) == (used, rate)


@given(st.sampled_from(MAY_DOUBLE), st.sampled_from(["", "PR-436", *RIGHT, "2.9.3"]))
def test_more_than_a_model_can_have_is_doubled_whatever_wrote_it(model: str, version: str) -> None:
    lanes, rate = MODELS[model]
    (link,) = file(version, model, 2 * lanes * rate * 1000).gpus[0].nvlinks
    assert (link.lanes, link.gb_per_s) == (lanes, lanes * rate)


@pytest.mark.parametrize(
    ("version", "model", "mb_per_s"),
    [("2.9.2", "NVIDIA A100-SXM4-40GB", 100000), ("", "NVIDIA H100 PCIe", 200000)]
    + [(version, "Some later GPU", 50000 * lanes) for version in DOUBLED for lanes in (1, 2, 4)],
)
def test_a_rate_that_may_be_either_is_unknown(version: str, model: str, mb_per_s: int) -> None:
    found = file(version, model, mb_per_s)
    (link,) = found.gpus[0].nvlinks
    assert (link.lanes, link.gb_per_s) == (0, 0.0)
    assert any("the rate of the NVLinks is unknown" in note for note in found.notes)
    assert bound(found, P2P) is None and "unknown" in why_unbounded(found, P2P)


def test_a_number_of_lanes_is_not_made_up() -> None:
    (link,) = file("2.12.0", "Some later GPU", 75000).gpus[0].nvlinks
    assert (link.lanes, link.gb_per_s) == (0, 75.0)
    assert file("2.12.0", "Tesla V100-SXM2-16GB", 75000).gpus[0].nvlinks[0].lanes == 3


@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("version", ["2.7.0", "2.9.3", "2.10.0", ""])
def test_pcie_3_for_a_later_gpu_is_no_bound(version: str, width: int) -> None:
    speed = pcie.bytes_per_second(3, width) / 1e9
    found = file(version, "NVIDIA H100 PCIe", 0, speed)
    assert bound(found, H2D) is None
    assert any(f"({speed:.1f} GB/s)" in note and "gpu:0-1" in note for note in found.notes)


@pytest.mark.parametrize(
    ("version", "model", "gb_per_s"),
    [
        ("2.11.0", "NVIDIA H100 PCIe", 15.753846),
        ("2.9.0", "Tesla V100-SXM2-16GB", 15.753846),
        ("2.9.0", "NVIDIA A100-SXM4-40GB", 31.507692),
        ("2.9.0", "NVIDIA A100-SXM4-40GB", 4.0),
    ],
)
def test_other_rates_of_pcie_are_as_the_file_has_them(
    version: str, model: str, gb_per_s: float
) -> None:
    peak = bound(file(version, model, 0, gb_per_s), H2D)
    assert peak is not None and peak.bytes_per_second == pytest.approx(gb_per_s * 1e9)


def test_only_a_build_with_nvml_states_pcie_3_for_later() -> None:
    assert not is_pcie_3_for_later(
        15.753846, is_from_nvml=False, model="NVIDIA H100 PCIe", version=(2, 9, 0)
    )


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.9.0", (2, 9, 0)),
        ("2.10", (2, 10, 0)),
        ("3.0.0a1-git", (3, 0, 0)),
        ("PR-436-20201209.1647.gitfc946998", None),
        ("", None),
    ],
)
def test_versions_are_read(text: str, version: tuple[int, int, int] | None) -> None:
    assert hwloc_version(text) == version
