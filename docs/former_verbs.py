"""Writes ``docs/former-verbs.md``: where each verb and option of version 0.1 is today.

    python docs/former_verbs.py > docs/former-verbs.md

A test checks that the page is current, and that what it names today exists.
"""

from __future__ import annotations

from collections.abc import Iterator

FORMER: dict[str, tuple[str, ...]] = {
    "": (
        "--version",
        "--cmake-dir",
        "--pkg-config-dir",
    ),
    "survey": (
        "-o, --output FILE",
        "--preset NAME",
        "--only PATTERN",
        "--workload TEXT",
        "--sizes SIZES",
        "--deadline SECONDS",
        "--gpus LIST",
        "--expect-gpus N",
        "--memory BYTES",
        "--file PATH",
        "--scratch FOLDER",
        "--no-scratch",
        "--nccl PATH",
        "--model",
        "--share",
        "--ranks N",
        "--ranks-per-gpu K",
        "--rank-cpus WHERE",
        "--mpicc PATH",
        "--launcher TEMPLATE",
        "--seed N",
        "--resume",
        "--dry-run",
        "--json",
    ),
    "tune": (
        "FILE",
        "--paths PATTERN",
        "--sizes SIZES",
        "--budget TIME",
        "--grid N",
        "--gpus LIST",
        "--memory BYTES",
        "--file PATH",
        "--scratch FOLDER",
        "--share",
        "--ranks N",
        "--ranks-per-gpu K",
        "--rank-cpus WHERE",
        "--mpicc PATH",
        "--launcher TEMPLATE",
        "--seed N",
        "--dry-run",
        "--json",
    ),
    "list": (
        "--all",
        "--normal",
        "--values FILE",
        "--json",
    ),
    "topology": (
        "[FILE]",
        "--xml FILE",
        "--capture FILE",
        "--anonymous",
        "--json",
    ),
    "show": (
        "FILE",
        "--only PATTERN",
        "--all",
        "--json",
    ),
    "import": (
        "FILE...",
        "-o, --output FILE",
        "--format FORMAT",
        "--machine NAME",
        "--topology FILE",
        "--topology-anyway",
        "--json",
    ),
    "simulate": (
        "FILE",
        "-o, --output FILE",
        "--set NAME=VALUE",
        "--gpus N",
        "--seed N",
        "--preset NAME",
        "--only PATTERN",
        "--workload TEXT",
        "--sizes SIZES",
        "--model",
        "--host NAME",
        "--nights N",
        "--from-night N",
        "--night-noise FRACTION",
        "--json",
    ),
    "export": (
        "FILE",
        "--summary",
        "--format FORMAT",
        "-o, --output FILE",
        "--for PROGRAM",
        "--piece SIZE",
        "--source SOURCE",
    ),
    "report": (
        "FILE...",
        "-o, --output FILE",
        "--format FORMAT",
        "--figure NAME",
        "--all",
    ),
    "doctor": (
        "[FILE]",
        "--severity WORD",
        "--json",
    ),
    "mpi": (
        "--mpicc PATH",
        "--launcher TEMPLATE",
        "--try",
        "--json",
    ),
    "compare": (
        "BASE... -- NEW...",
        "--repeat FILE",
        "--threshold FRACTION",
        "--fail-on WORD",
        "--only PATTERN",
        "--json",
        "--junit FILE",
        "--all",
    ),
    "check": (
        "[FILE...]",
        "--baseline FILE",
        "--keep",
        "--fleet FOLDER",
        "--dask ADDRESS",
        "--part PART",
        "--within SECONDS",
        "--repeat FILE",
        "--measure / --no-measure",
        "--threshold FRACTION",
        "--max-hidden FRACTION",
        "--expect-gpus N",
        "--values FILE",
        "--since DAY",
        "--labels FILE",
        "--suspects",
        "--all",
        "--json",
        "--page FILE",
        "--prometheus FILE",
        "--junit FILE",
    ),
    "cluster survey": (
        "-o, --output FOLDER",
        "--resume",
        "--retry",
        "--hostfile FILE",
        "--launcher TEMPLATE",
        "--mpicc PATH",
        "--transport NAME",
        "--nodes N",
        "--expect-nodes N",
        "--join-seconds SECONDS",
        "--address ADDRESS",
        "--groups FILE",
        "--uplink-pairs N",
        "--size BYTES",
        "--test-seconds SECONDS",
        "--no-check",
        "--deadline SECONDS",
        "--seed N",
        "--dry-run",
        "--json",
    ),
    "cluster join": (
        "HOST:PORT",
        "--node-name NAME",
        "--join-seconds SECONDS",
        "--mpicc PATH",
    ),
    "cluster show": (
        "FOLDER",
        "--good-hosts",
        "--exclude",
        "--drain",
        "--json",
    ),
    "policy": (
        "FILE...",
        "-o, --output FILE",
        "--compare",
        "--json",
    ),
    "advise": (
        "FILE",
        "--from MEMORY",
        "--to MEMORY",
        "--path NAME",
        "--bytes SIZE",
        "--count N",
        "--host-contiguous",
        "--peers-idle",
        "--max-threads N",
        "--polite",
        "--beside COLLECTIVE",
        "--table",
        "--placement",
        "--for LAUNCHER",
        "--ranks-per-gpu N",
        "--json",
    ),
    "trace": (
        "[COMMAND...]",
        "-o, --output FILE",
        "--profile FILE",
        "--against FILE",
        "--with-patch",
        "--lines LINES",
        "--cupti FILE",
        "--pid PID",
        "--seconds N",
        "--all",
        "--json",
    ),
    "model": (
        "FILE",
        "--all",
        "--validate",
        "--rule RULE",
        "--switches TEXT",
        "--crossovers",
        "--processes N",
        "--copies PLACE",
        "--export FORMAT",
        "-o, --output FILE",
        "--json",
    ),
    "predict": (
        "FILE",
        "-w, --workload TEXT",
        "--messages N",
        "--set NAME=VALUE",
        "--gpus N",
        "--compare",
        "--json",
    ),
    "completion": ("SHELL",),
}
"""The arguments and options of each verb, as its help showed them; without a verb those of all."""

