"""What a newcomer tries first: nvbandwidth beside a survey of the machine, by the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser import cli
from waywiser.curves.subject import read_subject

SURVEY = RESULTS / "2026-11-20-h200-catalogue" / "four-gpus" / "standard.wwp.xz"

Output = pytest.CaptureFixture[str]

GPUS = 4


def results(file: Path, rates: Sequence[float] = (55.4, 55.2)) -> Path:
    """The JSON of nvbandwidth with both directions of each GPU, copies between GPUs, and reads."""
    to, back = ([[f"{rate + n / 100:.2f}" for n in range(GPUS)]] for rate in rates)
    between = [["N/A" if a == b else "390.10" for b in range(GPUS)] for a in range(GPUS)]
    cases = {
        "host_to_device_memcpy_ce": to,
        "device_to_host_memcpy_ce": back,
        "host_to_device_bidirectional_memcpy_ce": to,
        "device_to_host_bidirectional_memcpy_ce": back,
        "device_to_device_memcpy_read_ce": between,
        "device_to_device_memcpy_write_ce": between,
        "device_to_device_memcpy_read_sm": between,
        "device_local_copy": [["2070.00"] * GPUS],
    }
    value = {
        "nvbandwidth": {
            "version": "v0.8",
            "Hostname": "vm",
            "GPU Device list": [f"{n}: NVIDIA H200 (00000000:{n + 1:02x}:00)" for n in range(GPUS)],
            "testcases": [
                {"name": name, "status": "Passed", "bandwidth_matrix": matrix}
                for name, matrix in cases.items()
            ],
        }
    }
    file.write_text(json.dumps(value))
    return file


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(SURVEY, tmp_path_factory.mktemp("survey") / "survey.wwp")


def imported(target: Path, *files: Path) -> Path:
    assert cli.run(["import", *map(str, files), "-o", str(target)]) == 0
    return target


def compared(words: Sequence[str], capsys: Output) -> dict[str, dict[str, object]]:
    capsys.readouterr()
    cli.run([*words, "--json"])
    found = json.loads(capsys.readouterr().out)
    paths = found.get("comparison", found)["paths"]
    return {path["curve"]: path for path in paths}


@pytest.mark.parametrize("is_new", [True, False])
def test_all_common_paths_have_a_verdict(
    is_new: bool, survey: Path, tmp_path: Path, capsys: Output
) -> None:
    tool = imported(tmp_path / "tool.wwp", results(tmp_path / "a.json"))
    curves = [
        {each.curve for each in read_subject(file).points if each.blocks} for file in (survey, tool)
    ]
    common = curves[0] & curves[1]
    files = [str(survey), str(tool)] if is_new else [str(tool), str(survey)]
    paths = compared(["compare", *files], capsys)
    assert paths.keys() == curves[0] | curves[1]
    verdicts = {curve: paths[curve]["verdict"] for curve in common}
    assert set(verdicts.values()) <= {"no change", "not decided", "no common size"}
    for gpu in range(GPUS):
        for curve in (
            f"pinned@numa:0 -> device@gpu:{gpu} by copy-engine",
            f"device@gpu:{gpu} -> pinned@numa:0 by copy-engine",
        ):
            assert verdicts[curve] == "not decided"
            assert str(paths[curve]["why"]).startswith("one value of 512 MiB beside the plateau")
    reads = [path for curve, path in paths.items() if "by=destination" in curve]
    assert len(reads) == GPUS * (GPUS - 1)
    assert all("the GPU of the destination submits" in str(path["why"]) for path in reads)
    pulled = [curve for curve in common if curve.endswith("by sm") and "; " not in curve]
    assert len([curve for curve in pulled if curve.count("device@gpu") == 2]) >= GPUS * (GPUS - 1)


def test_several_runs_decide_and_find_a_slow_link(
    survey: Path, tmp_path: Path, capsys: Output
) -> None:
    runs = [results(tmp_path / f"{n}.json", (40.0 + n / 100, 55.2 + n / 100)) for n in range(4)]
    paths = compared(["compare", str(survey), str(imported(tmp_path / "t.wwp", *runs))], capsys)
    slow = paths["pinned@numa:0 -> device@gpu:1 by copy-engine"]
    assert slow["verdict"] == "suspected"
    assert paths["device@gpu:1 -> pinned@numa:0 by copy-engine"]["verdict"] == "no change"


def test_a_check_against_a_survey_names_what_decides(
    survey: Path, tmp_path: Path, capsys: Output
) -> None:
    tool = imported(tmp_path / "tool.wwp", results(tmp_path / "a.json"))
    capsys.readouterr()
    assert cli.run(["check", str(tool), "--baseline", str(survey), "--within", "0"]) == 3
    out = capsys.readouterr().out
    assert "one value of 512 MiB beside the plateau at" in out
    assert "no path in common" not in out and "no survey measured it" not in out
