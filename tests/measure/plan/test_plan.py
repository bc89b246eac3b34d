from __future__ import annotations

import msgspec
import pytest
from curves_of_plans import curves
from machines import machine

from waywiser.curves.select import NothingMatches, matches_any, texts_of_unsupported
from waywiser.curves.sizes import SizesError
from waywiser.machine.machine import Machine
from waywiser.measure.plan import plan as plan_module
from waywiser.measure.plan.outlook import outlook
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.schedule import Schedule
from waywiser.words import WaywiserError, Workload
from waywiser.words.records import Visit

pytestmark = pytest.mark.usefixtures("scripted")

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
CPU_REASON = "the CPU cannot address device memory"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"


def plan(gpus: int = 1, *, nodes: int = 1, free: int = 0, **request: object) -> Plan:
    return make_plan(machine(gpus=gpus, nodes=nodes, free=free), Request(**request))  # type: ignore[arg-type]


def test_standard_visits_defaults_at_every_octave_and_settings_at_few_sizes() -> None:
    sizes = curves(plan())
    assert sizes[H2D] == [2**i for i in range(3, 31)]
    assert sizes[f"{H2D}[api=sync]"][-1] == 64 * 2**20
    assert 3 <= len(sizes[f"{H2D}[api=sync]"]) <= 8
    assert "pageable[pages=huge]@numa:0 -> device@gpu:0 by copy-engine" in sizes
    assert f"{H2D} (flushed)" in sizes
    assert f"{D2H} (flushed)" not in sizes  # its source is not the CPU's
    assert sizes["empty-interval@gpu:0"] == [0]


def test_standard_varies_the_settings_of_principal_paths_only_and_full_of_all() -> None:
    local, beside = "pageable@numa:0 -> pageable@numa:0 by cpu", "pinned@numa:0 -> pageable@numa:0"
    standard, full = curves(plan()), curves(plan(preset="full"))
    assert f"{local}[threads=8]" in standard and f"{local} (dirtied)" in standard
    assert f"{beside} by cpu" in standard
    assert not [t for t in standard if t.startswith(beside) and ("[" in t or "(" in t)]
    assert f"{beside} by cpu[threads=8]" in full and f"{beside} by cpu (dirtied)" in full


def test_latency_plans_small_sizes_alone() -> None:
    sizes = curves(plan(only=("h2d latency", "copy-engine d2h")))
    assert sizes[H2D] == [2**i for i in range(3, 13)]
    assert all(max(sizes[text]) <= 4096 for text in sizes if "-> device" in text)
    assert max(sizes[D2H]) == 2**30
    assert curves(plan(only=("latency",), sizes="64,1MiB"))[D2H] == [64]
    small = plan(only=("h2d latency",), memory_bytes=2**20)
    assert curves(small)[H2D] == sizes[H2D]
    assert "GiB" not in " ".join(unsupported.path for unsupported in small.unsupported_paths)


def test_without_latency_no_point_is_compared_with_a_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requested: list[Workload] = []
    known = plan_module.texts_of

    def texts_of(workload: Workload, on: Machine | None = None) -> tuple[str, ...]:
        requested.append(workload)
        return known(workload, on)

    monkeypatch.setattr(plan_module, "texts_of", texts_of)
    assert plan().points and not requested
    assert plan(only=("h2d",)).points
    assert requested and not any(workload.bytes for workload in requested)


@pytest.mark.parametrize("request_", [{"sizes": "1MiB"}, {"preset": "check"}])
def test_latency_without_a_small_size_is_an_error(request_: dict[str, object]) -> None:
    with pytest.raises(NothingMatches, match=r"(check|1MiB) has no size of up to 4 KiB") as caught:
        plan(only=("h2d latency",), **request_)
    assert "--sizes 8" in caught.value.remedy


def test_links_choose_paths() -> None:
    def chosen(*only: str) -> set[str]:
        return {p.curve.transfers[0].path.source.kind for p in plan(2, only=only).points}

    assert chosen("nvlink") == {"device"}
    assert "device" not in chosen("pcie h2d")
    with pytest.raises(
        NothingMatches, match="there is no nvlink path here: it needs 1 GPU, available: 0"
    ):
        plan(0, only=("nvlink",))


