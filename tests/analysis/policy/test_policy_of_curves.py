"""Policies of planted curves: which method, from which size, and what the noise decides."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import profiles
from tests.analysis.questions.subjects import FEW, Seconds, curve, postal, subject

from waywiser import __version__
from waywiser.analysis.policy.build import (
    FEWEST_PIECES,
    build_policy,
    decision_tables,
    fingerprint,
    why_not_written,
)
from waywiser.analysis.policy.decision_table import DecisionTable, Method
from waywiser.analysis.policy.errors import PolicyError
from waywiser.analysis.policy.file import decoded
from waywiser.analysis.policy.table import MethodCosts, Policy
from waywiser.analysis.policy.texts import costs_text
from waywiser.machine.machine import Machine
from waywiser.profile import Run
from waywiser.render.parts import Section, Words
from waywiser.render.views.policy import policy_parts
from waywiser.stats.method_choice import Timed, choices, winner
from waywiser.stats.order import Interval
from waywiser.words import TimingMode, Workload
from waywiser.words.records import Series

PLAIN = "pageable@numa:0 -> device@gpu:0 by copy-engine"
STAGED = "pageable@numa:0 -> device@gpu:0 by staged"
RELAY = "pageable@numa:0 -> device@gpu:0 by relay[relays=1]"
SLOW, FAST = postal(5e-6, 8e9), postal(60e-6, 25e9)
CROSSING = 647_000
"""Bytes at which the two take the same time."""


def table_of(*curves: list[Series], machine: Machine | None = None) -> DecisionTable:
    found = decision_tables([subject(*curves, machine=machine)])
    return next(each for each in found if each.count == 1 and not each.kind.peers_idle)


def names(table: DecisionTable) -> list[str]:
    return [str(table.methods[each.chosen]) for each in table.decisions]


def test_the_boundary_is_where_the_curves_cross() -> None:
    policy = build_policy([subject(curve(PLAIN, SLOW), curve(STAGED, FAST))])
    (found,) = policy.classes
    assert (found.source, found.destination, found.relation) == ("pageable", "device", "")
    methods = [row.executor for row in found.rows]
    first = next(row for row in found.rows if row.executor == "staged")
    assert methods == sorted(methods)
    assert CROSSING * 0.9 < first.from_bytes < CROSSING * 1.1
    assert first.next is not None and first.next.executor == "copy-engine"
    assert first.next.margin > 0.1
    assert first.costs.threads > 0 and first.costs.pinned_bytes > 0


def test_a_method_that_is_faster_by_the_noise_does_not_replace_the_simpler_one() -> None:
    table = table_of(curve(PLAIN, SLOW), curve(STAGED, lambda size: 0.98 * SLOW(size)))
    assert set(names(table)) == {"copy-engine"}
    assert {each.why for each in table.decisions} <= {"simpler", "faster"}


def test_much_noise_needs_much_difference() -> None:
    faster: Seconds = lambda size: SLOW(size) / 1.08  # noqa: E731
    quiet = table_of(curve(PLAIN, SLOW, blocks=4), curve(STAGED, faster, blocks=4))
    noisy = table_of(
        curve(PLAIN, SLOW, blocks=4, between=0.12), curve(STAGED, faster, blocks=4, between=0.12)
    )
    assert set(names(quiet)) == {"staged"}
    assert names(noisy).count("copy-engine") > 0.9 * len(names(noisy))


def test_what_noise_alone_keeps_is_marked_with_the_command_that_decides() -> None:
    faster: Seconds = lambda size: SLOW(size) / 1.15  # noqa: E731
    quiet = curve(PLAIN, SLOW, blocks=4), curve(STAGED, faster, blocks=4)
    noisy = (
        curve(PLAIN, SLOW, blocks=4, between=0.25),
        curve(STAGED, faster, blocks=4, between=0.25),
    )
    found = decision_tables([subject(*noisy)])
    (table,) = found
    assert "copy-engine took up to" in table.hidden and "longer than staged" in table.hidden
    assert "--only 'pageable@numa:0 -> device@gpu:0*'" in table.remedy
    marked = [each for each in table.decisions if each.hidden is not None]
    assert marked and {table.methods[each.chosen].executor for each in marked} == {"copy-engine"}
    policy = build_policy([subject(*noisy)])
    shown = "\n".join(
        block.text
        for section in policy_parts(policy, found)
        if isinstance(section, Section)
        for block in section.blocks
        if isinstance(block, Words)
    )
    assert shown.count("so that the simpler method is kept") == 1
    assert table.hidden in shown and table.remedy in shown
    for curves in (quiet, (curve(PLAIN, SLOW), curve(STAGED, SLOW))):
        assert not any(each.hidden for each in decision_tables([subject(*curves)]))


def test_what_is_measured_at_few_sizes_is_compared_between_them() -> None:
    table = table_of(curve(PLAIN, SLOW, FEW), curve(STAGED, FAST, (2**22, 2**26)))
    at = next(each for each in table.decisions if each.bytes == 2**22)
    plain = at.times[0]
    assert plain is not None and plain.interpolated
    assert abs(plain.seconds / SLOW(2**22) - 1) < 0.05
    assert str(table.methods[at.chosen]) == "staged"


def test_a_method_that_is_best_only_between_two_sizes_is_used_there() -> None:
    """The ends have other methods, and the sizes between were not measured."""
    ends = (2**14, 2**22)
    curves = (
        curve(PLAIN, postal(2e-6, 4e9), ends),
        curve(f"{STAGED}[threads=4]", postal(30e-6, 20e9), ends),
        curve(f"{STAGED}[threads=8]", postal(60e-6, 40e9), ends),
    )
    table = table_of(*curves)
    used = {each.bytes: str(table.methods[each.chosen]) for each in table.decisions}
    assert used[2**14] == "copy-engine"
    assert used[2**22] == "staged[threads=8]"
    between = [size for size, method in used.items() if method == "staged[threads=4]"]
    assert between
    times = next(each.times for each in table.decisions if each.bytes == between[0])
    assert all(each is None or each.interpolated for each in times)


def test_between_two_sizes_with_one_method_nothing_is_decided() -> None:
    table = table_of(curve(PLAIN, SLOW, (2**12, 2**22)), curve(STAGED, SLOW, (2**12, 2**22)))
    assert [each.bytes for each in table.decisions] == [2**12, 2**22]


def test_methods_that_need_idle_peers_are_in_a_class_of_their_own() -> None:
    curves = curve(PLAIN, SLOW), curve(STAGED, FAST), curve(RELAY, postal(60e-6, 50e9))
    policy = build_policy([subject(*curves)])
    usual = policy.class_of("pageable", "device")
    idle = policy.class_of("pageable", "device", peers_idle=True)
    assert usual is not None and idle is not None
    assert {row.executor for row in usual.rows} == {"copy-engine", "staged"}
    used = idle.rows[-1]
    assert (used.executor, used.settings, used.costs.relays) == ("relay", {"relays": "1"}, 1)


def test_settings_that_the_library_has_not_are_no_methods() -> None:
    table = table_of(
        curve(PLAIN, SLOW),
        curve(f"{PLAIN}[api=sync]", postal(1e-6, 90e9)),
        curve("pageable[pages=huge]@numa:0 -> device@gpu:0 by copy-engine", postal(1e-6, 90e9)),
    )
    assert table.methods == (Method("copy-engine", {}),)


@pytest.mark.parametrize(
    "setting",
    ["chunk=1000", "chunk=4100", "chunk=134217728", "slots=17", "slots=0", "threads=0",
     "threads=all"],
)  # fmt: skip
def test_settings_beyond_the_bounds_of_the_library_are_no_methods(setting: str) -> None:
    table = table_of(curve(PLAIN, SLOW), curve(f"{STAGED}[{setting}]", FAST))
    assert table.methods == (Method("copy-engine", {}),)


def test_a_slower_gpu_decides_and_is_named() -> None:
    def both(gpu: int, times: float) -> list[list[Series]]:
        return [
            curve(text.replace("gpu:0", f"gpu:{gpu}"), lambda n, f=f: times * f(n))  # type: ignore[misc]
            for text, f in ((PLAIN, SLOW), (STAGED, FAST))
        ]

    equal = table_of(*both(0, 1.0), *both(1, 1.0))
    assert equal.paths == ("numa:0 -> gpu:0", "numa:0 -> gpu:1")
    assert not equal.notes
    table = table_of(*both(0, 1.0), *both(1, 1.2))
    assert table.paths[0] == "numa:0 -> gpu:1"
    said = "numa:0 -> gpu:1 has 17 % less bandwidth than numa:0 -> gpu:0: the times of numa:0 -> "
    assert table.notes[0] == f"{said}gpu:1 are used"


def test_lists_have_rows_by_count_and_piece() -> None:
    loop = "pinned@numa:0 -> device@gpu:0 by copy-engine as list[piece=4096]"
    kernel = "pinned@numa:0 -> device@gpu:0 by sm as list[piece=4096]"
    sizes = (2**20, 2**24)
    policy = build_policy([
        subject(
            curve(loop, postal(1e-3, 8e9), sizes), curve(kernel, postal(5e-6, 40e9), sizes)
        )
    ])  # fmt: skip
    found = policy.class_of("pinned", "device")
    assert found is not None
    assert {(row.count, row.bytes, row.executor) for row in found.rows} == {
        (count, 4096, "sm") for count in FEWEST_PIECES
    }
    for pieces, start, known in ((3, 2, 2), (7, 4, 5), (300, 256, 256), (5000, 4096, 4096)):
        row = found.row(2048, pieces, 64)
        assert row is not None and (row.count, row.pieces) == (start, known)
    assert found.row(4096, 1, 64) is None


def test_short_lists_are_decided_between_one_piece_and_the_shortest_list() -> None:
    """A kernel with a high cost of its own and none of each piece is for many pieces."""
    loop = "pinned@numa:0 -> device@gpu:0 by copy-engine as list[piece=4096]"
    kernel = "pinned@numa:0 -> device@gpu:0 by sm as list[piece=4096]"
    one, several = (4096, 8192), (2**20, 2**24)
    policy = build_policy([
        subject(
            curve(PINNED, lambda n: 1e-6 * n / 4096, one),
            curve(loop, lambda n: 1e-6 * n / 4096, several),
            curve(PINNED.replace("copy-engine", "sm"), lambda n: 10e-6, one),
            curve(kernel, lambda n: 10e-6 + n / 4e12, several),
        )
    ])  # fmt: skip
    found = policy.class_of("pinned", "device")
    assert found is not None
    chosen = {n: row.executor for n in (2, 4, 32, 256) if (row := found.row(4096, n, 64))}
    assert chosen == {2: "copy-engine", 4: "copy-engine", 32: "sm", 256: "sm"}


def test_the_slowdown_of_a_small_copy_is_a_cost() -> None:
    small, large = 4096, 2**28
    path = "pinned@numa:0 -> device@gpu:0 by copy-engine"
    rng = random.Random(1)
    both = Workload.parse(f"{path} of {small}; {path} of {large}")
    taken = profiles.samples(rng, 3e-3, transfers=2)
    beside = Series(both, (profiles.visit(both, 0, taken),))
    table = table_of(curve(path, postal(5e-6, 50e9), (small, large)), [beside])
    factor = table.decisions[-1].time.costs.small_copy
    assert factor is not None and factor > 10
    alone = table_of(curve(path, postal(5e-6, 50e9), (small, large)))
    assert alone.decisions[-1].time.costs.small_copy is None


PINNED = "pinned@numa:0 -> device@gpu:0 by copy-engine"
PRODUCT = "device@gpu:0 -> device@gpu:0 by matrix-product"
STARTED = 2e-6
"""What profiles add to a time from call to completion."""


def beside(text: str, large: float, bystander: float, mode: TimingMode = "device") -> list[Series]:
    """A large copy and its bystander with the seconds of each."""
    both = Workload.parse(text)
    taken = profiles.samples(random.Random(1), large, transfers=2, noise=1e-4)
    taken = msgspec.structs.replace(taken, transfers=((large, bystander),) * len(taken))
    visit = msgspec.structs.replace(profiles.visit(both, 0, taken), mode=mode)
    return [Series(both, (visit,))]


def costs_of(*curves: list[Series]) -> MethodCosts:
    large = curve(PINNED, postal(5e-6, 50e9), (2**20, 2**28))
    return table_of(large, *curves).decisions[-1].time.costs


def test_the_slowdowns_beside_one_copy_are_none_beside_a_list() -> None:
    row = f"{PINNED} as list[piece=28672]"
    single = curve(PINNED, postal(5e-6, 50e9), (2**20, 2**28))
    lists = curve(row, postal(1e-3, 10e9), (2**20, 2**24), mode="host")
    product = beside(f"{PINNED} of 256MiB; {PRODUCT} of 64MiB", 5e-3, 1.1e-3)
    alone = curve(PRODUCT, lambda _: 1e-3, (2**26,))
    one, *several = decision_tables([subject(single, lists, product, alone)])
    assert one.decisions[-1].time.costs.matrix_product == pytest.approx(1.1, rel=0.01)
    costs = [each.time.costs for table in several for each in table.decisions if table.count > 1]
    assert costs and all(each.matrix_product is None for each in costs)


def test_the_slowdowns_beside_a_list_are_costs_of_lists() -> None:
    loop = f"{PINNED} as list[piece=28672]"
    kernel = loop.replace("copy-engine", "sm")
    sizes = (2**20, 2**24)
    product = beside(f"{kernel} of 268427264; {PRODUCT} of 64MiB", 5e-3, 1.1e-2)
    subjects = [
        subject(
            curve(PINNED, postal(5e-6, 50e9), sizes),
            curve(loop, postal(1e-3, 10e9), sizes, mode="host"),
            curve(kernel, postal(1e-5, 40e9), sizes, mode="host"),
            curve(PRODUCT, lambda _: 1e-3, (2**26,)),
            product,
        )
    ]
    one, *several = decision_tables(subjects)
    assert one.decisions[-1].time.costs.matrix_product is None
    chosen = [each for table in several if table.count > 1 for each in table.decisions]
    found = [each.time.costs.matrix_product for each in chosen]
    assert found and found == pytest.approx([11.0] * len(found), rel=0.01)


def test_the_slowdowns_of_a_matrix_product_and_of_small_copies_are_costs() -> None:
    product = beside(f"{PINNED} of 256MiB; {PRODUCT} of 64MiB", 5e-3, 1.1e-3)
    alone = curve(PRODUCT, lambda _: 1e-3, (2**26,))
    row = f"{PINNED} as list[piece=28672]"
    small = beside(f"{PINNED} of 256MiB; {row} of 16773120", 5e-3, 3e-3, "host")
    row_alone = curve(row, lambda _: 1.5e-3, (16773120,), mode="host")
    found = costs_of(product, alone, small, row_alone)
    assert found.matrix_product == pytest.approx(1.1, rel=0.01)
    assert found.small_copy == pytest.approx(2.0, rel=0.01)
    rounded = MethodCosts(small_copy=2.0, matrix_product=1.104)
    said = "small copies take 2 × the time, matrix products take 1.1 × the time"
    assert costs_text(rounded) == said
    policy = build_policy([subject(
        curve(PINNED, postal(5e-6, 50e9), (2**20, 2**28)), product, alone, small, row_alone
    )])  # fmt: skip
    stored = decoded(msgspec.json.encode(policy)).class_of("pinned", "device")
    assert stored is not None and stored.rows[-1].costs.matrix_product is not None
    assert costs_of(product).matrix_product is None  # nothing to compare with
    assert costs_of(alone).matrix_product is None


def test_a_bystander_that_the_host_times_is_compared_by_the_same_clock() -> None:
    product = beside(f"{PINNED} of 256MiB; {PRODUCT} of 64MiB", 5e-3, 1e-3, "host")
    alone = curve(PRODUCT, lambda _: 10 * STARTED, (2**26,))
    found = costs_of(product, alone).matrix_product
    assert found == pytest.approx(1e-3 / (11 * STARTED), rel=0.05)


def test_a_bystander_that_lasts_longer_than_the_copy_shows_no_slowdown() -> None:
    product = beside(f"{PINNED} of 256MiB; {PRODUCT} of 64MiB", 5e-3, 7e-3)
    assert costs_of(product, curve(PRODUCT, lambda _: 6e-3, (2**26,))).matrix_product is None
    assert costs_of(product, curve(PRODUCT, lambda _: 4e-3, (2**26,))).matrix_product is not None


def test_a_bystander_is_no_method_of_a_copy() -> None:
    copies = curve("device@gpu:0 -> device@gpu:0 by copy-engine", postal(5e-6, 1e12))
    loads = curve(PRODUCT, postal(5e-6, 2e12))
    policy = build_policy([subject(copies, loads)])
    within = policy.class_of("device", "device", relation="same")
    assert within is not None
    assert {row.executor for row in within.rows} == {"copy-engine"}


def test_profiles_of_one_machine_are_pooled_and_of_two_are_not() -> None:
    both = [
        subject(curve(PLAIN, SLOW, seed=n), curve(STAGED, FAST, seed=n)) for n in (1, 2)
    ]  # fmt: skip
    table = decision_tables(both)[0]
    assert table.decisions[0].time.processes == 4
    other = msgspec.structs.replace(profiles.machine(), cpu_model="Another CPU")
    with pytest.raises(PolicyError, match="another machine than node7, by cpu"):
        decision_tables([both[0], subject(curve(PLAIN, SLOW), machine=other)])


def executors(policy: Policy, *cpus: int, size: int = 2**26) -> list[str]:
    """What the only class does with each number of CPUs; empty for the defaults."""
    (found,) = policy.classes
    rows = (found.row(size, 1, n) for n in cpus)
    return [row.executor if row is not None else "" for row in rows]


def test_profiles_with_other_cpus_make_other_rows() -> None:
    few = profiles.machine()
    node = msgspec.structs.replace(few.numa[0], cpus=(0, 1))
    less = msgspec.structs.replace(few, numa=(node,))
    policy = build_policy([
        subject(curve(PLAIN, SLOW), curve(STAGED, FAST)),
        subject(curve(PLAIN, SLOW), curve(STAGED, lambda n: 2 * SLOW(n)), machine=less),
    ])  # fmt: skip
    assert executors(policy, 1, 2, 3, 4, 9) == ["copy-engine"] * 3 + ["staged"] * 2


def test_methods_without_threads_hold_for_any_number_of_cpus() -> None:
    slower = build_policy([subject(curve(PLAIN, SLOW), curve(STAGED, lambda n: 2 * SLOW(n)))])
    assert {row.threads for row in slower.classes[0].rows} == {1}
    assert executors(slower, 1, 4) == ["copy-engine", "copy-engine"]
    first = slower.classes[0].rows[0]
    assert first.next is not None and first.next.executor == "staged"


def test_fewer_cpus_use_what_was_measured_with_as_many_threads() -> None:
    policy = build_policy([
        subject(
            curve(PLAIN, SLOW),
            curve(STAGED, FAST),
            curve(f"{STAGED}[threads=2]", postal(60e-6, 16e9)),
        )
    ])  # fmt: skip
    (found,) = policy.classes
    chosen = [found.row(2**26, 1, cpus) for cpus in (1, 2, 3, 4)]
    assert [row and (row.executor, row.settings.get("threads")) for row in chosen] == [
        None, ("staged", "2"), ("staged", "2"), ("staged", None)
    ]  # fmt: skip


def test_fewer_cpus_keep_the_defaults_if_the_best_executor_was_not_measured_with_them() -> None:
    """The library's default may have as many threads as there are CPUs, which nobody measured."""
    policy = build_policy([subject(curve(PLAIN, SLOW), curve(STAGED, FAST))])
    assert executors(policy, 1, 3, 4) == ["", "", "staged"]


