"""Verbs that look at this machine, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from waywiser.cli.app import Json, verb
from waywiser.measure.survey_options import SurveyOptions
from waywiser.measure.tune_options import TuneOptions


@verb()
def survey(
    options: SurveyOptions,
    dry_run: bool = False,
    listed: bool = False,
    normal: bool = False,
    values: list[str] | None = None,
    everything: bool = False,
    json: Json = False,
) -> None:
    """Measure this machine, write a profile, and show what was found.

    --dry-run
    --list: Measure nothing, and list the executors, memories, operations and sets of transfers that
        can be measured, with settings and sources.
    --normal: Measure nothing, and list the bandwidths that other people's machines reach by link,
        path and size.
    --values FILE: The same as --normal.
    --all: Of a survey all curves; with --list also each path that cannot be measured on this
        machine; with --normal each value with its source.

    waywiser survey --preset check --expect-gpus 8 -o node.wwp
        measure every link in under half a minute; fail if a GPU is missing
    waywiser survey --only 'h2d copy-engine' --sizes 8:1GiB
        measure H2D bandwidth and latency of each GPU by copy engine
    """
    if normal or values:
        from waywiser.cli.listing import show_normal

        show_normal(values or (), everything=everything, json=json)
    elif listed:
        from waywiser.cli.listing import show_list

        show_list(everything=everything, json=json)
    else:
        from waywiser.cli.survey import run_survey

        run_survey(options, dry_run=dry_run, everything=everything, json=json)


@verb("Search the fastest settings of copies on this machine.")
def tune(options: TuneOptions, dry_run: bool = False, json: Json = False) -> None:
    """Search the fastest settings of copies, per path and size; the same command goes on later.

    --dry-run

    waywiser tune node.wwp --dry-run
        show which settings would be searched, and how long it takes
    waywiser tune node.wwp --only 'h2d staged' --sizes 64MiB --budget 30s
        search the settings of staged H2D copies of 64 MiB
    """
    from waywiser.cli.tune import run_tune

    run_tune(options, dry_run=dry_run, json=json)
