"""The strategies that profiles of ranks know, with planted times."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchpress_jobs import InventedCluster
from exchange.imports.shared_files import shared
from waywiser.curves.curve import points_of
from waywiser.exchange.imports import detect
from waywiser.model.curve import fit_curves
from waywiser.model.errors import ModelError
from waywiser.model.message_strategies import (
    MessageStrategies,
    place_of,
    require_two,
    strategies_of,
)
from waywiser.model.messages import classes_of, curve_of, messages_of
from waywiser.model.rank_nodes import RankNode, node_of
from waywiser.model.rate import fit_all_counts
from waywiser.model.strategies import StrategyTimes
from waywiser.model.strategy_steps import MessageModels, job_times
from waywiser.model.strategy_table import StrategyTable, strategy_table
from waywiser.profile.series_frame import SeriesFrame
from waywiser.render.views.strategies import strategy_parts
from waywiser.words.records import Series, Visit

ALL = ("direct", "3-step", "all cores", "duplicate pointer")


def read(files: Iterable[Path], **options: Any) -> MessageStrategies:
    """The strategies of some files, each a job."""
    series: dict[str, Series] = {}
    for path in files:
        for each in detect.read(path)[0].measured:
            known = series.setdefault(each.workload.identity, Series(each.workload, ()))
            visit = Visit(each.workload, len(known.visits), "limit", "", samples=each.samples)
            series[each.workload.identity] = Series(each.workload, (*known.visits, visit))
    summaries = points_of(SeriesFrame.of(series.values()))
    messages = messages_of(summaries)
    classes = classes_of(messages)
    curves = fit_curves([curve_of(each, messages) for each in classes], 2)
    models = MessageModels(list(zip(classes, curves, strict=True)), fit_all_counts(messages))
    return strategies_of(messages, models, node_of(summaries), **options)


def node(path: Path) -> RankNode:
    series = [Series(each.workload, (Visit(each.workload, 0, "limit", "", samples=each.samples),))
              for each in detect.read(path)[0].measured]  # fmt: skip
    return node_of(points_of(SeriesFrame.of(series)))


def drawn(seed: int) -> InventedCluster:
    """Another machine: numbers of processes and GPUs, latencies and rates."""
    draws = np.random.default_rng(seed)
    gpus = int(draws.choice([3, 4, 6]))
    factors = np.exp(draws.uniform(-0.7, 0.7, 7)).tolist()
    plain = InventedCluster()
    return InventedCluster(
        ranks=gpus * int(draws.integers(2, 4)) + int(draws.integers(0, gpus)),
        gpus=gpus,
        sizes=8,
        jobs=int(draws.integers(2, 4)),
        direct=(plain.direct[0] * factors[0], plain.direct[1] * factors[1]),
        host=(plain.host[0] * factors[2], plain.host[1] * factors[3]),
        copy=(plain.copy[0] * factors[4] / 3, plain.copy[1] * factors[5]),
        limit=plain.limit * factors[6],
    )


@pytest.mark.parametrize("seed", range(5))
def test_planted_crossovers_are_in_their_ranges(tmp_path: Path, seed: int) -> None:
    cluster = drawn(seed)
    found = read(cluster.write(tmp_path, seed))
    processes = cluster.ranks // cluster.gpus
    assert found.processes == processes and found.copies == "on-socket"
    assert tuple(each.name for each in found.measured) == ALL
    assert {each.name for each in found.modelled} >= {"direct", "3-step", "all cores"}
    table = strategy_table(found)
    for basis in table.bases:
        for each in basis.comparisons:
            for known in each.ranges:
                if known.is_sure:
                    other = each.second if known.fastest == each.first else each.first
                    for value in (known.low, known.high):
                        point = (
                            (value, each.fixed) if each.axis == "messages" else (each.fixed, value)
                        )
                        times = [cluster.time(n, *point, processes) for n in (known.fastest, other)]
                        assert times[0] < times[1], (each.first, each.second, point)
        assert all(
            abs(time.seconds / cluster.time(time.name, time.count, time.bytes, processes) - 1)
            < 0.12
            for time in basis.times
        )
    assert all(each.cost < 0.1 for each in table.disagreements)


def test_the_numbers_of_a_node_are_those_of_the_file(tmp_path: Path) -> None:
    files = InventedCluster(ranks=9, gpus=4).write(tmp_path)
    found, again = read(files), read(files, processes=3)
    assert found.processes == 2
    assert again.processes == 3
    times = [StrategyTimes(each.modelled).of("all cores", 4, 2**12) for each in (found, again)]
    assert times[0] is not None and times[1] is not None
    assert times[1].steps["messages"] < times[0].steps["messages"]


def test_copies_are_where_the_sender_has_them_or_where_the_user_says(tmp_path: Path) -> None:
    cluster = InventedCluster(gpus=4, noise=0.0005, off_socket=1.5)
    files = cluster.write(tmp_path)
    local, remote = read(files), read(files, copies=place_of("off-socket"))
    assert (local.copies, remote.copies) == ("on-socket", "on-node")
    for basis in ("measured", "modelled"):
        times = [
            StrategyTimes(getattr(each, basis)).of("3-step", 1, 64) for each in (local, remote)
        ]
        assert times[0] is not None and times[1] is not None
        assert times[1].steps["D2H"] / times[0].steps["D2H"] == pytest.approx(1.5, rel=0.02)
    assert {each.name for each in local.missing} == {"extra message"}  # no ping_pong
    assert {each.name for each in remote.missing} == {"extra message", "duplicate pointer"}
    with pytest.raises(ModelError, match="is no place of copies"):
        place_of("nowhere")


def test_a_place_without_copies_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no copies on-node"):
        read(InventedCluster(gpus=1).write(tmp_path), copies="on-node")


def test_one_job_has_no_measured_interval_and_makes_nothing_sure(tmp_path: Path) -> None:
    found = read(InventedCluster(jobs=1).write(tmp_path))
    table = strategy_table(found)
    measured, modelled = table.bases
    assert all(each.interval is None for each in measured.times if each.is_measured)
    assert all(each.interval is not None for each in modelled.times)
    for basis in table.bases:
        assert not any(each.has_scatter for each in basis.times)
        assert all(part.is_sure is None for each in basis.comparisons for part in each.ranges)
        assert all(
            cross.surely_from is None for each in basis.comparisons for cross in each.crossings
        )


def test_equal_jobs_have_an_interval_that_is_not_empty() -> None:
    (found,) = job_times({(8, 2): (1e-6, 1e-6, 1e-6)}).values()
    assert found.interval is not None and found.interval.width > 0


TITLES = (
    "Timing GPU Multiple",
    "Timing CPU Multiple",
    "Timing Max-Rate",
    "Memcpy Host To Device:",
    "Memcpy Device To Host:",
    "Memcpy Host To Device Mult",
    "Memcpy Device To Host Mult",
)
NEEDS = {
    "direct": {"Timing GPU Multiple"},
    "3-step": {"Timing CPU Multiple", "Memcpy Host To Device:", "Memcpy Device To Host:"},
    "all cores": {"Timing Max-Rate", "Memcpy Host To Device:", "Memcpy Device To Host:"},
    "duplicate pointer": {"Timing Max-Rate", "Memcpy Host To Device Mult",
                          "Memcpy Device To Host Mult"},
}  # fmt: skip


@pytest.mark.parametrize(
    "removed", [{a, b} for n, a in enumerate(TITLES) for b in TITLES[n : n + 2]]
)
def test_a_missing_table_takes_its_strategies_and_no_other(
    tmp_path: Path, removed: set[str]
) -> None:
    (path,) = InventedCluster(jobs=1, sizes=5).write(tmp_path)
    tables: list[list[str]] = []
    for line in path.read_text().splitlines():
        if line.startswith(TITLES):
            tables.append([])
        tables[-1].append(line)
    kept = [part for part in tables if not part[0].startswith(tuple(removed))]
    path.write_text("\n".join(line for part in kept for line in part))
    found = read([path], processes=3)
    known = {name for name, needs in NEEDS.items() if not needs & removed}
    assert {each.name for each in found.measured} == known
    assert {each.name for each in found.modelled} == known
    assert {each.name for each in found.missing} == {*ALL, "extra message"} - known
    assert all("needs" in each.reason for each in found.missing)
    if len(known) < 2:
        with pytest.raises(ModelError):
            require_two(found, "x")
        return
    require_two(found, "x")
    text = str(list(strategy_parts(found, strategy_table(found), everything=True)))
    assert all(f"{name}, " in text for name in known)
    assert all(
        f"{name}, since it needs" in text or f"{name} and" in text for name in set(ALL) - known
    )


def test_a_method_measured_whole_is_a_strategy_beside_the_others(tmp_path: Path) -> None:
    times = {(2**n, k): (1e-6 * k, 1.1e-6 * k) for n in range(2, 13) for k in range(1, 7)}
    found = read(InventedCluster().write(tmp_path), others={"alltoallv": times})
    table: StrategyTable = strategy_table(found)
    measured, modelled = table.bases
    assert measured.strategies == (*ALL, "alltoallv") and "alltoallv" not in modelled.strategies
    assert measured.fastest[0].ranges[0].fastest == "alltoallv"
    found_pair = measured.comparison("direct", "alltoallv", "bytes", 2)
    assert found_pair is not None and found_pair.ranges[0].fastest == "alltoallv"


@pytest.fixture(scope="module")
def summit() -> StrategyTable:
    files = sorted(shared("benchpress/summit").iterdir())
    found = read(file for file in files if not file.name.startswith("node_pong"))
    assert (found.processes, found.copies) == (6, "on-socket")
    assert [(each.name, each.is_modelled) for each in found.missing] == [("extra message", False)]
    return strategy_table(found)


def test_times_that_fall_with_the_size_are_named(tmp_path: Path) -> None:
    cluster = InventedCluster(jobs=1, noise=0.0)
    path = cluster.write(tmp_path)[0]
    lines = path.read_text().splitlines()
    at = lines.index("Timing GPU Multiple Messages")
    for n in range(at + 7, at + 1 + cluster.sizes):  # another protocol from 256 B on
        label, *times = lines[n].split("\t")
        lines[n] = "\t".join([label, *(f"{float(t) * 0.5:.6e}" for t in times if t), ""])
    path.write_text("\n".join(lines))
    (fall,) = [each for each in strategy_table(read([path])).falls if each.name == "direct"]
    assert fall.than_bytes < 256 <= fall.bytes
    assert fall.share == pytest.approx(0.5, abs=0.05)
    assert strategy_table(read(cluster.write(tmp_path))).falls == ()


def test_messages_within_a_node_are_not_those_between_nodes(tmp_path: Path) -> None:
    (path,) = InventedCluster(ranks=4, jobs=1).write(tmp_path)
    placed = [PLACED.format(rank=n, host=1, cpu=n, gpu=n % 4, low=0, high=9) for n in range(8)]
    path.write_text(path.read_text() + "\napp\n" + "\n".join(placed) + "\n")
    found = read([path], processes=2)
    assert found.counts == () and found.measured == () and found.modelled == ()
    with pytest.raises(ModelError, match="has no messages between GPUs of two nodes"):
        require_two(found, "x")


PLACED = (
    " rank: {rank}: {{ host: {host}; cpu: {{{cpu}-{cpu}}} ; gpu: {{{gpu}}} ; "
    "mem: {{{low}-{high}}} }} : app 0"
)


def test_copies_are_where_the_file_places_the_sender(tmp_path: Path) -> None:
    """Rank 0 is on the second socket and uses GPU 2, by the placement below the tables."""
    cluster = InventedCluster(ranks=4, gpus=4, jobs=1)
    (path,) = cluster.write(tmp_path)
    placed = []
    for rank in range(8):
        own = rank % 4
        socket = 1 if own in (0, 3) else 0
        gpu = {0: 2, 1: 0, 2: 1, 3: 3}[own]
        placed.append(PLACED.format(rank=rank, host=1 + rank // 4, cpu=4 * own, gpu=gpu,
                                    low=100 * socket, high=100 * socket + 50))  # fmt: skip
    path.write_text(path.read_text() + "\napp\n" + "\n".join(placed) + "\n")
    found = read([path], processes=2)
    assert found.copies == "on-socket"
    assert node(path).sender == (2, 0)


LASSEN = InventedCluster(
    ranks=40,
    gpus=4,
    sizes=8,
    direct=(2.11e-6, 4.91e-10),
    host=(1.53e-6, 4.38e-10),
    copy=(1.34e-5, 1.78e-11),
    off_socket=1.05,
    limit=2.5e-11,
)
"""The eager messages and the copies of the paper's tables."""


