"""The settings worth measuring: of an executor's parameters and of a memory kind's variants."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from waywiser.plan.catalogue import Parameter
from waywiser.plan.preset import Variations

MOST_COMBINATIONS = 64
"""Settings per path in pairs: beyond it a survey is a search, which is tuning's work."""

MOST_TOGETHER = 2
"""Settings away from their defaults at once. What three do together that no two of them do is rare
(sparsity of effects: Box, Hunter & Hunter, Statistics for Experimenters, 2005), and a search."""

USEFUL_VALUES = 3
"""Values of an ordered parameter tried beside its default when each is varied alone: the ends and
the middle show whether it matters and in which direction. As many members of a subset."""

Settings = dict[str, str]


def useful_values(parameter: Parameter) -> tuple[str, ...]:
    """The values other than the default that are worth trying alone; of a subset, members."""
    others = parameter.choices[1:]
    if parameter.kind == "choice" or len(others) <= USEFUL_VALUES:
        return others
    ascending = sorted(others, key=int) if parameter.kind == "ordered" else others
    last = len(ascending) - 1
    return tuple(ascending[last * step // (USEFUL_VALUES - 1)] for step in range(USEFUL_VALUES))


def combinations(parameters: Sequence[Parameter], how: Variations) -> list[Settings]:
    """The settings to measure, all defaults (``{}``) first; defaults are never written."""
    if how == "none":
        return [{}]
    if how == "single":
        return [{}, *({p.name: value} for p in parameters for value in useful_values(p))]
    return list(itertools.islice(_pairs(parameters), MOST_COMBINATIONS))


def _pairs(parameters: Sequence[Parameter]) -> Iterator[Settings]:
    """All defaults, every value alone, and useful values of every two parameters together."""
    yield {}
    for parameter in parameters:
        yield from ({parameter.name: value} for value in parameter.choices[1:])
    for one, other in itertools.combinations(parameters, MOST_TOGETHER):
        for values in itertools.product(useful_values(one), useful_values(other)):
            yield {one.name: values[0], other.name: values[1]}
