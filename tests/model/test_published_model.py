from __future__ import annotations

import pytest

from exchange.imports.shared_files import shared
from waywiser.curves.curve import points_of
from waywiser.exchange.imports import detect
from waywiser.exchange.imports.benchpress import read
from waywiser.model.count_table import CountKey
from waywiser.model.messages import Locality, MessageTimes, classes_of, curve_of, messages_of
from waywiser.model.published import SwitchesError, fit, parse_switches, warnings_of
from waywiser.model.rate import fit_counts, held_out_deviations
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words.records import Series, Visit

SIZES = [4 * 2**n for n in range(18)]
SWITCHES = "on-socket=256,16KiB; on-node=256,16KiB; off-node=256,16KiB"


def message(
    seconds: float,
    size: int,
    *,
    count: int = 1,
    test: str = "ping-pong",
    locality: Locality = "off-node",
    ranks: tuple[int, int] = (0, 6),
) -> MessageTimes:
    return MessageTimes("pinned", "pinned", locality, test, count, size, ranks, (seconds,))


def protocol(n: int) -> float:
    if n < 256:
        return 1e-6 + 4e-10 * n
    return 2e-6 + 3e-10 * n if n < 16384 else 6e-6 + 8e-11 * n


def test_the_rule_takes_the_minimum_of_pairs_and_jobs_and_fits_each_protocol() -> None:
    messages = [
        message(protocol(n) * factor, n, ranks=(0, rank))
        for n in SIZES
        for rank, factor in ((6, 1.4), (7, 1.0), (8, 3.0))
    ]
    model = fit(messages, parse_switches("off-node=256,16KiB"))
    short, eager, rendezvous = model.protocols("pinned", "pinned", "off-node")
    assert (short.protocol, short.low, short.high) == ("short", 4, 128)
    assert (eager.latency, eager.inverse_rate) == pytest.approx((2e-6, 3e-10), rel=1e-6)
    assert (rendezvous.low, rendezvous.high) == (16384, SIZES[-1])
    assert rendezvous.inverse_rate == pytest.approx(8e-11, rel=1e-6)
    assert model.line("pinned", "pinned", "off-node", 5000) == eager
    assert model.injection == {}


def test_the_injection_rate_is_one_slope_of_large_messages_of_many_processes() -> None:
    single = [message(protocol(n), n) for n in SIZES]
    groups = [
        message(6e-6 + 3e-11 * n * count, n, count=count, test="node-pong")
        for count in range(1, 41)
        for n in (8192, 16384, 131072)
    ]
    model = fit([*single, *groups], parse_switches("off-node=256,16KiB"))
    assert model.injection["pinned"] == pytest.approx(3e-11, rel=1e-6)


@pytest.mark.parametrize("text", ["off-node", "nowhere=256", "off-node=", "off-node=512,256"])
def test_switches_that_are_none_are_an_error_of_one_line(text: str) -> None:
    with pytest.raises(SwitchesError) as error:
        parse_switches(text)
    assert "\n" not in str(error.value)


def test_switches_name_host_memory_unless_they_name_another() -> None:
    assert parse_switches("off-node=256,16KiB; device on-node=8KiB;") == {
        ("pinned", "off-node"): (256, 16384),
        ("device", "on-node"): (8192,),
    }


def test_pairs_that_differ_are_classes_and_pairs_that_scatter_are_one() -> None:
    factors = {(0, 1): 1.0, (3, 4): 1.02, (0, 2): 1.9, (1, 2): 1.87, (3, 5): 1.92}
    messages = [
        message(protocol(n) * factor, n, locality="on-socket", ranks=ranks)
        for ranks, factor in factors.items()
        for n in SIZES
    ]
    found = classes_of(messages)
    assert [each.pairs for each in found] == [((0, 1), (3, 4)), ((0, 2), (1, 2), (3, 5))]
    assert {each.of for each in found} == {2}
    curve = curve_of(found[0], messages)
    assert len(curve.blocks.blocks[0]) == 2
    scattered = {(0, 6): 1.0, (0, 7): 1.05, (0, 8): 1.12, (0, 9): 1.2}
    (one,) = classes_of(
        [message(protocol(n) * f, n, ranks=r) for r, f in scattered.items() for n in SIZES]
    )
    assert one.of == 1 and len(one.pairs) == 4


