"""A tuning on captured machines whose transfers take known times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from waywiser.curves.select import NothingMatches
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import load_capture
from waywiser.machine.catalogue import registered_traits
from waywiser.machine.machine import Machine
from waywiser.measure.tune.targets import Configurator, TuneRequest, find_targets, fitting
from waywiser.measure.tune.tuner import REPORTED, ROUNDS, Tuner, timing_of
from waywiser.words import Transfer
from waywiser.words.records import Failure, Order, Samples, Visit

CAPTURES = Path(__file__).parents[2] / "captures"
STAGED = "pageable@numa:0 -> device@gpu:0 by staged"
START, VISIT = 1.0, 0.1
"""Seconds that a process and a visit take."""


def captured(name: str) -> Machine:
    machine = machine_from(load_capture(CAPTURES / f"{name}.json"))
    return msgspec.structs.replace(machine, traits=registered_traits())


def seconds(transfer: Transfer) -> float:
    """32 threads and chunks of 4 MiB are best; the defaults are 10 and 1 MiB."""
    chunk = int(transfer.parameters.get("chunk", 1 << 20))
    threads = int(transfer.parameters.get("threads", 10))
    if transfer.path.executor == "copy-engine":
        return transfer.bytes / 5e9
    far = 0.3 * abs(math.log2(chunk / 2**22)) + 0.4 * abs(math.log2(threads / 32))
    return transfer.bytes / 40e9 * (1 + far)


class World:
    """Answers the orders of a tuner, and keeps the time."""

    def __init__(self, takes: Callable[[Transfer], float] = seconds) -> None:
        self.now = 0.0
        self.visits: list[Visit] = []
        self.workers = 0
        self._takes = takes

    def run(self, tuner: Tuner, most: int = 10_000) -> None:
        process = None
        for order in tuner:
            if order.process != process:
                process = order.process
                self.now += START
                self.workers += 1
            self.now += VISIT
            visit = self._visit(order)
            self.visits.append(visit)
            tuner.record(visit)
            if len(self.visits) >= most:
                return

    def _visit(self, order: Order) -> Visit:
        (transfer,) = order.workload.transfers
        span = self._takes(transfer)
        if not math.isfinite(span):
            return Visit(order.workload, order.block, "failed", "", failure=Failure("gpu", "x"))
        times = tuple(span * (1 + 0.001 * n) for n in range(-3, 4))
        samples = Samples(times, times, (0.0,) * 7, (1,) * 7, (0,) * 7, tuple((t,) for t in times))
        return Visit(order.workload, order.block, "converged", "", samples=samples)


def tuner_of(
    machine: Machine,
    world: World,
    paths: Sequence[str] = (STAGED,),
    sizes: str = "16MiB",
    finished: Sequence[Visit] = (),
    budget: float = math.inf,
    grid: int = 0,
    first_block: int = 0,
) -> Tuner:
    request = TuneRequest(paths=tuple(paths), sizes=sizes)
    return Tuner(
        find_targets(machine, request).targets,
        Configurator(machine, request.memory_bytes),
        machine,
        budget_seconds=budget,
        grid=grid,
        first_block=first_block,
        finished=finished,
        clock=lambda: world.now,
    )


@pytest.fixture(scope="module")
def machine() -> Machine:
    return captured("h200-vm-4gpu")


def test_the_winner_is_measured_again_and_compared(machine: Machine) -> None:
    world = World()
    tuner = tuner_of(machine, world)
    world.run(tuner)
    (tuned,) = tuner.results()
    assert tuned.winner is not None and tuner.is_complete
    assert tuned.winner.parameters == {"chunk": str(2**22), "threads": "32"}
    default = tuned.default
    assert tuned.over_default is not None and tuned.over_plain is not None
    assert tuned.over_default.value == pytest.approx(seconds(default) / seconds(tuned.winner))
    assert tuned.over_plain.value == pytest.approx(8.0)
    assert tuned.plain == "cudaMemcpyAsync"
    assert tuned.bandwidth == pytest.approx(40e9)
    assert tuned.over_default.interval is not None
    reported = [visit for visit in world.visits if visit.block >= ROUNDS]
    assert len({visit.block for visit in reported}) == REPORTED
    assert {str(visit.workload) for visit in reported} == {
        str(tuned.winner), str(default), str(default).replace("staged", "copy-engine")
    }  # fmt: skip


def test_every_block_is_one_process_and_measures_no_series_twice(machine: Machine) -> None:
    world = World()
    world.run(tuner_of(machine, world, sizes="1MiB,16MiB,256MiB", first_block=7))
    assert world.workers <= ROUNDS + REPORTED
    keys = [(visit.workload.identity, visit.block) for visit in world.visits]
    assert len(keys) == len(set(keys))
    assert min(visit.block for visit in world.visits) == 7


def test_a_size_starts_from_the_next_smaller_one(machine: Machine) -> None:
    world = World()
    tuner = tuner_of(machine, world, sizes="16MiB,256MiB")
    world.run(tuner)
    first, second = tuner.results()
    assert first.winner is not None and second.winner is not None
    assert first.winner.parameters == second.winner.parameters
    cold = World()
    alone = tuner_of(machine, cold, sizes="256MiB")
    cold.run(alone)
    assert second.measured <= alone.results()[0].measured


@pytest.mark.parametrize("most", [1, 7, 30])
def test_a_tuning_that_is_interrupted_goes_on_to_the_same_series(
    machine: Machine, most: int
) -> None:
    whole, parts = World(), World()
    world = whole
    whole.run(tuner_of(machine, whole))
    parts.run(tuner_of(machine, parts), most=most)
    assert len(parts.visits) == most
    again = tuner_of(machine, parts, finished=parts.visits)
    parts.run(again)

    def keys(world: World) -> set[tuple[str, int]]:
        return {(str(visit.workload), visit.block) for visit in world.visits}

    assert keys(parts) == keys(whole)
    assert len(parts.visits) == len(whole.visits)
    finished = tuner_of(machine, world, finished=whole.visits)
    assert list(finished) == [] and finished.is_complete
    assert finished.results() == again.results()


@pytest.mark.parametrize("budget", [0.5, 4.0, 8.0, 12.0, 16.0])
def test_no_visit_begins_that_does_not_end_in_the_budget(machine: Machine, budget: float) -> None:
    world = World()
    tuner = tuner_of(machine, world, sizes="1MiB,16MiB,256MiB", budget=budget)
    world.run(tuner)
    assert world.now <= budget + START + VISIT  # the first process may take longer than expected
    assert not tuner.is_complete
    for tuned in tuner.results():
        assert tuned.winner is not None or tuned.reason


def test_the_reported_measurements_have_time_if_the_search_has_had_some(machine: Machine) -> None:
    world = World()
    tuner = tuner_of(machine, world, sizes="1MiB,16MiB,256MiB", budget=20.0)
    world.run(tuner)
    assert not tuner.is_complete
    assert all(tuned.winner is not None for tuned in tuner.results())


def test_defaults_that_fail_have_no_winner(machine: Machine) -> None:
    world = World(lambda transfer: math.inf)
    tuner = tuner_of(machine, world)
    world.run(tuner)
    (tuned,) = tuner.results()
    assert tuned.winner is None and "cannot be measured" in tuned.reason
    assert len(world.visits) == 1


def test_defaults_that_are_as_fast_win(machine: Machine) -> None:
    world = World(lambda transfer: transfer.bytes / 10e9)
    tuner = tuner_of(machine, world)
    world.run(tuner)
    (tuned,) = tuner.results()
    assert tuned.winner == tuned.default and tuned.over_default is None
    assert tuned.over_plain is not None and tuned.over_plain.value == pytest.approx(1.0)


def test_a_grid_has_every_configuration_in_every_process(machine: Machine) -> None:
    world = World()
    tuner = tuner_of(machine, world, grid=2)
    world.run(tuner)
    (target,) = tuner.targets
    assert len(world.visits) == 2 * (target.configurations + 1)  # and the plain copy
    first, second = ([str(v.workload) for v in world.visits if v.block == b] for b in (0, 1))
    assert set(first) == set(second) and first != second


def test_targets_follow_from_the_registry(machine: Machine) -> None:
    found = find_targets(machine, TuneRequest()).targets
    configurator = Configurator(machine, TuneRequest().memory_bytes)
    texts = {target.point.curve.text for target in found}
    assert STAGED in texts
    assert not any("gpu:1" in text and "gpu:0" not in text for text in texts), "equivalent paths"
    sizes = [target.point.size for target in found if target.needs_search]
    assert sizes == sorted(sizes)
    for target in found:
        default = tuple(p.choices[0] for p in target.parameters)
        point = configurator.point(target, default)
        assert point.identity == target.point.identity, "defaults are never written"
        assert not {p.name for p in target.parameters} & {"sync", "access", "stride"}
    assert {t.plain_text for t in found if t.needs_search and t.plain} == {"cudaMemcpyAsync"}


def test_patterns_select_any_path_with_something_to_search(machine: Machine) -> None:
    found = find_targets(machine, TuneRequest(paths=("gpu:1 relay",), sizes="16MiB")).targets
    assert found and all("relay" in target.point.curve.text for target in found)
    assert {p.kind for target in found for p in target.parameters} >= {"subset", "ordered"}
    listed = find_targets(machine, TuneRequest(paths=("scattered sm",), sizes="16MiB")).targets
    assert listed and all(target.point.curve.layout is not None for target in listed)
    with pytest.raises(NothingMatches):
        find_targets(machine, TuneRequest(paths=("stagged",)))


def test_what_does_not_fit_into_the_budget_is_cut(machine: Machine) -> None:
    found = find_targets(machine, TuneRequest()).targets
    costs = {target.point.identity: float(target.point.size) for target in found}
    kept, cut = fitting(found, costs, 20 * 2.0**20)
    assert len(kept) + len(cut) == len(found)
    assert sum(target.point.size for target in kept) <= 20 * 2**20
    assert min(t.point.size for t in cut) >= min(t.point.size for t in kept)


def test_a_visit_takes_as_long_as_the_application_sees() -> None:
    world = World()
    tuner = tuner_of(captured("h200-vm-4gpu"), world)
    world.run(tuner, most=1)
    (visit,) = world.visits
    times = tuple(2 * seconds for seconds in visit.samples.span)
    longer = msgspec.structs.replace(visit.samples, host=times)
    one, two = timing_of(visit), timing_of(msgspec.structs.replace(visit, samples=longer))
    assert one is not None and two is not None
    assert two.seconds == pytest.approx(2 * one.seconds)
    assert timing_of(msgspec.structs.replace(visit, samples=Samples())) is None
