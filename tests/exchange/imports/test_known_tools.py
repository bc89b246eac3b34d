"""Output of tools that is not read is named with what to do; a text that mentions a tool is not."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from kept import RESULTS
from waywiser.curves.select import matches_any, texts_of
from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import UnknownFormat
from waywiser.exchange.imports.known_tools import KNOWN, SEARCHED, known_tool
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame

OUTPUT: tuple[tuple[str, str], ...] = (
    (
        "bandwidthTest",
        """[CUDA Bandwidth Test] - Starting...
Running on...
 Device 0: NVIDIA A10
""",
    ),
    (
        "bandwidthTest",
        "bandwidthTest-H2D-Pinned, Bandwidth = 24.1 GB/s, Time = 0.00133 s, Size = 32000000 bytes, "
        "NumDevsUsed = 1\n",
    ),
    ("p2pBandwidthLatencyTest", "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nDevice: 0, T4\n"),
    (
        "p2pBandwidthLatencyTest",
        """Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)
   D\\D     0      1
     0 612.11  11.02
""",
    ),
    ("simpleP2P", "cudaMemcpyPeer / cudaMemcpy between GPU0 and GPU1: 44.81GB/s\n"),
    ("nvloom", "nvloom_cli 1.2.0\ngit commit: v1.2.0\nbufferSize: 512 MiB\n"),
    (
        "rocm_bandwidth_test",
        """....................
          RocmBandwidthTest Version: 2.6.0

          Launch Command is: rocm-bandwidth-test -a
""",
    ),
    (
        "rocm_bandwidth_test",
        """          Unidirectional copy peak bandwidth GB/s

          D/D       0           1

          0         N/A         27.115
""",
    ),
    (
        "rccl-tests",
        '[\n{"numCycle":0, "name":"AllReduce", "gpus":4, "size":1024, "time":21.5}\n]\n',
    ),
    (
        "nccl-tests",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
        "        8192          2048     float     sum      -1    20.11    0.41    0.71      0\n",
    ),
    (
        "nccl-tests",
        "     4194304       1048576      half    none      -1   181.2   23.15   20.25    N/A\n",
    ),
    (
        "perftest (ib_write_bw and others)",
        """---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_0
""",
    ),
    (
        "perftest (ib_write_bw and others)",
        """                    Send Latency Test
""",
    ),
    (
        "perftest (ib_write_bw and others)",
        """ #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      5000             23041.12            23040.88             0.368654
""",
    ),
    (
        "perftest (ib_write_bw and others)",
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n",
    ),
    ("qperf", "tcp_bw:\n    bw  =  2.91 GB/sec\ntcp_lat:\n    latency  =  11.2 us\n"),
    (
        "the Intel MPI Benchmarks",
        "#------------------------------------------------------------\n"
        "#    Intel(R) MPI Benchmarks 2021.3, MPI-1 part\n",
    ),
    ("the Intel MPI Benchmarks", "#    Intel (R) MPI Benchmarks 4.0 Update 2, MPI-1 part\n"),
    (
        "the Intel MPI Benchmarks",
        "       #bytes #repetitions      t[usec]   Mbytes/sec\n            0    1000    1.02\n",
    ),
    (
        "mpiBench",
        """START mpiBench v1.5
0 : node3
Bcast                   Bytes:      1024        Iters:      500 Avg:      3.9
""",
    ),
    ("NetPIPE", "  0:       1 bytes   2210 times -->      2.41 Mbps in       3.16 usec\n"),
    ("b_eff", "b_eff =  1204.112 MByte/s\n"),
    (
        "the HPC Challenge benchmark",
        "This is the DARPA/DOE HPC Challenge Benchmark version 1.5.0\n",
    ),
    (
        "ucx_perftest",
        """+--------------+--------------+------------------------------+
|    Stage     | # iterations | 50.0%ile | average | overall |
Final:                  1000      0.000     2.113     2.113     3.61    3.61   473112      473112
""",
    ),
    (
        "ucx_perftest",
        """| API:          protocol layer                         |
