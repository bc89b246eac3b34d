from __future__ import annotations

import msgspec
import pytest

from machine.captured import machine
from waywiser.machine.machine import Machine
from waywiser.machine.routes import is_through_host, relays_of, renumbered_relays
from waywiser.words import Transfer

H200 = machine("h200-vm-8gpu")
H2D = "pinned@numa:0 -> device@gpu:2 by"


def without_peers(index: int) -> Machine:
    gpus = [msgspec.structs.replace(g, peers=()) if g.index == index else g for g in H200.gpus]
    return msgspec.structs.replace(H200, gpus=tuple(gpus))


@pytest.mark.parametrize(
    ("text", "relays"),
    [
        (f"{H2D} relay", (0, 1, 3, 4, 5, 6, 7)),
        (f"{H2D} relay[relays=7+1]", (1, 7)),
        ("device@gpu:0 -> pageable@numa:0 by relay[relays=1]", (1,)),
        (f"{H2D} copy-engine", ()),
        (f"{H2D} staged", ()),
        (f"{H2D.replace('gpu:2', 'gpu:9')} relay", ()),
    ],
)
def test_relays_are_those_that_are_named_or_all_peers(text: str, relays: tuple[int, ...]) -> None:
    assert relays_of(Transfer.parse(text), H200) == relays


def test_a_relay_has_peer_access_both_ways() -> None:
    assert 5 not in relays_of(Transfer.parse(f"{H2D} relay"), without_peers(5))
    assert relays_of(Transfer.parse(f"{H2D} relay"), without_peers(2)) == ()


@pytest.mark.parametrize(
    ("text", "through_host"),
    [
        ("device@gpu:0 -> device@gpu:1 by copy-engine", False),
        ("device@gpu:0 -> device@gpu:1 by copy-engine[peer=off]", True),
        ("device@gpu:0 -> device@gpu:1 by staged", True),
        ("device@gpu:5 -> device@gpu:1 by sm", True),
        ("device@gpu:0 -> device@gpu:0 by copy-engine", False),
        ("device@gpu:0 -> device@gpu:9 by copy-engine", False),
        (f"{H2D} staged", False),
    ],
)
def test_bytes_go_through_the_host_without_peer_access_and_when_staged(
    text: str, through_host: bool
) -> None:
    assert is_through_host(Transfer.parse(text), without_peers(5)) == through_host


def test_relays_follow_the_numbers_of_their_gpus() -> None:
    assert renumbered_relays({"relays": "1+3", "slots": "2"}, {1: 6}) == {
        "relays": "3+6",
        "slots": "2",
    }
    assert renumbered_relays({"slots": "2"}, {1: 6}) == {"slots": "2"}
