"""The two sides of a comparison, and what differs between their machines, among the files of one
side too.

Every file counts: of several that are new, one may have another driver than the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from waywiser.analysis.comparison.comparison_text import (
    GONE,
    ONLY_IN_BASE,
    UNNAMED,
    copy_text,
    no_repetition,
    unfinished,
)
from waywiser.analysis.comparison.hardware import counted_models, gpus_of_class
from waywiser.curves import Device, Devices, Subject, device_of, is_copy, without_copies
from waywiser.machine import Gpu, load_of, placement_text
from waywiser.profile import resume_command, stored_request
from waywiser.words import count, grouped

ENVIRONMENT = (
    "waywiser", "kernel", "microcode", "governor", "turbo", "smt", "numa_balancing",
    "transparent_huge_pages", "iommu", "virtualisation", "container", "cpus_allowed",
    "memory_nodes_allowed", "cgroup_cpus", "cuda_driver", "cuda_runtime",
)  # fmt: skip
"""Settings of a machine that a survey records and that change numbers."""

ISOLATION = ("gpu_confidential", "confidential_guest", "iommu_types", "acs_redirects")
"""The same, which earlier versions did not record: compared if all surveys have the first."""

NESTED = ("boot_parameters", "variables")
"""The same, of several values with names of their own."""

OF_ANOTHER_GPU = ": a change of its paths can be the other GPU, not a fault; make a new baseline"
"""What follows if a GPU was exchanged."""

ABSENT = "none"

LONGEST = 60
"""Characters of one value that are shown."""


def differences(base: Sequence[Subject], new: Sequence[Subject]) -> Iterator[str]:
    """One line each; the machines first, then what they were asked and what their files lack."""
    if settings := message_settings(base, new):
        yield f"other settings of the MPI library: {settings}"
    if not another_machine(base, new):
        for what, value in (
            ("host", _host),
            ("class of hardware", _classes((*base, *new))),
            ("CPU", _cpu),
        ):
            yield from _changed(f"another {what}: ", base, new, value)
    for what, value in (
        ("driver", lambda node: node.machine.driver),
        ("MPI library", lambda node: node.machine.messages),
        ("NCCL", lambda node: node.machine.nccl),
        ("placement of ranks", lambda node: placement_text(node.machine.ranks)),
    ):
        yield from _changed(f"another {what}: ", base, new, value)
    yield from _environment(base, new)
    yield from _changed("another plan: ", base, new, _plan)
    for node in (*base, *new):
        if node.machine.untimed:
            yield untimed(node)
        if text := loaded(node):
            yield text
        if node.unfinished:
            yield f"{unfinished(node.called)}; continue it with {resume_command(node.called)}"
    for node in new:
        for old in base:
            if is_copy(old, node):
                yield f"{node.called} is the same survey as {old.called}: it has no new information"


def untimed(node: Subject) -> str:
    """The note on a simulated or emulated machine."""
    return f"{node.called} is {node.machine.untimed}"


def loaded(node: Subject) -> str:
    """How much other programs used the CPUs while a node was surveyed, with its file; empty if they
    did not, or if that is not known."""
    text = load_text(node)
    return f"{node.called} was surveyed under load: {text}" if text else ""


def load_text(node: Subject) -> str:
    """The same without the file."""
    load = load_of(node.environment)
    return f"{load.text} ({load.source})" if load is not None and load.is_loaded else ""


def another_machine(base: Sequence[Subject], new: Sequence[Subject]) -> str:
    """What differs, if no machine of one side is one of the other; else empty."""
    if any(is_same_machine(old, now) for old in base for now in new):
        return ""
    changes = [
        f"{what} {text}"
        for what, value in (("host", _host), ("GPUs", _gpus), ("CPU", _cpu))
        for text in _changed("", base, new, value)
    ]
    return "; ".join(changes or ["no GPU has the same UUID"])


def is_same_machine(old: Subject, now: Subject) -> bool:
    """Whether two profiles are of one machine: they have a GPU in common, or nothing says that they
    are of two (the host, the CPUs, the models of GPUs, the UUIDs of GPUs)."""
    before, after = ({gpu.uuid for gpu in node.machine.gpus if gpu.uuid} for node in (old, now))
    if before & after:
        return True
    sides = ((_host(old), _host(now)), (_cpu(old), _cpu(now)), (gpu_models(old), gpu_models(now)))
    if any(was and is_ and was != is_ for was, is_ in sides):
        return False
    return not (before and after)


def _gpus(node: Subject) -> str:
    return counted_models(node.machine.gpus, len(node.machine.gpus)) if _are_named(node) else ""


def gpu_models(node: Subject) -> set[str]:
    """The models of a node's GPUs; empty if not all are known."""
    return {gpu.name for gpu in node.machine.gpus} if _are_named(node) else set()


