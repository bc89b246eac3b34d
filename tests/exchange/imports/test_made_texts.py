"""Texts made from known values: no wrong value, no wrong blocks, and whole texts are read.

``MADE_TEXTS=10000`` tries more of them.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from exchange.imports.made_texts import MadeText, Truth, made
from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries, ImportFailed
from waywiser.exchange.imports.half_series import joined
from waywiser.exchange.imports.run_labels import ASSUMED, with_labels

COUNT = int(os.environ.get("MADE_TEXTS", "160"))
PARTS = 8


def read(path: Path) -> list[ForeignFile]:
    return with_labels(joined(detect.read(path)))


def what_of(series: ForeignSeries) -> tuple[str, tuple[str, str], int, int, bool]:
    """What a series says it is, in the words of the truth."""
    transfer = series.workload.transfers[0]
    parameters = transfer.parameters
    ends = (transfer.path.source.kind, transfer.path.destination.kind)
    places = {place.index for place in series.workload.places}
    what = parameters.get("collective") or parameters.get("test", "")
    if transfer.path.executor == "copy-engine":
        gpu = next(place.index for place in transfer.path.places if place.kind == "gpu")
        return f"gpu {gpu}", ends, 2, transfer.bytes, False
    return what, ends, len(places), transfer.bytes, "in-place" in parameters


def truths_of(series: ForeignSeries, made_text: MadeText) -> list[Truth]:
    what = what_of(series)
    (seconds,) = series.samples.span
    near = pytest.approx(seconds)
    return [each for each in made_text.truths if each[:5] == what and each.seconds == near]


def is_noted_assumption(series: ForeignSeries) -> bool:
    return any("GPUs are assumed" in note for note in series.notes)


def missed(made_text: MadeText, path: Path) -> str:
    """Why a whole text is not read completely; empty if it is. Fails for a wrong value."""
    path.write_text(made_text.text)
    try:
        files = read(path)
    except ImportFailed as error:
        assert "\n" not in str(error)
        return str(error)
    settings: dict[str, set[str]] = {}
    found = 0
    for series in (each for file in files for each in file.measured):
        truths = truths_of(series, made_text)
        if not truths and is_noted_assumption(series):
            continue
        assert truths, f"{series.workload}: {series.samples.span}\n{made_text.text}"
        possible = {truth.settings for truth in truths}
        if ASSUMED in series.notes:
            continue
        settings.setdefault(series.workload.identity, possible).intersection_update(possible)
        found += 1
    mixed = [key for key, each in settings.items() if not each]
    assert not mixed, f"{mixed}\n{made_text.text}"
    if found < len(made_text.truths):
        reasons = [each.reason for file in files for each in file.unsupported_paths]
        return f"{found} of {len(made_text.truths)}: {reasons[:3]}"
    return ""


@pytest.mark.parametrize("part", range(PARTS))
def test_texts_made_from_known_values(part: int, tmp_path: Path) -> None:
    lost = []
    whole = 0
    for n in range(part, COUNT, PARTS):
        made_text = made(random.Random(n))
        reason = missed(made_text, tmp_path / "a.txt")
        whole += made_text.is_complete
        if made_text.is_complete and reason:
            lost.append((n, reason))
    assert len(lost) <= 0.05 * whole, lost[:5]
