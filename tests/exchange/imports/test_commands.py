"""A line is a command only if all of it parses as one; launchers say how many ranks there are."""

from __future__ import annotations

import pytest

from waywiser.exchange.imports.commands.command_line import CommandLine
from waywiser.exchange.imports.commands.shell_words import simple_commands
from waywiser.exchange.imports.commands.transcript import shown_commands


def only(text: str) -> CommandLine:
    (found,) = shown_commands(text.splitlines())
    return found.command


@pytest.mark.parametrize(
    ("command", "ranks"),
    [
        ("mpirun -np 4 osu_allreduce", 4),
        ("mpirun -n 6 --bind-to core osu_allreduce", 6),
        ("mpiexec.hydra -n 8 -ppn 4 -hosts a,b osu_allreduce", 8),
        ("mpirun -N 3 -H a,b osu_allreduce", 6),
        ("mpirun -H a:2,b:2 osu_allreduce", 4),
        ("mpirun --map-by ppr:5:node:PE=2 --host a,b osu_allreduce", 10),
        ("mpirun --map-by ppr:2:socket -H a,b osu_allreduce", 0),
        ("srun --nodes=3 --ntasks-per-node=4 osu_allreduce", 12),
        ("srun -N 2 -n 32 -c 4 osu_allreduce", 32),
        ("jsrun --nrs 4 --tasks_per_rs 5 -c 7 osu_allreduce", 20),
        ("jsrun -p 9 osu_allreduce", 9),
        ("lrun -N 2 -T 4 osu_allreduce", 8),
        ("aprun -n 16 -N 8 -j 1 osu_allreduce", 16),
        ("flux run -N2 -n 10 -o cpu-affinity=per-task osu_allreduce", 10),
        ("mpirun_rsh -np 2 a b MV2_USE_CUDA=1 osu_allreduce", 2),
        ("ibrun -n 24 osu_allreduce", 24),
        ("taskset -c 3 mpirun -np 5 osu_allreduce", 5),
        ("timeout -k 5 600 mpirun -np 7 osu_allreduce", 7),
        ("nice -5 ionice -c 3 mpirun -np 3 osu_allreduce", 3),
        ("env -u FOO A=1 mpirun -np 3 numactl --localalloc osu_allreduce", 3),
        ("time -p mpirun -np 3 nsys profile -o x osu_allreduce", 3),
        ("mpirun -np 2 a=1 osu_allreduce : -np 3 osu_allreduce : -np 4 osu_allreduce", 9),
        ("aprun -n 4 osu_allreduce : -n 8 osu_allreduce", 12),
        ("docker run --rm -it --gpus all img:1 mpirun --allow-run-as-root -np 8 osu_allreduce", 8),
        ("bash -lc 'cd /x && mpirun -np 8 ./osu_allreduce -f > log'", 8),
        ("kubectl exec -n bench launcher-0 -- mpirun -np 6 /x/osu_allreduce", 6),
        ("ssh -p 22 node7 mpirun -np 6 osu_allreduce", 6),
        ("mpirun -np 4 ./bind.sh ./osu_allreduce", 4),
        ("osu_allreduce -f", 0),
        ("srun -N 4 osu_allreduce", 0),
        ("mpirun -hostfile hosts osu_allreduce -f", 0),
        ("srun -n $RANKS osu_allreduce", 0),
    ],
)
def test_launchers_say_how_many_ranks_there_are(command: str, ranks: int) -> None:
    found = only(f"$ {command}")
    assert (found.program, found.ranks) == ("osu_allreduce", ranks)


@pytest.mark.parametrize(
    "line",
    [
        "$ cd $HOME/osu_bw", "$ ls build/sendrecv_perf build/all_gather_perf", "$ cat osu_bw.txt",
        "$ make osu_latency", "Run osu_bw, and then osu_latency.", "--- osu_bw (D D) ---",
        "Tests to run: all_gather_perf all_reduce_perf", "scatter_perf", "$ which nvbandwidth",
        "osu_bw 12 GB/s", "nvbandwidth Version: v0.8", "TransferBench v1.62.00", "$ vi osu_bw.c",
        "# Collective test starting: all_reduce_perf", "$ echo mpirun -np 2 osu_bw",
        "Usage: all_reduce_perf [-b minbytes]", "$ mpirun -np 2 'osu_bw", "$ tar xf osu_bw D D",
        "osu_bw: error while loading shared libraries", "$ grep -r osu_bw .",
    ],
)  # fmt: skip
def test_a_word_is_no_command(line: str) -> None:
    assert not shown_commands([line])