def test_an_opposite_pair_is_measured_once_and_host_first() -> None:
    pairs = [text for text in curves(plan()) if "; " in text]
    assert [text for text in pairs if "pinned" in text] == [f"{H2D}; {D2H}"]
    assert pairs[0].startswith("pageable@numa:0 -> device@gpu:0")
    assert not [text for text in pairs if "device" not in text]
    between = [t for t in curves(plan(2)) if "; " in t and "numa" not in t]
    assert between == [
        "device@gpu:0 -> device@gpu:1 by copy-engine; device@gpu:1 -> device@gpu:0 by copy-engine"
    ]


def test_full_pairs_what_stays_at_a_place_too() -> None:
    pairs = [text for text in curves(plan(preset="full")) if "; " in text]
    assert any(text.startswith("pageable@numa:0 -> pinned@numa:0 by cpu") for text in pairs)


def test_full_varies_settings_in_pairs_where_people_ask_and_alone_beside() -> None:
    full = curves(plan(preset="full"))
    requested = "pageable@numa:0 -> pageable@numa:0 by cpu"
    assert full[f"{requested}[stores=streaming,threads=2]"] == [2**20, 2**26]
    assert len(full[f"{requested}[stores=streaming]"]) > 2
    assert len(full["pageable[pages=huge]@numa:0 -> pageable@numa:0 by cpu[threads=2]"]) == 2
    assert not [text for text in full if text.count("=") > 2 and ";" not in text]
    beside = [text for text in full if text.startswith("pageable@numa:0 -> pinned@numa:0 by cpu[")]
    assert beside and not [text for text in beside if "," in text]


def test_peer_access_off_gets_a_process_of_its_own() -> None:
    off = {p.curve.text for p in plan(2).points if p.curve.peer_access is False}
    assert off == {"device@gpu:0 -> device@gpu:1 by copy-engine[peer=off]"}
    processes = {o.workload.curve: o.process.peer_access for o in Schedule(plan(2))}
    assert {curve for curve, peer_access in processes.items() if not peer_access} == off
    full = {p.curve.text for p in plan(2, preset="full").points if p.curve.peer_access is False}
    assert "device@gpu:1 -> device@gpu:0 by copy-engine[peer=off]" in full


def test_full_measures_everything_in_six_processes() -> None:
    assert {point.processes for point in plan(2, preset="full").points} == {6}


@pytest.mark.parametrize(("gpus", "nodes"), [(0, 1), (1, 1), (8, 2)])
def test_quick_fits_its_time_on_any_machine(gpus: int, nodes: int) -> None:
    quick = plan(gpus, nodes=nodes, preset="quick")
    expected = outlook(quick)
    assert expected.processes == 1 + any(p.curve.peer_access is False for p in quick.points)
    assert expected.seconds <= quick.deadline_seconds <= 25
    assert bool(expected.skipped) == (gpus == 8)
    assert "headline" not in expected.skipped


def test_host_memories_that_feed_gpus_are_copied_among_themselves_on_demand_only() -> None:
    path = "pinned@numa:0 -> pinned@numa:0 by cpu"
    assert path not in curves(plan())
    assert plan().skipped > 0
    assert path in curves(plan(preset="full"))
    assert path in curves(plan(only=("pinned -> pinned cpu",)))


def test_quick_leaves_no_principal_path_out() -> None:
    quick = plan(8, nodes=2, preset="quick")
    skipped: list[Visit] = []
    now = 0.0
    schedule = Schedule(quick, on_skip=skipped.append, clock=lambda: now)
    points = {point.identity: point for point in quick.points}
    measured = set()
    for order in schedule:
        point = points[order.workload.identity]
        now += point.unmeasured_seconds
        measured.add(point.curve.text)
    assert now <= 25 and skipped
    assert {p.curve.text for p in quick.points if p.curve.principal} <= measured


def test_sizes_that_do_not_fit_are_cut_with_the_reason() -> None:
    small = plan(memory_bytes=2**28)
    assert small.buffer_bytes <= 2**28
    cut = {r.path: r.reason for r in small.unsupported_paths}
    assert cut[f"{H2D} of 256 MiB, 512 MiB, 1 GiB"] == (
        "256 MiB needs 512 MiB of buffers, --memory allows 256 MiB"
    )


