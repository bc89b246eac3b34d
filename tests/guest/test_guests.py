"""Machines that are not here, emulated: where pages and threads are in them is real, times mean
nothing. Each machine is started once, two side by side, and tests look at what it found."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from guest_machines.image import ARM_TESTS, FETCHED, ImageError, image
from guest_machines.run import ScriptResult, run_script, unavailable
from guest_machines.table import GUESTS
from mpi_wheels import FOLDER as MPI_FOLDER
from mpi_wheels import mpicc_of
from tree import FAKE_FOLDER, ROOT
from waywiser.curves.classes import representatives
from waywiser.curves.kinds import nearness_of
from waywiser.machine.system_files import parse_list
from waywiser.measure.ranks.mpi_library import find_library
from waywiser.profile import Profile
from waywiser.words import Workload

pytestmark = [pytest.mark.guest, pytest.mark.slow]

PARTS = {
    "two-sockets": "places visits files balancing full_node gpu_near planted ranks planted_ranks"
    " copies advice verbs",
    "arm-16k": "native_tests python_tests places visits files balancing survey verbs",
    "four-nodes": "places visits files balancing advice verbs",
    "arm-4k": "native_tests verbs",
    "memory-only": "places verbs advice survey",
    "small-node": "survey said_of_survey verbs",
    "cpuset": "forbidden verbs",
}
"""What is done in each machine; those that take longest are first."""
ARM = ("arm-4k", "arm-16k")
SIZES = {"small-node": "1MiB,64MiB,128MiB"}
MEMORY_ALONE = {"memory-only": (2,)}
"""The nodes without CPUs; the kernel numbers those with CPUs first."""
ONLY = {"memory-only": "pageable@numa:2 by cpu"}
"""What a survey of host memory measures; elsewhere all of it."""
NATIVE_TESTS = (
    "Affinity.*:Both/FileIo.*:Child.*:Clock.*:CopyLists.*:CopyStreaming.*:CpuLists.*:DirectWrites.*:Dirty.*"
    ":FileCalls.*:FileIoUnsupportedReason.*:FileMemory.*:FilePattern.*:FindProgram.*:Flush.KeepsTheBytes:Hwloc.*"
    ":LineBytes.*:Lists.EndWithTheFirstBlocksIfALaterIndexIsWrong:Machine.*:MappedMemory.*:NodeMemory.*:OverlongCounts.*:PageCache.*:Pages.*:Parallel.*"
    ":PinnedMemoryOfPrograms.*:PolicyCopies.MemoryWithoutPages*:PolicyTable.*:ReadableFiles.*"
    ":RegisteredMemory.*:ScratchFiles.*:Snapshots.*:StalledDrains.*:Team.*"
)
"""Native tests for the machines of ARM: those of the host, of pages, files and policies. Many other
suites take 10 to 140 s there; two tests of the cache flush measure a cache, which an emulator has
not."""
PYTHON_TESTS = " ".join(
    (
        "tests/words",
        *(f"tests/curves/test_{name}.py" for name in ("kinds", "sizes", "figure_range")),
        "tests/stats/test_order.py",
        *(f"tests/transfer/test_{name}.py" for name in ("read_plan", "operands", "strided")),
        "--deselect=tests/stats/test_order.py::test_interval_covers_the_true_median_as_often_as_it_says",
        "--deselect=tests/stats/test_order.py::test_interval_does_not_depend_on_the_order",
        "--deselect=tests/stats/test_order.py::test_rank_is_the_greatest_whose_exact_confidence_is_enough",
        "--deselect=tests/words/test_host_list.py::test_any_text_is_hosts_or_one_clear_error",
        "--deselect=tests/words/test_titles.py",
    )
)
"""Tests of Python for a machine of ARM. Those that are deselected and of running variances take
170 of 250 s there; they and more are in test_python_on_arm.py."""
MPICC = MPI_FOLDER / "mpich" / "bin" / "mpicc"
SIDE_BY_SIDE = 2
SECONDS = 3600.0
"""A machine that takes longer has hung: alone each takes one to four minutes, and beside everything
else of a whole run on two CPUs many times as long."""

Facts = dict[str, Any]


class Guests:
    """What each machine found, when it has ended."""

    def __init__(self, ran: dict[str, Future[ScriptResult]]) -> None:
        self._ran = ran

    def outcome(self, name: str) -> ScriptResult:
        if name not in self._ran:
            pytest.skip(f"{name}: {unavailable(GUESTS[name].processor)}")
        faulthandler.cancel_dump_traceback_later()  # of pytest: the machine has a limit of its own
        outcome = self._ran[name].result()
        assert outcome.exit_code == 0, outcome.output
        return outcome

    def facts(self, name: str, part: str) -> Any:
        found = json.loads(self.outcome(name).files["facts.json"])[part]
        assert "failed" not in found, found["failed"]
        return found


@pytest.fixture(scope="module")
def guests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guests]:
    if why := unavailable():
        pytest.skip(why)
    if not list(FAKE_FOLDER.glob("waywiser_fake/_native.*.so")):
        pytest.skip(f"the native library over the fake GPU is not built in {FAKE_FOLDER}")
    folder = tmp_path_factory.mktemp("planted")

    def run(name: str) -> ScriptResult:
        guest = GUESTS[name]
        script = f"""
{exports()} SIZES={SIZES.get(name, "64KiB")} ONLY='{ONLY.get(name, "pageable by cpu")}'
export NATIVE={ARM_TESTS} NATIVE_TESTS='{NATIVE_TESTS}' PYTHON_TESTS='{PYTHON_TESTS}'
{ROOT}/.venv/bin/python {ROOT}/tests/guest/inside.py {PARTS[name]}
"""
        files = {"planted.so": planted[guest.processor], **bridge}
        return run_script(guest, disks[guest.processor], script, files=files, seconds=SECONDS)

    names = [name for name in PARTS if not unavailable(GUESTS[name].processor)]
    processors = {GUESTS[name].processor for name in names}
    planted = {each: faults(each, folder) for each in processors}
    bridge = compiled_bridge(folder) if MPICC.exists() else {}
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        try:
            disks = dict(zip(processors, pool.map(image, processors), strict=True))
        except ImageError as error:
            pytest.skip(str(error))
        yield Guests({name: pool.submit(run, name) for name in names})


def exports() -> str:
    """The environment of what runs in a machine: two fake GPUs, and MPI."""
    return (
        f"export PYTHONPATH={ROOT}/python:{FAKE_FOLDER} WAYWISER_FAKE=devices=2"
        " WAYWISER_NATIVE=waywiser_fake._native WAYWISER_TRANSFER_NATIVE=waywiser_fake._transfer"
        f" MPICC={MPICC} MPIR_CVAR_ENABLE_HEAVY_YIELD=1 XDG_CACHE_HOME=/task/cache"
    )


def compiled_bridge(folder: Path) -> dict[str, bytes]:
    """The bridge to MPI as files of the cache that machines have: there is no compiler in them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        made = Path(find_library(str(MPICC)).bridge)
    return {f"{file.relative_to(folder)}": file.read_bytes() for file in made.parent.iterdir()}


