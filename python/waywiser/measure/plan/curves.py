"""What to measure over sizes: paths with their settings, opposite pairs, cache states, operations.

A curve is *principal* where its answer is what people ask a machine for: default settings, and
bytes that change place, or that stay at a place in memory which is there for its own sake, moved by
an executor of that place. Everything else (a setting varied, two kinds at one place, a copy
within the host that needs a GPU's runtime, a cache state, a layout) is *secondary*: it is read
beside a principal curve, and fewer sizes serve. *Remote* from any question is what stays on the
host between memories that exist to feed a GPU, or goes between files and the host by or to what
exists to feed a GPU (unless a disk reaches it directly), and what copies memory that the system
itself moves to where it is used: only the full preset goes there unasked. The same holds for what
the registry says is measured for the survey's sake alone, for settings that a search has to find,
and for a path between peers that goes through the host.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import msgspec

from waywiser.curves import name_of
from waywiser.curves.headline import all_cores_group
from waywiser.machine import Catalogue, Parameter
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.preset import Depth
from waywiser.words import (
    Cache,
    Layout,
    Memory,
    Operation,
    Path,
    Place,
    Transfer,
    Unsupported,
    Workload,
)
from waywiser.words.workload import WorkloadKind

CACHE_STATES: tuple[Cache, ...] = ("dirtied", "flushed")
"""Those measured beside ``warm``, where the source is memory of the CPU."""

EMPTY_INTERVAL = "empty-interval"
"""The operation of two events on one GPU with nothing between: the floor of every device time."""

MOST_COMBINATIONS = 64
"""Settings per path in pairs: beyond it a survey is a search, which is tuning's work. What three
settings do together that no two of them do is rare (sparsity of effects: Box, Hunter & Hunter,
Statistics for Experimenters, 2005)."""

USEFUL_VALUES = 3
"""Values of an ordered parameter tried beside its default when each is varied alone: the ends and
the middle show whether it matters and in which direction. As many members of a subset."""

Settings = dict[str, str]


@dataclass(frozen=True)
class PlannedCurve:
    """Workloads that differ in size alone; one point only, of no bytes, for an operation."""

    transfers: tuple[Transfer, ...] = ()
    operation: Operation | None = None
    cache: Cache = "warm"
    shared: bool = False
    """One buffer for each memory that several transfers name on the same side."""
    principal: bool = False
    remote: bool = False
    peer_access: bool | None = None
    """What the process must have; None if it does not matter."""

    loads: str = ""
    """The library that its process must have loaded; empty for none."""
    requested: bool = False
    """Named by the user: if it is not supported, that is an error."""
    sizes: tuple[int, ...] = ()
    """The default sizes, never skipped; empty for those of the preset."""
    for_model: Literal["", "calibrating", "validation"] = ""
    """What a model of the machine needs the set for: it is measured whatever it should equal."""

    @classmethod
    def of(cls, transfers: Sequence[Transfer], catalogue: Catalogue, **other: Any) -> PlannedCurve:
        """The curve of transfers in a process with the peer access that they need; ``other`` are
        further fields."""
        needed = catalogue.peer_access(*transfers)
        loads = catalogue.loads(*transfers)
        return cls(tuple(transfers), peer_access=needed, loads=loads, **other)

    def at(self, size: int) -> Workload:
        """The workload with ``size`` bytes in each transfer that has no size of its own."""
        sized = tuple(msgspec.structs.replace(t, bytes=t.bytes or size) for t in self.transfers)
        return Workload(sized, self.operation, self.cache, self.shared)

    @cached_property
    def kind(self) -> WorkloadKind:
        """`Workload.kind`."""
        return self.at(0).kind

    @cached_property
    def text(self) -> str:
        return self.at(0).curve

    @cached_property
    def name(self) -> str:
        """What people call it: short where the text is many transfers."""
        return name_of(self.at(0))

    @property
    def is_default(self) -> bool:
        """Whether no setting of an executor or a memory, no layout and no cache state is named."""
        return not (self.settings or self.layout or self.cache != "warm")

    @property
    def layout(self) -> Layout | None:
        """The layout of the first transfer that has one."""
        return next((t.layout for t in self.transfers if t.layout), None)

    @property
    def is_sized(self) -> bool:
        """Whether each transfer has a size of its own: bystanders, of which one process shows
        enough, sets for a model, and workloads of the user."""
        return bool(self.transfers) and all(transfer.bytes for transfer in self.transfers)

    @property
    def has_file(self) -> bool:
        return any(has_file(transfer.path) for transfer in self.transfers)

    @property
    def settings(self) -> int:
        """How many settings of an executor or a memory are named, at most in one transfer."""
        if self.operation:
            return len(self.operation.parameters)
        return max(
            len(t.parameters) + sum(len(end.variant) for end in t.path.ends) for t in self.transfers
        )


def has_file(path: Path) -> bool:
    """Whether an end is at the place of a file."""
    return any(place.kind == "file" for place in path.places)


def useful_values(parameter: Parameter) -> tuple[str, ...]:
    """The values other than the default that are worth trying alone; of a subset, members."""
    others = parameter.choices[1:]
    if parameter.kind == "choice" or len(others) <= USEFUL_VALUES:
        return others
    ascending = sorted(others, key=int) if parameter.kind == "ordered" else others
    last = len(ascending) - 1
    return tuple(ascending[last * step // (USEFUL_VALUES - 1)] for step in range(USEFUL_VALUES))


def combinations(parameters: Sequence[Parameter], depth: Depth) -> list[Settings]:
    """The settings to measure, all defaults (``{}``) first; defaults are not written, but for those
    of parameters that are always. In pairs:
    every value alone, and useful values of every two parameters together."""
    usual = {p.name: p.choices[0] for p in parameters if p.written}
    found: list[Settings] = [usual]
    if depth is Depth.SINGLE:
        found += (usual | {p.name: value} for p in parameters for value in useful_values(p))
    if depth is Depth.PAIRS:
        found += (usual | {p.name: value} for p in parameters for value in p.choices[1:])
        for one, other in itertools.combinations(parameters, 2):
            for values in itertools.product(useful_values(one), useful_values(other)):
                found.append(usual | {one.name: values[0], other.name: values[1]})
    return found[:MOST_COMBINATIONS] if depth is Depth.PAIRS else found


def path_curves(
    paths: Iterable[Path], basis: Basis
) -> tuple[list[PlannedCurve], list[Unsupported]]:
    """Contiguous bytes on each path with its settings, and the settings that the registry
    does not support. On the way to files only those who know no other way have their own settings
    varied, unless everything is: what a CPU's threads do is seen in memory."""
    catalogue, preset = basis.catalogue, basis.preset
    paths = list(paths)
    elsewhere = {path.executor for path in paths if not has_file(path)}
    curves: list[PlannedCurve] = []
    unsupported_paths: list[Unsupported] = []
    for path in paths:
        if "contiguous" not in catalogue.executors[path.executor].layouts:
            continue
        if preset.depth is Depth.DEFAULTS and not path.is_plain:
            continue
        principal, remote = is_principal(path, catalogue), is_remote(path, catalogue)
        a_guest = has_file(path) and path.executor in elsewhere and preset.depth < Depth.PAIRS
        transfers, by_all = list(_settings(path, basis, principal)), _by_all_cores(path, basis)
        transfers += [by_all] if by_all is not None and by_all not in transfers else []
        for index, transfer in enumerate(transfers):
            if a_guest and transfer.parameters:
                continue
            if index and (reason := catalogue.unsupported_reason(transfer)):
                unsupported_paths.append(Unsupported(str(transfer), reason))
                continue
            curves.append(
                PlannedCurve.of(
                    [transfer],
                    catalogue,
                    principal=principal and (index == 0 or transfer == by_all),
                    remote=remote or _is_on_request(transfer, catalogue),
                )
            )
    return curves, unsupported_paths


