"""Waywiser measures every way bytes can move in a machine with CPUs and GPUs.

    import waywiser

    profile = waywiser.open("machine.wwp")  # tables and figures of one profile
    waywiser.survey(only="h2d")  # measures this machine into a profile
    waywiser.fleet("nodes")  # the nights of many nodes, for SQL and data frames

Each verb of the command line is a function with its name and its options: `show`, `check`,
`compare`, `advise`, `predict`, `trace`, `doctor`, ... See docs/python.md. No other part of it is
imported before one of them is called.
"""

from __future__ import annotations

# Before msgspec, which would not notice that a signal interrupted this import of its own, and
# would use what it has not loaded: the process ended by a segmentation fault later.
import datetime as _datetime  # noqa: F401

from waywiser.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from typing import Any

    from waywiser.errors import WaywiserError
    from waywiser.notebook.cluster_call import OnLine
    from waywiser.notebook.comparison_view import ComparisonView, Side
    from waywiser.notebook.export_call import Output
    from waywiser.notebook.health_view import HealthView
    from waywiser.notebook.machine_view import MachineView
    from waywiser.notebook.profile_view import ProfileView
    from waywiser.notebook.survey_call import OnSurveyProgress, SurveyWatcher
    from waywiser.notebook.tune_call import TuneWatcher
    from waywiser.notebook.verb_result import FileName, VerbResult

__all__ = [
    "VerbResult",
    "WaywiserError",
    "__version__",
    "advise",
    "check",
    "cluster_join",
    "cluster_show",
    "cluster_survey",
    "compare",
    "doctor",
    "export",
    "fleet",
    "import_",
    "predict",
    "report",
    "show",
    "simulate",
    "survey",
    "topology",
    "trace",
    "tune",
]
"""Without `open`: a star import must not replace the builtin function."""


def __getattr__(name: str) -> object:
    """`WaywiserError`, the base of all errors of this package, and `VerbResult`, that of what its
    functions return, when they are first used."""
    if name == "WaywiserError":
        from waywiser.errors import WaywiserError

        return WaywiserError
    if name == "VerbResult":
        from waywiser.notebook.verb_result import VerbResult

        return VerbResult
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(path: str | os.PathLike[str]) -> ProfileView:
    """Reads a profile (``.wwp``) and closes the file.

    Raises `waywiser.profile.ProfileError`: there is no such file, it is no profile, it is damaged.
    """
    from waywiser.notebook.profile_view import read_profile

    return read_profile(path)


def survey(
    *,
    only: str | Sequence[str] | None = None,
    sizes: str | int | Sequence[str | int] | None = None,
    preset: str | None = None,
    workload: str | Sequence[str] | None = None,
    deadline: float | None = None,
    gpus: str | int | Sequence[int] | None = None,
    expect_gpus: int | None = None,
    memory: str | int | None = None,
    file: FileName | Sequence[FileName] | None = None,
    scratch: FileName | None = None,
    no_scratch: bool = False,
    nccl: FileName | None = None,
    model: bool = False,
    share: bool = False,
    ranks: int | None = None,
    ranks_per_gpu: int | None = None,
    rank_cpus: str | None = None,
    mpicc: FileName | None = None,
    launcher: str | None = None,
    seed: int | None = None,
    output: FileName | None = None,
    dataset: FileName | None = None,
    resume: bool = False,
    progress: OnSurveyProgress | SurveyWatcher | None = None,
) -> ProfileView:
    """Measures this machine as ``waywiser survey`` does, in worker processes, and opens the
    profile.

    The options are those of the command line (``waywiser survey --help``). ``only``, ``workload``
    and ``file`` take one text or several; ``sizes`` and ``gpus`` take a text or numbers; ``memory``
    is in bytes or a text such as ``4GiB``. Without ``output``, the profile is a new file in
    ``~/.cache/waywiser/profiles`` (``XDG_CACHE_HOME`` replaces ``~/.cache``); `ProfileView.path`
    names it. Nothing is printed; ``progress`` is called after each visit, and ``progress=print``
    prints a line for each. An exception of ``progress`` ends the survey. Every visit that is
    finished is in the file, whatever happens after it.

    Raises `waywiser.WaywiserError`: a wrong option, nothing to measure, another survey runs
    here. Ctrl-C and the stop button of a notebook raise `KeyboardInterrupt`, whose text says where
    the profile is and how to continue.
    """
    given = dict(locals())
    del given["progress"]
    from waywiser.notebook.survey_call import survey_machine

    return survey_machine(given, progress)


