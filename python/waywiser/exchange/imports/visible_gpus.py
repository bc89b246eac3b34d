"""GPUs as a command numbers them: variables such as CUDA_VISIBLE_DEVICES choose and order them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries
from waywiser.exchange.imports.run_labels import with_run
from waywiser.words import Memory, Operation, Path, Place, Transfer, Value, WordError, Workload

VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


class VisibleGpus(Value, frozen=True):
    """The GPUs that a program sees, in its order, by the numbers of the machine."""

    gpus: tuple[int, ...] = ()
    """Empty if its command does not number them."""
    variable: str = ""


def visible_gpus(command: CommandLine | None) -> VisibleGpus:
    """None for a command without such a variable, with several, and with names of GPUs."""
    given = _given(command)
    if len(given) != 1:
        return VisibleGpus()
    ((name, text),) = given.items()
    listed = text.split(",")
    if name in UNREAD or not all(re.fullmatch(r"[0-9]{1,3}", each) for each in listed):
        return VisibleGpus()
    gpus = tuple(map(int, listed))
    return VisibleGpus(gpus, name) if len(set(gpus)) == len(gpus) else VisibleGpus()


UNREAD = ("NVIDIA_VISIBLE_DEVICES", "gpu-bind")
"""What may choose GPUs: the variable does in a container only, and the option for each rank."""


def _given(command: CommandLine | None) -> dict[str, str]:
    """What chooses the GPUs of a command, by name."""
    if command is None:
        return {}
    given = {name: command.environment[name] for name in VARIABLES if name in command.environment}
    named = dict(each.partition("=")[::2] for each in command.settings)
    if found := re.fullmatch(r"\"?device=([^\"]+)\"?", named.get("gpus", "")):
        given["gpus"] = found[1]
    variable = command.environment.get("NVIDIA_VISIBLE_DEVICES", "all")
    if variable not in ("all", "void", "none", ""):
        given["NVIDIA_VISIBLE_DEVICES"] = variable
    if "map_gpu" in (bind := named.get("gpu-bind", "")) or "mask_gpu" in bind:
        given["gpu-bind"] = bind
    return given


def uncertain_gpus(command: CommandLine | None) -> str:
    """What chooses the GPUs of a command in a way that is not read; empty for nothing."""
    if visible_gpus(command).gpus:
        return ""
    return " ".join(f"{name}={value}" for name, value in _given(command).items())


def renumbered(found: ForeignFile, visible: VisibleGpus) -> ForeignFile:
    """The file with the machine's numbers of its GPUs. The same if it is of more than are
    visible, as of several hosts."""
    used = [gpu.index for gpu in found.gpus]
    used += [place.index for each in found.measured for place in each.workload.named_places
             if place.kind == "gpu"]  # fmt: skip
    if not visible.gpus or max(used, default=0) >= len(visible.gpus):
        return found
    gpus = visible.gpus
    note = f"gpu:N is the N of the machine, as {visible.variable} says"
    return replace(
        found,
        gpus=tuple(replace(each, index=gpus[each.index]) for each in found.gpus),
        measured=tuple(_series(each, gpus).noted(note) for each in found.measured),
        halves=tuple(
            replace(each, series=_series(each.series, gpus).noted(note)) for each in found.halves
        ),
    )


def with_uncertain(series: ForeignSeries, uncertain: str) -> ForeignSeries:
    """The series with a note and a label if something chooses its GPUs in a way that is not
    read."""
    if not uncertain or not any(place.kind == "gpu" for place in series.workload.named_places):
        return series
    note = f"its GPUs are numbered as the program sees them: {uncertain} may choose others"
    return with_run(series, uncertain).noted(note)


def without_variable(settings: Sequence[str], visible: VisibleGpus) -> tuple[str, ...]:
    """Settings but for the variable, if places name what it says."""
    if not visible.gpus:
        return tuple(settings)
    return tuple(each for each in settings if not each.startswith(f"{visible.variable}="))


def with_settings(
    found: ForeignFile, command: CommandLine | None, said: tuple[str, ...] = ()
) -> ForeignFile:
    """The file with the settings of its command, and its GPUs as the machine numbers them.
    ``said`` are settings beside the command."""
    if command is None and not said:
        return found
    visible = visible_gpus(command)
    numbered = renumbered(found, visible)
    settings = (*(command.settings if command else ()), *said)
    if numbered is not found:
        settings = without_variable(settings, visible)

    uncertain = uncertain_gpus(command)

    def changed(series: ForeignSeries) -> ForeignSeries:
        series = replace(series, settings=tuple(sorted({*(series.settings or ()), *settings})))
        series = series.noted(*(command.notes if command else ()))
        return with_uncertain(series, uncertain)

    return replace(
        numbered,
        measured=tuple(map(changed, numbered.measured)),
        halves=tuple(replace(each, series=changed(each.series)) for each in numbered.halves),
    )


def _series(series: ForeignSeries, gpus: Sequence[int]) -> ForeignSeries:
    return replace(series, workload=_workload(series.workload, gpus))


def _workload(workload: Workload, gpus: Sequence[int]) -> Workload:
    if workload.operation is not None:
        return replace(workload, operation=_operation(workload.operation, gpus))
    return replace(workload, transfers=tuple(_transfer(each, gpus) for each in workload.transfers))


def _operation(operation: Operation, gpus: Sequence[int]) -> Operation:
    parameters = {key: _text(value, gpus) for key, value in operation.parameters.items()}
    return replace(operation, place=_place(operation.place, gpus), parameters=parameters)


def _text(value: str, gpus: Sequence[int]) -> str:
    try:
        return str(_place(Place.parse(value), gpus))
    except WordError:
        return value


def _transfer(transfer: Transfer, gpus: Sequence[int]) -> Transfer:
    source, to = (_memory(end, gpus) for end in transfer.path.ends)
    return replace(transfer, path=Path(source, to, transfer.path.executor))


def _memory(memory: Memory, gpus: Sequence[int]) -> Memory:
    return replace(memory, place=_place(memory.place, gpus))


def _place(place: Place, gpus: Sequence[int]) -> Place:
    is_one = place.kind == "gpu" and not place.is_several and place.index < len(gpus)
    return Place("gpu", gpus[place.index]) if is_one else place
