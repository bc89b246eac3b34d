"""References for ReFrame, and its documented test on a healthy node and on others."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from tree import ROOT
from waywiser.cli import run
from waywiser.curves.headlines import headline_rows
from waywiser.curves.subject import Subject
from waywiser.exchange.settings.origin import SettingsError
from waywiser.exchange.settings.reframe import reframe_references
from waywiser.profile import Profile

CHECK = RESULTS / "2026-11-22-check-two-gpus" / "check-4.wwp.xz"
NVBANDWIDTH = ROOT / "tests" / "exchange" / "imports" / "data" / "nvbandwidth.txt"
REFRAME = Path(sys.executable).with_name("reframe")
TEST = ROOT / "docs" / "how-to" / "examples" / "reframe_waywiser.py"


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(CHECK, tmp_path_factory.mktemp("reframe") / "healthy.wwp")


def test_references_are_the_bandwidths_of_headline_paths(healthy: Path) -> None:
    with Profile.open(healthy) as profile:
        subject = Subject.of(profile)
        references = json.loads(reframe_references(subject))["references"]
        rows = headline_rows(subject.machine, subject.curves)
    found = {each["workload"]: each for each in references}
    assert len(found) == len(references) > 5
    for row in rows:
        assert row.large is not None and row.large.measured.rate is not None
        reference = found[row.large.text]
        assert reference["gb_per_s"] * 1e9 == pytest.approx(row.large.measured.rate.value)
    assert all(0.03 < each["tolerance"] < 0.2 for each in references)
    assert not any(":" in each["name"] for each in references)


def test_a_path_of_one_process_has_no_reference(tmp_path: Path) -> None:
    """Its noise is not known."""
    made = str(tmp_path / "one.wwp")
    assert run(["import", str(NVBANDWIDTH), "-o", made]) == 0
    with Profile.open(made) as profile, pytest.raises(SettingsError, match="several processes"):
        reframe_references(Subject.of(profile))


@pytest.mark.slow
@pytest.mark.skipif(not REFRAME.exists(), reason="ReFrame is not installed")
@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ("", ""),
        ("--set 'PCIe to gpu:1=45GB/s'", "-> device@gpu1 by"),
        ("--set gpus=1", "not measured"),
    ],
    ids=["healthy", "slow link", "lost GPU"],
)
def test_reframe_fails_nodes_that_are_not_healthy(
    healthy: Path, changes: str, failing: str, tmp_path: Path
) -> None:
    """Surveys are simulated: of the node as it was, with a slower link, with a GPU less."""
    references = tmp_path / "references.json"
    assert run(["export", str(healthy), "--for", "reframe", "-o", str(references)]) == 0
    real = shlex.join([sys.executable, "-m", "waywiser"])
    program = tmp_path / "waywiser"
    program.write_text(
        f"#!/bin/sh\n"
        f'[ "$1" != survey ] || exec {real} simulate {healthy} {changes} -o node.wwp\n'
        f'exec {real} "$@"\n'
    )
    program.chmod(0o755)
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "WAYWISER_REFERENCES": str(references),
    }
    ended = subprocess.run(
        [REFRAME, "--prefix", tmp_path / "run", "--nocolor", "-c", TEST, "-r"],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = ended.stdout + ended.stderr
    assert (ended.returncode == 0) is (failing == ""), said
    assert failing in said and "Traceback" not in said
    if not failing:
        assert said.count("GB/s (r:") == len(json.loads(references.read_text())["references"])
