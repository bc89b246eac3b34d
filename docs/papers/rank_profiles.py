"""The kept profiles of ranks, as the pages about papers read them."""

from __future__ import annotations

import lzma
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from waywiser.curves.curve import points_of
from waywiser.machine.machine import Machine
from waywiser.model.curve import CurveTimes, fit_curves, times_of
from waywiser.model.held_out import divided, thinned
from waywiser.model.machine_model import fitted_model
from waywiser.model.message_strategies import MessageStrategies
from waywiser.model.messages import MessageClass, MessageTimes, classes_of, curve_of, messages_of
from waywiser.model.rate import CountModel
from waywiser.model.strategies import Strategy, StrategyStep, of_curve
from waywiser.model.strategy_steps import MessageModels
from waywiser.model.survey_strategies import survey_strategies
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.stats.scatter import medians

RESULTS = Path(__file__).parents[1] / "results"
PROFILES = "*ranks*/*.wwp.xz"
"""The folders with surveys of ranks, below docs/results. A file is named after the link between its
GPUs."""
COPIES = "2026-11-23-surveys/h100-standard-1.wwp.xz"
"""A survey of copies of the same model of GPU."""
NAMES = {"nvlink": "NVLink", "tcp": "TCP"}


class RankProfile(NamedTuple):
    """One survey of ranks."""

    name: str
    """The link between the GPUs: ``NVLink``, ``TCP``; ``NVLink, windows`` is another survey."""
    file: str
    machine: Machine
    messages: list[MessageTimes]
    classes: list[MessageClass]
    counts: tuple[CountModel, ...]
    compared: list[MessageStrategies]

    @property
    def gpus(self) -> str:
        """The models of its GPUs."""
        return ", ".join(dict.fromkeys(gpu.name for gpu in self.machine.gpus))

    def curve(self, kind: str, method: str) -> CurveTimes | None:
        """The measured times of one message between memories of a kind; None without any."""
        found = [each for each in self.classes
                 if (each.source, each.destination, each.test, each.method)
                 == (kind, kind, "", method)]  # fmt: skip
        return curve_of(found[0], self.messages) if found else None

    def of_unit(self, unit: str) -> list[MessageStrategies]:
        """Comparisons by the number of messages, pairs or ranks."""
        return [each for each in self.compared if each.unit == unit]


def median_times(curve: CurveTimes) -> dict[int, float]:
    """Bytes -> seconds, as measured."""
    return dict(zip(curve.blocks.bytes, medians(curve.blocks.table).tolist(), strict=True))


class HeldOut(NamedTuple):
    """A curve beside what models of its other sizes say."""

    measured: Mapping[int, float]
    modelled: Mapping[int, float]
    """Sizes that were held out: every second one."""

    @property
    def errors(self) -> list[float]:
        """Relative, without signs."""
        return [abs(self.modelled[n] / self.measured[n] - 1) for n in self.modelled]


def held_out(curve: CurveTimes) -> HeldOut:
    """Every second size predicted from the others."""
    sizes = list(curve.blocks.bytes)
    measured = median_times(curve)
    kept, out = divided(curve)
    (model,) = fit_curves([thinned(curve, kept)])
    found = {sizes[n]: model.predict(sizes[n]) for n in out}
    return HeldOut(measured, {size: each.seconds for size, each in found.items() if each})


def half_modelled(name: str, curve: CurveTimes) -> Strategy:
    """A method as a model of every second size of its curve has it."""
    (model,) = fit_curves([thinned(curve, divided(curve)[0])])
    return Strategy(name, (StrategyStep("all", lambda _, bytes: of_curve(model, bytes)),))


def rank_profiles(results: Path = RESULTS) -> Iterator[RankProfile]:
    """All of them, by file name."""
    for packed in sorted(results.glob(PROFILES)):
        with _opened(packed) as profile:
            if profile.machine.ranks:
                yield _read(profile, packed, str(packed.relative_to(results)))


@contextmanager
def _opened(packed: Path) -> Iterator[Profile]:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "profile.wwp"
        file.write_bytes(lzma.decompress(packed.read_bytes()))
        with Profile.open(file) as profile:
            yield profile


def _read(profile: Profile, packed: Path, file: str) -> RankProfile:
    machine, frame = profile.machine, SeriesFrame.read(profile)
    messages = messages_of(points_of(frame), machine.ranks)
    model = fitted_model(profile, frame)
    way, _, more = packed.name.removesuffix(".wwp.xz").partition("-")
    return RankProfile(
        NAMES.get(way, way) + (f", {more}" if more else ""),
        file,
        machine,
        messages,
        classes_of(messages),
        model.counts,
        survey_strategies(messages, MessageModels.of(model), machine),
    )


@cache
def copies() -> tuple[tuple[str, CurveTimes], ...]:
    """Copies of one GPU to and from pinned memory, of a survey without ranks."""
    with _opened(RESULTS / COPIES) as profile:
        curves = times_of(SeriesFrame.read(profile), profile.machine)
    texts = {
        "GPU to host": "device@gpu:0 -> pinned@numa:0 by copy-engine",
        "host to GPU": "pinned@numa:0 -> device@gpu:0 by copy-engine",
    }
    known = {curve.text: curve for curve in curves}
    return tuple((name, known[text]) for name, text in texts.items())


def between_marks(text: str, begin: str, end: str, made: Sequence[str]) -> str:
    """The page with what was made between its marks."""
    head, _, rest = text.partition(begin)
    _, _, tail = rest.partition(end)
    return f"{head}{begin}{chr(10).join(made)}{end}{tail}"
