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
        assert job["runs-on"] == "ubuntu-latest" and job["timeout-minutes"] <= 90
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert all(re.search(r"@v\d+$", step.get("uses", "@v1")) for step in job["steps"])


def least_python() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project["requires-python"]).removeprefix(">=")


def test_every_supported_python_is_tested() -> None:
    found = jobs(ROOT / ".github" / "workflows" / "ci.yml")
    (versions,) = (
        job["strategy"]["matrix"]["python"] for job in found.values() if "strategy" in job
    )
    numbers = [tuple(map(int, version.split("."))) for version in versions]
    assert all(isinstance(version, str) for version in versions)
    assert min(numbers) == tuple(map(int, least_python().split(".")))


def test_a_change_passes_what_it_passes_elsewhere() -> None:
    *before, last = commands(ROOT / ".github" / "workflows" / "ci.yml").splitlines()
    assert last == ".ci/run"
    assert before == ["sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_a_release_has_the_wheels_of_make() -> None:
    said = commands(ROOT / ".github" / "workflows" / "release.yml")
    assert f"make PYTHON=python{least_python()} wheel\n" in said
    assert re.search(r"^wheel:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    made = (ROOT / "scripts" / "make-wheel").read_text()
    (pythons,) = re.findall(r"PYTHONS:-([^}]+)}", made)
    assert pythons.split()[0] == f"python{least_python()}"
    assert "--wheel-dir dist" in made and 'build_sdist("dist")' in made
    assert "gh release create" in said and "dist/* " in said