MOVED: dict[str, str] = {
    "list": "survey --list",
    "list --all": "survey --list --all",
    "list --normal": "survey --normal",
    "list --values FILE": "survey --values FILE",
    "list --json": "survey --list --json",
    "mpi": "doctor --mpi",
    "mpi --mpicc PATH": "doctor --mpicc PATH",
    "mpi --launcher TEMPLATE": "doctor --launcher TEMPLATE",
    "mpi --try": "doctor --try",
    "mpi --json": "doctor --mpi --json",
    "completion": "--completion SHELL",
    "completion SHELL": "--completion SHELL",
    "policy": "advise FILE...",
    "policy FILE...": "advise FILE...",
    "policy -o, --output FILE": "export FILE... --for waywiser -o FILE",
    "policy --compare": "advise FILE... --against FILE",
    "policy --json": "advise FILE... --json",
    "advise --for LAUNCHER": "export FILE... --for PROGRAM",
    "advise --ranks-per-gpu N": "export FILE... --ranks-per-gpu N",
    "model": "predict FILE",
    "model FILE": "predict FILE",
    "model --all": "predict FILE --all",
    "model --validate": "predict FILE --validate",
    "model --rule RULE": "predict FILE --rule RULE",
    "model --switches TEXT": "predict FILE --switches TEXT",
    "model --crossovers": "predict FILE --crossovers",
    "model --processes N": "predict FILE --processes N",
    "model --copies PLACE": "predict FILE --copies PLACE",
    "model --export FORMAT": "export FILE... --for PROGRAM",
    "model -o, --output FILE": "export FILE... -o FILE",
    "model --json": "predict FILE --json",
    "topology --xml FILE": "topology [FILE]",
    "check --measure / --no-measure": "check --within SECONDS",
    "check --labels FILE": "check --values FILE",
    "check --fleet FOLDER": "check --baseline FILE",
    "check --dask ADDRESS": "check --part PART",
    "check --since DAY": "check --since DAY[/DAY]",
    "predict --gpus N": "predict FILE --set NAME=VALUE",
    "simulate --gpus N": "simulate FILE --set NAME=VALUE",
    "tune --paths PATTERN": "tune FILE --only PATTERN",
    "advise FILE": "advise FILE...",
    "export FILE": "export FILE...",
    "survey --ranks-per-gpu K": "survey --ranks-per-gpu N",
    "tune --ranks-per-gpu K": "tune FILE --ranks-per-gpu N",
}
"""Where what has another place is now. All else has the verb and the name that it had."""

