"""Collectives in every output: with both bandwidths, and never as a copy between two ends."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.curves.test_former_words import former
from tests.exchange.imports.test_nccl_text import as_text

from waywiser.cli import run
from waywiser.profile import Profile
from waywiser.profile.writable import write_profile

ROWS = [(2**n, 20 + 2**n / 2e5) for n in range(10, 29, 2)]
NAMES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast")
ALLREDUCE = "device@gpu:0-7 -> device@gpu:0-7 by nccl[collective=allreduce]"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A profile of all collectives of 8 GPUs."""
    folder = tmp_path_factory.mktemp("collectives")
    files = []
    for name in NAMES:
        files.append(folder / f"{name}.txt")
        files[-1].write_text(as_text(name, 8, ROWS, named=True))
    assert run(["import", *map(str, files), "-o", str(folder / "made.wwp")]) == 0
    return folder / "made.wwp"


def output(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    capsys.readouterr()
    assert run(list(arguments)) == status
    out, err = capsys.readouterr()
    return out if status in (0, 3) else err


def test_both_bandwidths_are_shown(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seconds = ROWS[-1][1] * 1e-6
    algorithm = f"{ROWS[-1][0] / seconds / 1e9:.1f}"
    bus = f"{ROWS[-1][0] / seconds / 1e9 * 1.75:.1f}"
    for options in ([], ["--all"]):
        shown = output(capsys, "show", str(made), "--only", "allreduce", *options)
        assert re.search(rf"\b{re.escape(algorithm)}\s+{re.escape(bus)}\s", shown)
        assert "2(n-1)/n of an allreduce" in shown
    report = output(capsys, "report", str(made), "--format", "md", "--all", "-o", "-")
    assert f"bus bandwidth {bus} GB/s" in report
    points = json.loads(output(capsys, "show", str(made), "--json"))["series"]
    (point,) = [each for each in points if each["workload"] == f"{ALLREDUCE} of 268435456"]
    assert point["bus_rate"] == pytest.approx(ROWS[-1][0] / seconds * 1.75, rel=1e-4)


def test_other_series_have_no_bus_bandwidth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text(as_text("sendrecv", 2, ROWS, named=True))
    assert run(["import", str(tmp_path / "a.txt"), "-o", str(tmp_path / "a.wwp")]) == 0
    found = json.loads(output(capsys, "show", str(tmp_path / "a.wwp"), "--json"))["series"]
    assert found and all("bus_rate" not in each for each in found)
    assert "bus GB/s" not in output(capsys, "show", str(tmp_path / "a.wwp"))
    assert "bus GB/s" not in output(capsys, "show", str(tmp_path / "a.wwp"), "--all")


def test_a_collective_has_the_terms_of_no_copy(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for term in ("h2d", "d2h", "d2d", "p2p", "local", "h2h", "memcpy"):
        output(capsys, "show", str(made), "--only", term, status=2)
    for words in ("collectives", "allreduce", "gpu:7", "device@gpu:3"):
        assert ALLREDUCE in output(capsys, "show", str(made), "--only", words)
    output(capsys, "show", str(made), "--only", "gpu:8", status=2)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["advise", "{}", "--from", "device@gpu:0", "--to", "device@gpu:1", "--bytes", "1MiB"],
         "no method was measured for device@gpu:0 -> device@gpu:1"),
        (["export", "{}", "--for", "waywiser"], "no method of the transfer library was measured"),
        (["predict", "{}"], "no transfer was measured alone"),
        (["predict", "{}", "-w", f"{ALLREDUCE} of 1MiB"], "no transfer was measured alone"),
        (["survey", "--dry-run", "--workload", f"{ALLREDUCE} of 1MiB"], "cannot be measured here"),
    ],
)  # fmt: skip
def test_what_takes_copies_alone_says_so_in_one_line(
    made: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    text = output(capsys, *(each.format(made) for each in arguments), status=2)
    assert reason in text and len(text.strip().splitlines()) == 1


def test_exports_have_them(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(output(capsys, "export", str(made), "--format", "json", "-o", "-"))
    (series,) = [
        each for each in found["series"] if each["workload"] == f"{ALLREDUCE} of 268435456"
    ]
    assert series["bytes"] == 2**28
    assert series["source"] == series["destination"] == "device@gpu:0-7"


@pytest.mark.parametrize("name", ["all_gather", "alltoall", "broadcast"])
def test_a_kept_import_joins_one_of_today(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, today, kept = tmp_path / "a.txt", tmp_path / "today.wwp", tmp_path / "kept.wwp"
    text.write_text(as_text(name, 4, ROWS, named=True))
    assert run(["import", str(text), "-o", str(today)]) == 0
    with Profile.open(today) as profile:
        visits = [
            replace(visit, workload=former(name, 4, 0, visit.workload.size, placement))
            for visit in profile.visits()
            for placement in [",in-place=yes" if "in-place" in str(visit.workload) else ""]
        ]
        write_profile(kept, profile.machine, profile.environment, visits)
    with Profile.open(kept) as profile:
        identities = {visit.workload.identity for visit in profile.visits()}
        assert identities == {visit.workload.identity for visit in visits}
    words = ["compare", str(kept), str(today), "--json", "--all"]
    found = json.loads(output(capsys, *words, status=3))  # nothing is decided
    assert [path["verdict"] for path in found["paths"]] == ["not decided"] * 2
    assert all(path["curve"].startswith("device@gpu:0-3 -> ") for path in found["paths"])
