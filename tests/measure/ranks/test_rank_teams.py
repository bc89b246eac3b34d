"""Errors of launches of ranks that do not start."""

from __future__ import annotations

from typing import Any

import pytest

from waywiser.measure.probe.member import MemberLost
from waywiser.measure.probe.protocol import Ready
from waywiser.measure.ranks import world
from waywiser.measure.ranks.mpi_library import Mpicc, MpiError, MpiLibrary
from waywiser.measure.ranks.world import RankTeams

LIBRARY = MpiLibrary(Mpicc("/opt/bin/mpicc", "PATH"), "/b.so", "MPICH 5.0.2", "/opt/bin/mpiexec",
                     was_cached=True)  # fmt: skip


def test_only_a_launch_after_one_that_was_well_may_be_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise MpiError("1 of 2 ranks have connected in 60 s")

    monkeypatch.setattr(world, "Launch", failing)
    teams = RankTeams(LIBRARY, 2)
    with pytest.raises(MpiError):
        teams.start()
    teams.know([Ready(1, "fake", rank=rank, ranks=2) for rank in range(2)])
    with pytest.raises(MemberLost) as lost:
        teams.start()
    assert lost.value.failure.reason == "1 of 2 ranks have connected in 60 s"


def test_launches_that_do_not_get_ready_are_those_of_the_launcher() -> None:
    error = RankTeams(LIBRARY, 2).unready(5, "rank 1 ended, while starting")
    assert str(error).startswith("/opt/bin/mpiexec: 5 launches in a row did not get ready: rank 1")
    assert "the launcher of MPICH: waywiser doctor --try" in str(error)
    other = RankTeams(LIBRARY, 2, "srun -n {ranks} {command}").unready(5, "no")
    assert str(other).startswith("srun -n {ranks} {command}: ")
