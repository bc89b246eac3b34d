"""Which copies are observed, and on which GPUs."""

from __future__ import annotations

import msgspec
import pytest

from measure.plan.machines import machine
from waywiser.machine.catalogue import Catalogue
from waywiser.measure.plan.plan import make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.who_copies import observed_gpus, observed_transfers
from waywiser.words import Transfer


def kinds(found: tuple[Transfer, ...]) -> set[tuple[str, str, str]]:
    """Places of both ends, with ``own`` and ``peer`` for GPUs, and the layout."""
    return {
        (
            each.path.source.kind,
            each.path.destination.kind,
            each.layout.kind if each.layout else "contiguous",
        )
        for each in found
    }


@pytest.mark.parametrize("gpus", [1, 2, 8])
@pytest.mark.parametrize("nodes", [1, 2])
def test_each_kind_of_path_layout_and_setting_is_observed(gpus: int, nodes: int) -> None:
    known = machine(gpus=gpus, nodes=nodes)
    catalogue = Catalogue(known)
    for gpu in known.gpus:
        found = observed_transfers(known, gpu)
        assert len(set(map(str, found))) == len(found)
        for transfer in found:
            assert catalogue.unsupported_reason(transfer) is None
            assert catalogue.executors[transfer.path.executor].traits.either_unit
            assert any(place.index == gpu.index for place in transfer.path.places
                       if place.kind == "gpu")  # fmt: skip
        for layout in ("contiguous", "list", "box"):
            for ends in [("pinned", "device"), ("device", "pinned"), ("pageable", "device"),
                         ("device", "device")]:  # fmt: skip
                assert (*ends, layout) in kinds(found)
        own = [each for each in found if len(set(each.path.places)) == 1]
        assert {each.bytes for each in own if each.layout is None} == {4096, 2**20}
        assert any(each.parameters for each in own)
        assert not any(each.parameters.get("peer") == "off" for each in found)
        to = {place.index for each in found if each.path.destination.kind == "device"
              for place in each.path.places if place.kind == "gpu"}  # fmt: skip
        assert to == set(range(gpus)), "each peer"


def test_without_peer_access_no_peer_is_tried() -> None:
    known = machine(gpus=3)
    apart = [msgspec.structs.replace(gpu, peers=()) for gpu in known.gpus]
    known = msgspec.structs.replace(known, gpus=tuple(apart))
    for gpu in known.gpus:
        places = {place for each in observed_transfers(known, gpu) for place in each.path.places}
        assert {place.index for place in places if place.kind == "gpu"} == {gpu.index}


@pytest.mark.parametrize(
    ("only", "gpus"),
    [
        (("*device@gpu:0 by copy-engine",), {0, 1, 2}),
        (("device@gpu:1 -> device@gpu:1 by copy-engine",), {1}),
        (("pinned@numa:0 -> device@gpu:2 by copy-engine",), {2}),
        (("device@gpu:0 -> device@gpu:0 by sm",), set()),
        (("h2h",), set()),
    ],
)
def test_gpus_whose_copies_are_planned_are_observed(only: tuple[str, ...], gpus: set[int]) -> None:
    known = machine(gpus=3)
    traits = Catalogue(known).traits
    known = msgspec.structs.replace(known, traits=traits)
    points = make_plan(known, Request(preset="standard", only=only)).points
    assert {gpu.index for gpu in observed_gpus(known, points)} == gpus
