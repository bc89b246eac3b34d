"""The strategies between GPUs of surveyed ranks, and predictions of their messages, with planted
times."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from profiles import ENVIRONMENT, machine, samples, visit, workload
from waywiser.curves.curve import points_of
from waywiser.machine.machine import PlacedRank
from waywiser.model.errors import ModelError
from waywiser.model.held_out import validation
from waywiser.model.machine_model import MachineModel, fitted_model
from waywiser.model.message_strategies import MessageStrategies
from waywiser.model.messages import message_of, messages_of
from waywiser.model.prediction import Predictor, measured_times
from waywiser.model.strategies import StrategyTimes
from waywiser.model.strategy_steps import MessageModels
from waywiser.model.strategy_table import strategy_table
from waywiser.model.survey_strategies import require_any, survey_strategies
from waywiser.profile import Profile, WritableProfile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Workload

RANKS = tuple(PlacedRank(n, (n,), 0, n % 2) for n in range(4))
SIZES = tuple(2**n for n in range(6, 25, 2))
WINDOWS = (1, 4, 16, 64)


def direct(count: int, size: int) -> float:
    return 30e-6 + (count - 1) * 12e-6 + count * size / 0.6e9


def of_hosts(count: int, size: int) -> float:
    return 1e-6 + (count - 1) * 0.5e-6 + count * size / 6e9


def staged(count: int, size: int) -> float:
    return 40e-6 + 2 * count * size / 25e9 + of_hosts(count, size)


def chunked(size: int) -> float:
    return 60e-6 + size / 5.5e9


def method_curves() -> Iterator[tuple[str, Callable[[int], float]]]:
    """Curves of two ranks; a sample of several messages is that of one."""
    for kind, seconds in (("device", direct), ("pinned", of_hosts)):
        ends = f"{kind}@rank:0 -> {kind}@rank:1 by mpi"
        for n in WINDOWS:
            setting = "" if n == 1 else f"[window={n}]"
            yield f"{ends}{setting}", lambda size, n=n, f=seconds: f(n, size) / n
        yield f"{ends}[test=bw]", lambda size, f=seconds: f(64, size) / 64
    yield "device@rank:0 -> device@rank:1 by mpi-staged", lambda size: staged(1, size)
    yield "device@rank:0 -> device@rank:1 by mpi-staged[chunk=2097152]", chunked


def pairs() -> Iterator[tuple[str, Callable[[int], float]]]:
    """One and two pairs of ranks, by two methods."""
    for method, rate in (("mpi", 8e9), ("mpi-staged", 3e9)):
        ends = [f"device@rank:{2 * n} -> device@rank:{2 * n + 1} by {method}" for n in range(2)]
        for count in (1, 2):
            yield (
                ";".join(ends[:count]),
                lambda size, count=count, rate=rate: 5e-6 + count * size / rate,
            )


def exchanges() -> Iterator[tuple[str, Callable[[int], float]]]:
    """Yields exchanges among four ranks: one process for each GPU is better for few bytes, two for
    many; skewed counts are another exchange."""
    among = "device@rank:0-3 -> device@rank:0-3"
    yield f"{among} by alltoall[per-gpu=1,strategy=3-step]", lambda size: 40e-6 + size / 4e9
    yield f"{among} by alltoall[per-gpu=2,strategy=3-step]", lambda size: 60e-6 + size / 6e9
    yield f"{among} by alltoallv[counts=skewed,strategy=direct]", lambda size: 9e-6 + size / 9e9


def written(
    path: Path,
    curves: Iterator[tuple[str, Callable[[int], float]]],
    *,
    ranks: Sequence[PlacedRank] = RANKS,
    blocks: int = 3,
) -> Path:
    here = msgspec.structs.replace(machine(), ranks=tuple(ranks), messages="MPICH 5.0.2")
    rng = random.Random(7)
    with WritableProfile.create(path, here, ENVIRONMENT) as profile:
        for text, seconds in curves:
            for size in SIZES:
                for block in range(blocks):
                    taken = samples(rng, seconds(size) * rng.uniform(0.99, 1.01), 5, transfers=0)
                    what = workload(text, size)
                    profile.commit_visit(visit(what, block, taken, mode="host"))
    return path


def read(path: Path) -> tuple[list[MessageStrategies], MachineModel]:
    with Profile.open(path) as profile:
        model = fitted_model(profile)
        messages = messages_of(points_of(SeriesFrame.read(profile)), profile.machine.ranks)
        found = survey_strategies(messages, MessageModels.of(model), profile.machine)
    return found, model


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("ranks") / "a.wwp", method_curves())


def test_each_method_has_models_of_its_own(two: Path) -> None:
    _, model = read(two)
    names = {each.name for each in model.messages}
    assert names == {
        "device -> device by mpi on-socket",
        "device -> device by mpi[test=bw] on-socket",
        "device -> device by mpi-staged on-socket",
        "device -> device by mpi-staged[chunk=2MiB] on-socket",
        "pinned -> pinned by mpi on-socket",
        "pinned -> pinned by mpi[test=bw] on-socket",
    }
    assert {(each.key.name, each.counts) for each in model.counts} == {
        ("device by mpi, messages, on-socket", WINDOWS),
        ("pinned by mpi, messages, on-socket", WINDOWS),
    }
    assert model.capacities.curves == {}


def test_copying_first_wins_from_the_planted_number_of_messages_on(two: Path) -> None:
    (found,), _ = read(two)
    assert found.subject.startswith("Messages from the GPU of a rank to that of another, on-socket")
    assert [each.name for each in found.measured] == ["mpi", "mpi-staged", "mpi-staged[chunk=2MiB]"]
    assert found.counts == WINDOWS and found.sizes == SIZES
    modelled = StrategyTimes(found.modelled)
    for count in WINDOWS:
        for size in SIZES:
            for name, seconds in (("mpi", direct), ("mpi-staged", staged)):
                if name == "mpi-staged" and (count * size > SIZES[-1] or count * size < 4096):
                    continue
                time = modelled.of(name, count, size)
                assert time is not None
                assert time.seconds == pytest.approx(seconds(count, size), rel=0.12)
    measured, of_model = strategy_table(found).bases
    few = of_model.comparison("mpi", "mpi-staged", "messages", 1024)
    assert few is not None
    (crossing,) = few.crossings
    assert (crossing.faster, crossing.after, crossing.at) == ("mpi-staged", 1, 4)
    assert measured.fastest[0].ranges[-1].fastest in ("mpi-staged", "mpi-staged[chunk=2MiB]")


def test_measured_times_are_of_all_messages(two: Path) -> None:
    (found,), _ = read(two)
    times = StrategyTimes(found.measured)
    for count in WINDOWS:
        time = times.of("mpi", count, 2**20)
        assert time is not None and time.is_measured
        assert time.seconds == pytest.approx(direct(count, 2**20), rel=0.02)


def test_predictions(two: Path) -> None:
    _, model = read(two)
    pair = "device@rank:0 -> device@rank:1 by"
    one = Workload.parse(f"{pair} mpi-staged[chunk=2097152] of 3145728")
    assert Predictor(model).predict(one).span == pytest.approx(chunked(3145728), rel=0.05)
    several = Workload.parse(f"{pair} mpi of 65536")
    found = Predictor(model).predict(several, 16)
    assert found.span == pytest.approx(direct(16, 65536), rel=0.05)
    with Profile.open(two) as profile:
        measured = measured_times(SeriesFrame.read(profile), profile.machine, several, 16)
    assert measured is not None and measured.span == pytest.approx(found.span, rel=0.05)
    assert found.interval.contains(measured.span)


@pytest.mark.parametrize(
    ("text", "count", "says"),
    [
        ("device@rank:0 -> device@rank:1 by mpi[window=4] of 64", 1, "how many messages there are"),
        ("device@rank:0 -> device@rank:1 by mpi-staged of 64", 4, "were not measured"),
        ("device@rank:0 -> device@rank:1 by mpi of 64", 65, "beyond what was measured"),
        ("device@rank:0 -> device@rank:9 by mpi of 64", 1, "rank:9"),
        ("device@rank:0 -> pinned@rank:1 by mpi of 64", 1, "was not measured"),
        ("device@rank:0 -> device@rank:1 by mpi of 64; device@rank:2 -> device@rank:3 by "
         "mpi-staged of 64", 1, "sets of different messages"),
    ],
)  # fmt: skip
def test_what_cannot_be_predicted(two: Path, text: str, count: int, says: str) -> None:
    _, model = read(two)
    with pytest.raises(ModelError, match=says):
        Predictor(model).predict(Workload.parse(text), count)


def test_held_out_sizes_and_numbers(two: Path) -> None:
    with Profile.open(two) as profile:
        rows = {row.what: row for row in validation(profile).rows}
    assert rows["number of messages, device by mpi, messages, on-socket"].median < 0.1
    assert any(what.startswith("size of a message") for what in rows)


def test_pairs_are_compared_by_their_number(tmp_path: Path) -> None:
    ranks = tuple(msgspec.structs.replace(rank, gpu=rank.index) for rank in RANKS)
    found, _ = read(written(tmp_path / "a.wwp", pairs(), ranks=ranks))
    subjects = {each.unit: each for each in found}
    assert subjects["pair"].counts == (1, 2)
    time = StrategyTimes(subjects["pair"].measured).of("mpi", 2, 2**20)
    assert time is not None
    assert time.seconds == pytest.approx(5e-6 + 2**21 / 8e9, rel=0.02)


def test_exchanges_of_the_same_are_compared(tmp_path: Path) -> None:
    (found,), model = read(written(tmp_path / "a.wwp", exchanges()))
    assert found.unit == "rank" and found.counts == (4,)
    names = ["alltoall[per-gpu=1,strategy=3-step]", "alltoall[per-gpu=2,strategy=3-step]"]
    assert [each.name for each in found.measured] == names
    assert [each.name for each in found.modelled] == names
    for basis in strategy_table(found).bases:
        of_sizes = basis.comparison(names[0], names[1], "bytes", 4)
        assert of_sizes is not None
        (crossing,) = of_sizes.crossings  # 20 us / (1/4 - 1/6 ns/B) = 240 kB
        assert (crossing.after, crossing.at) == (65536, 262144)
    text = Workload.parse("device@rank:0-3 -> device@rank:0-3 by alltoallv[counts=skewed,"
                          "strategy=direct] of 1048576")  # fmt: skip
    assert Predictor(model).predict(text).span == pytest.approx(9e-6 + 2**20 / 9e9, rel=0.03)


def test_ranks_that_share_cpus_make_nothing_sure(tmp_path: Path) -> None:
    crowded = tuple(msgspec.structs.replace(rank, cpus=(0,)) for rank in RANKS)
    (found,), _ = read(written(tmp_path / "a.wwp", method_curves(), ranks=crowded))
    assert "4 ranks share 1 CPUs: what such ranks measure has no verdict" in found.notes
    for basis in strategy_table(found).bases:
        assert not any(part.is_sure for each in basis.comparisons for part in each.ranges)


def test_ranks_of_one_gpu_are_another_path(tmp_path: Path) -> None:
    def both() -> Iterator[tuple[str, Callable[[int], float]]]:
        for pair, factor in (((0, 2), 9.0), ((0, 1), 1.0)):
            for method, rate in (("mpi", 8e9), ("mpi-staged", 3e9)):
                text = f"device@rank:{pair[0]} -> device@rank:{pair[1]} by {method}"
                yield text, lambda size, f=factor, rate=rate: f * (5e-6 + size / rate)

    (found,), _ = read(written(tmp_path / "a.wwp", both()))
    time = StrategyTimes(found.measured).of("mpi", 1, 2**20)
    assert time is not None and time.seconds == pytest.approx(5e-6 + 2**20 / 8e9, rel=0.02)


def test_without_two_strategies_there_is_nothing_to_compare() -> None:
    with pytest.raises(ModelError, match="no two strategies"):
        require_any([], "a.wwp")


def test_a_rank_of_another_numa_node_is_at_another_place() -> None:
    ranks = (PlacedRank(0, (0,), 0), PlacedRank(1, (1,), 0), PlacedRank(2, (2,), 1))
    pair = "device@rank:0 -> device@rank:{} by mpi of 64"
    local, remote = (message_of(Workload.parse(pair.format(n)), ranks) for n in (1, 2))
    assert local is not None and remote is not None
    assert (local.locality, remote.locality) == ("on-socket", "on-node")
    assert message_of(Workload.parse(pair.format(3)), ranks) is None


@pytest.mark.parametrize(
    ("ends", "test"),
    [
        (((0, 2), (0, 3)), "peers"),
        (((0, 2), (1, 3)), "processes"),
        (((0, 1), (2, 3)), "pairs"),
        (((0, 3), (2, 1)), "pairs"),
        (((0, 1), (0, 2), (1, 3)), ""),
    ],
)
def test_several_messages_are_to_peers_of_processes_or_of_pairs(
    ends: tuple[tuple[int, int], ...], test: str
) -> None:
    ranks = tuple(PlacedRank(n, (n,), 0, n // 2) for n in range(4))
    pair = "device@rank:{} -> device@rank:{} by mpi of 64"
    found = message_of(Workload.parse("; ".join(pair.format(*each) for each in ends)), ranks)
    assert (found.test if found is not None else "") == test
    assert found is None or found.count == len(ends)


def test_copying_first_wins_from_a_number_of_peers_on(tmp_path: Path) -> None:
    ranks = tuple(PlacedRank(n, (n,), 0, n // 4) for n in range(8))

    def peers() -> Iterator[tuple[str, Callable[[int], float]]]:
        for method, first, each in (("mpi", 10e-6, 9e-6), ("mpi-staged", 30e-6, 1e-6)):
            for n in (1, 2, 4, 7):
                transfers = [
                    f"device@rank:0 -> device@rank:{to} by {method}" for to in range(7, 7 - n, -1)
                ]
                yield (
                    ";".join(transfers),
                    lambda size, n=n, a=first, b=each: a + n * (b + size / 9e9),
                )

    found, model = read(written(tmp_path / "a.wwp", peers(), ranks=ranks))
    (own,) = [each for each in found if each.unit == "peer"]
    for basis in strategy_table(own).bases:
        few = basis.comparison("mpi", "mpi-staged", "messages", 1024)
        assert few is not None
        (crossing,) = few.crossings  # 20 us / 8 us: three messages
        assert (crossing.faster, crossing.after, crossing.at) == ("mpi-staged", 2, 4)
    several = Workload.parse("; ".join(
        f"device@rank:0 -> device@rank:{n} by mpi of 4096" for n in (5, 6, 7)))  # fmt: skip
    assert Predictor(model).predict(several).span == pytest.approx(
        10e-6 + 3 * (9e-6 + 4096 / 9e9), rel=0.1
    )
