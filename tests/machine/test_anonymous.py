from __future__ import annotations

import msgspec

from machine.captured import CAPTURES, machine, shared_file
from waywiser.machine.anonymous import anonymised
from waywiser.machine.assemble import machine_from
from waywiser.machine.capture import load_capture


def test_names_are_gone_and_the_machine_is_the_same() -> None:
    plain = anonymised(load_capture(CAPTURES / "two-socket-4gpu.json"))
    found, before = machine_from(plain), machine("two-socket-4gpu")
    assert found.hostname == "anonymous"
    assert found.numa == before.numa
    assert [gpu.peers for gpu in found.gpus] == [gpu.peers for gpu in before.gpus]
    assert found.gpus[2].processes == ("0 unknown 2048 MiB",)
    assert len({gpu.uuid for gpu in found.gpus}) == 4
    assert anonymised(plain) == plain


def test_addresses_jobs_and_serial_numbers_of_a_real_node_are_gone() -> None:
    capture = load_capture(shared_file("coral-lassen.xml"))
    text = msgspec.json.encode(anonymised(capture)).decode()
    for secret in (
        "lassen28",
        "allocation_995085",
        "08:94:ef",
        "0324217100703",
        "04732404",
        "GUID",
    ):
        assert secret not in text
    assert len(machine_from(anonymised(capture)).gpus) == 4