def faults(processor: str, folder: Path) -> bytes:
    """The calls of the system with a fault, for a processor."""
    made = folder / f"{processor}.so"
    environment = dict(os.environ)
    command = ["cc"]
    if processor == "aarch64":
        compiler = FETCHED / "arm-compiler"
        environment["LD_LIBRARY_PATH"] = str(compiler / "usr" / "lib" / "x86_64-linux-gnu")
        gcc = compiler / "usr" / "bin" / "aarch64-linux-gnu-gcc-12"
        command = [str(gcc), f"--sysroot={compiler}"]
    source = Path(__file__).with_name("planted.c")
    command += ["-shared", "-fPIC", "-O1", "-o", str(made), str(source), "-ldl"]
    subprocess.run(command, check=True, env=environment)
    return made.read_bytes()


def misplaced(places: list[Facts]) -> list[str]:
    """Memories of which not all pages are on their node, by the counts of the kernel or by its
    answers for each page."""
    there = [(each, {str(each["node"]): each["mib"]}) for each in places]
    return [each["memory"] for each, all_of_it in there
            if each["grown"] != all_of_it or each["located"] != all_of_it]  # fmt: skip


def misstated(files: list[Facts]) -> list[int]:
    """The nodes whose CPUs were the first to read a file, if the file's 2 MiB in the page cache are
    on others, or are stated to be."""
    found = []
    for each in files:
        stated = re.findall(r"(\d+) of (\d+) pages on node (\d+)", each["stated"])
        by_node = {node: 2.0 * int(part) / int(whole) for part, whole, node in stated}
        if not by_node == each["located"] == {str(each["node"]): 2.0}:
            found.append(each["node"])
    return found


