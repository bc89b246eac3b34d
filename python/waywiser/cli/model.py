"""``waywiser model``: what a model of the machine has found, and how good it is."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any

from waywiser.cli.app import Json, ProfileFile, print_result, verb
from waywiser.cli.model_messages import SCHEMA, show_crossovers, show_published
from waywiser.cli.remedies import possible_remedies
from waywiser.words import WaywiserError
from waywiser.words.numbers import Bounds

PROCESSES = Bounds(1, 4096)


@verb("Fit a model of a machine and show it: latencies, bandwidths, shared capacities.")
def model(
    file: ProfileFile,
    everything: bool = False,
    validate: bool = False,
    rule: str = "",
    switches: str = "",
    crossovers: bool = False,
    processes: Annotated[int | None, PROCESSES] = None,
    copies: str = "",
    export: str = "",
    output: str = "",
    json: Json = False,
) -> None:
    """Fit latencies, bandwidths and shared capacities, which predict uses, and show them.

    --all: Show every curve and every capacity.
    --validate: Instead: hold out half of the sizes and the validation sets, and show how well the
        model predicts them.
    --rule RULE: Instead: fit messages by another rule. published is that of Bienz et al. (HPEC
        2021).
    --switches TEXT: With --rule published: the first size of each protocol but the first, by
        locality: 'on-socket=256,16KiB; off-node=256,16KiB'.
    --crossovers: Instead: compare strategies for messages between GPUs: of surveyed ranks their
        methods, by number and size; of results of BenchPress those between two nodes (direct,
        3-step, all cores, extra message, duplicate pointer), as measured and as modelled: the
        fastest by number and size, and where they cross.
    --processes N: With --crossovers: processes of the host that share the bytes of one GPU; by
        default an equal share of those that the profile has.
    --copies PLACE: With --crossovers: where copies between a process and its GPU are, on-socket or
        on-node (across sockets); by default where the profile has the first sender.
    --export FORMAT: Instead: write the model for another program: simgrid, astra-sim or json.
    -o, --output FILE: With --export: write to FILE; by default, or with -, to standard output.

    waywiser model node.wwp
        fit the model of this machine and show it
    waywiser model node.wwp --validate
        show how well it predicts
    """
    others = {
        "--rule": rule,
        "--validate": validate,
        "--crossovers": crossovers,
        "--all": everything,
        "--json": json,
    }
    of_crossovers = {"--processes": processes, "--copies": copies}
    _require_sense(rule, switches, export, output, others)
    _require_one(others, of_crossovers)
    with possible_remedies(file):
        if export:
            _export(file, export, output)
        elif rule:
            show_published(file, switches, json=json)
        elif crossovers:
            show_crossovers(file, processes, copies, everything=everything, json=json)
        elif validate:
            _show_validation(file, everything=everything, json=json)
        else:
            _show_model(file, everything=everything, json=json)


def _require_sense(
    rule: str, switches: str, export: str, output: str, others: dict[str, Any]
) -> None:
    """Raises `WaywiserError` for options that exclude each other."""
    given = [name for name, value in others.items() if value]
    if output and not export:
        raise WaywiserError("-o is for --export", remedy="add --export simgrid")
    if export and given:
        raise WaywiserError(
            f"--export and {given[0]} do not go together", remedy=f"remove {given[0]}"
        )
    if rule not in ("", "published"):
        raise WaywiserError(f"{rule!r} is no rule", remedy="write --rule published")
    if switches and not rule:
        raise WaywiserError("--switches is for --rule published", remedy="add --rule published")
    for option in ("--validate", "--all"):
        if rule and option in given:
            raise WaywiserError(
                f"--rule and {option} do not go together", remedy=f"remove {option}"
            )


def _require_one(others: dict[str, Any], of_crossovers: dict[str, Any]) -> None:
    """Raises `WaywiserError` for --crossovers with another form, and for its options without it."""
    if others["--crossovers"]:
        for option in ("--rule", "--validate"):
            if others[option]:
                raise WaywiserError(
                    f"--crossovers and {option} do not go together", remedy=f"remove {option}"
                )
        return
    for option, value in of_crossovers.items():
        if value:
            raise WaywiserError(f"{option} is for --crossovers", remedy="add --crossovers")


def _show_model(file: str, *, everything: bool, json: bool) -> None:
    """Fits the model, if it is not kept, and shows it."""
    from waywiser.model.machine_model import obtained_model
    from waywiser.profile import Profile
    from waywiser.report.views.model import model_parts

    with Profile.open(file) as profile:
        found = obtained_model(profile)
        imported = "imported" in profile.environment
    document = {
        "schema": SCHEMA,
        "profile": file,
        "model": found,
    }
    parts = model_parts(found, everything=everything, imported=imported)
    print_result(document, parts, json=json)


def _export(file: str, format: str, output: str) -> None:
    """Writes the capacities and curves in the form of another program."""
    from waywiser.model.errors import ModelError
    from waywiser.model.export import EXPORTS
    from waywiser.model.machine_model import obtained_model
    from waywiser.profile import Profile
    from waywiser.profile.file_name import SUFFIX
    from waywiser.profile.output_file import STANDARD_OUTPUT, write_output

    if format not in EXPORTS:
        raise ModelError(
            f"{format!r} is no format of models", remedy=f"write one of {', '.join(EXPORTS)}"
        )
    if PurePath(output).suffix == SUFFIX:
        raise ModelError(f"{output}: an exported model is no profile", remedy="use another name")
    with Profile.open(file) as profile:
        found = obtained_model(profile).capacities
    if not found.curves:
        raise ModelError(
            "the profile has no samples of single transfers, so there is nothing to export",
            where=file,
            remedy="survey the machine with waywiser survey --model",
        )
    write_output(output or STANDARD_OUTPUT, EXPORTS[format](found).encode())


def _show_validation(file: str, *, everything: bool, json: bool) -> None:
    from waywiser.model.held_out import validation
    from waywiser.profile import Profile
    from waywiser.report.views.model import validation_parts

    with Profile.open(file) as profile:
        found = validation(profile)
    sets = [
        {
            "workload": str(each.timed.workload),
            "measured": each.timed.span,
            "predicted": each.prediction.span,
            "interval": each.prediction.interval,
            "error": each.error,
            "unknown": each.prediction.unknown,
        }
        for each in found.sets
    ]
    head = {"schema": SCHEMA, "profile": file}
    document = {**head, "rows": found.rows, "notes": found.notes, "sets": sets}
    print_result(document, validation_parts(found, everything=everything), json=json)
