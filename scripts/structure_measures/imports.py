"""The imports between the modules of a package, by `grimp`: every import, also those within
functions and those for types alone.

The root of the package is left out: it only passes on what others have, when that is called.
"""

from __future__ import annotations

import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import grimp

Import = tuple[str, str]
"""Who imports, and what."""


def module_imports(folder: Path, package: str) -> set[Import]:
    """The imports between the modules of a package that is in ``folder``."""
    sys.path.insert(0, str(folder))
    try:
        graph = grimp.build_graph(package, cache_dir=None, exclude_type_checking_imports=False)
    finally:
        sys.path.remove(str(folder))
    return {
        (module, found)
        for module in graph.modules - {package}
        for found in graph.find_modules_directly_imported_by(module) - {package}
    }


def package_imports(imports: Iterable[Import]) -> set[Import]:
    """The imports between entries of the package: its modules and the packages in it."""
    pairs = {(module.split(".")[1], found.split(".")[1]) for module, found in imports}
    return {pair for pair in pairs if pair[0] != pair[1]}


def circles(imports: Iterable[Import]) -> list[list[str]]:
    """The groups of modules each of which reaches all others of its group by imports."""
    imports = set(imports)
    after, before = _graph(imports), _graph((b, a) for a, b in imports)
    groups = (_reached(name, after) & _reached(name, before) for name in after)
    return sorted(map(list, {tuple(sorted(group)) for group in groups if group}))


def layers(imports: Iterable[Import]) -> int:
    """The modules in the longest chain of imports. The modules of a circle count as one."""
    imports = set(imports)
    group_of = {name: group[0] for group in circles(imports) for name in group}
    joined = ((group_of.get(a, a), group_of.get(b, b)) for a, b in imports)
    after = _graph((a, b) for a, b in joined if a != b)
    heights: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in heights:
            heights[name] = 1 + max(map(height, after.get(name, ())), default=0)
        return heights[name]

    return max(map(height, list(after)), default=1)


def _graph(imports: Iterable[Import]) -> Mapping[str, set[str]]:
    graph: defaultdict[str, set[str]] = defaultdict(set)
    for module, found in imports:
        graph[module].add(found)
    return graph


def _reached(name: str, graph: Mapping[str, set[str]]) -> set[str]:
    """All that a module reaches by one import or more."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for each in graph.get(waiting.pop(), set()) - found:
            found.add(each)
            waiting.append(each)
    return found


def contract_layers(pyproject: Path) -> int:
    """The lines of the import contract of layers; modules that share a line do not import one
    another."""
    with pyproject.open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    return sum(len(contract.get("layers", ())) for contract in contracts)
