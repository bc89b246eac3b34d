"""What a system on which Waywiser does not run is shown: one line with the remedy."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tree import ROOT


def test_an_older_python_is_reported_with_the_way_to_name_another() -> None:
    older = (
        "import runpy, sys; sys.version_info = (3, 10, 13, 'final', 0); sys.argv = ['set-up']; "
        "runpy.run_path('scripts/set-up', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", older], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "needs Python 3.11 or later, this is 3.10: make PYTHON=python3.12" in done.stderr


MUSL = (
    "import sysconfig; get = sysconfig.get_config_var; "
    "sysconfig.get_config_var = lambda name: 'cpython-312-x86_64-linux-musl' "
    "if name == 'SOABI' else get(name); "
)
OLD = "import sys; sys.version_info = (3, 10, 13, 'final', 0); "


@pytest.mark.parametrize(
    "hook", ["get_requires_for_build_wheel", "get_requires_for_build_editable"]
)
@pytest.mark.parametrize(
    ("patch", "cause", "remedy"),
    [(MUSL, "needs glibc", "container"), (OLD, "this is Python 3.10", "python3.12 -m pip install")],
)
def test_pip_reports_a_python_that_cannot_run_it_before_anything_is_fetched(
    hook: str, patch: str, cause: str, remedy: str
) -> None:
    pytest.importorskip("scikit_build_core")
    code = f"import waywiser_build; {patch}waywiser_build.{hook}()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "build_backend")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert cause in done.stderr and remedy in done.stderr


@pytest.mark.parametrize(
    ("goal", "device", "cuda"),
    [
        ("survey", "", "OFF"),  # as on a login node
        ("survey", "/dev/nvidiactl", "ON"),
        ("survey WAYWISER_CUDA=ON", "", "ON"),
        ("build", "", "ON"),
        ("survey wheel", "", "ON"),
    ],
)
def test_only_a_survey_without_a_gpu_builds_for_the_host_and_says_how_to_build_for_gpus(
    goal: str, device: str, cuda: str
) -> None:
    done = subprocess.run(
        ["make", "--dry-run", *goal.split(), f"nvidia={device}"],
        cwd=ROOT,
        env={name: text for name, text in os.environ.items() if name != "WAYWISER_CUDA"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ("builds for the host alone" in done.stdout) is (cuda == "OFF")
    assert ("make WAYWISER_CUDA=ON survey" in done.stdout) is (cuda == "OFF")
