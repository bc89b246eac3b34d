"""`patch()` changes copies of one thread in one block, and nothing else: over a stand-in for torch,
whose tensors on a GPU are arrays of the fake GPU. `tests/gpu/patched_calls.py` compares results and
errors with those of PyTorch on a GPU."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_gpu import GpuArray, configure, gate_on, random_array, same_bytes
from fake_gpu import default_stream as stream_of_gpu

MODULE = "waywiser.transfer.torch_patch"
MIB = 1 << 20
LARGE, SMALL = 9 * MIB, 3 * MIB
NAMES = ("copy_", "to", "cpu", "cuda")


class Device:
    """A kind of device and a number."""

    def __init__(self, kind: str | Device, index: int | None = None) -> None:
        if isinstance(kind, Device):
            kind, index = kind.type, kind.index
        self.type: str
        self.type, _, number = kind.partition(":")
        if self.type not in ("cpu", "cuda", "meta"):
            raise RuntimeError(f"no device: {kind}")
        self.index = int(number) if number else index


class Base:
    """What `torch.Tensor` inherits its methods from. A call of one of them is noted."""

    def __init__(self, array: Any, *, pinned: bool = False, requires_grad: bool = False) -> None:
        self.array = array
        self.pinned = pinned
        self.requires_grad = requires_grad
        self.layout = STRIDED
        self.device = Device("cuda", 0) if isinstance(array, GpuArray) else Device("cpu")
        self.dtype = DTYPES[array.dtype.name]
        self.shape = array.shape
        self.nbytes = int(np.prod(self.shape)) * array.dtype.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        found: dict[str, Any] = self.array.__cuda_array_interface__
        return found

    @property
    def data(self) -> Any:
        return type(self)(self.array)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        where: tuple[int, int] = self.array.__dlpack_device__()
        return where

    def stride(self) -> tuple[int, ...]:
        item = self.array.dtype.itemsize
        strides = self.array.strides
        if strides is None:
            strides = np.empty(self.shape, self.array.dtype).strides
        return tuple(each // item for each in strides)

    def is_contiguous(self) -> bool:
        return self.array.strides is None or bool(self.array.flags.c_contiguous)

    def data_ptr(self) -> int:
        return 1

    def is_pinned(self) -> bool:
        return self.pinned

    def is_inference(self) -> bool:
        return False

    is_conj = is_neg = _is_zerotensor = has_names = is_inference

    def copy_(self, other: Any, non_blocking: bool = False) -> Any:
        CALLED.append("copy_")
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        CALLED.append("to")
        return "PyTorch's"

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        CALLED.append("cpu")
        return "PyTorch's"

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        CALLED.append("cuda")
        return "PyTorch's"

    def pin_memory(self, *args: Any, **kwargs: Any) -> Any:
        CALLED.append("pin_memory")
        return "PyTorch's"


class Dtype:
    """A type with torch's name."""

    def __init__(self, name: str) -> None:
        self.name = name


STRIDED = object()
DTYPES = {name: Dtype(name) for name in ("uint8", "float32", "int64")}
CALLED: list[str] = []


def empty_strided(
    shape: Any, stride: Any, *, dtype: Any, device: Any, pin_memory: bool = False
) -> Any:
    torch = sys.modules["torch"]
    if Device(device).type == "cuda":
        return torch.Tensor(GpuArray(shape, dtype.name))
    item = np.dtype(dtype.name).itemsize
    base = np.empty(int(np.prod(shape)), dtype.name)
    strides = tuple(each * item for each in stride)
    array = np.lib.stride_tricks.as_strided(base, shape, strides)
    return torch.Tensor(array, pinned=pin_memory)


