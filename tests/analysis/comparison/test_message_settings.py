"""A change of all messages between ranks is first one of their library and its settings."""

from __future__ import annotations

from typing import Any

import nodes
from msgspec.structs import replace

from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import answer_lines
from waywiser.curves.subject import Subject
from waywiser.machine.environment import message_variables


def messages(number: int, seconds: float, variables: dict[str, str] | None) -> Subject:
    library: dict[str, Any] = {"library": "MPICH 5", "mpicc": "/opt/bin/mpicc"}
    if variables is not None:
        library["variables"] = variables
    made = nodes.node(number, gpus=0, created=f"2026-11-{10 + number}")
    series = tuple(
        nodes.digest(
            nodes.workload(f"pageable@rank:0 -> pageable@rank:{other} by mpi"),
            [seconds * (1 + 0.001 * n) for n in range(4)],
        )
        for other in range(1, 13)
    )
    return replace(made, points=series, file=f"{number}.wwp", environment={"messages": library})


def first_line_and_notes(
    before: dict[str, str] | None, now: dict[str, str] | None
) -> tuple[str, tuple[str, ...]]:
    found = compare([messages(1, 0.01, before)], [messages(2, 0.03, now)])
    return next(iter(answer_lines(found))), found.notes


def test_different_settings_are_named_first() -> None:
    first, notes = first_line_and_notes({}, {"UCX_TLS": "tcp"})
    assert first.startswith("messages between ranks are 6")
    assert "(UCX_TLS none before, tcp now)" in first and "clocks" not in first
    assert notes[0] == "other settings of the MPI library: UCX_TLS none before, tcp now"


def test_without_a_known_difference_the_library_is_what_to_look_at() -> None:
    for before, now in ((None, None), (None, {"UCX_TLS": "tcp"}), ({}, {})):
        first, notes = first_line_and_notes(before, now)
        assert "look at the MPI library's transport and settings" in first
        assert "clocks" not in first and not any("other settings" in note for note in notes)


def test_only_variables_of_mpi_libraries_are_recorded() -> None:
    given = {"UCX_TLS": "tcp", "OMPI_MCA_pml": "ucx", "HOME": "/h", "SECRET": "s"}
    assert message_variables(given) == {"OMPI_MCA_pml": "ucx", "UCX_TLS": "tcp"}
