"""Models in the files of other programs."""

from __future__ import annotations

import importlib.util
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import msgspec
import pytest

from kept import RESULTS, unpacked
from model.simgrid_sets import spans, usual_sets
from waywiser.model.alone import SampledCurve
from waywiser.model.capacity import CapacityModel, CapacityModelReader, Queue
from waywiser.model.errors import ModelError
from waywiser.model.export import EXPORTS
from waywiser.model.machine_model import profile_capacities
from waywiser.profile import Profile
from waywiser.words import Workload

FOUR = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"
TWO = RESULTS / "2026-11-22-check-two-gpus" / "check-1.wwp.xz"
MIB = 2**20


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> CapacityModel:
    file = unpacked(TWO, tmp_path_factory.mktemp("two") / "two.wwp")
    with Profile.open(file) as profile:
        return profile_capacities(profile)


def without_gpus(model: CapacityModel) -> CapacityModel:
    machine = msgspec.structs.replace(model.machine, gpus=())
    return msgspec.structs.replace(model, machine=machine)


def test_json_is_the_model(two: CapacityModel) -> None:
    assert msgspec.json.decode(EXPORTS["model"](two), type=CapacityModel) == two


def test_a_route_of_simgrid_takes_the_time_of_its_copy(two: CapacityModel) -> None:
    root = ElementTree.fromstring(EXPORTS["simgrid"](two))
    links = {each.attrib["id"]: each.attrib for each in root.iter("link")}
    reader = CapacityModelReader(two)
    routes = list(root.iter("route"))
    assert len(routes) == 6
    for route in routes:
        source, destination = route.attrib["src"], route.attrib["dst"]
        own = links[f"{source} -> {destination}"]
        assert own["sharing_policy"] == "FATPIPE"
        seconds = float(own["latency"].removesuffix("s"))
        seconds += 64 * MIB / float(own["bandwidth"].removesuffix("Bps"))
        kinds = {"n": "pinned", "g": "device"}
        ends = [f"{kinds[place[0]]}@{place}" for place in (source, destination)]
        text = f"{' -> '.join(ends)} by copy-engine of {64 * MIB}"
        assert seconds == pytest.approx(reader.filled(Workload.parse(text)).span, rel=1e-9)
        for use in list(route)[1:]:
            assert links[use.attrib["id"]]["sharing_policy"] == "SHARED"


def test_a_joint_limit_is_one_shared_link_of_both_routes(two: CapacityModel) -> None:
    root = ElementTree.fromstring(EXPORTS["simgrid"](two))
    used = {
        (route.attrib["src"], route.attrib["dst"]): {link.attrib["id"] for link in route}
        for route in root.iter("route")
    }
    both = used["numa:0", "gpu:0"] & used["gpu:0", "numa:0"]
    assert any(name.startswith("PCIe of gpu:0, both directions") for name in both)


def test_the_platform_has_its_options_and_names_its_losses(two: CapacityModel) -> None:
    text = EXPORTS["simgrid"](two)
    root = ElementTree.fromstring(text)
    options = {each.attrib["id"]: each.attrib["value"] for each in root.iterfind("config/prop")}
    assert options == {
        "network/model": "CM02",
        "network/TCP-gamma": "0",
        "network/crosstraffic": "0",
    }
    assert "It loses:" in text
    odd = msgspec.structs.replace(two.machine, hostname='a--> <&"b')
    ElementTree.fromstring(EXPORTS["simgrid"](msgspec.structs.replace(two, machine=odd)))


def test_simgrid_has_the_spans_of_all_sets(tmp_path: Path) -> None:
    if importlib.util.find_spec("simgrid") is None:
        pytest.skip("the module simgrid is missing; docs/results/models/simulation.md has a run")
    with Profile.open(unpacked(FOUR, tmp_path / "four.wwp")) as profile:
        model = profile_capacities(profile)
        sets = usual_sets(profile.workloads())
    found = spans(model, sets, tmp_path, [sys.executable])
    assert len(found) == 26
    assert all(abs(each.error) < 0.001 for each in found)
    assert sum(each.is_queue for each in found) == 2


def test_routes_of_a_queue_name_it(two: CapacityModel) -> None:
    queue = Queue("source", "device by copy-engine", gap=3e-6)
    text = EXPORTS["simgrid"](msgspec.structs.replace(two, queues=(queue,)))
    found = {
        link.attrib["id"]: {each.attrib["id"]: each.attrib["value"] for each in link}
        for link in ElementTree.fromstring(text).iter("link")
        if len(link)
    }
    assert found == {
        f"gpu:{n} -> gpu:{1 - n}": {
            "queue": f"device by copy-engine out of gpu:{n}",
            "queue_gap": "3e-06",
        }
        for n in (0, 1)
    }


def test_the_network_of_astra_sim_is_in_its_grammar(two: CapacityModel) -> None:
    text = EXPORTS["astra-sim"](two)
    values = dict(line.split(": ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert list(values) == ["topology", "npus_count", "bandwidth", "latency"]
    assert values["topology"] == "[ Switch ]"
    assert values["npus_count"] == "[ 2 ]"
    number = r"\[ (\d+(?:\.\d+)?) \] # "
    bandwidth = re.fullmatch(f"{number}GB/s", values["bandwidth"])
    latency = re.fullmatch(f"{number}ns", values["latency"])
    assert bandwidth is not None
    assert latency is not None
    workload = Workload.parse(f"device@gpu:0 -> device@gpu:1 by copy-engine of {64 * MIB}")
    span = CapacityModelReader(two).filled(workload).span
    seconds = 2 * float(latency[1]) * 1e-9 + 64 * MIB / (float(bandwidth[1]) * 1e9)
    assert seconds == pytest.approx(span, rel=0.01)


def test_astra_sim_rejects_links_that_differ(two: CapacityModel) -> None:
    slow = "device@gpu:1 -> device@gpu:0 by copy-engine"
    curve = two.curves[slow]
    slower = SampledCurve(curve.sizes, tuple(1.2 * time for time in curve.times))
    model = msgspec.structs.replace(two, curves={**two.curves, slow: slower})
    with pytest.raises(ModelError, match="the links of the GPUs differ: gpu:1 to gpu:0"):
        EXPORTS["astra-sim"](model)


def test_astra_sim_needs_all_pairs(two: CapacityModel) -> None:
    curves = {text: c for text, c in two.curves.items() if text.count("device@gpu") < 2}
    with pytest.raises(ModelError, match="0 of 2 pairs"):
        EXPORTS["astra-sim"](msgspec.structs.replace(two, curves=curves))


@pytest.mark.parametrize("name", ["simgrid", "astra-sim"])
def test_a_machine_without_gpus_is_an_error(two: CapacityModel, name: str) -> None:
    with pytest.raises(ModelError, match="no copy between a GPU"):
        EXPORTS[name](without_gpus(two))
