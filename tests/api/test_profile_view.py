"""`waywiser.open`: the numbers of ``show`` and ``export``, paths by name, figures, errors."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import profiles
import waywiser
from api import opened
from waywiser.cli import run
from waywiser.cli.show import show
from waywiser.curves.headline import GROUPS
from waywiser.exchange.exports.samples import write_csv
from waywiser.notebook.data_table import DataTable
from waywiser.notebook.optional_package import MissingPackage
from waywiser.notebook.profile_view import NoSuchPath, ProfileView
from waywiser.profile import MissingProfile, NotAProfile, Profile
from waywiser.profile.sample_rows import rows_of
from waywiser.profile.writable import write_profile
from waywiser.words import WaywiserError
from waywiser.words.records import Failure

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> ProfileView:
    return opened.surveyed(tmp_path_factory.mktemp("surveyed"))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> ProfileView:
    return opened.imported(tmp_path_factory.mktemp("imported"))


@pytest.fixture(scope="module")
def flawed(tmp_path_factory: pytest.TempPathFactory) -> ProfileView:
    """A made profile with series that failed, were skipped, or are operations."""
    file = tmp_path_factory.mktemp("flawed") / "flawed.wwp"
    profiles.write(file)
    return waywiser.open(file)


def shown(view: ProfileView, output: Output) -> Any:
    assert run(["show", view.path, "--json"]) == 0
    return json.loads(output.readouterr().out)


@pytest.mark.parametrize("name", ["view", "foreign", "flawed"])
def test_series_have_the_numbers_that_show_has(
    name: str, request: pytest.FixtureRequest, capsys: Output
) -> None:
    view = request.getfixturevalue(name)
    lines = shown(view, capsys)["series"]
    assert len(lines) == len(view.series) > 0
    for row, line in zip(view.series, lines, strict=True):
        assert (row.path, row.curve, row.workload, row.identity, row.bytes, row.cache) == tuple(
            line[key] for key in ("name", "curve", "workload", "identity", "bytes", "cache")
        )
        found = line["estimate"]
        if found is None:
            assert (row.seconds, row.gb_per_s, row.samples) == (None, None, 0)
            assert row.not_measured and row.stop in ("failed", "skipped")
            continue
        ends = found["interval"] or {"low": None, "high": None}
        assert (row.seconds, row.seconds_low, row.seconds_high) == (
            found["median"], ends["low"], ends["high"],
        )  # fmt: skip
        assert (row.samples, row.processes) == (found["count"], len(found["blocks"]))
        assert row.stop == found["stop"] and row.not_measured is None
        rate = found["rate"]
        assert row.gb_per_s == (rate and rate["value"] / 1e9)
        if rate and rate["interval"]:
            assert row.gb_per_s_low == rate["interval"]["low"] / 1e9
            assert row.gb_per_s_high == rate["interval"]["high"] / 1e9
        share = line["of_bound"]
        assert row.percent_of_bound == (None if share is None else 100 * share)


@pytest.mark.parametrize("name", ["view", "foreign", "flawed"])
def test_samples_are_those_of_an_export(name: str, request: pytest.FixtureRequest) -> None:
    view = request.getfixturevalue(name)
    with Profile.open(view.path) as profile:
        assert [tuple(row) for row in view.samples] == list(rows_of(profile))
        text = io.StringIO()
        write_csv(profile, text)
    exported = list(csv.DictReader(io.StringIO(text.getvalue())))
    assert len(view.samples) == len(exported) > 0
    assert list(view.samples.columns) == list(exported[0])
    assert [float(row["span_seconds"]) for row in exported] == view.samples["span_seconds"]


def test_sides_of_a_path_are_columns(view: ProfileView, flawed: ProfileView) -> None:
    row = next(row for row in view.series if row.path == H2D)
    assert (row.source, row.destination) == ("pinned@numa:0", "device@gpu:0")
    assert row.executor == "copy-engine"
    both = next(row for row in view.series if row.path.count("<->"))
    assert "; " in both.source and both.executor == "copy-engine"
    operation = next(row for row in flawed.series if "->" not in row.path)
    assert (operation.source, operation.destination, operation.executor) == (None, None, None)


def test_headlines_are_the_ends_of_their_curves(view: ProfileView) -> None:
    rows = list(view.headline())
    groups = [row.group for row in rows]
    assert groups == sorted(groups, key=GROUPS.index)
    assert {"H2D", "D2H", "P2P", "host-to-all"} <= set(groups)
    for row in rows:
        curve = view.curve(row.path)
        last, first = curve[-1], curve[0]
        assert (row.bytes, row.gb_per_s, row.percent_of_bound) == (
            last.bytes, last.gb_per_s, last.percent_of_bound,
        )  # fmt: skip
        assert (row.gb_per_s_low, row.gb_per_s_high) == (last.gb_per_s_low, last.gb_per_s_high)
        if row.latency_bytes is not None:
            assert row.latency_bytes == first.bytes <= 4096
            assert row.latency_seconds == first.seconds
            assert row.latency_seconds_low == first.seconds_low


def test_a_curve_has_the_rows_of_its_series(view: ProfileView) -> None:
    curve = view.curve(H2D)
    series = [row for row in view.series if row.curve == H2D and row.samples]
    assert curve["bytes"] == sorted(curve["bytes"]) == [row.bytes for row in series]
    assert curve["gb_per_s"] == [row.gb_per_s for row in series]
    assert curve["seconds_high"] == [row.seconds_high for row in series]
    assert curve.name == H2D


def test_a_group_with_one_headline_path_names_it(view: ProfileView) -> None:
    paths: dict[str, list[str]] = {}
    for row in view.headline():
        paths.setdefault(row.group, []).append(row.path)
    alone = {group: members[0] for group, members in paths.items() if len(members) == 1}
    assert alone
    for group, path in alone.items():
        assert list(view.curve(group.upper())) == list(view.curve(path))


def made(file: Path, *curves: tuple[str, tuple[int, ...]]) -> ProfileView:
    """A profile of paths at some sizes."""
    rng = random.Random(1)
    visits = [
        profiles.visit(
            profiles.workload(path, size), 0, profiles.samples(rng, profiles.seconds(size))
        )
        for path, sizes in curves
        for size in sizes
    ]
    write_profile(file, profiles.machine(), {}, visits)
    return waywiser.open(file)


def test_without_headline_paths_there_is_one_of_each_family_as_in_show(tmp_path: Path) -> None:
    path = "device@gpu:0 -> device@gpu:1 by nccl"
    view = made(tmp_path / "a.wwp", (path, (8, 2**26)))
    (row,) = view.headline()
    assert (row.group, row.path, row.bytes) == ("between ranks, GPU memory", path, 2**26)
    assert len(view.plot().axes[0].containers) == 1
    assert list(view.curve("Between ranks")) == list(view.curve(path))


def test_a_headline_has_no_bandwidth_of_a_few_bytes(tmp_path: Path) -> None:
    (row,) = made(tmp_path / "a.wwp", (H2D, (8, 4096))).headline()
    assert (row.bytes, row.gb_per_s, row.percent_of_bound) == (None, None, None)
    assert row.latency_bytes == 8 and row.latency_seconds and row.cached is False


def test_a_bandwidth_that_a_cache_can_hold_is_marked(tmp_path: Path) -> None:
    local = "device@gpu:0 -> device@gpu:0 by copy-engine"
    view = made(tmp_path / "a.wwp", (local, (8, 2**20)), (H2D, (8, 2**26)))
    assert {row.group: row.cached for row in view.headline()} == {"H2D": False, "local copy": True}
    assert "1 MiB (cached)" in view._repr_html_()


def test_a_path_is_found_by_words_that_only_it_matches(view: ProfileView) -> None:
    expected = view.curve("host-to-all pinned@numa:0 -> device@gpu:0,1 by copy-engine")
    assert list(view.curve("host-to-all pinned")) == list(expected)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("pinned@numa:0 -> device@gpu:7 by copy-engine", f"nearest: {H2D}; "),
        ("pinned -> device", "paths match 'pinned -> device' (name one of: "),
        ("pinend", "has no path 'pinend' (did you mean 'pinned'? nearest: "),
        ("h2d gpu7", "has no path 'h2d gpu7'"),
    ],
)
def test_a_path_that_is_not_there_is_answered_with_the_nearest(
    view: ProfileView, path: str, says: str
) -> None:
    with pytest.raises(NoSuchPath) as error:
        view.curve(path)
    assert says in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(KeyError):
        view.plot(path)


def test_what_is_no_text_is_no_path(view: ProfileView) -> None:
    with pytest.raises(NoSuchPath, match=r"^5 is no path \(write it as a table has it\)$"):
        view.curve(5)  # type: ignore[arg-type]


def test_a_path_that_was_not_measured_is_answered_with_the_reason(
    tmp_path: Path, flawed: ProfileView
) -> None:
    from waywiser.notebook.curve_figure import NothingToPlot

    file = tmp_path / "a.wwp"
    gone = profiles.visit(profiles.WHAT, 0, failure=Failure("crash", "the worker died of SIGSEGV"))
    write_profile(file, profiles.machine(), {}, [gone])
    nothing = waywiser.open(file)
    says = r"by copy-engine was not measured \(the worker died of SIGSEGV\)"
    with pytest.raises(NoSuchPath, match=says):
        nothing.curve(H2D)
    with pytest.raises(NoSuchPath, match=r"has no path 'x' \(nothing was measured\)"):
        nothing.curve("x")
    with pytest.raises(NothingToPlot, match=r"^no headline path has a bandwidth over size "):
        nothing.plot()
    assert len(nothing.headline()) == 0 and "<table>" not in nothing._repr_html_()
    with pytest.raises(NoSuchPath, match="the driver cannot prefetch here"):
        flawed.curve("managed@numa:0 -> device@gpu:0 by prefetch")


def test_results_of_other_tools_have_no_intervals_and_no_topology(foreign: ProfileView) -> None:
    assert not foreign.machine.nodes_known
    rows = [row for row in foreign.series if row.gb_per_s is not None]
    assert rows and all(row.gb_per_s_low is None for row in rows)
    assert "H2D" in foreign.headline()["group"]
    assert "<table>" in foreign._repr_html_()
    assert foreign.plot(rows[0].path).axes


@pytest.mark.parametrize("make", ["missing", "text"])
def test_a_file_that_is_no_profile_is_an_error_of_one_line(make: str, tmp_path: Path) -> None:
    file = tmp_path / "machine.wwp"
    if make == "text":
        file.write_text("no profile")
    with pytest.raises(MissingProfile if make == "missing" else NotAProfile) as error:
        waywiser.open(file)
    assert isinstance(error.value, WaywiserError)
    assert str(file) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("wrong", ["", "a\0b", 3, None])
def test_what_names_no_file_is_an_error_of_one_line(wrong: Any) -> None:
    with pytest.raises(WaywiserError, match=r"is not the (name of a file|path of a profile)"):
        waywiser.open(wrong)


def test_a_profile_stays_as_it_was_when_it_was_opened(tmp_path: Path) -> None:
    view = opened.surveyed(tmp_path, "h100-check-1")
    Path(view.path).unlink()
    assert sum(1 for _ in view.samples) == len(view.samples)
    assert len(view.headline())


def test_it_shows_its_machine_and_its_headline_paths(view: ProfileView) -> None:
    assert "2 NVIDIA H200" in repr(view) and "\n" not in repr(view)
    page = view._repr_html_()
    assert "2 NVIDIA H200" in page
    assert page.count("<tr>") == 1 + len(view.headline())
    assert "pinned@numa:0 -&gt; device@gpu:0" in page
    assert view.machine.gpus[0].name == "NVIDIA H200"
    assert isinstance(view.series, DataTable)


def test_it_counts_curves_as_show_does(view: ProfileView, capsys: Output) -> None:
    show(view.path)
    shown = capsys.readouterr().out
    (counted,) = re.findall(r"\n(\d+ series of \d+ curves?, \d+ converged)", shown)
    assert counted in repr(view) and counted in view._repr_html_()


def test_names_of_strangers_are_no_html(tmp_path: Path) -> None:
    file = tmp_path / "a.wwp"
    name = "<script>alert(1)</script>\x1b[31m"
    machine = msgspec.structs.replace(profiles.machine(), hostname=name)
    write_profile(file, machine, {}, profiles.visits())
    view = waywiser.open(file)
    assert "<script>" not in view._repr_html_()
    assert "\x1b" not in view._repr_html_() + repr(view)
    view.plot()


def test_a_figure_has_a_line_with_intervals_for_each_path(view: ProfileView) -> None:
    figure = view.plot(H2D, "device@gpu:0 -> pinned@numa:0 by copy-engine")
    (axes,) = figure.axes
    assert len(axes.containers) == 2
    drawn = axes.containers[0].lines[0]
    assert list(drawn.get_xdata()) == view.curve(H2D)["bytes"]
    assert list(drawn.get_ydata()) == pytest.approx(view.curve(H2D)["gb_per_s"])
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert H2D in texts and any(text.startswith("bound ") for text in texts)
    assert axes.get_ylabel() == "bandwidth in GB/s"
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_figure_of_latency_has_microseconds(view: ProfileView) -> None:
    (axes,) = view.plot(H2D, quantity="latency", title="costs $5 and $6").axes
    seconds = view.curve(H2D)["seconds"]
    drawn = axes.containers[0].lines[0]
    assert list(drawn.get_ydata()) == pytest.approx([1e6 * each for each in seconds])


def test_a_figure_without_paths_has_headline_paths(view: ProfileView) -> None:
    (axes,) = view.plot().axes
    assert 1 < len(axes.containers) <= 8


def test_a_figure_has_lines_between_neighbouring_sizes_alone(tmp_path: Path) -> None:
    sizes = (8, 2**14, 2**15, 2**16, 2**22, 2**25, 2**26)
    view = made(tmp_path / "a.wwp", (H2D, sizes))
    (axes,) = view.plot(H2D).axes
    points = axes.containers[0].lines[0]
    assert points.get_linestyle() == "None" and list(points.get_xdata()) == list(sizes)
    lines = [
        list(map(int, line.get_xdata()))
        for line in axes.lines
        if line.get_color() == points.get_color()
    ]
    lines = [line for line in lines if line != list(sizes)]
    assert [each for each in lines if len(set(each)) > 1] == [[2**14, 2**15, 2**16], [2**25, 2**26]]


def test_a_figure_without_paths_has_one_path_of_each_kind(tmp_path: Path) -> None:
    to = [f"pinned@numa:0 -> device@gpu:{n} by copy-engine" for n in range(9)]
    back = "device@gpu:3 -> pinned@numa:0 by copy-engine"
    made_of = ((text, (2**25, 2**26)) for text in (*to, back))
    figure = made(tmp_path / "a.wwp", *made_of).plot()
    drawn = [text.get_text() for text in figure.legends[0].get_texts()]
    assert [text for text in drawn if "->" in text] == [to[0], back]


def test_what_has_no_size_cannot_be_plotted(flawed: ProfileView) -> None:
    from waywiser.notebook.curve_figure import NothingToPlot

    operation = next(row.path for row in flawed.series if "->" not in row.path and row.samples)
    with pytest.raises(NothingToPlot, match="has no bandwidth over size"):
        flawed.plot(operation)
    with pytest.raises(NothingToPlot, match="'speed' is no quantity"):
        flawed.plot(operation, quantity="speed")  # type: ignore[arg-type]


def test_without_matplotlib_the_error_says_what_to_install(
    view: ProfileView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingPackage, match=r"^plot\(\) needs matplotlib, .*\(pip install mat"
    ) as e:
        view.plot(H2D)
    assert e.value.__suppress_context__ and e.value.__cause__ is None


def test_a_missing_file_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(MissingProfile, match=r"there is no such file") as error:
        waywiser.open(tmp_path / "none.wwp")
    assert error.value.__suppress_context__ and error.value.__cause__ is None


def test_a_prediction_is_that_of_the_command(view: ProfileView, capsys: Output) -> None:
    for texts, more in (
        ([f"{H2D} of 50MiB"], {}),
        ([f"{H2D} of 32MiB", f"{H2D} of 128MiB"], {"changes": ["PCIe to gpu:0=20GB/s"]}),
        ([f"{H2D} of 32MiB"], {"messages": 4}),
    ):
        found = view.predict(*texts, **more)
        words = [word for text in texts for word in ("-w", text)]
        words += [word for text in more.get("changes", ()) for word in ("--set", text)]
        words += ["--messages", str(more.get("messages", 1))]
        assert run(["predict", view.path, *words, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        answer = json.loads(msgspec.json.encode(found))
        assert answer == {name: printed[name] for name in answer}
    with pytest.raises(WaywiserError):
        view.predict("nothing of 1MiB")
