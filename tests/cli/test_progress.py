from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from measure.plan import scripted_native
from measure.plan.machines import machine
from waywiser.cli import progress
from waywiser.cli.progress import LiveLine, PlainLines, estimate_text, fitted
from waywiser.machine import native
from waywiser.measure.plan import tally
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.points import Priority
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule
from waywiser.measure.plan.tally import Tally
from waywiser.measure.probe.supervisor import Progress
from waywiser.words.records import Order, Visit


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plan]:
    monkeypatch.setenv(native.MODULE_VARIABLE, scripted_native.__name__)
    native.load.cache_clear()
    yield make_plan(machine(gpus=1), Request(preset="quick", only=("pinned device copy-engine",)))
    native.load.cache_clear()


def visit(order: Order) -> Visit:
    return Visit(order.workload, order.block, "converged", "2026-01-01T00:00:00")


def orders(plan: Plan) -> list[Order]:
    return list(Schedule(plan))


def test_the_time_left_follows_how_it_goes(plan: Plan) -> None:
    clock = Clock()
    counted = Tally(plan, clock=clock)
    total = counted.seconds_left
    expected = {point.identity: point.unmeasured_seconds for point in plan.points}
    assert total == pytest.approx(sum(expected.values()))
    for order in orders(plan):
        counted.finished(visit(order))
        # three times slower than expected
        clock.now += 3 * expected[order.workload.identity]
        if 0.4 < counted.share < 0.5:
            rest = 3 * (1 - counted.share) * total
            assert 0.8 * rest < counted.seconds_left < rest
    assert counted.share == pytest.approx(1) and counted.seconds_left == pytest.approx(0)
    assert counted.visits == counted.of_visits == plan.visits


def test_conditional_series_count_once_they_are_measured(plan: Plan) -> None:
    points = [replace(point, priority=Priority.CONDITIONAL) for point in plan.points[1:]]
    plan = replace(plan, points=(plan.points[0], *points))
    counted = Tally(plan, clock=Clock())
    first = Visit(plan.points[0].workload, 0, "converged", "2026-01-01T00:00:00")
    counted.finished(msgspec.structs.replace(first, workload=points[0].workload))
    done, certain = points[0].unmeasured_seconds, plan.points[0]
    expected = certain.processes * certain.unmeasured_seconds
    assert counted.share == pytest.approx(done / (done + expected))
    for block in range(certain.processes):
        assert counted.share < 1
        counted.finished(msgspec.structs.replace(first, block=block))
    assert counted.share == pytest.approx(1)


def test_the_time_left_is_never_beyond_the_deadline(plan: Plan) -> None:
    clock = Clock()
    counted = Tally(replace(plan, deadline_seconds=1.0), clock=clock)
    assert counted.seconds_left <= 1.0
    clock.now += 0.75
    assert counted.seconds_left <= 0.25


def test_with_a_deadline_that_somebody_gave_the_time_counts(plan: Plan) -> None:
    clock = Clock()
    request = msgspec.structs.replace(plan.request, deadline_seconds=60.0)
    counted = Tally(replace(plan, request=request, deadline_seconds=60.0), clock=clock)
    for order in orders(plan):
        counted.finished(visit(order))
    clock.now += 15.0
    assert counted.share == pytest.approx(0.25) and counted.seconds_left == pytest.approx(45.0)
    counted.finished(visit(orders(plan)[0]))
    assert counted.of_visits == counted.visits == plan.visits + 1


def test_what_earlier_runs_finished_took_no_time_of_this_one(plan: Plan) -> None:
    counted = Tally(plan, map(visit, orders(plan)[:-1]), Clock())
    last = orders(plan)[-1].workload.identity
    rest = next(point.unmeasured_seconds for point in plan.points if point.identity == last)
    assert counted.visits == plan.visits - 1
    assert counted.seconds_left < 2 * rest


@pytest.mark.parametrize(("factor", "is_said"), [(9.0, True), (1.0, False), (0.1, True)])
def test_an_estimate_that_was_wrong_is_corrected_once(
    plan: Plan, factor: float, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tally, "CORRECTED_SECONDS", 0.0)
    clock, stream = Clock(), io.StringIO()
    plan = replace(plan, deadline_seconds=1e6)
    lines = PlainLines(stream, clock)
    expected = {point.identity: point.unmeasured_seconds for point in plan.points}
    lines.begin(plan, ())
    for order in orders(plan):
        clock.now += factor * expected[order.workload.identity]
        lines.visit(visit(order))
    said = [line for line in stream.getvalue().splitlines() if line.startswith("now about")]
    assert len(said) == is_said
    assert all("were expected" in line for line in said)


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_a_resumed_survey_says_first_what_is_missing(plan: Plan, stream: io.StringIO) -> None:
    lines = progress.watcher(stream, {"TERM": "xterm"})
    lines.begin(plan, map(visit, orders(plan)[:-1]))
    stored = f"{plan.visits - 1} of {plan.visits} visits are stored already, about "
    assert stream.getvalue().startswith(stored)