def _by_all_cores(path: Path, basis: Basis) -> Transfer | None:
    """On a machine without GPUs, a copy within the host by all threads of a node: what such a
    machine is asked for first. None on other paths, and where one thread is all."""
    catalogue, machine = basis.catalogue, basis.machine
    threads = (p for p in catalogue.parameters(Transfer(path)) if p.name == "threads")
    most = max((each for p in threads for each in p.choices), key=int, default="1")
    transfer = Transfer(path, parameters={"threads": most})
    return transfer if all_cores_group(Workload((transfer,)), machine) else None


def _settings(path: Path, basis: Basis, principal: bool) -> Iterator[Transfer]:
    """The transfer with all defaults first, then its variations. Of settings that a search has to
    find no two together, and only on the paths that people ask for. A file that has no addresses
    is read to a GPU in each of its states: from the page cache that is another question than from
    the disk."""
    catalogue, preset = basis.catalogue, basis.preset
    depth = preset.depth if principal else preset.secondary_depth
    if catalogue.is_searched(Transfer(path)):
        depth = min(preset.depth, Depth.SINGLE) if principal else Depth.DEFAULTS
    to_gpu = path.destination.place.kind == "gpu" and catalogue.is_on_disk(path.source)
    of_source = max(depth, min(preset.depth, Depth.SINGLE)) if to_gpu else depth
    parameters = combinations(catalogue.parameters(Transfer(path)), depth)
    sources = _variants(path, path.source, catalogue, of_source)
    destinations = _variants(path, path.destination, catalogue, depth)
    if catalogue.in_place(Transfer(path)):
        destinations = [{}]  # one buffer, of one variant
    if depth is Depth.PAIRS:
        together = itertools.product(sources, destinations, parameters)
        triples = [t for t in together if sum(map(len, t)) <= 2]
        triples.sort(key=lambda triple: sum(map(len, triple)))
    else:
        usual = parameters[0]
        triples = [({}, {}, p) for p in parameters]
        triples += [(s, {}, usual) for s in sources[1:]]
        triples += [({}, d, usual) for d in destinations[1:]]
    for source, destination, settings in triples[:MOST_COMBINATIONS]:
        ends = _with_variant(path.source, source), _with_variant(path.destination, destination)
        yield Transfer(Path(*ends, path.executor), parameters=settings)


