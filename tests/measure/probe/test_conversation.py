"""The end of a worker's conversation with its supervisor."""

from __future__ import annotations

import gc
import os

from waywiser.measure.probe.protocol import End, Failed, decode_from_worker, encode
from waywiser.measure.probe.serve import converse
from waywiser.measure.supervise.channel import LineChannel, Lines


def test_a_worker_collects_no_garbage_after_its_last_word() -> None:
    """Its process ends then."""
    orders, to_worker = os.pipe()
    from_worker, answers = os.pipe()
    kept = [[] for _ in range(1000)]  # type: ignore[var-annotated]
    frozen = gc.get_freeze_count()
    try:
        os.write(to_worker, encode(End()))
        assert not converse(LineChannel(orders, answers), lambda hello: None)  # type: ignore[arg-type, return-value]
        said = [decode_from_worker(line) for line in Lines().feed(os.read(from_worker, 4096))]
    finally:
        for descriptor in (orders, to_worker, from_worker, answers):
            os.close(descriptor)
    assert [type(each) for each in said] == [Failed]
    assert gc.get_freeze_count() >= frozen + len(kept)
