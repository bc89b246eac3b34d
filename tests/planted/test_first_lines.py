"""What is said first of a planted fault, by each verb: the fault, and no consequence of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from analysis.comparison import nodes
from kept import RESULTS, unpacked
from parts_of_check import PEERS, part_of
from verb_output import Said
from waywiser.curves.headline import group_of
from waywiser.curves.subject import Subject
from waywiser.machine.machine import UnusableGpu
from waywiser.words import Workload

GPUS, HOSTS = 4, 4
SIZES = (1024, nodes.SIZE)
ORIGINAL = RESULTS / "2026-11-22-check-two-gpus" / "check-1.wwp.xz"

LOST = "0000:03:00.0"

START = 5e-6
"""Seconds that a small copy takes."""


def slow_set(group: str, loss: float) -> nodes.Slow:
    return lambda what: 1 / (1 - loss) if group_of(what) == group and large(what) else 1.0


def slow_link(gpu: int, loss: float) -> nodes.Slow:
    link = nodes.slow_host_link(gpu, 1 / (1 - loss))
    return lambda what: link(what) if large(what) else 1.0


def slow_all(loss: float) -> nodes.Slow:
    return lambda _: 1 / (1 - loss)


def slow_start(longer: float) -> nodes.Slow:
    return lambda what: 1.0 if large(what) else 1 + longer


def large(what: Workload) -> bool:
    return what.transfers[0].bytes == nodes.SIZE


FAULTS: Mapping[str, nodes.Slow] = {
    **{f"link {gpu} {loss}": slow_link(gpu, loss)
       for gpu, loss in ((0, 0.05), (1, 0.05), (2, 0.05), (3, 0.05), (1, 0.1), (2, 0.46))},
    **{f"set {group} {loss}": slow_set(group, loss)
       for group in ("host-to-all", "all-to-host") for loss in (0.2, 0.12)},
    **{f"all {loss}": slow_all(loss) for loss in (0.03, 0.05, 0.1)},
    **{f"latency {longer}": slow_start(longer) for longer in (0.05, 0.1)},
}  # fmt: skip
"""Name of the fault -> what takes longer."""


def surveyed(seed: int, host: str, slow: nodes.Slow = lambda _: 1.0) -> Subject:
    seconds = {str(what): each for what, each in nodes.workloads(GPUS, SIZES[0])}

    def factor(what: Workload) -> float:
        return slow(what) * (1.0 if large(what) else START / seconds[str(what)])

    return nodes.node(seed, host, gpus=GPUS, blocks=8, slow=factor, sizes=SIZES,
                      created=f"2026-11-20T{seed:02}:00:00.000+00:00")  # fmt: skip


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``base.wwp``, the profile of each fault on the same host, and three equal hosts."""
    found = tmp_path_factory.mktemp("planted")
    nodes.stored(surveyed(1, "n0"), found / "base.wwp")
    for number in range(1, HOSTS):
        nodes.stored(surveyed(1, f"n{number}"), found / f"n{number}.wwp")
    for name, slow in FAULTS.items():
        nodes.stored(surveyed(2, "n0", slow), found / f"{name}.wwp")
    gone = nodes.without(surveyed(2, "n0"), LOST)
    nodes.stored(gone, found / "gone.wwp")
    lost = (UnusableGpu(LOST, "lost", "GPU is lost"),)
    machine = msgspec.structs.replace(gone.machine, unusable_gpus=lost)
    nodes.stored(msgspec.structs.replace(gone, machine=machine), found / "lost.wwp")
    return found


def of_fleet(said: Said, file: str) -> str:
    """The counts and the first fault."""
    text = said("check", "n1.wwp", "n2.wwp", "n3.wwp", file)
    lines = [line.strip() for line in part_of(text, PEERS)]
    return "; ".join([lines[0], *lines[4:5]])


def of_report(said: Said, file: str) -> str:
    """The first finding; empty without any."""
    finding = re.search(
        r"^1\. (.*)$", said("report", file, "-o", "-", "--format", "md"), re.MULTILINE
    )
    return finding[1] if finding else ""


LINKS = [name for name in FAULTS if name.startswith("link")]
SETS = [name for name in FAULTS if name.startswith("set")]
ALL = [name for name in FAULTS if name.startswith("all")]
STARTS = [name for name in FAULTS if name.startswith("latency")]
ACCUSES = "link to the host is slow"