def _variants(path: Path, end: Memory, catalogue: Catalogue, depth: Depth) -> list[Settings]:
    """Variants of the memory at one end; that of the host matters little beside a file, and that of
    either side of a GPU's link is seen beside the memory that programs use at the other."""
    other = path.destination if end is path.source else path.source
    beside_a_file = has_file(path) and end.place.kind != "file"
    over_a_link = "gpu" in (end.place.kind, other.place.kind)
    usual = catalogue.traits.reference_memory("gpu", other.place.kind) or other.kind
    beside_another = over_a_link and other.kind not in (end.kind, usual)
    if beside_a_file or (beside_another and depth is not Depth.PAIRS):
        return [{}]
    known = catalogue.memories[end.kind].parameters
    return combinations([p for p in known if p.name not in end.variant], depth)


def _with_variant(memory: Memory, settings: Settings) -> Memory:
    return Memory(memory.kind, memory.place, {**memory.variant, **settings})


def is_principal(path: Path, catalogue: Catalogue) -> bool:
    """Whether the path's default curve is what people ask a machine for."""
    executor = catalogue.executors[path.executor]
    if executor.comparison or _is_for_the_survey(path, catalogue):
        return False
    if _moves_by_itself(path, catalogue):
        return catalogue.in_place(Transfer(path))
    source, destination = path.places
    on_gpu = "gpu" in (source.kind, destination.kind)
    if has_file(path) if on_gpu else not catalogue.possible_without_gpu(Transfer(path)):
        return False
    return source != destination or path.source.kind == path.destination.kind


def is_remote(path: Path, catalogue: Catalogue) -> bool:
    """Whether only a full survey has the path."""
    if _moves_by_itself(path, catalogue):
        return not catalogue.in_place(Transfer(path))
    if _is_for_the_survey(path, catalogue):
        return True
    kinds = [catalogue.memories[memory.kind] for memory in path.ends]
    if has_file(path) and "gpu" not in {place.kind for place in path.places}:
        direct = catalogue.executors[path.executor].traits.reference == "file"
        feeds = not direct and any(kind.needs_gpu for kind in kinds)
        return feeds or catalogue.needs_gpu(path.executor)
    return all(kind.places == ("numa",) and kind.needs_gpu for kind in kinds)


def _is_for_the_survey(path: Path, catalogue: Catalogue) -> bool:
    """Whether the executor is measured for the survey's sake alone, peers go through the host, or
    what a search has to tune has memory at an end that programs seldom feed a GPU from, or a file
    and more links than one, which no disk fills."""
    if catalogue.executors[path.executor].survey_only:
        return True
    transfer, (source, destination) = Transfer(path), path.places
    if source.kind == destination.kind == "gpu" and source != destination:
        peers = catalogue.are_peers(source.index, destination.index)
        return peers and bool(catalogue.requirements(transfer).host_links)
    if not catalogue.is_searched(transfer):
        return False
    if has_file(path):
        return len(catalogue.requirements(transfer).host_links) > 1
    usual = catalogue.traits.reference_memory("gpu", "numa")
    return any(
        end.place.kind == "numa" and catalogue.memories[end.kind].needs_gpu and end.kind != usual
        for end in path.ends
    )


