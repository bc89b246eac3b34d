"""A bounded number of transfers runs at once, and all have ended when the window is left."""

from __future__ import annotations

import pytest

from waywiser.transfer.transfer_window import TransferWindow


class Recorded:
    """Transfers that end when they are waited for, and what became of them."""

    def __init__(self) -> None:
        self.running: list[Started] = []
        self.finished: list[tuple[int, int]] = []

    def start(self, number: int, *raises: BaseException) -> Started:
        started = Started(self, number, list(raises))
        self.running.append(started)
        return started


class Started:
    def __init__(self, record: Recorded, number: int, raises: list[BaseException]) -> None:
        self.record = record
        self.number = number
        self.raises = raises

    def result(self, timeout: float | None = None) -> int:
        if self.raises:
            raised = self.raises.pop(0)
            if isinstance(raised, Exception):
                self.record.running.remove(self)
            raise raised
        if self in self.record.running:
            self.record.running.remove(self)
        return self.number * 10

    def finish(self, moved: int) -> None:
        self.record.finished.append((self.number, moved))

    def __str__(self) -> str:
        return f"while number {self.number} was moved"


def window(most_transfers: int = 3, most_bytes: int = 1000) -> TransferWindow:
    return TransferWindow(most_transfers=most_transfers, most_bytes=most_bytes)


def test_transfers_are_finished_in_order() -> None:
    record = Recorded()
    with window() as opened:
        for number in range(5):
            opened.make_room(1)
            started = record.start(number)
            opened.add(started, 1, started)
            assert len(record.running) <= 3
        assert record.finished == [(0, 0), (1, 10)]
    assert record.finished == [(number, number * 10) for number in range(5)]
    assert record.running == []


@pytest.mark.parametrize(("sizes", "most"), [([400] * 6, 2), ([5000] * 4, 2), ([200] * 8, 5)])
def test_bytes_under_way_are_bounded_but_for_two_transfers(sizes: list[int], most: int) -> None:
    record, seen = Recorded(), 0
    with window(most_transfers=100) as opened:
        for number, size in enumerate(sizes):
            opened.make_room(size)
            started = record.start(number)
            opened.add(started, size, started)
            seen = max(seen, len(record.running))
    assert seen == most
    assert len(record.finished) == len(sizes)


@pytest.mark.parametrize("failing", range(4))
def test_the_first_error_is_raised_after_all_have_ended(failing: int) -> None:
    record = Recorded()
    with pytest.raises(OSError, match="disk") as caught, window(most_transfers=9) as opened:
        for number in range(4):
            raises = [OSError("disk")] if number == failing else []
            started = record.start(number, *raises)
            opened.add(started, 1, started)
    assert record.running == []
    assert [number for number, _ in record.finished] == list(range(failing))
    assert caught.value.__notes__ == [f"while number {failing} was moved"]


def test_an_error_of_the_caller_is_raised_after_all_have_ended() -> None:
    record = Recorded()
    with pytest.raises(MemoryError), window() as opened:
        for number, raises in enumerate([[], [OSError("disk")], []]):
            started = record.start(number, *raises)
            opened.add(started, 1, started)
        raise MemoryError
    assert record.running == []
    assert record.finished == []


@pytest.mark.parametrize("within", [True, False], ids=["while adding", "at the end"])
def test_an_interrupt_is_raised_after_all_have_ended(within: bool) -> None:
    record = Recorded()
    with pytest.raises(KeyboardInterrupt), window() as opened:
        for number in range(3):
            interrupts = [KeyboardInterrupt(), KeyboardInterrupt()] if number == 0 else []
            started = record.start(number, *interrupts)
            opened.add(started, 1, started)
        if within:
            opened.make_room(10**9)
    assert record.running == []