def test_a_method_that_was_compared_with_nothing_has_no_row() -> None:
    kept = curve("pinned@numa:0 -> device@gpu:0 by copy-engine", SLOW)
    policy = build_policy([subject(curve(PLAIN, SLOW), kept)])
    assert [(each.source, each.destination) for each in policy.classes] == [("pinned", "device")]
    assert why_not_written(table_of(curve(PLAIN, SLOW))) == (
        "only copy-engine was measured, and not staged"
    )
    staged = (curve(f"{STAGED}[slots={n}]", FAST) for n in (2, 3))
    assert "one number of threads" in why_not_written(table_of(*staged))
    threads = (curve(f"{STAGED}[threads={n}]", postal(60e-6, n * 8e9)) for n in (1, 2))
    assert why_not_written(table_of(*threads)) == ""


def test_rows_name_all_settings_if_this_version_measured_them() -> None:
    made = subject(curve(PLAIN, SLOW), curve(f"{STAGED}[slots=2]", FAST))

    def measured_by(version: str) -> dict[str, str]:
        run = Run(0, "2026-11-23T00:00:00+00:00", None, version, ())
        overview = msgspec.structs.replace(made.overview, runs=(run,))
        policy = build_policy([msgspec.structs.replace(made, seen=overview)])
        return policy.classes[0].rows[-1].settings

    assert measured_by("0.0.1") == {"slots": "2"}
    settings = measured_by(__version__)
    assert settings.keys() == {"chunk", "slots", "threads"}
    assert (settings["slots"], settings["threads"]) == ("2", "4")