def show(
    file: FileName,
    *,
    only: str | Sequence[str] = (),
    profile: FileName | None = None,
    all: bool = False,
) -> VerbResult:
    """What a profile, or a trace, says, as ``waywiser show`` prints it.

    ``only`` selects paths by words or globs. ``profile`` is of the machine of a trace, by default
    the one that it was traced with. ``all``: every size, every setting and every path. Raises
    `waywiser.WaywiserError`.
    """
    from waywiser.notebook.show_call import show_file

    words = (only,) if isinstance(only, str) else only
    return show_file(file, only=words, profile=profile, everything=all)


def report(
    *files: FileName,
    output: FileName | None = None,
    format: str = "",
    figure: str = "",
    profile: FileName | None = None,
    all: bool = False,
) -> VerbResult:
    """Makes a page of profiles, of a trace or of the folder of a cluster survey, as ``waywiser
    report`` does.

    A page is written to ``output``, by default report.html. Markdown and single figures are written
    if ``output`` is named; `VerbResult.result` is the content of each form. ``figure="list"`` gives
    the names of all figures. ``profile`` is of the machine of a trace. Raises
    `waywiser.WaywiserError`.
    """
    from waywiser.notebook.report_call import make_report

    return make_report(
        files, output=output, format=format, figure=figure, profile=profile, whole=all
    )


def check(
    *files: FileName,
    baseline: FileName | Sequence[FileName] = (),
    keep: bool = False,
    within: int | None = None,
    repeat: FileName | Sequence[FileName] = (),
    threshold: float | str | None = None,
    max_hidden: float | str | None = None,
    expect_gpus: int = 0,
    values: FileName | Sequence[FileName] = (),
    since: str = "",
    part: str = "",
    suspects: bool = False,
    all: bool = False,
    page: FileName | None = None,
    prometheus: FileName | None = None,
    junit: FileName | None = None,
    progress: OnSurveyProgress | SurveyWatcher | None = None,
) -> HealthView:
    """Says whether a machine is healthy, by every reference at hand, as ``waywiser check`` does.

    Without ``files`` this machine is measured for at most ``within`` seconds (30). One profile is
    checked, and suspected paths are measured again if it is of this machine, unless ``within`` is
    0; of several, or of a folder, each host is compared with its peers and its own nights. The
    options are those of the command line (``waywiser check --help``). Nothing is printed;
    ``progress`` is that of `waywiser.survey`. Raises `waywiser.WaywiserError`.
    """
    given = dict(locals())
    from waywiser.notebook.health_view import check_health

    return check_health(given.pop("files"), **given)


def compare(
    base: Side | Sequence[Side],
    new: Side | Sequence[Side],
    *,
    repeat: Side | Sequence[Side] = (),
    threshold: float | str | None = None,
    fail_on: str = "regression",
    only: str | Sequence[str] = (),
    junit: FileName | None = None,
    all: bool = False,
) -> ComparisonView:
    """Compares new profiles with baseline profiles path by path, as ``waywiser compare`` does.

    A side is the path of a profile, an opened profile, or several of these. ``threshold`` is the
    relative change that matters, 0.03 or ``3%`` by default. ``repeat`` are profiles in which
    suspected paths were measured again. ``fail_on`` decides about `ComparisonView.exit_code`,
    and ``all`` about `ComparisonView.parts`. Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.comparison_view import compare_profiles

    return compare_profiles(
        base,
        new,
        repeat=repeat,
        threshold=threshold,
        fail_on=fail_on,
        only=only,
        junit=junit,
        everything=all,
    )


def advise(
    *files: FileName,
    from_: str = "",
    to: str = "",
    path: str = "",
    bytes: int | str = "",
    count: int = 1,
    host_contiguous: bool = False,
    peers_idle: bool = False,
    max_threads: int | None = None,
    polite: bool = False,
    beside: str = "",
    table: bool = False,
    placement: bool = False,
    against: FileName | None = None,
) -> VerbResult:
    """Which method is fastest for each copy, or for one, and where to put buffers and threads, as
    ``waywiser advise`` shows it.

    ``from_`` and ``to`` are memories, ``pageable@numa:0``; ``path`` has both by the name of a path.
    ``bytes`` is a number or a text like ``1GiB``, with ``count`` the size of each piece.
    `VerbResult.result` is the `Policy`, the `Advice`, or what else was sought. Of an opened profile
    `ProfileView.advise` does the same. Raises `waywiser.WaywiserError`.
    """
    given = dict(locals())
    from waywiser.notebook.advise_call import advise_files

    return advise_files(given.pop("files"), **given)


def predict(
    file: FileName,
    *,
    workload: str | Sequence[str] = (),
    messages: int = 1,
    set: str | Sequence[str] = (),
    compare: bool = False,
    validate: bool = False,
    rule: str = "",
    switches: str = "",
    crossovers: bool = False,
    processes: int | None = None,
    copies: str = "",
    all: bool = False,
) -> VerbResult:
    """What transfers take that start together, or the model of the machine, as ``waywiser predict``
    shows it.

    ``workload`` are texts with sizes, ``'h2d pinned gpu:0 of 50MiB'``; ``set`` are changes of the
    machine, ``'PCIe to gpu:*=126GB/s'``. Of an opened profile `ProfileView.predict` does the same.
    Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.predict_call import predict_file

    return predict_file(
        file,
        workload=workload,
        messages=messages,
        changes=set,
        compare=compare,
        validate=validate,
        rule=rule,
        switches=switches,
        crossovers=crossovers,
        processes=processes,
        copies=copies,
        everything=all,
    )


