"""Arguments that a call does not have: one line names the argument and how the call is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from waywiser import transfer

HERE, THERE = np.zeros(4, np.uint8), np.ones(4, np.uint8)
CALLS = [
    "copy", "copy_async", "copy_batch", "copy_batch_async", "copy_blocks", "copy_blocks_async",
    "read", "read_async", "write", "write_async", "submit", "plan", "explain", "stats", "usage",
]  # fmt: skip


def error_text(call: Callable[..., object], *given: Any, **named: Any) -> str:
    with pytest.raises(TypeError) as caught:
        call(*given, **named)
    assert isinstance(caught.value, transfer.InvalidOperand)
    assert str(caught.value).isprintable(), "one line"
    return str(caught.value)


@pytest.mark.parametrize("owner", [transfer, transfer.Context(threads=1)])
@pytest.mark.parametrize("name", CALLS)
def test_every_call_says_how_it_is_written(owner: Any, name: str) -> None:
    call = getattr(owner, name)
    assert f"{name}: there is no argument nonsense (write {name}(" in error_text(call, nonsense=1)
    said = error_text(call, *range(9))
    assert "9 arguments are given" in said
    assert "incompatible" not in said


@pytest.mark.parametrize(
    ("name", "given", "named", "said"),
    [
        (
            "copy_batch",
            ([HERE], [THERE]),
            {},
            "copy_batch: 2 arguments are given by position, and none may be: give dsts by name "
            "(write copy_batch(dsts=..., srcs=..., stream=None))",
        ),
        (
            "copy",
            (HERE, THERE, None),
            {},
            "copy: 3 arguments are given by position, and at most 2 may be: give stream by name "
            "(write copy(dst, src, stream=None))",
        ),
        (
            "copy",
            (HERE,),
            {},
            "copy: the argument src is missing (write copy(dst, src, stream=None))",
        ),
        (
            "copy",
            (HERE, THERE),
            {"dst": HERE},
            "copy: the argument dst is given twice, by position and by name "
            "(write copy(dst, src, stream=None))",
        ),
        (
            "explain",
            (HERE, THERE, 1, 1, 1),
            {},
            "explain: 5 arguments are given by position, and at most 4 may be: give dsts by name",
        ),
        ("usage", (1,), {}, "usage: 1 argument is given, and it takes none (write usage())"),
        ("copy_batch", (), {"dsts": [HERE]}, "copy_batch: the argument srcs is missing"),
        ("copy_batch", (), {"dsts": 3, "srcs": []}, "copy_batch: dsts is of type int, not a"),
        ("read", ("file",), {}, "read: the argument dst is missing (write read(path_or_fd, dst, "),
        ("read", ("file", HERE, 4096), {}, "at most 2 may be: give offset by name"),
        ("copy", (3, THERE), {}, "copy: the destination is of type int, not an array (pass a"),
        ("copy", (HERE, None), {}, "copy: the source is None, not an array (pass a"),
        ("copy", (HERE, THERE), {"stream": -1}, "copy: the stream is -1, not a CUDA stream (pass"),
        ("copy_async", (HERE, THERE), {"stream": "x"}, "copy: the stream is of type str, not a"),
    ],
)
def test_the_argument_is_named(
    name: str, given: tuple[Any, ...], named: dict[str, Any], said: str
) -> None:
    assert said in error_text(getattr(transfer, name), *given, **named)


def test_methods_of_a_handle_are_named_with_it() -> None:
    handle: Any = transfer.copy_async(HERE.copy(), THERE)
    assert "TransferHandle.done: 1 argument is given" in error_text(handle.done, 1)
    assert "TransferHandle.wait: 2 arguments are given" in error_text(handle.wait, 1, 2)
    assert "TransferHandle.wait: the stream is of type str" in error_text(handle.wait, "x")
    assert "TransferHandle.result: there is no argument x" in error_text(handle.result, x=1)
    assert "TransferHandle.cancel: 1 argument is given" in error_text(handle.cancel, 1)
    assert "TransferHandle.query: 1 argument is given" in error_text(handle.query, 1)
    said = error_text(handle.result, "soon")
    assert "TransferHandle.result: the timeout is of type str, not a number of seconds" in said
    assert handle.result(timeout=60) == 4
    assert handle.result(np.float64(1)) == 4


def test_other_calls_of_handles_and_plans_are_named_too() -> None:
    plan: Any = transfer.plan([])
    assert "TransferPlan.submit: 1 argument is given by position" in error_text(plan.submit, 1)
    assert "wait_any: the argument handles is missing" in error_text(transfer.wait_any)


def test_a_method_on_something_else_is_an_error() -> None:
    copy: Any = transfer.Context.copy
    assert "copy: it is called on an object of type int" in error_text(copy, 3, HERE, THERE)


def test_docstrings_have_the_call_and_no_overload() -> None:
    for name in CALLS:
        doc = getattr(transfer, name).__doc__
        assert doc.startswith(f"{name}(")
        assert "Overloaded" not in doc
        assert "kwargs" not in doc


@pytest.mark.parametrize("name", ["plain", "peer_access"])
def test_a_switch_of_a_context_is_no_text(name: str) -> None:
    with pytest.raises(TypeError, match=rf"Context: {name} is 'no', .*pass {name}=True or"):
        transfer.Context(**{name: "no"})  # type: ignore[arg-type]


def test_a_path_with_a_null_byte_is_one_line() -> None:
    with pytest.raises(ValueError, match=r"read 'a\\x00b': .*\(pass the path of a file\)"):
        transfer.read("a\0b", HERE)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(("x",), {}), ((-1,), {}), ((1, "zz"), {}), ((1, object), {}), ((1,), {"numa": -1})],
)
def test_new_memory_is_an_error_with_what_to_do(
    arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    with pytest.raises(transfer.TransferError, match=r"^pinned_empty: .*\(pass .*\)$"):
        transfer.pinned_empty(*arguments, **named)


@pytest.mark.parametrize("seconds", [True, "0.1", b"1", [1], {}])
def test_seconds_are_a_number(seconds: Any) -> None:
    with pytest.raises(transfer.InvalidOperand, match=r"spin_seconds is .*, not a number"):
        transfer.Context(spin_seconds=seconds)
