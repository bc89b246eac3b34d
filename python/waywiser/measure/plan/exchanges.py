"""Exchanges among all ranks of a survey: each sends to each, by every strategy.

A strategy is a method like an executor, and not a setting: each is measured whatever the preset, by
one call for all messages and by messages between pairs, of which tables take the better. Other
settings are varied as those of any path: where the preset does not, or where there are many, they
are remote, and measured on request (`waywiser.measure.plan.curves`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from waywiser.curves.exchanges import BETWEEN, STRATEGY
from waywiser.machine import ExecutorKind, Parameter
from waywiser.machine.ranks import COUNTS, NEIGHBOURS
from waywiser.measure.plan.basis import Basis
from waywiser.measure.plan.curves import PlannedCurve, Settings, combinations
from waywiser.measure.plan.preset import Depth
from waywiser.words import Memory, Path, Place, Transfer, Unsupported


def exchange_curves(
    kinds: Sequence[str], basis: Basis
) -> tuple[list[PlannedCurve], list[Unsupported]]:
    """The exchanges with memory of one kind at both ends, and the strategies that are not
    supported. Those of memory that feeds GPUs are measured on request, as their times are
    those of other host memory."""
    catalogue = basis.catalogue
    curves: list[PlannedCurve] = []
    unsupported: list[Unsupported] = []
    usual = {catalogue.traits.reference_memory("host", "numa"),
             catalogue.traits.reference_memory("gpu", "gpu")}  # fmt: skip
    for executor in catalogue.executors.values():
        if not executor.among_ranks or executor.among_several:
            continue  # one that moves bytes among GPUs is measured there
        for path in _paths(executor, kinds, basis):
            if reason := catalogue.unsupported_reason(Transfer(path)):
                unsupported.append(Unsupported(path.kinds, reason))
                continue
            for strategy in _strategies(path, executor, basis):
                with_strategy = Transfer(path, parameters=strategy)
                if reason := catalogue.unsupported_reason(with_strategy):
                    # Another setting of the strategy may be supported.
                    unsupported.append(Unsupported(str(with_strategy), reason))
                is_usual = path.source.kind in usual
                curves += _with_settings(with_strategy, executor, basis, is_usual)
    return curves, unsupported


def _paths(executor: ExecutorKind, kinds: Iterable[str], basis: Basis) -> Iterator[Path]:
    numbers = sorted(rank.index for rank in basis.machine.ranks)
    together = Place("rank", numbers[0], last=numbers[-1])
    for kind in kinds:
        memory = Memory(kind, together)
        yield Path(memory, memory, executor.name)


def _strategies(path: Path, executor: ExecutorKind, basis: Basis) -> Iterator[Settings]:
    """The default, which is not written, and the others; none of these if nothing is on a GPU."""
    known = {p.name: p.choices for p in basis.catalogue.parameters(Transfer(path))}
    here = known.get(STRATEGY, ())
    yield {}
    for parameter in executor.parameters:
        if parameter.name == STRATEGY and len(here) > 1:
            yield from ({STRATEGY: each} for each in parameter.choices if each != here[0])


def _with_settings(
    plain: Transfer, executor: ExecutorKind, basis: Basis, is_usual: bool
) -> Iterator[PlannedCurve]:
    catalogue, depth = basis.catalogue, basis.preset.depth
    known = [p for p in catalogue.parameters(plain) if p.name != STRATEGY]
    is_even = not any(p.name == COUNTS for p in executor.parameters)
    in_preset = [settings for settings in combinations(known, depth) if _has_meaning(settings)]
    if is_even:
        in_preset += [
            {BETWEEN: value} for p in known if p.name == BETWEEN for value in p.choices[1:]
        ]
    elif depth < Depth.PAIRS:  # what other settings do is seen where all messages have one size
        few = {COUNTS, NEIGHBOURS}
        in_preset = [
            each for each in in_preset if each.keys() <= few and depth is not Depth.DEFAULTS
        ]
    for settings in _all_settings(known):
        transfer = Transfer(plain.path, parameters=plain.parameters | settings)
        if catalogue.unsupported_reason(transfer) is None:
            yield PlannedCurve.of(
                [transfer],
                catalogue,
                principal=is_usual and is_even and not settings,
                remote=not is_usual or settings not in in_preset,
            )


def _all_settings(known: Sequence[Parameter]) -> Iterator[Settings]:
    """All that are measured on request. Numbers of neighbours go with counts of neighbours."""
    alone = [p for p in known if p.name != NEIGHBOURS]
    yield from combinations(alone, Depth.PAIRS)
    for parameter in known:
        if parameter.name == NEIGHBOURS:
            yield from ({COUNTS: NEIGHBOURS, NEIGHBOURS: n} for n in parameter.choices[1:])


def _has_meaning(settings: Settings) -> bool:
    return NEIGHBOURS not in settings or settings.get(COUNTS) == NEIGHBOURS
