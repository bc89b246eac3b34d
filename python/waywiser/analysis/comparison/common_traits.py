"""What the slower paths of a comparison have in common, and the other paths have not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from waywiser.analysis.comparison.path_change import BOUNDED, REGIMES, PathChange
from waywiser.curves.headline import in_order
from waywiser.machine.traits import Traits
from waywiser.words import Workload
from waywiser.words.number_format import count

SLOWER = ("regression", "suspected")


def common_traits(
    paths: Iterable[PathChange], workloads: Mapping[str, Workload], traits: Traits
) -> str:
    """``no change was found on 16 paths over GPU links (H2D, D2H; a loss of 4.1% or more would have
    been found); CPUs have a part in all 5 slower paths``; empty if nothing can be said, or if no
    path is slower. ``workloads`` are by curve."""
    measured = [path for path in paths if path.parts]
    slower = [path for path in measured if path.verdict in SLOWER]
    others = [path for path in measured if path.verdict not in SLOWER]
    if not slower:
        return ""
    found = []
    links = [path for path in measured if path.headline in BOUNDED]
    if links and all(path.verdict == "no change" for path in links):
        groups = in_order(path.headline for path in links if path.headline)
        known = [path.detectable for path in links if path.detectable is not None]
        missed = "the noise of some is not known"
        if len(known) == len(links):
            missed = f"a loss of {max(known):.1%} or more would have been found"
        found.append(
            f"no change was found on {count(len(links), 'path')} over GPU links "
            f"({', '.join(groups)}; {missed})"
        )
    if found or len(slower) > 1:
        found += _shared(slower, others, workloads, traits)[:1]
    return "; ".join(found)


def _shared(
    slower: Sequence[PathChange],
    others: Sequence[PathChange],
    workloads: Mapping[str, Workload],
    traits: Traits,
) -> list[str]:
    """What all slower paths have and not all others, the most specific first."""
    of_slower = [dict(_traits(path, workloads[path.curve], traits)) for path in slower]
    of_others = [dict(_traits(path, workloads[path.curve], traits)) for path in others]
    all_ = "both" if len(slower) == 2 else f"all {len(slower)}"
    who = "the slower path" if len(slower) == 1 else f"{all_} slower paths"
    number = 0 if len(slower) == 1 else 1
    return [
        texts[number].format(who)
        for trait, texts in of_slower[0].items()
        if all(trait in each for each in of_slower)
        and not (of_others and all(trait in each for each in of_others))
    ]


def _traits(
    path: PathChange, workload: Workload, traits: Traits
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each trait of a path, with what is said of one path that has it, and of several."""
    for device in path.devices:
        yield device.place, (f"{{}} uses {device.place}", f"{{}} use {device.place}")
    if workload.kind == "operation":
        text = "an operation that moves no bytes"
        yield "operation", (f"{{}} is {text}", "{} are operations that move no bytes")
    memories = [m for t in workload.transfers for m in t.path.ends]
    if any(memory.place.kind == "file" for memory in memories):
        yield "file", ("{} reads or writes a file", "{} read or write files")
    if any(traits.memory(memory.kind).migrates for memory in memories):
        yield "unified", ("{} moves unified memory", "{} move unified memory")
    executors = {transfer.path.executor for transfer in workload.transfers}
    if any(traits.executor(each).uses_cpus for each in executors) or any(
        traits.memory(memory.kind).is_moved_by_cpus for memory in memories
    ):
        yield "CPUs", ("CPUs have a part in {}", "CPUs have a part in {}")
    if path.why == REGIMES["latency"]:
        yield "latency", ("{} is slower in latency alone", "{} are slower in latency alone")
