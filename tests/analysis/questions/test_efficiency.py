"""How good paths are, on machines whose truth is known."""

from __future__ import annotations

import msgspec
import pytest
from tests import profiles
from tests.analysis.questions.subjects import curve, postal, subject

from waywiser.analysis.questions.efficiency import answer
from waywiser.analysis.questions.fitted import rate_at, saturation, sustained
from waywiser.curves.answer import Answer, Sheet, SheetCell
from waywiser.machine.machine import Cache, Gpu, Machine
from waywiser.words.records import Series

H2D, D2H, PAGEABLE = profiles.H2D, profiles.D2H, profiles.PAGEABLE
SM = "pinned@numa:0 -> device@gpu:0 by sm"
LOCAL = "device@gpu:0 -> device@gpu:0 by copy-engine"


def four_gpus() -> Machine:
    """GPUs that nothing distinguishes."""
    machine = profiles.machine()
    first = machine.gpus[0]
    gpus = tuple(
        msgspec.structs.replace(first, index=n, uuid=f"GPU-{n}", pci=f"0000:0{n}:00.0", peers=())
        for n in range(4)
    )
    assert all(isinstance(gpu, Gpu) for gpu in gpus)
    return msgspec.structs.replace(machine, gpus=gpus)


def row(table: Sheet, name: str, column: int = 0) -> tuple[SheetCell, ...]:
    return next(each.cells for each in table.rows if each.cells[column].text == name)


@pytest.fixture(scope="module")
def found() -> Answer:
    return answer(
        subject(
            curve(H2D, postal(2.5e-6, 55e9)),
            curve(SM, postal(3e-6, 50e9)),
            curve(PAGEABLE, postal(6e-6, 12e9), mode="host"),
            curve(D2H, postal(2e-6, 30e9)),
        )
    )


def test_the_best_way_is_reported_with_its_share_and_where_it_saturates(found: Answer) -> None:
    best = next(each for each in found.findings if each.id == "best-method")
    assert best.severity == "info"
    assert "from numa:0 to gpu:0 is pinned -> device by copy-engine: 55" in best.text
    assert "87% of the bound of PCIe to gpu:0" in best.text
    assert "from 4 MiB on" in best.text  # 19 x 137 KB, the next power of two
    assert [each.place for each in best.devices] == ["numa:0", "gpu:0"]
    assert best.devices[1].uuid
    assert best.exhibits[1].series.startswith(SM)
    assert best.exhibits[0].value == pytest.approx(55e9, rel=0.02)


def test_a_link_that_carries_less_than_links_do_is_a_warning(found: Answer) -> None:
    low = next(each for each in found.findings if each.id == "low-share")
    assert low.severity == "warning" and found.findings[0] is low
    assert "from gpu:0 to numa:0" in low.text and "48%" in low.text
    assert low.effect == pytest.approx(0.52, abs=0.02)


def test_fits_have_intervals_and_half_peak_sizes(found: Answer) -> None:
    cells = [cell.text for cell in row(found.tables[0], H2D)]
    assert cells[1].startswith("2.5") and cells[1].endswith("µs")
    assert cells[2].startswith(("54.9", "55"))
    assert cells[3].startswith(("133 KiB", "134 KiB", "135 KiB"))
    assert cells[5] == "4 MiB" and cells[6] == ""
    assert "blocks and sizes" in found.tables[0].caption


def test_ways_are_percent_of_the_best_at_each_size(found: Answer) -> None:
    table = found.tables[1]
    best = row(table, "pinned -> device by copy-engine", 1)
    assert [cell.text for cell in best[2:7]] == ["100"] * 5
    pageable = [int(cell.text) for cell in row(table, "pageable -> device by copy-engine", 1)[2:7]]
    assert pageable == sorted(pageable, reverse=True)
    assert pageable[-1] == pytest.approx(100 * 12 / 55, abs=1)


def test_equal_paths_are_one_row_and_one_finding() -> None:
    paths = [f"pinned@numa:0 -> device@gpu:{n} by copy-engine" for n in range(4)]
    said = answer(subject(*(curve(path, postal(2e-6, 55e9)) for path in paths),
                          machine=four_gpus()))  # fmt: skip
    assert len(said.tables[0].rows) == 1
    assert said.tables[0].rows[0].cells[0].text == f"{paths[0]} and 3 equivalent"
    (finding,) = said.findings
    assert "All 4 such paths reach" in finding.text


