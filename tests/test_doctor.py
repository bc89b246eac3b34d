from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from machine.captured import ALL, machine
from machine.fake_system import system_of
from scripted_cpus import LIMIT
from waywiser.curves.answer import Finding, at_least
from waywiser.fitness.diagnosis import CHECKS, diagnose, unchecked
from waywiser.fitness.gpu import has_code, links
from waywiser.fitness.situation import Situation
from waywiser.machine import cpu_load
from waywiser.machine.cpu_load import CpuLoad
from waywiser.machine.machine import Gpu, Machine
from waywiser.profile.health import HealthReport, Rise
from waywiser.words.records import GpuHealth, GpuState
from waywiser.words.status import SEVERITY_ORDER

CPU = "sys/devices/system/cpu"
A100 = machine("two-socket-4gpu")
H200 = machine("h200-vm-8gpu")
NO_GPU = machine("no-gpu")
PERFORMANCE = {f"{CPU}/cpu0/cpufreq/scaling_governor": "performance"}


def found(root: Path, files: dict[str, str], on: Machine = NO_GPU, **more: Any) -> list[Finding]:
    return list(diagnose(Situation(on, system_of(root, PERFORMANCE | files), **more)))


def one(findings: list[Finding], name: str) -> Finding:
    (finding,) = [finding for finding in findings if finding.id == name]
    return finding


def names(findings: list[Finding]) -> set[str]:
    return {finding.id for finding in findings}


@pytest.mark.parametrize("name", ALL)
def test_no_captured_machine_makes_a_check_fail(name: str, tmp_path: Path) -> None:
    for finding in diagnose(Situation(machine(name), system_of(tmp_path, {}), "cuda", "13.0")):
        assert finding.text and finding.evidence[0]
        assert finding.remedy or finding.severity == "info"
        assert "\n" not in finding.text + finding.evidence[0] + finding.remedy


def test_a_quiet_bare_metal_host_has_no_warning(tmp_path: Path) -> None:
    quiet = {
        "proc/loadavg": "64.00 32.00 16.00 9/100 7",  # of the survey before, or of other hosts
        "proc/sys/kernel/numa_balancing": "0",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never",
        "proc/meminfo": "MemTotal: 1000 kB\nSwapTotal: 100 kB\nSwapFree: 100 kB",
    }
    findings = found(tmp_path, quiet)
    assert at_least(tuple(findings), "warning") == ()