def elsewhere(visits: list[Facts], cpus: dict[int, tuple[int, ...]]) -> list[str]:
    """Transfers with a thread that was bound to CPUs of another node than that it runs on."""
    every = {cpu for of_node in cpus.values() for cpu in of_node}
    return [
        visit["transfer"]
        for visit in visits
        if not (bound := bound_threads(visit["threads"], every))
        or any(not each <= set(cpus[visit["runs_on"]]) for each in bound)
    ]


def bound_threads(threads: list[str], every: set[int]) -> list[set[int]]:
    """The CPUs of the threads that are bound to less than the process: others do not copy."""
    return [own for each in threads if (own := set(parse_list(each))) < every]


def astray(found: Facts, cpus: dict[int, tuple[int, ...]]) -> tuple[list[int], list[int]]:
    """The ranks of which a thread was bound to CPUs of another node, or none to exactly the rank's
    own; and those with bound memory on another node, by the counts of the kernel or by its answers
    for each page. Threads that fill memory have all CPUs of the node."""
    every = {cpu for of_node in cpus.values() for cpu in of_node}
    threads, memory = [], []
    for rank, (placed, seen) in enumerate(zip(found["placed"], found["seen"], strict=True)):
        bound = [bound_threads(each, every) for each in seen["threads"]]
        beside = [own for look in bound for own in look if not own <= set(cpus[placed["node"]])]
        if beside or not any(set(placed["cpus"]) in look for look in bound):
            threads.append(rank)
        looks = [look for look in (*seen["bound"], *seen["located"]) if look]
        if any(set(look) != {str(placed["node"])} for look in looks):
            memory.append(rank)
    return threads, memory


def topology_of(guests: Guests, name: str) -> Facts:
    found: Facts = json.loads(guests.facts(name, "verbs")["topology"]["out"])["machine"]
    return found


def cpus_of(guests: Guests, name: str) -> dict[int, tuple[int, ...]]:
    topology = topology_of(guests, name)
    return {node["index"]: tuple(node["cpus"]) for node in topology["numa"]}


@pytest.mark.parametrize("name", ["two-sockets", "four-nodes", "memory-only", "arm-16k"])
def test_every_kind_of_memory_is_where_its_place_says(guests: Guests, name: str) -> None:
    places = guests.facts(name, "places")
    nodes = {each["node"] for each in places}
    assert nodes == {*cpus_of(guests, name), *MEMORY_ALONE.get(name, ())}
    for node in nodes:
        kinds = {each["memory"].partition("@")[0] for each in places if each["node"] == node}
        assert {"pageable", "pinned", "pageable[pages=huge]", "pinned[pages=huge]"} <= kinds
    assert not [each for each in places if "error" in each]
    assert misplaced(places) == []
    assert [each["memory"] for each in places if each["wants_huge"] != (each["huge"] > 0)] == []


