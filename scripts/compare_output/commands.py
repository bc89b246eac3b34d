"""The command lines that are compared: every verb, on every kind of input, at every width."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePath

from compare_output import inputs
from compare_output.modes import ALL, FEW, NO_GPU, PIPE, TWO_GPUS, Command, Mode

Words = tuple[str, ...]

VERBS = (
    *("survey", "show", "check", "compare", "advise", "predict", "trace", "doctor"),
    *("report", "tune", "import", "export", "simulate", "topology"),
    *("cluster", "cluster survey", "cluster join", "cluster show"),
)
MEASURING = ("survey", "tune", "cluster survey", "cluster join")
"""Verbs that work for long on files of the user's; of these only the plan is compared."""

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
BOTH = "pinned@numa:0 <-> device@gpu:0 by copy-engine"
FROM_TO = ("--from", "pinned@numa:0", "--to", "device@gpu:0")
NEW = "new.wwp"


def commands(profiles: int | None = None, quick: bool = False) -> Iterator[Command]:
    """All commands; ``profiles`` takes so many of the kept profiles, ``quick`` a small sample of
    everything."""
    modes = FEW if quick else ALL
    kept = _chosen(inputs.kept_profiles(), 4 if quick and profiles is None else profiles)
    yield from _of_help(modes)
    yield from _of_machines(modes)
    yield from _of_files(modes)
    yield from _of_clusters(modes)
    for index, name in enumerate(kept):
        yield from _of_profile(name, _sibling(name), modes, thorough=not quick or index == 0)
    bad = inputs.damaged_profiles()
    for name in bad[:: 4 if quick else 1]:
        yield from _of_damaged(name)


