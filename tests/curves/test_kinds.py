"""Transfers sorted into the rows of tables."""

from __future__ import annotations

import msgspec
import pytest
from tests import profiles
from tests.analysis.questions.subjects import curve, postal, subject

from waywiser.curves.kinds import kind_of, usual
from waywiser.machine.machine import Gpu, Machine, NumaNode, NvLink
from waywiser.words import Transfer


def two_nodes() -> Machine:
    machine = profiles.machine()
    gpus = tuple(
        msgspec.structs.replace(
            gpu, numa=gpu.index, nvlinks=(NvLink(f"gpu:{1 - gpu.index}", 2, 25.0),)
        )
        for gpu in machine.gpus
    )
    nodes = (*machine.numa, NumaNode(1, (4, 5), 2**34, 1))
    return msgspec.structs.replace(machine, gpus=gpus, numa=nodes)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("pinned@numa:0 -> device@gpu:0 by copy-engine", "pinned -> GPU by copy-engine (local)"),
        ("device@gpu:0 -> pinned@numa:1 by sm", "GPU -> pinned by sm (remote)"),
        ("pageable@numa:0 -> pageable@numa:1 by cpu", "pageable -> pageable by cpu (remote)"),
        ("device@gpu:0 -> device@gpu:1 by copy-engine",
         "GPU -> GPU by copy-engine (NVLink ×2, remote)"),
        ("device@gpu:0 -> device@gpu:1 by copy-engine[peer=off]",
         "GPU -> GPU by copy-engine (peer off, remote)"),
        ("pageable@numa:0 -> pageable@numa:1 by mpi[test=bw]", "pageable -> pageable by mpi"),
        ("device@gpu:0 -> pageable@numa:1 by mpi[test=latency]", "GPU -> pageable by mpi"),
        ("device@gpu:0 -> device@gpu:0 by copy-engine",
         "same GPU -> same GPU by copy-engine (local)"),
        ("managed@numa:0 -> managed@gpu:0 by prefetch",
         "managed at host -> managed at GPU by prefetch (local)"),
    ],
)  # fmt: skip
def test_a_kind_is_what_is_moved_and_whether_it_is_near(text: str, result: str) -> None:
    assert str(kind_of(Transfer.parse(text), two_nodes())) == result


def test_on_one_node_nothing_is_near_or_far() -> None:
    machine = profiles.machine()
    assert str(kind_of(Transfer.parse(profiles.H2D), machine)) == "pinned -> GPU by copy-engine"
    assert kind_of(Transfer.parse(profiles.PEER), machine).link == "NVSwitch"


def test_gpus_without_lanes_are_on_pcie_or_are_no_peers() -> None:
    machine = profiles.machine()
    bare = tuple(msgspec.structs.replace(gpu, nvlinks=()) for gpu in machine.gpus)
    peer = Transfer.parse(profiles.PEER)
    assert kind_of(peer, msgspec.structs.replace(machine, gpus=bare)).link == "PCIe"
    alone = tuple(msgspec.structs.replace(gpu, peers=()) for gpu in bare)
    assert kind_of(peer, msgspec.structs.replace(machine, gpus=alone)).link == "no peer access"


def test_a_link_that_nothing_describes_has_no_label() -> None:
    machine = profiles.machine()
    named = tuple(Gpu(gpu.index, "", gpu.name, gpu.pci, peers=gpu.peers) for gpu in machine.gpus)
    peer = Transfer.parse(profiles.PEER)
    assert kind_of(peer, msgspec.structs.replace(machine, gpus=named)).link == ""
    alone = tuple(msgspec.structs.replace(gpu, peers=()) for gpu in named)
    assert kind_of(peer, msgspec.structs.replace(machine, gpus=alone)).link == ""
    off = Transfer.parse(f"{profiles.PEER}[peer=off]")
    assert kind_of(off, msgspec.structs.replace(machine, gpus=alone)).link == "peer off"


def test_variations_of_a_path_are_no_kinds() -> None:
    texts = (
        profiles.H2D,
        f"{profiles.H2D} (flushed)",
        f"{profiles.H2D}[api=sync]",
        "pinned[pages=huge]@numa:0 -> device@gpu:0 by copy-engine",
        f"{profiles.H2D}; {profiles.D2H}",
        f"{profiles.PEER}[peer=off]",
    )
    found = subject(*(curve(text, postal(1e-6, 1e9), (2**20,)) for text in texts))
    assert [each.text for each, _ in usual(found)] == [texts[0], texts[-1]]
