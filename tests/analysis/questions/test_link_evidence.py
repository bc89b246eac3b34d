"""Only bytes that a copy engine or a kernel moves over a link are evidence against it."""

from __future__ import annotations

from itertools import permutations

import pytest
from tests.analysis.questions.machines import LARGE, host_links, machine, peer_links
from tests.analysis.questions.subjects import curve, postal, subject

from waywiser.analysis.questions.identical import answer
from waywiser.curves.answer import Finding
from waywiser.words.records import Series

OTHER_MEANS = (("page-fault", "managed"), ("prefetch", "managed"))


def by_other_means(executor: str, memory: str, slow: tuple[int, int]) -> list[Series]:
    """Peer transfers that CPUs and drivers have a part in, one of which is slow."""
    found: list[Series] = []
    for a, b in permutations(range(4), 2):
        rate = 20e9 / (2.0 if (a, b) == slow else 1.0)
        path = f"{memory}@gpu:{a} -> {memory}@gpu:{b} by {executor}"
        found += curve(path, postal(3e-6, rate), LARGE, blocks=4)
    return found


def accusations(*series: list[Series]) -> list[Finding]:
    found = answer(subject(*series, machine=machine(4))).findings
    return [each for each in found if each.id == "slow-link"]


@pytest.mark.parametrize(("executor", "memory"), OTHER_MEANS)
@pytest.mark.parametrize("slow", [(0, 3), (1, 2), (3, 1)])
def test_page_faults_and_prefetches_accuse_no_link(
    executor: str, memory: str, slow: tuple[int, int]
) -> None:
    series = by_other_means(executor, memory, slow)
    assert accusations(series) == []
    assert accusations(series, peer_links(4, blocks=4)) == []
    said = answer(subject(series, machine=machine(4))).findings
    assert [each.id for each in said] == ["slow-path"]
    assert f"{executor} from gpu:{slow[0]} to gpu:{slow[1]}" in said[0].text


@pytest.mark.parametrize(("executor", "memory"), OTHER_MEANS)
def test_they_stand_beside_copies_that_do(executor: str, memory: str) -> None:
    (found,) = accusations(
        by_other_means(executor, memory, (0, 3)), peer_links(4, {(0, 3): 0.4}, blocks=4)
    )
    assert "the link between gpu:0 and gpu:3" in found.text
    assert "copy-engine" in found.text


def test_a_method_that_is_slow_while_another_equals_its_peers_is_no_link() -> None:
    kernels: list[Series] = []
    for a, b in permutations(range(4), 2):
        path = f"device@gpu:{a} -> device@gpu:{b} by sm"
        rate = 300e9 / (1.5 if (a, b) == (2, 0) else 1.0)
        kernels += curve(path, postal(3e-6, rate), LARGE, blocks=4)
    assert accusations(kernels, peer_links(4, blocks=4)) == []
    assert [each.id for each in accusations(kernels)] == ["slow-link"]


def test_pageable_copies_accuse_no_link_to_the_host() -> None:
    pageable = host_links(4, {2: 0.5}, kind="pageable", blocks=4)
    assert accusations(pageable, host_links(4, blocks=4)) == []
    assert len(accusations(pageable, host_links(4, {2: 0.5}, blocks=4))) == 1
