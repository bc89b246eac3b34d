"""Predictions that fall with the size on real profiles, with the text that users see."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from kept import RESULTS, unpacked
from waywiser import cli
from waywiser.model.capacity import CapacityModel
from waywiser.model.curve import CurveModel, fit_curves, times_of
from waywiser.model.falling_times import LEAST_FALL
from waywiser.model.machine_model import MachineModel, is_of_copies
from waywiser.model.prediction import Predictor
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words import Workload, format_bytes, parse_bytes
from waywiser.words.number_format import format_time

PROFILES = (
    "2026-11-20-h200/one-gpu/standard",
    "2026-11-23-surveys/h100-standard-2",
    "2026-11-24-policy/h100-standard",
    "2026-11-25-sets/h200-model-3",
)
FALLS = re.compile(
    r"the predicted time falls with the size: (.+) takes (.+), (.+)% less than (.+) \((.+)\): "
    r"another protocol, or noise"
)


def fitted(name: str, folder: Path) -> tuple[Predictor, list[CurveModel]]:
    file = unpacked(RESULTS / f"{name}.wwp.xz", folder / "x.wwp")
    with Profile.open(file) as profile:
        frame, machine = SeriesFrame.read(profile), profile.machine
    curves = [each for each in times_of(frame, machine) if is_of_copies(each.text, machine)]
    models = fit_curves(curves, 2)
    return Predictor(MachineModel("", CapacityModel(machine, {}), curves=tuple(models))), models


def sizes_of(curve: CurveModel) -> list[int]:
    """The measured sizes, and one between each two."""
    between = [round((a * b) ** 0.5) for a, b in pairwise(curve.sizes)]
    unit = 8 if all(size % 8 == 0 for size in curve.sizes) else 1
    return sorted({*curve.sizes, *(size // unit * unit for size in between)} - {0})


@pytest.mark.parametrize("name", PROFILES)
def test_a_falling_prediction_says_so_and_no_other_does(name: str, tmp_path: Path) -> None:
    predictor, models = fitted(name, tmp_path)
    falling = rising = 0
    rise = [each for each in models if list(each.times) == sorted(each.times)]
    for curve in [each for each in models if each not in rise] + rise[:15]:
        longest = 0.0
        for size in sizes_of(curve):
            transfers = Workload.parse(curve.text).transfers
            own = tuple(msgspec.structs.replace(each, bytes=size) for each in transfers)
            found = predictor.predict(Workload(own))
            notes = [each for note in found.notes if (each := FALLS.fullmatch(note))]
            if found.span < (1 - 2 * LEAST_FALL) * longest:
                assert len(notes) == 1, (curve.text, size)
                falling += 1
            elif found.span >= longest:
                rising += not notes
            for own, seconds, share, other, longer in (note.groups() for note in notes):
                assert (own, seconds) == (format_bytes(size), format_time(found.span))
                assert parse_bytes(other) < size
                assert float(share) >= 100 * LEAST_FALL
                assert longer != seconds
            longest = max(longest, found.span)
    assert falling > 5 and rising > 50


def test_the_shown_text_agrees_with_the_prediction_of_the_other_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(unpacked(RESULTS / f"{PROFILES[0]}.wwp.xz", tmp_path / "x.wwp"))
    with Profile.open(file) as profile:
        frame, machine = SeriesFrame.read(profile), profile.machine
    models = fit_curves(times_of(frame, machine), 2)
    curve = next(each for each in models if each.text.endswith("pageable@numa:0 by cpu"))
    falls = [size for size, t in zip(curve.sizes, curve.times, strict=True)
             if t < 0.9 * max(curve.times[: curve.sizes.index(size) + 1])]  # fmt: skip
    assert cli.run(["predict", file]) == 0
    for size in falls[:3]:
        said = predicted(file, f"{curve.text} of {size}", capsys)
        (note,) = FALLS.findall(said)
        assert note[0] == format_bytes(size)
        other = predicted(file, f"{curve.text} of {note[3].replace(' ', '')}", capsys)
        assert f"{float(note[4].split()[0]):.2g}" in other or note[4] in other
    assert falls


def predicted(file: str, workload: str, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert cli.run(["predict", file, "-w", workload]) == 0
    return " ".join(capsys.readouterr().out.split())
