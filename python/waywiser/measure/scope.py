"""What of this machine is to be measured: its places, less those that are skipped and why."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Container, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from waywiser.curves.select import nodes_in
from waywiser.machine import LOST_REMEDY, Gpu, Machine, SystemFiles, lost_text, native
from waywiser.machine.catalogue import registered_traits
from waywiser.machine.file_places import (
    SCRATCH,
    SHARED_MEMORY,
    TMPFS,
    FileError,
    existing_file,
    scratch_folder,
)
from waywiser.machine.machine import FilePlace
from waywiser.machine.nccl_library import use_nccl
from waywiser.measure.probe.aside import leave_one_cpu_aside
from waywiser.measure.probe.environment import worker_environment
from waywiser.measure.probe.sharing import memory_bound, usable_gpus
from waywiser.words import MOST_INDEX, Unsupported, Value, WaywiserError, whole_number

if TYPE_CHECKING:
    from waywiser.measure.plan.plan import Plan
    from waywiser.measure.ranks.world import RankTeams

ALL = "all"
NONE = "none"

NCCL = "nccl"
"""The library of `waywiser.machine.catalogue.ExecutorKind.loads` whose version is stored."""

DRIVER_SECONDS = 60.0
"""Seconds for the driver to answer whether it works: waking many GPUs takes it seconds."""


class ScopeError(WaywiserError):
    """This machine is not what was requested."""


class MissingGpus(ScopeError):
    """GPUs do not answer, or are fewer than expected: a finding, and no misuse."""

    exit_code = 1


class MachineSelection(Value, frozen=True):
    """The part of the machine that a survey measures, as the user selected it."""

    gpus: str = ALL
    """``all``, ``none``, or indices: ``0,2``."""
    share: bool = False
    """Also GPUs that others are using."""
    memory_bytes: int = 4 << 30
    files: tuple[str, ...] = ()
    """Paths of files to be read."""
    scratch: str = ""
    """The folder for scratch files; empty for none, and none in memory either."""
    scratch_named: bool = msgspec.field(default=False, name="scratch_asked")
    """The user named the folder: if it cannot be used, that is an error."""
    ranks: int = 0
    """Processes of MPI between which messages are measured; 0 for a survey without."""
    ranks_per_gpu: int = 0
    """0 for as many on each GPU."""
    rank_cpus: str = "near"
    mpicc: str = ""
    launcher: str = ""
    """The template of another launcher than the library's."""
    nccl: str = ""
    """The NCCL that the user named; empty for the one that is found."""


@dataclass(frozen=True)
class Scope:
    """The part of the machine that is measured, with what was skipped."""

    machine: Machine
    memory_bytes: int
    unsupported_paths: tuple[Unsupported, ...] = ()
    notes: tuple[str, ...] = ()
    teams: RankTeams | None = None
    """The machine's ranks, if it has some."""


def read_scope(selection: MachineSelection, patterns: Iterable[str] = ()) -> Scope:
    """Looks at this machine now, without a GPU context in this process. NUMA nodes that
    ``patterns`` name are measured even if they have no CPUs.

    Raises `ScopeError` for GPUs that are not there or do not answer, `SharingError` if a control
    group leaves no memory, `waywiser.machine.file_places.FileError` for files and folders that
    cannot be used.
    """
    if selection.nccl:
        use_nccl(selection.nccl)
    machine = live_machine(nodes_in(patterns))
    require_answers(machine, selection)
    memory_bytes, note = memory_bound(selection.memory_bytes)
    scope = Scope(machine, memory_bytes, notes=(note,) if note else ())
    scope = _selected(scope, selection.gpus)
    scope = _free(scope, selection.share)
    scope = _working(scope)
    scope = _with_files(scope, selection)
    scope = replace(scope, machine=leave_one_cpu_aside(scope.machine))
    return _with_ranks(scope, selection) if selection.ranks else scope


def require_answers(machine: Machine, selection: MachineSelection) -> None:
    """Raises `MissingGpus` if a GPU of this process does not answer, and no GPUs are selected: a
    survey without it would pass for one of the whole machine."""
    lost = lost_text(machine)
    if lost and selection.gpus == ALL:
        others = ",".join(str(gpu.index) for gpu in machine.gpus) or NONE
        raise MissingGpus(lost, remedy=f"{LOST_REMEDY}; to measure without it: --gpus {others}")


