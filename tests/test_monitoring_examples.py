"""The documented alerts and jobs, read by the programs that they are for."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from exchange.settings.test_reframe import CHECK
from kept import unpacked
from tree import ROOT
from waywiser.cli import run

EXAMPLES = ROOT / "docs" / "how-to" / "examples"
RULES = EXAMPLES / "prometheus-rules.yaml"
PROMTOOL = ROOT / ".deps" / "slurm" / "usr" / "bin" / "promtool"
VALIDATE = Path(sys.executable).with_name("kubernetes-validate")
JOBS = ("cluster-job.yaml", "night-cronjob.yaml")

needs_promtool = pytest.mark.skipif(
    not PROMTOOL.exists(), reason=f"{PROMTOOL.relative_to(ROOT)} is missing: scripts/set-up --slurm"
)

HOURS = 24 * 4
NODES = {
    "healthy": ("ok", 0, 10),
    "slow": ("failed", 1, 10),
    "lost": (None, 2, 10),
    "doubtful": ("inconclusive", 3, 10),
    "silent": ("ok", 0, 60),
}
"""The status of the last check, the exit code of the night, hours since the last measurement."""
ALERTS = {
    "NodeRegression": {"host": "slow", "status": "failed"},
    "NodeWithoutResult": {"host": "lost"},
    "NodeNotDecided": {"host": "doubtful"},
    "NodeNotChecked": {"host": "silent"},
}
"""The labels of the one series for which each alert fires."""


def series() -> list[dict[str, str]]:
    """The metrics of all nodes, once an hour."""
    found: list[tuple[str, float]] = []
    for host, (status, code, hours) in NODES.items():
        for each in ("ok", "failed", "inconclusive") if status else ():
            labels = f'{{host="{host}",status="{each}"}}'
            found.append((f"waywiser_check_status{labels}", each == status))
        found.append((f'waywiser_night_exit_code{{host="{host}"}}', code))
        measured = (HOURS - hours) * 3600
        found.append((f'waywiser_check_measured_timestamp_seconds{{host="{host}"}}', measured))
    return [{"series": name, "values": f"{value:d}x{HOURS}"} for name, value in found]


def expected(alert: str, labels: dict[str, str]) -> dict[str, Any]:
    """The alert of that node alone, with its summary."""
    of_rule = re.search(rf'alert: {alert}\n.*?summary: "(.*?)"', RULES.read_text(), re.DOTALL)
    assert of_rule is not None
    summary = of_rule[1].replace("{{ $labels.host }}", labels["host"])
    fired = {"exp_labels": labels, "exp_annotations": {"summary": summary}}
    return {"eval_time": f"{HOURS}h", "alertname": alert, "exp_alerts": [fired]}


@needs_promtool
def test_each_alert_fires_for_the_node_that_it_is_about(tmp_path: Path) -> None:
    test = {
        "interval": "1h",
        "input_series": series(),
        "alert_rule_test": [expected(alert, labels) for alert, labels in ALERTS.items()],
    }
    file = tmp_path / "test.yaml"  # JSON is YAML
    file.write_text(
        json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1h", "tests": [test]})
    )
    command = [PROMTOOL, "test", "rules", file]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@needs_promtool
def test_promtool_accepts_the_metrics_of_a_check(tmp_path: Path) -> None:
    """They have the names that the alerts read."""
    node = str(unpacked(CHECK, tmp_path / "node.wwp"))
    metrics = tmp_path / "waywiser.prom"
    run(["check", node, "--baseline", node, "--prometheus", str(metrics)])
    text = metrics.read_text()
    ended = subprocess.run(
        [PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    read = set(re.findall(r"\bwaywiser_check_\w+", RULES.read_text()))
    assert read and all(f"\n{name}{{" in text for name in read)


@pytest.mark.skipif(not VALIDATE.exists(), reason="kubernetes-validate is not installed")
@pytest.mark.parametrize("name", JOBS)
def test_jobs_follow_the_schema_of_kubernetes(name: str) -> None:
    command = [VALIDATE, "--strict", EXAMPLES / name]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    kinds = re.findall(r"^kind: ", (EXAMPLES / name).read_text(), re.MULTILINE)
    assert (ended.stdout + ended.stderr).count(" passed ") == len(kinds)
