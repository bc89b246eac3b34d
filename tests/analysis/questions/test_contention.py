"""Together against alone."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import msgspec
import pytest
from tests import profiles
from tests.analysis.questions.machines import LARGE, host_links, machine, peer_links
from tests.analysis.questions.subjects import curve, postal, subject

import sides as synthetic
from waywiser.analysis.questions.contention import answer
from waywiser.curves.answer import Answer
from waywiser.words import Transfer, Workload
from waywiser.words.records import Samples, Series

SIZE = 2**28


def h2d(gpu: int) -> str:
    return f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine"


def d2h(gpu: int) -> str:
    return f"device@gpu:{gpu} -> pinned@numa:0 by copy-engine"


def together(paths: Sequence[str], rates: Sequence[float], *, shared: bool = False) -> list[Series]:
    """The paths at once, each at its own rate: the last ends the whole."""
    rng = random.Random(len(paths))
    what = Workload(tuple(Transfer.parse(f"{path} of {SIZE}") for path in paths), shared=shared)
    seconds = [SIZE / rate for rate in rates]
    visits = []
    for block in range(2):
        taken = profiles.samples(rng, max(seconds), 12, transfers=len(paths))
        each = tuple(tuple(span * s / max(seconds) for s in seconds) for span in taken.span)
        visits.append(profiles.visit(what, block, _with(taken, each)))
    return [Series(what, tuple(visits))]


def _with(taken: Samples, transfers: tuple[tuple[float, ...], ...]) -> Samples:
    return msgspec.structs.replace(taken, transfers=transfers)


def answered(*more: list[Series], gpus: int = 4) -> Answer:
    """A machine with host links of 50 GB/s each way, alone."""
    return answer(subject(host_links(gpus), *more, machine=machine(gpus)))


def test_transfers_that_share_nothing_are_as_fast_together() -> None:
    found = answered(together([h2d(gpu) for gpu in range(4)], [50e9] * 4))
    assert found.findings == ()
    (row,) = found.tables[0].rows
    assert row.cells[0].text.startswith("host-to-all")
    assert (row.cells[1].mark, row.cells[3].text) == ("no", "100%")


def test_a_shared_bottleneck_is_reported_with_what_it_carries() -> None:
    found = answered(together([h2d(gpu) for gpu in range(4)], [35e9] * 4))
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("shared-bottleneck", "info")
    assert "all 4 transfers" in finding.text
    assert finding.effect == pytest.approx(0.3, abs=0.02)
    assert finding.interval is not None
    assert finding.interval.low < 0.3 < finding.interval.high
    assert finding.exhibits[0].value == pytest.approx(140e9, rel=0.02)
    assert finding.exhibits[0].interval is not None
    assert [device.place for device in finding.devices] == [f"gpu:{gpu}" for gpu in range(4)]


@pytest.mark.parametrize(
    ("times", "waiting"),
    [
        (3, "one after another"),
        (2, "some wait"),
        (1, ""),
    ],
)
def test_a_transfer_that_waits_for_others_is_slowed_by_the_wait(times: int, waiting: str) -> None:
    # each is as fast as alone once it runs; the span is as long as ``times`` of them
    queued = together([h2d(gpu) for gpu in range(3)], [50e9] * 3)
    (series,) = queued
    longer = tuple(
        msgspec.structs.replace(
            visit,
            samples=msgspec.structs.replace(
                visit.samples, span=tuple(times * span for span in visit.samples.span)
            ),
        )
        for visit in series.visits
        if visit.samples
    )
    (row,) = answered([Series(series.workload, longer)]).tables[0].rows
    assert row.cells[1].mark == ("no" if times == 1 else "yes")
    slowest, _, result = row.cells[4].text.partition(", ")
    assert float(slowest[1:]) == pytest.approx(times, rel=0.02)
    assert result == waiting
    assert float(row.cells[5].text[1:]) == pytest.approx(1, abs=0.02)


def test_only_those_that_are_slowed_share_it() -> None:
    rates = [25e9, 25e9, 50e9, 50e9]
    (finding,) = answered(together([h2d(gpu) for gpu in range(4)], rates)).findings
    assert "2 of 4 transfers share" in finding.text
    assert [device.place for device in finding.devices] == ["gpu:0", "gpu:1"]
    assert finding.exhibits[0].value == pytest.approx(50e9, rel=0.02)


def test_what_those_that_share_have_in_common_is_reported() -> None:
    rates = [25e9, 25e9, 50e9, 50e9]
    together_on_two_nodes = together([h2d(gpu) for gpu in range(4)], rates)
    seen = subject(host_links(4), together_on_two_nodes, machine=machine(4, 2))
    (finding,) = answer(seen).findings
    assert finding.text.endswith("; they are the GPUs of numa:0")
    assert "--workload" not in finding.remedy
    eight = together([h2d(gpu) for gpu in range(8)], [25e9] * 4 + [50e9] * 4)
    seen = subject(host_links(8), eight, machine=machine(8), localities=synthetic.records(5))
    (finding,) = answer(seen).findings
    assert finding.text.endswith("; they are the GPUs of one hidden side")
    assert f"--workload '{h2d(0)}; {h2d(1)}'" in finding.remedy


def test_groups_that_are_slowed_differently_are_kept_apart() -> None:
    rates = [20e9, 20e9, 40e9, 40e9]
    (finding,) = answered(together([h2d(gpu) for gpu in range(4)], rates)).findings
    assert [device.place for device in finding.devices] == ["gpu:0", "gpu:1"]
    assert "1 other group slowed less" in finding.text
    assert re.search(r": together [\d.]+ GB/s \(.*\) of 200 GB/s alone; 2 of 4 ", finding.text)


def test_ten_percent_are_a_finding_and_less_is_in_the_table() -> None:
    def found(slower: float) -> Answer:
        return answered(together([h2d(gpu) for gpu in range(4)], [50e9 / slower] * 4))

    (finding,) = found(1.15).findings
    assert finding.effect == pytest.approx(0.13, abs=0.01)
    assert found(1.05).findings == ()
    assert found(1.05).tables[0].rows[0].cells[1].mark == "yes"


def test_kernels_that_slow_one_another_where_engines_do_not_share_no_link() -> None:
    by_sm = [h2d(gpu).replace("copy-engine", "sm") for gpu in range(4)]
    alone = [curve(path, postal(5e-6, 50e9), LARGE) for path in by_sm]
    kernels = together(by_sm, [40e9] * 4)
    (finding,) = answered(*alone, kernels).findings
    assert "by sm" in finding.text
    engines = together([h2d(gpu) for gpu in range(4)], [50e9] * 4)
    assert answered(*alone, kernels, engines).findings == ()


def test_being_slower_together_than_one_alone_is_odd() -> None:
    (finding,) = answered(together([h2d(gpu) for gpu in range(4)], [5e9] * 4)).findings
    assert finding.severity == "warning"


def test_one_shared_buffer_is_distinguished_from_a_shared_link() -> None:
    paths = [d2h(gpu) for gpu in range(4)]
    found = answered(together(paths, [50e9] * 4), together(paths, [0.1e9] * 4, shared=True))
    (finding,) = found.findings
    assert finding.severity == "warning"
    assert "one buffer" in finding.text
    assert finding.remedy == "give each transfer a buffer of its own"


def test_a_star_shares_its_one_gpu_by_nature() -> None:
    star = [f"device@gpu:0 -> device@gpu:{gpu} by copy-engine" for gpu in (1, 2, 3)]
    found = answered(peer_links(4), together(star, [130e9] * 3))
    assert found.findings == ()
    assert found.tables[0].rows[0].cells[1].mark == "yes"


def test_both_ways_of_a_link_may_cost_one_another() -> None:
    pairs = [together([h2d(gpu), d2h(gpu)], [44e9, 44e9]) for gpu in range(4)]
    (finding,) = answered(*pairs).findings
    assert (finding.id, finding.severity) == ("duplex-loss", "info")
    assert finding.effect == pytest.approx(0.12, abs=0.01)
    assert "88% of the sum" in finding.text
    assert "all 4 paths" in finding.text


def test_the_answer_has_the_share_of_both_directions_without_a_finding() -> None:
    pairs = [together([h2d(gpu), d2h(gpu)], [46e9, 46e9]) for gpu in range(4)]
    found = answered(*pairs)
    assert found.findings == ()
    assert re.search(
        r"4 of 4 bidirectional paths\. Both directions at once reach 92% of the sum of each alone "
        r"for pinned <-> GPU by copy-engine.*, 9[12]\.\d( to 92\.\d)? GB/s\.$",
        found.summary,
    )
    alone = answered(together([h2d(gpu) for gpu in range(4)], [50e9] * 4))
    assert "both directions" not in alone.summary


def test_a_link_that_is_taken_in_turns_is_odd_and_so_is_one_that_loses_alone() -> None:
    halves = [together([h2d(gpu), d2h(gpu)], [25e9, 25e9]) for gpu in range(4)]
    assert answered(*halves).findings[0].severity == "warning"
    uneven = [together([h2d(gpu), d2h(gpu)], [44e9 if gpu == 2 else 50e9] * 2) for gpu in range(4)]
    (finding,) = answered(*uneven).findings
    assert finding.severity == "warning"
    assert [device.place for device in finding.devices] == ["gpu:2"]


def test_noise_is_no_contention() -> None:
    """Blocks of what is alone scatter by 5 %, by which those together happen to be slower."""
    noisy = host_links(4, between=0.05)
    found = answer(
        subject(noisy, together([h2d(gpu) for gpu in range(4)], [48e9] * 4), machine=machine(4))
    )
    assert found.findings == ()
    assert found.unanswered[0].startswith("a loss of this size could have been missed")


def test_a_size_that_was_not_measured_alone_is_taken_from_the_nearest() -> None:
    alone = [curve(h2d(gpu), postal(0, 50e9), LARGE[:1]) for gpu in range(2)]
    found = answer(subject(*alone, together([h2d(0), h2d(1)], [30e9] * 2), machine=machine(2)))
    assert found.findings[0].effect == pytest.approx(0.4, abs=0.02)


def test_what_was_never_measured_alone_cannot_be_known() -> None:
    found = answer(subject(together([h2d(0), h2d(1)], [30e9] * 2), machine=machine(2)))
    assert (found.findings, found.tables) == ((), ())
    assert "not all of their transfers were measured alone" in found.unanswered[0]


def test_there_may_be_nothing_to_show() -> None:
    assert answered().summary == "Not determined: no transfers were measured together."


def test_pairs_show_which_transfers_share_something_where_all_at_once_does_not() -> None:
    """Two switches, each with two GPUs: all four are slowed by as much."""
    everything = together([h2d(gpu) for gpu in range(4)], [25e9] * 4)
    pairs = [
        together([h2d(a), h2d(b)], [25e9 if a // 2 == b // 2 else 50e9] * 2)
        for a in range(4)
        for b in range(a + 1, 4)
    ]
    found = answered(everything, *pairs).findings
    assert sorted([device.place for device in each.devices] for each in found) == [
        ["gpu:0", "gpu:1"],
        ["gpu:2", "gpu:3"],
    ]


def test_pairs_that_hang_together_are_one_group() -> None:
    pairs = [together([h2d(a), h2d(a + 1)], [30e9] * 2) for a in range(3)]
    (finding,) = answered(*pairs).findings
    assert finding.text.startswith("4 transfers share a bottleneck: 3 pairs")
    assert finding.exhibits[0].value == pytest.approx(60e9, rel=0.02)


@pytest.mark.parametrize(("rate", "found"), [(30e9, True), (45e9, False)])
def test_of_other_tools_summaries_only_what_is_an_outlier_is_reported(
    rate: float, found: bool
) -> None:
    summaries = [
        _summarised(series)
        for series in [
            *host_links(4, sizes=(SIZE,)),
            *together([h2d(n) for n in range(4)], [rate] * 4),
        ]
    ]
    result = answer(subject(summaries, machine=machine(4)))
    assert [finding.id for finding in result.findings] == ["shared-bottleneck"] * found
    assert [finding.interval for finding in result.findings] == [None] * found
    assert result.unanswered[0].startswith("measured in one process")


def _summarised(series: Series) -> Series:
    """One number of another tool."""
    visit = series.visits[0]
    samples = msgspec.structs.replace(
        visit.samples,
        **{
            name: getattr(visit.samples, name)[:1]
            for name in ("span", "host", "skew", "repetitions", "transfers")
        },
        flags=(4,),
    )
    return Series(series.workload, (msgspec.structs.replace(visit, samples=samples),))
