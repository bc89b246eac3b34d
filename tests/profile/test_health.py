from __future__ import annotations

from waywiser.profile import RunHealth
from waywiser.profile.health import Rise, health_report
from waywiser.words.records import GpuHealth, Health


def health(*gpus: GpuHealth) -> Health:
    return Health("2026-11-20T00:00:00+00:00", gpus)


def gpu(index: int = 0, xids: tuple[int, ...] = (), **counters: int) -> GpuHealth:
    return GpuHealth(index, f"GPU-{index}", {k.replace("_", " "): v for k, v in counters.items()},
                     xids=xids)  # fmt: skip


def test_nothing_read_is_no_report() -> None:
    assert health_report([]) is None


def test_nothing_rose() -> None:
    both = health(gpu(0, replays=3), gpu(1, replays=0))
    report = health_report([RunHealth(1, both, both)])
    assert report is not None and not report.is_problem
    assert str(report) == "health: no error counter of 2 GPUs rose"


def test_what_rose_is_reported_per_gpu_and_run() -> None:
    runs = [
        RunHealth(1, health(gpu(0, ECC_corrected=5)), health(gpu(0, ECC_corrected=7))),
        RunHealth(2, health(gpu(0, ECC_corrected=9)), health(gpu(0, ECC_corrected=10))),
    ]
    report = health_report(runs)
    assert report is not None and report.is_problem
    assert report.rises == (Rise(1, 0, "ECC corrected", 5, 7), Rise(2, 0, "ECC corrected", 9, 10))
    assert "gpu:0 ECC corrected +2, gpu:0 ECC corrected +1" in str(report)


def test_a_counter_that_somebody_reset_did_not_rise() -> None:
    report = health_report([RunHealth(1, health(gpu(0, replays=9)), health(gpu(0, replays=0)))])
    assert report is not None and not report.rises


def test_gpus_are_the_same_by_uuid() -> None:
    start = health(gpu(0, replays=0), gpu(1, replays=5))
    end = health(gpu(1, replays=5), gpu(0, replays=0))
    report = health_report([RunHealth(1, start, end)])
    assert report is not None and not report.rises and report.gpus == 2


def test_a_pending_remapping_is_problem_a_gpu_though_it_did_not_rise() -> None:
    both = health(gpu(3, row_remapping_pending=1, row_remapping_failed=0))
    report = health_report([RunHealth(1, both, both)])
    assert report is not None and report.standing == ("gpu:3 row remapping pending",)


def test_xid_messages_are_reported_with_their_number() -> None:
    report = health_report([RunHealth(1, health(gpu(2)), health(gpu(2, xids=(79, 79))))])
    assert report is not None and "gpu:2 XID 79" in str(report)
    assert str(report).count("XID") == 1


def test_what_could_not_be_read_is_grouped_by_reason_and_never_called_well() -> None:
    unsupported = {f"NVLink {link} replays": "Not Supported" for link in range(18)}
    unsupported["ECC corrected"] = "Not Supported"
    one = GpuHealth(0, "GPU-0", {"PCIe replays": 0}, unsupported)
    other = GpuHealth(1, "GPU-1", {"PCIe replays": 0}, {"ECC corrected": "Not Supported"})
    both = health(one, other)
    text = str(health_report([RunHealth(1, both, both)]))
    assert text == (
        "health: no error counter of 2 GPUs rose; "
        "unknown: NVLink replays of gpu:0, ECC corrected (Not Supported)"
    )


def test_a_killed_run_and_a_missing_driver_are_reported() -> None:
    text = str(health_report([RunHealth(1, health(gpu(0, replays=0)), None)]))
    assert text == "health: not read at the end of run 1"
    nothing = Health("", reason="no NVIDIA driver")
    text = str(health_report([RunHealth(1, nothing, nothing)]))
    assert text == "health: not read in run 1: no NVIDIA driver"