def test_lists_of_pageable_memory_have_no_rows() -> None:
    loop = "pageable@numa:0 -> device@gpu:0 by copy-engine as list[piece=4096]"
    policy = build_policy([
        subject(curve(PLAIN, SLOW), curve(STAGED, FAST), curve(loop, SLOW, (2**20, 2**24)))
    ])  # fmt: skip
    assert {row.count for _, row in policy} == {1}


def test_the_fingerprint_names_no_host() -> None:
    found = fingerprint(profiles.machine())
    assert found == fingerprint(msgspec.structs.replace(profiles.machine(), hostname="other"))
    assert (found.gpu, found.gpu_link, found.driver) == ("Test GPU", "PCIe 5 x16", 580)
    assert found.hypervisor == "none"
    named = msgspec.structs.replace(profiles.machine(), virtual="KVM")
    assert fingerprint(named).differences(found) == ("hypervisor",)


def test_a_profile_without_methods_has_no_policy() -> None:
    with pytest.raises(PolicyError, match="no method of the transfer library was measured"):
        build_policy([subject(curve("managed@numa:0 -> managed@gpu:0 by prefetch", SLOW))])


@given(
    st.lists(
        st.tuples(st.floats(1e-6, 1e-3), st.floats(1e9, 1e11), st.integers(0, 20)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from([1, 2, 4]),
    st.sampled_from([0.001, 0.03, 0.3]),
)
@settings(max_examples=25, deadline=None)
def test_any_profile_makes_a_valid_policy(
    methods: list[tuple[float, float, int]], blocks: int, between: float
) -> None:
    texts = [PLAIN, STAGED, f"{STAGED}[threads=2]", f"{STAGED}[chunk=1048576,slots=4]"]
    made = subject(*(
        curve(text, postal(latency, rate), FEW[: 10 - seed % 7], blocks=blocks, between=between,
              seed=seed)
        for text, (latency, rate, seed) in zip(texts, methods, strict=False)
    ))  # fmt: skip
    policy = build_policy([made])
    assert decoded(policy.to_json()) == policy
    _require_valid(policy)
    for table in decision_tables([made]):
        for each in table.decisions:
            plain = each.times[table.plain] if table.plain is not None else None
            if plain is not None:
                first, second = (Timed(t.seconds, t.interval) for t in (plain, each.time))
                assert winner(first, second) != "first"


def _require_valid(policy: Policy) -> None:
    kinds = [each.kind for each in policy.classes]
    assert len(set(kinds)) == len(kinds)
    for found in policy.classes:
        keys = [(row.count, row.threads, row.from_bytes) for row in found.rows]
        assert keys == sorted(set(keys))
        for row in found.rows:
            assert row.low <= row.seconds <= row.high
            assert row.from_bytes <= row.bytes
            assert found.row(row.bytes, row.count, row.threads) == row
            assert found.row(row.from_bytes, row.count, row.threads) == row


def test_of_equally_good_methods_the_simplest_is_used() -> None:
    def timed(seconds: float) -> Timed:
        return Timed(seconds, Interval(seconds * 0.99, seconds * 1.01))

    def row(*seconds: float) -> list[Timed]:
        return [timed(each) for each in seconds]

    assert choices([row(1, 1, 1, 1), row(1, 1, 0.5, 0.5)]) == [0, 0, 1, 1]
    assert choices([row(1, 1, 1.02, 1), row(1, 1, 1, 1)]) == [0, 0, 0, 0]
    # a single size at which the simpler one would do is no reason to change twice
    assert choices([row(2, 2, 1, 2, 2), row(1, 1, 1, 1, 1)]) == [1, 1, 1, 1, 1]
    # nor is it to lose more than a little
    assert choices([row(1, 1, 1), row(2, 0.5, 2)]) == [0, 1, 0]