def tune(
    profile: FileName,
    *,
    only: str | Sequence[str] | None = None,
    sizes: str | int | Sequence[str | int] | None = None,
    budget: str | None = None,
    grid: int | None = None,
    gpus: str | int | Sequence[int] | None = None,
    memory: str | int | None = None,
    file: FileName | Sequence[FileName] | None = None,
    scratch: FileName | None = None,
    share: bool = False,
    ranks: int | None = None,
    ranks_per_gpu: int | None = None,
    rank_cpus: str | None = None,
    mpicc: FileName | None = None,
    launcher: str | None = None,
    seed: int | None = None,
    dry_run: bool = False,
    progress: TuneWatcher | None = None,
) -> VerbResult:
    """Searches the fastest settings of copies on this machine as ``waywiser tune`` does, into a
    profile; the same call goes on later.

    The options are those of the command line (``waywiser tune --help``). With ``dry_run`` nothing
    is measured, and the result says what would be. Raises `waywiser.WaywiserError`.
    """
    given = {name: value for name, value in locals().items() if name not in ("dry_run", "progress")}
    from waywiser.notebook.tune_call import tune_machine

    return tune_machine(given, dry_run=dry_run, progress=progress)


def trace(
    command: Sequence[str] = (),
    *,
    output: FileName | None = None,
    profile: FileName | None = None,
    against: FileName | None = None,
    with_patch: bool = False,
    lines: str = "innermost",
    cupti: FileName | None = None,
    pid: int | None = None,
    seconds: int = 10,
    all: bool = False,
) -> VerbResult:
    """Runs a program and records its copies, as ``waywiser trace`` does: `VerbResult.result` is the
    trace, and `VerbResult.exit_code` that of the program.

    The options are those of the command line (``waywiser trace --help``). With ``pid`` a program
    that runs is watched for so many ``seconds``. Raises `waywiser.WaywiserError` if the program
    cannot be traced.
    """
    from waywiser.notebook.trace_call import trace_command

    return trace_command(
        command,
        output=output,
        profile=profile,
        against=against,
        with_patch=with_patch,
        lines=lines,
        cupti=cupti,
        pid=pid,
        seconds=seconds,
        everything=all,
    )


def doctor(
    file: FileName | None = None,
    *,
    severity: str = "warning",
    cluster: bool = False,
    mpi: bool = False,
    try_: bool = False,
    mpicc: FileName | None = None,
    launcher: str = "",
) -> VerbResult:
    """Says whether this machine, or the one of a profile, is fit to be measured, as ``waywiser
    doctor`` does. `VerbResult.exit_code` is 1 if there is a finding of ``severity`` or above.

    ``mpi`` and ``cluster`` say what ranks and surveys of a cluster have and lack; ``try_`` starts
    ranks. Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.doctor_call import diagnose_machine

    return diagnose_machine(
        file,
        severity=severity,
        cluster=cluster,
        mpi=mpi,
        try_=try_,
        mpicc=mpicc,
        launcher=launcher,
    )


def import_(
    *files: FileName,
    output: FileName | None = None,
    format: str | None = None,
    machine: str | None = None,
    topology: FileName | None = None,
    topology_anyway: bool = False,
) -> VerbResult:
    """Makes one profile from results of other tools, as ``waywiser import`` does.

    Without ``output`` it is a new file of the working folder; ``result.document["profile"]`` names
    it. Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.import_call import import_results

    return import_results(
        files,
        output=output,
        format=format,
        machine=machine,
        topology=topology,
        topology_anyway=topology_anyway,
    )


