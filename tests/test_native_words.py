"""Words cross into the native library and come back as the same text."""

from __future__ import annotations

import pytest

from waywiser.machine.native_words import native_memory, native_operation, native_transfer
from waywiser.words import Memory, Operation, Transfer


@pytest.mark.parametrize(
    "text",
    [
        "pinned@numa:0 -> device@gpu:7 by copy-engine of 8",
        "pageable[pages=huge]@numa:3 -> pageable@numa:0 by cpu[stores=streaming,threads=4] of 64",
        "file@file:/data/x -> device@gpu:0 by copy-engine of 4096",
    ],
)
def test_both_sides_write_a_transfer_alike(text: str) -> None:
    transfer = Transfer.parse(text)
    assert str(native_transfer(transfer)) == str(transfer) == text


def test_both_sides_write_memories_and_operations_alike() -> None:
    memory = Memory.parse("pageable[pages=huge]@numa:1")
    assert str(native_memory(memory)) == str(memory)
    operation = Operation("malloc", memory.place, {"bytes": "65536"})
    assert str(native_operation(operation)) == str(operation) == "malloc[bytes=65536]@numa:1"