def live_machine(named: Container[int] = ()) -> Machine:
    """This machine as it is now, with the traits of what the native library can measure, and the
    free memory of its NUMA nodes, of which those without CPUs have to be ``named``. If the library
    only pretends to GPUs, with these, and with what the management library reports of the same
    ones."""
    from waywiser.machine import capture_live, machine_from

    library = native.load()
    machine = machine_from(capture_live(), named)
    nodes = tuple(
        msgspec.structs.replace(node, memory_free_bytes=library.free_on_node(node.index))
        for node in machine.numa
    )
    machine = msgspec.structs.replace(machine, numa=nodes, traits=registered_traits())
    if library.backend != "fake":
        return machine
    hosts = {node.index for node in machine.numa if node.cpus}
    known = {gpu.uuid: gpu for gpu in machine.gpus}
    gpus = tuple(
        _pretended(gpu, library.gpus(), known.get(gpu["uuid"]), hosts) for gpu in library.gpus()
    )
    reason = library.gpu_unavailable_reason()
    return msgspec.structs.replace(machine, gpus=gpus, gpu_reason=reason)


def working_machine() -> Machine:
    """`live_machine` without GPUs that this build or the driver cannot use."""
    return _working(Scope(live_machine(), 0)).machine


def _pretended(
    gpu: dict[str, Any], everyone: list[dict[str, Any]], known: Gpu | None, hosts: Container[int]
) -> Gpu:
    numa = SystemFiles().integer(f"/sys/bus/pci/devices/{gpu['pci']}/numa_node")
    node = numa if numa is not None and numa in hosts else -1
    bare = Gpu(gpu["index"], gpu["uuid"], gpu["name"], gpu["pci"], node)
    return msgspec.structs.replace(
        known or bare,
        index=gpu["index"],
        memory_bytes=gpu["memory_bytes"],
        memory_free_bytes=gpu["free_bytes"],
        compute=gpu["compute"],
        peers=tuple(other["index"] for other in everyone if other["index"] != gpu["index"]),
        pageable_access=gpu["pageable_access"],
    )


def _with_ranks(scope: Scope, selection: MachineSelection) -> Scope:
    """The scope with the ranks that a launch will have."""
    from waywiser.machine import crowd_note, placement_text
    from waywiser.measure.ranks.launch_start import require_room
    from waywiser.measure.ranks.mpi_library import find_library
    from waywiser.measure.ranks.placement import place_ranks
    from waywiser.measure.ranks.tries import untaken_kinds
    from waywiser.measure.ranks.world import RankTeams

    library = find_library(selection.mpicc)
    ranks = place_ranks(
        scope.machine, selection.ranks, selection.ranks_per_gpu, selection.rank_cpus
    )
    require_room(library, len(ranks))
    untaken = untaken_kinds(library, scope.machine, selection.launcher)
    unsent, unexchanged = untaken["send"], untaken["alltoallv"]
    kinds = {"unsent": tuple(unsent), "unexchanged": tuple(unexchanged)}
    machine = msgspec.structs.replace(
        scope.machine,
        ranks=tuple(msgspec.structs.replace(rank, **kinds) for rank in ranks),
        messages=f"{library.name} {library.version}".strip(),
    )
    notes = [placement_text(ranks)]
    notes += [f"the MPI library does not send {kind}: {why}" for kind, why in unsent.items()]
    notes += [
        f"collective calls of the MPI library do not take {kind} memory: {why}"
        for kind, why in unexchanged.items()
    ]
    notes += filter(None, [crowd_note(ranks)])
    teams = RankTeams(library, len(ranks), selection.launcher)
    return replace(scope, machine=machine, notes=(*scope.notes, *notes), teams=teams)


def _with_files(scope: Scope, selection: MachineSelection) -> Scope:
    """The scope with the places where files are."""
    own, unsupported_paths = _own_places(selection)
    named = (existing_file(path) for path in selection.files)
    places = (*own, *{place.name: place for place in named}.values())
    machine = msgspec.structs.replace(scope.machine, files=places)
    return replace(
        scope, machine=machine, unsupported_paths=(*scope.unsupported_paths, *unsupported_paths)
    )