NOTES = {
    "list --normal": "measures nothing, as `survey --list`",
    "mpi --try": "`doctor` also says whether the machine is fit to be measured",
    "policy": "without a path",
    "policy --compare": "`policy --compare A B` is `advise B --against A`",
    "advise --for LAUNCHER": "slurm, mpich or openmpi; with `--format json` for `--json`",
    "model": "without `-w`; the model is kept in the user's cache, and the profile is not changed",
    "model --export FORMAT": "simgrid, astra-sim, or model for `json`",
    "check --fleet FOLDER": "a folder is one of nodes of its kind",
    "check --dask ADDRESS": "the address, tcp://HOST:8786, is a form of `--part`",
    "check --measure / --no-measure": "0 for `--no-measure`; `--measure` is the default",
    "predict --gpus N": "`--set gpus=N`",
    "simulate --gpus N": "`--set gpus=N`",
}


BESIDE = (
    ("`survey --scratch` beside `--no-scratch`", "they say opposite things"),
    ("`survey --model` beside `--ranks`", "a model has no messages between ranks"),
    (
        "`survey`, `tune`: `--ranks-per-gpu`, `--rank-cpus`, `--mpicc`, `--launcher` without "
        "`--ranks`",
        "there are no ranks",
    ),
    ("`survey`, `cluster survey`: `--resume` with another plan", "the profile has the plan"),
    (
        "`check --part` beside `--baseline`, `--repeat`, `--max-hidden`, `--keep`",
        "all hosts of a data set are checked",
    ),
    (
        "`check --part 1/16` and `join` beside `--threshold`, `--since`",
        "those of `--part references/16` hold for all parts",
    ),
    (
        "`check --part 1/16` beside `--page`, `--prometheus`, `--junit`, `--suspects`, `--all`",
        "`--part join` has the answer",
    ),
    ("two outputs that are `-`", "there is one standard output"),
    (
        "`advise --table` without `--bytes` beside `--max-threads`, `--polite`, `--beside`",
        "a table of all sizes has none of one size",
    ),
    ("`trace --pid` beside a command, `-o`, `--against`, `--cupti`, `--with-patch`",
     "a program that runs is watched from outside"),
    ("`simulate --from-night` without `--nights`", "there is one night"),
    ("`report --figure` beside `--format html`, `md`, `perfetto`", "they have no single figure"),
    (
        "`export`: `--piece`, `--source`, `--format`, `--summary` beside a `--for` that has none",
        "they are of other programs",
    ),
)  # fmt: skip
"""Options that do not go together, and why."""


def document() -> str:
    """The whole page, as Markdown."""
    return "\n".join(_lines()) + "\n"


def rows() -> Iterator[tuple[str, str, str]]:
    """Each verb and option of before, where it is now, and a note."""
    for verb, options in FORMER.items():
        for name in ([verb] if verb else []) + [f"{verb} {each}".strip() for each in options]:
            yield name, MOVED.get(name, name), NOTES.get(name, "")


def _lines() -> Iterator[str]:
    yield "# Verbs and options of version 0.1"
    yield ""
    yield "<!-- Made by `python docs/former_verbs.py > docs/former-verbs.md`; a test checks it. -->"
    yield ""
    yield "Each verb and option of before, and where it is now ([the command line](cli.md)). A verb"
    yield "or an option that is no more prints its command of today, and ends with 2. `fleet`,"
    yield "`history` and `normal` became `check` before; `normal` without a file is"
    yield "`survey --normal`."
    yield ""
    yield "| before | now | |"
    yield "|---|---|---|"
    for before, now, note in rows():
        shown = "the same" if before == now else f"`waywiser {now}`"
        yield f"| `waywiser {before}` | {shown} | {note} |"
    yield ""
    yield "## Options that do not go together"
    yield ""
    yield "Everywhere else options of a verb go together. An option without an effect is an error"
    yield "that names it, and ends with 2."
    yield ""
    yield "| what | why |"
    yield "|---|---|"
    yield from (f"| {what} | {why} |" for what, why in BESIDE)


if __name__ == "__main__":
    print(document(), end="")