@pytest.mark.parametrize("name", ["two-sockets", "four-nodes", "arm-16k"])
def test_buffers_and_threads_of_a_visit_are_where_its_settings_say(
    guests: Guests, name: str
) -> None:
    """Before a visit and after it; the kernel tries to move pages to the CPUs that use them."""
    assert guests.facts(name, "balancing") == "1"
    visits = guests.facts(name, "visits")
    assert {visit["runs_on"] for visit in visits} >= {0, max(cpus_of(guests, name))}
    for visit in visits:
        assert {buffer["state"] for buffer in visit["buffers"]} == {"verified"}, visit
        assert set(visit["grown"]) == set(map(str, visit["nodes"])), visit
        before, after = visit["located"]
        assert before == after == visit["grown"], visit
        assert {buffer["fraction_huge"] for buffer in visit["buffers"]} == {
            float("pages=huge" in visit["transfer"])
        }
    # Large buffers are filled by threads at their own nodes, whichever side copies.
    small = [visit for visit in visits if "pages=huge" not in visit["transfer"]]
    assert elsewhere(small, cpus_of(guests, name)) == []


@pytest.mark.parametrize("name", ["two-sockets", "four-nodes", "arm-16k"])
def test_pages_of_a_file_are_stated_where_they_are(guests: Guests, name: str) -> None:
    files = guests.facts(name, "files")
    assert [each["node"] for each in files] == sorted(cpus_of(guests, name))
    assert misstated(files) == []


def test_a_wrong_answer_about_the_pages_of_a_file_is_found(guests: Guests) -> None:
    assert misstated(guests.facts("two-sockets", "planted")["wrong answer"]) == [0, 1]


def test_a_buffer_that_is_bound_to_another_node_is_found(guests: Guests) -> None:
    places = guests.facts("two-sockets", "planted")["wrong node"]
    assert set(misplaced(places)) == {e["memory"] for e in places if e["node"] == 1} != set()


def test_a_thread_on_another_socket_is_found(guests: Guests) -> None:
    visits = guests.facts("two-sockets", "planted")["wrong socket"]
    found = elsewhere(visits, cpus_of(guests, "two-sockets"))
    assert {visit["transfer"] for visit in visits if visit["runs_on"] == 1} == set(found)


def test_what_does_not_fit_on_a_full_node_fails_with_its_free_memory(guests: Guests) -> None:
    found = guests.facts("two-sockets", "full_node")
    assert found["error"].startswith(f"NodeFull: 64 MiB do not fit on numa:{found['node']}, where ")
    said = re.search(r"where (\d+) MiB are free", found["error"])
    # Other programs take and free some meanwhile.
    assert said is not None and int(said[1]) < min(64, found["free_before"])
    assert found["kills_after"] == found["kills_before"]


def test_pinned_memory_outlives_a_full_node(guests: Guests) -> None:
    """It is on another node meanwhile, and on its own afterwards."""
    found = guests.facts("two-sockets", "full_node")
    assert found["staged_full"]["equal"] and found["staged_after"]["equal"]
    node = str(found["node"])
    assert found["staged_full"]["grown"].get(node, 0) < 64.0
    assert found["staged_after"]["grown"] == {node: 64.0}


def test_a_copy_to_a_gpu_is_staged_near_it(guests: Guests) -> None:
    found = guests.facts("two-sockets", "gpu_near")
    assert [gpu["numa"] for gpu in found["machine"]["gpus"]] == [1, 0]
    assert found["equal"]
    for name, node in (("near", "1"), ("node 0", "0")):
        assert set(found[name]["grown"]) == {node}, found[name]
        bound = [each for each in found[name]["threads"] if each != "0-3"]
        assert set(bound) <= {"0-1", "2-3"}, "a copying thread runs on one socket"
    assert "2-3" not in found["node 0"]["threads"]


NODES_OF_RANKS = {"placements": [1, 0, 0, 1, 1, 1], "sockets": [0, 0, 1, 1]}
"""Near GPU 0 at node 1 and GPU 1 at node 0, far from them, and at ``numa:1``; two for each node."""


@pytest.mark.parametrize("name", sorted(NODES_OF_RANKS))
def test_threads_and_memory_of_ranks_are_where_their_settings_say(
    guests: Guests, name: str
) -> None:
    mpicc_of("mpich")
    found = guests.facts("two-sockets", "ranks")[name]
    assert [each["node"] for each in found["placed"]] == NODES_OF_RANKS[name]
    assert found["failures"] == [] and None not in found["seen"], found
    assert astray(found, cpus_of(guests, "two-sockets")) == ([], [])
    assert {each.split()[1] for each in found["buffers"]} == {"verified"}


