"""What a person reads about dips and drops."""

from __future__ import annotations

from itertools import permutations

import msgspec
import pytest
from tests import profiles
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import SIZES, Seconds, curve, postal, subject

from waywiser.analysis.questions.irregularities import answer
from waywiser.machine.machine import Cache
from waywiser.words import format_bytes
from waywiser.words.titles import LONGEST_TITLE

H2D, D2H = profiles.H2D, profiles.D2H
HOST = "pageable@numa:0 -> pageable@numa:0 by cpu"
LOCAL = "device@gpu:0 -> device@gpu:0 by copy-engine"


def slower(seconds: Seconds, factor: float, *sizes: int) -> Seconds:
    return lambda size: seconds(size) * (factor if size in sizes else 1.0)


def falling(rate: float, to: float, above: int) -> Seconds:
    return lambda size: 2e-6 + size / (rate if size <= above else to)


def test_a_dip_is_named_with_its_sizes_and_what_to_do() -> None:
    said = answer(
        subject(curve(H2D, slower(postal(5e-6, 55e9), 1.1, 2**22)), curve(D2H, postal(5e-6, 54e9)))
    )
    (dip,) = said.findings
    assert (dip.id, dip.severity) == ("dip", "warning")
    assert "by copy-engine takes 10% longer at 4 MiB than the sizes around suggest" in dip.text
    assert dip.effect == pytest.approx(0.1, abs=0.01)
    assert dip.interval is not None and dip.interval.low < 0.1 < dip.interval.high + 0.01
    assert "move pieces of 2 MiB" in dip.remedy and "--sizes 2MiB:8MiB:4" in dip.remedy
    assert [str(each) for each in dip.devices] == ["gpu:0 (0000:01:00.0, GPU-00000000)"]
    assert [each.series for each in dip.exhibits] == [f"{H2D} of {2**n}" for n in (21, 22, 23)]
    assert said.summary == "1 unexplained dip or drop in 2 curves."
    assert said.tables[0].rows[0].cells[0].series == H2D


def test_where_more_at_once_is_faster_that_is_the_advice() -> None:
    said = answer(subject(curve(H2D, slower(postal(5e-6, 55e9), 1.3, 2**12))))
    assert "combine transfers into 8 KiB or more" in said.findings[0].remedy


def test_equal_paths_with_the_same_dip_are_one_finding() -> None:
    paths = [f"pinned@numa:0 -> device@gpu:{n} by copy-engine" for n in range(2)]
    said = answer(subject(*(curve(path, slower(postal(5e-6, 55e9), 1.1, 2**22)) for path in paths)))
    (dip,) = said.findings
    assert "(on 2 of 2 equal paths)" in dip.text


def test_a_dip_that_an_equal_path_has_not_is_reported_as_such() -> None:
    paths = [f"pinned@numa:0 -> device@gpu:{n} by copy-engine" for n in range(2)]
    line = postal(5e-6, 55e9)
    said = answer(subject(curve(paths[0], line), curve(paths[1], slower(line, 1.1, 2**22))))
    (dip,) = said.findings
    assert "device@gpu:1" in dip.text and "(on 1 of 2 equal paths)" in dip.text


def test_the_cache_of_a_gpu_explains_its_peak() -> None:
    said = answer(subject(curve(LOCAL, falling(3e12, 2e12, 2**24), SIZES[:24])))
    (drop,) = said.findings
    assert (drop.id, drop.severity) == ("drop-by-cache", "info")
    assert "do not fit into the last cache of the GPU" in drop.text
    assert said.summary.startswith("No unexplained dip or drop")


def test_a_cache_of_the_host_explains_a_drop_at_its_size_and_no_other() -> None:
    machine = msgspec.structs.replace(
        profiles.machine(), caches=(Cache(1, 2**15, (0,)), Cache(3, 2**25, (0, 1, 2, 3)))
    )
    near = answer(subject(curve(HOST, falling(40e9, 15e9, 2**24)), machine=machine))
    assert "do not fit into the L3 cache of 32 MiB" in near.findings[0].text
    far = answer(subject(curve(HOST, falling(40e9, 15e9, 2**28)), machine=machine))
    assert far.findings[0].id == "drop" and "falls from" in far.findings[0].text
    assert "in pieces of" in far.findings[0].remedy
    assert "--sizes 256MiB:1GiB:4" in far.findings[0].remedy


def test_no_cache_explains_a_drop_far_above_its_capacity() -> None:
    machine = msgspec.structs.replace(profiles.machine(), caches=(Cache(3, 2**23, (0,)),))

    def seconds(size: int) -> float:
        return 2e-6 + size / (18e9 if size <= 2**22 else 17e9 if size <= 2**28 else 8e9)

    found = answer(subject(curve(HOST, seconds), machine=machine)).findings[0]
    assert found.id == "drop" and "cache" not in found.text


def test_a_drop_at_sizes_that_the_last_cache_holds_is_explained_and_no_advice() -> None:
    """The last cache of a virtual machine is shared with others."""
    caches = (Cache(2, 2**21, (0,)), Cache(3, 300 * 2**20, (0, 1)))
    machine = msgspec.structs.replace(profiles.machine(), caches=caches)
    curves = curve(HOST, falling(40e9, 5e9, 2**25), [2**n for n in range(14, 28)])
    (found,) = answer(subject(curves, machine=machine)).findings
    assert found.id == "drop-by-cache" and found.severity == "info" and not found.remedy