@pytest.mark.parametrize("fault", LINKS)
def test_a_slow_link(said: Said, fault: str) -> None:
    file, gpu = f"{fault}.wwp", f"gpu:{fault.split()[1]}"
    assert said("show", file).splitlines()[1].startswith(f"the link of {gpu} to the host is slower")
    for words in (["compare", "base.wwp", file], ["check", file, "--baseline", "base.wwp"]):
        assert re.search(rf"\b{gpu} .*slower", said(*words).splitlines()[0])
    assert of_fleet(said, file).startswith(f"1 suspect, 3 fine of 4 hosts; {gpu}: ")
    assert f"{gpu}'s {ACCUSES}" in of_report(said, file)


@pytest.mark.parametrize("fault", LINKS)
def test_a_slow_link_in_advice_and_policies(said: Said, fault: str) -> None:
    """A copy over it is advised with its own bandwidth, one over another link with that of the
    others; a policy says whose times it has, and the doctor, who knows no times, nothing of it."""
    file, gpu, loss = f"{fault}.wwp", int(fault.split()[1]), float(fault.split()[2])
    for each in (gpu, (gpu + 1) % GPUS):
        ends = ("--from", "pinned@numa:0", "--to", f"device@gpu:{each}", "--bytes", "64MiB")
        first, second, *_ = said("advise", file, *ends).splitlines()
        rate = nodes.LINK / 1e9 * (1 - loss * (each == gpu))
        assert first == "copy-engine"
        assert float(second.split()[0]) == pytest.approx(rate, rel=0.01)
    notes = re.findall(r"^Note: (.*)$", said("advise", file), re.MULTILINE)
    said_first = [
        re.match(rf"(numa:0 -> )?gpu:{gpu} .*has ([\d.]+) % less bandwidth", note) for note in notes
    ]
    losses = [float(found[2]) / 100 for found in said_first if found]
    assert losses == pytest.approx([loss, loss], abs=0.01)
    placement = said("advise", file, "--placement")
    assert re.search(
        rf"The slowest GPU of a node has less bandwidth.* gpu:{gpu} against", placement
    )
    fit = r"OK: no warning and no error; .* in \d+ checks of what the profile stores"
    assert re.search(fit, said("doctor", file))


@pytest.mark.parametrize("fault", SETS)
def test_a_slow_set(said: Said, folder: Path, fault: str) -> None:
    file, group, loss = f"{fault}.wwp", fault.split()[1], float(fault.split()[2])
    for words in (["compare", "base.wwp", file], ["check", file, "--baseline", "base.wwp"]):
        found = re.search(rf"{group} .* is (\d+\.\d)% slower", said(*words).splitlines()[0])
        assert found and float(found[1]) == pytest.approx(100 * loss, abs=1)
    fleet = of_fleet(said, file)
    if fleet != "4 fine of 4 hosts":
        assert fleet.startswith(f"1 suspect, 3 fine of 4 hosts; {group} ")
    else:  # then it says that it does not find such a loss
        (line,) = re.findall(r"smallest loss .*", said("check", "n1.wwp", "n2.wwp", "n3.wwp", file))
        (least,) = re.findall(rf"([\d.]+) % of [^;]*{group}", line)
        assert float(least) / 100 > loss
    assert "the link of" not in said("show", file)
    assert ACCUSES not in of_report(said, file)


@pytest.mark.parametrize("fault", ALL)
def test_a_whole_machine(said: Said, fault: str) -> None:
    file, loss = f"{fault}.wwp", float(fault.split()[1])
    for words in (["compare", "base.wwp", file], ["check", file, "--baseline", "base.wwp"]):
        first = said(*words).splitlines()[0]
        assert re.search(rf"the whole machine is {100 * loss:g}(\.0)? % slower", first)
    fleet = of_fleet(said, file)
    if loss > 0.04:
        assert re.match(
            r"1 suspect, 3 fine of 4 hosts; 2\d of 26 paths are slower than its peers", fleet
        )
    else:
        assert fleet == "4 fine of 4 hosts"
    assert "the link of" not in said("show", file)
    assert ACCUSES not in of_report(said, file)


