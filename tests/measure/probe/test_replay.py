"""A recording answers in place of a machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from scripted_orders import PATH, a_machine, an_order

from replaying import Scale, command
from waywiser.measure.probe.options import ProbeOptions
from waywiser.measure.probe.supervisor import run_orders
from waywiser.measure.probe.worker_process import ProbeError
from waywiser.profile import WritableProfile
from waywiser.words import Transfer, WaywiserError, Workload
from waywiser.words.records import Failure, Order, Samples, Visit

SPAN = (3e-6, 1e-6, 2e-6, 5e-6, 4e-6)


def a_workload(size: int) -> Workload:
    return Workload((Transfer(PATH, size),))


def a_visit(size: int, block: int = 0, *, failure: Failure | None = None) -> Visit:
    """Five samples whose order shows; the block is in the repetitions."""
    n = len(SPAN)
    samples = Samples(
        span=SPAN,
        host=tuple(2 * seconds for seconds in SPAN),
        skew=(0.0,) * n,
        repetitions=(block + 1,) * n,
        flags=(0,) * n,
        transfers=tuple((seconds,) for seconds in SPAN),
    )
    return Visit(
        workload=a_workload(size),
        block=block,
        stop="failed" if failure else "budget",
        started="2026-11-20T12:00:00+00:00",
        samples=Samples() if failure else samples,
        failure=failure,
        notes=("recorded",),
    )


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Size 8 in two blocks, size 16 in one, size 32 failed."""
    file = tmp_path / "recorded.wwp"
    visits = [a_visit(8), a_visit(8, 1), a_visit(16)]
    visits.append(a_visit(32, failure=Failure("out-of-memory", "there was none")))
    with WritableProfile.create(file, a_machine(), {}) as profile:
        for visit in visits:
            profile.commit_visit(visit)
    return file


Replay = Callable[..., list[Visit]]


@pytest.fixture
def replay(recording: Path) -> Replay:
    def replay(
        orders: Sequence[tuple[int, int]], scales: Sequence[Scale] = (), resample: int | None = None
    ) -> list[Visit]:
        visits: list[Visit] = []
        options = ProbeOptions(command=command(recording, scales, resample))
        run_orders(map(order_of, orders), a_machine(), options=options, on_visit=visits.append)
        return visits

    return replay


def order_of(size_and_block: tuple[int, int]) -> Order:
    size, block = size_and_block
    return msgspec.structs.replace(an_order(block=block), workload=a_workload(size))


def test_samples_come_back_in_order(replay: Replay) -> None:
    first, second = replay([(8, 0), (8, 1)])
    assert first.samples == a_visit(8).samples
    assert second.samples == a_visit(8, 1).samples
    assert (first.stop, first.notes) == ("budget", ("recorded",))


def test_a_block_that_was_not_recorded_comes_from_another_and_says_so(replay: Replay) -> None:
    (visit,) = replay([(8, 3)])
    assert visit.samples == a_visit(8, 1).samples
    assert visit.block == 3
    assert visit.notes[-1] == "replayed from block 1 of the recording"


def test_what_was_not_recorded_is_an_error_and_the_rest_goes_on(replay: Replay) -> None:
    unsupported_paths, after = replay([(64, 0), (16, 0)])
    assert unsupported_paths.failure == Failure("not-supported", "not in the recording")
    assert after.stop == "budget"
    assert after.worker == 1


def test_a_recorded_failure_fails_again(replay: Replay) -> None:
    (visit,) = replay([(32, 0)])
    assert visit.failure == Failure("out-of-memory", "there was none")


def test_a_scale_makes_the_series_it_matches_slower(replay: Replay) -> None:
    scaled, other = replay([(8, 0), (16, 0)], [Scale("of 8", 1.5)])
    assert scaled.samples.span == tuple(1.5 * seconds for seconds in SPAN)
    assert scaled.samples.host == tuple(3.0 * seconds for seconds in SPAN)
    assert scaled.samples.transfers == tuple((1.5 * seconds,) for seconds in SPAN)
    assert scaled.samples.repetitions == a_visit(8).samples.repetitions
    assert other.samples == a_visit(16).samples


def test_resampling_draws_whole_samples_by_the_seed(replay: Replay) -> None:
    once, again = (replay([(8, 0)], resample=7)[0].samples for _ in range(2))
    assert once == again
    assert once != a_visit(8).samples
    assert set(once.span) <= set(SPAN)
    assert once.host == tuple(2 * seconds for seconds in once.span)
    assert replay([(8, 0)], resample=8)[0].samples != once


def test_a_recording_that_cannot_be_read_is_said_clearly(tmp_path: Path) -> None:
    options = ProbeOptions(command=command(tmp_path / "missing.wwp"), startup_attempts=1)
    with pytest.raises(ProbeError, match=r"missing\.wwp"):
        run_orders([an_order()], a_machine(), options=options, on_visit=lambda visit: None)


def test_a_scale_is_written_as_pattern_and_factor() -> None:
    assert Scale.parse("cpu[threads=2]=1.05") == Scale("cpu[threads=2]", 1.05)


@pytest.mark.parametrize("text", ["", "cpu", "=1.05", "cpu=", "cpu=x", "cpu=0", "cpu=-1", "a=nan"])
def test_what_is_not_a_scale_is_said_clearly(text: str) -> None:
    with pytest.raises(WaywiserError, match=r"is not a scale \(write PATTERN=FACTOR"):
        Scale.parse(text)
