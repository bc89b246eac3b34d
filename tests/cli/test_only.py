"""``--only`` selects by the terms of the field in every command that takes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser import cli

SURVEYS = RESULTS / "2026-11-23-surveys"
NVBANDWIDTH = Path(__file__).parent.parent / "exchange" / "imports" / "data"

Output = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def two_gpus(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("two_gpus")
    names = ("two-h200-check-1", "two-h200-check-2")
    return [
        str(unpacked(SURVEYS / f"{name}.wwp.xz", folder / f"{name}.wwp")) for name in names
    ]  # fmt: skip


def shown(file: str, only: str, capsys: Output) -> list[str]:
    """The workloads that ``show`` has."""
    assert cli.run(["show", file, "--json", "--only", only]) == 0
    return [series["workload"] for series in json.loads(capsys.readouterr().out)["series"]]


def test_show_selects_by_link(two_gpus: list[str], capsys: Output) -> None:
    between = shown(two_gpus[0], "nvlink", capsys)
    assert between and all("numa" not in text for text in between)
    to_host = shown(two_gpus[0], "pcie", capsys)
    assert to_host and all("numa" in text for text in to_host)
    assert shown(two_gpus[0], "pcie d2h gpu:1", capsys) == [
        text for text in to_host if text.startswith("device@gpu:1 -> ") and ";" not in text
    ]


def test_compare_selects_by_link(two_gpus: list[str], capsys: Output) -> None:
    cli.run(["compare", *two_gpus, "--json", "--only", "nvlink", "--fail-on", "never"])
    paths = json.loads(capsys.readouterr().out)["paths"]
    assert {path["headline"] for path in paths} == {"P2P"}


@pytest.mark.parametrize(
    ("only", "says"),
    [
        ("nvlnk", "did you mean 'nvlink'? nearest: "),
        ("pinend gpu:0", "did you mean 'pinned gpu:0'? nearest: pinned@numa:0 -> device@gpu:0 by"),
        ("Host Copy", "--only 'Host Copy' was not measured (waywiser survey --only 'Host Copy'"),
        ("ring", "it needs 3 GPUs, available: 2 (waywiser topology FILE shows the machine of a"),
        ("hots-to-all", "did you mean 'host-to-all'?"),
        ("latency", "(latency: transfers of up to 4 KiB, and operations whose names have this"),
    ],
)
def test_every_command_corrects_words(
    two_gpus: list[str], only: str, says: str, capsys: Output
) -> None:
    for command in (["show", two_gpus[0]], ["compare", *two_gpus]):
        assert cli.run([*command, "--only", only]) == 2
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1
        assert says in said.err


def test_links_of_imported_results_are_not_known(tmp_path: Path, capsys: Output) -> None:
    source = next(NVBANDWIDTH.glob("*nvbandwidth*"))
    target = str(tmp_path / "imported.wwp")
    assert cli.run(["import", str(source), "-o", target]) == 0
    capsys.readouterr()
    assert cli.run(["show", target, "--only", "nvlink"]) == 2
    said = capsys.readouterr().err
    assert "--only 'nvlink': the links of these paths are not known (write p2p or h2d" in said
    assert said.count("\n") == 1 and len(said) < 150