def _is_on_request(transfer: Transfer, catalogue: Catalogue) -> bool:
    """Whether the settings are of those that a search has to find; the state of a file is none."""
    varied = any(end.variant and end.place.kind != "file" for end in transfer.path.ends)
    return catalogue.is_searched(transfer) and (varied or bool(transfer.parameters))


def _moves_by_itself(path: Path, catalogue: Catalogue) -> bool:
    """Whether an end is memory that the system moves between places as it is used."""
    kinds = [catalogue.memories[memory.kind] for memory in path.ends]
    return any({"numa", "gpu"} <= set(kind.places) for kind in kinds)


def pair_curves(curves: Iterable[PlannedCurve], basis: Basis) -> Iterator[PlannedCurve]:
    """Default paths together with their opposite, each pair once, between different places.

    If the preset does not ask for all: those between different places, and of those that the
    host times (two of its threads are what meets there) only what people ask a machine for.
    """
    host_first = sorted(curves, key=lambda c: c.transfers[0].path.source.place.kind == "gpu")
    defaults = {str(c.transfers[0].path): c for c in host_first if c.is_default}
    done: set[str] = set()
    for text, curve in defaults.items():
        path = curve.transfers[0].path
        opposite = defaults.get(str(path.opposite))
        if opposite is None or text in done or path.source == path.destination:
            continue
        done.add(str(path.opposite))
        pair = (*curve.transfers, *opposite.transfers)
        on_device = all(basis.catalogue.timing(transfer) == "device" for transfer in pair)
        elsewhere = path.source.place != path.destination.place
        usual = elsewhere and (on_device or curve.principal)
        if usual or basis.preset.depth is Depth.PAIRS:
            yield replace(curve, transfers=pair, principal=False)


def cache_curves(curves: Iterable[PlannedCurve], basis: Basis) -> Iterator[PlannedCurve]:
    """Default paths from memory that the CPU reaches, in the cache states other than warm. A
    file's state is a variant of its memory."""
    catalogue = basis.catalogue
    for curve in curves:
        kinds = [catalogue.memories[t.path.source.kind] for t in curve.transfers]
        included = curve.principal or (basis.preset.depth is Depth.PAIRS and curve.is_default)
        if included and not curve.has_file and all(kind.cpu_accessible for kind in kinds):
            remote = curve.remote or any(map(catalogue.is_searched, curve.transfers))
            for state in CACHE_STATES:
                yield replace(curve, cache=state, principal=False, remote=remote)


def operation_curves(basis: Basis) -> tuple[list[PlannedCurve], list[Unsupported]]:
    """Every operation at every place of its kind, with its settings; and the unsupported.

    If the machine has no place of the kind, the operation is reported once, with the reason.
    """
    curves: list[PlannedCurve] = []
    unsupported_paths: list[Unsupported] = []
    machine, catalogue, depth = basis.machine, basis.catalogue, basis.preset.depth
    places = [Place("numa", node.index) for node in machine.numa]
    places += [Place("gpu", gpu.index) for gpu in machine.gpus]
    for kind in catalogue.operations:
        if kind.places == ("rank",):
            continue  # of surveys of ranks
        here = [place for known in kind.places for place in places if place.kind == known]
        if not here:
            why = machine.gpu_reason or f"this machine has no place {kind.places[0]}"
            unsupported_paths.append(Unsupported(f"{kind.name}@{kind.places[0]}:0", why))
        for place in here:
            known = catalogue.operation_parameters(Operation(kind.name, place))
            for settings in combinations(known, depth)[:MOST_COMBINATIONS]:
                operation = Operation(kind.name, place, settings)
                if reason := catalogue.operation_unsupported_reason(operation):
                    unsupported_paths.append(Unsupported(str(operation), reason))
                    continue
                is_empty = kind.name == EMPTY_INTERVAL
                remote = not is_empty and depth is Depth.DEFAULTS
                curves.append(PlannedCurve(operation=operation, principal=is_empty, remote=remote))
    return curves, unsupported_paths
