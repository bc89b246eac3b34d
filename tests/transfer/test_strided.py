"""Arrays that are not contiguous: every element, and nothing between them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray, random_array, same_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from waywiser import transfer

DTYPES = [np.uint8, np.int16, np.float32, np.complex128]


@st.composite
def views(draw: st.DrawFn) -> tuple[tuple[int, ...], list[Any]]:
    """A shape, and how two views of that shape are cut out of two larger arrays."""
    dimensions = draw(st.integers(1, 4))
    shape = tuple(draw(st.integers(1, 5)) for _ in range(dimensions))
    cuts = []
    for _ in range(2):
        order = draw(st.permutations(range(dimensions)))
        steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in shape]
        before = [draw(st.integers(0, 1)) for _ in shape]
        cuts.append((order, steps, before))
    return shape, cuts


def cut(shape: tuple[int, ...], how: Any, dtype: Any, seed: int) -> tuple[Any, Any]:
    """A random array and a view of it with the given shape."""
    order, steps, before = how
    lengths = [
        (count - 1) * abs(step) + 1 + 2 * gap
        for count, step, gap in zip(shape, steps, before, strict=True)
    ]
    whole = random_array(tuple(lengths[axis] for axis in order), dtype, seed)
    view = whole.transpose(np.argsort(order))
    index = []
    for count, step, gap in zip(shape, steps, before, strict=True):
        end = gap + (count - 1) * abs(step)
        if step > 0:
            index.append(slice(gap, end + 1, step))
        else:
            index.append(slice(end, None if gap == 0 else gap - 1, step))
    view = view[tuple(index)]
    assert view.shape == shape
    return whole, view


def on_gpu(whole: Any, view: Any, gpu: int) -> tuple[GpuArray, GpuArray]:
    there = GpuArray(whole.shape, whole.dtype, gpu=gpu).set(whole)
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    return there, there.view(view.shape, view.strides, offset)


@settings(deadline=None, max_examples=150)
@given(views(), st.sampled_from(DTYPES), st.sampled_from(["host", "to", "from", "between"]))
def test_every_element_and_nothing_else(how: Any, dtype: Any, places: str) -> None:
    shape, (to_cut, from_cut) = how
    to_whole, to_view = cut(shape, to_cut, dtype, 1)
    _, from_view = cut(shape, from_cut, dtype, 2)
    expected = to_whole.copy()
    offset = to_view.__array_interface__["data"][0] - to_whole.__array_interface__["data"][0]
    np.ndarray(shape, dtype, expected.data.cast("B"), offset, to_view.strides)[...] = from_view
    destination, source, there = to_view, from_view, None
    if places in ("to", "between"):
        there, destination = on_gpu(to_whole, to_view, 0)
    if places in ("from", "between"):
        base = from_view
        while base.base is not None:
            base = base.base
        base = base.view(dtype)
        flat = base.reshape(-1)
        _, source = on_gpu(flat, from_view, 1 if places == "between" else 0)
    transfer.copy(destination, source)
    assert same_bytes(to_whole if there is None else there.get(), expected)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_source_may_be_broadcast(asynchronous: bool) -> None:
    source = np.broadcast_to(random_array(50, np.float32), (20, 50))
    destination = np.zeros((20, 50), np.float32)
    if asynchronous:
        assert transfer.copy_async(destination, source).result() == destination.nbytes
    else:
        transfer.copy(destination, source)
    assert same_bytes(destination, source)


def test_arrays_in_the_same_order_are_one_piece() -> None:
    source = np.asfortranarray(random_array((300, 500), np.float64))
    destination = np.zeros((300, 500), np.float64, order="F")
    assert "pieces" not in transfer.explain(destination, source)
    transfer.copy(destination, source)
    assert same_bytes(destination, source)


def test_pieces_are_as_long_as_they_can_be() -> None:
    source = random_array((4, 6, 8), np.uint8)
    destination = np.zeros((4, 10, 8), np.uint8)
    assert "4 pieces, 192 bytes in all" in transfer.explain(destination[:, 2:8], source)


def test_columns_to_a_gpu_and_back() -> None:
    source = random_array((1000, 64), np.float32)
    there = GpuArray((1000, 16), np.float32)
    back = np.zeros((1000, 64), np.float32)
    transfer.copy(there, source[:, 8:24])
    assert same_bytes(there.get(), source[:, 8:24])
    transfer.copy(back[:, 40:56], there)
    assert same_bytes(back[:, 40:56], source[:, 8:24])
    assert not back[:, :40].any()
    assert not back[:, 56:].any()
