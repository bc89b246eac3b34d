"""The workflows of GitHub are YAML, run commands that exist, and use Pythons that are supported."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def jobs(workflow: Path) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load(workflow.read_text())["jobs"]
    return found


def commands(workflow: Path) -> str:
    steps = (step for job in jobs(workflow).values() for step in job["steps"])
    return "\n".join(step["run"] for step in steps if "run" in step)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_jobs_are_bounded_and_do_something(workflow: Path) -> None:
    for job in jobs(workflow).values():
        assert job["runs-on"] == "ubuntu-latest" and job["timeout-minutes"] <= 60
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert all(re.search(r"@v\d+$", step.get("uses", "@v1")) for step in job["steps"])


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_pythons_are_supported(workflow: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = project["requires-python"].removeprefix(">=")
    (versions,) = (
        job["strategy"]["matrix"]["python"] for job in jobs(workflow).values() if "strategy" in job
    )
    numbers = [tuple(map(int, version.split("."))) for version in versions]
    assert all(isinstance(version, str) for version in versions)
    assert min(numbers) == tuple(map(int, least.split(".")))


def test_a_change_passes_what_it_passes_elsewhere() -> None:
    *before, last = commands(ROOT / ".github" / "workflows" / "ci.yml").splitlines()
    assert last == ".ci/run"
    assert before == ["sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_a_release_has_the_wheel_of_make() -> None:
    said = commands(ROOT / ".github" / "workflows" / "release.yml")
    assert "make wheel\n" in said
    assert re.search(r"^wheel:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "mv " in (made := (ROOT / "scripts" / "make-wheel").read_text()) and "dist/" in made
    assert "gh release create" in said and "dist/*.whl" in said
