"""Two examples for each command, which its help and ``docs/cli.md`` show. Tests run them.

The files in them: ``node.wwp`` is a profile, ``before.wwp`` and ``now.wwp`` are an older and a
newer one of the same machine, ``nodes`` is a folder of profiles of several machines.
"""

from __future__ import annotations

from typing import NamedTuple


class Example(NamedTuple):
    command: str
    does: str


COMMAND_EXAMPLES = (
    Example("waywiser survey --preset quick -o node.wwp", "measure this machine in half a minute"),
    Example("waywiser show node.wwp --only 'h2d latency'", "show H2D latencies of the profile"),
)
"""Those of the command without a verb."""

EXAMPLES = {
    "survey": (
        Example(
            "waywiser survey --preset check --expect-gpus 8 -o node.wwp",
            "measure every link in under half a minute; fail if a GPU is missing",
        ),
        Example(
            "waywiser survey --only 'h2d copy-engine' --sizes 8:1GiB",
            "measure H2D bandwidth and latency of each GPU by copy engine",
        ),
    ),
    "tune": (
        Example(
            "waywiser tune node.wwp --dry-run",
            "show which settings would be searched, and how long it takes",
        ),
        Example(
            "waywiser tune node.wwp --paths 'h2d staged' --sizes 64MiB --budget 30s",
            "search the settings of staged H2D copies of 64 MiB",
        ),
    ),
    "list": (
        Example("waywiser list", "show all executors, memories, operations and sets"),
        Example("waywiser list --all", "also each path that this machine cannot measure"),
    ),
    "topology": (
        Example("waywiser topology", "show this machine"),
        Example("waywiser topology node.wwp", "show the machine of a profile"),
    ),
    "show": (
        Example("waywiser show node.wwp", "show headline paths and a line for each curve"),
        Example(
            "waywiser show node.wwp --only 'p2p memcpy' --all",
            "show every size of P2P by the cudaMemcpy family",
        ),
    ),
    "import": (
        Example("waywiser import nvbandwidth.json -o node.wwp", "make a profile of a result"),
        Example(
            "waywiser import nvbandwidth.json --topology capture.json -o node.wwp",
            "the same with the links of the machine that was measured",
        ),
    ),
    "simulate": (
        Example(
            "waywiser simulate node.wwp --set 'PCIe to gpu:*=126GB/s' -o faster.wwp",
            "survey the machine of a profile as if its links to GPUs were faster",
        ),
        Example(
            "waywiser simulate node.wwp --gpus 4 --preset check -o four.wwp",
            "survey the links of a machine with four GPUs like those of the profile",
        ),
    ),
    "export": (
        Example("waywiser export node.wwp --summary -o summary.csv", "write a row for each size"),
        Example(
            "waywiser export node.wwp --for ucx -o ucx.conf", "write measured settings for UCX"
        ),
    ),
    "report": (
        Example("waywiser report node.wwp -o report.html", "make a page of one machine"),
        Example("waywiser report before.wwp now.wwp -o both.html", "show two profiles together"),
    ),
    "doctor": (
        Example("waywiser doctor", "check this machine before a survey"),
        Example(
            "waywiser doctor node.wwp --severity error",
            "check the machine of a profile; exit with 1 for errors alone",
        ),
    ),
    "compare": (
        Example("waywiser compare before.wwp now.wwp", "find what changed between two profiles"),
        Example(
            "waywiser compare before.wwp now.wwp --only p2p --threshold 5% --all",
            "list all P2P paths; changes of up to 5 % do not matter",
        ),
    ),
    "check": (
        Example("waywiser check now.wwp --baseline before.wwp", "say whether the node changed"),
        Example(
            "waywiser check now.wwp --baseline before.wwp --no-measure --json",
            "the same for programs, from files alone",
        ),
    ),
    "fleet": (
        Example("waywiser fleet nodes", "find the nodes that differ from the others"),
        Example("waywiser fleet nodes --page fleet.html", "also write a page of figures"),
    ),
    "policy": (
        Example("waywiser policy node.wwp -o machine.json", "write the policy of this machine"),
        Example(
            "waywiser policy --compare before.wwp now.wwp",
            "show where two machines need different methods",
        ),
    ),
    "advise": (
        Example(
            "waywiser advise node.wwp --from pinned@numa:0 --to device@gpu:1 --bytes 64MiB",
            "say how to copy 64 MiB to a GPU",
        ),
        Example(
            "waywiser advise node.wwp --placement",
            "where to put buffers and threads, and which GPUs to use together",
        ),
    ),
    "model": (
        Example("waywiser model node.wwp", "fit the model of this machine, keep it and show it"),
        Example("waywiser model node.wwp --validate", "show how well it predicts"),
    ),
    "predict": (
        Example(
            "waywiser predict node.wwp -w 'pinned@numa:0 -> device@gpu:0 by sm of 50MiB'",
            "predict the time of a size that was not measured",
        ),
        Example(
            "waywiser predict node.wwp -w 'pinned@numa:0 <-> device@gpu:0 by sm of 64MiB'",
            "predict a copy and its opposite together",
        ),
    ),
    "completion": (
        Example("source <(waywiser completion bash)", "complete words in this shell"),
        Example(
            "waywiser completion fish > ~/.config/fish/completions/waywiser.fish",
            "complete words in every new fish shell",
        ),
    ),
}
"""Those of each verb."""
