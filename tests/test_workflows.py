"""The workflows of GitHub are YAML, run commands that exist, and use Pythons that are supported.

They cannot run here. What they say is read, and their shorter commands run beside what they need.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
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


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_named_by_their_commit_and_by_one_only(workflow: Path) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text())
    assert used and all(
        re.fullmatch(r"[a-z/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in used
    )
    everywhere = {one for path in WORKFLOWS for one in re.findall(r"uses: (.*)", path.read_text())}
    assert len(everywhere) == len({one.partition("@")[0] for one in everywhere})


def test_the_newest_packages_are_tested_each_month_as_a_change_is() -> None:
    yaml = pytest.importorskip("yaml")
    workflow = ROOT / ".github" / "workflows" / "newest.yml"
    (when,) = yaml.safe_load(workflow.read_text())[True]["schedule"]
    assert re.fullmatch(r"\d+ \d+ 1 \* \*", when["cron"])
    said = commands(workflow).splitlines()
    assert said.index("make lock") < said.index(".ci/run")


KEYS = {
    "": {"name", True, "permissions", "concurrency", "jobs"},  # YAML 1.1 reads "on" as true
    "job": {"runs-on", "container", "timeout-minutes", "needs", "permissions", "strategy", "steps",
            "environment"},
    "step": {"name", "uses", "with", "env", "run"},
}  # fmt: skip
"""The keys that the workflows have. With an unknown one GitHub runs nothing."""


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_keys_and_references_are_known(workflow: Path) -> None:
    yaml = pytest.importorskip("yaml")
    whole = yaml.safe_load(workflow.read_text())
    assert set(whole) <= KEYS[""] and True in whole
    for job in whole["jobs"].values():
        assert set(job) <= KEYS["job"]
        assert all(set(step) <= KEYS["step"] for step in job["steps"])
        assert job.get("needs", next(iter(whole["jobs"]))) in whole["jobs"]
        matrix = {f"matrix.{name}" for name in job.get("strategy", {}).get("matrix", {})}
        known = matrix | {"github.ref", "github.token", "github.repository"}
        used = set(re.findall(r"\$\{\{\s*(.*?)\s*\}\}", str(job)))
        assert used <= known and matrix <= used


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_commands_are_valid_in_the_shell_that_runs_them(workflow: Path) -> None:
    shellcheck = ROOT / ".venv" / "bin" / "shellcheck"
    if not shellcheck.exists():
        pytest.skip("there is no shellcheck (make lint installs it)")
    for job in jobs(workflow).values():
        shell = "sh" if "container" in job else "bash"  # in a container GitHub's default is sh
        for command in (step["run"] for step in job["steps"] if "run" in step):
            done = subprocess.run(
                [shellcheck, "--shell", shell, "-"],
                input=command,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout


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
    for arch in ("", "ARCH=aarch64 "):
        assert f"make PYTHON=python{least_python()} {arch}wheel\n" in said
    assert re.search(r"^wheel:", (ROOT / "Makefile").read_text(), re.MULTILINE)
    made = (ROOT / "scripts" / "make-wheel").read_text()
    (pythons,) = re.findall(r"PYTHONS:-([^}]+)}", made)
    assert pythons.split()[0] == f"python{least_python()}"
    assert "--wheel-dir dist" in made and 'build_sdist("dist")' in made
    assert "gh release create" in said and "dist/* " in said


def steps_of(job: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = jobs(ROOT / ".github" / "workflows" / "release.yml")[job]["steps"]
    return found


def test_the_release_has_the_files_that_the_wheel_job_kept() -> None:
    (kept,) = (step for step in steps_of("wheel") if "upload" in step.get("uses", ""))
    (taken,) = (step for step in steps_of("release") if "download" in step.get("uses", ""))
    assert kept["with"]["name"] == taken["with"]["name"]
    assert kept["with"]["path"].rstrip("/") == taken["with"]["path"] == "dist"
    assert kept["with"]["if-no-files-found"] == "error"


def run_step(
    job: str, part: str, folder: Path, programs: dict[str, str], **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs the step of the release workflow that has a text in its command, as GitHub does in a
    container, beside programs of the given names."""
    (command,) = (step["run"] for step in steps_of(job) if part in step.get("run", ""))
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    path = f"{folder}:/usr/bin:/bin"
    return subprocess.run(
        ["sh", "-e", "-c", command],
        cwd=ROOT if job == "wheel" else folder,
        env={"PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_tag_of_another_version_stops_the_release(tmp_path: Path) -> None:
    # Nothing is installed then: the version is read without the packages that it needs.
    python = {"python3.12": f'exec {sys.executable} -S "$@"'}
    (version,) = re.findall(
        r'^__version__ = "(.*)"', (ROOT / "python/waywiser/version.py").read_text(), re.MULTILINE
    )
    right = run_step("wheel", "REF_NAME", tmp_path, python, GITHUB_REF_NAME=f"v{version}")
    assert (right.returncode, right.stderr) == (0, "")
    for tag in (version, f"v{version}.1", "v"):
        wrong = run_step("wheel", "REF_NAME", tmp_path, python, GITHUB_REF_NAME=tag)
        assert wrong.returncode == 1
        assert f"the tag is {tag}, and" in wrong.stderr and wrong.stderr.count("\n") == 1


def test_every_file_is_attached_to_the_tag(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    files = ["a-cp311-cp311-x.whl", "a-cp312-abi3-x.whl", "a.tar.gz"]
    for name in files:
        (tmp_path / "dist" / name).touch()
    shows = {"gh": 'printf "%s\\n" "$@"'}
    done = run_step("release", "gh release", tmp_path, shows, GITHUB_REF_NAME="v9.8.7")
    arguments = done.stdout.splitlines()
    assert arguments[:3] == ["release", "create", "v9.8.7"]
    assert [each for each in arguments if each.startswith("dist/")] == [f"dist/{n}" for n in files]
    assert "--verify-tag" in arguments


def test_what_is_published_is_what_is_released_and_needs_no_secret() -> None:
    found = jobs(ROOT / ".github" / "workflows" / "release.yml")
    publish, release = found["publish"], found["release"]
    assert publish["needs"] == "release"
    assert publish["permissions"] == {"id-token": "write"} and publish["environment"] == "pypi"
    assert publish["steps"][0] == release["steps"][0]
    (upload,) = publish["steps"][1:]
    assert upload["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert upload["with"] == {"packages-dir": publish["steps"][0]["with"]["path"]}


def test_the_container_has_what_the_wheels_are_made_with() -> None:
    job = jobs(ROOT / ".github" / "workflows" / "release.yml")["wheel"]
    image = re.fullmatch(r"python:(3\.\d+)-bookworm", job["container"])
    made = (ROOT / "scripts" / "make-wheel").read_text()
    (pythons,) = re.findall(r"PYTHONS:-([^}]+)}", made)
    # Debian 12 itself has Python 3.11; the image adds one.
    assert image and pythons.split() == ["python3.11", f"python{image[1]}"]
    # The last has mke2fs, which makes the disk of the emulated machine.
    assert "apt-get install --yes python3.11-venv python3.11-dev e2fsprogs" in commands(
        ROOT / ".github" / "workflows" / "release.yml"
    )
