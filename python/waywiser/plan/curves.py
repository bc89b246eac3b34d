"""What to measure over sizes: paths with their settings, opposite pairs, and cache states.

A curve is *principal* where its answer is what people ask a machine for: default settings, and
bytes that change place, or that stay at a place in memory which is there for its own sake, moved by
somebody who is at home there. Everything else (a setting varied, two kinds at one place, a copy
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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from waywiser.plan import files
from waywiser.plan.catalogue import Catalogue
from waywiser.plan.name import name_of
from waywiser.plan.preset import Preset, Variations
from waywiser.plan.select import texts_of
from waywiser.plan.vary import MOST_COMBINATIONS, MOST_TOGETHER, Settings, combinations
from waywiser.records import Refusal
from waywiser.words import Cache, Memory, Operation, Path, Transfer, Workload

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

    asked: bool = False
    """Named by a person, who gets an error where others get a refusal."""
    sizes: tuple[int, ...] = ()
    """Visited where nobody asks for others, and never skipped; empty for those of the preset."""

    def at(self, size: int) -> Workload:
        """The workload with ``size`` bytes in each transfer that has no size of its own."""
        sized = tuple(msgspec.structs.replace(t, bytes=t.bytes or size) for t in self.transfers)
        return Workload(sized, self.operation, self.cache, self.shared)

    @cached_property
    def text(self) -> str:
        return self.at(0).curve

    @cached_property
    def name(self) -> str:
        """What people call it: short where the text is many transfers."""
        return name_of(self.at(0))

    @property
    def texts(self) -> tuple[str, ...]:
        """What a pattern may be meant for."""
        return texts_of(self.at(0))

    @property
    def has_sizes_of_its_own(self) -> bool:
        """Whether every transfer says how many bytes it moves."""
        return bool(self.transfers) and all(transfer.bytes for transfer in self.transfers)

    @property
    def is_default(self) -> bool:
        """Whether no setting of an executor or a memory, no layout and no cache state is named."""
        return self.departures == 0

    @property
    def settings(self) -> int:
        """How many settings of an executor or a memory are named, at most in one transfer."""
        if self.operation:
            return len(self.operation.parameters)
        return max(
            len(t.parameters) + len(t.path.source.variant) + len(t.path.destination.variant)
            for t in self.transfers
        )

    @property
    def departures(self) -> int:
        """How far it is from the defaults: settings, a layout and a cache state, one each."""
        laid_out = any(transfer.layout for transfer in self.transfers)
        return self.settings + laid_out + (self.cache != "warm")


def path_curves(
    paths: Iterable[Path], catalogue: Catalogue, preset: Preset
) -> tuple[list[Curve], list[Refusal]]:
    """Contiguous bytes on each path with its settings, and the settings that the registry
    refuses. On the way to files only those who know no other way have their own settings varied,
    unless everything is: what a CPU's threads do is seen in memory."""
    paths = list(paths)
    elsewhere = {path.executor for path in paths if not files.has_file(path)}
    curves: list[Curve] = []
    refused: list[Refusal] = []
    contiguous = {kind.name for kind in catalogue.executors if "contiguous" in kind.layouts}
    for path in paths:
        if path.executor not in contiguous or (preset.variations == "none" and not path.is_plain):
            continue
        chosen = is_principal(path, catalogue)
        remote = is_remote(path, catalogue)
        how = _variations(path, catalogue, preset, chosen)
        states = preset.variations != "none" and _reads_file_to_gpu(path, catalogue)
        in_file = files.has_file(path)
        a_guest = in_file and path.executor in elsewhere and preset.secondary_variations == "none"
        for index, transfer in enumerate(_settings(path, catalogue, how, states=states)):
            if a_guest and transfer.parameters:
                continue
            if index and (reason := catalogue.refusal(transfer)):
                refused.append(Refusal(str(transfer), reason))
                continue
            curves.append(
                Curve(
                    (transfer,),
                    principal=chosen and index == 0,
                    remote=remote or is_on_request(transfer, catalogue),
                    peer_access=catalogue.peer_access(transfer),
                )
            )
    return curves, refused


