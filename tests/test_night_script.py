"""The script of the guides that surveys a node each night and checks it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.cli import run

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "how-to" / "examples" / "waywiser-night.sh"
KEPT = RESULTS / "2026-11-23-surveys"
STUB = """#!/bin/sh
# the command, whose survey has the profile that $SURVEYED names, or fails
if [ "$1" = survey ]; then
    while [ "$1" != -o ]; do shift; done
    [ -n "${{SURVEYED:-}}" ] && exec cp "$SURVEYED" "$2"
    echo part >"$2"
    echo "waywiser: error: GPU is lost" >&2
    exit "${{SURVEY_ENDS:-2}}"
fi
exec {python} -m waywiser "$@"
"""

Night = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """Runs the script on a node with a surveyed profile; without one the survey fails."""
    programs = tmp_path / "bin"
    programs.mkdir()
    stub = programs / "waywiser"
    stub.write_text(STUB.format(python=sys.executable))
    stub.chmod(0o755)

    def run(
        surveyed: Path | None, *arguments: str, ends: int = 2
    ) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "python"),
            "WAYWISER_NIGHTS": str(tmp_path / "nights"),
            "WAYWISER_METRICS": str(tmp_path / "metrics"),
            "SURVEYED": str(surveyed or ""),
            "SURVEY_ENDS": str(ends),
        }
        command = ["sh", str(SCRIPT), *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="module")
def surveys(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two surveys of one machine."""
    folder = tmp_path_factory.mktemp("surveys")
    names = ["h100-check-1.wwp", "h100-check-2.wwp"]
    for name in names:
        unpacked(KEPT / f"{name}.xz", folder / name)
    return [folder / name for name in names]


def metrics(folder: Path) -> dict[str, float]:
    """Each sample of the files of metrics, without the host."""
    found = {}
    for file in folder.glob("*.prom"):
        for line in file.read_text().splitlines():
            if not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[re.sub(r'host="[^"]*",?', "", name)] = float(value)
    return found


def test_a_node_is_checked_against_its_baselines(
    night: Night, surveys: list[Path], tmp_path: Path
) -> None:
    made = night(surveys[0], "--baseline")
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    checked = night(surveys[1])
    assert checked.returncode in (0, 3), checked.stderr
    assert re.match("(OK|INCONCLUSIVE) ", checked.stdout)
    found = metrics(tmp_path / "metrics")
    assert found["waywiser_night_exit_code{}"] == checked.returncode
    status = checked.stdout.split()[0].lower()
    assert found[f'waywiser_check_status{{status="{status}"}}'] == 1


def test_without_a_baseline_a_line_says_how_to_make_one(
    night: Night, surveys: list[Path], tmp_path: Path
) -> None:
    checked = night(surveys[1])
    assert checked.returncode == 2 and "run waywiser-night --baseline" in checked.stderr
    assert metrics(tmp_path / "metrics") == {"waywiser_night_exit_code{}": 2}


def test_a_night_without_a_result_leaves_no_metrics_of_the_night_before(
    night: Night, surveys: list[Path], tmp_path: Path
) -> None:
    night(surveys[0], "--baseline")
    night(surveys[1])
    failed = night(None)
    assert failed.returncode == 2 and "GPU is lost" in failed.stderr
    assert metrics(tmp_path / "metrics") == {"waywiser_night_exit_code{}": 2}
    night(surveys[1])
    (tmp_path / "nights" / "baseline-damaged.wwp").write_text("no profile")
    assert night(surveys[1]).returncode == 2
    assert metrics(tmp_path / "metrics") == {"waywiser_night_exit_code{}": 2}


def test_a_gpu_that_does_not_answer_is_a_failure_until_a_night_is_fine(
    night: Night, surveys: list[Path], tmp_path: Path
) -> None:
    verdict = tmp_path / "nights" / "verdict"
    night(surveys[0], "--baseline")
    lost = night(None, ends=1)
    assert lost.returncode == 1 and "GPU is lost" in lost.stderr
    failed = verdict.read_text()
    assert re.fullmatch(r"1 FAILED \S+: GPU is lost\n", failed)
    assert metrics(tmp_path / "metrics") == {"waywiser_night_exit_code{}": 1}
    for arguments in ((), ("--baseline",)):  # no result clears no failure
        assert night(None, *arguments).returncode == 2
        assert verdict.read_text() == failed
        assert metrics(tmp_path / "metrics") == {"waywiser_night_exit_code{}": 2}
    cleared = night(surveys[1])
    assert verdict.read_text().startswith(f"{cleared.returncode} ") and cleared.returncode != 1
    assert night(None).returncode == 2
    assert verdict.read_text().startswith("2 ")


def test_a_baseline_that_was_interrupted_is_none(
    night: Night, surveys: list[Path], tmp_path: Path
) -> None:
    assert night(None, "--baseline").returncode == 2
    assert night(surveys[0], "--baseline").returncode == 0
    assert len(list((tmp_path / "nights").glob("baseline-*"))) == 1
    assert night(surveys[1]).returncode in (0, 3)


def test_a_node_with_a_slow_link_makes_no_baseline(night: Night, tmp_path: Path) -> None:
    """One of two equal links is slow, which its own profile shows."""
    checked = RESULTS / "2026-11-22-check-two-gpus" / "check-4.wwp.xz"
    original = str(unpacked(checked, tmp_path / "node.wwp"))
    slow = tmp_path / "slow.wwp"
    assert run(["simulate", original, "--set", "PCIe to gpu:1=30GB/s", "-o", str(slow)]) == 0
    made = night(slow, "--baseline")
    assert made.returncode == 2 and "is not kept: by its equal parts" in made.stderr
    assert [*(tmp_path / "nights").glob("night-*.wwp")]
    assert not [*(tmp_path / "nights").glob("baseline-*.wwp")]
