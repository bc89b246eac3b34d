from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from machines import machine

from waywiser.measure.plan.paths import find_paths


@pytest.mark.usefixtures("scripted")
def test_without_a_gpu_every_gpu_path_is_not_supported_with_the_machines_reason() -> None:
    found = find_paths(machine())
    assert [str(p) for p in found.valid] == ["pageable@numa:0 -> pageable@numa:0 by cpu"]
    reasons = {unsupported.path: unsupported.reason for unsupported in found.unsupported_paths}
    for path in (
        "pinned@numa:0 -> device@gpu:0 by copy-engine",
        "device@gpu:0 -> device@gpu:0 by copy-engine",
        "pageable@numa:0 -> pageable@numa:0 by copy-engine",
        "pinned@numa:0 -> pageable@numa:0 by cpu",
    ):
        assert reasons[path] == "no driver is loaded; install one"


@pytest.mark.usefixtures("scripted")
def test_nonsense_is_reported_once_per_pair_of_kinds() -> None:
    unsupported_paths = find_paths(machine(gpus=4, nodes=2)).unsupported_paths
    assert {unsupported.reason for unsupported in unsupported_paths} == {
        "the CPU cannot address device memory"
    }
    assert sorted(unsupported.path for unsupported in unsupported_paths) == [
        "device -> device by cpu",
        "device -> pageable by cpu",
        "device -> pinned by cpu",
        "pageable -> device by cpu",
        "pinned -> device by cpu",
    ]


def test_what_only_some_places_do_not_support_is_reported_for_each(
    scripted: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = scripted.unsupported_reason

    def unsupported(transfer: Any, on: Any) -> str | None:
        ends = (transfer.source.place, transfer.destination.place)
        return "no way between them" if ends == ("gpu:0", "gpu:1") else real(transfer, on)

    monkeypatch.setattr(scripted, "unsupported_reason", unsupported)
    unsupported_paths = {r.path: r.reason for r in find_paths(machine(gpus=2)).unsupported_paths}
    assert unsupported_paths["device@gpu:0 -> device@gpu:1 by copy-engine"] == "no way between them"
    assert "device -> device by copy-engine" not in unsupported_paths


def test_a_reason_that_names_its_places_is_one_reason(
    scripted: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        scripted, "unsupported_reason", lambda transfer, on: f"not from {transfer.source.place}"
    )
    found = find_paths(machine(gpus=3))
    assert not found.valid
    assert len(found.unsupported_paths) == len(scripted.executors()) * len(scripted.memories()) ** 2


def test_what_counts_against_a_pair_hides_what_counts_against_one_of_its_places(
    scripted: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(transfer: Any, on: Any) -> str:
        asleep = "numa:1" in (transfer.source.place, transfer.destination.place)
        return "it is asleep" if asleep else f"not by {transfer.executor}"

    monkeypatch.setattr(scripted, "unsupported_reason", unsupported)
    result = find_paths(machine(nodes=2)).unsupported_paths
    pageable = {r.path: r.reason for r in result if r.path.startswith("pageable -> pageable")}
    assert pageable == {
        "pageable -> pageable by copy-engine": "not by copy-engine",
        "pageable -> pageable by cpu": "not by cpu",
    }
    assert len(result) == len({r.path for r in result})


def test_a_memory_that_no_executor_takes_is_reported_where_nothing_else_counts_against_it(
    scripted: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scripted, "unsupported_reason", lambda transfer, on: "it is asleep")
    assert {r.reason for r in find_paths(machine()).unsupported_paths} == {"it is asleep"}


def test_new_executors_and_kinds_are_found_without_change(
    scripted: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = {**scripted.executors()[0], "name": "pigeon"}
    kind = {**scripted.memories()[1], "name": "clay"}
    monkeypatch.setattr(scripted, "executors", lambda: [executor])
    monkeypatch.setattr(scripted, "memories", lambda: [kind])
    assert [str(p) for p in find_paths(machine(gpus=1, nodes=2)).valid] == [
        "clay@numa:0 -> clay@numa:0 by pigeon",
        "clay@numa:0 -> clay@numa:1 by pigeon",
        "clay@numa:1 -> clay@numa:0 by pigeon",
        "clay@numa:1 -> clay@numa:1 by pigeon",
    ]
