"""Labels that keep runs with different settings apart.

Blocks are runs with equal settings. If the runs of one curve differ in what their commands say, in
one text or in several, each has a label with what is not common to all of them: as the parameter
``run`` of its transfers. The runs that have no more than what is common to all have none.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries
from waywiser.exchange.imports.said_settings import UNSURE
from waywiser.words import Workload

RUN = "run"
"""The parameter with the label."""

LONGEST = 120
"""Characters of a label; a longer one ends in a digest of the whole."""

ASSUMED = "the command of this run is not in the file: it is assumed to have no settings, as others"
"""The note of a run whose command is not known, beside runs whose commands have no settings."""

REPEATED = "no command is above the tables of this curve: they are taken as repetitions of one run"
"""The note of several runs whose commands are not known."""

UNKNOWN = "unknown"
"""The label of a run whose command is not known, beside runs with settings; further ones have a
number."""

NOTE = "runs of other settings are series of their own: run= says what differs"

_REPLACED = str.maketrans({",": "+", ";": "+", "[": "(", "]": ")"})


def with_labels(files: Sequence[ForeignFile]) -> list[ForeignFile]:
    """The same with a label for each series of a curve whose runs differ in their settings."""
    files = _numbered(files)
    settings: dict[str, set[tuple[str, ...] | None]] = defaultdict(set)
    for each in (each for file in files for each in file.measured):
        settings[each.workload.curve].add(each.settings)
    differ = {curve for curve, found in settings.items() if len(found) > 1}
    if not differ:
        return _with_assumption(files)
    common = {
        curve: set.intersection(*(set(each) for each in settings[curve] if each is not None))
        for curve in differ
    }

    seen: Counter[str] = Counter()

    def labelled(series: ForeignSeries) -> ForeignSeries:
        curve = series.workload.curve
        if curve not in differ:
            return series
        if series.settings is None:
            seen[series.workload.identity] += 1
        number = seen[series.workload.identity]
        return _labelled(series, settings[curve], common[curve], number)

    return [replace(each, measured=tuple(map(labelled, each.measured))) for each in files]


def _with_assumption(files: Sequence[ForeignFile]) -> list[ForeignFile]:
    """The same with a note for series of a text that has several runs, and no command."""

    def of(file: ForeignFile) -> ForeignFile:
        seen = Counter(each.workload.identity for each in file.measured)
        return replace(
            file,
            measured=tuple(
                each.noted(REPEATED)
                if each.settings is None and seen[each.workload.identity] > 1
                else each
                for each in file.measured
            ),
        )

    return [of(each) for each in files]


def _numbered(files: Sequence[ForeignFile]) -> Sequence[ForeignFile]:
    """The same with a number of its own for each run whose settings are uncertain."""
    numbers: dict[tuple[int, str], int] = {}

    def changed(n: int, series: ForeignSeries) -> ForeignSeries:
        unsure = next((e for e in series.settings or () if e.startswith(UNSURE)), "")
        if not unsure:
            return series
        number = numbers.setdefault((n, unsure), len(numbers) + 1)
        others = tuple(each for each in series.settings or () if each != unsure)
        return replace(series, settings=(*others, f"{UNSURE}{number}"))

    return [
        replace(file, measured=tuple(changed(n, each) for each in file.measured))
        for n, file in enumerate(files)
    ]


def _labelled(
    series: ForeignSeries, settings: set[tuple[str, ...] | None], common: set[str], number: int
) -> ForeignSeries:
    if not any(settings):
        return series.noted(ASSUMED) if series.settings is None else series
    label = UNKNOWN if number == 1 else f"{UNKNOWN}-of-{number}"
    if series.settings is not None:
        label = label_of(each for each in series.settings if each not in common)
    if not label:
        return series
    return with_run(series, label).noted(NOTE)


def with_run(series: ForeignSeries, label: str) -> ForeignSeries:
    """The series with a label, whatever other runs there are."""
    return replace(series, workload=_with_run(series.workload, label_of([label])))


def label_of(settings: Iterable[str]) -> str:
    """Settings as one word that a parameter may have; empty for none."""
    text = "&".join(settings).translate(_REPLACED)
    text = re.sub(r"\s+", "_", text)
    word = "".join(each if "!" <= each <= "~" else "?" for each in text)
    if len(word) <= LONGEST and "?" not in word:
        return word
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{word[:LONGEST]}~{digest}"


def _with_run(workload: Workload, label: str) -> Workload:
    operation = workload.operation
    if operation is not None:
        changed = replace(operation, parameters={**operation.parameters, RUN: label})
        return replace(workload, operation=changed)
    transfers = tuple(
        replace(each, parameters={**each.parameters, RUN: label}) for each in workload.transfers
    )
    return replace(workload, transfers=transfers)
