"""What the command of a run of nvbandwidth says of its figures: buffers, host memory, GPUs."""

from __future__ import annotations

import re

from msgspec.structs import replace

from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries
from waywiser.exchange.imports.nearby import NODE, on_node
from waywiser.exchange.imports.nvbandwidth_cases import with_buffers
from waywiser.exchange.imports.run_labels import with_run
from waywiser.exchange.imports.visible_gpus import (
    renumbered,
    uncertain_gpus,
    visible_gpus,
    with_settings,
    with_uncertain,
    without_variable,
)

BOUND = "its host memory is on numa:{}, as its command binds it"

SPREAD = "its command puts its host memory on other nodes than one: {}"


def with_command(
    found: ForeignFile, command: CommandLine | None, said: tuple[str, ...] = ()
) -> ForeignFile:
    """The file with what the command says; places name what they can, the rest are settings.
    ``said`` are settings beside the command."""
    if command is None:
        return with_settings(found, None, said)
    size = command.value_of("-b", "--bufferSize")
    buffers = int(size) * 2**20 if re.fullmatch(r"[0-9]{1,6}", size) else 0
    visible = visible_gpus(command)
    numbered = renumbered(found, visible)
    settings = command.settings
    if numbered is not found:
        settings = without_variable(settings, visible)
    node = command.memory_node
    places = [e for e in settings if e.startswith(("membind=", "preferred=", "interleave="))]
    spread = places[0] if places and node is None else ""
    uncertain = uncertain_gpus(command)

    def changed(series: ForeignSeries) -> ForeignSeries:
        if buffers:
            series = with_buffers(series, buffers)
        own = settings
        if node is not None and NODE in series.notes:
            series = on_node(series, node, BOUND.format(node))
            own = tuple(each for each in own if not each.startswith(("membind=", "preferred=")))
        elif spread and NODE in series.notes:
            series = with_run(series, spread).noted(SPREAD.format(spread))
        series = with_uncertain(series, uncertain).noted(*command.notes)
        return replace(series, settings=tuple(sorted({*own, *said})))

    return replace(
        numbered,
        measured=tuple(map(changed, numbered.measured)),
        halves=tuple(replace(each, series=changed(each.series)) for each in numbered.halves),
    )
