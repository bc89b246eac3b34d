"""Latencies are compared as latencies and bandwidths as bandwidths, with their word and number, in
every text that says of a path that it changed."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from analysis.comparison import nodes
from verb_output import Said
from waywiser.curves.subject import Subject, read_subject
from waywiser.notebook.comparison_view import compare_profiles
from waywiser.words import Workload

GPUS, SMALL = 2, 1024

START = 5e-6
"""Seconds that a small copy takes."""

CHANGES = {"latency": 1.5, "bandwidth": 1.5, "shorter": 1 / 1.5, "faster": 1 / 1.5}
"""What gpu:1's link takes longer now: times of small copies, or of large ones."""

SHOWN = {"latency": "50.0%", "bandwidth": "33.3%", "shorter": "33.3%", "faster": "50.0%"}


def surveyed(seed: int, host: str, change: str = "") -> Subject:
    link = nodes.slow_host_link(1, CHANGES.get(change, 1.0))
    seconds = {str(what): each for what, each in nodes.workloads(GPUS, SMALL)}

    def slow(what: Workload) -> float:
        is_large = what.transfers[0].bytes == nodes.SIZE
        usual = 1.0 if is_large else START / seconds[str(what)]
        return usual * (link(what) if is_large == (change in ("bandwidth", "faster")) else 1.0)

    return nodes.node(
        seed,
        host,
        gpus=GPUS,
        blocks=8,
        slow=slow,
        sizes=(SMALL, nodes.SIZE),
        between_hosts=1e-6,
        between_blocks=1e-5,
        created=f"2026-11-20T{seed:02}:00:00.000+00:00",
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("words")
    for number in range(4):
        nodes.stored(surveyed(1, f"n{number}"), found / f"n{number}.wwp")
    for change in CHANGES:
        nodes.stored(surveyed(2, "n0", change), found / f"{change}.wwp")
        nodes.stored(surveyed(3, "n0", change), found / f"{change}-again.wwp")
    return found


VERBS = {
    "compare": ("compare", "n0.wwp", "{}.wwp"),
    "compare with a repeat": ("compare", "n0.wwp", "{}.wwp", "--repeat", "{}-again.wwp"),
    "compare --all": ("compare", "n0.wwp", "{}.wwp", "--all"),
    "check": ("check", "{}.wwp", "--baseline", "n0.wwp", "--within", "0"),
    "check with a repeat": ("check", "{}.wwp", "--baseline", "n0.wwp", "--repeat",
                            "{}-again.wwp", "--within", "0"),
    "fleet": ("check", "n1.wwp", "n2.wwp", "n3.wwp", "{}.wwp"),
}  # fmt: skip


def contradicts(change: str, text: str) -> list[str]:
    """Lines that give a change of time as one of bandwidth, or the reverse."""
    of_time = change in ("latency", "shorter")
    wrong = r"longer|\+50\.\d%|latency [+-]"
    if of_time:
        wrong = r"\d%? slower|loss of \d\d|-33\.\d%|0\.667"
    if change in ("shorter", "faster"):
        wrong = r"\+50\.\d%|1\.5\d* of before" if of_time else r"latency [+-]|-33\.\d%"
    small = "1 KiB", "latency"
    about = [line for line in text.splitlines() if "gpu:1" in line or re.search(r"^  \w", line)]
    concerned = [line for line in about if any(word in line for word in small) == of_time]
    return [line for line in concerned if re.search(wrong, line)]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("change", ["latency", "bandwidth"])
def test_what_is_said_of_a_loss(said: Said, change: str, verb: str) -> None:
    text = said(*(word.format(change) for word in VERBS[verb]))
    assert not contradicts(change, text), contradicts(change, text)
    share = re.escape(SHOWN[change])
    word = f"takes {share} longer" if change == "latency" else f"is {share} slower"
    assert re.search(rf"gpu:1.* {word}", text), text
    if verb.startswith("compare"):
        headline = rf"H2D .*: {'latency [+]' if change == 'latency' else '-'}{share}"
        row = rf"-> device@gpu:1 .* {'[+]' if change == 'latency' else '-'}{share} "
        assert re.search(headline, text) and re.search(row, text), text
    if verb.startswith("check"):
        drop = f"{'latency [+]' if change == 'latency' else '-'}{share}"
        assert re.search(rf"^    {drop}  \w+: ", text, re.MULTILINE), text


@pytest.mark.parametrize("change", ["shorter", "faster"])
def test_what_is_said_of_a_gain(said: Said, change: str) -> None:
    text = said("compare", "n0.wwp", f"{change}.wwp", "--all")
    assert not contradicts(change, text), contradicts(change, text)
    sign = "-" if change == "shorter" else r"\+"
    assert re.search(rf"-> device@gpu:1 .* {sign}{re.escape(SHOWN[change])} ", text), text


@pytest.mark.parametrize("change", CHANGES)
def test_junit_and_prometheus(said: Said, change: str, folder: Path) -> None:
    said("compare", "n0.wwp", f"{change}.wwp", "--junit", f"{change}.xml")
    suite = ElementTree.parse(folder / f"{change}.xml")
    (case,) = (each for each in suite.iter("testcase") if each.get("name") == nodes.h2d(1))
    text = " ".join(f"{each.get('message') or ''} {each.text}" for each in case)
    # of before: the time of a latency, the bandwidth of another size
    of_time = change in ("latency", "shorter")
    ratio = CHANGES[change] if of_time else 1 / CHANGES[change]
    found = re.search(rf"{'latency' if of_time else 'bandwidth'} ([\d.]+) of before", text)
    assert found and float(found[1]) == pytest.approx(ratio, rel=0.001), text
    ratios = [float(each) for each in re.findall(r"ratio of times ([\d.]+)", text)]
    assert any(each == pytest.approx(ratio, rel=0.001) for each in ratios) == of_time
    name = f"{change}.prom"
    said("check", f"{change}.wwp", "--baseline", "n0.wwp", "--within", "0", "--prometheus", name)
    metrics = (folder / name).read_text()
    (value,) = re.findall(rf'waywiser_path_ratio{{.*path="{nodes.h2d(1)}"}} ([\d.e-]+)', metrics)
    assert float(value) == pytest.approx(1 / CHANGES[change], rel=0.001)
    assert "of latencies time in the baseline over time now" in metrics


@pytest.mark.parametrize("change", CHANGES)
def test_a_notebook(change: str, folder: Path) -> None:
    text = repr(compare_profiles(folder / "n0.wwp", folder / f"{change}.wwp"))
    assert not contradicts(change, text)
    of_time = change in ("latency", "shorter")
    sign = r"\+" if change in ("latency", "faster") else "-"
    word = "latency " if of_time else ""
    assert re.search(rf"device@gpu:1 .*  {word}{sign}{re.escape(SHOWN[change])}", text), text


def test_a_node_is_read_in_both_regimes(folder: Path) -> None:
    sizes = {
        series.workload.transfers[0].bytes for series in read_subject(folder / "n0.wwp").points
    }
    assert sizes == {SMALL, nodes.SIZE}