def _variations(path: Path, catalogue: Catalogue, preset: Preset, chosen: bool) -> Variations:
    """What the preset says; of settings that a search has to find no two together, and only on the
    paths that people ask for."""
    if not catalogue.executor(path.executor).settings_on_request:
        return preset.variations if chosen else preset.secondary_variations
    return "single" if chosen and preset.variations != "none" else "none"


def _reads_file_to_gpu(path: Path, catalogue: Catalogue) -> bool:
    """Whether it goes from a file that has no addresses to a GPU: from the page cache that is
    another question than from the disk."""
    return path.destination.place.kind == "gpu" and files.is_read(path.source, catalogue)


def _settings(path: Path, catalogue: Catalogue, how: Variations, *, states: bool) -> list[Transfer]:
    """The transfer with all defaults first, then its variations; with ``states`` at least those of
    its source."""
    parameters = combinations(catalogue.parameters(Transfer(path)), how)
    of_source: Variations = "single" if states and how == "none" else how
    sources = _variants(path, path.source, catalogue, of_source)
    destinations = _variants(path, path.destination, catalogue, how)
    if catalogue.in_place(Transfer(path)):
        destinations = [{}]  # one buffer, of one variant
    if how == "pairs":
        together = itertools.product(sources, destinations, parameters)
        triples = [t for t in together if sum(map(len, t)) <= MOST_TOGETHER]
        triples.sort(key=lambda triple: sum(map(len, triple)))
    else:
        triples = [({}, {}, p) for p in parameters]
        triples += [(s, {}, {}) for s in sources[1:]] + [({}, d, {}) for d in destinations[1:]]
    return [_with_settings(path, *triple) for triple in triples[:MOST_COMBINATIONS]]


def _variants(path: Path, end: Memory, catalogue: Catalogue, how: Variations) -> list[Settings]:
    """Of the memory at one end; that of the host matters little beside a file, and that of either
    side of a GPU's link is seen beside the memory that programs use at the other."""
    other = path.destination if end is path.source else path.source
    beside_a_file = files.has_file(path) and end.place.kind != "file"
    over_a_link = "gpu" in (end.place.kind, other.place.kind)
    usual = catalogue.reference_memory("gpu", other.place.kind) or other.kind
    beside_another = over_a_link and other.kind not in (end.kind, usual)
    if beside_a_file or (beside_another and how != "pairs"):
        return [{}]
    known = catalogue.memories[end.kind].parameters
    return combinations([p for p in known if p.name not in end.variant], how)


def _with_settings(path: Path, source: Settings, destination: Settings, of: Settings) -> Transfer:
    def variant(memory: Memory, settings: Settings) -> Memory:
        return Memory(memory.kind, memory.place, {**memory.variant, **settings})

    varied = Path(
        variant(path.source, source), variant(path.destination, destination), path.executor
    )
    return Transfer(varied, parameters=of)


def is_principal(path: Path, catalogue: Catalogue) -> bool:
    """Whether the path's default curve is what people ask a machine for."""
    executor = catalogue.executor(path.executor)
    if executor.comparison or executor.survey_only:
        return False
    if is_detour(Transfer(path), catalogue) or _is_unusual(path, catalogue):
        return False
    if _moves_by_itself(path, catalogue):
        return catalogue.in_place(Transfer(path))
    places = path.places
    kinds = {place.kind for place in places}
    if "gpu" not in kinds:
        at_home = catalogue.possible_without_gpu(Transfer(path))
        return at_home and (places[0] != places[1] or path.source.kind == path.destination.kind)
    if "file" in kinds:
        return False
    return places[0] != places[1] or path.source.kind == path.destination.kind


