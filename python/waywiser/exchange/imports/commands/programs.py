"""The programs whose results are read, and how their own options look."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from waywiser.exchange.imports.commands.options import (
    FLAG,
    PLAIN,
    PLAIN_FLAG,
    SETTING,
    FoundOption,
    OptionMeaning,
    options,
    take_options,
)


class Program(NamedTuple):
    """A family of programs."""

    format: str
    """A key of `waywiser.exchange.imports.detect.FORMATS`."""
    name: re.Pattern[str]
    table: Mapping[str, OptionMeaning]
    words: re.Pattern[str]
    """What a word that is no option and no value may be."""
    most_words: int = 0


_OSU = options(
    {
        "-m --message-size -x --warmup -i --iterations -M --mem-limit -u --validation-warmup "
        "-P --papi -g --graph": PLAIN,
        "-f --full -c --validation -v --version -h --help -z": PLAIN_FLAG,
        "-W --window-size -T --type -d --accelerator --type": OptionMeaning("named"),
        "-D --ddt -b --buffer-num -t --num-threads -p --num-pairs -s --sync-option -w --win-option "
        "-r --cuda-target -G --num-processes -V --vary-window -R --print-rate -S --stride": SETTING,
        "-I --session -k": FLAG,
    }
)  # fmt: skip
_NCCL = options(
    {
        "-b --minbytes -e --maxbytes -i --stepbytes -f --stepfactor -n --iters -w --warmup_iters "
        "-c --check -N --run_cycles -J --output_file -T --timeout -S --report_timestamps "
        "-O --output_format -Z -x --output -M --memory_report --num_bins": PLAIN,
        "-t --nthreads -g --ngpus -d --datatype -o --op -r --root -a --average -z --blocking "
        "-G --cudagraph -m --agg_iters -C --report_cputime -u --unalign": OptionMeaning("named"),
        "-p --parallel_init": PLAIN,
        "-R --local_register -D --device_implementation -V --device_cta_count -y --memory_type "
        "-s --stress_cycles -l --persistent -F --cache_flush -q --delay -L --stream_null "
        "-Y --memory_type_recv": SETTING,
        "-h --help": PLAIN_FLAG,
    }
)  # fmt: skip
_NVBANDWIDTH = options(
    {
        "-b --bufferSize -t --testcase": OptionMeaning("named"),
        "-p --testcasePrefixes -i --testSamples": PLAIN,
        "-v --verbose -l --list -j --json -s --skipVerification -h --help -m --useMean": PLAIN_FLAG,
        "-d --disableAffinity": FLAG,
    }
)

_COMMSCOPE = options(
    {
        "--benchmark_out --benchmark_out_format --benchmark_repetitions --benchmark_min_time "
        "--benchmark_filter --benchmark_format --benchmark_display_aggregates_only "
        "--benchmark_report_aggregates_only --benchmark_color -l": PLAIN,
        "--benchmark_list_tests -v --verbose": PLAIN_FLAG,
        "-c --cuda -n --numa --gpu --hip": SETTING,
    }
)

PROGRAMS = (
    Program(
        "osu", re.compile(r"osu_[a-z][a-z0-9_]*"), _OSU, re.compile(r"[DH]|M[DH]?"), 2
    ),
    Program(
        "nccl", re.compile(r"(?P<collective>[a-z]+(?:_[a-z]+)*)_perf(?:_mpi)?"), _NCCL,
        re.compile(r"(?!)"),
    ),
    Program(
        "nvbandwidth", re.compile(r"nvbandwidth(?:\.exe)?"), _NVBANDWIDTH,
        re.compile(r"[a-z0-9_]+"), 200,
    ),
    Program(
        "transferbench", re.compile(r"TransferBench(?:Cuda)?"), {},
        re.compile(r"(?!v[0-9]|Client$)[\w./-]+"), 20,
    ),
    Program("gpu-copy", re.compile(r"gpu_copy"), options({"--size": OptionMeaning("named")}),
            re.compile(r"(?!)")),
    Program("google-benchmark", re.compile(r"(?i:comm_?scope)"), _COMMSCOPE, re.compile(r"(?!)")),
    Program("benchpress", re.compile(r"time_[a-z_]+"), {}, re.compile(r"(?!)")),
)  # fmt: skip

MENTIONS = re.compile(
    r"osu_[a-z]|_perf\b|_perf_mpi\b|nvbandwidth|TransferBench|gpu_copy\b|time_[a-z]|(?i:comm_?scope\b)"
)
"""What a line that runs one of them has in it."""


def program_of(word: str) -> Program | None:
    """The family of a program that a word names, with or without its folder."""
    name = word.rpartition("/")[2]
    return next((each for each in PROGRAMS if each.name.fullmatch(name)), None)


def arguments_of(
    program: Program, words: Sequence[str]
) -> tuple[list[FoundOption], list[str]] | None:
    """(options, other words) of a program; None for what is no command line of it."""

    def is_word(word: str) -> bool:
        return bool(program.words.fullmatch(word))

    found: list[FoundOption] = []
    others: list[str] = []
    at = 0
    while at < len(words):
        if words[at].startswith("-") and len(words[at]) > 1:
            options_here, at = take_options(words, at, program.table, is_word)
            found += options_here
        elif is_word(words[at]) and len(others) < program.most_words:
            others.append(words[at])
            at += 1
        else:
            return None
    if any(len(each.values) < each.option.values for each in found):
        return None
    return found, others