def test_lassen(tmp_path: Path) -> None:
    """The paper: direct is faster up to many more messages than a node has GPUs."""
    found = read(LASSEN.write(tmp_path))
    assert (found.processes, found.copies) == (10, "on-socket")
    table = strategy_table(found)
    for basis in table.bases:
        of_counts = basis.comparison("direct", "3-step", "messages", 64)
        assert of_counts is not None and of_counts.crossings == ()
        first, *others = of_counts.ranges
        assert (first.low, first.high, first.fastest) == (1, 4, "direct")
        assert others and all("direct" in each.unknown for each in others)


def test_summit(summit: StrategyTable) -> None:
    """The paper: direct for one message, 3-step from about ten messages on."""
    measured, modelled = summit.bases
    for basis in (measured, modelled):
        assert tuple(n for n in basis.strategies if n != "extra message") == ALL
        found = basis.comparison("direct", "3-step", "messages", 4)
        assert found is not None
        (crossing,) = found.crossings
        assert crossing.faster == "3-step" and 4 <= crossing.at <= 6
        assert found.ranges[-1].low == 7 and found.ranges[-1].unknown == ("direct",)
    assert all(each.cost < 0.05 for each in summit.disagreements)
    known = {(each.name, each.count, each.bytes): each for each in modelled.times}
    inside = [
        model.interval.contains(each.seconds)
        for each in measured.times
        if each.is_measured
        and (model := known.get((each.name, each.count, each.bytes))) is not None
        and model.interval is not None
    ]
    assert len(inside) > 300 and np.mean(inside) > 0.95
