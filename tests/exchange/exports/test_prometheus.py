"""Metrics of a check say what the terminal says."""

from __future__ import annotations

import re

from analysis.comparison import nodes
from waywiser.analysis.comparison.checkup import check_up
from waywiser.analysis.comparison.comparison_text import verdict_text
from waywiser.analysis.health.health_check import ReferenceResult, health_of, host_health
from waywiser.exchange.exports.prometheus import health_metrics

VERDICT = re.compile(r'^waywiser_path_verdict\{.*path="([^"]*)",verdict="([^"]*)"\} 1$', re.M)


def test_the_verdict_of_a_path_is_that_of_the_terminal() -> None:
    """With so much noise few paths are decided."""
    base, now = (nodes.node(n, gpus=2, blocks=4, between_blocks=0.1) for n in (1, 2))
    checkup = check_up(now, [base])
    said = {p.curve: verdict_text(checkup.comparison, p) for p in checkup.comparison.paths}
    assert {"not decided"} <= set(said.values())
    health = health_of([host_health(now.name, (), ())], baseline=checkup)
    assert dict(VERDICT.findall(health_metrics(health, now))) == said


def test_machines_of_one_name_have_one_sample_the_worst() -> None:
    """A scraper rejects a file in which a metric has the same labels twice."""
    results = (ReferenceResult("peers", "bad", "x"),)
    worse, better = host_health("vm", (), results), host_health("vm", (), ())
    text = health_metrics(health_of([better, worse]))
    lines = [line for line in text.splitlines() if line.startswith("waywiser_check_status")]
    assert 'waywiser_check_status{host="vm",status="failed"} 1' in lines
    labels = [line.partition("} ")[0] for line in lines]
    assert len(labels) == len(set(labels)) == 3