def test_paths_that_differ_by_more_than_their_intervals_do_not_all_reach_one_figure() -> None:
    paths = [f"pinned@numa:0 -> device@gpu:{n} by copy-engine" for n in range(4)]
    rates = (55e9, 55e9, 54e9, 55e9)
    said = answer(subject(*(curve(path, postal(2e-6, rate))
                            for path, rate in zip(paths, rates, strict=True)),
                          machine=four_gpus()))  # fmt: skip
    assert "Of 4 such paths the slowest reaches 5" in said.findings[0].text


def test_a_cache_is_no_sustained_rate() -> None:
    def seconds(size: int) -> float:
        return 2e-6 + size / (4e12 if size <= 2**24 else 2e12)

    result = subject(curve(LOCAL, seconds))
    (each,) = result.curves
    assert sustained(each).rate == pytest.approx(2e12, rel=0.02)
    assert saturation(each) <= 2**24
    cells = [cell.text for cell in answer(result).tables[0].rows[0].cells]
    assert cells[3] == "other line from 32 MiB" and cells[6].endswith("at 16 MiB")


def test_rates_are_interpolated_between_near_sizes_alone() -> None:
    (each,) = subject(
        curve(H2D, postal(0.0, 50e9), (2**10, 2**14, 2**20), noise=0, between=0)
    ).curves
    assert rate_at(each, 2**12) == pytest.approx(50e9)
    assert rate_at(each, 2**10) == pytest.approx(50e9)
    assert (
        rate_at(each, 2**18) is None and rate_at(each, 2**24) is None and rate_at(each, 8) is None
    )


def test_a_profile_without_a_path_alone_has_no_answer() -> None:
    said = answer(subject(curve(f"{H2D}; {D2H}", postal(2e-6, 55e9))))
    assert said.findings == () and said.tables == ()
    assert said.summary == "No path of this profile was measured alone."


def test_of_one_size_no_advice_is_given_on_sizes() -> None:
    (best,) = answer(subject(curve(H2D, postal(2e-6, 55e9), sizes=[2**26]))).findings
    assert "64 MiB is the only size" in best.text and best.remedy == ""


def test_no_size_saturates_if_a_larger_one_is_slower_again() -> None:
    def seconds(size: int) -> float:
        return size / (30e9 if size == 2**22 else 55e9)

    (best,) = answer(subject(curve(H2D, seconds))).findings
    assert "at 4 MiB it falls to 30" in best.text and "on it is within" not in best.text
    assert best.remedy == ""


def test_one_method_alone_is_not_the_fastest() -> None:
    (best,) = answer(subject(curve(H2D, postal(2e-6, 55e9)))).findings
    assert best.text.startswith("The only method measured from numa:0 to gpu:0 is ")


def test_what_only_the_largest_size_reaches_is_said_so() -> None:
    said = answer(subject(curve(H2D, lambda size: 1e-6 + size**0.8 / 1e9)))
    assert "only its largest size, 1 GiB, comes within 5% of it" in said.findings[0].text
    assert said.findings[0].remedy == "", "a larger size may be needed"


HOST = "pageable@numa:0 -> pageable@numa:0 by cpu"
L3 = Cache(3, 32 * 2**20, (0, 1))


def within_host(*found: list[Series]) -> str:
    machine = msgspec.structs.replace(profiles.machine(), caches=(L3, Cache(2, 2**20, (0,))))
    said = answer(subject(*found, machine=machine))
    return next(each.text for each in said.findings if "within numa:0" in each.text)