| Test:         tag match bandwidth                    |
""",
    ),
    (
        "ucc_perftest",
        "       Count        Size                Time, us               Bandwidth, GB/s\n",
    ),
    (
        "the NVSHMEM performance tests",
        "&&&& PERF shmem_put_bw___size__4096___bw  2.113201 +GB/sec\n",
    ),
    (
        "nixlbench",
        """Block Size (B)      Batch Size     B/W (GB/Sec)   Avg Lat. (us)  P99 Tx (us)
4096                1              0.412         9.9            51.0
""",
    ),
    (
        "gdrcopy's tests",
        "writing test, size=65536 offset=0 num_iters=10000\nwrite BW: 8012.4MB/s\n",
    ),
    ("gdrcopy's tests", "gdr_copy_to_mapping num iters for each size: 10000\n"),
    (
        "gdsio",
        "IoType: WRITE XferType: CPU_GPU Threads: 4 DataSetSize: 2097152/2097152(KiB) "
        "IOSize: 512(KiB) Throughput: 2.2 GiB/sec, Avg_Latency: 880.0 usecs\n",
    ),
    ("SHOC", "test\tatts\tunits\tmedian\tmean\tstddev\tmin\tmax\ttrial0\n"),
    ("mixbench", "Experiment ID, Single Precision ops,,,,Packed Single Precision ops,,,,\n"),
    ("gpu-burn", "Burning for 60 seconds.\n10.0%  proc'd: 1201 (9011 Gflop/s)   errors: 0\n"),
    ("fio", "scan: (g=0): rw=read, bs=(R) 1024KiB-1024KiB, ioengine=libaio, iodepth=8\nfio-3.33\n"),
    ("fio", "  write: IOPS=811, BW=811MiB/s (850MB/s)(23.8GiB/30001msec)\n"),
    ("fio", "Run status group 0 (all jobs):\n   READ: bw=811MiB/s (850MB/s)\n"),
    (
        "dd",
        "8192+0 records in\n8192+0 records out\n8589934592 bytes (8.6 GB, 8.0 GiB) copied, 4.2 s\n",
    ),
    ("hdparm", "\n/dev/nvme1n1:\n Timing buffered disk reads: 5120 MB in  3.00 seconds\n"),
    ("IOR", "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\n"),
    ("elbencho", "OPERATION   RESULT TYPE         FIRST DONE   LAST DONE\n=========   ====\n"),
    (
        "iperf",
        "[ ID] Interval           Transfer     Bitrate         Retr\n[  5]   0.00-10.00  sec\n",
    ),
    ("iperf", '{\n\t"start":\t{\n\t\t"connected":\t[],\n\t\t"version":\t"iperf 3.12"\n\t}\n}\n'),
    ("netperf", "MIGRATED TCP STREAM TEST from 0.0.0.0 () port 0 AF_INET to 10.1.1.2 ()\n"),
    ("BabelStream", "BabelStream\nVersion: 5.0\nImplementation: HIP\n"),
    ("BabelStream", "Function    MBytes/sec  Min (sec)   Max         Average\n"),
    ("STREAM", "-----\nSTREAM version $Revision: 5.10 $\n-----\n"),
    ("STREAM", "Function    Best Rate MB/s  Avg time     Min time     Max time\nCopy:  211011.1\n"),
    ("likwid-bench", "Allocate: Process running on hwthread 0 (Domain S0) - Vector length 100\n"),
    ("likwid-bench", "Test: triad\nMByte/s:\t\t98112.44\n"),
    ("the Intel Memory Latency Checker", "Intel(R) Memory Latency Checker - v3.11a\n"),
    ("lmbench", '"stride=128\n0.00049 1.21\n'),
    ("sysbench", "sysbench 1.0.20 (using system LuaJIT 2.1.0-beta3)\n"),
    ("mbw", "AVG\tMethod: MEMCPY\tElapsed: 0.021\tMiB: 256.0\tCopy: 11902.1 MiB/s\n"),
    ("DCGM's diagnostics", '{\n\t"DCGM Diagnostic" : \n\t{\n\t\t"test_categories" : []\n\t}\n}\n'),
    (
        "nvidia-smi topo",
        "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\tPIX\t0-31\t0\n",
    ),
    ("nvidia-smi", "| NVIDIA-SMI 535.54.03    Driver Version: 535.54.03    CUDA Version: 12.2 |\n"),
    ("deviceQuery", " CUDA Device Query (Runtime API) version (CUDART static linking)\n"),
    ("lstopo", "Machine (504GB total)\n  Package L#0\n    NUMANode L#0 (P#0 252GB)\n"),
    ("lstopo", '<?xml version="1.0"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n<topology/>\n'),
)


@pytest.mark.parametrize(("name", "text"), OUTPUT, ids=[name for name, _ in OUTPUT])
def test_a_tool_is_named_with_what_to_do(name: str, text: str, tmp_path: Path) -> None:
    tool = known_tool(text)
    assert tool is not None and tool.name == name
    file = tmp_path / "result.txt"
    file.write_text(text)
    with pytest.raises(UnknownFormat) as raised:
        detect.read(file)
    said = str(raised.value)
    assert tool.said in said and tool.remedy in said
    assert "\n" not in said and "known: " not in said
    assert known_tool(f"$ ./run.sh\nhost node7\n\n{text}\ndone\n") == tool


def test_each_known_tool_has_an_example() -> None:
    shown = {name for name, _ in OUTPUT}
    rare = {"nvbandwidth", "clpeak", "iozone", "sockperf", "RAMspeed", "rocm-smi"}
    assert {tool.name for tool in KNOWN} == shown | rare


def test_sums_of_nvbandwidth_ask_for_its_whole_output(tmp_path: Path) -> None:
    file = tmp_path / "sums.txt"
    file.write_text("SUM device_to_host_memcpy_sm 411.02\nSUM all_to_one_read_ce 99.9\n")
    with pytest.raises(UnknownFormat, match="has sums of nvbandwidth over GPUs") as raised:
        detect.read(file)
    assert "import the whole output" in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "# Our network\n\nWe ran ib_write_bw of perftest and iperf3; STREAM comes later.\n",
        "Please run fio with --output-format=json, then dd and hdparm on each disk.\n",
        "sysbench 1.0 is installed; nvidia-smi shows eight GPUs; likwid-bench does not build.\n",
        "The RDMA_Write BW Test needs two hosts.\n",
        "nvloom_cli --help\nBabelStream is at https://example.org\n",
        "date,node,bandwidth\n2026-11-02,node3,54.1\n",
    ],
)
def test_a_text_that_mentions_tools_is_none_of_their_output(text: str, tmp_path: Path) -> None:
    assert known_tool(text) is None
    file = tmp_path / "notes.md"
    file.write_text(text)
    with pytest.raises(UnknownFormat, match="has no format that can be imported"):
        detect.read(file)


@pytest.mark.parametrize(
    "text",
    [
        "# OSU results of our cluster\n\nRun osu_latency on two nodes.\n",
        "Notes\n\n# OSU\n# OSU Micro-Benchmarks are installed\n",
    ],
)
def test_a_heading_that_names_a_tool_is_no_damaged_title(text: str, tmp_path: Path) -> None:
    file = tmp_path / "readme.md"
    file.write_text(text)
    with pytest.raises(UnknownFormat) as raised:
        detect.read(file)
    assert "title" not in str(raised.value)
    assert "no" in str(raised.value)


@pytest.mark.parametrize(
    "piece", ["\n", " ", "\t", "a", "1", "1 ", "RDMA ", "x;", "|", "# ", "1\n"]
)
def test_a_long_text_of_one_piece_is_searched_to_its_end(piece: str) -> None:
    """A pattern whose steps grow with the square of the length would take hours."""
    assert known_tool(piece * (SEARCHED // len(piece))) is None


def test_the_surveys_that_remedies_name_measure_something() -> None:
    """What follows --only is known to the kept survey of a machine."""
    words = {shlex.split(tool.remedy.partition("--only ")[2])[0] for tool in KNOWN
             if "--only " in tool.remedy}  # fmt: skip
    assert words == {"h2h", "by direct-io", "file"}
    with Profile.open(RESULTS / "2026-11-20-h200-catalogue/four-gpus/standard.wwp.xz") as profile:
        texts = {
            word: [each for each in SeriesFrame.read(profile).workloads
                   if matches_any(texts_of(each, profile.machine), [word])]
            for word in words
        }  # fmt: skip
    assert all(texts.values())