def stand_in() -> Any:
    torch: Any = ModuleType("torch")
    torch.Tensor = type("Tensor", (Base,), {})
    torch.nn = SimpleNamespace(Parameter=type("Parameter", (torch.Tensor,), {}))
    torch.strided, torch.preserve_format, torch.device = STRIDED, object(), Device
    vars(torch).update(DTYPES)
    torch.empty_strided = empty_strided
    torch.is_grad_enabled = lambda: True
    torch.is_inference_mode_enabled = lambda: False
    torch.modes = 0
    torch._C = SimpleNamespace(
        _len_torch_function_stack=lambda: torch.modes,
        _len_torch_dispatch_stack=lambda: 0,
        _functorch=SimpleNamespace(peek_interpreter_stack=lambda: None),
        _get_tracing_state=lambda: None,
    )
    torch.autograd = SimpleNamespace(forward_ad=SimpleNamespace(_current_level=-1))
    torch.compiler = SimpleNamespace(is_compiling=lambda: False)
    torch.cuda = SimpleNamespace(
        is_initialized=lambda: True,
        is_current_stream_capturing=lambda: False,
        get_sync_debug_mode=lambda: 0,
        current_device=lambda: 0,
        device_count=lambda: 1,
    )
    return torch


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The stand-in, which the module under test has imported."""
    found = stand_in()
    monkeypatch.setitem(sys.modules, "torch", found)
    monkeypatch.setitem(sys.modules, MODULE, ModuleType("in between"))
    del sys.modules[MODULE]
    CALLED.clear()
    yield found
    assert not any(name in vars(found.Tensor) for name in NAMES), "the class is as before"


@pytest.fixture
def patch(torch: Any) -> Any:
    return importlib.import_module(MODULE).patch


def on_host(torch: Any, nbytes: int = LARGE, **kept: Any) -> Any:
    return torch.Tensor(random_array(nbytes), **kept)


def on_gpu(torch: Any, nbytes: int = LARGE, **kept: Any) -> Any:
    return torch.Tensor(GpuArray(nbytes).set(random_array(nbytes, seed=1)), **kept)


def values(tensor: Any) -> Any:
    return tensor.array.get() if isinstance(tensor.array, GpuArray) else tensor.array


CALLS: dict[str, Callable[[Any], Any]] = {
    "copy_": lambda torch: on_gpu(torch).copy_(on_host(torch)),
    "copy_ to the host": lambda torch: on_host(torch).copy_(on_gpu(torch), True),
    "copy_ by name": lambda torch: on_gpu(torch).copy_(other=on_host(torch), non_blocking=True),
    "to text": lambda torch: on_host(torch).to("cuda"),
    "to number": lambda torch: on_host(torch).to(0, non_blocking=True),
    "to device and dtype": lambda torch: on_gpu(torch).to(Device("cpu"), torch.uint8, False, True),
    "to keywords": lambda torch: on_gpu(torch).to(device="cpu", dtype=torch.uint8),
    "to tensor": lambda torch: on_host(torch).to(on_gpu(torch, 8)),
    "cpu": lambda torch: on_gpu(torch).cpu(memory_format=torch.preserve_format),
    "cuda": lambda torch: on_host(torch).cuda(),
    "cuda number": lambda torch: on_host(torch).cuda(0, True),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_made_by_the_library(torch: Any, patch: Any, name: str) -> None:
    with patch():
        made = CALLS[name](torch)
    assert not CALLED
    from_gpu = name in ("copy_ to the host", "to device and dtype", "to keywords", "cpu")
    assert made.device.type == ("cpu" if from_gpu else "cuda")
    assert same_bytes(values(made), random_array(LARGE, seed=int(from_gpu)))


OTHERS: dict[str, Callable[[Any], Any]] = {
    "small": lambda torch: on_host(torch, SMALL).to("cuda"),
    "smaller": lambda torch: on_gpu(torch, MIB // 2).cpu(),
    "another dtype": lambda torch: on_host(torch).to("cuda", torch.float32),
    "dtype alone": lambda torch: on_host(torch).to(torch.float32),
    "same device": lambda torch: on_host(torch).to("cpu"),
    "same device, copy_": lambda torch: on_host(torch).copy_(on_host(torch)),
    "host with a number": lambda torch: on_gpu(torch).to("cpu:0"),
    "GPU that does not exist": lambda torch: on_host(torch).to("cuda:1"),
    "no device": lambda torch: on_host(torch).to("nothing"),
    "host by cuda": lambda torch: on_gpu(torch).cuda("cpu"),
    "meta": lambda torch: on_host(torch).to("meta"),
    "truth value": lambda torch: on_host(torch).to(True),
    "pinned result": lambda torch: on_gpu(torch).to("cpu", non_blocking=True),
    "pinned source": lambda torch: on_host(torch, pinned=True).to("cuda", non_blocking=True),
    "pin_memory": lambda torch: on_host(torch).pin_memory(),
    "memory format": lambda torch: on_host(torch).cuda(memory_format="channels_last"),
    "number as truth value": lambda torch: on_host(torch).cuda(0, 1),
    "shape": lambda torch: on_gpu(torch).copy_(on_host(torch, LARGE + 1)),
    "no tensor": lambda torch: on_gpu(torch).copy_(1),
    "unknown argument": lambda torch: on_host(torch).to(device="cuda", nothing=1),
    "twice": lambda torch: on_host(torch).to("cuda", device="cuda"),
    "too many": lambda torch: on_host(torch).to("cuda", None, False, True, None),
    "gradient": lambda torch: on_host(torch, requires_grad=True).to("cuda"),
    "gradient, copy_": lambda torch: on_gpu(torch, requires_grad=True).copy_(on_host(torch)),
    "subclass": lambda torch: subclass(torch).to("cuda"),
    "not dense": lambda torch: torch.Tensor(random_array(2 * LARGE)[::2]).to("cuda"),
}


def subclass(torch: Any) -> Any:
    return type("Sub", (torch.Tensor,), {})(random_array(LARGE))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", OTHERS)
def test_other_calls_are_those_of_pytorch(torch: Any, patch: Any, name: str) -> None:
    OTHERS[name](torch)
    expected = list(CALLED)
    CALLED.clear()
    with patch():
        OTHERS[name](torch)
    assert len(CALLED) == 1
    assert expected == CALLED


@pytest.mark.parametrize(
    "change",
    [
        lambda torch: setattr(torch, "modes", 1),
        lambda torch: setattr(torch._C, "_len_torch_dispatch_stack", lambda: 1),
        lambda torch: setattr(torch._C._functorch, "peek_interpreter_stack", lambda: 1),
        lambda torch: setattr(torch._C, "_get_tracing_state", lambda: 1),
        lambda torch: setattr(torch.autograd.forward_ad, "_current_level", 0),
        lambda torch: setattr(torch.compiler, "is_compiling", lambda: True),
        lambda torch: setattr(torch.cuda, "is_initialized", lambda: False),
        lambda torch: setattr(torch.cuda, "is_current_stream_capturing", lambda: True),
        lambda torch: setattr(torch.cuda, "get_sync_debug_mode", lambda: 2),
    ],
)
def test_what_watches_copies_sees_them(torch: Any, patch: Any, change: Any) -> None:
    change(torch)
    with patch():
        on_host(torch).to("cuda")
        on_gpu(torch).cpu()
    assert CALLED == ["to", "cpu"]


def test_a_pytorch_that_lacks_a_part_is_warned_about_once(torch: Any, patch: Any) -> None:
    del torch._C._get_tracing_state
    with patch(), pytest.warns(UserWarning, match="_get_tracing_state") as caught:
        on_host(torch).to("cuda")
        on_host(torch).to("cuda")
    assert (CALLED, len(caught)) == (["to", "to"], 1)


def test_a_copy_that_fails_is_made_by_pytorch_with_one_warning(torch: Any, patch: Any) -> None:
    host, gpu = on_host(torch), on_gpu(torch)
    configure("fail=copy@1+")
    with patch(), pytest.warns(UserWarning, match="PyTorch makes a copy") as caught:
        assert gpu.copy_(host) is gpu
        assert host.to("cuda") == "PyTorch's"
    assert CALLED == ["copy_", "to"]
    assert len(caught) == 1
    assert len(str(caught[0].message).splitlines()) == 1
    assert caught[0].filename == __file__


def test_a_copy_that_blocks_returns_when_the_gpu_has_all_bytes(torch: Any, patch: Any) -> None:
    """Other streams may use the tensor then, without waiting."""
    host, gpu = on_host(torch), on_gpu(torch)
    ended = threading.Event()

    def run() -> None:
        with patch():
            gpu.copy_(host)
        ended.set()

    gate = gate_on(stream_of_gpu(0))
    thread = threading.Thread(target=run)
    thread.start()
    assert not ended.wait(0.2)
    gate.open()
    thread.join()
    assert same_bytes(np.frombuffer(gpu.array.buffer.read(), np.uint8)[:LARGE], values(host))


@pytest.mark.parametrize("is_inference", [False, True])
def test_a_write_to_the_result_counts_as_with_pytorch(
    torch: Any, patch: Any, monkeypatch: pytest.MonkeyPatch, is_inference: bool
) -> None:
    """PyTorch's result has version 0, and version 1 if the source is an inference tensor."""
    transfer = sys.modules[MODULE].transfer
    written, copy = [], transfer.copy

    def noted(destination: Any, source: Any) -> None:
        written.append(destination)
        copy(destination, source)

    monkeypatch.setattr(transfer, "copy", noted)
    host = on_host(torch)
    host.is_inference = lambda: is_inference
    with patch():
        made = host.to("cuda", non_blocking=True)
    assert len(written) == 1 and not CALLED
    assert (written[0] is made) == is_inference
    assert same_bytes(values(made), values(host))


