"""How the references of a host make one verdict."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from waywiser.analysis.health.health_check import (
    CLEARING,
    INDIRECT,
    ReferenceName,
    ReferenceResult,
    health_of,
    host_health,
    worst_of,
)
from waywiser.words import STATUSES, Reason, Status

NAMES: tuple[ReferenceName, ...] = get_args(ReferenceName)
OF_STATUS: dict[Status, Reason] = {
    Status.NOT_COMPARED: "not compared",
    Status.OK: "ok",
    Status.UNDECIDED: "not decided",
    Status.SUSPECTED: "suspected",
    Status.FAILED: "failed",
}


def results(**status: Status) -> list[ReferenceResult]:
    given = {name.replace("_", " "): OF_STATUS[each] for name, each in status.items()}
    return [ReferenceResult(n, given.get(n, "not compared"), f"{n} said") for n in NAMES]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("status", list(Status)[1:])
def test_one_reference_alone_is_the_verdict(name: ReferenceName, status: Status) -> None:
    found = host_health("n", ("n.wwp",), results(**{name.replace(" ", "_"): status}))
    if name == "devices" and status is Status.OK:
        assert (found.status, found.reference) == ("inconclusive", "")
        assert "nothing to compare with" in found.statement and "devices said" in found.statement
        return
    expected = {Status.OK: "ok", Status.FAILED: "failed"}.get(status, "inconclusive")
    assert (found.status, found.reference) == (expected, name)
    assert found.statement.startswith(f"{name} said")


@pytest.mark.parametrize(("better", "worse"), [*itertools.product(CLEARING, INDIRECT)])
def test_what_a_better_reference_cleared_is_not_accused(
    better: ReferenceName, worse: ReferenceName
) -> None:
    both = {better.replace(" ", "_"): Status.OK, worse.replace(" ", "_"): Status.FAILED}
    found = host_health("n", (), results(**both))
    assert found.status == "ok"
    assert {each.reference for each in found.results if each.cleared_by == better} == {*INDIRECT}
    assert not any(each.is_wrong for each in found.results)


def test_steady_nights_clear_nothing() -> None:
    """They may all have had the fault: what a check measured each night is no healthy time."""
    found = host_health("n", (), results(nights=Status.OK, equal_parts=Status.FAILED))
    assert (found.status, found.reference) == ("failed", "equal parts")
    both = results(nights=Status.OK, baseline=Status.OK, equal_parts=Status.FAILED)
    assert host_health("n", (), both).status == "ok"


@pytest.mark.parametrize("better", NAMES[:3])
def test_more_evidence_does_not_accuse_less(better: ReferenceName) -> None:
    """What is slow by its own parts is not cleared by a reference that suspects it."""
    for status in (Status.UNDECIDED, Status.SUSPECTED):
        both = {better.replace(" ", "_"): status, "equal_parts": Status.FAILED}
        found = host_health("n", (), results(**both))
        assert (found.status, found.reference) == ("failed", "equal parts")


def test_devices_always_count() -> None:
    found = host_health("n", (), results(baseline=Status.OK, devices=Status.FAILED))
    assert (found.status, found.reference) == ("failed", "devices")


def test_the_worst_counts_and_the_first_of_these_is_named() -> None:
    found = host_health("n", (), results(nights=Status.FAILED, peers=Status.FAILED,
                                         baseline=Status.UNDECIDED))  # fmt: skip
    assert (found.status, found.reference) == ("failed", "nights")
    found = host_health("n", (), results(baseline=Status.OK, nights=Status.OK))
    assert found.statement == "baseline said; nothing wrong by nights"


def test_hosts_without_a_reference_count_only_alone() -> None:
    ok = host_health("a", (), results(peers=Status.OK))
    none = host_health("b", (), results())
    assert worst_of([ok, none]) == "ok"
    assert worst_of([none]) == worst_of([]) == "inconclusive"
    bad = host_health("c", (), results(peers=Status.SUSPECTED))
    found = health_of([ok, none, bad])
    assert found.status == "inconclusive"
    assert [each.host for each in found.hosts] == ["c", "b", "a"]
    assert found.suspects == ("c",)
    assert str(found) == "2 inconclusive, 1 ok of 3 hosts"
    assert STATUSES["not compared"] is Status.NOT_COMPARED
