"""JSON results are found between lines of other programs, and several in one file."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import ImportFailed, Malformed
from waywiser.exchange.imports.json_objects import json_objects
from waywiser.exchange.imports.profiles import import_files

BANNERS = (
    "\n==========\n== CUDA ==\n==========\n\nCUDA Version 12.8.0\n",
    "[node:1:0] WARN unused environment variable\n",
    '{"level": "info", "msg": "started"}\n',
    "{not json at all\n",
    "srun: job 4711 queued and waiting for resources\n",
    "+ ./nvbandwidth -j\n",
    "",
)


def result(rates: list[float], seed: int) -> str:
    case = {
        "name": "host_to_device_memcpy_ce",
        "status": "Passed",
        "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
        "bandwidth_matrix": [[f"{rate}" for rate in rates]],
    }
    gpus = [f"{n}: Test GPU (00000000:0{n + 1}:00): (node3)" for n in range(len(rates))]
    value = {"nvbandwidth": {"GPU Device list": gpus, "version": "v0.8", "testcases": [case]}}
    return json.dumps(value, indent=random.Random(seed).choice([None, 0, 1, 4]))


@pytest.mark.parametrize("seed", range(30))
def test_runs_between_other_lines_are_a_run_each(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    runs = [[round(rng.uniform(5, 60), 2) for _ in range(2)] for _ in range(rng.randint(1, 4))]
    text = rng.choice(BANNERS)
    for n, rates in enumerate(runs):
        text += result(rates, seed + n) + "\n" + rng.choice(BANNERS)
    path = tmp_path / "a.log"
    path.write_text(text)
    found = detect.read(path)
    rate = [[512 * 2**20 / each.samples.span[0] / 1e9 for each in run.measured] for run in found]
    assert rate == [pytest.approx(rates) for rates in runs]
    imported = import_files([path], tmp_path / "a.wwp")
    assert (imported.series, imported.visits) == (2, 2 * len(runs))


def test_equal_runs_of_one_file_are_two_blocks(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(2 * (result([25.01], 0) + "\n"))
    assert import_files([path], tmp_path / "a.wwp").visits == 2


def test_a_damaged_run_does_not_lose_the_good_one(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    whole = result([25.01], 3)
    path.write_text(whole + "\n" + whole[:-40])
    (found,) = detect.read(path)
    assert len(found.measured) == 1
    assert "truncated" in found.unsupported_paths[0].reason
    path.write_text(whole[:-40] + "\n" + whole)
    assert len(detect.read(path)[0].measured) == 1


def test_a_damaged_run_alone_is_an_error_at_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("banner\n" + result([25.01], 3)[:-40])
    with pytest.raises(Malformed, match="the file ends in the middle"):
        detect.read(path)


def test_objects_of_other_programs_are_no_results(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"a": 1}\n{"b": {"benchmarks": 2}}\n')
    with pytest.raises(ImportFailed, match="has no format that can be imported"):
        detect.read(path)


def test_lines_of_objects() -> None:
    found = json_objects('x\n{"a": 1}\n\n  {"b":\n {"c": 2}}\ny {"d": 3}\n', "x")
    assert found.values == ((2, {"a": 1}), (4, {"b": {"c": 2}}))
    assert not found.errors


def test_many_beginnings_end_soon() -> None:
    assert json_objects("{\n" * 100_000, "x").values == ()


Case = dict[str, Any]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_one_bad_section_does_not_lose_the_others(position: int, tmp_path: Path) -> None:
    value = json.loads(result([25.01], 0))
    cases = value["nvbandwidth"]["testcases"]
    cases.append(cases[0] | {"name": "device_to_host_memcpy_ce"})
    bad: Case = cases[0] | {"name": "device_local_copy", "bandwidth_matrix": [["?"]]}
    cases.insert(position, bad)
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value))
    (found,) = detect.read(path)
    assert len(found.measured) == 2
    assert [each.path for each in found.unsupported_paths] == [
        f"testcases[{position}].bandwidth_matrix[0][0]"
    ]


@pytest.mark.parametrize("between", ["", " ", ",", "\n", " \n\n", ", "])
def test_objects_right_after_one_another(between: str) -> None:
    text = between.join(f'{{"n": {n}, "in": {{"n": -1}}}}' for n in range(4))
    found = json_objects(text, "x")
    assert [value["n"] for _, value in found.values] == [0, 1, 2, 3]
    assert not found.errors
