"""``waywiser simulate``: surveys a simulated machine, and shows what was found."""

from __future__ import annotations

import waywiser
from waywiser.cli.app import Changes, Json, ProfileFile, print_verb, verb
from waywiser.measure.option import given
from waywiser.measure.simulate_options import SimulateOptions


@verb("Survey a simulated machine: that of a profile, with changes.")
def simulate(
    file: ProfileFile,
    output: str,
    change: Changes = None,
    *,
    options: SimulateOptions,
    json: Json = False,
) -> None:
    """Survey a simulated machine: that of a profile, with its noise and with changes.

    -o, --output FILE: With --nights it is a folder.

    waywiser simulate node.wwp --set 'PCIe to gpu:*=126GB/s' -o faster.wwp
        survey the machine of a profile as if its links to GPUs were faster
    waywiser simulate node.wwp --set gpus=4 --preset check -o four.wwp
        survey the links of a machine with four GPUs like those of the profile
    """
    from waywiser.cli.progress import following
    from waywiser.cli.streams import say

    with following() as watching:
        files = waywiser.simulate(
            file, output=output, set=change or (), **given(options), progress=watching
        )
    if options.nights is not None:
        say(f"profiles: {output}\n")
        return
    print_verb(waywiser.open(files[0]).shown(), json=json)
    say(f"profile: {output}\n")