@pytest.mark.parametrize(
    ("above", "beyond"), [(2**20, "the L3 cache of 256 MiB"), (2**27, "memory")]
)
def test_after_a_cache_comes_the_next_and_memory_after_the_last(above: int, beyond: str) -> None:
    caches = (Cache(2, 2**21, (0,)), Cache(3, 2**28, (0, 1)))
    machine = msgspec.structs.replace(profiles.machine(), caches=caches)
    said = answer(subject(curve(HOST, falling(40e9, 15e9, above)), machine=machine))
    assert f", and {beyond} is measured" in said.findings[0].text


def test_a_drop_above_all_usual_sizes_is_looked_at_where_it_is() -> None:
    sizes = [2**power for power in range(3, 34)]
    said = answer(subject(curve(HOST, falling(40e9, 15e9, 2**31), sizes=sizes)))
    assert "--sizes 2GiB:8GiB:4" in said.findings[0].remedy


def test_no_cache_explains_a_dip_that_recovers() -> None:
    machine = msgspec.structs.replace(profiles.machine(), caches=(Cache(3, 2**22, (0,)),))
    dipped = slower(postal(2e-6, 15e9), 1.2, 2**22)
    said = answer(subject(curve(HOST, dipped), machine=machine))
    assert [each.id for each in said.findings] == ["dip"]


def test_what_a_single_block_shows_is_no_warning_and_no_advice() -> None:
    said = answer(subject(curve(H2D, slower(postal(5e-6, 55e9), 1.5, 2**22), blocks=1)))
    (dip,) = said.findings
    assert dip.severity == "info" and "seen in a single block only" in dip.text
    assert dip.remedy == "" and "one block shows it; measure again alone" in said.unanswered[0]
    assert any("with a single block" in each for each in said.unanswered)


def test_without_sizes_there_is_no_answer() -> None:
    said = answer(subject(curve(H2D, postal(5e-6, 55e9), (8, 2**20))))
    assert said.findings == () and said.tables == ()
    assert said.summary == "Not determined: no curve has enough sizes to find dips."
    assert said.unanswered == ("1 curve with fewer than 6 sizes, too few to find dips",)


def test_what_several_equal_paths_show_needs_no_second_block() -> None:
    machine = profiles.machine()
    gpus = tuple(
        msgspec.structs.replace(machine.gpus[0], index=n, uuid=f"GPU-{n}", peers=())
        for n in range(4)
    )
    machine = msgspec.structs.replace(machine, gpus=gpus)
    dipped = slower(postal(5e-6, 55e9), 1.5, 2**22)
    paths = [f"pinned@numa:0 -> device@gpu:{n} by copy-engine" for n in range(4)]
    said = answer(subject(*(curve(path, dipped, blocks=1) for path in paths), machine=machine))
    (dip,) = said.findings
    assert dip.severity == "warning" and "(on 4 of 4 equal paths)" in dip.text


@pytest.mark.parametrize("transfers", [2, 3, 7, 16, 40])
@pytest.mark.parametrize("power", [12, 15, 18, 22])
def test_sizes_of_several_transfers_are_those_of_one(transfers: int, power: int) -> None:
    """Nobody can avoid, or survey, what 40 messages add up to."""
    text = "; ".join([f"device@gpu:{n % 2} -> pinned@numa:0 by sm" for n in range(transfers)])
    dipped = slower(postal(5e-6, 55e9), 1.4, 2**power)
    (dip,) = answer(subject(curve(text, dipped))).findings
    size = format_bytes(2**power)
    assert f"at {transfers} × {size} than" in dip.text
    assert f"avoid {transfers} × {size} on this path" in dip.remedy
    around = (2 ** (power - 1), 2 ** (power + 1))
    low, high = (format_bytes(each).replace(" ", "") for each in around)
    assert f"--sizes {low}:{high}:4" in dip.remedy
    assert len(dip.title) <= LONGEST_TITLE


@pytest.mark.parametrize("gpus", [2, 3, 5, 8])
@pytest.mark.parametrize("power", [13, 20])
@pytest.mark.parametrize("depth", [1.2, 1.5, 2.0])
def test_one_cause_on_many_paths_is_one_finding(gpus: int, power: int, depth: float) -> None:
    """The pairs of GPUs are of several classes, of which each shows the same dip."""
    dipped = slower(postal(5e-6, 55e9), depth, 2**power)
    paths = [
        f"device@gpu:{a} -> device@gpu:{b} by copy-engine"
        for a, b in permutations(range(gpus), 2)
    ]  # fmt: skip
    said = answer(subject(*(curve(p, dipped) for p in paths), machine=machine(gpus, 2)))
    (dip,) = said.findings
    assert f"(on {len(paths)} of {len(paths)} " in dip.text
    assert said.summary == f"1 unexplained dip or drop in {len(paths)} curves."
    assert len(dip.below) < 1000 and "on these paths" in dip.remedy


def test_dips_of_other_executors_memories_or_sizes_are_other_causes() -> None:
    line = postal(5e-6, 55e9)
    said = answer(
        subject(
            curve(H2D, slower(line, 1.3, 2**14)),
            curve(H2D.replace("gpu:0", "gpu:1"), slower(line, 1.3, 2**22)),
            curve(H2D.replace("copy-engine", "sm"), slower(line, 1.3, 2**14)),
            curve(D2H, slower(line, 1.3, 2**14)),
        )
    )
    assert len(said.findings) == 4
