"""Predictions of workloads: what they take, what limits them, and what is not known."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept import RESULTS, unpacked
from waywiser.cli.app import print_result
from waywiser.errors import WaywiserError
from waywiser.exchange.imports.profiles import import_files
from waywiser.measure.plan.requested_workloads import parse_workload
from waywiser.model.capacity import Queue
from waywiser.model.errors import ModelError
from waywiser.model.machine_model import MachineModel, fitted_model
from waywiser.model.prediction import (
    BUSY,
    UNEQUAL,
    MeasuredTimes,
    Prediction,
    Predictor,
    measured_times,
)
from waywiser.model.whatif import Change, MachineChanges
from waywiser.profile import Profile
from waywiser.profile.series_frame import SeriesFrame
from waywiser.render.views.prediction import prediction_parts

TWO = RESULTS / "2026-11-20-h200" / "two-gpus" / "standard.wwp.xz"
ONE = RESULTS / "2026-11-25-sets" / "h200-model-1.wwp.xz"
FILES = Path(__file__).parents[1] / "exchange" / "imports" / "data"

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"
P2P = "device@gpu:0 -> device@gpu:1 by copy-engine"
BOTH = "PCIe of gpu:*, both directions"
MESSAGE = "pinned[node=0,socket=0]@rank:0 -> pinned[node=0,socket=1]@rank:1 by mpi"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(TWO, tmp_path_factory.mktemp("two") / "two.wwp")


@pytest.fixture(scope="module")
def model(two: Path) -> MachineModel:
    with Profile.open(two) as profile:
        return fitted_model(profile)


@pytest.fixture(scope="module")
def predictor(model: MachineModel) -> Predictor:
    return Predictor(model)


@pytest.fixture(scope="module")
def of_messages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("messages") / "a.wwp"
    names = ("ping_pong", "mult_pong", "maxrate", "memcpy")
    import_files([FILES / f"benchpress_{name}.out" for name in names], file)
    return file


def predicted(predictor: Predictor, text: str, messages: int = 1) -> Prediction:
    return predictor.predict(parse_workload(text), messages)


def test_one_transfer_has_the_time_of_its_curve(predictor: Predictor, model: MachineModel) -> None:
    (curve,) = [each for each in model.curves if each.text == H2D]
    found = predicted(predictor, f"{H2D} of 50MiB")
    expected = curve.predict(50 * 2**20)
    assert expected is not None
    assert found.span == expected.seconds == found.transfers[0].alone
    assert found.interval == expected.interval
    assert found.is_known


def test_a_link_that_one_transfer_fills_limits_it(predictor: Predictor) -> None:
    found = predicted(predictor, f"{H2D} of 256MiB")
    assert [each.resource for each in found.limits] == ["PCIe to gpu:*"]
    assert found.limits[0].basis == "one transfer"
    assert not predicted(predictor, f"{H2D} of 64").limits


def test_both_directions_share_the_link(predictor: Predictor) -> None:
    found = predicted(predictor, f"{H2D} of 64MiB; {D2H} of 64MiB")
    assert [each.resource for each in found.limits] == [BOTH]
    assert {each.limit for each in found.transfers} == {"PCIe of gpu:0, both directions"}
    assert all(each.seconds > 1.03 * each.alone for each in found.transfers)
    assert any("device@gpu:0 -> pinned@numa:0" in text for text in found.rests_on)
    assert found.interval.low < found.span < found.interval.high
    assert BUSY not in found.notes


def test_a_limit_that_was_not_measured_is_unknown(predictor: Predictor) -> None:
    """No set of the survey has the host and both GPUs."""
    other = H2D.replace("gpu:0", "gpu:1")
    found = predicted(predictor, f"{H2D} of 64MiB; {other} of 64MiB")
    assert "reads of numa:0" in found.unknown
    assert not found.is_known
    assert found.interval.high > 1.5 * found.span
    assert BUSY in found.notes


def test_sizes_between_measured_ones_widen_the_interval(predictor: Predictor) -> None:
    measured = predicted(predictor, f"{H2D} of 64MiB; {D2H} of 64MiB")
    between = predicted(predictor, f"{H2D} of 60MiB; {D2H} of 60MiB")
    width, wider = (e.interval.high / e.span for e in (measured, between))
    assert 1 < width < wider


def test_each_transfer_has_an_interval(predictor: Predictor) -> None:
    unequal = predicted(predictor, f"{H2D} of 64MiB; {D2H} of 16MiB")
    for each in unequal.transfers:
        assert each.interval.low < each.seconds < each.interval.high
    last = max(unequal.transfers, key=lambda each: each.seconds)
    assert last.seconds == unequal.span
    single = predicted(predictor, f"{H2D} of 60MiB")
    assert single.transfers[0].interval == single.interval


def test_sizes_between_measured_ones_widen_the_interval_of_their_transfer(
    predictor: Predictor,
) -> None:
    measured = predicted(predictor, f"{H2D} of 64MiB; {D2H} of 64MiB").transfers
    between = predicted(predictor, f"{H2D} of 60MiB; {D2H} of 64MiB").transfers
    widths = [
        [each.interval.high / each.seconds for each in transfers]
        for transfers in (measured, between)
    ]
    assert 1 < widths[0][0] < widths[1][0]


def test_several_transfers_of_one_kind(predictor: Predictor) -> None:
    one, four = (predicted(predictor, f"{H2D} of 64MiB", number) for number in (1, 4))
    assert len(four.transfers) == 4
    assert four.bytes == 4 * one.bytes
    assert 3.5 < four.span / one.span < 4.5


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (H2D, "has no size"),
        (f"{H2D} of 64GiB", "times beyond what was measured"),
        (f"{H2D.replace('gpu:0', 'gpu:5')} of 1MiB", "has no gpu:5"),
        (f"{H2D.replace('copy-engine', 'nobody')} of 1MiB", "was not measured alone"),
        (f"{H2D} of 1MiB; {H2D} of 1MiB (shared)", "shared buffer"),
        (f"{MESSAGE} of 4", "was not measured"),
    ],
)
def test_what_the_model_cannot_answer(predictor: Predictor, text: str, says: str) -> None:
    with pytest.raises(ModelError, match=says) as raised:
        predicted(predictor, text)
    assert raised.value.remedy
    assert "\n" not in str(raised.value)


def changed(model: MachineModel, *changes: str, gpus: int | None = None) -> Predictor:
    return Predictor(model, MachineChanges(tuple(map(Change.parse, changes)), gpus))


def test_a_faster_link_takes_less_time_until_something_else_limits(
    model: MachineModel, predictor: Predictor
) -> None:
    faster = changed(model, "PCIe to gpu:*=126GB/s")
    before, after = (predicted(each, f"{H2D} of 64MiB") for each in (predictor, faster))
    assert 0.5 < after.span / before.span < 0.6
    assert [each.resource for each in after.limits] == [BOTH]
    assert predicted(faster, f"{P2P} of 64MiB").span == predicted(predictor, f"{P2P} of 64MiB").span


def test_more_gpus_are_like_the_measured_ones(model: MachineModel, predictor: Predictor) -> None:
    four = changed(model, gpus=4)
    found = predicted(four, "device@gpu:2 <-> device@gpu:3 by copy-engine of 64MiB")
    expected = predicted(predictor, "device@gpu:0 <-> device@gpu:1 by copy-engine of 64MiB")
    assert found.span == pytest.approx(expected.span, rel=0.02)
    both = "; ".join(f"{H2D.replace('gpu:0', f'gpu:{n}')} of 64MiB" for n in range(4))
    assert predicted(four, both).unknown
    with pytest.raises(ModelError, match="has no gpu:4"):
        predicted(four, f"{H2D.replace('gpu:0', 'gpu:4')} of 64MiB")


def test_another_latency_moves_the_whole_curve(model: MachineModel, predictor: Predictor) -> None:
    slower = changed(model, f"latency {H2D}=50us")
    before, after = (predicted(each, f"{H2D} of 64KiB").span for each in (predictor, slower))
    assert after - before == pytest.approx(47.5e-6, abs=2e-6)


@pytest.mark.parametrize("messages", [0, -1, 10**9])
def test_a_number_of_messages_that_is_not_possible(predictor: Predictor, messages: int) -> None:
    with pytest.raises(ModelError, match="cannot be predicted"):
        predicted(predictor, f"{H2D} of 1MiB", messages)


def test_what_was_measured_is_found_in_any_order(two: Path, predictor: Predictor) -> None:
    with Profile.open(two) as profile:
        frame, machine = SeriesFrame.read(profile), profile.machine
    one, other = (
        measured_times(frame, machine, parse_workload(text))
        for text in (f"{H2D} of 64MiB; {D2H} of 64MiB", f"{D2H} of 64MiB; {H2D} of 64MiB")
    )
    assert one is not None and other is not None
    assert one.span == other.span
    assert one.seconds == other.seconds[::-1]
    found = predicted(predictor, f"{H2D} of 64MiB; {D2H} of 64MiB")
    compared = msgspec.structs.replace(found, measured=one)
    assert compared.error is not None and abs(compared.error) < 0.03
    assert measured_times(frame, machine, parse_workload(f"{H2D} of 3MiB")) is None


def test_messages_have_the_curve_of_their_pairs(of_messages: Path) -> None:
    with Profile.open(of_messages) as profile:
        model = fitted_model(profile)
        frame, machine = SeriesFrame.read(profile), profile.machine
    workload = parse_workload(f"{MESSAGE} of 16")
    found = Predictor(model).predict(workload)
    measured = measured_times(frame, machine, workload)
    assert measured is not None
    assert found.span == pytest.approx(measured.span, rel=0.05)
    assert found.interval.low < measured.span < found.interval.high


def test_messages_that_do_not_say_where_they_are(of_messages: Path) -> None:
    with Profile.open(of_messages) as profile:
        predictor = Predictor(fitted_model(profile))
    with pytest.raises(ModelError, match="where its ends are"):
        predicted(predictor, "pinned@rank:0 -> pinned@rank:1 by mpi of 16")
    with pytest.raises(ModelError, match="between two nodes"):
        predicted(predictor, f"{MESSAGE} of 16", 3)
    with pytest.raises(ModelError, match="sets of different messages"):
        predicted(predictor, f"{MESSAGE} of 16; {MESSAGE} of 8")


PIECES = st.sampled_from(
    [H2D, D2H, P2P, "<->", "->", ";", " of ", "64MiB", "0", "1e99", " by ", "(shared)", "(flushed)",
     "@", "gpu:1", "gpu:99999999999", "rank:3", "[a=b]", "as list[piece=4096]", " ", "\n", "×"]
)  # fmt: skip


def test_a_size_that_only_an_equivalent_gpu_has_is_predicted(model: MachineModel) -> None:
    other = H2D.replace("gpu:0", "gpu:1")
    short = {each.text: each for each in model.curves}[other]
    known = len(short.sizes)
    of_sizes = {
        name: value[:4]
        for name, value in msgspec.structs.asdict(short).items()
        if isinstance(value, tuple) and len(value) == known
    }
    few = msgspec.structs.replace(short, **of_sizes)
    curves = tuple(few if each.text == other else each for each in model.curves)
    found = Predictor(msgspec.structs.replace(model, curves=curves))
    whole = predicted(Predictor(model), f"{H2D} of 256MiB")
    assert predicted(found, f"{other} of 256MiB").span == pytest.approx(whole.span)
    assert predicted(found, f"{other} of {few.sizes[2]}").notes == ()


def test_changes_that_contradict_each_other_are_an_error(model: MachineModel) -> None:
    once = "PCIe to gpu:*=100GB/s"
    assert changed(model, once, once)
    with pytest.raises(ModelError, match="contradict each other"):
        changed(model, once, "PCIe to gpu:*=50GB/s")


@settings(max_examples=300, deadline=None)
@given(pieces=st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=9))
def test_any_text_is_predicted_or_one_clear_line(predictor: Predictor, pieces: list[str]) -> None:
    try:
        found = predicted(predictor, "".join(pieces))
    except WaywiserError as error:
        assert str(error)
        return
    assert 0 < found.interval.low <= found.span <= found.interval.high


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 2**34), min_size=1, max_size=6),
    paths=st.lists(st.sampled_from([H2D, D2H, P2P]), min_size=6, max_size=6),
)
def test_any_sizes_have_a_time_that_makes_sense(
    predictor: Predictor, sizes: list[int], paths: list[str]
) -> None:
    text = "; ".join(f"{path} of {size}" for path, size in zip(paths, sizes, strict=False))
    try:
        found = predicted(predictor, text)
    except ModelError as error:
        assert "beyond what was measured" in str(error)
        return
    assert found.span >= max(each.alone for each in found.transfers) * 0.999
    assert 0 < found.interval.low <= found.span <= found.interval.high


def test_a_transfer_in_a_queue_says_how_long_it_waits(
    model: MachineModel, capsys: pytest.CaptureFixture[str]
) -> None:
    queue = Queue("source", "device by copy-engine", gap=3e-6)
    capacities = msgspec.structs.replace(model.capacities, queues=(queue,))
    queued = Predictor(msgspec.structs.replace(model, capacities=capacities))
    found = predicted(queued, f"{P2P} of 64MiB; {P2P} of 32MiB")
    waits = [each.waited for each in found.transfers]
    assert sorted(waits)[0] == 0 < max(waits)
    for each in found.transfers:
        assert each.seconds - each.waited == pytest.approx(each.alone, rel=0.05)
    measured = MeasuredTimes(found.span, 2, tuple(each.alone for each in found.transfers))
    print_result(None, prediction_parts(msgspec.structs.replace(found, measured=measured)))
    said = capsys.readouterr().out
    assert "waits" in said and "Measured times of transfers are from their own starts" in said
    found = predicted(Predictor(model), f"{P2P} of 64MiB; {H2D} of 1MiB")
    print_result(None, prediction_parts(found))
    assert "waits" not in capsys.readouterr().out


def test_a_copy_beside_a_kernel_may_take_as_long_as_all(tmp_path: Path) -> None:
    with Profile.open(unpacked(ONE, tmp_path / "one.wwp")) as profile:
        own = Predictor(fitted_model(profile))
    kernel = H2D.replace("copy-engine", "sm")
    found = predicted(own, f"{kernel} of 64MiB; {D2H} of 1MiB")
    assert UNEQUAL in found.notes
    assert found.transfers[1].interval.high == pytest.approx(found.interval.high, rel=0.01)
    assert found.transfers[1].interval.low <= found.transfers[1].alone


def test_unequal_transfers_of_one_link_may_come_first_or_last(predictor: Predictor) -> None:
    found = predicted(predictor, f"{H2D} of 64MiB; {D2H} of 16MiB")
    assert UNEQUAL in found.notes
    small = found.transfers[1]
    assert small.interval.low <= small.alone
    assert small.seconds < small.interval.high < found.interval.high
    for equal in (f"{H2D} of 64MiB; {D2H} of 64MiB", f"{H2D} of 64MiB; {P2P} of 1MiB"):
        found = predicted(predictor, equal)
        assert UNEQUAL not in found.notes
        assert found.transfers[1].interval.high < 1.5 * found.transfers[1].seconds


def test_a_faster_link_of_one_gpu_is_not_named_as_the_limit(model: MachineModel) -> None:
    faster = MachineChanges((Change.parse("PCIe to gpu:0=126GB/s"),))
    found = predicted(Predictor(model, faster), f"{H2D} of 64MiB")
    assert "PCIe to gpu:*" not in {each.resource for each in found.limits}
    beside = predicted(Predictor(model, faster), f"{H2D} of 64MiB; {H2D} of 64MiB")
    assert "PCIe to gpu:*" not in {each.resource for each in beside.limits}


def test_all_take_no_less_than_any_alone(predictor: Predictor) -> None:
    for text in (f"{H2D} of 64MiB; {D2H} of 1MiB", f"{H2D} of 256MiB; {P2P} of 64KiB"):
        found = predicted(predictor, text)
        longest = max(predicted(predictor, each.strip()).interval.low for each in text.split(";"))
        assert found.interval.low >= longest * (1 - 1e-9)


@given(
    st.integers(512, 2**28),
    st.sampled_from(("pinned@numa:0 -> device@gpu:0", "pageable@numa:0 -> device@gpu:1",
                     "device@gpu:0 -> device@gpu:1", "device@gpu:1 -> pinned@numa:0")),
    st.integers(1, 4),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_alone_is_one_number_whatever_else_runs(
    predictor: Predictor, size: int, path: str, others: int
) -> None:
    transfer = f"{path} by copy-engine of {size}"
    try:
        one = predicted(predictor, transfer)
    except ModelError:
        return
    assert one.transfers[0].alone == one.span
    beside = "; ".join(
        [transfer, *["pinned@numa:0 -> device@gpu:0 by copy-engine of 1MiB"] * others]
    )
    together = predicted(predictor, beside)
    assert together.transfers[0].alone == one.span
    assert together.transfers[0].seconds >= one.span * (1 - 1e-9)


def test_a_measured_size_has_the_measured_time(predictor: Predictor, model: MachineModel) -> None:
    for curve in model.curves:
        if curve.text in model.capacities.curves:
            size, time = curve.sizes[-1], curve.times[-1]
            assert predicted(predictor, f"{curve.text} of {size}").span == time