def test_memory_that_ranks_of_two_sockets_share_is_on_both(guests: Guests) -> None:
    """MPICH places its pages at the rank that writes them first. A rank has its own pages and those
    of its partner; it has pages of the others only if it looked there when they started."""
    mpicc_of("mpich")
    found = guests.facts("two-sockets", "ranks")["placements"]["seen"]
    nodes = [{node for look in seen["shared"] for node in look} for seen in found]
    assert nodes[:4] == [{"0", "1"}] * 4
    assert all("1" in those for those in nodes[4:]), nodes


def test_a_rank_that_runs_and_has_its_memory_elsewhere_is_found(guests: Guests) -> None:
    """Its threads and its memory by this test, each by itself; the memory by what the visit states,
    too."""
    mpicc_of("mpich")
    found = guests.facts("two-sockets", "planted_ranks")
    threads, memory = astray(found, cpus_of(guests, "two-sockets"))
    assert threads == [1]
    assert memory == [1]
    assert {*found["buffers"]} == {"pageable@rank:0 verified", "pageable@rank:1 misplaced"}


def test_buffers_and_threads_of_copies_to_gpus_are_at_the_node_of_their_memory(
    guests: Guests,
) -> None:
    rows = guests.facts("two-sockets", "copies")
    every = {cpu for own in cpus_of(guests, "two-sockets").values() for cpu in own}
    assert len(rows) == 4
    for row in rows:
        node = Workload.parse(row["workload"]).places[0].index
        assert row["failure"] == "" and {state for _, state, _ in row["buffers"]} == {"verified"}
        assert row["nodes"] == [[0, str(node)]]
        bound = bound_threads([cpus for _, cpus in row["threads"]], every)
        assert bound == [set(cpus_of(guests, "two-sockets")[node])]


@pytest.mark.parametrize(
    ("name", "nodes"), [("two-sockets", (1, 0)), ("four-nodes", (3, 2))], ids=lambda each: str(each)
)
def test_a_launcher_binds_to_the_nodes_of_the_gpus(
    guests: Guests, name: str, nodes: tuple[int, ...]
) -> None:
    found = guests.facts(name, "advice")
    for gpu, node in enumerate(nodes):
        said = f"Put buffers and threads of gpu:{gpu} on numa:{node}: the system names it"
        assert said in found["advise"]["out"]
        assert f"Nearest to numa:{node}: gpu:{gpu}, as" in found["advise"]["out"]
    words = found["mpich"]["out"].split()
    assert words[:3] == ["-n", "2", "-bind-to"]
    bound = [set(map(int, each.split("+"))) for each in words[3].removeprefix("user:").split(",")]
    cpus = cpus_of(guests, name)
    assert all(own and own <= set(cpus[node]) for own, node in zip(bound, nodes, strict=True))


def test_copies_of_equal_distance_are_equal_and_others_are_not(
    guests: Guests, tmp_path: Path
) -> None:
    """The questions of affinity and of equal paths: GPU 0 is at node 3 of the ring, GPU 1 at 2."""
    with _profile(guests.outcome("four-nodes"), tmp_path, "advice.wwp") as profile:
        machine = profile.machine
    indexes = [node.index for node in machine.numa]
    texts = [f"pageable@numa:{one} -> pageable@numa:{other} by cpu"
             for one in indexes for other in indexes]  # fmt: skip
    texts += [f"pinned@numa:{one} -> device@gpu:{gpu.index} by copy-engine"
              for one in indexes for gpu in machine.gpus]  # fmt: skip
    paths = {text: Workload.parse(text) for text in texts}
    assert [gpu.numa for gpu in machine.gpus] == [3, 2]
    steps = {10: "itself", 16: "one step", 22: "two steps"}
    ring = {(a, b): (10, 16, 22, 16)[(a - b) % 4] for a in range(4) for b in range(4)}
    for text, workload in paths.items():
        nodes = [machine.gpus[place.index].numa if place.kind == "gpu" else place.index
                 for place in workload.places]  # fmt: skip
        near = nearness_of(workload.transfers[0].path, machine)
        assert near == ("local" if len({*nodes}) == 1 else "remote"), text
    classes = representatives(paths.values(), machine)
    by_class: dict[str, set[tuple[str, str]]] = {}
    for text, workload in paths.items():
        ends = [machine.gpus[place.index].numa if place.kind == "gpu" else place.index
                for place in workload.transfers[0].path.places]  # fmt: skip
        step = steps[ring[ends[0], ends[1]]]
        by_class.setdefault(classes[workload.curve], set()).add((text.rpartition(" ")[2], step))
    # CPU 7 is offline, so that node 3 has one CPU, and paths of its own.
    assert all(len(found) == 1 for found in by_class.values()), by_class
    steps_of = {next(iter(found))[1] for found in by_class.values()}
    assert steps_of == set(steps.values())


