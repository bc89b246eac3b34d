"""``waywiser model``: what a model of the machine has found, and how good it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import msgspec

from waywiser.cli.lines import say
from waywiser.cli.text_table import TextColumn, print_table
from waywiser.machine.machine import Machine
from waywiser.model.curve import CurveModel
from waywiser.model.errors import ModelError
from waywiser.model.machine_model import MachineModel, ObtainedModel, obtained_model
from waywiser.model.texts import (
    bandwidth_text,
    first_of_classes,
    form_text,
    latency_text,
    not_identified,
    shared_capacities,
)
from waywiser.profile import Profile
from waywiser.profile.name import SUFFIX
from waywiser.words import WaywiserError, Workload, format_bytes
from waywiser.words.number_format import count, format_rate, format_time

if TYPE_CHECKING:
    from rich.console import Console

    from waywiser.model.held_out import Validation
    from waywiser.model.published import PublishedModel

SCHEMA = 1
"""The schema of the JSON forms. A new field does not change it."""

MOST_ROWS = 16
"""Rows of a table without ``--all``."""

LEAST_GAP = 1e-9
"""Seconds: what is less is no gap that was measured."""


def run_model(file: str, *, everything: bool = False, json: bool = False) -> int:
    """Fits the model, keeps it in the profile, and prints it. Returns 0. Raises `ModelError`, and
    the `ProfileError` of a bad profile."""
    with Profile.open(file) as profile:
        found = obtained_model(profile, keep=True)
        imported = "imported" in profile.environment
    if json:
        from waywiser.cli.streams import print_json

        print_json({"schema": SCHEMA, "profile": file, "kept": found.is_kept, "note": found.note,
                    "model": msgspec.to_builtins(found.model)})  # fmt: skip
        return 0
    from waywiser.cli.printing import plain_console

    print_model(found, file, plain_console(), everything=everything, imported=imported)
    return 0


def print_model(
    found: ObtainedModel,
    file: str,
    console: Console,
    *,
    everything: bool = False,
    imported: bool = False,
) -> None:
    """The model: curves, capacities, messages, findings."""
    model = found.model
    _print_head(found, file, console, imported=imported)
    messages = {each.name for each in model.messages}
    _print_curves(
        "Single transfers",
        [each for each in model.curves if each.text not in messages],
        model.machine,
        console,
        everything=everything,
    )
    _print_curves(
        "Messages and copies of ranks, by pairs that take the same time",
        [each for each in model.curves if each.text in messages],
        model.machine,
        console,
        everything=True,
    )
    _print_counts(model, console)
    _print_capacities(model, console, everything=everything)
    for finding in model.capacities.findings:
        say(console, f"Finding: {finding}.")


def _print_head(
    found: ObtainedModel, file: str, console: Console, *, imported: bool = False
) -> None:
    model = found.model
    day = f"{'imported' if imported else 'measured'} on {model.surveyed[:10]}"
    if model.machine.simulated:
        day = f"simulated on {model.surveyed[:10]} {model.machine.simulated}"
    by_sets = sum(each.basis == "sets" for each in model.capacities.capacities)
    has = [f"{count(len(model.curves), 'curve')} of single transfers"]
    if model.capacities.curves:
        has.append(f"{count(by_sets, 'capacity')}".replace("capacitys", "capacities")
                   + " from sets of transfers")  # fmt: skip
    name = model.machine.hostname or "an unknown machine"
    say(console, f"Model of {name}, {day}: {', '.join(has)}.", "bold")
    if found.is_kept:
        again = f" It was fitted now, since {found.note}." if found.note else ""
        say(console, f"It is kept in {file}, where predict finds it.{again}")
    else:
        say(console, f"It was fitted now: {found.note}. predict fits it each time.")


# Curves.


def _print_curves(
    title: str,
    curves: Sequence[CurveModel],
    machine: Machine,
    console: Console,
    *,
    everything: bool,
) -> None:
    """A row for each curve that has parameters, or for all; then why others have none."""
    if not curves:
        return
    identified = [each for each in curves if each.latency.value or each.inverse_rate.value]
    shown = list(curves if everything else first_of_classes(identified, machine)[:MOST_ROWS])
    say(console, "")
    say(console, title, "bold")
    if shown:
        columns = (
            TextColumn("path", left=True, folds=True),
            TextColumn("latency"),
            TextColumn("GB/s"),
            TextColumn("sizes"),
            TextColumn("predicted from", left=True),
            TextColumn("held-out sizes"),
        )
        print_table(console, columns, [_curve_row(each) for each in shown])
        say(console, "In parentheses: 95 % intervals. Held-out sizes: the median deviation of each "
                     "size from what the others predict.")  # fmt: skip
    if (more := len(identified) - len(shown)) > 0:
        say(console, f"and {more} more with parameters, most of equal paths; --all shows all.")
    for text in not_identified(curves):
        say(console, text)


def _curve_row(curve: CurveModel) -> tuple[str, ...]:
    error = "—" if curve.error is None else f"{curve.error:.1%}"
    return (
        curve.text,
        latency_text(curve.latency),
        bandwidth_text(curve.inverse_rate),
        str(len(curve.sizes)),
        form_text(curve),
        error,
    )


def _print_counts(model: MachineModel, console: Console) -> None:
    if not model.counts:
        return
    say(console, "")
    say(console, "Several messages at once", "bold")
    columns = (
        TextColumn("memory and test", left=True),
        TextColumn("messages"),
        TextColumn("each further one"),
        TextColumn("injection limit, GB/s"),
        TextColumn("held-out numbers"),
    )
    rows = []
    for each in model.counts:
        gap = format_time(each.start_gap.latency) if each.start_gap.latency > LEAST_GAP else "—"
        limit = "not identified"
        if each.limit is not None:
            sure = each.limit.interval.width / 2 / each.limit.bytes_per_second
            low, high = (
                format_rate(end, sure)
                for end in (each.limit.interval.low, each.limit.interval.high)
            )
            limit = f"{format_rate(each.limit.bytes_per_second, sure)} ({low} to {high})"
        rows.append((
            f"{each.kind} by {each.test}",
            f"{each.counts[0]} to {each.counts[-1]}",
            gap,
            limit,
            f"{each.typical:.1%}",
        ))  # fmt: skip
    print_table(console, columns, rows)


# Capacities.


def _print_capacities(model: MachineModel, console: Console, *, everything: bool) -> None:
    found = shared_capacities(model)
    shown = [each for each in found if everything or each.capacity.basis == "sets"]
    capacities = model.capacities
    if not capacities.curves:
        return
    say(console, "")
    say(console, "What transfers share, and how much it carries", "bold")
    if shown:
        columns = (
            TextColumn("resource", left=True, folds=True),
            TextColumn("method", left=True, folds=True),
            TextColumn("GB/s"),
            TextColumn("shared by", left=True, folds=True),
            TextColumn("sets"),
        )
        rows = []
        for each in shown:
            own = each.capacity
            sets = str(len(own.rests_on)) if own.basis == "sets" else "one fills it"
            rows.append((own.resource, own.method, each.rate, each.sharers, sets))
        print_table(console, columns, rows)
    else:
        say(console, "No set of transfers showed a limit. survey --model measures such sets.")
    if hidden := len(found) - len(shown):
        say(console, f"{count(hidden, 'link')} that one transfer fills: --all shows them.")
    for queue in capacities.queues:
        end = "out of" if queue.end == "source" else "into"
        say(console, f"Transfers {end} one GPU by {queue.method} run one after another, with "
                     f"{format_time(queue.gap)} between them.")  # fmt: skip
    for group in capacities.groups:
        names = ", ".join(f"gpu:{index}" for index in group)
        say(console, f"{names} may share a port to the host.")


# For other programs.


def run_export_of_model(file: str, format: str, output: str) -> int:
    """Writes the capacities and curves in the form of another program. Returns 0. Raises
    `ModelError` for a format that is not known and for a model that it cannot hold, `ExistingFile`,
    `NotWritable`, and the `ProfileError` of a bad profile."""
    from waywiser.model.export import EXPORTS
    from waywiser.profile.output_file import STANDARD_OUTPUT, write_output

    if format not in EXPORTS:
        raise ModelError(
            f"{format!r} is no format of models", remedy=f"write one of {', '.join(EXPORTS)}"
        )
    if PurePath(output).suffix == SUFFIX:
        raise ModelError(f"{output}: an exported model is no profile", remedy="use another name")
    with Profile.open(file) as profile:
        found = obtained_model(profile, keep=True).model.capacities
    if not found.curves:
        raise ModelError(
            "the profile has no samples of single transfers, so there is nothing to export",
            where=file,
            remedy="survey the machine with waywiser survey --model",
        )
    write_output(output or STANDARD_OUTPUT, EXPORTS[format](found).encode())
    return 0


# How good it is.


def run_validation(file: str, *, everything: bool = False, json: bool = False) -> int:
    """Prints how well the model predicts what is held out. Returns 0. Raises as `run_model`."""
    from waywiser.model.held_out import validation

    with Profile.open(file) as profile:
        found = validation(profile)
    if json:
        from waywiser.cli.streams import print_json

        print_json({"schema": SCHEMA, "profile": file, "rows": found.rows, "notes": found.notes,
                    "sets": [_set_document(each) for each in found.sets]})  # fmt: skip
        return 0
    from waywiser.cli.printing import plain_console

    _print_validation(found, plain_console(), everything=everything)
    return 0


def _set_document(each: Any) -> dict[str, Any]:
    return {
        "workload": str(each.timed.workload),
        "measured": each.timed.span,
        "predicted": each.prediction.span,
        "interval": each.prediction.interval,
        "error": each.error,
        "unknown": each.prediction.unknown,
    }


def _print_validation(found: Validation, console: Console, *, everything: bool) -> None:
    if found.rows:
        columns = (
            TextColumn("held out", left=True),
            TextColumn("number"),
            TextColumn("median"),
            TextColumn("95 % within"),
            TextColumn("worst"),
            TextColumn("in the 95 % interval"),
        )
        rows = [
            (
                each.what,
                str(each.number),
                f"{each.median:.1%}",
                f"{each.p95:.1%}",
                f"{each.worst:.1%}",
                "—" if each.coverage is None else f"{each.coverage:.0%}",
            )
            for each in found.rows
        ]
        print_table(console, columns, rows)
        say(console, "Errors are of predicted over measured time, less 1. Every second size was "
                     "held out, so that neighbours were twice as far apart as usual.")  # fmt: skip
    for each in found.sets if everything else ():
        unknown = (
            f", unknown: {', '.join(each.prediction.unknown)}" if each.prediction.unknown else ""
        )
        say(console, f"{each.error:+.1%}{unknown}: {_name(each.timed.workload)}", indent=2)
    for note in found.notes:
        say(console, f"Note: {note}.")


def _name(workload: Workload) -> str:
    from waywiser.curves.name import label_of

    return label_of(workload)


# The rule of a paper.


def run_published(file: str, switches: str, *, json: bool = False) -> int:
    """Prints the model of messages by the published rule. Returns 0. Raises `SwitchesError`, and
    `WaywiserError` for a profile without messages."""
    from waywiser.model.messages import messages_of
    from waywiser.model.published import fit, parse_switches
    from waywiser.profile.series_frame import SeriesFrame

    limits = parse_switches(switches)
    with Profile.open(file) as profile:
        messages = messages_of(SeriesFrame.read(profile).summaries())
    if not messages:
        raise WaywiserError(
            "has no messages between ranks, which the published rule is for",
            where=file,
            remedy="import results of BenchPress: waywiser import FILES -o FILE",
        )
    found = fit(messages, limits)
    if json:
        from waywiser.cli.streams import print_json

        print_json({"schema": SCHEMA, "profile": file, **msgspec.to_builtins(found)})
        return 0
    from waywiser.cli.printing import plain_console

    _print_published(found, plain_console())
    return 0


def _print_published(found: PublishedModel, console: Console) -> None:
    columns = (
        TextColumn("memory", left=True),
        TextColumn("locality", left=True),
        TextColumn("protocol", left=True),
        TextColumn("sizes"),
        TextColumn("alpha, s"),
        TextColumn("beta, s/B"),
        TextColumn("GB/s"),
    )
    rows = []
    for each in found.lines:
        ends = each.source if each.source == each.destination else (
            f"{each.source} to {each.destination}"
        )  # fmt: skip
        rate = format_rate(1 / each.inverse_rate, 0.005) if each.inverse_rate > 0 else "—"
        rows.append((
            ends,
            each.locality,
            each.protocol or "—",
            f"{format_bytes(each.low)} to {format_bytes(each.high)}",
            f"{each.latency:.3e}",
            f"{each.inverse_rate:.3e}",
            rate,
        ))  # fmt: skip
    say(console, "The rule of Bienz, Olson, Gropp and Lockhart (HPEC 2021): least squares through "
                 "the minimum of all pairs and jobs, without intervals.")  # fmt: skip
    print_table(console, columns, rows)
    for kind, slope in found.injection.items():
        limit = f"{format_rate(1 / slope, 0.005)} GB/s" if slope > 0 else "no limit"
        say(console, f"Injection rate R_N of a node, {kind} memory: {slope:.3e} s/B, {limit}.")
