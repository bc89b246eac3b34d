"""``jsrun`` and ``lrun`` of IBM, and ``aprun`` of Cray."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from waywiser.exchange.imports.commands.launch_state import LaunchState, last_of, number
from waywiser.exchange.imports.commands.options import (
    FLAG,
    PLAIN,
    PLAIN_FLAG,
    SETTING,
    OptionMeaning,
    options,
    take_options,
)

NAMES = frozenset({"jsrun", "lrun", "aprun"})

_TABLES = {
    "jsrun": options(
        {
            "-n --nrs": OptionMeaning("sets"),
            "-a --tasks_per_rs": OptionMeaning("each"),
            "-p --np": OptionMeaning("ranks"),
            "-E --env": OptionMeaning("variable"),
            "-c --cpu_per_rs -g --gpu_per_rs -r --rs_per_host -d --launch_distribution -b --bind "
            "-l --latency_priority -m --memory_per_rs -U "
            "--erf_input -M --smpiargs -L --use_resources"
            : SETTING,
            "-o --stdio_stdout -k --stdio_stderr -h --chdir -S --save_resources -t --stdio_input "
            "-e --stdio_mode"
            : PLAIN,
            "-i --immediate -v -V --progress": PLAIN_FLAG,
        }
    ),
    "lrun": options(
        {
            "-n": OptionMeaning("ranks"),
            "-N": OptionMeaning("sets"),
            "-T": OptionMeaning("each"),
            "--gpubind --mpibind -M": SETTING,
            "-1 --pack -g": FLAG,
            "-v --verbose": PLAIN_FLAG,
        }
    ),
    "aprun": options(
        {
            "-n --pes": OptionMeaning("ranks"),
            "-e": OptionMeaning("variable"),
            "-N -S -d -j -cc -ss -r -L -B -F -m -p": SETTING,
            "-b -q -T": PLAIN_FLAG,
        }
    ),
}  # fmt: skip


def read(
    words: Sequence[str], at: int, launch: LaunchState, is_command: Callable[[str], bool]
) -> int:
    """Takes what the launcher at ``words[at]`` says; returns where its program begins."""
    launcher = words[at].rpartition("/")[2]
    found, end = take_options(words, at + 1, _TABLES[launcher], is_command)
    others = launch.take(found)
    sets, each = last_of(others, "sets"), last_of(others, "each")
    if sets:
        launch.set("sets" if launcher == "jsrun" else "nodes", sets)
    if each:
        launch.set("ranks-of-set", each)
    default = "1" if launcher == "jsrun" else "0"
    ranks = number(last_of(others, "ranks"))
    launch.ranks = ranks or number(sets) * number(each or default)
    return end
