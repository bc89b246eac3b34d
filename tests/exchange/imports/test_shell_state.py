"""What the lines between two runs change keeps the runs apart; what changes nothing does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from exchange.imports.test_run_commands import runs
from waywiser.exchange.imports.commands.lasting_changes import is_lasting_change
from waywiser.exchange.imports.commands.prompts import prompt_of
from waywiser.exchange.imports.commands.shell_state import begins_shell

RUN = "./all_reduce_perf -g 4"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ops@rome3:~/perf$ {}", "ops@rome4:~/perf$ {}"),
        ("[ops@rome3 perf]$ {}", "[ops@rome4 perf]$ {}"),
        ("rome3:/perf # {}", "rome4:/perf # {}"),
        ("ops@rome3:~/nccl-2.18$ {}", "ops@rome3:~/nccl-2.20$ {}"),
        ("(stable) $ {}", "(nightly) $ {}"),
        ("$ cd /srv/old\n$ {}", "$ cd ../new\n$ {}"),
        ("$ cd old && {}", "$ cd ../new && {}"),
        ("$ cd $OLD\n$ {}", "$ cd $NEW\n$ {}"),
        ("$ TOP=/a; cd $TOP\n$ {}", "$ TOP=/b; cd $TOP\n$ {}"),
        ("$ bash -c 'cd old; {}'", "$ bash -c 'cd new; {}'"),
        ("$ old/all_reduce_perf -g 4", "$ new/all_reduce_perf -g 4"),
        ("$ setenv NCCL_NTHREADS 64\n$ {}", "$ unsetenv NCCL_NTHREADS\n$ {}"),
        ("$ export NCCL_NTHREADS=64\n$ {}", "$ export -n NCCL_NTHREADS\n$ {}"),
        ("$ declare -x NCCL_NTHREADS=64\n$ {}", "$ declare -x NCCL_NTHREADS=256\n$ {}"),
        ("$ set -gx NCCL_NTHREADS 64\n$ {}", "$ set -gx NCCL_NTHREADS 256\n$ {}"),
        ("$ set -a; MY_RINGS=4; set +a\n$ {}", "$ set -a; MY_RINGS=8; set +a\n$ {}"),
        ("$ spack load nccl@2.19\n$ {}", "$ spack unload nccl\n$ {}"),
        ("$ conda activate old\n$ {}", "$ conda activate new\n$ {}"),
        ("$ ulimit -l 64\n$ {}", "$ ulimit -l 1024\n$ {}"),
        ("$ ssh rome3\n$ {}", "$ exit\n$ ssh rome4\n$ {}"),
        ("$ {}", "$ nvidia-smi -lgc 900\n$ {}"),
        ("$ {}", "$ sudo sysctl -w kernel.numa_balancing=0\n$ {}"),
        ("$ {}", "$ echo NCCL_NTHREADS=64 > ~/.nccl.conf\n$ {}"),
        ("$ {}", "$ make -C nccl\n$ {}"),
        ("$ {}", "$ git checkout v2.13\n$ {}"),
        ("$ {}", "$ sudo modprobe -r nvidia_peermem; {}"),
        ("$ nice {}", "$ {}"),
        ("$ sudo {}", "$ {}"),
        ("$ docker run --env-file a img {}", "$ docker run --env-file b img {}"),
        ("$ docker run -v /a:/lib img {}", "$ docker run -v /b:/lib img {}"),
        ("$ kubectl exec bench -c old -- {}", "$ kubectl exec bench -c new -- {}"),
        ("$ kubectl -n one exec bench -- {}", "$ kubectl -n two exec bench -- {}"),
        ("$ srun -n 1 -p red {}", "$ srun -n 1 -p blue {}"),
        ("$ srun -n 1 --exclusive {}", "$ srun -n 1 {}"),
        ("$ /opt/a/bin/mpirun -np 1 {}", "$ /opt/b/bin/mpirun -np 1 {}"),
        ("$ mpirun -np 1 --prefix /a {}", "$ mpirun -np 1 --prefix /b {}"),
        ("$ mpirun -np 1 -x NCCL_NTHREADS {}", "$ mpirun -np 1 {}"),
        ("$ mpirun -np 1 -genvlist NCCL_NTHREADS {}", "$ mpirun -np 1 {}"),
        ("$ export NCCL_NTHREADS=64\n$ ./night.sh", "$ export NCCL_NTHREADS=256\n$ ./night.sh"),
        ("ops@rome3:~$ ./night.sh", "ops@rome4:~$ ./night.sh"),
        ("Host: rome3\n$ {}", "Host: rome4\n$ {}"),
        ("$ hostname\nrome3\n$ {}", "$ hostname\nrome4\n$ {}"),
        ("$ {} -z 1", "$ {} -z 0"),
    ],
)
def test_runs_after_a_change_are_series_of_their_own(one: str, other: str, tmp_path: Path) -> None:
    assert runs(one.format(RUN), other.format(RUN), tmp_path) == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ops@rome3:~/perf$ {}", "ops@rome3:~/perf$ {}"),
        ("$ {} | tee a.log", "$ mv a.log b.log\n$ {} | tee a.log"),
        ("$ {}", "$ nvidia-smi\n$ git status\n$ ip addr\n$ echo next >> all.log\n$ {}"),
        ("$ {}", "$ ssh rome4\n$ uptime\n$ exit\n$ {}"),
        ("$ cd perf\n$ {}", "$ cd /tmp\n$ ls\n$ cd -\n$ {}"),
        ("$ module load a\n$ {}", "$ bash run.sh > x.log\n$ {}"),
        ("Host: rome3\n$ {}", "$ {}"),
        ("$ ssh rome3 {}", "$ ssh rome3 '{}'"),
        ("$ ./night.sh", "$ ./night.sh"),
        ("$ docker run --rm img {}", "$ docker run -it --rm img {}"),
        ("$ RUN=1; {}", "$ RUN=2; {}"),
        ("cd $SLURM_SUBMIT_DIR\n{}", "{}"),
        ("$ cd ${{TOP}}/perf\n$ {}", "$ cd $TOP/perf\n$ {}"),
    ],
)
def test_runs_without_a_change_are_blocks(one: str, other: str, tmp_path: Path) -> None:
    assert runs(one.format(RUN), other.format(RUN), tmp_path) == [2, 2]


@pytest.mark.parametrize(
    ("line", "host", "folder"),
    [
        ("ann@fir2:~/x y$ ./a", "fir2", "~/x"),
        ("[ann@fir2 bin]# ./a", "fir2", "bin"),
        ("(py) ann@fir2:/$ ./a", "fir2", "/"),
        ("fir2:~> ./a", "fir2", "~"),
        ("bash-5.2$ ./a", "", ""),
        ("+ ./a", "", ""),
    ],
)
def test_prompts_show_host_and_folder(line: str, host: str, folder: str) -> None:
    found = prompt_of(line)
    assert found is not None
    assert (found.host, found.folder) == (host, folder)
    assert line[found.end :] == "./a"


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        ("bash", True), ("bash -l", True), ("bash night.sh", False), ("sh -c ls", False),
        ("ssh fir2", True), ("ssh -p 22 ann@fir2", True), ("ssh fir2 uptime", False),
        ("sudo -i", True), ("sudo su", True), ("sudo ls", False), ("su - ann", True),
        ("salloc -N 2", True), ("srun --pty bash", True), ("srun hostname", False),
        ("docker exec -it c bash", True), ("docker ps", False), ("singularity shell a.sif", True),
    ],
)  # fmt: skip
def test_some_commands_begin_a_shell(line: str, begins: bool) -> None:
    assert begins_shell(line.split()) == begins


@pytest.mark.parametrize(
    ("line", "file", "lasts"),
    [
        ("nvidia-smi topo -m", "", False), ("nvidia-smi -pl 300", "", True),
        ("cp a.log b.log", "", False), ("cp libnccl.so.2 /usr/lib", "", True),
        ("echo a", "notes.txt", False), ("echo a", "hosts", True),
        ("kubectl get pods", "", False), ("kubectl apply -f x", "", True),
        ("sudo tee /proc/sys/vm/x", "", True), ("tee out", "", False),
        ("python plot.py", "", False), ("vi night.sh", "", True),
    ],
)  # fmt: skip
def test_some_commands_change_what_later_runs_measure(line: str, file: str, lasts: bool) -> None:
    assert is_lasting_change(line.split(), file) == lasts
