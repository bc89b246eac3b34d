"""Fleets of planted and of kept surveys: no host is fine with a path further off than the loss that
is said to be found, counts agree with hosts, and findings of a profile by itself are listed."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from itertools import combinations

import msgspec
import numpy as np
import pytest

from analysis.comparison import nodes
from kept import RESULTS, unpacked
from planted.changes import slow_group, slow_path, survey
from waywiser.analysis.comparison.fleet import Fleet, assess_fleet
from waywiser.analysis.comparison.hardware import equal_hosts
from waywiser.analysis.comparison.slow_paths import PathTimes
from waywiser.curves.subject import Subject, read_subject
from waywiser.render.fleet import fleet_document
from waywiser.render.page import page
from waywiser.render.parts import Words
from waywiser.render.views.fleet import fleet_parts
from waywiser.stats.decision import THRESHOLD
from waywiser.words.status import Reason

KINDS: tuple[Reason, ...] = ("bad", "suspect", "fine")

OWN = "the link of gpu:1 to the host is slower than those of the others: H2D −11 %"


def planted(seed: int) -> list[Subject]:
    """Hosts of which one, two or none have lost something, some of them noisy."""
    rng = random.Random(f"fleet {seed}")
    hosts, gpus = rng.choice((4, 5, 8, 24)), rng.choice((1, 2, 4))
    slow: Sequence[nodes.Slow] = (
        slow_path(nodes.h2d(0), rng.choice((1.02, 1.05, 1.12, 1.8))),
        slow_group(rng.choice(("H2D", "D2H", "host-to-all")), rng.uniform(1.0, 1.3)),
        nodes.slow_host_link(0, rng.choice((1.04, 1.1, 2.0))),
        lambda _: rng.uniform(1.03, 1.2),
    )
    ill = dict(zip(rng.sample(range(hosts), 2), rng.sample(slow, 2), strict=True))
    if rng.random() < 0.3:
        ill.clear()
    common = rng.choice((0.0, 0.0, 0.01, 0.03))
    found = []
    for number in range(hosts):
        level = rng.gauss(0, common)
        own = ill.get(number, lambda _: 1.0)
        one = survey(
            100 * seed + number,
            lambda what, own=own, level=level: own(what) * math.exp(level),
            gpus=gpus,
            processes=rng.choice((1, 2, 8)),
        )
        machine = nodes.machine(f"n{number}", gpus)
        found.append(
            msgspec.structs.replace(one, name=f"n{number}", machine=machine, file=f"n{number}.wwp")
        )
    return found


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> list[Subject]:
    """Five checks of one machine as if they were of five hosts."""
    folder = tmp_path_factory.mktemp("fleet")
    files = sorted((RESULTS / "2026-11-22-check-two-gpus").glob("*.xz"))
    read = [read_subject(unpacked(each, folder / each.stem)) for each in files]
    return [msgspec.structs.replace(each, name=f"n{n}") for n, each in enumerate(read)]


def lines(found: Fleet) -> list[str]:
    return [part.text for part in fleet_parts(found) if isinstance(part, Words)]


def missed(hosts: Sequence[Subject], found: Fleet) -> Iterator[str]:
    """Paths of hosts that are fine that are further off than what is said to be found."""
    fine = {host.host for host in found.of("fine")}
    for equal in equal_hosts(hosts):
        times = PathTimes(equal, THRESHOLD)
        stated = {(path.curve, path.regime): path for path in times.described()}
        for table, which in ((times.apart, "detectable"), (times.beside, "detectable_beside")):
            for name, row in zip(equal.hosts, times.latest(table), strict=True):
                for key, value in zip(times.groups, row, strict=True):
                    least = getattr(stated[key], which)
                    if name in fine and least and 1 - math.exp(-value) > least + 1e-9:
                        yield f"{name} {key}: {1 - math.exp(-value):.3f} beside {least:.3f}"


def check(hosts: Sequence[Subject]) -> None:
    found = assess_fleet(hosts)
    assert not list(missed(hosts, found))
    said = lines(found)
    counted = re.findall(r"(\d+) (bad|suspect|fine)", said[0])
    assert counted == [(str(len(found.of(each))), each) for each in KINDS if found.of(each)]
    assert said[0].endswith(f" of {len(found.hosts)} hosts")
    for host in found.of("bad", "suspect"):
        assert host.faults
        by_curve = {path.curve: path for path in host.slow_paths}
        for fault in host.faults:
            assert fault.title in said
            paths = [by_curve[each.series] for each in fault.exhibits]
            for path in paths:
                assert path.ratio < 1
            of = re.search(r"(\d+) of (\d+) paths", fault.statement)
            if of:
                assert int(of[1]) == len({path.curve for path in paths}) <= int(of[2])
            elif paths:
                more = re.search(r"and so (?:is|are) (\d+) more", fault.statement)
                assert len(paths) == 1 + (int(more[1]) if more else 0)
                (by,) = re.findall(r"([\d.]+)% (?:slower|longer)", fault.statement)
                worst = paths[0]
                shown = 1 / worst.ratio - 1 if worst.is_time else 1 - worst.ratio
                assert float(by) / 100 == pytest.approx(shown, abs=0.0006)
    assert ("No node differs" in page(fleet_document(found))) == (not found.of("bad", "suspect"))


@pytest.mark.parametrize("seed", range(40))
def test_planted_fleets(seed: int) -> None:
    check(planted(seed))


def test_kept_surveys_as_a_fleet(kept: list[Subject]) -> None:
    check(kept)
    for four in combinations(kept, 4):
        check(four)


@pytest.mark.parametrize("count", [1, 3, 4, 6])
@pytest.mark.parametrize("own", [1, 2])
def test_what_a_profile_names_by_itself_is_said_beside_fine(count: int, own: int) -> None:
    hosts = [nodes.node(1, f"n{number}", gpus=2) for number in range(count)]
    named = [
        msgspec.structs.replace(host, own_findings=(OWN,) if number < own else ())
        for number, host in enumerate(hosts)
    ]
    found = assess_fleet(named)
    said = lines(found)
    number = min(own, count)
    assert said[0].endswith(
        "; the profile of 1 host names a slow link by itself"
        if number == 1
        else f"; the profiles of {number} hosts name a slow link by themselves"
    )
    (line,) = (each for each in said if "fine beside the others" in each)
    assert OWN.partition(":")[0] in line
    assert all(f"n{host} (H2D −11 %)" in line for host in range(number))
    shown = page(fleet_document(found))
    assert OWN in shown
    if count >= 4:
        assert "No node differs from its peers; the profile" in shown


@pytest.mark.parametrize("common", [0.0, 0.01, 0.03])
@pytest.mark.parametrize("gpus", [2, 4])
def test_a_link_is_found_beside_the_others_whatever_hosts_have_in_common(
    common: float, gpus: int
) -> None:
    found = 0
    for seed in range(5):
        rng = np.random.default_rng((seed, gpus))
        hosts = []
        for number, level in enumerate(rng.normal(0, common, 4)):
            link = nodes.slow_host_link(1, 1 / 0.9 if number == 2 else 1.0)
            hosts.append(
                nodes.node(
                    seed,
                    f"n{number}",
                    gpus=gpus,
                    slow=lambda what, link=link, level=level: link(what) * math.exp(level),
                )
            )
        assessed = assess_fleet(hosts)
        check(hosts)
        (first, *others) = assessed.of("suspect") or [None]
        found += (
            first is not None
            and first.host == "n2"
            and not others
            and all(device.place == "gpu:1" for device in first.faults[0].devices)
        )
    assert found >= 4