def _own_places(selection: MachineSelection) -> tuple[list[FilePlace], list[Unsupported]]:
    """Where scratch files may be made, and why not."""
    if not selection.scratch:
        return [], []
    found: list[FilePlace] = []
    unsupported_paths: list[Unsupported] = []
    folders = {SCRATCH: selection.scratch, TMPFS: SHARED_MEMORY}
    for name, folder in folders.items():
        try:
            found.append(scratch_folder(folder, name))
        except FileError as error:
            if selection.scratch_named and name == SCRATCH:
                raise
            unsupported_paths.append(Unsupported(f"file:{name}", str(error)))
    return found, unsupported_paths


def _without(scope: Scope, kept: set[int], reason: str) -> Scope:
    """Only the GPUs kept; ``reason`` is the machine's if none is left."""
    gpus = tuple(gpu for gpu in scope.machine.gpus if gpu.index in kept)
    why = scope.machine.gpu_reason if gpus or not scope.machine.gpus else reason
    machine = msgspec.structs.replace(scope.machine, gpus=gpus, gpu_reason=why)
    return replace(scope, machine=machine)


def _selected(scope: Scope, gpus: str) -> Scope:
    if gpus == ALL:
        return scope
    if gpus == NONE:
        return _without(scope, set(), "skipped by --gpus none")
    words = [whole_number(word.strip(), MOST_INDEX) for word in gpus.split(",")]
    selected = {word for word in words if word is not None}
    if None in words:
        raise ScopeError(f"--gpus {gpus!r} is not a list of GPUs", remedy="write 0,1 or none")
    there = {gpu.index for gpu in scope.machine.gpus}
    if missing := sorted(selected - there):
        known = ", ".join(map(str, sorted(there))) or f"none: {scope.machine.gpu_reason}"
        raise ScopeError(
            f"--gpus {gpus}: this machine has no gpu:{missing[0]}", remedy=f"it has {known}"
        )
    return _without(scope, selected, "")


def _free(scope: Scope, share: bool) -> Scope:
    kept, unsupported_paths = usable_gpus(scope.machine, share, scope.memory_bytes)
    reason = "; ".join(
        f"{unsupported.path} is {unsupported.reason}" for unsupported in unsupported_paths
    )
    return replace(_without(scope, set(kept), reason), unsupported_paths=tuple(unsupported_paths))


def _working(scope: Scope) -> Scope:
    """The scope without GPUs if this build or the driver cannot use them."""
    if not scope.machine.gpus:
        return scope
    reason = _unavailable_reason()
    return _without(scope, set(), reason) if reason else scope


def with_nccl(scope: Scope, plan: Plan) -> Scope:
    """The scope with the version of NCCL, if the plan has transfers by it. One that does not load
    has none: their tries give the reason."""
    if not any(point.curve.loads == NCCL for point in plan.points):
        return scope
    return replace(scope, machine=msgspec.structs.replace(scope.machine, nccl=nccl_version()))


def nccl_version() -> str:
    """The version of the NCCL that workers load; empty if none loads."""
    question = "from waywiser.machine import native; print(native.load().nccl_version())"
    with suppress(ScopeError):
        answer = _answer(question)
        return "" if answer.returncode else answer.stdout.strip()
    return ""


def _unavailable_reason() -> str:
    """Why this build or the driver cannot use GPUs; empty if they can."""
    library = native.load()
    if library.backend == "none":
        return str(library.gpu_unavailable_reason())
    question = "from waywiser.machine import native; print(native.load().gpu_unavailable_reason())"
    try:
        answer = _answer(question)
    except ScopeError as error:
        return str(error)
    if answer.returncode:
        lines = answer.stderr.strip().splitlines()
        return f"the GPU driver fails: {lines[-1] if lines else f'status {answer.returncode}'}"
    return " ".join(answer.stdout.split())


def _answer(question: str) -> subprocess.CompletedProcess[str]:
    """What a process of its own answers: it loads the driver or NCCL, which this one never does.
    Raises `ScopeError`."""
    try:
        return subprocess.run(
            [sys.executable, "-c", question],
            env=worker_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DRIVER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ScopeError(f"the GPU driver does not answer within {DRIVER_SECONDS:.0f} s") from error
