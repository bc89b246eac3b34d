"""Verbs that decide which method to use, and their options.

Each body imports what it needs, so that ``--help`` is quick.
"""

from __future__ import annotations

from waywiser.cli.app import Json, ProfileFile
from waywiser.cli.verb import verb


@verb("Show or write which method is fastest for each copy.")
def policy(files: list[str], output: str = "", compare: bool = False, json: Json = False) -> int:
    """Show which method is fastest for each copy by its size, or write it for waywiser.transfer.

    FILE...: Profiles (.wwp) of one machine, or one policy; with --compare two, each a profile or a
        policy.
    -o, --output FILE: Write the policy to FILE, which waywiser.transfer reads; - for standard
        output. A former policy is replaced.
    --compare: Show where two policies choose different methods.

    waywiser policy node.wwp -o machine.json
        write the policy of this machine
    waywiser policy --compare before.wwp now.wwp
        show where two machines need different methods
    """
    from waywiser.cli.policy import run_policy

    return run_policy(files, output, compare=compare, json=json)


@verb("Say which method to use for one copy, and why.")
def advise(
    file: ProfileFile,
    source: str = "",
    destination: str = "",
    size: str = "",
    count: int = 1,
    peers_idle: bool = False,
    max_threads: int | None = None,
    polite: bool = False,
    table: bool = False,
    placement: bool = False,
    json: Json = False,
) -> int:
    """Say which method to use for one copy, how fast it is and why, or, with --placement, where to
    put buffers and threads and which GPUs to use together.

    --from MEMORY: Where the bytes are: pageable@numa:0.
    --to MEMORY: Where they go: device@gpu:0.
    --bytes SIZE: Bytes of the copy, or of each of --count.
    --count N: Pieces of a list; 1 is one copy.
    --peers-idle: Also methods that use the links of other GPUs.
    --max-threads N: Only methods with at most N CPUs.
    --polite: The method that takes least from other work.
    --table: Also show the method of every measured size, or without --bytes that alone; with
        --placement all costs.
    --placement: Instead of a copy: where to put buffers and threads, which GPUs to use together,
        and what the worst choice costs.

    waywiser advise node.wwp --from pinned@numa:0 --to device@gpu:1 --bytes 64MiB
        say how to copy 64 MiB to a GPU
    waywiser advise node.wwp --placement
        where to put buffers and threads, and which GPUs to use together
    """
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
