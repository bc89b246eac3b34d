"""Exchanges of a survey: their strategies, their numbers of memories, and those of OSU."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import pytest

from profiles import ENVIRONMENT, machine, samples, visit, workload
from waywiser.cli import run
from waywiser.curves.exchanges import (
    among_memories,
    as_measured,
    strategy_of,
    what_is_exchanged,
)
from waywiser.curves.headlines import ORDER
from waywiser.machine.machine import PlacedRank
from waywiser.machine.ranks import memories_of
from waywiser.measure.plan.preset import Request
from waywiser.profile import WritableProfile
from waywiser.words import Transfer, Workload
from waywiser.words.collective import EXCHANGE, UNEVEN_EXCHANGE

SIZES = (1024, 2**16, 2**22)
OSU = """$ mpirun -n 2 osu_alltoall{device}
# OSU MPI{title} All-to-All Personalized Exchange Latency Test v7.4
# Size       Avg Latency(us)
{rows}
"""


def among(ranks: int, kind: str = "device") -> str:
    return f"{kind}@rank:0-{ranks - 1} -> {kind}@rank:0-{ranks - 1} by "


def surveyed(file: Path, ranks: int, per_gpu: int, times: dict[str, float]) -> Path:
    """A profile of exchanges that take ``times`` for each byte, after 10 µs."""
    placed = tuple(PlacedRank(n, (n,), 0, n // per_gpu) for n in range(ranks))
    here = msgspec.structs.replace(machine(), ranks=placed, messages="MPICH 5.0.2")
    rng = random.Random(7)
    with WritableProfile.create(file, here, ENVIRONMENT) as profile:
        for text, seconds in times.items():
            for size in SIZES:
                taken = samples(rng, 1e-5 + size * seconds)
                profile.commit_visit(visit(workload(text, size), 0, taken, mode="host"))
    return file


def osu(folder: Path, kind: str) -> Path:
    device, title = (" D D", "-CUDA") if kind == "device" else ("", "")
    rows = "\n".join(f"{size // 2}  {10 + size * 2e-3:.2f}" for size in SIZES)
    (folder / "osu.txt").write_text(OSU.format(device=device, title=title, rows=rows))
    assert run(["import", str(folder / "osu.txt"), "-o", str(folder / "osu.wwp")]) == 0
    return folder / "osu.wwp"


def compared(capsys: pytest.CaptureFixture[str], base: Path, new: Path) -> list[dict[str, str]]:
    capsys.readouterr()
    run(["compare", str(base), str(new), "--json"])
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)["paths"]
    return found


@pytest.mark.parametrize(("kind", "settings"), [("device", "[strategy=direct]"), ("pageable", "")])
def test_an_exchange_of_osu_is_the_direct_one_of_a_survey(
    kind: str, settings: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    direct = f"{among(2, kind)}alltoall{settings}"
    pairs = f"{direct.removesuffix(']')}{',' if settings else '['}exchange=pairs]"
    own = surveyed(tmp_path / "own.wwp", 2, 1, {direct: 2e-9, pairs: 2e-9})
    paths = {each["curve"]: each for each in compared(capsys, osu(tmp_path, kind), own)}
    assert paths[direct]["verdict"] == "not decided", "OSU has one value"
    assert len(paths) == 2


def test_ranks_that_share_gpus_have_another_exchange_than_those_of_osu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    direct = f"{among(2)}alltoall[strategy=direct]"
    own = surveyed(tmp_path / "own.wwp", 2, 2, {direct: 2e-9})
    paths = {each["curve"]: each for each in compared(capsys, osu(tmp_path, "device"), own)}
    assert paths[direct]["verdict"] == "skipped"
    assert paths[direct]["why"] == "the 2 ranks of this survey share 1 GPU, which exchange"


def test_how_many_memories_exchange_counts_in_the_bus_bandwidth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    even, uneven = (f"{among(4)}{each}" for each in ("alltoall", "alltoallv"))
    file = surveyed(tmp_path / "own.wwp", 4, 2, {even: 1e-9, uneven: 1e-9})
    capsys.readouterr()
    assert run(["show", str(file), "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["series"]
    ratios = {each["curve"]: each.get("bus_rate", 0) / each["estimate"]["rate"]["value"]
              for each in points}  # fmt: skip
    assert ratios == {even: pytest.approx(0.5), uneven: 0.0}


def test_the_fastest_strategy_has_the_better_exchange(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    by = f"{among(4)}alltoall"
    times = {
        by: 3e-9,
        f"{by}[exchange=pairs]": 1e-9,
        f"{by}[strategy=direct]": 2e-9,
        f"{among(4)}alltoallv[strategy=direct]": 4e-9,
        f"{among(4)}alltoallv[counts=skewed]": 5e-9,
        f"{among(4)}alltoallv[counts=skewed,strategy=duplicate-pointer]": 2e-9,
    }
    file = surveyed(tmp_path / "own.wwp", 4, 2, times)
    assert run(["report", str(file), "--format", "md", "--all", "-o", str(tmp_path / "a.md")]) == 0
    text = (tmp_path / "a.md").read_text().replace("\\", "")
    even, skewed = (text.split(f"Strategies of {each}")[1].split("\n\n")[1:3]
                    for each in ("alltoall of", "alltoallv[counts=skewed]"))  # fmt: skip
    rows = {row.split(" | ")[0].strip("| "): row for row in "\n".join(even).splitlines()}
    assert "(pairs)" in rows["3-step"] and "(pairs)" not in rows["direct"]
    assert "duplicate-pointer" in "\n".join(skewed)
    assert "the fastest strategy of alltoall of device memory among rank:0-3: 3-step" in (
        text.lower().replace("**", "")
    )


@pytest.mark.parametrize(
    ("text", "what", "strategy"),
    [
        ("alltoall", "alltoall", "3-step"),
        ("alltoallv[exchange=pairs,strategy=direct]", "alltoall", "direct"),
        ("alltoallv[counts=skewed,unique=1/2]", "alltoallv[counts=skewed,unique=1/2]", "3-step"),
        ("alltoall[per-gpu=2,split=messages,strategy=duplicate-pointer]", "alltoall",
         "duplicate-pointer, per-gpu=2, split=messages"),
    ],
)  # fmt: skip
def test_what_is_exchanged_and_how(text: str, what: str, strategy: str) -> None:
    transfer = Transfer.parse(f"{among(4)}{text} of 64")
    assert (what_is_exchanged(transfer), strategy_of(transfer)) == (what, strategy)
    on_host = Transfer.parse(f"{among(4, 'pinned')}alltoall of 64")
    assert strategy_of(on_host) == "direct"


def test_memories_are_counted_by_gpu_and_on_the_host_by_rank() -> None:
    placed = tuple(PlacedRank(n, (n,), 0, n // 2) for n in range(4))
    here = msgspec.structs.replace(machine(), ranks=placed)
    text = f"{among(4)}alltoall[strategy=direct] of 64"
    (transfer,) = Workload.parse(text).transfers
    assert memories_of(transfer.path.source, here) == 2
    assert memories_of(transfer.path.source, machine()) == 4
    (host,) = Workload.parse(f"{among(4, 'pinned')}alltoall of 64").transfers
    assert memories_of(host.path.source, here) == 4
    found = among_memories(Workload.parse(text), here)
    assert str(found) == f"{among(4)}alltoall[gpus=2,strategy=direct] of 64"
    copy = Workload.parse("pinned@rank:0 -> pinned@rank:1 by mpi of 64")
    assert among_memories(copy, here) is copy


@pytest.mark.parametrize(
    ("named", "measured"),
    [
        ("device@rank:0-3 -> device@rank:0-3 by alltoall[gpus=2]",
         "device@rank:0-3 -> device@rank:0-3 by alltoall"),
        ("device@rank:0-3 -> device@rank:0-3 by alltoallv[counts=skewed,gpus=2,unique=1/2]",
         "device@rank:0-3 -> device@rank:0-3 by alltoallv[counts=skewed,unique=1/2]"),
        ("*by alltoall[gpus=12,strategy=direct]", "*by alltoall[strategy=direct]"),
        ("h2d gpu:0", "h2d gpu:0"),
    ],
)  # fmt: skip
def test_a_survey_measures_what_a_comparison_names(named: str, measured: str) -> None:
    assert as_measured(named) == measured
    assert Request(only=(named,)).patterns == (measured,)


def test_every_family_of_headlines_has_a_place() -> None:
    assert {EXCHANGE, UNEVEN_EXCHANGE} <= set(ORDER)