# --- where it holds ----------------------------------------------------------------------------


def is_patched(torch: Any) -> bool:
    """Whether a call in this thread goes to the library."""
    CALLED.clear()
    on_host(torch).to("cuda")
    return not CALLED


def test_it_ends_with_the_block(torch: Any, patch: Any) -> None:
    bound = None
    with patch():
        assert is_patched(torch)
        assert "to" in vars(torch.Tensor)
        bound = on_host(torch).to
    assert not is_patched(torch)
    assert bound("cuda") == "PyTorch's"


def test_it_ends_with_an_exception(torch: Any, patch: Any) -> None:
    with pytest.raises(KeyboardInterrupt), patch():
        raise KeyboardInterrupt
    assert not is_patched(torch)


def test_blocks_are_nested_and_entered_again(torch: Any, patch: Any) -> None:
    same = patch()
    with same:
        with same, patch():
            assert is_patched(torch)
        assert is_patched(torch)
    assert not is_patched(torch)
    with same:
        assert is_patched(torch)


def test_blocks_end_in_any_order(torch: Any, patch: Any) -> None:
    first, second = patch(), patch()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert is_patched(torch)
    second.__exit__(None, None, None)
    assert not is_patched(torch)


def in_thread(call: Callable[[], Any]) -> Any:
    answers = []
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()
    thread.join()
    return answers[0]