def _are_named(node: Subject) -> bool:
    """Whether the models of all GPUs are known."""
    return all(_known(gpu.name) for gpu in node.machine.gpus)


def _host(node: Subject) -> str:
    return _known(node.machine.hostname)


def of_gpus(
    before: Sequence[Subject], after: Sequence[Subject], gone: str, *, same_machine: bool
) -> Iterator[str]:
    """GPUs that have gone, came or, of the ``same_machine``, were exchanged. The GPUs of
    all nodes are matched to those of the base with the most of them; ``gone`` is
    how a line about one that the new files lack ends. Results of other tools say nothing of GPUs
    that they do not name."""
    hosts = {each.machine.hostname for each in before}
    before_named = "named" if any(node.is_of_results for node in before) else "there"
    for surveys, side in ((before, "base"), (after, "")):
        found: dict[str, list[str]] = {}
        exchanged: set[str] = set()
        for node in surveys:
            is_not, is_only = "is not", "is only"
            if not side:
                is_not = UNNAMED if node.is_of_results else gone
                is_only = f"was not {before_named} before"
            elif node.is_of_results:
                is_not, is_only = "is not named", "is named only"
            texts = [f"{device_of(gpu)} {is_not}" for gpu in node.match.missing]
            texts += [f"{device_of(gpu)} {is_only}" for gpu in node.match.added]
            if same_machine and node.machine.hostname in hosts:
                others = [_exchanged(old, now, side) for old, now in node.match.exchanged]
                exchanged.update(others)
                texts += others
            for text in texts:
                found.setdefault(text, []).append(node.called)
        for text, having in found.items():
            is_everywhere = len(having) == len(surveys) and not side
            where = f" in {_and(having)}{' of the base' if side else ''}"
            follows = OF_ANOTHER_GPU if text in exchanged and not side else ""
            yield f"{text}{'' if is_everywhere else where}{follows}"


def _exchanged(old: Gpu, now: Gpu, side: str) -> str:
    if side:
        return f"gpu:{now.index} is {now.uuid} and not {old.uuid}"
    return f"gpu:{now.index} is another device ({old.uuid} before, {now.uuid} now)"


def _changed(
    head: str, base: Sequence[Subject], new: Sequence[Subject], value: Callable[[Subject], str]
) -> Iterator[str]:
    before, after = _sides(base, value), _sides(new, value)
    if len(before | after) > 1:
        yield f"{head}{_side(before)} before, {_side(after)} now"


def _sides(nodes: Sequence[Subject], value: Callable[[Subject], str]) -> dict[str, list[str]]:
    """The files that have each value; unknown values are skipped."""
    return grouped((text, node.called) for node in nodes if (text := value(node)))


def _side(values: Mapping[str, Sequence[str]]) -> str:
    """The value, or each with its files if there are several."""
    if len(values) < 2:
        return next(iter(values), "unknown")
    return _and([f"{value} ({', '.join(files)})" for value, files in values.items()])


def _and(texts: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(texts[:-1]), texts[-1])))


def _known(text: str) -> str:
    """Empty for what an import calls unknown: then it cannot be compared."""
    return "" if text.split(" ")[0] == "unknown" else text