def test_a_gpu_near_a_node_without_cpus_is_near_none(guests: Guests) -> None:
    """GPU 0 is; no sockets are said to be hidden."""
    found = guests.facts("memory-only", "advice")
    assert "1 NUMA node, near gpu:1, and not where gpu:0 is." in found["advise"]["out"]
    notes = topology_of(guests, "memory-only")["notes"]
    assert not any("may hide sockets" in note for note in notes)


@pytest.mark.parametrize("name", ARM)
def test_native_tests_pass_on_arm(guests: Guests, name: str) -> None:
    found = guests.facts(name, "native_tests")["sound"]
    assert (found["code"], found["failed"]) == (0, []), found["failures"] or found["out"]
    assert {"Flush.KeepsTheBytes", "CopyStreaming.CopiesAnyBytesToAnywhere"} <= {*found["passed"]}


def test_a_page_size_that_is_not_the_kernels_is_found(guests: Guests) -> None:
    """4096 bytes, where a page has 16 KiB."""
    planted = {name: guests.facts(name, "native_tests")["page size"] for name in ARM}
    assert planted["arm-4k"]["failed"] == []
    assert "Pages.HaveTheSizeThatTheKernelUses" in planted["arm-16k"]["failed"]


def test_tests_of_python_pass_on_arm(guests: Guests) -> None:
    found = guests.facts("arm-16k", "python_tests")
    assert found["code"] == 0, found["out"]


def test_a_survey_ends_on_arm(guests: Guests, tmp_path: Path) -> None:
    assert guests.facts("arm-16k", "survey")["code"] == 0
    with _profile(guests.outcome("arm-16k"), tmp_path) as profile:
        assert profile.machine.architecture == "aarch64"
        assert [visit for visit in profile.visits() if visit.failure is None]


def test_a_survey_on_a_small_node_costs_no_process(guests: Guests, tmp_path: Path) -> None:
    found = guests.facts("small-node", "survey")
    assert found["kills"] == 0, found["err"]
    # On a busy host most of the visits that it has time for may need the small node.
    assert found["code"] == 0 or "do not fit on numa:1" in found["err"], found["err"]
    with _profile(guests.outcome("small-node"), tmp_path) as profile:
        node = next(node for node in profile.machine.numa if node.index == 1)
        assert node.memory_free_bytes is not None and node.memory_free_bytes < 128 * 2**20
        reasons = [each.reason for each in profile.unsupported_paths]
        assert any("on numa:1" in reason and "is free" in reason for reason in reasons)
        measured = [visit for visit in profile.visits() if visit.failure is None]
        assert any("numa:0" in visit.workload.curve for visit in measured)


def test_a_survey_of_an_emulated_machine_decides_nothing(guests: Guests) -> None:
    said = guests.facts("small-node", "said_of_survey")
    emulated = "emulated by QEMU TCG: its times mean nothing"
    assert {verb for verb, text in said.items() if emulated in text} == {*said}
    assert said["advise"].endswith("0")
    assert "no GPU" in said["advise"]
    assert said["export"].endswith("2")