def test_messages_of_an_imported_file() -> None:
    rows = "Size 1\t1.000000e-06\t2.000000e-06\t\nSize 2\t1.100000e-06\t2.100000e-06\t\n"
    (found,) = read(f"Timing CPU Multiple Messages\n{rows}", "x")
    frame = SeriesFrame.of(
        Series(each.workload, (Visit(each.workload, 0, "limit", "", samples=each.samples),))
        for each in found.measured
    )
    messages = messages_of(points_of(frame))
    assert [(each.count, each.bytes, each.least) for each in messages if each.count == 2] == [
        (2, 4, pytest.approx(2e-6)),
        (2, 8, pytest.approx(2.1e-6)),
    ]
    assert {(each.test, each.locality) for each in messages} == {("messages", "off-node")}


@pytest.fixture(scope="module")
def summit() -> list[MessageTimes]:
    series: dict[str, Series] = {}
    for path in sorted(shared("benchpress/summit").iterdir()):
        for each in detect.read(path)[0].measured:
            known = series.setdefault(each.workload.identity, Series(each.workload, ()))
            visit = Visit(each.workload, len(known.visits), "limit", "", samples=each.samples)
            series[each.workload.identity] = Series(each.workload, (*known.visits, visit))
    return messages_of(points_of(SeriesFrame.of(series.values())))


def test_the_tables_of_the_paper_but_for_its_misprint(summit: list[MessageTimes]) -> None:
    model = fit(summit, parse_switches(SWITCHES))

    def parameters(source: str, destination: str, locality: Locality) -> list[float]:
        lines = model.protocols(source, destination, locality)
        return [value for each in lines for value in (each.latency, each.inverse_rate)]

    printed = {
        ("pinned", "pinned", "on-socket"): (
            3.51e-07, 2.62e-10, 4.73e-07, 6.95e-11, 2.46e-06, 3.31e-11,
        ),
        ("pinned", "pinned", "off-node"): (
            1.38e-06, 3.82e-10, 1.85e-06, 3.93e-10, 6.56e-06, 8.51e-11,
        ),
        ("device", "device", "off-node"): (4.96e-6, 1.69e-10),
        ("device", "pinned", "on-socket"): (1.09e-5, 2.36e-11),
    }  # fmt: skip
    for (source, destination, locality), values in printed.items():
        found = parameters(source, destination, locality)  # type: ignore[arg-type]
        assert found == pytest.approx(values, rel=0.005)
    injection = {"pinned": 2.996e-11, "device": 5.103e-11}
    assert model.injection == pytest.approx(injection, rel=0.005)


def test_messages_on_one_socket_are_two_classes(summit: list[MessageTimes]) -> None:
    found = [each for each in classes_of(summit) if each.locality == "on-socket"]
    hosts = [each.pairs for each in found if each.source == each.destination == "pinned"]
    assert hosts == [((0, 1), (3, 4)), ((0, 2), (1, 2), (3, 5), (4, 5))]


def test_the_injection_limit_and_held_out_counts(summit: list[MessageTimes]) -> None:
    model = fit_counts(summit, "pinned", "max-rate", least=True)
    assert model is not None and model.limit is not None
    assert 23e9 < model.limit.bytes_per_second < 25e9
    off = sorted(held_out_deviations(summit, CountKey("pinned", "max-rate"), least=True))
    assert off[len(off) // 2] < 0.02
    assert off[int(0.95 * len(off))] < 0.15


def test_a_line_over_several_protocols_has_a_warning_with_what_to_do() -> None:
    messages = [message(protocol(n), n) for n in SIZES]
    first, *rest = warnings_of(fit(messages, {}), messages, {})
    assert first.startswith("no switches are given for pinned off-node") and "of Summit" in first
    assert rest and rest[0].startswith("pinned off-node: the line is 10% or more off ")
    switches = parse_switches("off-node=256,16KiB")
    assert warnings_of(fit(messages, switches), messages, switches) == []


def test_a_line_that_fits_is_named_without_switches_alone() -> None:
    messages = [message(1e-6 + 4e-10 * n, n) for n in SIZES]
    (only,) = warnings_of(fit(messages, {}), messages, {})
    assert "one line is fitted to each whole curve" in only
