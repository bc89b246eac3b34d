"""Which layouts a survey tries beside contiguous bytes, on which paths and at which sizes.

A list of scattered pieces is what the blocks of a key-value cache are; a box of a 3-D array is what
a halo exchange moves (8 bytes wide: the face across its rows). Each stands beside the contiguous
copy of the same bytes by the same executor, so that its price per byte is read off, and where one
method of moving it becomes faster than another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from waywiser.curves import BANDWIDTH_BYTES
from waywiser.machine import Catalogue, ExecutorKind
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.curves import PlannedCurve, combinations, is_principal, is_remote
from waywiser.measure.plan.preset import Depth
from waywiser.words import Layout, Path, Transfer, Unsupported

_KIB, _MIB = 2**10, 2**20

LAYOUTS: tuple[Layout, ...] = (
    # From what a loop of copies is hopeless at, over what people take by hand for the point where
    # it stops being so (28 KiB, 128 KiB), to where it must not matter any more.
    *(Layout("list", {"piece": str(piece)}) for piece in (4096, 28 * _KIB, 128 * _KIB, _MIB)),
    Layout("box", {"width": "8", "height": "256"}),
    Layout("box", {"width": "512", "height": "256"}),
    Layout("box", {"width": "16384", "height": "64"}),
)

SIZES = (_MIB, 16 * _MIB, 64 * _MIB)
"""Nearly: whole numbers of pieces and planes. Of the same order as the lists and halos of programs,
and among the sizes of the contiguous curve beside it."""

FEW_PIECES = 4
"""Pieces of a short list: the cost of a call decides about few pieces, and longer lists do not show
it."""
SHORT_RUN = 28 * _KIB
"""The longest piece of short lists: a standard survey has no time for more of them."""

HOST_CONTIGUOUS = LAYOUTS[:3]
"""The lists that a standard survey also measures contiguous in host memory and scattered on a GPU,
by the executors that the transfer library moves them by, up to `BANDWIDTH_BYTES`; the first one
also of `FEW_PIECES`. It has no time for more of them."""

MOST_CALLS = 128
"""Pieces of these lists up to which it measures those who make a copy for each piece. More pieces
take a time in proportion, and much of it."""

MOST_RUNS = 2**21
"""Most runs at these sizes: filling and verifying more pieces or rows than that takes longer than
measuring them, and says nothing that fewer do not."""


def example(executor: ExecutorKind) -> Layout | None:
    """A layout to ask the registry about an executor's paths with; None if it moves contiguous
    bytes."""
    if "contiguous" in executor.layouts:
        return None
    return next((layout for layout in LAYOUTS if layout.kind in executor.layouts), None)


def one_sided(layout: Layout) -> list[Layout]:
    """Returns the lists whose other side is contiguous; none of other layouts."""
    if layout.kind != "list":
        return []
    sides = ("source", "destination")
    return [Layout("list", {**layout.settings, "scattered": side}) for side in sides]


def example_on(path: Path, catalogue: Catalogue) -> Layout | None:
    """Returns a layout to ask the registry about a path with: the example of its executor, or with
    one contiguous side if the path is served only so; None if it moves contiguous bytes."""
    layout = example(catalogue.executors[path.executor])
    return layout and served_on(path, layout, catalogue)


def served_on(path: Path, layout: Layout, catalogue: Catalogue) -> Layout:
    """Returns the layout, or if the path is served only so, the same with one contiguous side."""
    if catalogue.unsupported_reason(Transfer(path, layout=layout)) is None:
        return layout
    return _served(path, one_sided(layout), catalogue) or layout


def _served(path: Path, layouts: Iterable[Layout], catalogue: Catalogue) -> Layout | None:
    return next(
        (
            each
            for each in layouts
            if catalogue.unsupported_reason(Transfer(path, layout=each)) is None
        ),
        None,
    )


def usual_sizes(layout: Layout) -> tuple[int, ...]:
    """The default sizes of a layout: of a list of short pieces also `FEW_PIECES`."""
    short = [FEW_PIECES * layout.run] if layout.kind == "list" and layout.run <= SHORT_RUN else []
    return whole_units(layout, (*short, *(n for n in SIZES if n <= MOST_RUNS * layout.run)))


def whole_units(layout: Layout, sizes: Iterable[int]) -> tuple[int, ...]:
    """Each size as the nearest whole number of units, at least one; equal ones once."""
    unit = layout.unit
    return tuple(sorted({max(1, round(size / unit)) * unit for size in sizes}))


def layout_curves(
    paths: Iterable[Path], basis: Basis
) -> tuple[list[PlannedCurve], list[Unsupported]]:
    """The layouts of each path whose executor moves them, and those not supported: per kind of
    layout and pair of memory kinds once. Usual paths alone, unless the preset is for everything:
    then each setting of them too."""
    curves: list[PlannedCurve] = []
    contiguous: list[PlannedCurve] = []
    unsupported_paths: dict[str, Unsupported] = {}
    catalogue = basis.catalogue
    everything = basis.preset.depth is Depth.PAIRS
    for path in paths:
        usual = _is_usual(path, catalogue)
        if not usual and (not everything or is_remote(path, catalogue)):
            continue
        for layout in LAYOUTS:
            if layout.kind not in catalogue.executors[path.executor].layouts:
                continue
            served = served_on(path, layout, catalogue)
            if reason := catalogue.unsupported_reason(Transfer(path, layout=served)):
                what = f"{path.kinds} as {layout.kind}"
                unsupported_paths.setdefault(what, Unsupported(what, reason))
                continue
            curves += _curves_of(path, served, layout, basis, usual=usual)
            also = _host_contiguous(path, layout, catalogue) if usual else None
            if also is not None and also != served:
                contiguous += _curves_of(path, also, layout, basis, usual=usual)
    return [*curves, *contiguous], list(unsupported_paths.values())


def _curves_of(
    path: Path, served: Layout, layout: Layout, basis: Basis, *, usual: bool
) -> Iterator[PlannedCurve]:
    """The curves of ``layout`` as it is ``served``, with each setting if the preset is for
    everything; of lists that are contiguous on a side, else those of `HOST_CONTIGUOUS` alone."""
    catalogue, preset = basis.catalogue, basis.preset
    everything = preset.depth is Depth.PAIRS
    sizes: tuple[int, ...] = ()
    if served.scattered and not everything:
        if layout not in HOST_CONTIGUOUS:
            return
        is_kernel = catalogue.executors[path.executor].traits.is_kernel
        most = BANDWIDTH_BYTES if is_kernel else min(BANDWIDTH_BYTES, MOST_CALLS * layout.run)
        few = 0 if layout == HOST_CONTIGUOUS[0] else FEW_PIECES * SHORT_RUN
        sizes = tuple(size for size in usual_sizes(layout) if few < size <= most)
    depth = Depth.SINGLE if usual and everything else Depth.DEFAULTS
    for settings in combinations(catalogue.parameters(Transfer(path, layout=served)), depth):
        transfer = Transfer(path, parameters=settings, layout=served)
        if not settings or catalogue.unsupported_reason(transfer) is None:
            remote = preset.depth is Depth.DEFAULTS
            yield PlannedCurve.of([transfer], catalogue, remote=remote, sizes=sizes)


def _host_contiguous(path: Path, layout: Layout, catalogue: Catalogue) -> Layout | None:
    """The list that is contiguous in host memory and scattered on a GPU, if the library moves such
    by the executor of the path; None for any other layout or path."""
    kinds = [place.kind for place in path.places]
    library = catalogue.executors[path.executor].traits.library
    if sorted(kinds) != ["gpu", "numa"] or not library.lists:
        return None
    found = next(iter(one_sided(layout)[kinds.index("gpu") :]), None)
    supported = found is None or catalogue.unsupported_reason(Transfer(path, layout=found)) is None
    return found if supported else None


def _is_usual(path: Path, catalogue: Catalogue) -> bool:
    """Whether programs move such data between these kinds of memory: those that paths with a GPU,
    and within the host, are compared by."""
    reference = "gpu" if any(place.kind == "gpu" for place in path.places) else "host"
    usual = all(catalogue.traits.memory(end.kind).reference == reference for end in path.ends)
    return usual and is_principal(path, catalogue)