def test_a_node_without_cpus_is_no_place_of_the_host(guests: Guests) -> None:
    topology = topology_of(guests, "memory-only")
    notes = " ".join(topology["notes"])
    assert [node["index"] for node in topology["numa"]] == [0]
    assert "numa:2 is skipped: it has no CPUs of its own" in notes
    assert "CPUs 2-3 are not used: they have no NUMA node whose memory may be used" in notes


def test_a_node_without_cpus_is_measured_if_it_is_named(guests: Guests, tmp_path: Path) -> None:
    """By the CPUs of the other end; its buffers are there, and within it nothing is copied."""
    assert guests.facts("memory-only", "survey")["code"] == 0
    with _profile(guests.outcome("memory-only"), tmp_path) as profile:
        nodes = [(node.index, bool(node.cpus)) for node in profile.machine.numa]
        assert nodes == [(0, True), (2, False)]
        visits = [visit for visit in profile.visits() if visit.samples]
        skipped = {each.path: each.reason for each in profile.unsupported_paths}
        planned = _nodes_of(series.workload for series in profile.series())
    assert planned == {(0, 2), (2, 0)}
    # The deadline may leave time for one of the two.
    assert visits and _nodes_of(visit.workload for visit in visits) <= planned
    assert {buffer.state for visit in visits for buffer in visit.buffers} == {"verified"}
    within = "pageable@numa:2 -> pageable@numa:2 by cpu"
    assert skipped[within] == "no CPU of either node may be used"


def _nodes_of(workloads: Iterable[Workload]) -> set[tuple[int, ...]]:
    paths = (transfer.path for workload in workloads for transfer in workload.transfers)
    return {tuple(place.index for place in path.places) for path in paths}


def test_a_control_group_decides_which_nodes_are_places(guests: Guests) -> None:
    """It allows the CPUs of node 0 and the memory of node 1."""
    topology = topology_of(guests, "cpuset")
    notes = " ".join(topology["notes"])
    assert topology["numa"] == []
    assert "numa:1 is skipped: this process may use none of its CPUs" in notes
    assert "CPUs 0-1 are not used: they have no NUMA node whose memory may be used" in notes


def test_memory_of_a_node_that_a_control_group_forbids_is_not_made(guests: Guests) -> None:
    """A visit states that its buffer is elsewhere; the transfer library makes none."""
    found = guests.facts("cpuset", "forbidden")
    states = {each["memory"]: (each["state"], each["detail"]) for each in found["buffers"]}
    state, detail = states.pop("pageable@numa:0")
    assert state == "misplaced" and re.fullmatch(r"(\d+) of \1 pages on node 1", detail)
    assert states == {"pageable@numa:1": ("verified", "")}
    assert found["located"] == {"1": 2.0}
    assert "may not use the memory of NUMA node 0" in found["pinned 0"]
    assert found["pinned 1"] == "there"


def test_what_the_firmware_states_of_nodes_is_in_the_topology(guests: Guests) -> None:
    """12800 MiB/s and 80 ns from the CPUs of each node; the kernel shows no other pairs."""
    nodes = topology_of(guests, "four-nodes")["numa"]
    stated = {node["index"]: node["stated"] for node in nodes}
    near = {"bytes_per_second": 12800 * 2.0**20, "seconds": 80e-9}
    assert stated == {index: [{"by": index, **near}] for index in range(4)}
    assert [node["stated"] for node in topology_of(guests, "two-sockets")["numa"]] == [[], []]


@pytest.mark.parametrize("name", sorted(PARTS))
def test_an_emulated_machine_says_so(guests: Guests, name: str) -> None:
    assert topology_of(guests, name)["virtual"] == "QEMU TCG"
    doctor = guests.facts(name, "verbs")["doctor"]["out"]
    assert "emulated by QEMU TCG: its times mean nothing" in doctor


def _profile(outcome: ScriptResult, folder: Path, name: str = "survey.wwp") -> Profile:
    file = folder / name
    file.write_bytes(outcome.files[name])
    return Profile.open(file)
