"""What each analysis says of a synthetic machine, as hypotheses that it kept or rejected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from planted.planted_machine import Planted
from planted.planted_model import LARGE, Model, between, down, up, workload
from planted.score import Check, Hypothesis
from waywiser.analysis.questions import affinity, anisotropy
from waywiser.analysis.questions.curve_pairs import CurveGroup
from waywiser.analysis.questions.peer_groups import peer_groups
from waywiser.analysis.questions.together import found_together
from waywiser.curves.subject import Subject
from waywiser.stats import irregular
from waywiser.stats.scatter import LEAST_SIZES

LEAST = 0.0499
"""What is planted is planted at this size of effect and above; what follows from it for another
question is less now and then, and is then asked neither to be found nor to be kept."""


def hypothesis(question: str, about: str, effect: float, rejected: bool, truth: str) -> Hypothesis:
    """An effect of zero means that nothing is planted."""
    return Hypothesis(question, about, effect, rejected, truth if effect else "")


def time_of(model: Model, path: str) -> float:
    """True seconds of a large copy, alone."""
    return model.seconds(workload((path,), LARGE))[0]


def longer(model: Model, one: str, other: str) -> float:
    """The true excess of the slower of two; 0 if they are equal."""
    a, b = time_of(model, one), time_of(model, other)
    effect = max(a, b) / min(a, b) - 1
    return effect if effect > 1e-9 else 0.0


def differing(groups: Iterable[CurveGroup]) -> set[str]:
    """The curves of all pairs that differ."""
    return {
        curve.text
        for group in groups
        for regime in group.regimes.values()
        for pair in regime.differing
        for curve in (pair.a, pair.b)
    }


def anisotropies(planted: Planted, subject: Subject) -> Iterator[Hypothesis]:
    """Hypotheses that both directions of a path are equal."""
    model = planted.model
    differ = differing(anisotropy.by_kind(subject))
    ways = [
        (up(gpu, node), down(gpu, node), "anisotropic GPU")
        for gpu in range(model.count)
        for node in range(model.nodes)
    ]
    ways += [
        (between(a, b), between(b, a), "anisotropic pair")
        for b in range(model.count)
        for a in range(b)
    ]
    dips = {truth.curve for truth in model.of("dip")}
    for there, back, truth in ways:
        if not {there, back} & dips:  # there one size differs, which has a question of its own
            effect = longer(model, there, back)
            yield hypothesis("anisotropy", there, effect, there in differ, truth)


def peers(planted: Planted, subject: Subject) -> Iterator[Hypothesis]:
    """Hypotheses that a path between two places equals its equivalents."""
    model = planted.model
    without = replace(model, truths=model.of("far sockets"))
    slow = {
        peer.curve.text
        for peers in peer_groups(subject)
        for peer in peers
        if any(regime.outcome == "different" for regime in peer.regimes.values())
    }
    for path in links(model):
        effect = longer_than(time_of(model, path), time_of(without, path))
        truth = "slow host link" if "numa" in path else "slow peer link"
        yield hypothesis("identical", path, effect, path in slow, truth)


def longer_than(one: float, other: float) -> float:
    effect = one / other - 1
    return effect if effect > 1e-9 else 0.0


def links(model: Model) -> Iterator[str]:
    """Every way between two places, and within each GPU."""
    for gpu in range(model.count):
        for node in range(model.nodes):
            yield from (up(gpu, node), down(gpu, node))
        yield from (between(gpu, other) for other in range(model.count))


def far(planted: Planted, subject: Subject) -> Iterator[Hypothesis]:
    """Hypotheses that a path from a remote node to a GPU equals that from the local node."""
    model = planted.model
    differ = differing(affinity.by_kind(subject))
    dips = {truth.curve for truth in model.of("dip")}
    for gpu in range(model.count if model.nodes == 2 else 0):
        for way in (up, down):
            near = way(gpu, model.node_of(gpu))
            remote = way(gpu, 1 - model.node_of(gpu))
            if near not in dips:
                effect = longer(model, remote, near)
                yield hypothesis("affinity", remote, effect, remote in differ, "far sockets")


def sets(planted: Planted, subject: Subject) -> Iterator[Hypothesis]:
    """Hypotheses that no transfer of a set is slowed by another."""
    found, _ = found_together(subject)
    for each in found:
        what = each.point.workload
        alone = max(planted.model.seconds(workload((t.way,), t.bytes))[0] for t in what.transfers)
        effect = longer_than(max(planted.model.seconds(what)), alone)
        if effect == 0 or effect >= LEAST:
            yield hypothesis("contention", what.curve, effect, each.is_slowed, "shared port")


def dips(planted: Planted, subject: Subject) -> Iterator[Hypothesis]:
    """Hypotheses that no size of a curve is odd; found if it is reported as that
    size."""
    result = {truth.curve: truth for truth in planted.model.of("dip")}
    curves = [curve for curve in subject.curves if curve.workload.bytes]
    found = irregular.irregularities([curve.blocks for curve in curves])
    for curve, odd in zip(curves, found, strict=True):
        truth = result.get(curve.text)
        if truth is not None:
            right = any(each.low <= truth.size <= each.high for each in odd)
            yield hypothesis("irregularities", curve.text, truth.effect, right, "dip")
        elif len(curve.measured) >= LEAST_SIZES:
            yield hypothesis("irregularities", curve.text, 0.0, bool(odd), "")


def sockets(planted: Planted, subject: Subject) -> Iterator[Hypothesis]:
    """That the machine has but one side; found where the two groups are the right ones."""
    sides = subject.overview.sides
    groups = sides.groups if sides is not None else ()
    truths = planted.model.of("hidden sockets")
    if not truths:
        yield hypothesis("hidden sockets", "sides", 0.0, len(groups) == 2, "")
        return
    second = truths[0].gpus
    first = tuple(gpu for gpu in range(planted.model.count) if gpu not in second)
    right = groups == (first, second)
    yield hypothesis("hidden sockets", "sides", truths[0].effect, right, "hidden sockets")


CHECKS: tuple[Check, ...] = (anisotropies, peers, far, sets, dips, sockets)