@pytest.mark.parametrize(("free", "largest"), [(None, 2**28), (2**26, 2**25), (2**26 - 1, 2**25)])
def test_a_node_with_little_free_memory_limits_the_sizes(free: int | None, largest: int) -> None:
    """A copy within the node has two buffers there."""
    found = machine(nodes=2)
    second = msgspec.structs.replace(found.numa[1], memory_free_bytes=free)
    found = msgspec.structs.replace(found, numa=(found.numa[0], second))
    plan = make_plan(found, Request(only=("h2h cpu",), sizes="16MiB,32MiB,256MiB"))
    sizes = curves(plan)
    assert max(sizes["pageable@numa:0 -> pageable@numa:0 by cpu"]) == 2**28
    assert max(sizes["pageable@numa:1 -> pageable@numa:1 by cpu"]) == (
        2**24 if free == 2**26 - 1 else largest
    )
    reasons = [each.reason for each in plan.unsupported_paths if "256 MiB" in each.path]
    assert bool(reasons) == (free is not None)
    assert all("on numa:1, 6" in reason and "MiB is free" in reason for reason in reasons)


def test_a_gpu_with_little_free_memory_limits_the_sizes() -> None:
    sizes = curves(plan(free=2**26))
    assert max(sizes[H2D]) == 2**26
    assert max(sizes["device@gpu:0 -> device@gpu:0 by copy-engine"]) == 2**25


def test_the_largest_size_that_fits_is_always_visited() -> None:
    points = [p for p in plan(memory_bytes=2**29).points if p.curve.text == H2D]
    assert [(p.size, p.growing, p.always) for p in points[-2:]] == [
        (2**27, True, False),
        (2**28, True, True),
    ]


def test_asked_sizes_are_visited_by_every_curve_and_never_skipped() -> None:
    requested = plan(sizes="64KiB,1GiB", preset="quick")
    assert not any(point.growing for point in requested.points)
    assert {point.size for point in requested.points if point.workload.transfers} == {2**16, 2**30}


def test_only_selects_curves_and_unsupported_paths() -> None:
    assert set(curves(plan(only=(f"{H2D}[api*", "interval")))) == {
        f"{H2D}[api=sync]",
        "empty-interval@gpu:0",
    }
    assert {r.path for r in plan(only=("pinned cpu",)).unsupported_paths} == {
        "device -> pinned by cpu",
        "pinned -> device by cpu",
    }


def test_only_what_is_not_supported_has_a_reason() -> None:
    with pytest.raises(NothingMatches, match="no driver is loaded"):
        plan(0, only=("pinned device copy-engine",))
    with pytest.raises(NothingMatches, match="nearest"):
        plan(0, only=("teleport",))


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("pageable@numa:0 -> pageable@numa:0 by cpu[threads=32]", "too many threads"),
        ("pinned@numa:0 -> device@gpu:0 by cpu", CPU_REASON),
        ("H2D pinned@numa:0 -> device@gpu:0 by cpu", CPU_REASON),
        ("pinned@numa:0 <-> device@gpu:0 by cpu", CPU_REASON),
    ],
)
def test_a_whole_path_that_is_not_supported_has_the_reason_of_the_registry(
    pattern: str, reason: str
) -> None:
    with pytest.raises(NothingMatches, match="cannot be measured here") as caught:
        plan(only=(pattern,))
    assert pattern in caught.value.what and caught.value.remedy == reason
    with pytest.raises(NothingMatches) as caught:
        plan(0, only=(pattern,))
    without_gpu = reason if "gpu:" not in pattern else "no driver is loaded; install one"
    assert caught.value.remedy == without_gpu


def test_a_misspelt_whole_path_has_a_suggestion() -> None:
    with pytest.raises(NothingMatches) as caught:
        plan(only=(H2D.replace("copy-engine", "copy-enigne"),))
    assert f"did you mean {H2D!r}?" in caught.value.remedy


