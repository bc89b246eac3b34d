"""What TransferBench prints below the summary of a preset is of no test."""

from __future__ import annotations

import pytest

from waywiser.exchange.imports.transferbench import read

FOOTER = (
    "Average   bandwidth (GPU Timed):   40.000 GB/s\n"
    "Aggregate bandwidth (GPU Timed):   80.000 GB/s\n"
    "Aggregate bandwidth (CPU Timed):   70.000 GB/s\n"
)
SUMMARY = (
    "Summary: [1048576 bytes per Transfer] [GFX:8] [1 Read(s) 1 Write(s)]\n"
    "SRC\\DST  GPU 00     GPU 01        STotal      Actual\n"
    "GPU 00      N/A     40.000        40.000      40.000\n"
    "GPU 01   40.000        N/A        40.000      40.000\n\n"
    "RTotal   40.000     40.000        80.000      40.000      40.000\n\n"
)
TEST = (
    "Test 1:\n"
    " Executor: GPU 00 |   40.000 GB/s |    0.026 ms |      1048576 bytes | 40.000 GB/s (sum)\n"
    "     Transfer 00  |   40.000 GB/s |    0.026 ms |      1048576 bytes | G0 -> G000:008 -> G1\n"
    " Aggregate (CPU)  |   35.000 GB/s |    0.030 ms |      1048576 bytes | Overhead: 0.004 ms\n\n"
)
VERSION = "TransferBench v1.62.00\n"


@pytest.mark.parametrize(
    ("text", "workloads"),
    [
        (VERSION + TEST + FOOTER, 1),
        (VERSION + SUMMARY + FOOTER, 1),
        (SUMMARY + FOOTER, 1),
        (VERSION + SUMMARY + FOOTER + VERSION + TEST + FOOTER, 2),
        (VERSION + TEST.replace("Test 1:\n", "") + FOOTER.replace("Timed):", "Timed),"), 1),
    ],
)
def test_the_footer_is_of_no_test(text: str, workloads: int) -> None:
    found = read(text, "x")
    assert len({str(each.workload) for each in found.measured}) == workloads
    assert not found.unsupported_paths
