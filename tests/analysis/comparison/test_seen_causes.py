"""Causes of a low bandwidth that a profile shows by itself."""

from __future__ import annotations

from msgspec.structs import replace

from analysis.comparison import nodes
from waywiser.analysis.comparison.seen_causes import seen_causes
from waywiser.curves.normal_causes import shipped_causes
from waywiser.curves.subject import LoadedLink

FULL = {gpu: LoadedLink(5, 16) for gpu in range(4)}


def test_links_below_their_best_under_load_are_named() -> None:
    slow = {**FULL, 1: LoadedLink(5, 8), 3: LoadedLink(4, 16)}
    found = seen_causes(nodes.node(1, gpus=4, links=slow))
    assert found["low-state"] == (
        "gpu:1 ran at PCIe 5 x8 of 5 x16 under load; gpu:3 ran at PCIe 4 x16 of 5 x16 under load"
    )


def test_a_hypervisor_is_named() -> None:
    node = nodes.node(1, gpus=4, links=FULL)
    assert seen_causes(replace(node, machine=replace(node.machine, virtual=""))) == {}
    found = seen_causes(replace(node, machine=replace(node.machine, virtual="KVM")))
    assert found == {"virtual-machine": "it is a virtual machine (KVM)"}


def test_links_that_nobody_read_are_no_evidence() -> None:
    node = nodes.node(1, gpus=4, links={})
    assert "low-state" not in seen_causes(node)


def test_each_is_a_known_cause() -> None:
    node = nodes.node(1, gpus=4, links={0: LoadedLink(3, 16)})
    virtual = replace(node, machine=replace(node.machine, virtual="KVM"))
    assert seen_causes(virtual).keys() <= {cause.id for cause in shipped_causes()}
    assert len(seen_causes(virtual)) == 2