@pytest.mark.parametrize("pattern", ["h2d pinned", "pinned device copy-engine"])
def test_reasons_are_those_of_paths_that_match(pattern: str) -> None:
    with pytest.raises(NothingMatches, match="only what cannot be measured here") as caught:
        plan(0, only=(pattern,))
    known = [(each.path, each.reason) for each in plan(0).unsupported_paths]
    stated = [path for path, reason in known if f"{path}: {reason}" in caught.value.remedy]
    assert stated
    for path in stated:
        assert matches_any(texts_of_unsupported(path, machine(gpus=0)), [pattern])


def test_settings_that_the_registry_does_not_support_are_listed() -> None:
    unsupported_paths = {r.path: r.reason for r in plan().unsupported_paths}
    path = "pageable@numa:0 -> pageable@numa:0 by cpu[threads=32]"
    assert unsupported_paths[path] == "too many threads"


def test_the_same_request_gives_the_same_plan() -> None:
    assert plan(2, preset="quick") == plan(2, preset="quick")


def test_bad_requests_are_one_clear_error() -> None:
    with pytest.raises(WaywiserError, match="quick, standard, full"):
        plan(preset="fast")
    with pytest.raises(SizesError):
        plan(sizes="big")


def test_who_asks_for_a_part_gets_all_of_it_in_every_process() -> None:
    for request in ({"only": (H2D,)}, {"sizes": "8,1MiB,64MiB"}, {"workloads": (H2D,)}):
        points = plan(**request).points
        assert {point.processes for point in points if not point.conditional} == {4}


def test_representative_sizes_are_a_latency_and_a_bandwidth() -> None:
    repeated: dict[str, list[int]] = {}
    for point in plan(2).points:
        if point.processes > 1:
            repeated.setdefault(point.curve.text, []).append(point.size)
    assert repeated[H2D] == [8, 64 * 2**20]
    assert repeated[f"{H2D}[api=sync]"] == [32, 16 * 2**20]
    assert repeated[f"{H2D} (flushed)"] == [16 * 2**20]
    assert repeated["empty-interval@gpu:0"] == [0]
    together = f"{H2D}; {H2D.replace('gpu:0', 'gpu:1')}"
    assert repeated[together] == [64 * 2**20]
    assert set(repeated) == {p.curve.text for p in plan(2).points}


def test_a_deadline_of_ones_own_replaces_that_of_the_preset() -> None:
    assert plan().deadline_seconds == plan().preset.deadline_seconds(1)
    assert plan(deadline_seconds=180.0).deadline_seconds == 180
    assert plan(sizes="8").deadline_seconds == plan().deadline_seconds
    assert plan(sizes="8", deadline_seconds=180.0).deadline_seconds == 180
    assert plan(sizes="8", deadline_seconds=60.0).deadline_seconds == 60


def operations(of: Plan) -> set[str]:
    return {text for text in curves(of) if " by " not in text}


def test_quick_performs_only_the_empty_interval_unless_others_are_named() -> None:
    assert operations(plan(preset="quick")) == {"empty-interval@gpu:0"}
    assert operations(plan(preset="quick", only=("malloc",))) == {"malloc@numa:0"}


def test_standard_performs_all_and_their_settings_at_the_first_of_equal_places() -> None:
    varied = {"malloc[bytes=65536]@numa:0", "malloc[bytes=1048576]@numa:0"}
    defaults = {"empty-interval@gpu:0", "malloc@numa:0"}
    assert operations(plan()) == varied | defaults
    more = {"empty-interval@gpu:1", "malloc@numa:1"}
    assert operations(plan(2, nodes=2)) == varied | defaults | more
    assert "malloc[bytes=65536]@numa:1" in operations(plan(nodes=2, preset="full"))


def test_sizes_ask_about_bytes_that_move() -> None:
    assert operations(plan(sizes="1MiB")) == {"empty-interval@gpu:0"}
    assert "malloc@numa:0" in operations(plan(sizes="1MiB", only=("malloc",)))


def test_an_operation_without_a_place_is_reported_once_with_the_reason() -> None:
    result = [r for r in plan(gpus=0).unsupported_paths if r.path.startswith("empty-interval")]
    assert [(r.path, bool(r.reason)) for r in result] == [("empty-interval@gpu:0", True)]
