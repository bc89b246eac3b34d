"""What to measure over sizes: paths with their settings, opposite pairs, and cache states.

A curve is *principal* where its answer is what people ask a machine for: default settings, and
bytes that change place, or that stay at a place in memory which is there for its own sake, moved by
somebody who is at home there. Everything else (a setting varied, two kinds at one place, a copy
within the host that needs a GPU's runtime, a cache state) is *secondary*: it is read beside a
principal curve, and fewer sizes serve. *Remote* from any question is what stays on the host between
memories that exist to feed a GPU, and any operation but the empty interval that small copies stand
on: only the full preset goes there unasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from waywiser.plan.catalogue import Catalogue, OperationKind
from waywiser.plan.preset import Preset, Variations
from waywiser.plan.vary import MOST_COMBINATIONS, Settings, combinations
from waywiser.records import Refusal
from waywiser.topology.machine import Machine
from waywiser.words import Cache, Memory, Operation, Path, Place, Transfer, Workload

EMPTY_INTERVAL = "empty-interval"
"""The operation of two events on one GPU with nothing between: the floor of every device time."""

CACHE_STATES: tuple[Cache, ...] = ("dirtied", "flushed")
"""Those measured beside ``warm``, where the source is memory of the CPU."""


@dataclass(frozen=True)
class Curve:
    """Workloads that differ in size alone; one point only, of no bytes, for an operation."""

    transfers: tuple[Transfer, ...] = ()
    operation: Operation | None = None
    cache: Cache = "warm"
    shared: bool = False
    """One buffer for each memory that several transfers name on the same side."""
    principal: bool = False
    remote: bool = False
    peer_access: bool | None = None
    """What the process must have; None where it does not matter."""

    def at(self, size: int) -> Workload:
        """The workload with ``size`` bytes in each transfer."""
        sized = tuple(msgspec.structs.replace(t, bytes=size) for t in self.transfers)
        return Workload(sized, self.operation, self.cache, self.shared)

    def buffer_bytes(self, size: int) -> int:
        """Of all buffers together: each transfer has a source and a destination of its own."""
        return 2 * size * len(self.transfers)

    @property
    def text(self) -> str:
        return self.at(0).curve


def path_curves(
    paths: Iterable[Path], catalogue: Catalogue, preset: Preset
) -> tuple[list[Curve], list[Refusal]]:
    """Each path with its settings, and the settings that the registry refuses."""
    curves: list[Curve] = []
    refused: list[Refusal] = []
    for path in paths:
        chosen = _is_principal(path, catalogue)
        how = preset.variations if chosen or preset.secondary_varied else "none"
        for index, transfer in enumerate(_settings(path, catalogue, how)):
            if index and (reason := catalogue.refusal(transfer)):
                refused.append(Refusal(str(transfer), reason))
                continue
            principal = chosen and index == 0
            remote = _is_remote(path, catalogue)
            peer_access = catalogue.peer_access(transfer)
            curves.append(
                Curve((transfer,), principal=principal, remote=remote, peer_access=peer_access)
            )
    return curves, refused


def _settings(path: Path, catalogue: Catalogue, how: Variations) -> list[Transfer]:
    """The transfer with all defaults first, then its variations."""
    kinds = catalogue.memories
    parameters = combinations(catalogue.parameters(Transfer(path)), how)
    sources = combinations(kinds[path.source.kind].parameters, how)
    destinations = combinations(kinds[path.destination.kind].parameters, how)
    if how == "product":
        triples = [(s, d, p) for s in sources for d in destinations for p in parameters]
        triples.sort(key=lambda triple: sum(map(len, triple)))
    else:
        triples = [({}, {}, p) for p in parameters]
        triples += [(s, {}, {}) for s in sources[1:]] + [({}, d, {}) for d in destinations[1:]]
    return [_with_settings(path, *triple) for triple in triples[:MOST_COMBINATIONS]]


def _with_settings(path: Path, source: Settings, destination: Settings, of: Settings) -> Transfer:
    def variant(memory: Memory, settings: Settings) -> Memory:
        return Memory(memory.kind, memory.place, settings)

    varied = Path(
        variant(path.source, source), variant(path.destination, destination), path.executor
    )
    return Transfer(varied, parameters=of)


def _is_principal(path: Path, catalogue: Catalogue) -> bool:
    if path.source.place != path.destination.place:
        return True
    if path.source.kind != path.destination.kind:
        return False
    return path.source.place.kind == "gpu" or catalogue.possible_without_gpu(Transfer(path))


def _is_remote(path: Path, catalogue: Catalogue) -> bool:
    kinds = [catalogue.memories[memory.kind] for memory in (path.source, path.destination)]
    return all(kind.places == ("numa",) and kind.needs_gpu for kind in kinds)


def pair_curves(curves: Iterable[Curve], catalogue: Catalogue, preset: Preset) -> Iterator[Curve]:
    """Default paths together with their opposite, each pair once, between different places.

    Where the preset does not ask for host pairs: only those that devices time, so that two streams
    and not two threads of the host are what meets.
    """
    host_first = sorted(curves, key=lambda c: c.transfers[0].path.source.place.kind == "gpu")
    defaults = {str(c.transfers[0].path): c for c in host_first if _all_default(c)}
    done: set[str] = set()
    for text, curve in defaults.items():
        path = curve.transfers[0].path
        opposite = defaults.get(str(path.opposite))
        if opposite is None or text in done or path.source == path.destination:
            continue
        done.add(str(path.opposite))
        pair = (*curve.transfers, *opposite.transfers)
        on_device = all(catalogue.timing(transfer) == "device" for transfer in pair)
        elsewhere = path.source.place != path.destination.place
        if preset.host_pairs or (on_device and elsewhere):
            yield replace(curve, transfers=pair, principal=False)


def _all_default(curve: Curve) -> bool:
    return all(
        not (t.parameters or t.path.source.variant or t.path.destination.variant)
        for t in curve.transfers
    )


def cache_curves(curves: Iterable[Curve], catalogue: Catalogue, preset: Preset) -> Iterator[Curve]:
    """Default paths from memory that the CPU reaches, in the cache states other than warm."""
    for curve in curves:
        kinds = [catalogue.memories[t.path.source.kind] for t in curve.transfers]
        wanted = curve.principal or (preset.secondary_varied and _all_default(curve))
        if wanted and all(kind.cpu_accessible for kind in kinds):
            for state in CACHE_STATES:
                yield replace(curve, cache=state, principal=False)


def operation_curves(
    machine: Machine, catalogue: Catalogue, preset: Preset
) -> tuple[list[Curve], list[Refusal]]:
    """Every operation at every place of its kind, with its settings; and the refused.

    Where the machine has no place of the kind, the operation is refused once, with the reason.
    """
    curves: list[Curve] = []
    refused: list[Refusal] = []
    places = {
        "numa": [Place("numa", node.index) for node in machine.numa],
        "gpu": [Place("gpu", gpu.index) for gpu in machine.gpus],
    }
    for kind in catalogue.operations:
        here = [place for known in kind.places for place in places.get(known, [])]
        if not here:
            why = machine.gpu_reason or f"this machine has no place {kind.places[0]}"
            refused.append(Refusal(f"{kind.name}@{kind.places[0]}:0", why))
        for place in here:
            for operation in _operations(kind, place, catalogue, preset):
                if reason := catalogue.operation_refusal(operation):
                    refused.append(Refusal(str(operation), reason))
                else:
                    told = kind.name == EMPTY_INTERVAL
                    curves.append(Curve(operation=operation, principal=told, remote=not told))
    return curves, refused


def _operations(
    kind: OperationKind, place: Place, catalogue: Catalogue, preset: Preset
) -> list[Operation]:
    known = catalogue.operation_parameters(Operation(kind.name, place))
    settings = combinations(known, preset.variations)
    return [Operation(kind.name, place, chosen) for chosen in settings[:MOST_COMBINATIONS]]