def export(
    *files: FileName,
    summary: bool = False,
    format: str = "",
    output: Output = None,
    for_: str = "",
    piece: str = "",
    source: str = "",
    ranks_per_gpu: int = 1,
) -> VerbResult:
    """Writes a profile in the formats of other programs, or settings of theirs, as ``waywiser
    export`` does.

    ``output`` is a file, or an open stream of text; without it `VerbResult.result` is the content.
    ``for_`` names the program. Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.export_call import export_files

    return export_files(
        files,
        summary=summary,
        format=format,
        output=output,
        consumer=for_,
        piece=piece,
        source=source,
        ranks_per_gpu=ranks_per_gpu,
    )


def cluster_survey(
    *,
    output: FileName | None = None,
    resume: bool = False,
    retry: bool = False,
    hostfile: FileName | None = None,
    launcher: str | None = None,
    mpicc: FileName | None = None,
    transport: str | None = None,
    nodes: int | None = None,
    expect_nodes: int | None = None,
    join_seconds: float | None = None,
    address: str | None = None,
    groups: FileName | None = None,
    uplink_pairs: int | None = None,
    size: str | int | None = None,
    test_seconds: float | None = None,
    no_check: bool = False,
    deadline: float | None = None,
    seed: int | None = None,
    dry_run: bool = False,
    progress: OnLine | None = None,
) -> VerbResult:
    """Tests the nodes of a cluster in pairs and together, as ``waywiser cluster survey`` does.

    The options are those of the command line (``waywiser cluster survey --help``). Nothing is
    printed; ``progress`` is called with each line that the command says while it goes on. With
    ``dry_run`` nothing is tested. Raises `waywiser.WaywiserError`; finished tests are stored.
    """
    given = {name: value for name, value in locals().items() if name not in ("dry_run", "progress")}
    from waywiser.notebook.cluster_call import survey_nodes

    return survey_nodes(given, dry_run=dry_run, progress=progress)


def cluster_join(
    coordinator: str,
    *,
    node_name: str | None = None,
    join_seconds: float | None = None,
    mpicc: FileName | None = None,
    progress: OnLine | None = None,
) -> None:
    """Joins a cluster survey as one of its nodes until the survey ends, as ``waywiser cluster
    join`` does; the token is in WAYWISER_CLUSTER_TOKEN. Raises `waywiser.WaywiserError`."""
    given = {name: value for name, value in locals().items() if name != "progress"}
    from waywiser.notebook.cluster_call import join_nodes

    join_nodes(given, progress)


def cluster_show(folder: FileName) -> VerbResult:
    """Which node, rail, pair or group of a cluster is slow or hangs, as ``waywiser cluster show``
    shows it. Raises `waywiser.WaywiserError`."""
    from waywiser.notebook.cluster_call import show_cluster

    return show_cluster(folder)


def simulate(
    file: FileName,
    *,
    output: FileName,
    set: str | Sequence[str] = (),
    seed: int | None = None,
    preset: str | None = None,
    only: str | Sequence[str] | None = None,
    workload: str | Sequence[str] | None = None,
    sizes: str | int | Sequence[str | int] | None = None,
    model: bool = False,
    host: str | None = None,
    nights: int | None = None,
    from_night: int | None = None,
    night_noise: str | None = None,
    progress: OnSurveyProgress | SurveyWatcher | None = None,
) -> Sequence[str]:
    """Surveys a simulated machine as ``waywiser simulate`` does: that of a profile, with changes.

    The options are those of the command line (``waywiser simulate --help``). Returns the profiles:
    ``output``, or with ``nights`` those of the folder ``output``. ``progress`` is that of
    `waywiser.survey`. Raises `waywiser.WaywiserError`.
    """
    given = {
        name: value
        for name, value in locals().items()
        if name not in ("file", "output", "set", "progress")
    }
    from waywiser.notebook.simulate_call import simulate_machine

    return simulate_machine(file, output, set, given, progress)


def topology(
    file: ProfileView | FileName | None = None,
    *,
    capture: FileName | None = None,
    anonymous: bool = False,
) -> MachineView:
    """This machine (its NUMA nodes, GPUs, links and their theoretical peaks), or the machine of
    ``file``: an opened profile, or the path of a profile, a capture or hwloc XML.

    ``capture`` is a file to write a capture of the machine to, ``anonymous`` without names and
    serial numbers. Nothing is measured. Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.machine_view import view_machine

    return view_machine(file, capture=capture, anonymous=anonymous)


def fleet(
    folder: FileName,
    *,
    labels: FileName | None = None,
    since: str = "",
) -> Any:
    """The data set of a folder as a `duckdb.DuckDBPyRelation`: a row for each path and size of each
    run, for SQL (``relation.query("nights", "SELECT ...")``), pandas (``.df()``), Polars
    (``.pl()``) and Arrow (``.to_arrow_table()``).

    ``labels`` is a file as for ``waywiser check --values``: each label is a column. ``since`` is
    the first day that is read: ``2026-11-01``, or ``14d``. Raises `waywiser.WaywiserError`: no data
    set is there, or a package of ``waywiser[fleet]`` is missing.
    """
    from waywiser.notebook.fleet_relation import fleet_relation

    return fleet_relation(folder, labels=labels, since=since)
