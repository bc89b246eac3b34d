"""Slices of tensors in a file: which bytes are needed, and where each goes.

A slice is what numpy calls basic indexing, without new axes: integers, slices with a step from 1
on, and one ellipsis.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from itertools import product
from types import EllipsisType
from typing import Any, NamedTuple

from waywiser.transfer.errors import InvalidOperand, InvalidTransfer
from waywiser.transfer.read_plan import GAP_BYTES, SPAN_BYTES, TensorRange
from waywiser.transfer.safetensors_header import TensorEntry
from waywiser.transfer.strict_json import clipped

CALL = "get_slice"

TensorIndex = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]


class TensorSlice(NamedTuple):
    """The box of a tensor that holds a slice, and how to index the box."""

    ranges: tuple[range, ...]
    """The indices of each dimension, without steps: all from the first to the last one."""
    rest: tuple[int | slice, ...]
    """0 for a dimension that the slice drops, else a slice with its step."""

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the box."""
        return tuple(map(len, self.ranges))

    @property
    def is_box(self) -> bool:
        """Whether the slice is the whole box."""
        return all(each == slice(None) for each in self.rest)


def tensor_slice(index: Any, entry: TensorEntry) -> TensorSlice:
    """Reads an index as numpy does.

    Raises `InvalidOperand` for anything but integers, slices and one ellipsis; `InvalidTransfer`,
    which is a `ValueError`, for an index beyond the tensor, too many of them, or a step below 1.
    """
    given = _filled(index if isinstance(index, tuple) else (index,), entry)
    ranges: list[range] = []
    rest: list[int | slice] = []
    for number, (each, size) in enumerate(zip(given, entry.shape, strict=True)):
        if isinstance(each, slice):
            found = _indices(each, size, entry)
            ranges.append(range(found.start, found[-1] + 1) if found else range(0))
            rest.append(slice(None) if found.step == 1 else slice(None, None, found.step))
        elif not -size <= each < size:
            raise InvalidTransfer(
                f"index {each} of dimension {number} is beyond tensor {clipped(entry.name)}, whose "
                f"shape is {entry.shape}",
                where=CALL,
                remedy=f"pass {-size} to {size - 1}" if size else "pass a slice",
            )
        else:
            ranges.append(range(each % size, each % size + 1))
            rest.append(0)
    return TensorSlice(tuple(ranges), tuple(rest))


def _filled(index: tuple[Any, ...], entry: TensorEntry) -> list[Any]:
    """An integer or a slice for each dimension."""
    named = [_integer_or_slice(each) for each in index if each is not Ellipsis]
    missing = len(entry.shape) - len(named)
    ellipses = [n for n, each in enumerate(index) if each is Ellipsis]
    if missing < 0 or len(ellipses) > 1:
        raise InvalidTransfer(
            f"{len(index)} indices are too many for tensor {clipped(entry.name)}, whose shape is "
            f"{entry.shape}",
            where=CALL,
            remedy=f"pass at most {len(entry.shape)} and one ellipsis",
        )
    at = ellipses[0] if ellipses else len(named)
    return [*named[:at], *[slice(None)] * missing, *named[at:]]


def _integer_or_slice(given: Any) -> int | slice:
    """Raises `InvalidOperand` for anything else, such as an array of integers."""
    if isinstance(given, slice):
        return given
    try:
        if isinstance(given, bool) or getattr(given, "shape", ()) != ():
            raise TypeError
        return operator.index(given)
    except TypeError:
        raise InvalidOperand(
            f"an index is {clipped(given)}, not an integer, a slice or an ellipsis",
            where=CALL,
            remedy="load the whole tensor with get_tensor(), and index it",
        ) from None


def _indices(given: slice, size: int, entry: TensorEntry) -> range:
    try:
        found = range(*given.indices(size))
    except (TypeError, ValueError) as error:
        raise InvalidOperand(
            f"{given} is no slice: {error}", where=CALL, remedy="pass slice(begin, end)"
        ) from None
    if found.step < 1:
        raise InvalidTransfer(
            f"{given} of tensor {clipped(entry.name)} has a step below 1",
            where=CALL,
            remedy="load the slice in its own order, and flip it",
        )
    return found


def parts_of(entry: TensorEntry, part: TensorSlice | None) -> Iterator[TensorRange]:
    """The ranges of the file that have the box of a slice, in the order of the file; ``part`` None:
    the whole tensor.

    What lies between two rows of the box is read and dropped if it is short; then one part has
    many rows.
    """
    if part is None or part.shape == entry.shape or 0 in part.shape:
        nbytes = 0 if part is not None and 0 in part.shape else entry.nbytes
        yield TensorRange(entry.name, entry.offset, nbytes)
        return
    item = entry.nbytes // math.prod(entry.shape)
    last = max(n for n, (own, size) in enumerate(zip(part.shape, entry.shape, strict=True))
               if own != size)  # fmt: skip
    strides = [item * math.prod(entry.shape[n + 1 :]) for n in range(len(entry.shape))]
    take = len(part.ranges[last]) * strides[last]
    begin = entry.offset + part.ranges[last].start * strides[last]
    stride = strides[last - 1] if last else take
    rows = part.ranges[last - 1] if last else range(1)
    at_once = 1 if stride - take > GAP_BYTES else max(1, (SPAN_BYTES - take) // stride + 1)
    at = 0
    for outer in product(*part.ranges[: max(last - 1, 0)]):
        start = begin + sum(i * each for i, each in zip(outer, strides, strict=False))
        for first in range(rows.start, rows.stop, at_once):
            count = min(at_once, rows.stop - first)
            offset = start + first * stride if last else start
            yield TensorRange(entry.name, offset, (count - 1) * stride + take, at, count, stride)
            at += count * take
