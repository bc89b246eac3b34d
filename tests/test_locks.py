"""What set-up installs is checked by hashes that a lock has, for every Python and machine."""

from __future__ import annotations

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCKS = sorted((ROOT / "scripts" / "locks").glob("*.txt"))
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "lock"))
ENTRY = re.compile(r"^(\S.*?) ?\\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)
MACHINES = [
    (f"3.{minor}", machine) for minor in (11, 12, 13, 14) for machine in ("x86_64", "aarch64")
]


def body_of(lock: Path) -> str:
    return "".join(
        line for line in lock.read_text().splitlines(keepends=True) if not line.startswith("#")
    )


def entries(lock: Path) -> list[Requirement]:
    return [Requirement(found[1]) for found in ENTRY.finditer(body_of(lock))]


def environment(python: str, machine: str) -> dict[str, str]:
    known: dict[str, str] = {name: str(value) for name, value in default_environment().items()}
    return {
        **known,
        "python_version": python,
        "python_full_version": f"{python}.1",
        "platform_machine": machine,
        "sys_platform": "linux",
        "extra": "",
    }


def versions(lock: Path, python: str, machine: str) -> dict[str, str]:
    where = environment(python, machine)
    found: dict[str, str] = {}
    for one in entries(lock):
        if one.marker is None or one.marker.evaluate(where):
            (pin,) = one.specifier
            assert canonicalize_name(one.name) not in found, f"{one.name} twice in {lock.name}"
            found[canonicalize_name(one.name)] = pin.version
    return found


def test_every_group_of_requirements_has_a_lock_and_no_other() -> None:
    assert {path.stem for path in LOCKS} == set(SCRIPT["requirements"]())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_a_lock_has_a_version_and_hashes_for_each_package_and_names_no_index(lock: Path) -> None:
    body = body_of(lock)
    assert ENTRY.sub("", body) == ""
    assert all(
        [pin.operator for pin in one.specifier] == ["=="] and one.url is None
        for one in entries(lock)
    )
    assert not re.search(r"://|index|find-links|@ ", body)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_a_lock_is_that_of_its_requirements(lock: Path) -> None:
    required = SCRIPT["requirements"]()[lock.stem]
    header = f"# Made by scripts/lock of:\n{SCRIPT['text_of_requirements'](required)}"
    assert lock.read_text().startswith(header), "run 'make lock', or scripts/lock NAME"
    for python, machine in MACHINES:
        found = versions(lock, python, machine)
        for text in required:
            one = Requirement(text)
            version = found[canonicalize_name(one.name)]
            assert one.specifier.contains(version, prereleases=True), (text, version)


@pytest.mark.parametrize(("python", "machine"), MACHINES)
def test_a_package_has_one_version_in_all_locks(python: str, machine: str) -> None:
    all_of_them: dict[str, str] = {}
    for lock in LOCKS:
        for name, version in versions(lock, python, machine).items():
            assert all_of_them.setdefault(name, version) == version, (lock.name, name)


def project(folder: Path) -> Path:
    """A copy of what set-up reads, with a .venv whose Python writes down how pip is called."""
    for name in ("scripts", "build_backend"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "compare*")
        )
    shutil.copy2(ROOT / "pyproject.toml", folder)
    (folder / ".venv" / "bin").mkdir(parents=True)
    python = folder / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n[ ! -e {folder}/fails ]\n')
    python.chmod(0o755)
    return folder


def set_up(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, folder / "scripts" / "set-up", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [("--group", "test"), ("--group", "lint"), ("--mpi",)])
def test_set_up_installs_nothing_without_a_hash(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    folder = project(tmp_path)
    done = set_up(folder, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    calls = (folder / "calls").read_text().splitlines()
    assert calls
    for call in calls:
        assert "--require-hashes --only-binary :all: -r " in call
        assert call.split()[-1].startswith(str(folder / "scripts" / "locks"))


def test_a_package_that_cannot_be_had_is_one_line(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "fails").touch()
    done = set_up(folder, "--group", "test")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert "scripts/locks/test.txt" in done.stderr and "scripts/lock makes" in done.stderr


PIP_INSTALL = re.compile(r"""-m['", ]+pip\b.*install|"pip"\), "install""" "")


def test_no_script_installs_a_package_without_a_hash() -> None:
    """But for check-wheel, which tries what a user does in environments that are thrown away."""
    files = [ROOT / "Makefile", ROOT / ".ci" / "run", *(ROOT / ".github").rglob("*.yml")]
    files += [path for path in (ROOT / "scripts").iterdir() if path.is_file()]
    for path in files:
        text = path.read_text().replace("\\\n", " ")
        for line in filter(PIP_INSTALL.search, text.splitlines()):
            safe = ("--require-hashes", "--no-index", "locked(", "PIP_INSTALL", "apt-get")
            assert path.name == "check-wheel" or any(word in line for word in safe), (path, line)


FAKE_UV = """#!/bin/sh
[ ! -e "{folder}/fails" ] || exit 1
echo "$@" >> "{folder}/calls"
cat pyproject.toml >> "{folder}/projects"
echo "numpy==9.9 ; platform_python_implementation == 'CPython' and sys_platform == 'linux' \\\\"
echo "    --hash=sha256:{digest}"
"""


def lock(folder: Path, *names: str) -> subprocess.CompletedProcess[str]:
    uv = folder / ".venv" / "bin" / "uv"
    uv.write_text(FAKE_UV.format(folder=folder, digest="a" * 64))
    uv.chmod(0o755)
    return subprocess.run(
        [sys.executable, folder / "scripts" / "lock", *names],
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_lock_is_made_again_and_the_others_stay(tmp_path: Path) -> None:
    folder = project(tmp_path)
    before = {path.name: path.read_text() for path in (folder / "scripts" / "locks").iterdir()}
    done = lock(folder, "wheel")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    after = {path.name: path.read_text() for path in (folder / "scripts" / "locks").iterdir()}
    assert after.pop("wheel.txt").endswith(f"\nnumpy==9.9 \\\n    --hash=sha256:{'a' * 64}\n")
    before.pop("wheel.txt")
    assert after == before
    assert "--generate-hashes" in (folder / "calls").read_text()


def test_what_cannot_be_locked_changes_nothing(tmp_path: Path) -> None:
    folder = project(tmp_path)
    before = [path.read_text() for path in sorted((folder / "scripts" / "locks").iterdir())]
    unknown = lock(folder, "weel")
    assert unknown.returncode == 1 and "there is no lock 'weel': there are pip," in unknown.stderr
    (folder / "fails").touch()
    assert lock(folder).returncode == 1
    assert before == [path.read_text() for path in sorted((folder / "scripts" / "locks").iterdir())]


def test_the_build_backend_is_installed_before_it_names_its_tools(tmp_path: Path) -> None:
    folder = project(tmp_path)
    assert set_up(folder, "--build").returncode == 0
    first, second = (folder / "calls").read_text().splitlines()[:2]
    assert first.endswith("locks/build.txt") and second.startswith("-c import waywiser_build")
