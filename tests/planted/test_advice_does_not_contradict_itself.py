"""Advice and policies: the figures are those of the copy that is requested, what is said of the
other methods agrees with their times, and a headline counts what its rows show."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.analysis.questions.machines import machine
from tests.analysis.questions.subjects import curve, postal, subject

from kept import RESULTS, unpacked
from waywiser.analysis.policy.advice import Advice, CopyRequest, advise
from waywiser.analysis.policy.build import decision_tables, policy_of
from waywiser.analysis.policy.difference import compare_policies
from waywiser.analysis.policy.errors import PolicyError
from waywiser.curves.curve import Point
from waywiser.curves.subject import Subject
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile import Profile
from waywiser.render.parts import Words
from waywiser.render.views.advice import advice_parts
from waywiser.render.views.policy import difference_parts
from waywiser.stats.decision import THRESHOLD
from waywiser.stats.method_choice import UNKNOWN, Timed, winner
from waywiser.words.sizes import format_bytes

FILES = Path(__file__).parents[1] / "exchange" / "imports" / "data"
MOST = 12
"""Copies of one profile that are requested."""

LARGE = 2**24

SIZES = (1024, 2**16, 2**20, 2**24, 2**26)


def planted(seed: int) -> Subject:
    """GPUs, some with a slow link, copied to by one method or two, at all sizes or at few."""
    rng = random.Random(f"advice {seed}")
    gpus, found = rng.choice((1, 2, 4)), []
    slow = {rng.randrange(gpus): rng.choice((0.04, 0.12, 0.8)) for _ in range(rng.randrange(3))}
    late = {rng.randrange(gpus): rng.choice((0.1, 0.5))} if rng.random() < 0.3 else {}
    staged = rng.uniform(0.7, 1.4)
    few = rng.random() < 0.3
    for gpu in range(gpus):
        for source, back in (("pageable", False), ("pinned", False), ("pinned", True)):
            ends = f"{source}@numa:0", f"device@gpu:{gpu}"
            path = " -> ".join(reversed(ends) if back else ends)
            rate, start = 50e9 / (1 + slow.get(gpu, 0)), 5e-6 * (1 + late.get(gpu, 0))
            sizes = SIZES[-1:] if few and gpu else SIZES
            times = [("copy-engine", 1.0)]
            if source == "pageable":
                times.append(("staged", staged))
            for executor, factor in times:
                found.append(
                    curve(
                        f"{path} by {executor}",
                        postal(start * (2 - factor), rate * factor),
                        sizes,
                        blocks=rng.choice((1, 3)),
                        seed=seed,
                    )
                )
    return subject(*found, machine=machine(gpus))


def own_points(found: Advice, measured: Subject) -> Iterator[Point]:
    """What the profile has of the advised method for this very copy: of sizes at which the time
    from the call on is that of the copy."""
    for each in measured.curves:
        transfer = each.workload.transfer
        if transfer is None or transfer.layout or each.workload.states:
            continue
        ends = found.request.source, found.request.destination
        same = transfer.path.executor == found.best.method.executor
        if transfer.path.ends == ends and same and not transfer.parameters:
            yield from (p for p in each.measured if p.bytes == found.request.bytes >= LARGE)


def contradictions(found: Advice, measured: Subject) -> Iterator[str]:
    best, lines = found.best, [p.text for p in advice_parts(found) if isinstance(p, Words)]
    for point in own_points(found, measured):
        noise = (best.time.high - best.time.low) / 2 / best.time.seconds
        apart = abs(math.log(point.seconds / best.time.seconds))
        if not best.method.settings and apart > math.log1p(THRESHOLD) + noise + UNKNOWN / 10:
            yield f"{lines[1]}: {point.text} takes {point.seconds}"
    if not best.low <= best.bytes_per_second <= best.high:
        yield lines[1]
    fastest = "the fastest" in found.why
    for other in found.alternatives:
        if fastest and not other.excluded and other.margin < 0:
            yield f"{found.why} beside {other.margin}"
    said = re.search(r"takes ([\d.]+)% less time, which is not more than the noise", found.why)
    if said and float(said[1]) / 100 > UNKNOWN:
        yield found.why
    shown = [re.search(r"takes (\d+)% (longer|less time)", line) for line in lines]
    margins = [(1 if m[2] == "longer" else -1) * int(m[1]) / 100 for m in shown[3:] if m]
    for margin, other in zip(margins, found.alternatives, strict=False):
        if abs(margin - other.margin) > 0.006:
            yield f"{margin} for {other.margin}"


def copies(measured: Subject) -> list[CopyRequest]:
    """Copies that the profile has, of several sizes."""
    found: dict[tuple[str, int], CopyRequest] = {}
    for each in measured.curves:
        transfer = each.workload.transfer
        if transfer is None or transfer.layout or each.workload.states:
            continue
        for point in (each.measured[:1] + each.measured[-1:]) if each.measured else ():
            ends = transfer.path.ends
            request = CopyRequest(ends[0], ends[1], point.bytes)
            found.setdefault((f"{ends}", point.bytes), request)
    return list(found.values())


def check(measured: Subject, most: int = MOST) -> None:
    requests = copies(measured)
    random.Random(len(requests)).shuffle(requests)
    for request in requests[:most]:
        try:
            found = advise([measured], request)
        except PolicyError:  # a copy of which policies have no class
            continue
        assert not list(contradictions(found, measured)), format_bytes(request.bytes)
    tables = decision_tables([measured])
    for table in tables:
        for each in table.decisions:
            chosen = each.time
            for time in each.times:
                if time is not None and time.seconds * (1 + UNKNOWN) < chosen.seconds:
                    pair = [Timed(t.seconds, t.interval) for t in (time, chosen)]
                    assert winner(*pair) != "first", f"{table.kind} at {each.bytes}"


@pytest.mark.parametrize("seed", range(30))
def test_planted_advice(seed: int) -> None:
    check(planted(seed), 30)


@pytest.mark.parametrize(
    "name",
    [
        "2026-11-23-surveys/h100-check-1",
        "2026-11-23-surveys/two-h200-check-1",
        "2026-11-20-h200-catalogue/four-gpus/check",
        "2026-11-20-h200/one-gpu/quick",
    ],
)
def test_advice_of_kept_profiles(name: str, tmp_path: Path) -> None:
    with Profile.open(unpacked(RESULTS / f"{name}.wwp.xz", tmp_path / "kept.wwp")) as profile:
        check(Subject.of(profile))


@pytest.mark.parametrize("file", sorted(FILES.iterdir()), ids=lambda file: file.name)
def test_advice_of_imported_files(file: Path, tmp_path: Path) -> None:
    import_files([file], tmp_path / "imported.wwp")
    with Profile.open(tmp_path / "imported.wwp") as profile:
        check(Subject.of(profile), 3)


def policies(subjects: Sequence[Subject]) -> list[str]:
    """The lines about the difference of two policies."""
    tables = [decision_tables([each]) for each in subjects]
    made = [policy_of(own, [each]) for own, each in zip(tables, subjects, strict=True)]
    found = compare_policies(*made, *tables)
    (head, *_) = difference_parts(found, ["a", "b"], made)
    assert isinstance(head, Words)
    differ, of = map(int, re.findall(r"\d+", head.text)[:2])
    assert 0 <= differ <= of
    assert bool(differ) == bool(found.differences)
    assert all(one != other for one, other in (d.methods for d in found.differences))
    return [head.text]


@pytest.mark.parametrize("seed", range(10))
def test_differences_of_policies(seed: int) -> None:
    made = planted(seed)
    (same,) = policies([made, made])
    assert same.startswith("0 of ")
    policies([made, planted(seed + 100)])
