"""Calls of PyTorch inside and outside of `patch()`, with every combination of two properties: equal
results, equal errors, and the library copies exactly where it should. Run by its test.

    python patched_calls.py [CASES]
"""

from __future__ import annotations

import itertools
import random
import sys
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from waywiser.transfer import torch_patch
from waywiser.transfer.torch import patch

MIB = 1 << 20
PLAIN_BELOW = 8 * MIB
"""Without a policy the library's copies below this size are plain copies."""

DTYPES = [
    *("bool", "uint8", "int8", "int16", "uint16", "int32", "int64", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2"),
]
PROPERTIES: dict[str, list[Any]] = {
    "call": [
        *("copy_", "copy_ by name", "copy_ to another dtype", "copy_ broadcast"),
        *("to text", "to device", "to keyword", "to number", "to tensor", "to dtype", "to copy"),
        *("to same dtype", "to channels last", "to other", "cpu", "cuda", "cuda number"),
        *("pin_memory", "class"),
    ],
    "source": ["pageable", "pinned", "gpu"],
    "destination": ["pageable", "pinned", "gpu"],
    "dtype": DTYPES,
    "layout": [
        *("contiguous", "transposed", "channels last", "offset", "one", "every second", "expanded"),
        *("conjugate", "negative", "reordered"),
    ],
    "nbytes": [0, 4096, MIB + 64, PLAIN_BELOW - 64, PLAIN_BELOW, PLAIN_BELOW + 64],
    "non_blocking": [False, True],
    "grad": ["none", "source", "destination", "both", "no_grad", "inference", "left inference"],
    "kind": ["tensor", "parameter", "subclass", "overriding subclass"],
    "mode": [
        *("none", "none", "none", "function", "two functions", "dispatch", "device", "vmap"),
        *("forward", "tracing", "other stream", "sync error"),
    ],
}


@dataclass(frozen=True)
class Case:
    """One call with its operands and surroundings."""

    call: str
    source: str
    destination: str
    dtype: str
    layout: str
    nbytes: int
    non_blocking: bool
    grad: str
    kind: str
    mode: str


class Subclass(torch.Tensor):
    """A subclass that changes nothing."""


SEEN: list[str] = []
"""What PyTorch has passed to overrides."""

BEFORE = {name: getattr(torch.Tensor, name) for name in ("copy_", "to", "cpu", "cuda")}


def note(function: Any) -> None:
    names = [name for name, method in BEFORE.items() if method is function]
    SEEN.append(names[0] if names else getattr(function, "__name__", "?"))


class Overriding(torch.Tensor):
    """A subclass that notes the calls."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        note(func)
        return super().__torch_function__(func, types, args, kwargs or {})


class Noting(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        note(func)
        return func(*args, **(kwargs or {}))


class Dispatching(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        SEEN.append(str(func))
        return func(*args, **(kwargs or {}))


TYPES: dict[str, type] = {
    "tensor": torch.Tensor,
    "parameter": torch.nn.Parameter,
    "subclass": Subclass,
    "overriding subclass": Overriding,
}
BYTES = torch.frombuffer(bytearray(random.Random(1).randbytes(20 * MIB)), dtype=torch.uint8)


def bytes_of(dtype: torch.dtype, nbytes: int, start: int) -> torch.Tensor:
    data = BYTES[start : start + nbytes]
    return (data % 2 if dtype is torch.bool else data.clone()).view(dtype)


def operand(case: Case, where: str, dtype: torch.dtype, layout: str, start: int) -> Any:
    """A tensor of about `nbytes` with this layout, in this memory."""
    made = laid_out(case, where, dtype, layout, start)
    assert not made.numel() or made.is_cuda == (where == "gpu"), (case, where)
    assert not made.numel() or is_pinned(made) == (where == "pinned"), (case, where)
    return made


def is_pinned(tensor: Any) -> bool:
    """Whether the memory is pinned. PyTorch's `is_pinned()` of a conjugate or negative view
    answers for a copy of it, in pageable memory."""
    return bool(tensor.untyped_storage().is_pinned())


def laid_out(case: Case, where: str, dtype: torch.dtype, layout: str, start: int) -> Any:
    width = 16
    rows = case.nbytes // getattr(torch, case.dtype).itemsize // width
    count = rows * width
    extra = {"every second": 2, "offset": 1}.get(layout, 1)
    flat = bytes_of(dtype, (count * extra + width) * dtype.itemsize, start)
    if where == "gpu":
        flat = flat.cuda()
    elif where == "pinned":
        flat = torch.empty_like(flat, pin_memory=True).copy_(flat)
    if layout == "offset":
        return flat[width // 2 :][:count].view(rows, width)
    if layout == "every second":
        return flat[: 2 * count].view(rows, 2 * width)[:, ::2]
    whole = flat[:count].view(rows, width)
    if layout == "transposed":
        return whole.view(width, rows).t()
    if layout == "reordered":
        return whole.view(4, 4, rows).permute(2, 0, 1)
    if layout == "channels last":
        reordered = whole.view(rows, 4, 2, 2).to(memory_format=torch.channels_last)
        pinned = torch.empty_like(reordered, pin_memory=where == "pinned")
        return pinned.copy_(reordered)  # `to` has returned pageable memory
    if layout == "one":
        return whole.view(1, rows, 1, width)
    if layout == "expanded":
        return flat[:width].expand(rows, width)
    if layout == "conjugate" and dtype.is_complex:
        return whole.conj()
    if layout == "negative" and dtype.is_floating_point and dtype.itemsize > 1:
        return torch._neg_view(whole)
    return whole


def dressed(case: Case, tensor: Any, requires_grad: bool) -> Any:
    kind = TYPES[case.kind]
    requires_grad = requires_grad and (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad=requires_grad)
    if kind is not torch.Tensor:
        tensor = tensor.as_subclass(kind)
    return tensor.requires_grad_(requires_grad)


def surroundings(case: Case, stack: ExitStack) -> None:
    if case.grad == "no_grad":
        stack.enter_context(torch.no_grad())
    if case.grad == "inference":
        stack.enter_context(torch.inference_mode())
    modes: dict[str, list[Callable[[], Any]]] = {
        "function": [Noting],
        "two functions": [Noting, Noting],
        "dispatch": [Dispatching],
        "device": [lambda: torch.device("cuda")],
        "forward": [torch.autograd.forward_ad.dual_level],
        "other stream": [lambda: torch.cuda.stream(torch.cuda.Stream())],
    }
    for mode in modes.get(case.mode, []):
        stack.enter_context(mode())
    if case.mode == "sync error":
        torch.cuda.set_sync_debug_mode("error")
        stack.callback(torch.cuda.set_sync_debug_mode, "default")


def made_call(case: Case) -> tuple[Callable[[], Any], Any, Any]:
    """The call, its destination or None, and its source."""
    dtype = getattr(torch, case.dtype)
    with ExitStack() as stack:
        if case.grad == "left inference":
            stack.enter_context(torch.inference_mode())
        source = operand(case, case.source, dtype, case.layout, 0)
    source = dressed(case, source, case.grad in ("source", "both", "no_grad"))
    blocking = {"non_blocking": case.non_blocking}
    to = "cpu" if case.source == "gpu" else "cuda"
    if case.call.startswith("copy_"):
        # The destination has another order than the source.
        reorders = case.layout == "channels last" and case.non_blocking
        other = torch.float32 if dtype is not torch.float32 else torch.float64
        with ExitStack() as stack:
            if case.grad == "left inference":
                stack.enter_context(torch.inference_mode())
            destination = operand(
                case,
                case.destination,
                other if case.call.endswith("dtype") else dtype,
                "contiguous"
                if case.layout in ("conjugate", "negative") or reorders
                else case.layout,
                4096,
            )
            if reorders:
                destination = destination.view(-1, 4, 2, 2)
        destination = dressed(case, destination, case.grad in ("destination", "both", "no_grad"))
        origin = source[:1] if case.call.endswith("broadcast") else source
        calls: dict[str, Callable[[], Any]] = {
            "copy_ by name": lambda: destination.copy_(other=origin, **blocking)
        }
        call = calls.get(case.call, lambda: destination.copy_(origin, case.non_blocking))
        return call, destination, source
    there = torch.empty(1, dtype=dtype, device=to)
    calls = {
        "to text": lambda: source.to(to, **blocking),
        "to device": lambda: source.to(torch.device(to), None, case.non_blocking),
        "to keyword": lambda: source.to(device=to, dtype=dtype, **blocking),
        "to number": lambda: source.to(0, **blocking),
        "to tensor": lambda: source.to(there, case.non_blocking),
        "to dtype": lambda: source.to(to, torch.float32, **blocking),
        "to same dtype": lambda: source.to(dtype, **blocking),
        "to copy": lambda: source.to(to, copy=True, **blocking),
        "to channels last": lambda: source.to(
            to, memory_format=torch.channels_last if source.dim() == 4 else torch.preserve_format
        ),
        "to other": lambda: source.to(other=there, **blocking),
        "cpu": lambda: source.cpu(),
        "cuda": lambda: source.cuda(**blocking),
        "cuda number": lambda: source.cuda(0, case.non_blocking),
        "pin_memory": lambda: source.pin_memory(),
        "class": lambda: torch.Tensor.to(source, to, **blocking),
    }
    return calls[case.call], None, source


def describe(tensor: Any) -> tuple[Any, ...]:
    torch.cuda.synchronize()
    with torch._C.DisableTorchFunctionSubclass(), torch.inference_mode(tensor.is_inference()):
        plain = tensor.detach().as_subclass(torch.Tensor)
        values = plain.resolve_conj().resolve_neg().contiguous().cpu().view(-1)
        data = values.view(torch.uint8).numpy() if values.numel() else b""
        return (
            *(type(tensor), tensor.dtype, tensor.device, tuple(tensor.shape), tensor.stride()),
            *(tensor.storage_offset(), tensor.requires_grad, tensor.is_leaf),
            *(type(tensor.grad_fn).__name__, tensor.is_inference(), tensor.layout),
            None if tensor.is_inference() else tensor._version,
            tensor.device.type == "cpu" and is_pinned(plain),
            *(tensor.is_conj(), tensor.is_neg(), zlib.adler32(data)),
        )


def outcome(case: Case, *, patched: bool) -> tuple[Any, ...]:
    """What the call did, and what the program can see of it."""
    SEEN.clear()
    try:
        call, destination, source = made_call(case)
    except RuntimeError as error:  # the case is none: the operands cannot be made
        return "no case", str(error)
    torch.cuda.synchronize()  # the call may be in another stream
    with ExitStack() as stack:
        if patched:
            stack.enter_context(patch())
        surroundings(case, stack)
        try:
            if case.mode == "vmap":
                result = torch.func.vmap(lambda _: call())(torch.zeros(2))
            elif case.mode == "tracing":
                result = traced(call)
            else:
                result = call()
        except Exception as error:
            result = error
    seen = tuple(SEEN)
    parts: list[Any] = [seen, result is destination, result is source]
    for each in (result, destination, source):
        parts.append(describe(each) if isinstance(each, torch.Tensor) else each)
    if isinstance(result, Exception):
        parts[3] = (type(result), str(result))
    return tuple(parts)


def traced(call: Callable[[], Any]) -> Any:
    kept: list[Any] = []

    def run(anything: Any) -> Any:
        kept.append(call())
        return anything + 1

    torch.jit.trace(run, torch.zeros(1), check_trace=False)
    return kept[0]


def is_undefined(case: Case) -> bool:
    """Whether the result depends on time without the library too.

    PyTorch conjugates or negates a pinned destination on the CPU although its copy may still run.
    """
    return (
        case.call.startswith("copy_")
        and case.non_blocking
        and case.source == "gpu"
        and case.destination == "pinned"
        and case.layout in ("conjugate", "negative")
    )


def is_ours(case: Case) -> bool:
    """Whether the library should have made the copy: the rules of the documentation."""
    size = torch.empty(0, dtype=getattr(torch, case.dtype)).element_size()
    nbytes = case.nbytes // size // 16 * 16 * size
    changed = case.layout in ("every second", "expanded") or (
        case.layout == "conjugate" and case.dtype.startswith("complex")
    )
    if case.layout == "negative":
        changed = case.dtype.startswith(("float", "bfloat")) and "8_" not in case.dtype
    recorded = case.dtype.startswith(("float", "bfloat", "complex")) and (
        case.grad == "source"
        or case.grad == "both"
        or (case.grad == "destination" and case.call.startswith("copy_"))
    )
    if (
        nbytes < PLAIN_BELOW
        or changed
        or recorded
        or case.kind not in ("tensor", "parameter")
        or case.mode not in ("none", "other stream")
    ):
        return False
    if case.call == "pin_memory":
        return False
    sides = {case.source}
    if case.call.startswith("copy_"):
        sides.add(case.destination)
        if case.call == "copy_ to another dtype":
            return False
        if case.call == "copy_ broadcast" and case.layout != "one":  # its first length is 1
            return False
        if case.grad == "left inference":
            return False
        if case.layout == "channels last" and case.non_blocking:
            return False
        return sides == {"pageable", "gpu"}
    if case.call in ("class", "to same dtype", "to other"):
        return False
    if case.call == "to channels last" and case.layout in ("channels last", "one"):
        return False
    if case.call == "to dtype" and case.dtype != "float32":
        return False
    if case.source == "pinned":
        return False
    if case.source == "gpu":
        names_host = case.call.startswith("to ") and case.call != "to number"
        blocking = case.call == "cpu" or not case.non_blocking or case.call == "to channels last"
        return (names_host or case.call == "cpu") and blocking
    return case.call != "cpu"


def cases(count: int) -> Iterator[Case]:
    """Random cases, and then one more for each pair of properties that none of them has."""
    source = random.Random(34)
    missing = {
        ((one, first), (other, second))
        for one, other in itertools.combinations(PROPERTIES, 2)
        for first in PROPERTIES[one]
        for second in PROPERTIES[other]
    }
    usual = {"kind": "tensor", "mode": "none", "grad": "none", "layout": "contiguous"}

    def drawn(**fixed: Any) -> Case:
        values = {name: source.choice(values) for name, values in PROPERTIES.items()}
        for name, value in usual.items():  # else the library would copy in few of the cases
            if source.random() < 0.6:
                values[name] = value
        if source.random() < 0.6:
            values["nbytes"] = source.choice([PLAIN_BELOW, PLAIN_BELOW + 64])
        return Case(**{**values, **fixed})

    for number in itertools.count():
        if number < count:
            case = drawn()
        elif missing:
            (one, first), (other, second) = next(iter(sorted(missing, key=str)))
            case = drawn(**{one: first, other: second})
        else:
            return
        missing -= set(itertools.combinations(vars(case).items(), 2))
        yield case


def check_cases(count: int) -> None:
    copies: list[bool] = []
    original = torch_patch._copy

    def noted(*args: Any) -> bool:
        copies.append(original(*args))
        return copies[-1]

    module: Any = torch_patch
    module._copy = noted
    found: Counter[str] = Counter()
    failures = []
    for number, case in enumerate(cases(count)):
        if number % 100 == 0:
            print(f"{number} cases", flush=True)
        expected = outcome(case, patched=False)
        assert not any(copies), case
        copies.clear()
        actual = outcome(case, patched=True)
        copied = any(copies)
        copies.clear()
        if expected[0] == "no case":
            found["cannot be made"] += 1
            continue
        found[
            "errors"
            if isinstance(expected[3][0], type) and issubclass(expected[3][0], Exception)
            else "copied by the library"
            if copied
            else "PyTorch's"
        ] += 1
        if is_undefined(case):
            continue
        if actual != expected:
            failures.append(f"{case}\n  expected {expected}\n  actual   {actual}")
        elif copied != is_ours(case):
            failures.append(f"{case}\n  the library {'has' if copied else 'has not'} copied")
        if len(failures) == 10:
            break
    module._copy = original
    print(", ".join(f"{count} {name}" for name, count in sorted(found.items())))
    if failures:
        raise SystemExit("\n".join(failures))
    assert found["copied by the library"] > count / 20
    # After many blocks the methods stay, and call PyTorch's outside of one.
    stays = module._installations >= module.MOST_INSTALLATIONS
    assert stays or not any(name in vars(torch.Tensor) for name in BEFORE)


def errors() -> dict[str, Callable[[], Any]]:
    host, gpu = torch.ones(20 * MIB), torch.ones(20 * MIB, device="cuda")
    leaf = torch.ones(20 * MIB, device="cuda", requires_grad=True)
    count = torch.cuda.device_count()
    return {
        "shape": lambda: gpu.copy_(host[1:]),
        "no tensor": lambda: gpu.copy_(1),
        "expanded destination": lambda: gpu[:1].expand(20 * MIB).copy_(host),
        "leaf": lambda: leaf.copy_(host),
        "name of a device": lambda: host.to("gpu"),
        "number of a GPU": lambda: host.to(f"cuda:{count}"),
        "negative number": lambda: host.to(-1),
        "number of a GPU, cuda": lambda: host.cuda(count),
        "host, cuda": lambda: host.cuda("cpu"),
        "GPU, cuda of the host": lambda: gpu.cuda("cpu"),
        "truth value": lambda: host.to(True),
        "unknown argument": lambda: host.to("cuda", fast=True),
        "two devices": lambda: host.to("cuda", device="cuda"),
        "too many": lambda: host.to("cuda", None, False, False, None),
        "no truth value": lambda: host.to("cuda", non_blocking=1),
        "memory format": lambda: gpu.cpu(memory_format=torch.channels_last),
        "GPU memory to pin": lambda: gpu.pin_memory(),
        "too large": lambda: host[:1].expand(1 << 40).to("cuda"),
        "meta": lambda: host.copy_(torch.ones(20 * MIB, device="meta")),
    }


def caught(call: Callable[[], Any]) -> tuple[type, str]:
    try:
        return type(call()), ""
    except Exception as error:
        return type(error), str(error)


def check_errors() -> None:
    calls = errors()
    for name, call in calls.items():
        expected = caught(call)
        with patch():
            actual = caught(call)
        assert actual == expected, f"{name}: {actual} instead of {expected}"
    print(f"{len(calls)} calls with errors")


def check_memory_errors() -> None:
    """A GPU without room: the same error, and nothing stays allocated."""
    host = torch.ones(64 * MIB)
    torch.cuda.empty_cache()  # what earlier checks left would be enough
    free = torch.cuda.mem_get_info()[0]
    filling = torch.empty(free - 100 * MIB, dtype=torch.uint8, device="cuda")
    with patch():
        kind, text = caught(lambda: host.to("cuda"))
    assert kind is torch.OutOfMemoryError, (kind, text)
    del filling
    torch.cuda.empty_cache()
    with patch():
        assert bool((host.to("cuda") == 1).all())


def check_another_stream() -> None:
    """A call that blocks has ended on the GPU too: PyTorch's have."""
    source, target = torch.empty(64 * MIB), torch.zeros(64 * MIB, device="cuda")
    other = torch.cuda.Stream()
    torch.cuda.synchronize()
    for value in range(1, 21):
        source.fill_(value)
        with patch():
            target.copy_(source)
        with torch.cuda.stream(other):
            assert bool((target == value).all())


def check_a_source_that_changes() -> None:
    """A source in pageable memory may be changed at once, also with non_blocking."""
    source, target = torch.empty(64 * MIB), torch.zeros(64 * MIB, device="cuda")
    for value in range(1, 11):
        source.fill_(value)
        with patch():
            target.copy_(source, non_blocking=True)
            source.zero_()
        assert bool((target == value).all())


def check_capture() -> None:
    pinned = torch.ones(20 * MIB, pin_memory=True)
    target = torch.zeros(20 * MIB, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with patch(), torch.cuda.graph(graph):
        target.copy_(pinned, non_blocking=True)
    pinned.fill_(7)
    graph.replay()
    torch.cuda.synchronize()
    assert bool((target == 7).all())


def check_compiled() -> None:
    def double(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to("cuda") * 2

    source = torch.ones(20 * MIB)
    with patch():
        compiled = torch.compile(double, backend="eager", fullgraph=True)
        assert bool((compiled(source) == 2).all())
        assert bool((compiled(source + 1) == 4).all())


def check_modules() -> None:
    """All of a module, its buffers and the state of an optimizer."""
    made = torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.BatchNorm1d(2048))
    made.register_buffer("table", torch.randn(4 * MIB))
    before = {name: value.clone() for name, value in made.state_dict().items()}
    with patch():
        made.to("cuda")
        assert all(value.is_cuda for value in made.state_dict().values())
        made.cpu()
        optimizer = torch.optim.Adam(made.parameters())
        made.load_state_dict({name: value.cuda() for name, value in before.items()})
    assert all(torch.equal(value, before[name]) for name, value in made.state_dict().items())
    assert all(type(each) is torch.nn.Parameter for each in made.parameters())
    del optimizer


def main() -> None:
    if not torch.cuda.is_available():
        raise SystemExit("torch finds no GPU")
    torch.cuda.init()
    warnings.simplefilter("ignore")
    check_cases(int(sys.argv[1]) if len(sys.argv) > 1 else 600)
    check_errors()
    check_another_stream()
    check_a_source_that_changes()
    check_capture()
    check_compiled()
    check_modules()
    check_memory_errors()


if __name__ == "__main__":
    main()
