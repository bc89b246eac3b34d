"""``waywiser advise``: the method for each copy, and where to put buffers and threads."""

from __future__ import annotations

from typing import Annotated

import waywiser
from waywiser.cli.app import Json, given_of, print_verb, verb
from waywiser.words import POSITIVE_COUNTS
from waywiser.words.numbers import COUNTS


@verb("Say which method to use for copies, and where to put buffers and threads.")
def advise(
    files: list[str],
    from_: str = "",
    to: str = "",
    path: str = "",
    bytes: str = "",
    count: Annotated[int, POSITIVE_COUNTS] = 1,
    host_contiguous: bool = False,
    peers_idle: bool = False,
    max_threads: Annotated[int | None, COUNTS] = None,
    polite: bool = False,
    beside: str = "",
    table: bool = False,
    placement: bool = False,
    against: str = "",
    json: Json = False,
) -> None:
    """Show the fastest method of each copy by its size; for one copy how fast it is and why; or
    where to put buffers and threads.

    FILE...: Profiles (.wwp) of one machine, or one policy.
    --from MEMORY: Where the bytes are: pageable@numa:0.
    --to MEMORY: Where they go: device@gpu:0.
    --path NAME: The memories of a path by its name, as --only takes it: 'h2d pinned gpu:0'. --from
        or --to beside it replaces one of them.
    --bytes SIZE: Bytes of the copy, or of each of --count.
    --count N: Pieces of a list; 1 is one copy.
    --host-contiguous: The pieces lie one after another in host memory, and are scattered on the
        GPU.
    --peers-idle: Also methods that use the links of other GPUs.
    --max-threads N: Only methods with at most N CPUs.
    --polite: The method that takes least from other work.
    --beside COLLECTIVE: The method that slows this collective over the GPUs least: allreduce.
    --table: Also show the method of every measured size, or without --bytes that alone; with
        --placement all costs.
    --placement: Show where to put buffers and threads, which GPUs to use together, and what the
        worst choice costs.
    --against FILE: It is another profile, or another policy: where it needs different methods.

    waywiser advise node.wwp --from pinned@numa:0 --to device@gpu:1 --bytes 64MiB
        say how to copy 64 MiB to a GPU
    waywiser advise node.wwp --placement
        where to put buffers and threads, and which GPUs to use together
    """
    given = given_of(locals())
    del given["json"]
    print_verb(waywiser.advise(*given.pop("files"), **given), json=json)
