"""The share of a held-out job's times that is in the 95 % intervals of models of the others."""

from __future__ import annotations

import msgspec
import pytest

from exchange.imports.shared_files import shared
from waywiser.curves.curve import points_of
from waywiser.exchange.imports import detect
from waywiser.model.curve import fit_curves
from waywiser.model.messages import MessageTimes, classes_of, curve_of, messages_of
from waywiser.model.rate import fit_all_counts
from waywiser.profile.series_frame import SeriesFrame
from waywiser.words.records import Series, Visit

JOBS = range(3)


@pytest.fixture(scope="module")
def summit() -> list[MessageTimes]:
    series: dict[str, Series] = {}
    for path in sorted(shared("benchpress/summit").iterdir()):
        for each in detect.read(path)[0].measured:
            known = series.setdefault(each.workload.identity, Series(each.workload, ()))
            visit = Visit(each.workload, len(known.visits), "limit", "", samples=each.samples)
            series[each.workload.identity] = Series(each.workload, (*known.visits, visit))
    return messages_of(points_of(SeriesFrame.of(series.values())))


def without(messages: list[MessageTimes], job: int) -> list[MessageTimes]:
    return [
        msgspec.structs.replace(each, seconds=each.seconds[:job] + each.seconds[job + 1 :])
        for each in messages
        if len(each.seconds) > 1
    ]


def test_single_messages_and_copies(summit: list[MessageTimes]) -> None:
    inside = []
    for job in JOBS:
        rest = without(summit, job)
        classes = classes_of(rest)
        models = fit_curves([curve_of(each, rest) for each in classes], 2)
        for found, model in zip(classes, models, strict=True):
            for each in summit:
                is_own = each.kind == found.kind and each.ranks in found.pairs
                if is_own and each.count == 1 and len(each.seconds) > job:
                    prediction = model.predict(each.bytes)
                    assert prediction is not None
                    inside.append(prediction.interval.contains(each.seconds[job]))
    assert len(inside) == 9396
    assert sum(inside) / len(inside) == pytest.approx(0.981, abs=0.005)


def test_several_messages(summit: list[MessageTimes]) -> None:
    inside = []
    for job in JOBS:
        models = {(each.kind, each.test): each for each in fit_all_counts(without(summit, job))}
        for each in summit:
            model = models.get((each.source, each.test))
            found = model.predict(each.count, each.bytes) if model is not None else None
            if found is not None and len(each.seconds) > job:
                inside.append(found.interval.contains(each.seconds[job]))
    assert len(inside) == 7512
    assert sum(inside) / len(inside) == pytest.approx(0.950, abs=0.005)
