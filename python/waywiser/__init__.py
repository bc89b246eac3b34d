"""Waywiser measures every way bytes can move in a machine with CPUs and GPUs.

    import waywiser

    profile = waywiser.open("machine.wwp")  # tables and figures of one profile
    waywiser.compare("before.wwp", "now.wwp")  # what got slower
    waywiser.check()  # whether this machine is healthy
    waywiser.fleet("nodes")  # the nights of many nodes, for SQL and data frames
    waywiser.survey(only="h2d")  # measures this machine into a profile
    waywiser.topology()  # what this machine is

See docs/python.md. No other part of it is imported before one of them is called.
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
    from waywiser.notebook.comparison_view import ComparisonView, Side
    from waywiser.notebook.health_view import HealthView
    from waywiser.notebook.machine_view import MachineView
    from waywiser.notebook.profile_view import ProfileView
    from waywiser.notebook.survey_call import OnSurveyProgress

__all__ = ["WaywiserError", "__version__", "check", "compare", "fleet", "survey", "topology"]
"""Without `open`: a star import must not replace the builtin function."""


def __getattr__(name: str) -> object:
    """`WaywiserError`, the base of all errors of this package, when it is first used."""
    if name == "WaywiserError":
        from waywiser.errors import WaywiserError

        return WaywiserError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def open(path: str | os.PathLike[str]) -> ProfileView:
    """Reads a profile (``.wwp``) and closes the file.

    Raises `waywiser.profile.ProfileError`: there is no such file, it is no profile, it is damaged.
    """
    from waywiser.notebook.profile_view import read_profile

    return read_profile(path)


def compare(
    base: Side | Sequence[Side],
    new: Side | Sequence[Side],
    *,
    threshold: float | None = None,
    repeat: Side | Sequence[Side] = (),
) -> ComparisonView:
    """Compares new profiles with baseline profiles path by path, as ``waywiser compare`` does.

    A side is the path of a profile, an opened profile, or several of these. ``threshold`` is the
    relative change that matters, by default 0.03. ``repeat`` are profiles in which suspected paths
    were measured again. Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.comparison_view import compare_profiles

    return compare_profiles(base, new, threshold=threshold, repeat=repeat)


def check(
    *files: str | os.PathLike[str],
    baseline: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    fleet: str | os.PathLike[str] | None = None,
    repeat: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    threshold: float | None = None,
    max_hidden: float | None = None,
    within: int | None = None,
    expect_gpus: int = 0,
    values: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    since: str = "",
    keep: bool = False,
) -> HealthView:
    """Says whether a machine is healthy, by every reference at hand, as ``waywiser check`` does.

    Without ``files`` this machine is measured for at most ``within`` seconds (30). One profile is
    checked; of several, or of a folder, each host is compared with its peers and its own nights.
    The options are those of the command line (``waywiser check --help``). Suspected paths are not
    measured again. Nothing is printed. Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.health_view import check_health

    return check_health(
        files,
        baseline=baseline,
        fleet=fleet,
        repeat=repeat,
        threshold=threshold,
        max_hidden=max_hidden,
        within=within,
        expect_gpus=expect_gpus,
        values=values,
        since=since,
        is_kept=keep,
    )


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
    file: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    scratch: str | os.PathLike[str] | None = None,
    no_scratch: bool = False,
    nccl: str | os.PathLike[str] | None = None,
    model: bool = False,
    share: bool = False,
    ranks: int | None = None,
    ranks_per_gpu: int | None = None,
    rank_cpus: str | None = None,
    mpicc: str | os.PathLike[str] | None = None,
    launcher: str | None = None,
    seed: int | None = None,
    output: str | os.PathLike[str] | None = None,
    dataset: str | os.PathLike[str] | None = None,
    resume: bool = False,
    progress: OnSurveyProgress | None = None,
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


def fleet(
    folder: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
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


def topology(source: ProfileView | str | os.PathLike[str] | None = None) -> MachineView:
    """This machine (its NUMA nodes, GPUs, links and their theoretical peaks), or the machine of
    ``source``: an opened profile, or the path of a profile, a capture or hwloc XML.

    Nothing is measured. Raises `waywiser.WaywiserError`.
    """
    from waywiser.notebook.machine_view import view_machine

    return view_machine(source)
