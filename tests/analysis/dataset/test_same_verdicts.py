"""A check says the same of profiles, of their data set, of a data set without them, and of parts:
of all fleets that are kept, and of simulated ones."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kept import RESULTS, unpacked
from waywiser.cli import run

FOLDERS = sorted({path.parent for path in RESULTS.rglob("*.wwp.xz")})

FLEETS = [folder for folder in FOLDERS if len(list(folder.glob("*.wwp.xz"))) > 1]

STEP = 5e-5
"""Processes are stored in steps of 0.005 %: a figure that they are in may differ by so much, and a
figure of their scatter by a few. The usual `seconds` are a median without outliers: a process at
the limit of these may be one or not."""

SCATTER = ("scale", "detectable", "detectable_beside", "p", "effect", "value", "seconds")


def answer(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = run(["check", str(folder), "--within", "0", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def differences(one: Any, other: Any, place: str = "") -> Iterator[str]:
    """Where two answers differ by more than the steps of the data set."""
    if isinstance(one, dict) and isinstance(other, dict):
        for name in one.keys() | other.keys():
            yield from differences(one.get(name), other.get(name), f"{place}/{name}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for n, (own, its) in enumerate(zip(one, other, strict=True)):
            yield from differences(own, its, f"{place}/{n}")
    elif isinstance(one, float) and isinstance(other, int | float):
        name = place.rpartition("/")[2]
        apart, larger = abs(one - other), max(abs(one), abs(other))
        if apart > 2 * STEP * larger and not (name in SCATTER and apart < 10 * STEP + larger / 100):
            yield f"{place}: {one} and {other}"
    elif one != other:
        yield f"{place}: {one!r} and {other!r}"


def require_equal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = answer(folder, capsys)
    assert run(["export", str(folder), "--format", "parquet"]) == 0
    with_rows = answer(folder, capsys)
    assert with_rows[0] == before[0]
    assert list(differences(before[1], with_rows[1])) == []
    assert run(["check", str(folder), "--part", "references/2"]) == 0
    assert [run(["check", str(folder), "--part", f"{n}/2"]) for n in (1, 2)] == [0, 0]
    joined = answer(folder, capsys, "--part", "join")
    assert list(differences(with_rows[1], joined[1])) == []
    for profile in folder.glob("*.wwp"):
        profile.unlink()
    alone = answer(folder, capsys)
    for part in ("peers", "nights"):
        assert list(differences(with_rows[1][part], alone[1][part], part)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kept", FLEETS, ids=lambda folder: str(folder.relative_to(RESULTS)))
def test_kept_profiles(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for packed in kept.glob("*.wwp.xz"):
        unpacked(packed, tmp_path / packed.stem)
    require_equal(tmp_path, capsys)


def simulate(folder: Path, host: int, *words: str) -> None:
    """Twelve nights of a host with the model of a recorded machine."""
    original = folder / "node.wwp"
    if not original.exists():
        unpacked(RESULTS / "2026-11-22-check-two-gpus" / "check-3.wwp.xz", original)
    made = ["simulate", str(original), "--host", f"n{host}", "--nights", "12", *words]
    assert run([*made, "-o", str(folder / "nodes")]) == 0


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six hosts, none of which changes."""
    folder = tmp_path_factory.mktemp("unchanged")
    for host in range(6):
        simulate(folder, host)
    return folder / "nodes"


@pytest.mark.slow
@pytest.mark.parametrize("change", ["PCIe to gpu:1=44GB/s", "PCIe to gpu:0=54GB/s", ""])
def test_simulated_fleets(
    change: str, unchanged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = tmp_path / "nodes"
    shutil.copytree(unchanged, nodes)
    if change:
        for profile in nodes.glob("n2-*.wwp"):
            profile.unlink()
        simulate(tmp_path, 2, "--set", change, "--from-night", "8")
    require_equal(nodes, capsys)