def test_after_many_blocks_the_class_is_not_changed_any_more(torch: Any, patch: Any) -> None:
    """Python would stop remembering where its attributes are."""
    module = sys.modules[MODULE]
    for _ in range(module.MOST_INSTALLATIONS):
        with patch():
            pass
    kept = dict(vars(torch.Tensor))
    with patch():
        assert is_patched(torch)
        assert dict(vars(torch.Tensor)) == kept
    assert not is_patched(torch)
    assert torch.Tensor.to is Base.to
    for name in NAMES:
        delattr(torch.Tensor, name)


def test_other_threads_are_not_changed(torch: Any, patch: Any) -> None:
    with patch():
        assert not in_thread(lambda: is_patched(torch))
        assert is_patched(torch)


def test_a_block_belongs_to_the_thread_that_entered_it(torch: Any, patch: Any) -> None:
    block = patch()
    in_thread(block.__enter__)
    assert "to" in vars(torch.Tensor)
    assert not is_patched(torch)
    with patch():
        block.__exit__(None, None, None)
        assert is_patched(torch)


def test_many_threads_enter_and_leave(
    torch: Any, patch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[MODULE], "MOST_INSTALLATIONS", 10_000)
    failures: list[str] = []

    def run() -> None:
        for _ in range(200):
            with patch():
                if not hasattr(torch.Tensor.__dict__.get("to"), "attempt"):
                    failures.append("not patched in the block")

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.parametrize("name", NAMES)
def test_the_class_shows_pytorchs_methods(torch: Any, patch: Any, name: str) -> None:
    """PyTorch passes what the class shows to `__torch_function__`."""
    before = getattr(torch.Tensor, name)
    with patch():
        assert getattr(torch.Tensor, name) is before
        assert getattr(torch.nn.Parameter, name) is before
    assert getattr(torch.Tensor, name) is before


# --- beside other programs that replace the same attributes -------------------------------------


def theirs(self: Any, *args: Any, **kwargs: Any) -> str:
    CALLED.append("theirs")
    return "theirs"


def test_a_replacement_from_before_is_called_and_restored(torch: Any, patch: Any) -> None:
    torch.Tensor.to = theirs
    with patch():
        assert is_patched(torch)
        assert on_host(torch, SMALL).to("cuda") == "theirs"
    assert vars(torch.Tensor)["to"] is theirs
    del torch.Tensor.to


def test_a_replacement_in_the_block_stays(torch: Any, patch: Any) -> None:
    with patch():
        torch.Tensor.to = theirs
        assert on_host(torch).to("cuda") == "theirs"
    assert vars(torch.Tensor)["to"] is theirs
    del torch.Tensor.to


def test_a_replacement_that_is_undone_in_the_block(torch: Any, patch: Any) -> None:
    with patch():
        before = torch.Tensor.to
        torch.Tensor.to = theirs
        torch.Tensor.to = before
        assert not is_patched(torch)
    assert torch.Tensor.to is before
    with patch():
        assert is_patched(torch)
    del torch.Tensor.to


def test_an_attribute_that_is_put_back_after_the_block_does_nothing(torch: Any, patch: Any) -> None:
    with patch():
        ours = vars(torch.Tensor)["to"]
        del torch.Tensor.to
    torch.Tensor.to = ours
    assert not is_patched(torch)
    with patch():
        assert is_patched(torch)


def test_a_child_of_a_process_with_a_block_can_enter_one(
    torch: Any, patch: Any, fake_transfer_environment: dict[str, str]
) -> None:
    with patch():
        child = os.fork()
        if child == 0:
            with patch():
                pass
            os._exit(0 if "to" in vars(torch.Tensor) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
