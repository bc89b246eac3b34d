"""No survey repeats what another tool measured: nothing said of imported files asks for one."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from waywiser import cli
from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.comparison_text import headline_lines
from waywiser.analysis.comparison.fleet import assess_fleet
from waywiser.analysis.questions.all_answers import answers
from waywiser.curves.subject import Subject, read_subject
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("file", sorted(DATA.iterdir()), ids=lambda file: file.name)
def test_no_survey_is_asked_for(file: Path, tmp_path: Path) -> None:
    target = tmp_path / "imported.wwp"
    import_files([file], target, machine="n")
    with Profile.open(target) as profile:
        subject = Subject.of(profile)
    said = msgspec.json.encode(list(answers(subject))).decode()
    found = compare([read_subject(target)], [read_subject(target)])
    said += " ".join(headline_lines(found))
    assert "waywiser survey" not in said
    assert "survey them again" not in said


def listing(folder: Path, gpus: int, rate: float) -> Path:
    file = folder / f"{gpus}-{rate}.json"
    value = {"nvbandwidth": {
        "GPU Device list": [f"{n}: NVIDIA H100 (0000:{n + 1:02x}:00): (n{rate})"
                            for n in range(gpus)],
        "testcases": [{"name": "host_to_device_memcpy_ce", "status": "Passed",
                       "bandwidth_matrix": [[str(rate + n / 10) for n in range(gpus)]]}],
    }}  # fmt: skip
    file.write_text(json.dumps(value))
    target = folder / f"{gpus}-{rate}.wwp"
    import_files([file], target)
    return target


def test_results_of_some_gpus_are_no_proof_that_others_are_missing(tmp_path: Path) -> None:
    files = [listing(tmp_path, 4, 50 + n / 100) for n in range(6)] + [listing(tmp_path, 3, 50.5)]
    fleet = assess_fleet([read_subject(file) for file in files])
    (suspect,) = fleet.of("bad", "suspect")
    assert suspect.status == "suspect"
    assert "its results name 3 of 4 GPUs" in suspect.faults[0].statement
    assert suspect.faults[0].again == ""


H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"


@pytest.mark.parametrize("words", [
    ["predict", "--validate"], ["predict", "--crossovers"], ["export", "--for", "simgrid"],
    ["predict", "--rule", "published"], ["predict"], ["tune"],
    ["predict", "-w", f"{H2D} of 64MiB; pageable@numa:0 -> device@gpu:1 by copy-engine of 64MiB"],
    ["predict", "-w", "pageable@numa:0 -> device@gpu:1 by copy-engine of 64MiB"],
    ["predict", "-w", f"{H2D} of 64GiB"],
])  # fmt: skip
def test_no_verb_that_models_asks_for_a_survey(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles = [listing(tmp_path, 2, 50.0), tmp_path / "collectives.wwp"]
    import_files([DATA / "nccl.txt"], profiles[1], machine="n")
    for file in profiles:
        cli.run([words[0], str(file), *words[1:]])
        said = "".join(capsys.readouterr())
        assert said
        assert "waywiser survey --" not in said
        assert "survey the machine" not in said