@pytest.mark.parametrize(
    ("files", "name", "severity", "says"),
    [
        ({f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"}, "governor", "warning", "powersave"),
        ({f"{CPU}/intel_pstate/no_turbo": "0"}, "turbo", "info", "on"),
        ({f"{CPU}/cpufreq/boost": "0"}, "turbo", "info", "off"),
        ({"proc/sys/kernel/numa_balancing": "1"}, "numa-balancing", "warning", "pages move"),
        (
            {"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"},
            "huge-pages",
            "info",
            "always on",
        ),
        (
            {"sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]"},
            "huge-pages",
            "info",
            "off",
        ),
        (
            {"proc/meminfo": "MemTotal: 8388608 kB\nSwapTotal: 4194304 kB\nSwapFree: 2097152 kB"},
            "swap",
            "warning",
            "2.0 GiB",
        ),
        (
            {"proc/self/limits": "Max locked memory         65536    65536    bytes"},
            "memlock",
            "info",
            "64 KiB",
        ),
        (
            {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "250000 100000"},
            "cpu-quota",
            "warning",
            "the time of 2.5 CPUs for 16",
        ),
        (
            {"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "1073741824"},
            "cgroup-memory",
            "warning",
            "1.0 GiB",
        ),
        (
            {f"{CPU}/online": "0-15", "proc/self/status": "Cpus_allowed_list:\t0-3"},
            "cpuset",
            "info",
            "4 of 16",
        ),
    ],
)
def test_each_disturbance_of_the_host_is_found(
    files: dict[str, str], name: str, severity: str, says: str, tmp_path: Path
) -> None:
    finding = one(found(tmp_path, files), name)
    assert finding.severity == severity
    assert says in finding.text


def test_numa_balancing_does_not_matter_with_one_node(tmp_path: Path) -> None:
    findings = found(tmp_path, {"proc/sys/kernel/numa_balancing": "1"}, H200)
    assert "numa-balancing" not in names(findings)


def test_a_machine_without_governors_says_so(tmp_path: Path) -> None:
    (finding,) = [
        f for f in diagnose(Situation(NO_GPU, system_of(tmp_path, {}))) if f.id == "governor"
    ]
    assert finding.severity == "info"


def test_threads_that_share_a_core_are_reported(tmp_path: Path) -> None:
    package = msgspec.structs.replace(NO_GPU.packages[0], cpus=16)
    smt = msgspec.structs.replace(NO_GPU, packages=(package,))
    assert "2 logical CPUs share each core" in one(found(tmp_path, {}, smt), "smt").text


def test_threads_of_cores_of_several_kinds_are_not_reported(tmp_path: Path) -> None:
    package = msgspec.structs.replace(NO_GPU.packages[0], cores=14, cpus=20)
    hybrid = msgspec.structs.replace(NO_GPU, packages=(package,))
    assert "smt" not in names(found(tmp_path, {}, hybrid))


def test_a_hot_narrow_and_busy_node_of_gpus(tmp_path: Path) -> None:
    findings = found(tmp_path, {}, A100, backend="cuda", runtime_version="12.4")
    assert "gpu:0 has 8 of 16" in one(findings, "link-width").text
    assert one(findings, "throttling").severity == "warning"
    assert "thermal slowdown" in one(findings, "throttling").text
    assert "4711 python" in one(findings, "gpu-in-use").evidence[0]
    assert one(findings, "ecc").severity == "info"
    assert len([f for f in findings if f.id == "persistence"]) == 4
    assert "driver" not in names(findings)


def test_clocks_that_somebody_set_are_no_warning(tmp_path: Path) -> None:
    gpu = msgspec.structs.replace(H200.gpus[0], throttle=("clocks set by an administrator",))
    findings = found(tmp_path, {}, msgspec.structs.replace(H200, gpus=(gpu,)))
    assert one(findings, "throttling").severity == "info"


def test_a_driver_of_an_older_major_version_is_an_error(tmp_path: Path) -> None:
    finding = one(found(tmp_path, {}, A100, runtime_version="13.0"), "driver")
    assert finding.severity == "error"
    assert "up to 12.2" in finding.text and "newer driver" in finding.remedy
    assert diagnose(Situation(A100, system_of(tmp_path, {}), "cuda", "13.0"))[0] == finding


@pytest.mark.parametrize(
    ("built", "compute", "has"),
    [
        ("60-real 70-real 90-real 90-virtual", "6.1", True),
        ("60-real 70-real 90-real 90-virtual", "8.0", False),
        ("60-real 70-real 90-real 90-virtual", "12.0", True),
        ("86-real", "8.0", False),
        ("75-virtual", "3.7", False),
        ("75-virtual", "", True),
    ],
)
def test_code_for_a_gpu_is_of_its_major_version_or_older_ptx(
    built: str, compute: str, has: bool
) -> None:
    assert has_code(built, compute) == has


def test_a_gpu_without_machine_code_is_an_error(tmp_path: Path) -> None:
    old = msgspec.structs.replace(H200.gpus[0], compute="3.7")
    several = msgspec.structs.replace(H200, gpus=(old, *H200.gpus[1:]))
    built = "75-real 90-real 90-virtual"
    finding = one(found(tmp_path, {}, several, architectures=built), "machine-code")
    assert finding.severity == "error"
    assert finding.text.endswith("for gpu:0 (compute capability 3.7)")
    assert built in finding.evidence[0] and "make WAYWISER_CUDA=ON build" in finding.remedy
    assert "machine-code" not in names(found(tmp_path, {}, H200, architectures=built))


def test_gpus_that_the_build_cannot_use_are_an_error(tmp_path: Path) -> None:
    assert one(found(tmp_path, {}, H200, backend="none"), "no-cuda").severity == "error"
    alone = msgspec.structs.replace(H200, gpus=H200.gpus[:1])
    finding = one(found(tmp_path, {}, alone, backend="none"), "no-cuda")
    assert finding.text.startswith("1 GPU found, ")
    assert "make WAYWISER_CUDA=ON survey" in finding.remedy


def test_no_gpu_is_an_info_and_a_gpu_without_driver_a_warning(tmp_path: Path) -> None:
    assert one(found(tmp_path, {}), "no-gpu").severity == "info"
    device = "sys/bus/pci/devices/0000:1b:00.0"
    there = {f"{device}/vendor": "0x10de", f"{device}/class": "0x030200"}
    assert one(found(tmp_path, there), "no-gpu").severity == "warning"


def test_a_hypervisor_that_hides_the_topology_is_a_warning(tmp_path: Path) -> None:
    assert one(found(tmp_path, {}, H200), "hidden-topology").severity == "warning"
    plain = msgspec.structs.replace(NO_GPU, virtual="QEMU/KVM")
    assert one(found(tmp_path, {}, plain), "virtualisation").severity == "info"


def test_a_mig_instance_is_a_warning(tmp_path: Path) -> None:
    assert "3g.71gb" in one(found(tmp_path, {}, machine("mig")), "mig").text


def test_what_the_topology_skipped_is_reported(tmp_path: Path) -> None:
    finding = one(found(tmp_path, {}), "topology")
    assert "numa:2 is skipped" in finding.text
    assert finding.evidence[0] == "the capture of this machine"
    assert one(stored(NO_GPU), "topology").evidence[0] == "the machine in the profile"


def test_an_idle_link_is_an_info_and_one_that_stays_low_under_load_a_warning() -> None:
    idle = [f for f in links(Situation(A100)) if f.id == "link-generation"]
    assert [f.severity for f in idle] == ["info"] * 4
    loaded = tuple(GpuState(i, pcie_generation=3 if i == 2 else 4, pcie_width=16) for i in range(4))
    (slow,) = links(Situation(A100, link_states=loaded))
    assert (slow.severity, slow.id) == ("warning", "link-generation")
    assert "gpu:2" in slow.text and "3 of 4" in slow.text


def test_the_best_reading_under_load_counts() -> None:
    states = tuple(GpuState(i, pcie_generation=g, pcie_width=16) for i in range(4) for g in (1, 4))
    assert list(links(Situation(A100, link_states=states))) == []


def test_the_severest_come_first_and_the_asked_severity_filters(tmp_path: Path) -> None:
    findings = diagnose(Situation(A100, system_of(tmp_path, {}), "cuda", "13.0"))
    ranks = [SEVERITY_ORDER.index(finding.severity) for finding in findings]
    assert ranks == sorted(ranks, reverse=True)
    assert {f.severity for f in at_least(findings, "warning")} == {"warning", "error"}
    assert len(at_least(findings, "info")) == len(findings)


def test_every_check_says_what_it_looks_at() -> None:
    assert all(check.__doc__ for check in CHECKS)


def stored(on: Machine, **more: Any) -> list[Finding]:
    """Findings of what a profile stored."""
    return list(diagnose(Situation(on, **more)))


@pytest.fixture
def real_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_load, "BUSY_FRACTION", LIMIT)


@pytest.mark.usefixtures("real_limit")
@pytest.mark.parametrize(
    ("load", "severity", "says"),
    [
        (CpuLoad(1.0, 64, others=7.5, source="/proc/stat"), "warning", "7.5 of 64 CPUs now"),
        (CpuLoad(1.0, 64, others=6.3, source="/proc/stat"), None, ""),
        (CpuLoad(1.0, 8, waiting=0.3, source="cpu.pressure"), "warning", "30% of the time now"),
        (CpuLoad(1.0, 8, source="no file says"), "info", "not known"),
    ],
)
def test_the_load_is_that_of_other_programs(
    load: CpuLoad, severity: str | None, says: str, tmp_path: Path
) -> None:
    findings = [each for each in found(tmp_path, {}, load_now=load) if each.id == "load"]
    assert [each.severity for each in findings] == ([severity] if severity else [])
    assert all(says in each.text and load.source in each.evidence[0] for each in findings)


@pytest.mark.usefixtures("real_limit")
def test_a_profile_shows_the_state_of_the_host_when_it_was_made() -> None:
    environment = {
        "kernel": "6.1",
        "governor": ["powersave"],
        "cpu_load": {"seconds": 90.0, "cpus": 4, "others": 1.5, "source": "/proc/stat"},
        "numa_balancing": 1,
        "transparent_huge_pages": "always",
        "swap_used_bytes": 2 << 30,
        "memory_total_bytes": 8 << 30,
        "memlock_bytes": 65536,
        "cgroup_cpus": 2.5,
        "cgroup_memory_bytes": 1 << 30,
        "turbo": "on",
    }
    found = names(stored(NO_GPU, stored=environment))
    assert found >= {
        *("governor", "load", "numa-balancing", "huge-pages", "swap", "memlock"),
        *("cpu-quota", "cgroup-memory", "turbo"),
    }


@pytest.mark.parametrize("value", ["many", {"a": 1}, [None, "x"], float("nan"), True])
def test_an_environment_of_another_form_is_unknown(value: object) -> None:
    keys = (
        "governor",
        "cpu_load",
        "swap_used_bytes",
        "memory_total_bytes",
        "memlock_bytes",
        "turbo",
    )
    assert stored(NO_GPU, stored=dict.fromkeys(keys, value))


def test_what_another_tool_did_not_store_is_not_checked() -> None:
    bare = msgspec.structs.replace(NO_GPU, gpus=(Gpu(0, "", "A GPU", ""),))
    situation = Situation(bare)
    assert "governor" not in names(list(diagnose(situation)))
    assert unchecked(situation) == (
        "driver and CUDA runtime of this installation",
        "CPUs outside the cpuset",
        "CPU frequency",
        "memory settings",
        "limits of cgroups",
        "load by other programs",
        "links, clocks and modes of GPUs",
        "confidential computing, IOMMU mode, ACS and GPUDirect Storage",
        "error counters of GPUs",
    )
    load = {"seconds": 9.0, "cpus": 4, "others": 0.0, "source": "/proc/stat"}
    environment = {"kernel": "6.1", "gpu_confidential": "unknown", "cpu_load": load}
    read = Situation(A100, stored=environment, health=HealthReport(gpus=4))
    assert unchecked(read) == unchecked(situation)[:2]


def test_nothing_is_left_unchecked_on_the_machine_itself(tmp_path: Path) -> None:
    assert unchecked(Situation(A100, system_of(tmp_path, {}))) == ()


def test_readings_of_a_survey_show_links_and_clocks_under_load() -> None:
    cap = ("power limit",)
    states = tuple(GpuState(1, throttle=cap if n < 2 else ()) for n in range(8))
    link_states = (GpuState(1, pcie_generation=3, pcie_width=16),)
    gpus = tuple(msgspec.structs.replace(gpu, throttle=()) for gpu in A100.gpus)
    found = stored(
        msgspec.structs.replace(A100, gpus=gpus), gpu_states=states, link_states=link_states
    )  # fmt: skip
    assert one(found, "throttling").evidence[0].endswith("2 of 8 readings while bytes moved")
    slow = [f for f in found if f.id == "link-generation" and f.severity == "warning"]
    assert ["gpu:1" in finding.text for finding in slow] == [True]


def test_clocks_under_load_count_before_those_of_the_capture() -> None:
    (throttled,) = [gpu for gpu in A100.gpus if gpu.throttle]
    states = (GpuState(throttled.index),) * 5
    assert "throttling" in names(stored(A100))
    assert "throttling" not in names(stored(A100, gpu_states=states))


@pytest.mark.parametrize(
    ("counter", "severity"), [("ECC corrected", "warning"), ("ECC uncorrected", "error")]
)
def test_error_counters_that_rose_are_a_finding(counter: str, severity: str) -> None:
    health = HealthReport(gpus=4, rises=(Rise(1, 2, counter, 0, 3),))
    finding = one(stored(A100, health=health), "health")
    assert (finding.severity, finding.text) == (
        severity,
        f"error counters of GPUs: gpu:2 {counter} +3",
    )
    assert "health" not in names(stored(A100, health=HealthReport(gpus=4)))


def test_counters_that_are_not_zero_are_reported() -> None:
    counted = {
        "ECC uncorrected ever": 2,
        "NVLinks down": 1,
        "PCIe replays": 9,
        "ECC uncorrected": 0,
    }
    finding = one(stored(A100, counters=(GpuHealth(3, "", counted),)), "error-counters")
    assert finding.severity == "info"
    assert finding.text.endswith("perhaps long ago: ECC uncorrected ever 2, NVLinks down 1")


def test_gpus_without_a_numa_node_are_a_warning_on_machines_with_several() -> None:
    gpus = tuple(msgspec.structs.replace(gpu, numa=-1) for gpu in A100.gpus)
    lost = msgspec.structs.replace(A100, gpus=(*A100.gpus[:1], *gpus[1:]))
    finding = one(stored(lost), "gpu-numa")
    assert finding.severity == "warning"
    assert finding.text.endswith("nearest to gpu:1, gpu:2, gpu:3")
    assert "gpu-numa" not in names(stored(A100))
    assert "gpu-numa" not in names(stored(msgspec.structs.replace(lost, numa=lost.numa[:1])))
