"""References of a run-only test of ReFrame: the bandwidth of each headline path of a profile.

ReFrame fails a test if a value is below its reference by more than a tolerance. The tolerance of a
path is the smallest loss that a comparison of two such profiles finds with a power of 80 %
(`waywiser.stats.decision`), so that noise alone rarely fails a healthy node. A name has no colon:
in ReFrame it separates the parts of a scope (the attribute ``reference`` in its manual, 4.10).
"""

from __future__ import annotations

import msgspec

from waywiser.analysis.comparison.comparison import compare
from waywiser.analysis.comparison.part_change import SizeChange
from waywiser.curves import Subject
from waywiser.exchange.settings.origin import SettingsError
from waywiser.version import __version__
from waywiser.words import Value, format_bytes

REMEDY = "measure them in several processes: waywiser survey --preset check"


class Reference(Value, frozen=True):
    """A value that a test compares, as ReFrame has it."""

    name: str
    """What ReFrame calls it: the path and its size."""
    workload: str
    """Its row in ``waywiser export --summary``."""
    gb_per_s: float
    """The bandwidth of the profile."""
    tolerance: float
    """The relative loss from which on the test fails."""


def reframe_references(subject: Subject) -> str:
    """The JSON text. Raises `SettingsError` if no headline path has a bandwidth and a noise."""
    found = compare([subject], [subject])
    rows = [
        reference
        for path in sorted(found.paths, key=lambda path: path.name)
        if path.headline is not None
        and path.size is not None
        and (reference := _reference(path.name, path.size, path.detectable)) is not None
    ]
    if not rows:
        raise SettingsError(
            "no headline path has a bandwidth of several processes",
            remedy=subject.surveyed(REMEDY),
        )
    encoded = msgspec.json.encode({"waywiser": __version__, "references": rows})
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def _reference(path: str, size: SizeChange, detectable: float | None) -> Reference | None:
    """None without a bandwidth, or if the noise is not known: then any tolerance is a guess."""
    if size.is_time or detectable is None:
        return None
    name = f"{path} of {format_bytes(size.bytes)}".replace(":", "")
    rate = size.rated_bytes / size.seconds_before / 1e9
    return Reference(name, size.series, rate, detectable)