def _classes(nodes: Sequence[Subject]) -> Callable[[Subject], str]:
    """The class of each node as a fleet has it (`waywiser.analysis.comparison.hardware`), without
    the CPU: ``8 × NVIDIA H200``, with NUMA nodes and architecture if these differ. Empty if another
    tool does not name all GPUs."""
    machines = [node.machine for node in nodes]
    numbers = {id(node): n for node, n in zip(nodes, gpus_of_class(machines), strict=True)}
    described = [machine for machine in machines if machine.nodes_known]
    uneven = len({len(machine.numa) for machine in described}) > 1
    foreign = len({machine.architecture for machine in described}) > 1

    def class_of(node: Subject) -> str:
        machine = node.machine
        if not _are_named(node):
            return ""
        parts = [counted_models(machine.gpus, numbers[id(node)])]
        if machine.nodes_known:
            parts += [count(len(machine.numa), "NUMA node")] if uneven else []
            parts += [machine.architecture] if foreign else []
        return ", ".join(filter(None, parts))

    return class_of


def _cpu(node: Subject) -> str:
    """``2 × Xeon, 128 CPUs``; empty if another tool does not say."""
    packages = node.machine.packages
    if not _known(node.machine.cpu_model):
        return ""
    cpus = sum(package.cpus for package in packages)
    several = f"{len(packages)} × " if len(packages) > 1 else ""
    return f"{several}{node.machine.cpu_model}{f', {cpus} CPUs' if cpus else ''}"


def _plan(node: Subject) -> str:
    """What the survey was asked for, as its options; empty if that is not known."""
    request = stored_request(node.request)
    return _clipped(" ".join(request.options)) if request else ""


def _environment(base: Sequence[Subject], new: Sequence[Subject]) -> Iterator[str]:
    """Differences of the environment between surveys: another tool's files say little of where they
    were made."""
    old, now = ([node for node in side if "kernel" in node.environment] for side in (base, new))
    if not old or not now:
        return
    names = dict.fromkeys(ENVIRONMENT)
    if all(ISOLATION[0] in node.environment for node in (*old, *now)):
        names.update(dict.fromkeys(ISOLATION))
    for node in (*old, *now):
        for group in NESTED:
            values = node.environment.get(group)
            if isinstance(values, dict):
                names.update(dict.fromkeys(f"{group}.{name}" for name in sorted(values)))
    changes: list[str] = []
    for name in names:
        called = name.partition(".")[2] or name.replace("_", " ")
        changes += _changed(f"{called} ", old, now, _value_of(name))
    if changes:
        yield f"another environment: {'; '.join(changes)}"


def message_settings(base: Sequence[Subject], new: Sequence[Subject]) -> str:
    """``UCX_TLS none before, tcp now``: differences of the variables of the MPI library; empty if
    there are none, or not all surveys recorded them."""
    known = [_message_variables(node) for node in (*base, *new)]
    recorded = [each for each in known if each is not None]
    if len(recorded) < len(known):
        return ""
    names = sorted({name for each in recorded for name in each})
    changes: list[str] = []
    for name in names:
        changes += _changed(f"{name} ", base, new, _message_variable(name))
    return "; ".join(changes)


def _message_variable(name: str) -> Callable[[Subject], str]:
    return lambda node: _clipped(str((_message_variables(node) or {}).get(name) or ABSENT))


def _message_variables(node: Subject) -> dict[str, Any] | None:
    """Returns the variables of the MPI library; None if the survey did not record them."""
    library = node.environment.get("messages")
    found = library.get("variables") if isinstance(library, dict) else None
    return found if isinstance(found, dict) else None


def _value_of(name: str) -> Callable[[Subject], str]:
    """The value of an entry of the environment, see `entry_of`."""
    return lambda node: entry_of(node.environment, name)


def entry_of(environment: Mapping[str, Any], name: str) -> str:
    """The value of an entry: ``kernel``, ``variables.CUDA_VISIBLE_DEVICES``."""
    group, _, inner = name.partition(".")
    value: Any = environment.get(group)
    if inner:
        value = value.get(inner) if isinstance(value, dict) else None
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return _clipped(ABSENT if value in (None, "") else str(value))


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