def test_what_caches_can_hold_is_no_rate_of_host_memory() -> None:
    """64 MiB out of 32 MiB and back is memory's rate; 8 MiB by many threads is a cache's."""
    memory = curve(
        HOST,
        lambda size: size / (60e9 if size < 2**24 else 6e9),
        tuple(2**n for n in range(10, 27)),
    )
    cached = curve(f"{HOST}[threads=8]", lambda size: size / 290e9, (2**23,))
    result = within_host(memory, cached)
    assert "by cpu: 6.0" in result
    assert "that is at 64 MiB: data in the caches moves at up to 289.7 GB/s (8 MiB, " in result
    assert "by cpu[threads=8])" in result
    alone = within_host(memory)
    assert "that is at 64 MiB: data in the caches moves at up to 60 GB/s" in alone
    assert "caches can hold 8 MiB, and it does not show memory bandwidth" in within_host(cached)


def test_more_than_a_link_can_carry_is_flagged_where_it_is_said() -> None:
    said = answer(subject(curve(H2D, postal(2.5e-6, 65e9))))
    assert "above the bound" in said.findings[0].text


def test_a_setting_is_the_best_only_if_several_visits_show_it() -> None:
    """One visit may have been disturbed: at 16 MiB the default takes longer than it should."""

    def default(size: int) -> float:
        return (2.5e-6 + size / 55e9) * (1.2 if size == 2**24 else 1.0)

    setting = H2D.replace("copy-engine", "copy-engine[api=sync]")

    def best(*sizes: int, blocks: int) -> str:
        variant = curve(setting, postal(2.5e-6, 57e9), sizes, blocks=blocks)
        found = answer(subject(curve(H2D, default, blocks=blocks), variant))
        return found.findings[0].text

    assert "is pinned -> device by copy-engine:" in best(2**20, 2**24, blocks=1)
    assert "is pinned -> device by copy-engine[api=sync]:" in best(2**20, 2**24, blocks=2)
    assert "is pinned -> device by copy-engine[api=sync]:" in best(2**26, 2**28, blocks=1)


def test_what_the_cache_of_a_gpu_can_hold_is_not_the_best() -> None:
    local = "device@gpu:0 -> device@gpu:0 by copy-engine"
    shared = local.replace("-> device@", "-> device[from=ipc]@")
    found = answer(
        subject(
            curve(local, postal(2e-6, 2000e9)),
            curve(shared, postal(2e-6, 2500e9), [2**n for n in range(20, 25)]),
        )
    )
    assert "within gpu:0 is device -> device by copy-engine:" in found.findings[0].text


def test_a_few_bytes_show_no_bandwidth_and_raise_no_warning() -> None:
    said = answer(subject(curve(H2D, postal(5e-6, 55e9), [2**n for n in range(3, 13)])))
    assert said.findings == () and not said.answered
    assert said.summary == "No path was measured at 64 KiB or more, as a bandwidth needs."
    assert said.unanswered == (
        "the fastest method, because no size is large enough for a bandwidth: numa:0 -> gpu:0",
    )
    (fits,) = said.tables
    cells = dict(zip(fits.names, (cell.text for cell in fits.rows[0].cells), strict=True))
    assert cells.pop("latency").startswith("5.0") and cells.pop("path") == H2D
    assert set(cells.values()) == {"—", ""}


def test_a_method_of_a_few_bytes_is_left_out_and_the_others_are_compared() -> None:
    setting = H2D.replace("copy-engine", "copy-engine[api=sync]")
    small = curve(setting, postal(1e-9, 900e9), [8, 4096])
    (best,) = answer(subject(curve(H2D, postal(2e-6, 55e9)), small)).findings
    assert "is pinned -> device by copy-engine: 55" in best.text


def test_a_share_of_the_bound_is_low_only_at_sizes_that_show_the_link() -> None:
    def severity(largest: int) -> str:
        (found,) = answer(subject(curve(H2D, postal(30e-6, 30e9), [8, largest]))).findings
        return found.severity

    assert [severity(2**20), severity(2**24)] == ["info", "warning"]


def test_equal_paths_are_compared_at_sizes_that_show_a_bandwidth() -> None:
    paths = [f"pinned@numa:0 -> device@gpu:{n} by copy-engine" for n in range(2)]
    sizes = ((8, 2**26), (8, 2**24))
    curves = [curve(path, postal(2e-6, 55e9), of) for path, of in zip(paths, sizes, strict=True)]
    (finding,) = answer(subject(*curves, machine=four_gpus())).findings
    assert " such paths" not in finding.text
