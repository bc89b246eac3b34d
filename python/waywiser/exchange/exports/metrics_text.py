"""Metrics as Prometheus' text exposition, version 0.0.4, for the textfile collector of a node
exporter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from waywiser.words import visible

Sample = tuple[Mapping[str, str], float]
"""Labels and a value."""


class Family(NamedTuple):
    """All samples of one name."""

    name: str
    kind: str
    help: str
    samples: list[Sample]


def metrics_text(families: Iterable[Family]) -> str:
    """The families that have samples, each with HELP and TYPE. Of samples with equal labels the
    first counts: two machines may have one host name, and a scraper takes no file with both."""
    return "".join(_family(Family(*family)) for family in families if family[3])


def _family(family: Family) -> str:
    lines = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
    written: dict[str, str] = {}
    for labels, value in family.samples:
        named = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
        written.setdefault(named, f"{family.name}{{{named}}} {value:.17g}")
    lines += written.values()
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """A label's value, as the format wants it, and nothing that a terminal obeys."""
    return visible(text).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
