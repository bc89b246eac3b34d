"""A run with the rounds of the real procedure, of which tests fail."""

from __future__ import annotations

from pathlib import Path

from cluster.recorded_run import Record
from cluster.simulated_transport import SimulatedTransport, nodes
from waywiser.cluster.surveys.run import ClusterRun
from waywiser.profile.cluster_folder import ClusterFolder
from waywiser.words.cluster import ClusterPlan


def test_a_pair_that_always_fails_ends_no_run(tmp_path: Path) -> None:
    pair = frozenset(("n1", "n3"))
    transport = SimulatedTransport(failing_sets=frozenset({pair}))
    with ClusterFolder.create(tmp_path / "c", ClusterPlan("mpi", 1)) as folder:
        ClusterRun(folder, lambda: nodes(5), transport, Record()).go()
        tests = folder.tests
    assert {frozenset(each.test.nodes) for each in tests if each.failed} == {pair}
    assert {each.test.phase for each in tests if each.failed} == {"pairs", "pair"}
    assert tests[-1].test.phase == "collective" and tests[-1].failed is None