class ComparisonSides:
    """Surveys without copies; all GPUs have the numbers of `reference`."""

    def __init__(
        self, base: Sequence[Subject], new: Sequence[Subject], repeats: Sequence[Subject] = ()
    ) -> None:
        """``repeats`` are later surveys of the new machine; those that are not are `rejected`.
        Raises ValueError for a side without nodes."""
        if not base or not new:
            raise ValueError("a comparison needs a node on each side")
        (base, copies), (new, more) = without_copies(base), without_copies(new)
        usable, self.rejected = _usable(repeats, base, new)
        self.copies = [*copies, *more]
        """(copy, original) by file."""
        self.reference = max(base, key=lambda node: len(node.machine.gpus))
        self.base, self.new, self.repeats = (
            [node.beside(self.reference) for node in side] for side in (base, new, usable)
        )
        self.another = another_machine(base, new)
        """What differs if the new machine is another one; else empty."""

    @cached_property
    def gone(self) -> dict[int, Gpu]:
        """GPUs of the reference that the new surveys lack, by number."""
        return {
            gpu.index: gpu
            for node in self.new
            if not node.is_of_results
            for gpu in node.match.missing
        }

    @cached_property
    def unnamed(self) -> dict[int, Gpu]:
        """GPUs of the reference that new results of other tools do not name, by number: whether
        the machine has them is not known."""
        return {
            gpu.index: gpu
            for node in self.new
            if node.is_of_results
            for gpu in node.match.missing
            if gpu.index not in self.gone
        }

    @cached_property
    def requests(self) -> set[str]:
        """What the surveys were asked for, as text."""
        return {node.request for node in (*self.base, *self.new)}

    @cached_property
    def replanned(self) -> str:
        """The versions of the new files if all have the same request and none was made by a
        version that made a base; else empty. A plan is that of its version: what another one
        leaves out without a reason was not lost by the machine."""
        before, now = (
            {node.environment.get("waywiser") for node in side if node.request}
            for side in (self.base, self.new)
        )
        known = all(isinstance(each, str) and each for each in before | now)
        is_same_request = len(self.requests) == 1 and all(self.requests) and known
        return ", ".join(sorted(map(str, now))) if is_same_request and not before & now else ""

    @cached_property
    def unsupported(self) -> dict[str, str]:
        """Why the new machine does not support a path, by its text."""
        return {each.path: each.reason for node in self.new for each in node.unsupported_paths}

    @property
    def is_in_order(self) -> bool | None:
        """Whether the base was measured before the new surveys; None if no time says so."""
        before, now = (min(node.created for node in side) for side in (self.base, self.new))
        return before < now if before and now and before != now else None

    @property
    def gone_text(self) -> str:
        """How a line about a GPU that has gone ends."""
        return ONLY_IN_BASE if self.another else GONE

    @property
    def exchanged(self) -> tuple[tuple[Device, Device], ...]:
        """(before, now): another device in the same place."""
        pairs = (pair for node in self.new for pair in node.match.exchanged)
        return tuple(dict.fromkeys((device_of(old), device_of(now)) for old, now in pairs))

    @cached_property
    def known(self) -> Devices:
        """The GPUs of the reference."""
        return {gpu.index: device_of(gpu) for gpu in self.reference.machine.gpus}

    @cached_property
    def devices(self) -> Devices:
        """GPUs as the first new survey has them that has them, else as the reference has them."""
        found: dict[int, Device] = {}
        for node in self.new:
            for gpu in node.machine.gpus:
                found.setdefault(node.match.numbers[gpu.index], device_of(gpu))
        return {**self.known, **found}


def _usable(
    repeats: Sequence[Subject], base: Sequence[Subject], new: Sequence[Subject]
) -> tuple[list[Subject], list[str]]:
    """The repeats that are further surveys of the new machine, and a note on each other one."""
    usable, copies = without_copies(repeats)
    notes = [no_repetition(copy_text(copy, of)) for copy, of in copies]
    for repeat in list(usable):
        same = next((each for each in (*base, *new) if is_copy(each, repeat)), None)
        if same is not None:
            fact = f"is the survey {same.called}"
        elif not any(is_same_machine(each, repeat) for each in new):
            fact = "is of another machine"
        elif repeat.created < min(each.created for each in new):
            fact = "is older than the new survey"
        else:
            continue
        notes.append(no_repetition(f"{repeat.called} {fact}"))
        usable.remove(repeat)
    return usable, notes
