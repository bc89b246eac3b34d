"""Whether bytes crossed the interface of their rail."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.cluster.connection.rail_requests import CountBytes
from waywiser.cluster.node.watched_interfaces import WatchedInterfaces, count_bytes, with_crossed
from waywiser.machine.interfaces import find_interfaces
from waywiser.machine.system_files import SystemFiles
from waywiser.words.cluster import Interface, Rail, RailTime

ETH0, ETH1 = Interface("eth0", "ethernet"), Interface("eth1", "ethernet")


class Counters:
    """Interfaces of which a test says what they have sent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("eth0", "eth1"):
            folder = self._folder(name)
            (folder / "statistics").mkdir(parents=True)
            (folder / "type").write_text("1\n")
            (folder / "operstate").write_text("up\n")
            self.sent(name, 1000)
            (folder / "statistics" / "rx_bytes").write_text("7\n")

    def sent(self, name: str, count: int) -> None:
        (self._folder(name) / "statistics" / "tx_bytes").write_text(f"{count}\n")

    def watch(self, *interfaces: Interface | None) -> WatchedInterfaces:
        rails = [Rail(n, interface=each) for n, each in enumerate(interfaces)]
        return WatchedInterfaces(rails, SystemFiles(self.root))

    def _folder(self, name: str) -> Path:
        return self.root / "sys" / "class" / "net" / name


@pytest.fixture
def counters(tmp_path: Path) -> Counters:
    return Counters(tmp_path)


def test_only_the_interfaces_of_the_rails_are_watched(counters: Counters) -> None:
    watch = counters.watch(ETH1, None, ETH1)
    watch.begin()
    counters.sent("eth0", 5000)
    counters.sent("eth1", 1500)
    assert watch.end(500) == {"eth1": 500}


def test_counters_that_come_late_are_read_again(
    counters: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = counters.watch(ETH0)
    watch.begin()
    monkeypatch.setattr("time.sleep", lambda seconds: counters.sent("eth0", 9000))
    assert watch.end(100) == {"eth0": 8000}


def test_counters_that_were_reset_are_not_known(counters: Counters) -> None:
    watch = counters.watch(ETH0)
    watch.begin()
    counters.sent("eth0", 10)
    assert watch.end(100) == {}


def time(rail: int, sender: str) -> RailTime:
    return RailTime(rail, sender, 1.0, 1.0, 1.0, 6)


def test_the_share_is_of_what_the_rails_of_an_interface_sent_together() -> None:
    rails = {
        "a": (Rail(0, interface=ETH0), Rail(1, interface=ETH0)),
        "b": (Rail(0, interface=ETH1), Rail(1)),
    }
    times = [time(0, "a"), time(1, "a"), time(0, "b"), time(1, "b"), time(0, "")]
    found = with_crossed(
        times, rails, {"a": 100, "b": 100}, {"a": {"eth0": 50}, "b": {"eth1": 130}}
    )
    assert [each.crossed for each in found] == [0.25, 0.25, 1.0, None, None]


def test_without_counters_nothing_is_known() -> None:
    rails = {"a": (Rail(0, interface=ETH0),)}
    for sent, counted in (({}, {"a": {"eth0": 5}}), ({"a": 100}, {}), ({"a": 0}, {"a": {}})):
        (found,) = with_crossed([time(0, "a")], rails, sent, counted)
        assert found.crossed is None


def test_an_agent_states_what_each_interface_has_sent() -> None:
    first, later = count_bytes(CountBytes()), count_bytes(CountBytes())
    assert first.sent.keys() == {each.interface.name for each in find_interfaces()}
    assert all(later.sent[name] >= sent for name, sent in first.sent.items())
