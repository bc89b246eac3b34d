"""The guide about placement shows what the program says of the profile that it names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.questions.machines import machine
from analysis.questions.subjects import curve, postal
from kept import RESULTS, unpacked
from waywiser.cli import run
from waywiser.profile.writable import write_profile

GUIDE = RESULTS.parent / "how-to" / "place-threads-and-buffers.md"
EXAMPLE = GUIDE.parent / "examples" / "placement.py"
OUTPUT = re.compile(r"<!-- output -->\n```\n(.*?)```", re.DOTALL)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profile that the guide names."""
    (name,) = re.findall(r"docs/results/(\S+\.wwp\.xz)", GUIDE.read_text())
    return unpacked(RESULTS / name, tmp_path_factory.mktemp("guide") / "four.wwp")


def test_the_output_is_that_of_the_command(four: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["advise", str(four), "--placement"]) == 0
    (shown,) = OUTPUT.findall(GUIDE.read_text())
    assert shown == capsys.readouterr().out


def test_the_table_and_the_values_are_printed(
    four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["advise", str(four), "--placement", "--table"]) == 0
    text = capsys.readouterr().out
    assert "Cost of the worst choice" in text and "GPUs that copy together" in text
    assert run(["advise", str(four), "--placement", "--json"]) == 0
    assert '"source": "not known"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--placement", "--from", "pageable@numa:0"], "--to and --bytes missing"),
        (["--placement", "--polite"], "--from and --to and --bytes missing"),
        (["--from", "pageable@numa:0"], "--to and --bytes missing"),
    ],
)
def test_what_a_copy_needs_is_named(
    four: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["advise", str(four), *words]) == 2
    assert said in capsys.readouterr().err


def test_a_copy_and_a_placement_are_answered_together(
    four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = ["--from", "pinned@numa:0", "--to", "device@gpu:0", "--bytes", "64MiB"]
    alone = []
    for words in (copy, ["--placement"]):
        assert run(["advise", str(four), *words]) == 0
        alone.append(capsys.readouterr().out)
    assert run(["advise", str(four), *copy, "--placement"]) == 0
    assert capsys.readouterr().out == "".join(alone)
    assert run(["advise", str(four), *copy, "--placement", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"schema", "copy", "placement"}


def printed(profile: Path) -> list[str]:
    answer = subprocess.run(
        [sys.executable, EXAMPLE, profile], capture_output=True, text=True, check=True
    )
    return answer.stdout.splitlines()


def test_the_example_runs_on_a_machine_that_hides_its_nodes(four: Path) -> None:
    found = printed(four)
    assert found[0] == "CUDA_VISIBLE_DEVICES=0 python serve.py  # any NUMA node: not known"
    assert re.fullmatch(
        r"the worst pair of GPUs has [01]\.\d% less bandwidth \(equivalent\)", found[4]
    )


def test_the_example_names_the_nodes_that_were_measured(tmp_path: Path) -> None:
    visits = [
        visit
        for gpu in range(2)
        for node in range(2)
        for series in curve(
            f"pinned@numa:{node} -> device@gpu:{gpu} by copy-engine",
            postal(5e-6, 50e9 if node == gpu else 40e9),
            (2**24, 2**26),
        )
        for visit in series.visits
    ]
    file = tmp_path / "two.wwp"
    write_profile(file, machine(2, 2), {}, visits, plan_json="{}", command=("waywiser",))
    assert printed(file) == [
        f"CUDA_VISIBLE_DEVICES={n} python serve.py  # with numactl --cpunodebind={n} --membind={n}"
        for n in range(2)
    ]
