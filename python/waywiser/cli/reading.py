"""Verbs that turn files into profiles and profiles into what is read, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from waywiser.cli.app import Changes, GpuCount, Json, Only, ProfileFile, Seed
from waywiser.cli.verb import verb


@verb("Make one profile from results of other tools.", name="import")
def import_(
    files: list[str],
    output: str | None = None,
    format: str | None = None,
    machine: str | None = None,
    topology: str | None = None,
    json: Json = False,
) -> int:
    """Make one profile from results of nvbandwidth, Comm|Scope, OSU, nccl-tests or BenchPress.

    FILE...: Results of another tool, or a folder of them.
    -o, --output FILE: Write the profile to FILE; by default NAME-TIME.wwp with the name of
        --machine, else imported-TIME.wwp.
    --format FORMAT: nvbandwidth, google-benchmark, google-benchmark-csv, osu, nccl or benchpress;
        by default what the content shows.
    --machine NAME: Name of the machine; by default that in the files.
    --topology FILE: A capture or hwloc XML of the machine that was measured: links and peaks.

    waywiser import nvbandwidth.json -o node.wwp
        make a profile of a result
    waywiser import nvbandwidth.json --topology capture.json -o node.wwp
        the same with the links of the machine that was measured
    """
    from waywiser.cli.import_ import run_import

    return run_import(files, output, format=format, machine=machine, topology=topology, json=json)


@verb("Survey a simulated machine: that of a profile, with changes.")
def simulate(
    file: ProfileFile,
    output: str,
    change: Changes = None,
    gpus: GpuCount = None,
    seed: Seed = None,
    preset: str | None = None,
    only: Only = None,
    workload: list[str] | None = None,
    sizes: str | None = None,
    model: bool = False,
    json: Json = False,
) -> None:
    """Survey a simulated machine: that of a profile, with its noise and with changes.

    -o, --output FILE: Write the profile to FILE.
    --preset NAME: How much to measure, as for 'survey'. By default as the profile was surveyed.
    --workload TEXT: Measure these transfers, as for 'survey'. May be repeated.
    --sizes SIZES: Sizes to measure, as for 'survey'.
    --model: Also measure the sets of transfers that a model of the machine needs.

    waywiser simulate node.wwp --set 'PCIe to gpu:*=126GB/s' -o faster.wwp
        survey the machine of a profile as if its links to GPUs were faster
    waywiser simulate node.wwp --gpus 4 --preset check -o four.wwp
        survey the links of a machine with four GPUs like those of the profile
    """
    from waywiser.cli.simulate import SimulateOptions, run_simulate

    run_simulate(
        SimulateOptions(
            file=file,
            output=output,
            changes=tuple(change or ()),
            gpus=gpus,
            seed=seed,
            preset=preset,
            only=tuple(only or ()),
            workloads=tuple(workload or ()),
            sizes=sizes,
            model=model,
            json=json,
        )
    )


@verb()
def export(
    file: ProfileFile,
    summary: bool = False,
    format: str = "",
    output: str = "",
    consumer: str = "",
    piece: str = "",
) -> int:
    """Write a profile's samples, a summary, or settings of other programs.

    --summary: Write a row per path and size: bandwidth, latency and intervals.
    --format FORMAT: json, csv (a row per sample), parquet (the same, with pyarrow) or
        google-benchmark (its JSON, under Comm|Scope's names); by default what the name of -o says,
        else json.
    -o, --output FILE: Write to FILE; by default to standard output, or with -. A terminal gets more
        than a screen of text only with -.
    --for PROGRAM: Write settings of another program from what was measured: ucx, vllm, sglang,
        flexkv or kv-offload (JSON).
    --piece SIZE: With --for sglang or flexkv: bytes of one piece of the KV cache, as 32KiB.

    waywiser export node.wwp --summary -o summary.csv
        write a row for each size
    waywiser export node.wwp --for ucx -o ucx.conf
        write measured settings for UCX
    """
    from waywiser.cli.export import run_export

    return run_export(file, format, output, summary, consumer, piece)


@verb("Make a page of profiles: status, findings, figures.")
def report(
    files: list[str], output: str = "", format: str = "", figure: str = "", whole: bool = False
) -> int:
    """Make a page of profiles: status, findings, figures, everything that was measured.

    FILE...: Profiles (.wwp), side by side.
    -o, --output FILE: By default report.html, and standard output for md; - for standard output. A
        former report is replaced.
    --format FORMAT: html (one page that needs no network), md (a summary of at most 8 KB), or svg,
        pdf or png of one figure; without it, what the name of FILE says, else html.
    --figure NAME: Of svg, pdf and png; list names all of them.
    --all: With md: the whole report, not the summary.

    waywiser report node.wwp -o report.html
        make a page of one machine
    waywiser report before.wwp now.wwp -o both.html
        show two profiles together
    """
    from waywiser.cli.report import run_report

    return run_report(files, output, format, figure, whole=whole)