def test_a_finished_survey_says_that_nothing_is_missing(plan: Plan) -> None:
    stream = io.StringIO()
    progress.watcher(stream, {}).begin(plan, map(visit, orders(plan)))
    assert stream.getvalue() == (
        f"all {plan.visits} visits are stored already: nothing is left to measure\n"
    )


def test_a_pipe_gets_a_line_per_tenth(plan: Plan) -> None:
    stream = io.StringIO()
    lines = progress.watcher(stream, {"TERM": "xterm"})
    assert isinstance(lines, PlainLines)
    lines.begin(plan, ())
    for order in orders(plan):
        lines.visit(visit(order))
    lines.close()
    result = stream.getvalue().splitlines()
    assert 3 <= len(result) <= 10
    assert "\x1b" not in stream.getvalue() and "\r" not in stream.getvalue()
    assert result[-1].startswith(f"100%  {plan.visits} of {plan.visits} visits, 0 s left; last: ")


def test_a_pipe_gets_a_line_at_least_every_five_seconds(plan: Plan) -> None:
    stream, clock = io.StringIO(), Clock()
    lines = PlainLines(stream, clock)
    lines.begin(plan, ())
    smallest = min(orders(plan), key=lambda order: order.expected_seconds)
    lines.visit(visit(smallest))
    assert not stream.getvalue()
    clock.now += 5
    lines.visit(visit(smallest))
    assert stream.getvalue().count("\n") == 1


def live(plan: Plan, variables: dict[str, str], **estimate: Any) -> str:
    """What the terminal got for one visit under way."""
    terminal, clock = Terminal(), Clock()
    line = progress.watcher(terminal, variables)
    assert isinstance(line, LiveLine)
    line = LiveLine(terminal, colour="NO_COLOR" not in variables, clock=clock)
    line.begin(plan, ())
    clock.now += 1
    large = max(orders(plan), key=lambda order: order.workload.transfers[0].bytes)
    line.visit(visit(large))
    clock.now += 1
    line.progress(Progress(large, **estimate))
    line.close()
    return terminal.getvalue()


def test_a_terminal_shows_the_series_its_estimate_and_the_time_left(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    seconds = 0.005
    text = live(plan, {"TERM": "xterm"}, n=23, median=seconds, low=0.0049, high=0.0051)
    last = text.split("\r\x1b[K")[-2]
    assert "copy-engine of 256 MiB  54 GB/s ±2.0 % n=23" in last
    assert "s left" in last and "\x1b[32m█" in last
    assert text.endswith("\r\x1b[K")


def test_little_is_reported_by_its_time_and_leaves_room_for_its_path(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    small = min(orders(plan), key=lambda order: order.workload.transfers[0].bytes)
    terminal, clock = Terminal(), Clock()
    line = LiveLine(terminal, colour=False, clock=clock)
    line.begin(plan, ())
    clock.now += 1
    line.progress(Progress(small, 588, 1.33e-6, 1.01e-6, 1.35e-6))
    last = terminal.getvalue().split("\r\x1b[K")[-1]
    assert last.endswith(" of 8 B  1.3 µs ±13 % n=588")
    assert len(last) <= 80 - len("^C")


class Left(io.StringIO):
    """A pipe whose reader has gone."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_survey_goes_on_where_nobody_reads(plan: Plan) -> None:
    for lines in (PlainLines(Left()), LiveLine(Left(), colour=True)):
        lines.begin(plan, ())
        for order in orders(plan):
            lines.visit(visit(order))
        lines.close()


def test_no_color_means_none(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = live(plan, {"TERM": "xterm", "NO_COLOR": "1"}, n=3, median=0.0)
    assert "\x1b[32m" not in text
    assert "of 256 MiB  n=3" in text


def test_the_live_line_fits_a_narrow_terminal(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = live(plan, {"TERM": "xterm", "NO_COLOR": "1"}, n=23, median=5e-3, low=5e-3, high=5e-3)
    assert all(len(line) < 60 for line in text.split("\r\x1b[K"))


def test_a_dumb_terminal_is_a_pipe() -> None:
    assert isinstance(progress.watcher(Terminal(), {"TERM": "dumb"}), PlainLines)


def test_an_operation_is_reported_in_microseconds(plan: Plan) -> None:
    interval = make_plan(machine(gpus=1), Request(preset="quick", only=("empty-interval",)))
    (order,) = Schedule(interval)
    result = estimate_text(Progress(order, 50, 3.1e-6, 3.0e-6, 3.2e-6))
    assert result == "3.10 µs ±3.2 % n=50"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59.4, "59 s"), (60, "1 min 00 s"), (125, "2 min 05 s"), (4200, "1 h 10 min")],
)
def test_durations_read_well(seconds: float, text: str) -> None:
    assert progress.format_seconds(seconds) == text


def test_long_texts_lose_their_middle() -> None:
    assert fitted("abcdefghij", 10) == "abcdefghij"
    assert fitted("abcdefghij", 7) == "abc…hij"
    assert fitted("abcdefghij", 2) == ""