@pytest.mark.parametrize(
    ("lines", "name", "value"),
    [
        ("$ UCX_TLS=tcp mpirun -np 2 osu_bw", "UCX_TLS", "tcp"),
        ("export UCX_TLS=tcp\nmpirun -np 2 osu_bw", "UCX_TLS", "tcp"),
        ("setenv UCX_TLS tcp\n% mpirun -np 2 osu_bw", "UCX_TLS", "tcp"),
        ("$ mpirun -np 2 -x UCX_TLS=tcp osu_bw", "UCX_TLS", "tcp"),
        ("$ mpiexec -genv UCX_TLS tcp -n 2 osu_bw", "UCX_TLS", "tcp"),
        ("$ srun -n 2 --export=ALL,UCX_TLS=tcp osu_bw", "UCX_TLS", "tcp"),
        ("$ jsrun -p 2 -E UCX_TLS=tcp osu_bw", "UCX_TLS", "tcp"),
        ("+ UCX_TLS=tcp\n+ mpirun -np 2 osu_bw", "UCX_TLS", "tcp"),
        ("UCX_TLS=tcp\n$ mpirun -np 2 osu_bw", "UCX_TLS", "tcp"),
        ("$ docker run -e UCX_TLS=tcp img osu_bw D D", "UCX_TLS", "tcp"),
        ("T=tcp\n$ UCX_TLS=$T mpirun -np 2 osu_bw", "UCX_TLS", "tcp"),
    ],
)
def test_variables_are_settings_however_they_are_given(lines: str, name: str, value: str) -> None:
    found = only(lines)
    assert found.environment[name] == value
    assert f"{name}={value}" in found.settings


def test_a_variable_lasts_as_long_as_the_shell_keeps_it() -> None:
    text = "export A_B=1\n$ mpirun -np 2 osu_bw\nunset A_B\n$ mpirun -np 2 osu_bw\n"
    first, second = (each.command for each in shown_commands(text.splitlines()))
    assert "A_B=1" in first.settings
    assert "A_B=1" not in second.settings
    text = "+ UCX_TLS=tcp\n+ mpirun -np 2 osu_bw\n+ mpirun -np 2 osu_bw\n"
    first, second = (each.command for each in shown_commands(text.splitlines()))
    assert ("UCX_TLS=tcp" in first.settings, "UCX_TLS=tcp" in second.settings) == (True, False)


@pytest.mark.parametrize(
    "other",
    [
        "srun -n 2 -o a.txt -J night --label osu_bw -i 10",
        "srun -n 2 --jobid=77 -v osu_bw -x 5 -i 20000",
        "UCX_LOG_LEVEL=info srun -n2 osu_bw | tee b.txt",
        "OUTDIR=/x time srun --ntasks 2 osu_bw > c.txt 2>&1",
    ],
)
def test_outputs_names_verbosity_and_iterations_are_no_settings(other: str) -> None:
    assert only(f"$ {other}").settings == only("$ srun -n 2 osu_bw").settings


@pytest.mark.parametrize(
    "other",
    [
        "srun -N 2 -n 2 osu_bw", "srun -n 2 -w a,b osu_bw", "srun -n 2 --mpi=pmi2 osu_bw",
        "srun -n 2 numactl -N 1 osu_bw", "mpirun -np 2 osu_bw", "srun -n 2 taskset -c 3 osu_bw",
        "srun -n 2 --container-image=a osu_bw", "srun -n 2 /opt/b/osu_bw",
        "srun -n 2 ./w.sh osu_bw",
        "NCCL_ALGO=Ring srun -n 2 osu_bw",
        "srun -n 2 singularity exec x.sif osu_bw",
    ],
)  # fmt: skip
def test_placement_wrappers_and_containers_are_settings(other: str) -> None:
    assert only(f"$ {other}").settings != only("$ srun -n 2 osu_bw").settings


def test_lines_that_continue_and_lines_with_several_commands() -> None:
    assert only("srun -N2 \\\n  --ntasks-per-node=4 \\\n  osu_allreduce -f").ranks == 8
    found = shown_commands(["$ cd x && mpirun -np 2 osu_bw; mpirun -np 2 osu_latency D D"])
    assert [each.command.program for each in found] == ["osu_bw", "osu_latency"]


def test_words_of_a_shell() -> None:
    assert simple_commands("a 'b c' \"d $e\" f\\ g > x 2>&1 | h & i") == [
        ["a", "b c", "d $e", "f g"], ["h"], ["i"]
    ]  # fmt: skip
    assert simple_commands("x $((2*(3+4))) $(y z) `w v`") == [
        ["x", "$((2*(3+4)))", "$(y z)", "`w v`"]
    ]
    assert simple_commands("a 'b") == []


@pytest.mark.parametrize("count", ["$((2*4))", "$(( 2 * 2 * 2 ))", "8"])
def test_products_are_counts(count: str) -> None:
    assert only(f"$ mpirun -np {count} osu_allreduce").ranks == 8


def test_a_launcher_may_start_a_wrapper_of_any_name() -> None:
    found = only("$ srun -n 4 gpu_affinity --mode=near osu_bw -d cuda D D")
    assert found.words == ("D", "D")
    assert {"by=gpu_affinity", "mode=near"} <= set(found.settings)