def is_remote(path: Path, catalogue: Catalogue) -> bool:
    """Whether nobody asks for the path unless for everything."""
    if _moves_by_itself(path, catalogue):
        return not catalogue.in_place(Transfer(path))
    executor = catalogue.executor(path.executor)
    if executor.survey_only or is_detour(Transfer(path), catalogue):
        return True
    if _is_unusual(path, catalogue):
        return True
    places = {path.source.place.kind, path.destination.place.kind}
    kinds = [catalogue.memories[memory.kind] for memory in (path.source, path.destination)]
    if "file" in places and "gpu" not in places:
        direct = executor.traits.reference == "file"
        feeds = not direct and any(kind.needs_gpu for kind in kinds)
        return feeds or catalogue.needs_gpu(path.executor)
    return all(kind.places == ("numa",) and kind.needs_gpu for kind in kinds)


def is_on_request(transfer: Transfer, catalogue: Catalogue) -> bool:
    """Whether the settings are of those that a search has to find; the state of a file is none."""
    if not catalogue.executor(transfer.path.executor).settings_on_request:
        return False
    ends = (transfer.path.source, transfer.path.destination)
    varied = any(end.variant and end.place.kind != "file" for end in ends)
    return bool(transfer.parameters) or varied


def is_detour(transfer: Transfer, catalogue: Catalogue) -> bool:
    """Whether bytes go through the host between two GPUs that are peers."""
    source, destination = transfer.path.places
    if source.kind != "gpu" or destination.kind != "gpu" or source == destination:
        return False
    through_host = bool(catalogue.requirements(transfer).host_links)
    return through_host and catalogue.are_peers(source.index, destination.index)


def _is_unusual(path: Path, catalogue: Catalogue) -> bool:
    """Whether such an executor has memory at an end that programs seldom feed a GPU from, or a file
    and more links than one, which no disk fills."""
    if not catalogue.executor(path.executor).settings_on_request:
        return False
    if files.has_file(path):
        return len(catalogue.requirements(Transfer(path)).host_links) > 1
    ends = [end for end in (path.source, path.destination) if end.place.kind == "numa"]
    usual = catalogue.reference_memory("gpu", "numa")
    return any(catalogue.memories[end.kind].needs_gpu and end.kind != usual for end in ends)


def _moves_by_itself(path: Path, catalogue: Catalogue) -> bool:
    """Whether an end is memory that the system moves between places as it is used."""
    kinds = [catalogue.memories[memory.kind] for memory in (path.source, path.destination)]
    return any({"numa", "gpu"} <= set(kind.places) for kind in kinds)


def pair_curves(curves: Iterable[Curve], catalogue: Catalogue, preset: Preset) -> Iterator[Curve]:
    """Default paths together with their opposite, each pair once, between different places.

    Where the preset does not ask for all: those between different places, and of those that the
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
        on_device = all(catalogue.timing(transfer) == "device" for transfer in pair)
        elsewhere = path.source.place != path.destination.place
        if preset.all_pairs or (elsewhere and (on_device or curve.principal)):
            yield replace(curve, transfers=pair, principal=False)


def cache_curves(curves: Iterable[Curve], catalogue: Catalogue, preset: Preset) -> Iterator[Curve]:
    """Default paths from memory that the CPU reaches, in the cache states other than warm."""
    for curve in curves:
        kinds = [catalogue.memories[t.path.source.kind] for t in curve.transfers]
        varied = preset.secondary_variations != "none"
        wanted = curve.principal or (varied and curve.is_default)
        if any(files.has_file(transfer.path) for transfer in curve.transfers):
            continue  # a file's state is a variant of its memory
        searched = any(
            catalogue.executor(transfer.path.executor).settings_on_request
            for transfer in curve.transfers
        )
        if wanted and all(kind.cpu_accessible for kind in kinds):
            for state in CACHE_STATES:
                remote = curve.remote or searched
                yield replace(curve, cache=state, principal=False, remote=remote)
