from __future__ import annotations

import io
import json
import random
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

import profiles
import waywiser
from report import machines
from waywiser.cli.app import print_verb
from waywiser.cli.show import show
from waywiser.curves.overview import overview
from waywiser.curves.reasons import ReasonGroup
from waywiser.curves.select import NothingMatches
from waywiser.profile import MissingProfile, Profile, WritableProfile
from waywiser.profile.quality_flags import REMEDIES
from waywiser.render.terminal import print_parts
from waywiser.render.views.profile import profile_parts
from waywiser.words.records import Failure, Samples, Unsupported, Visit


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return profiles.write(tmp_path_factory.mktemp("show") / "a.wwp")


@pytest.fixture
def shown(profile: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Every size."""
    show(str(profile), all=True)
    return capsys.readouterr().out


@pytest.fixture
def brief(profile: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """One line per curve."""
    show(str(profile))
    return capsys.readouterr().out


def as_json(file: Path, capsys: pytest.CaptureFixture[str], *only: str) -> Any:
    show(str(file), only, json=True)
    return json.loads(capsys.readouterr().out)


def at_width(file: Path, width: int, *, everything: bool = True, **options: Any) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, **options)
    with Profile.open(file) as opened:
        print_parts(console, profile_parts(opened, overview(opened), everything=everything))
    return stream.getvalue()


def cells(text: str, start: str) -> list[str]:
    """The cells of the last row that begins so."""
    line = [line for line in text.splitlines() if line.startswith(start)][-1]
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def rows_of(text: str, heading: str) -> list[list[str]]:
    """The cells of a curve's rows, header and bound left out."""
    lines = text.split(f"\n{heading}\n")[1].split("\n\n")[0].splitlines()
    result = ("bound", "size", "each ")
    body = [line for line in lines if not line.strip().startswith(result)]
    return [[cell for cell in line.strip().split("  ") if cell] for line in body]


def test_a_curve_is_reported_with_its_bound(shown: str) -> None:
    rows = [[cell.strip() for cell in row] for row in rows_of(shown, profiles.H2D)]
    assert [row[0] for row in rows] == ["8 B", "64 KiB", "1 MiB", "1 GiB"]
    assert rows[-1] == [
        *("1 GiB", "19.52 ms", "±0.1 %", "55.01", "87%", "19.52 ms", "20×2", "converged")
    ]
    assert "bound 63.0 GB/s: PCIe 5 x16" in shown


def test_small_sizes_are_reported_as_time_alone(shown: str) -> None:
    small = rows_of(shown, profiles.H2D)[0]
    assert [cell.strip() for cell in small] == [
        *("8 B", "4.998 µs", "±0.2 %", "7.00 µs", "20×2", "converged")
    ]


def test_both_directions_are_one_curve_with_the_size_of_each(shown: str, brief: str) -> None:
    pair = "pinned@numa:0 <-> device@gpu:0 by copy-engine"
    assert rows_of(shown, pair)[-1][0] == "2 × 1 GiB"
    assert re.search(r"\n  each transfer of 2 × 1 GiB: [0-9.]{2,5} to [0-9.]{2,5} GB/s\n", shown)
    assert cells(brief, pair)[4] == "2 × 1 GiB"


def test_what_is_not_supported_is_listed_under_its_reason(shown: str) -> None:
    assert (
        "not measured: the driver cannot prefetch here (2 paths)\n"
        "  managed@numa:0 -> device@gpu:0 by prefetch\n"
        "  managed@numa:0 -> device@gpu:1 by prefetch\n" in shown
    )
    for unsupported in profiles.UNSUPPORTED_PATHS:
        assert unsupported.path in shown and unsupported.reason in shown


def test_of_many_reasons_one_line_says_how_many(profile: Path) -> None:
    with Profile.open(profile) as opened:
        found = overview(opened)
        groups = [
            ReasonGroup(
                "both are memory", ("device -> managed by batch", "managed -> device by batch")
            ),
            ReasonGroup("neither is a file", ("malloc@numa:0",)),
        ]
        found = msgspec.structs.replace(
            found, unsupported_paths=(*found.unsupported_paths, *groups)
        )
        texts = []
        for everything in (False, True):
            stream = io.StringIO()
            console = Console(file=stream, width=200, highlight=False)
            print_parts(console, profile_parts(opened, found, everything=everything))
            texts.append(stream.getvalue())
    assert [line for line in texts[0].splitlines() if line.startswith("not measured")] == [
        "not measured: the driver cannot prefetch here (2 paths); --all lists them",
        "not measured: file:/data/x -> pageable@numa:0 by cpu: there is no such file",
        "not measured: malloc@numa:0: neither is a file",
    ]
    assert "not measured: both are memory (2 pairs of memories)\n  device -> managed" in texts[1]


def test_what_needs_a_gpu_is_one_line_on_a_host_without(tmp_path: Path) -> None:
    reason = "no NVIDIA driver: libnvidia-ml.so.1 is not found"
    machine = msgspec.structs.replace(profiles.machine(), gpus=(), gpu_reason=reason)
    paths = [profiles.H2D, profiles.D2H, "empty-interval@gpu:0"]
    path = tmp_path / "host.wwp"
    with WritableProfile.create(
        path, machine, {}, unsupported_paths=[Unsupported(each, reason) for each in paths]
    ) as new:
        new.commit_visit(
            profiles.visit(
                profiles.workload(profiles.HOST, 8), 0, profiles.samples(random.Random(1), 1e-3)
            )
        )
    text = at_width(path, 200, everything=False)
    assert text.startswith("node7: Test CPU, 1 NUMA node; no GPU; ")
    assert (
        f"not measured: 2 paths and 1 operation that need a GPU: {reason}; --all lists them" in text
    )
    assert text.count(reason) == 1
    listed = at_width(path, 200)
    assert all(f"\n  {each}\n" in listed for each in paths)


def test_what_failed_is_listed_with_kind_and_reason(shown: str) -> None:
    assert "failed: crash: the worker died of SIGSEGV (2 visits of 1 curve)\n" in shown
    assert "  pageable@numa:0 -> device@gpu:0 by copy-engine of 64 KiB, block 1\n" in shown


def test_marks_point_to_warnings_with_remedies(shown: str) -> None:
    loud = rows_of(shown, profiles.HOST)[-1]
    marks = loud[-1].strip()
    assert "budget" in loud[-2]
    explained = {
        line[0]: line[3:].split(",")[0] for line in shown.splitlines() if line[1:3] == "  "
    }
    assert [explained[mark] for mark in marks] == ["not converged", "spread"]
    assert f"remedy: {REMEDIES['spread']}" in shown


def test_the_first_lines_say_what_was_measured_and_how_well(brief: str) -> None:
    first, second, *_ = brief.splitlines()
    machine = r"node7: Test CPU, 1 NUMA node; 2 × Test GPU; driver 580\.159"
    assert re.fullmatch(rf"{machine}; \d{{4}}-\d\d-\d\d \d\d:\d\d UTC", first)
    assert second.startswith("23 series of 7 curves, 19 converged (95% of the measured)")
    assert "1 did not converge, 3 failed; 3.51 s of measuring" in second


def test_the_last_lines_name_the_next_commands(shown: str, brief: str, profile: Path) -> None:
    every, following = brief.splitlines()[-2:]
    assert every == f"every size: waywiser show {profile} --all"
    assert following == shown.splitlines()[-1] == f"next: waywiser report {profile}"
    assert "every size" not in shown


def test_the_headline_paths_come_last_after_a_survey(
    brief: str, profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_verb(waywiser.open(profile).shown())
    last = capsys.readouterr().out
    assert sorted(filter(None, last.splitlines())) == sorted(filter(None, brief.splitlines()))
    assert last.index("headline paths") > last.index("not converged, 1 series")
    assert last.splitlines()[-1] == f"next: waywiser report {profile}"


def test_a_selection_stays_in_the_command_for_every_size(
    profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(str(profile), only=["h2d pinned"])
    out = capsys.readouterr().out
    assert f"\nevery size: waywiser show {profile} --only 'h2d pinned' --all\n" in out
    assert profiles.H2D in out and profiles.D2H not in out and "headline paths" not in out


def test_a_curve_is_one_line_with_its_largest_and_its_smallest_size(brief: str) -> None:
    assert cells(brief, profiles.H2D) == [
        *(profiles.H2D, "55.01", "±0.1 %", "87%", "1 GiB", "4.998 µs", "4")
    ]
    # no size below 4 KiB was measured
    assert cells(brief, profiles.PAGEABLE)[:-1] == [
        *(profiles.PAGEABLE, "7.49", "±0.2 %", "12%", "1 MiB", "1")
    ]
    assert cells(brief, "empty-interval@gpu:0") == ["empty-interval@gpu:0", "±0.2 %", "3.100 µs"]
    assert "±: half of the 95 % interval of GB/s, or of the latency or time if GB/s is" in brief


def test_each_kind_of_flag_is_one_line_with_its_remedy(brief: str) -> None:
    mark = cells(brief, profiles.HOST)[-1][0]
    assert f"\n{mark}  not converged, 1 series: {REMEDIES['not converged']}\n" in brief


def test_the_headline_paths_come_first(brief: str) -> None:
    lines = brief.split("\nheadline paths ")[1].split("\n\n")[0].splitlines()[1:]
    table = [line for line in lines if not line.startswith(" ")]  # cells may fold
    assert [line.split("  ")[0].partition(",")[0] for line in table] == [
        *("H2D", "D2H", "bidirectional", "P2P", "pageable H2D")
    ]
    first = cells(table[0], "H2D")
    name = "H2D, numa:0 -> gpu:0"
    assert [first[n] for n in (0, 1, 3, 6)] == [name, "55.01", "87%", "4.998 µs"]
    assert first[5].startswith("PCIe 5 x16: ")
    assert first[-1] == "cudaMemcpyAsync, pinned host memory"


def test_matrices_have_a_row_for_each_source(brief: str) -> None:
    rate, time = (
        [line.split() for line in part.split("\n\n")[0].splitlines()[1:]]
        for part in brief.split(" from row to column: ")[1:]
    )
    assert rate == [["from,", "to", "numa:0", "gpu:0", "gpu:1"], ["numa:0", "-", "55.0", "-"],
                    ["gpu:0", "54.0", "-", "389"]]  # fmt: skip
    assert time[1:] == [["numa:0", "-", "5.00", "-"], ["gpu:0", "5.00", "-", "5.01"]]


def test_a_matrix_of_many_gpus_is_printed_in_parts_in_a_narrow_terminal(tmp_path: Path) -> None:
    path = machines.write(tmp_path / "eight.wwp", machines.eight_gpus(), sizes=(8, 2**26))
    for width, parts in ((80, 1), (45, 2)):
        text = at_width(path, width, everything=False)
        matrix = text.split("bandwidth in GB/s from row to column")[1].split("\n\n")[0]
        heads = [line.split() for line in matrix.splitlines() if line.startswith("from, to")]
        assert len(heads) == parts
        assert [name for line in heads for name in line[2:]] == [
            "numa:0",
            *(f"gpu:{n}" for n in range(8)),
        ]
        assert sum(line.startswith("gpu:3 ") for line in matrix.splitlines()) == parts


def test_many_equivalent_paths_of_eight_gpus_are_one_line(tmp_path: Path) -> None:
    path = machines.write(tmp_path / "eight.wwp", machines.eight_gpus(), sizes=(8, 2**26))
    text = at_width(path, 120, everything=False)
    assert text.count("  55 equivalent paths") == 2
    # headline paths to each GPU have a line each
    assert all(f"\npinned@numa:0 -> device@gpu:{n} by copy-engine " in text for n in range(8))


def test_a_few_bytes_have_no_bandwidth_in_any_table(tmp_path: Path) -> None:
    path = machines.write(tmp_path / "eight.wwp", machines.eight_gpus(), sizes=(8, 4096))
    text = at_width(path, 160, everything=False)
    assert "latency in µs from row to column: 8 B" in text
    assert "bandwidth in GB/s" not in text
    headline = text.split("\nheadline paths ")[1].split("\n\n")[0]
    assert "GB/s" not in headline and "at 4 KiB" not in headline and "P2P" in headline


def test_no_matrix_without_a_copy_between_gpus(
    profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(str(profile), only=["h2d", "d2h"])
    assert "from row to column" not in capsys.readouterr().out


def test_a_pipe_gets_plain_unfolded_lines(shown: str) -> None:
    assert "\x1b" not in shown
    assert all(
        unsupported.path in shown.splitlines()[n].strip() for n, unsupported in found_lines(shown)
    )


def found_lines(text: str) -> list[tuple[int, Any]]:
    lines = text.splitlines()
    return [
        (lines.index(f"  {unsupported.path}"), unsupported)
        for unsupported in profiles.UNSUPPORTED_PATHS
    ]


@pytest.mark.parametrize("width", [60, 80, 120])
def test_one_line_per_curve_fits_the_terminal(profile: Path, width: int) -> None:
    text = at_width(profile, width, everything=False, force_terminal=True, color_system=None)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for title in ("headline paths", "GB/s", "bound", "latency"):
        assert title in text
    assert ("sizes" in text.split("from row to column")[-1].split("not measured")[0]) == (
        width > 80
    )


@pytest.mark.parametrize("width", [80, 120])
def test_it_fits_the_terminal_with_nothing_cut_off(profile: Path, width: int) -> None:
    text = at_width(profile, width, force_terminal=True, color_system=None)
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    for title in ("size", "time", "GB/s", "bound", "app sees", "samples", "stopped"):
        assert title in text


def test_colours_only_where_they_are_wanted(profile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    assert "\x1b[33m" in at_width(profile, 80, force_terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[33m" not in at_width(profile, 80, force_terminal=True)


def test_json_has_every_series_with_interval_bound_and_reason(
    profile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = as_json(profile, capsys)
    assert found["schema"] == 3 and found["hostname"] == "node7"
    assert len(found["series"]) == found["summary"]["series"] == 23
    (large,) = [s for s in found["series"] if s["workload"] == f"{profiles.H2D} of {2**30}"]
    estimate = large["estimate"]
    assert estimate["interval"]["low"] <= estimate["median"] <= estimate["interval"]["high"]
    assert estimate["rate"]["value"] == pytest.approx(2**30 / estimate["median"])
    assert estimate["kind"] == "within process" and estimate["stop"] == "converged"
    assert large["of_bound"] == estimate["rate"]["value"] / large["bound"]["bytes_per_second"]
    assert [block["count"] for block in estimate["blocks"]] == [20, 20]
    lost = [s for s in found["series"] if s["estimate"] is None]
    assert len(lost) == found["summary"]["failed"] == 3
    assert {group["reason"] for group in found["warnings"]} <= set(REMEDIES)
    assert sum(len(group["members"]) for group in found["unsupported_paths"]) == len(
        profiles.UNSUPPORTED_PATHS
    )


def test_only_keeps_what_is_asked_for(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = as_json(profile, capsys, "device@gpu:1")
    assert {series["curve"] for series in found["series"]} == {profiles.PEER}
    assert [group["members"] for group in found["unsupported_paths"]] == [
        ["managed@numa:0 -> device@gpu:1 by prefetch"]
    ]
    either = as_json(profile, capsys, "cpu numa:0", f"*of {2**30}")
    assert {s["curve"] for s in either["series"]} > {profiles.HOST, profiles.H2D}


def test_only_that_matches_nothing_is_an_error(profile: Path) -> None:
    with pytest.raises(NothingMatches, match="there is no gpu:7 here"):
        show(str(profile), only=["gpu:7"])
    with pytest.raises(NothingMatches, match="nearest") as caught:
        show(str(profile), only=["gpu:1 -> file"])
    assert caught.value.exit_code == 2


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingProfile):
        show(str(tmp_path / "none.wwp"))


def write(path: Path, *visits: Any, unsupported_paths: Any = ()) -> Path:
    with WritableProfile.create(
        path, profiles.machine(), {}, unsupported_paths=unsupported_paths
    ) as new:
        for visit in visits:
            new.commit_visit(visit)
    return path


def test_a_profile_of_unsupported_alone_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "a.wwp", unsupported_paths=profiles.UNSUPPORTED_PATHS)
    show(str(path))
    out = capsys.readouterr().out
    assert "\n0 series of 0 curves, 0 converged; 0 ns of measuring\n" in out
    assert "every size" not in out and "next:" not in out


def test_what_is_not_supported_is_counted_by_what_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An operation is no path, and no machine has such a pair of memories without places."""
    names = ("pinned@numa:0 -> device@gpu:0 by sm", "pinned -> device by sm", "malloc@gpu:0")
    unsupported = [Unsupported(name, "no such thing here") for name in names]
    path = write(tmp_path / "a.wwp", unsupported_paths=unsupported)
    show(str(path))
    out = capsys.readouterr().out
    assert "0 converged; " in out
    assert "not measured: no such thing here (1 path and 1 operation); --all lists them" in out
    show(str(path), all=True)
    assert "(1 path, 1 pair of memories and 1 operation)" in capsys.readouterr().out


def test_the_sizes_of_an_unsupported_path_stay_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"{profiles.H2D} of 8 B, 512 MiB, 1 TiB"
    file = write(tmp_path / "a.wwp", unsupported_paths=[Unsupported(path, "too large")])
    show(str(file), all=True)
    assert f"  {path}\n" in capsys.readouterr().out


def test_a_survey_that_was_stopped_is_reported_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.wwp"
    what = profiles.workload(profiles.H2D, 2**20)
    plan = b'{"estimate": {"visits": 2}}'
    with WritableProfile.create(path, profiles.machine(), {}, plan_json=plan) as new:
        for block in range(2):
            new.commit_visit(profiles.visit(what, block, profiles.samples(random.Random(1), 1e-3)))
            show(str(path))
            shown = capsys.readouterr().out
            result = "not complete: 1 of 2 visits are stored; go on with: waywiser survey --resume"
            assert (f"{result} -o {path}" in shown) == (block == 0)


def test_sizes_left_out_as_saturated_stand_with_their_curve(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(1)
    small, large = (profiles.workload(profiles.H2D, size) for size in (2**20, 2**30))
    skip = profiles.visit(
        large, 0, failure=Failure("skipped", "the bandwidth has saturated: 55 GB/s")
    )
    skip = type(skip)(
        workload=large, block=0, stop="skipped", started=skip.started, failure=skip.failure
    )
    path = write(tmp_path / "a.wwp", profiles.visit(small, 0, profiles.samples(rng, 1e-3)), skip)
    show(str(path), all=True)
    out = capsys.readouterr().out
    assert "  skipped, as the bandwidth has saturated: 1 GiB\n" in out
    assert "1 not needed or too long" in out and "without time" not in out
    assert "1 converged (100% of the measured)" in out
    show(str(path))
    assert "skipped: the bandwidth has saturated: 55 GB/s (1 visit" in capsys.readouterr().out


def test_what_had_no_time_is_one_line_with_what_was_not_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, over = random.Random(1), "the 30 s of standard were over"

    def late(size: int, block: int) -> Visit:
        what = profiles.workload(profiles.D2H, size)
        made = profiles.visit(what, block, failure=Failure("skipped", over))
        return msgspec.structs.replace(made, stop="skipped")

    known = profiles.visit(profiles.workload(profiles.D2H, 2**12), 0, profiles.samples(rng, 1e-5))
    visits = [known, late(2**12, 1), late(2**12, 2), *(late(2**20, n) for n in range(3))]
    path = write(tmp_path / "a.wwp", *visits, late(2**21, 0))
    show(str(path))
    out = capsys.readouterr().out
    assert "3 series of 1 curve, 1 converged (100% of the measured), 2 without time; " in out
    assert out.count("skipped") == 1
    assert f"skipped: {over} (2 series, and 2 repetitions of others)" in out


def test_a_series_of_void_samples_is_among_the_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    void = Samples(span=(1e-3,) * 8, flags=(1,) * 8)
    what = profiles.workload(profiles.H2D, 8)
    path = write(tmp_path / "a.wwp", profiles.visit(what, 0, void))
    show(str(path))
    out = capsys.readouterr().out
    assert "failed: void: the watchdog opened the gate at every sample\n" in out
    assert "1 failed" in out


def test_many_concurrent_transfers_are_listed_and_blocks_of_unequal_length_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(1)
    what = profiles.workload(f"{profiles.H2D}; {profiles.D2H}; {profiles.PEER}", 2**20)
    taken = [profiles.samples(rng, 1e-3, count, transfers=3) for count in (18, 22)]
    visits = [profiles.visit(what, block, each) for block, each in enumerate(taken)]
    show(str(write(tmp_path / "a.wwp", *visits)), all=True)
    out = capsys.readouterr().out
    assert f"\n3 concurrent transfers:\n  {profiles.H2D}\n  {profiles.D2H}\n" in out
    assert "18-22×2" in out
