"""Which transport a survey uses, and which nodes cannot take part in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpi_wheels import mpicc_of
from waywiser.cluster.survey_options import ClusterSurveyOptions
from waywiser.cluster.surveys.survey_transport import TransportError, choose_transport, unable_nodes
from waywiser.measure.ranks.mpi_library import find_library
from waywiser.words.cluster import ClusterNode, ClusterPlan, Rail

ON_GPU = (Rail(0, gpu=0),)


def node(name: str, rails: tuple[Rail, ...] = ON_GPU, **versions: str) -> ClusterNode:
    return ClusterNode(name, rails=rails, versions=versions)


def test_nccl_is_chosen_if_most_nodes_have_it() -> None:
    having = [node(name, nccl="2.28.9") for name in ("n1", "n2")]
    assert choose_transport(None, [*having, node("n3")]) == "nccl"
    assert choose_transport(None, [*having, node("n3"), node("n4", (Rail(0),))]) == "mpi"
    assert choose_transport("mpi", having) == "mpi"
    with pytest.raises(TransportError, match="1 of 2 nodes have GPUs and NCCL"):
        choose_transport("nccl", [having[0], node("n3")])


def test_a_node_with_another_nccl_than_most_cannot_take_part() -> None:
    nodes = [
        node("n1", nccl="2.28.9"),
        node("n2", nccl="2.27.3"),
        node("n3", nccl="2.28.9"),
        node("n4"),
        node("n5", (Rail(0),)),
    ]
    assert unable_nodes(ClusterPlan("nccl", 0), ClusterSurveyOptions(), nodes) == {
        "n2": "it has NCCL 2.27.3, and most nodes NCCL 2.28.9: install that version there",
        "n4": "it has no NCCL, and most nodes NCCL 2.28.9: install that version there",
    }


def test_a_node_with_another_mpi_library_than_the_coordinator_cannot_take_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that states none is tried."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mpicc = mpicc_of("mpich")
    library = find_library(mpicc)
    own = f"{library.name} {library.version}"
    nodes = [node("n1", mpi=own), node("n2", mpi="Open MPI 5.0.11"), node("n3")]
    found = unable_nodes(ClusterPlan("mpi", 0), ClusterSurveyOptions(mpicc=mpicc), nodes)
    assert found == {
        "n2": f"it has Open MPI 5.0.11, and the coordinator {own}: load the same MPI module on all "
        "nodes"
    }


def test_without_a_stated_library_no_library_is_looked_for() -> None:
    options = ClusterSurveyOptions(mpicc="/missing/mpicc")
    assert unable_nodes(ClusterPlan("mpi", 0), options, [node("n1"), node("n2")]) == {}
