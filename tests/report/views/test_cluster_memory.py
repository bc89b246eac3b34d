"""Results say between which memories the messages of pairs were."""

from __future__ import annotations

from typing import Literal

import pytest
from tests.analysis.cluster.planted_verdicts import nodes, planted

from waywiser.analysis.cluster.summary import summarise_cluster
from waywiser.profile.cluster_folder import ClusterResult
from waywiser.render.cluster import cluster_document
from waywiser.render.views.cluster import tests_text as text_of_tests
from waywiser.words.cluster import ClusterPlan


@pytest.mark.parametrize(
    ("memory", "between"),
    [
        ("gpu", ", between memories of GPUs"),
        ("host", ", between memories of hosts"),
        ("", ""),
    ],
)
def test_the_memory_of_messages_is_shown(memory: Literal["gpu", "host", ""], between: str) -> None:
    result = ClusterResult(ClusterPlan("mpi", 0, memory=memory), (), (), {})
    found = summarise_cluster(result, planted(nodes(4, {})))
    assert text_of_tests(found) == f"0 tests over mpi{between}"
    assert cluster_document(found, result, None).subtitle[0].startswith(text_of_tests(found))
