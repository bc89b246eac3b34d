"""Verbs that decide which method to use, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from waywiser.cli.app import Json, ProfileFile, app
from waywiser.cli.command_help import Verb


@app.command(cls=Verb, short_help="Show or write which method is fastest for each copy.")
def policy(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Profiles (.wwp) of one machine, or one policy; with --compare two, each a "
            "profile or a policy.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the policy to FILE, which waywiser.transfer reads; - for standard output. "
            "A former policy is replaced.",
        ),
    ] = "",
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Show where two policies choose different methods."),
    ] = False,
    json: Json = False,
) -> int:
    """Show which method is fastest for each copy by its size, or write it for waywiser.transfer."""
    from waywiser.cli.policy import run_policy

    return run_policy(files, output, compare=compare, json=json)


@app.command(cls=Verb, short_help="Say which method to use for one copy, and why.")
def advise(
    file: ProfileFile,
    source: Annotated[
        str,
        typer.Option("--from", metavar="MEMORY", help="Where the bytes are: pageable@numa:0."),
    ] = "",
    destination: Annotated[
        str, typer.Option("--to", metavar="MEMORY", help="Where they go: device@gpu:0.")
    ] = "",
    size: Annotated[
        str,
        typer.Option("--bytes", metavar="SIZE", help="Bytes of the copy, or of each of --count."),
    ] = "",
    count: Annotated[
        int, typer.Option("--count", metavar="N", help="Pieces of a list; 1 is one copy.")
    ] = 1,
    peers_idle: Annotated[
        bool,
        typer.Option("--peers-idle", help="Also methods that use the links of other GPUs."),
    ] = False,
    max_threads: Annotated[
        int | None,
        typer.Option("--max-threads", metavar="N", help="Only methods with at most N CPUs."),
    ] = None,
    polite: Annotated[
        bool,
        typer.Option("--polite", help="The method that takes least from other work."),
    ] = False,
    table: Annotated[
        bool,
        typer.Option(
            "--table",
            help="Also show the method of every measured size, or without --bytes that alone; with "
            "--placement all costs.",
        ),
    ] = False,
    placement: Annotated[
        bool,
        typer.Option(
            "--placement",
            help="Instead of a copy: where to put buffers and threads, which GPUs to use together, "
            "and what the worst choice costs.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Say which method to use for one copy, how fast it is and why, or, with --placement, where to
    put buffers and threads and which GPUs to use together."""
    from waywiser.cli.placement import require_options, run_placement

    of_copies = {
        "--from": source,
        "--to": destination,
        "--bytes": size,
        "--count": count > 1,
        "--peers-idle": peers_idle,
        "--max-threads": max_threads is not None,
        "--polite": polite,
    }
    require_options(of_copies, placement=placement, table=table)
    if placement:
        return run_placement(file, tables=table, json=json)

    from waywiser.analysis.policy.advice import CopyRequest
    from waywiser.cli.advise import run_advise, run_table

    request = CopyRequest.of(
        source,
        destination,
        size or 1,
        count=count,
        peers_idle=peers_idle,
        max_threads=max_threads,
        polite=polite,
    )
    if not size:
        return run_table(file, request, json=json)
    return run_advise(file, request, table=table, json=json)
