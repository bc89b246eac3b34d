"""Both directions of copies at once, each in a run of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.imports.test_made_texts import read

TO, BACK = "host_to_device_bidirectional_memcpy", "device_to_host_bidirectional_memcpy"


Rates = tuple[float, ...]


def run(case: str, rates: Rates, command: str = "$ ./nvbandwidth") -> str:
    head = "".join(f"{n:>10}" for n in range(len(rates)))
    row = "".join(f"{rate:>10.2f}" for rate in rates)
    title = "nvbandwidth Version: v0.8"
    return (f"{command} -t {case}\n{title}\n\nRunning {case}.\n"
            f"memcpy CE CPU(row) <-> GPU(column) bandwidth (GB/s)\n{head}\n 0{row}\n\n"
            )  # fmt: skip


def found(text: str, folder: Path) -> tuple[dict[str, list[Rates]], list[str]]:
    path = folder / "a.txt"
    path.write_text(text)
    files = read(path)
    rates: dict[str, list[Rates]] = {}
    for each in (each for file in files for each in file.measured):
        parts = tuple(
            round(t.bytes / s / 1e9, 2)
            for t, s in zip(each.workload.transfers, each.samples.transfers[0], strict=True)
        )
        rates.setdefault(str(each.workload), []).append(parts)
    return rates, [each.reason for file in files for each in file.unsupported_paths]


@pytest.mark.parametrize("by", ["ce", "sm"])
@pytest.mark.parametrize("turned", [False, True])
def test_two_runs_make_one_series(by: str, turned: bool, tmp_path: Path) -> None:
    runs = [run(f"{TO}_{by}", (41.0, 42.0)), run(f"{BACK}_{by}", (31.0, 32.0))]
    rates, reasons = found("".join(runs[::-1] if turned else runs), tmp_path)
    assert sorted(rates.values()) == [[(41.0, 31.0)], [(42.0, 32.0)]]
    assert not reasons


def test_repeated_runs_are_joined_in_their_order(tmp_path: Path) -> None:
    text = "".join(run(f"{TO}_ce", (40.0 + n,)) + run(f"{BACK}_ce", (30.0 + n,)) for n in range(3))
    rates, _ = found(text, tmp_path)
    assert list(rates.values()) == [[(40.0, 30.0), (41.0, 31.0), (42.0, 32.0)]]


def test_runs_with_other_settings_are_not_joined(tmp_path: Path) -> None:
    text = run(f"{TO}_ce", (40.0,)) + run(f"{BACK}_ce", (30.0,), "$ taskset -c 4 ./nvbandwidth")
    rates, reasons = found(text + run("host_to_device_memcpy_ce", (50.0,)), tmp_path)
    assert len(rates) == 1
    assert [reason for reason in reasons if "other settings" in reason] == reasons
    assert len(reasons) == 2


def test_a_half_alone_names_what_is_missing(tmp_path: Path) -> None:
    _, reasons = found(run("host_to_device_memcpy_ce", (50.0,)) + run(f"{TO}_ce", (1.0,)), tmp_path)
    assert reasons == [f"it has one direction of two, and {BACK}_ce is missing"]