def _chosen(names: list[str], count: int | None) -> list[str]:
    """So many of all sizes, evenly, but of the larger half only few are needed for the quick
    sample: the smallest first."""
    if count is None or count >= len(names):
        return names
    ordered = inputs.by_size(names)
    return [ordered[index * len(ordered) // count] for index in range(count)]


def _sibling(name: str) -> str:
    """The next profile of the same folder and kind, to compare with."""
    kind = PurePath(name).name.rstrip("0123456789ab-.wp")
    family = [
        other
        for other in inputs.kept_profiles()
        if PurePath(other).parent == PurePath(name).parent
        and PurePath(other).name.rstrip("0123456789ab-.wp") == kind
    ]
    return family[(family.index(name) + 1) % len(family)]


def _each(words: Iterable[Words], modes: Iterable[Mode], *read: str) -> Iterator[Command]:
    for mode in modes:
        for each in words:
            yield Command(each, mode, tuple(dict.fromkeys(read)))


def _json(words: Iterable[Words], *read: str) -> Iterator[Command]:
    return _each([(*each, "--json") for each in words], (PIPE,), *read)


def _of_profile(
    name: str, sibling: str, modes: tuple[Mode, ...], *, thorough: bool
) -> Iterator[Command]:
    shown: list[Words] = [
        *(("show", name), ("show", name, "--only", "h2d"), ("topology", name), ("doctor", name)),
        *(
            ("check", name),
            ("advise", name),
            ("advise", name, *FROM_TO, "--table"),
            ("advise", name, "--placement"),
        ),
        ("advise", name, *FROM_TO, "--bytes", "64MiB"),
        ("trace", "--profile", name, "--lines", "some", "--", "true"),
        ("advise", name, *FROM_TO, "--bytes", "4KiB", "--count", "100", "--polite"),
        *(("predict", name), ("predict", name, "--validate")),
        ("predict", name, "--rule", "published"),
        ("predict", name, "-w", f"{H2D} of 50MiB"),
        ("predict", name, "-w", f"{BOTH} of 64MiB", "--compare"),
        ("predict", name, "-w", f"{H2D} of 64MiB", "--set", "PCIe to gpu:*=126GB/s"),
    ]
    whole: list[Words] = [
        *(("show", name, "--all"), ("predict", name, "--all")),
        ("advise", name, "--placement", "--table"),
    ]
    two: list[Words] = [
        *(("compare", sibling, name), ("check", name, "--baseline", sibling)),
        *(("check", sibling, name), ("advise", name, "--against", sibling)),
        ("compare", sibling, name, "--threshold", "0", "--fail-on", "suspected"),
    ]
    some = modes if thorough else (PIPE, Mode(80, True))
    yield from _each([*shown, *whole], some, name)
    yield from _json([*shown, ("show", name, "--all")], name)
    yield from _each([*two, ("compare", sibling, name, "--all")], some, name, sibling)
    yield from _json(two, name, sibling)
    yield from _each(_to_pipes(name), (PIPE,), name)
    yield from _each(_to_pipes_of_two(name, sibling), (PIPE,), name, sibling)
    if thorough:
        yield from _each([("simulate", name, "--preset", "check", "-o", NEW)], (PIPE,), name)


def _to_pipes(name: str) -> Iterator[Words]:
    yield ("report", name, "-o", "report.html")
    yield ("report", name, "--format", "md")
    yield ("report", name, "--format", "md", "--all")
    yield ("report", name, "--format", "svg", "--figure", "list")
    yield ("export", name)
    yield ("export", name, "--format", "csv")
    yield ("export", name, "--summary", "-o", "-")
    yield ("export", name, "--summary", "-o", "summary.csv")
    yield ("export", name, "--format", "google-benchmark", "-o", "benchmark.json")
    yield ("export", name, "-o", "samples.parquet")
    for program in ("ucx", "vllm", "kv-offload"):
        yield ("export", name, "--for", program)
    for program in ("sglang", "flexkv"):
        yield ("export", name, "--for", program, "--piece", "32KiB")
    for program in ("simgrid", "astra-sim", "model", "slurm"):
        yield ("export", name, "--for", program)
    yield ("export", name, "--for", "waywiser", "-o", "policy.json")
    yield ("predict", name, "-w", f"{H2D} of 1MiB", "--messages", "4", "--set", "gpus=2")


def _to_pipes_of_two(name: str, sibling: str) -> Iterator[Words]:
    yield ("report", sibling, name, "-o", "report.html")
    yield ("report", sibling, name, "--format", "md", "--all")
    yield ("compare", sibling, name, "--junit", "-")
    yield ("compare", sibling, name, "--only", "h2d", "--junit", "junit.xml")
    yield ("check", name, "--baseline", sibling, "--within", "0", "--prometheus", "-")
    yield ("check", name, "--baseline", sibling, "--repeat", sibling, "--json")
    yield ("check", sibling, name, "--page", "page.html")


def _of_damaged(name: str) -> Iterator[Command]:
    good = inputs.WHOLE
    alone: list[Words] = [
        *((verb, name) for verb in ("show", "topology", "doctor", "advise", "check", "predict")),
        *(("show", name, "--all"), ("show", name, "--json"), ("advise", name, "--placement")),
        *(("predict", name, "--all"), ("predict", name, "--validate")),
        ("advise", name, *FROM_TO, "--bytes", "1MiB"),
        ("predict", name, "-w", f"{H2D} of 64MiB"),
        *(("report", name, "-o", "report.html"), ("report", name, "--format", "md", "--all")),
        *(("export", name), ("export", name, "--format", "csv"), ("export", name, "--summary")),
        *(("export", name, "--format", "google-benchmark"), ("export", name, "--for", "ucx")),
        *(("simulate", name, "-o", NEW, "--only", "no such path"), ("tune", name, "--dry-run")),
        ("import", name, "-o", NEW),
    ]
    two: list[Words] = [
        *(("compare", good, name), ("compare", name, good, "--json"), ("check", good, name)),
        *(("check", name, "--baseline", good), ("check", good, "--baseline", name)),
        ("advise", name, "--against", good),
    ]
    yield from _each([*alone, *two], (PIPE,), name, good)
    yield from _each([("show", name), ("compare", good, name)], (Mode(60, True),), name, good)


def _of_machines(modes: tuple[Mode, ...]) -> Iterator[Command]:
    """Verbs that look at the machine underfoot, which is made."""
    dry = ("survey", "--dry-run")
    tuned = ("tune", NEW, "--dry-run")
    shown: list[Words] = [
        *(("survey", "--list"), ("survey", "--list", "--all"), ("topology",), ("doctor",)),
        *((*dry, "--preset", "check"), (*tuned, "--only", "h2d")),
    ]
    others: list[Words] = [
        *(("topology", "--capture", "-"), ("topology", "--capture", "-", "--anonymous")),
        *(("doctor", "--severity", "error"), dry, (*dry, "--preset", "quick")),
        *((*dry, "--deadline", "60", "--model"), (*dry, "--preset", "full", "--only", "h2d sm")),
        (*dry, "--only", "h2d sm", "--sizes", "8:1GiB:2", "--no-scratch"),
        (*dry, "--workload", f"{BOTH} of 64MiB", "--gpus", "0"),
        (*dry, "--gpus", "none", "--memory", "256MiB", "--seed", "7"),
        *((*dry, "--only", "no such path"), (*dry, "--expect-gpus", "3"), tuned),
        (*tuned, "--grid", "2", "--sizes", "1MiB", "--budget", "2min"),
    ]
    for machine in (NO_GPU, TWO_GPUS):
        for mode in modes:
            yield from (Command(words, mode, machine=machine) for words in shown)
        for words in (*shown, *others):
            if "--capture" not in words:
                yield Command((*words, "--json"), machine=machine)
        yield from (Command(words, machine=machine) for words in others)


def _of_files(modes: tuple[Mode, ...]) -> Iterator[Command]:
    """Captures, and results of other tools: imported, and then read as profiles."""
    for name in inputs.captures():
        yield from _each([("topology", name)], modes, name)
        yield from _json([("topology", name)], name)
    for name in inputs.imported_files():
        taken = ("import", name, "-o", NEW)
        yield from _each([taken], modes, name)
        yield from _each([(*taken, "--json"), (*taken, "--format", "nccl")], (PIPE,), name)
        later: list[Words] = [
            *(("show", NEW, "--all"), ("report", NEW, "--format", "md", "--all"), ("predict", NEW)),
            *(("report", NEW, "-o", "report.html"), ("export", NEW), ("compare", NEW, NEW)),
        ]
        yield from (Command(words, PIPE, (name,), before=(taken,)) for words in later)
    every = tuple(inputs.imported_files())
    topology = "captures/two-socket-4gpu.json"
    words = ("import", "imports", "-o", NEW, "--machine", "node", "--topology", topology)
    yield Command(words, PIPE, (*every, topology))


def _of_clusters(modes: tuple[Mode, ...]) -> Iterator[Command]:
    survey = ("cluster", "survey", "-o", NEW)
    dry: list[Words] = [
        (*survey, "--dry-run", "--nodes", "8"),
        (*survey, "--dry-run", "--nodes", "1000", "--transport", "mpi", "--no-check"),
    ]
    yield from _each(dry, modes)
    yield from _json(dry)
    wrong: list[Words] = [
        *((*survey, "--resume", "--dry-run"), (*survey, "--retry")),
        *((*survey, "--transport", "pigeon"), (*survey, "--hostfile", "missing.txt")),
        ("cluster", "join", "nowhere"),
    ]
    yield from _each(wrong, (PIPE,))
    for folder in inputs.CLUSTERS:
        files = inputs.cluster_files(folder)
        show = ("cluster", "show", folder)
        yield from _each([show], modes, *files)
        yield from _json([show], *files)
        lines = [(*show, option) for option in ("--good-hosts", "--exclude", "--drain")]
        pages: list[Words] = [
            ("report", folder, "-o", "report.html"),
            ("report", folder, "--format", "md"),
        ]
        yield from _each([*lines, *pages], (PIPE,), *files)


def _of_help(modes: tuple[Mode, ...]) -> Iterator[Command]:
    for words in ((), ("--help",), ("--version",), ("help",), ("no-verb",), ("--no-option",)):
        yield from _each([words], modes)
    for verb in VERBS:
        words = tuple(verb.split())
        yield from _each([(*words, "--help")], modes)
        yield from _each([(*words, "--no-option")], (PIPE,))
        if verb not in ("topology", "doctor", *MEASURING):
            yield from _each([words, (*words, "missing.wwp")], (PIPE,))
    yield from _each([("--completion", shell) for shell in ("bash", "zsh", "fish")], (PIPE,))
    wrong: list[Words] = [
        *(
            ("survey", "--sizes", "many"),
            ("survey", "--deadline", "-1"),
            ("survey", "--preset", "x"),
        ),
        *(("survey", "--resume", "--dry-run"), ("survey", "--gpus", ""), ("tune", "text.txt")),
        *(
            ("doctor", "--severity", "x"),
            ("compare", "a.wwp"),
            ("advise", "a.wwp", "--against", "b.wwp"),
        ),
        *(("simulate", "a.wwp"), ("export", "a.wwp", "--for", "x"), ("help", "show", "all")),
        *(("report", "a.wwp", "--format", "svg"), ("predict", "a.wwp", "-w", "x")),
        ("check", "a.wwp", "--baseline", "b.wwp", "--json", "--prometheus", "-"),
    ]
    yield from _each(wrong, (PIPE,))
