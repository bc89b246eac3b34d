"""The sets that a model of a machine needs: ``waywiser survey --model``.

Calibrating sets show which transfers share a limit (`waywiser.model.capacity_fit`): GPUs two by
two, growing numbers of GPUs, both directions of one GPU and of all, one GPU and its peers.
Validation sets are random, from the seed of the survey: mixed directions, executors and sizes. They
are never fitted, and show how far predictions are from what is measured.

Each set has its own series, also where the machine's symmetry says what it should equal: the model
has to find out what differs.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence

from waywiser.machine import Catalogue
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.curves import PlannedCurve
from waywiser.measure.plan.sets import (
    between_gpus,
    bidirectional,
    from_host,
    is_of_one_process,
    opposite,
    set_executors,
)
from waywiser.words import Path, Transfer

CALIBRATING_BYTES = 64 * 2**20
"""Bytes of each transfer of a calibrating set: enough that little of its time is latency."""

VALIDATION_SETS = 20
VALIDATION_EXPONENTS = (16, 28)
"""Sizes of validation sets are from 64 KiB to 256 MiB, equally likely on a logarithmic scale."""

VALIDATION_BYTES = 2**30
"""The most bytes of a validation set."""

MOST_TRANSFERS = 8
"""The most transfers of a validation set."""

MOST_PAIRS = 28
"""Pairs of GPUs that are measured: those of eight GPUs. Of more, near numbers come first."""

VALIDATION_PROCESSES = 2
"""Processes that measure validation sets: the fewest that show how far processes differ.
Calibrating sets are measured in all processes that measure representative sizes."""

MODEL_SECONDS = 30.0
"""What ``--model`` adds to a deadline of the preset."""


def model_curves(basis: Basis, valid: Iterable[Path]) -> list[PlannedCurve]:
    """The calibrating sets, and the validation sets of the seed. ``valid`` are the paths that the
    machine has. There are none without a GPU."""
    known = set(map(str, valid))
    catalogue = basis.catalogue
    executors = set_executors(basis) if basis.machine.gpus else []
    calibrating: list[PlannedCurve] = []
    paths: list[Path] = []
    for n, executor in enumerate(executors):
        host = _possible(from_host(basis, executor), known)
        peers = _possible(_peer_paths(basis, executor), known)
        sets = calibrating_sets(host, peers, with_pairs=n == 0)
        calibrating += _curves(sets, known, catalogue)
        paths += [*host, *_possible(opposite(host), known), *peers]
    validation = _validation_curves(random_sets(paths, basis.request.seed), catalogue)
    return [*calibrating, *validation]


def calibrating_sets(
    host: Sequence[Path], peers: Sequence[Path], *, with_pairs: bool
) -> Iterator[list[Path]]:
    """Paths that start together. ``host`` are the paths from host memory to each GPU, ``peers``
    those between GPUs."""
    back = opposite(host)
    numbers = range(len(host))
    if with_pairs:
        pairs = sorted(itertools.combinations(numbers, 2), key=lambda pair: pair[1] - pair[0])
        for pair in pairs[:MOST_PAIRS]:
            yield [host[n] for n in pair]
            yield [back[n] for n in pair]
        for count in range(3, len(host)):
            yield list(host[:count])
            yield back[:count]
    for n in numbers:
        yield [host[n], back[n]]
    yield list(host)
    yield back
    yield bidirectional(list(host))
    half = len(host) // 2
    yield [*host[:half], *back[half:]]
    if with_pairs:
        yield list(host[half:])
        yield back[half:]
    if not peers:
        return
    one = peers[0].source
    spokes = [path for path in peers if path.source == one]
    yield spokes
    yield opposite(spokes)
    yield [spokes[0], spokes[0].opposite]
    by_ends = {(path.source.place, path.destination.place): path for path in peers}
    places = list(dict.fromkeys(path.source.place for path in peers))
    ring = zip(places, [*places[1:], places[0]], strict=True)
    yield [by_ends[ends] for ends in ring if ends in by_ends] if len(places) > 2 else []


def random_sets(paths: Sequence[Path], seed: int) -> Iterator[list[Transfer]]:
    """Sets of different paths with sizes of their own, without end. The same for the same paths and
    seed."""
    draw = random.Random(f"validation:{seed}")
    most = min(MOST_TRANSFERS, len(paths))
    while most > 1:
        chosen = draw.sample(list(paths), draw.randint(2, most))
        low, high = VALIDATION_EXPONENTS
        sizes = [4096 * round(2 ** (draw.uniform(low, high) - 12)) for _ in chosen]
        if sum(sizes) <= VALIDATION_BYTES:
            yield [Transfer(path, size) for path, size in zip(chosen, sizes, strict=True)]


def _peer_paths(basis: Basis, executor: str) -> list[Path]:
    pairs = itertools.permutations([gpu.index for gpu in basis.machine.gpus], 2)
    found = between_gpus(basis.catalogue, executor, pairs)
    direct = [path for path in found if basis.catalogue.peer_access(Transfer(path))]
    return direct or found


def _possible(paths: Iterable[Path], known: set[str]) -> list[Path]:
    return [path for path in paths if str(path) in known]


def _curves(
    sets: Iterable[Sequence[Path]], known: set[str], catalogue: Catalogue
) -> Iterator[PlannedCurve]:
    """Each set once, without those that one process cannot measure."""
    seen: set[frozenset[str]] = set()
    for paths in sets:
        names = frozenset(map(str, paths))
        transfers = [Transfer(path, CALIBRATING_BYTES) for path in paths]
        fits = len(paths) > 1 and names <= known and len(names) == len(paths)
        if fits and names not in seen and is_of_one_process(transfers, catalogue):
            seen.add(names)
            sizes = (CALIBRATING_BYTES,)
            yield PlannedCurve.of(transfers, catalogue, sizes=sizes, for_model="calibrating")


def _validation_curves(
    sets: Iterator[list[Transfer]], catalogue: Catalogue
) -> Iterator[PlannedCurve]:
    """As many as are wanted of those that one process can measure; fewer if hardly any can be."""
    tried = itertools.islice(sets, 50 * VALIDATION_SETS)
    possible = (each for each in tried if is_of_one_process(each, catalogue))
    for transfers in itertools.islice(possible, VALIDATION_SETS):
        sizes = (max(transfer.bytes for transfer in transfers),)
        yield PlannedCurve.of(transfers, catalogue, sizes=sizes, for_model="validation")