@pytest.mark.parametrize("fault", STARTS)
def test_a_longer_latency(said: Said, fault: str) -> None:
    file, longer = f"{fault}.wwp", 100 * float(fault.split()[1])
    for words in (["compare", "base.wwp", file], ["check", file, "--baseline", "base.wwp"]):
        (first, *_) = said(*words).splitlines()
        by = re.search(r"the latencies of the whole machine are ([\d.]+) % longer", first)
        assert by and float(by[1]) == pytest.approx(longer, abs=0.5), first
    fleet = of_fleet(said, file)
    by = re.match(
        r"1 suspect, 3 fine of 4 hosts; \d\d of 26 paths take longer.*by ([\d.]+)%", fleet
    )
    assert by and float(by[1]) == pytest.approx(longer, abs=0.5), fleet
    assert ACCUSES not in of_report(said, file)


def test_a_lost_gpu(said: Said) -> None:
    gone = "gpu:2 (0000:03:00.0, GPU-n0-2) is gone"
    assert said("compare", "base.wwp", "gone.wwp").splitlines()[0] == gone
    check = said("check", "gone.wwp", "--baseline", "base.wwp")
    assert check.splitlines()[0].startswith(f"FAILED n0: {gone}")
    fleet = of_fleet(said, "gone.wwp")
    assert fleet == "1 bad, 3 fine of 4 hosts; 3 of 4 GPUs: none at 0000:03:00.0"
    assert ACCUSES not in of_report(said, "gone.wwp")


def test_a_gpu_that_does_not_answer(said: Said) -> None:
    lost = f"1 NVIDIA GPU does not answer: {LOST} (GPU is lost); the others are gpu:0-2"
    assert said("show", "lost.wwp").splitlines()[1] == lost
    assert said("topology", "lost.wwp").splitlines()[0] == f"error: {lost}"
    check = said("check", "lost.wwp", "--baseline", "base.wwp")
    assert check.startswith(f"FAILED n0: {lost}")
    assert said("doctor", "lost.wwp").splitlines()[0].endswith(f"describes it: {lost}")
    assert of_fleet(said, "lost.wwp") == f"1 bad, 3 fine of 4 hosts; {lost}"
    assert lost in of_report(said, "lost.wwp")
    assert "Problem: 1 problem was found" in said("report", "lost.wwp", "-o", "-", "--format", "md")
    policy = said("advise", "lost.wwp").splitlines()
    assert policy[0].startswith("Policy of Test GPU")


# GPUs of the original. That of gpu:1 is noisier.
@pytest.mark.parametrize(("gpu", "rate"), [(0, 49.8), (1, 49.6)])
def test_a_simulated_slow_link(said: Said, folder: Path, gpu: int, rate: float) -> None:
    original = folder / "original.wwp"
    if not original.exists():
        unpacked(ORIGINAL, original)
        for seed in ("1", "2", "3"):
            said(
                "simulate",
                "original.wwp",
                "--set",
                "gpus=4",
                "--seed",
                seed,
                "-o",
                f"sim{seed}.wwp",
            )
    file, change = f"slow{gpu}-{rate}.wwp", f"PCIe to gpu:{gpu}={rate}GB/s"
    said("simulate", "original.wwp", "--set", "gpus=4", "--seed", "4", "--set", change, "-o", file)
    assert (
        said("show", file)
        .splitlines()[1]
        .startswith(f"the link of gpu:{gpu} to the host is slower")
    )
    for words in (["compare", "sim1.wwp", file], ["check", file, "--baseline", "sim1.wwp"]):
        assert re.search(rf"gpu:{gpu} .*slower", said(*words).splitlines()[0])
    fleet = part_of(said("check", "sim1.wwp", "sim2.wwp", "sim3.wwp", file), PEERS)
    assert fleet[0] == "1 suspect, 3 fine of 4 hosts"
    assert fleet[4].startswith(f"    gpu:{gpu}: ")
    one = said("check", file).splitlines()
    assert re.match(rf"FAILED vm .simulated.: the link of gpu:{gpu} to the host is slower", one[0])
    assert any(re.match(r"equal parts +slow ", line) for line in one)
    beside = part_of(said("check", "sim1.wwp", file), PEERS)
    assert beside[0].endswith("of 2 hosts; the profile of 1 host names a slow link by itself")
    assert any(f"own profile the link of gpu:{gpu} to the host is slower" in line
               for line in beside)  # fmt: skip
    assert f"gpu:{gpu}'s {ACCUSES}" in of_report(said, file)
