"""The check on a GPU machine, with stand-ins for all that only such a machine has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "gpu-check"
GPUS = 8

PYTHON = """#!/bin/sh
case "$*" in *"-o "*.wwp) for last; do :; done; echo profile >"$last" ;; esac
case "$*" in *"tune tuned.wwp"*) echo profile >tuned.wwp ;; esac
case "$*" in *"-o policy.json"*) echo policy >policy.json ;; esac
case "$*" in *"-o standard.wwp"*) exit 3 ;; esac
case "$*" in *doctor*) exit 1 ;; esac
case "$*" in *"$HANGS"*) [ -z "$HANGS" ] || exec sleep 600 ;; esac
case "$*" in *"--dry-run --json --preset standard"*)
    echo '{"deadline_seconds": 346.0}'; exit ;;
esac
echo "python3 $*"
"""
"""Makes every profile that it is asked for, finds something, and fails at one survey."""

TIMEOUT = f"""#!/usr/bin/env bash
echo "at most $3 s: $*" >>"$TIMES"
limit=$3
case "$*" in *"$HANGS"*) [ -z "$HANGS" ] || limit=1 ;; esac
shift 3
exec {shutil.which("timeout")} --signal=INT --kill-after=10 "$limit" "$@"
"""
"""Notes how long a step may take, and does not wait so long for one that hangs. In bash, for
other shells do not pass on the functions of the script."""

OTHERS = {
    "nvidia-smi": f"i=0; while [ $i -lt {GPUS} ]; do echo GPU $i; i=$((i + 1)); done",
    "cmake": 'echo "cmake $*"',
    "nvcc": "exit 0",
    "compute-sanitizer": 'echo "visible $CUDA_VISIBLE_DEVICES shard $GTEST_SHARD_INDEX"',
}


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of such a machine."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, body in {**OTHERS, "python3": PYTHON, "timeout": TIMEOUT}.items():
        script = folder / name
        script.write_text(body if body.startswith("#!") else f"#!/bin/sh\n{body}\n")
        script.chmod(0o755)
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HANGS": "", "TIMES": str(tmp_path / "times")}


def check(machine: dict[str, str], *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", str(SCRIPT), *arguments],
        env=machine, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def steps(text: str) -> dict[str, str]:
    """Each step with what came of it, but for wheels that happen to lie in this checkout."""
    result = (line for line in text.splitlines() if "exit" in line or "not run" in line)
    found = {line[:24].strip(): line[24:].strip() for line in result}
    found.pop("carried wheels", None)
    return found


def test_a_part_of_it_runs_only_what_it_needs(machine: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, text = check(machine, "--only", "survey, check", "--skip", "again [34]", str(out))
    assert code == 0
    assert list(steps(text)) == [
        "offline install",
        "survey, check",
        "survey, check again 1",
        "survey, check again 2",
    ]
    assert sorted(file.name for file in out.iterdir()) == ["log.txt", "small.tar.gz", "steps.txt"]
    with tarfile.open(out / "small.tar.gz") as kept:
        names = {Path(name).name for name in kept.getnames()}
    assert {"check.wwp", "check-1.wwp", "check-2.wwp"} <= names


def test_a_step_that_fails_leaves_its_profile_and_the_others(
    machine: dict[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    code, text = check(machine, "--only", "doctor|standard|evidence", str(out))
    assert code == 1
    assert "1 steps failed" in text
    found = steps(text)
    assert found["survey, standard"].endswith("exit 3")
    assert found["doctor"].endswith("exit 0"), "a finding is no failure"
    assert found["evidence"].endswith("exit 0")
    assert (out / "standard.wwp.gz").exists() and not (out / "standard.wwp").exists()


def test_a_step_that_hangs_costs_its_own_time(machine: dict[str, str], tmp_path: Path) -> None:
    machine["HANGS"] = "dry-run"
    code, text = check(machine, "--only", "planned|quick", str(tmp_path / "out"))
    found = steps(text)
    assert code == 1 and found["survey, planned"].endswith("exit 124, out of time")
    assert found["survey, quick"].endswith("exit 0")


def test_nothing_goes_on_for_longer_than_it_may(machine: dict[str, str], tmp_path: Path) -> None:
    """A survey may take 420 s, and is not begun where less than a third of that is left."""
    out = tmp_path / "out"
    check(machine, "--only", "survey, standard", "--within", "400", str(out))
    (limit,) = re.findall(r"at most (\d+) s: .* standard\.wwp", Path(machine["TIMES"]).read_text())
    assert int(limit) <= 400
    code, text = check(machine, "--only", "survey, standard", "--within", "139", str(out))
    result = steps(text)["survey, standard"]
    assert code == 1 and result.startswith("not run: ") and result.endswith("s are left")


def test_the_sanitizer_sees_two_gpus_in_parts(machine: dict[str, str], tmp_path: Path) -> None:
    code, text = check(machine, "--only", "memcheck", str(tmp_path / "out"))
    assert code == 0
    assert [name for name in steps(text) if name.startswith(("build", "mem"))] == [
        "build tests",
        *(f"memcheck {part}" for part in range(1, 5)),
    ]
    log = (tmp_path / "out" / "log.txt").read_text()
    assert [f"visible 0,7 shard {part}" in log for part in range(4)] == [True] * 4


def test_the_tests_with_pytorch_are_built_and_run(machine: dict[str, str], tmp_path: Path) -> None:
    code, text = check(machine, "--only", "pytest with PyTorch", str(tmp_path / "out"))
    assert code == 0
    assert list(steps(text))[-2:] == ["build tests", "pytest with PyTorch"]
    log = (tmp_path / "out" / "log.txt").read_text()
    (files,) = re.findall(r"^python3 -m pytest .*? (tests/\S+ .*)$", log, re.MULTILINE)
    named = [Path(file) for file in files.split()]
    assert [file.stem for file in named] == [
        "test_load_files", "test_torch_tensors", "test_lifetimes",
    ]  # fmt: skip
    assert all((SCRIPT.parents[1] / file).exists() for file in named)


def test_grids_take_ten_minutes_at_most(machine: dict[str, str], tmp_path: Path) -> None:
    code, text = check(machine, "--only", "^(grids|tune)", str(tmp_path / "out"))
    assert code == 0
    found = steps(text)
    assert len([name for name in found if name.startswith("grids, ")]) == 6 and "tune" in found
    log = (tmp_path / "out" / "log.txt").read_text()
    budgets = re.findall(r"^python3 -m waywiser tune grid-\S+ .*--budget (\d+)s", log, re.MULTILINE)
    assert len(budgets) == 6 and sum(map(int, budgets)) <= 600


def test_the_policy_is_of_the_survey_and_the_tuning(
    machine: dict[str, str], tmp_path: Path
) -> None:
    only = "^(survey, standard|tune|policy|transfers with policy)$"
    _, text = check(machine, "--only", only, "--within", "590", str(tmp_path / "out"))
    found = steps(text)
    assert list(found)[1:] == ["survey, standard", "tune", "policy", "transfers with policy"]
    log = (tmp_path / "out" / "log.txt").read_text()
    made = re.findall(
        r"^python3 -m waywiser export (\S+) (\S+) --for waywiser -o policy.json", log, re.MULTILINE
    )
    assert [tuple(Path(file).name for file in files) for files in made] == [
        ("standard.wwp", "tuned.wwp")
    ]
    assert re.search(
        r"^python3 benchmarks/transfer.py .* --policy \S+/policy.json ", log, re.MULTILINE
    )


def test_it_lists_its_steps_and_fails_for_what_it_does_not_know(machine: dict[str, str]) -> None:
    code, text = check(machine, "--list")
    assert code == 0
    listed = text.splitlines()
    assert listed.index("survey, standard") < listed.index("gpu_tests") < listed.index("racecheck")
    assert check(machine, "--fast", "x")[0] == check(machine)[0] == 2
    assert check(machine, "--within", "soon", "x")[0] == 2


def test_several_gpus_take_one_call(machine: dict[str, str], tmp_path: Path) -> None:
    """Checks first, then links and processes, then a survey in the time that is left."""
    out = tmp_path / "out"
    _, text = check(machine, "--several-gpus", "--within", "400", str(out))
    found = steps(text)
    expected = [
        "machine", "offline install", "doctor", "check, planned", "survey, check", "who copies",
        *(f"survey, check again {n}" for n in range(1, 5)), "survey, P2P", "relay", "loading",
        "survey, planned", "survey, planned again", "survey, standard", "evidence",
        "planned and used", "report", "policy", "advise",
    ]  # fmt: skip
    assert list(found) == expected
    log = (out / "log.txt").read_text()
    pattern = r"-m waywiser survey --preset standard --deadline (\d+) -o standard.wwp"
    (deadline,) = set(re.findall(pattern, log))
    assert 200 < int(deadline) <= 340
    assert re.search(r"evidence.py \S+/standard.wwp .*check-4.wwp .*/p2p.wwp --json", log)
    assert re.search(r"planned.py \S+/steps.txt --survey \S+planned-check.json", log)
    assert log.count("--peers-idle") >= 12
    assert "16GiB --from device@gpu:0 --to pageable@numa:0" in log


def test_a_survey_that_has_its_time_is_as_planned(machine: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    _, text = check(machine, "--only", "survey, (planned|standard)", "--within", "500", str(out))
    assert list(steps(text))[1:] == ["survey, planned", "survey, standard"]
    assert "--deadline" not in (out / "log.txt").read_text()
