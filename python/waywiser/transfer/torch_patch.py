"""PyTorch's own copies between host and GPU, made by this library while a ``with`` block runs.

    from waywiser.transfer.torch import patch

    with patch():
        model.to("cuda")

``copy_``, ``to``, ``cpu`` and ``cuda`` are attributes of the class ``torch.Tensor`` while any
thread is in a block. An attribute acts only if it is called on a tensor, and by a thread that is in
a block. Read from the class, it is PyTorch's method: that is what PyTorch passes to
``__torch_function__``, and what other programs compare and save.

PyTorch's method is called for all that is not known to be the same copy. No private part of PyTorch
is needed: if one that shows the difference is missing, PyTorch's method is called.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from types import MethodType, TracebackType
from typing import Any

import torch

from waywiser import transfer
from waywiser.transfer.errors import TransferError

FEWEST_BYTES = 8 << 20
"""Smaller copies are PyTorch's, and the library is not asked about them. On one H100 the calls of
4 MiB took 1.23 to 1.29 of PyTorch's time in the block, those of 8 MiB 0.90 to 0.96
(docs/results/2026-11-26-patch)."""

_len_function_modes: Callable[[], int] = getattr(
    getattr(torch, "_C", None), "_len_torch_function_stack", lambda: 1
)

DTYPES = frozenset(
    getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"),
    )
    if hasattr(torch, name)
)

Arguments = tuple[Any, ...]
Keywords = dict[str, Any]
Attempt = Callable[[Any, Arguments, Keywords], Any]


class patch:
    """Makes PyTorch's copies between host and GPU by this library, in this thread, in the block.

    Calls of ``Tensor.copy_``, ``to``, ``cpu`` and ``cuda`` that copy between pageable memory of the
    host and a GPU are made by the library, if it has a faster method than a plain copy of the GPU
    runtime for this size. Results and errors are those of PyTorch. All other calls are PyTorch's
    own: ``pin_memory``, other types than ``Tensor`` and ``Parameter``, dtypes that differ,
    gradients that would be recorded, function and dispatch modes, compiling, tracing, capturing,
    and all that the how-to lists.

    Enter a block around a program or a loop, not around each call: to enter and to leave it takes
    longer than a small copy. Blocks may be nested, and may end in any order. A block that ends with
    an exception ends like any other. If the library cannot make a copy, PyTorch makes it, and a
    `UserWarning` says why, once per process.
    """

    def __init__(self) -> None:
        self._entered: list[_Blocks] = []

    def __enter__(self) -> None:
        blocks: _Blocks = _thread.blocks
        with _lock:
            if not _Blocks.all:
                _install()
            _Blocks.all += 1
            blocks.count += 1
        self._entered.append(blocks)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        blocks = self._entered.pop()
        with _lock:
            blocks.count -= 1
            _Blocks.all -= 1
            if not _Blocks.all:
                _remove()


class _Blocks:
    """How many blocks a thread is in. A block counts in the thread that entered it, also if another
    thread leaves it."""

    all = 0
    """The number of blocks of all threads."""

    def __init__(self) -> None:
        self.count = 0


class _Thread(threading.local):
    def __init__(self) -> None:
        self.blocks = _Blocks()


_thread = _Thread()
_lock = threading.Lock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)  # another thread may have held it


class PatchedMethod:
    """A method of ``torch.Tensor`` that is tried by the library first, and is PyTorch's otherwise.

    ``attempt`` takes a tensor, the arguments by position and those by name. It returns what the
    method returns, or ``NotImplemented`` if it has changed nothing.
    """

    def __init__(self, name: str, attempt: Attempt) -> None:
        self.__name__ = name
        self.attempt = attempt
        self.before: Any = None
        """What the class itself had under this name."""
        self.original: Any = None

    def __get__(self, tensor: Any, owner: Any = None) -> Any:
        if tensor is None:
            return self.original
        if not _thread.blocks.count or not _has_plain_type(tensor):
            return self.original.__get__(tensor, owner)
        return MethodType(self, tensor)

    def __call__(self, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if (
            _thread.blocks.count  # a bound method may outlive the block
            and not _len_function_modes()  # they see every attribute of a tensor that is read
            and tensor.layout is torch.strided
            and tensor.nbytes >= FEWEST_BYTES
        ):
            made = self.attempt(tensor, args, kwargs)
            if made is not NotImplemented:
                return made
        return self.original(tensor, *args, **kwargs)


MOST_INSTALLATIONS = 50
"""After as many, the methods stay on the class. Python forgets what it knows of a class that is
changed, and from some hundreds of changes on it remembers nothing of it any more: every attribute
of a tensor would be slower to find, also after the last block."""

_installations = 0


def _install() -> None:
    global _installations
    changed = {}
    for method in METHODS:
        current = vars(torch.Tensor).get(method.__name__)
        if current is not method:  # else it has stayed, or another program has put it back
            changed[method] = current, getattr(torch.Tensor, method.__name__)
    for method, (current, original) in changed.items():
        method.before, method.original = current, original
        setattr(torch.Tensor, method.__name__, method)
    _installations += bool(changed)


def _remove() -> None:
    if _installations >= MOST_INSTALLATIONS:
        return
    for method in METHODS:
        if vars(torch.Tensor).get(method.__name__) is not method:
            continue  # another program has put its own there
        if method.before is None:
            delattr(torch.Tensor, method.__name__)
        else:
            setattr(torch.Tensor, method.__name__, method.before)


def _try_copy_(tensor: Any, args: Arguments, kwargs: Keywords) -> Any:
    given = _by_name(("other", "non_blocking"), args, kwargs)
    source: Any = given.get("other") if given is not None else None
    if (
        given is None
        or not _has_plain_type(source)
        or source.layout is not torch.strided
        or tensor.device.type == source.device.type
        or tensor.dtype is not source.dtype
        or tensor.shape != source.shape
        or not _have_one_order(tensor, source)
        or (tensor.is_inference() and not torch.is_inference_mode_enabled())
    ):
        return NotImplemented
    if not (_is_plain(tensor) and _is_plain(source) and _is_unobserved(tensor, source)):
        return NotImplemented
    return tensor if _copy(tensor, source, given.get("non_blocking", False)) else NotImplemented


def _try_to(tensor: Any, args: Arguments, kwargs: Keywords) -> Any:
    other = args[0] if args else None
    if isinstance(other, torch.Tensor):
        given = _by_name(("", "non_blocking", "copy"), args, kwargs)
        if given is None or not _has_plain_type(other):
            return NotImplemented
        device, dtype = other.device, other.dtype
    else:
        given = _by_name(("device", "dtype", "non_blocking", "copy"), args, kwargs)
        if given is None:
            return NotImplemented
        device, dtype = given.get("device"), given.get("dtype")
    if dtype not in (None, tensor.dtype):
        return NotImplemented
    return _moved(tensor, device, given)


def _try_cpu(tensor: Any, args: Arguments, kwargs: Keywords) -> Any:
    given = _by_name((), args, kwargs)
    return NotImplemented if given is None else _moved(tensor, "cpu", given)


def _try_cuda(tensor: Any, args: Arguments, kwargs: Keywords) -> Any:
    given = _by_name(("device", "non_blocking"), args, kwargs)
    if given is None or tensor.device.type != "cpu":
        return NotImplemented
    device = given.get("device")
    return _moved(tensor, "cuda" if device is None else device, given)


METHODS = tuple(
    PatchedMethod(name, attempt)
    for name, attempt in {
        "copy_": _try_copy_,
        "to": _try_to,
        "cpu": _try_cpu,
        "cuda": _try_cuda,
    }.items()
)


def _by_name(names: tuple[str, ...], args: Arguments, kwargs: Keywords) -> Keywords | None:
    """The arguments by name; None if there are others, or one that makes another copy."""
    if len(args) > len(names):
        return None
    given = dict(zip(names, args, strict=False))
    for name, value in kwargs.items():
        if name in given or (name not in names and name != "memory_format"):
            return None
        given[name] = value
    if given.pop("memory_format", None) not in (None, torch.preserve_format):
        return None
    if type(given.get("non_blocking", False)) is not bool or type(given.get("copy", 0)) is str:
        return None
    return given


def _moved(tensor: Any, target: Any, given: Keywords) -> Any:
    """The tensor on another device, in new memory; or ``NotImplemented``."""
    device = _gpu_or_host(target)
    non_blocking: bool = given.get("non_blocking", False)
    if (
        device is None
        or {device.type, tensor.device.type} != {"cpu", "cuda"}
        or (device.type == "cpu" and non_blocking)  # PyTorch's result is in pinned memory
        or not _is_plain(tensor)
        or not _is_unobserved(tensor)
    ):
        return NotImplemented
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    # `data` has a version counter of its own. The version of PyTorch's result is 0; it is 1 if the
    # source is an inference tensor, since PyTorch's copy into the new memory counts then.
    filled = made if tensor.is_inference() else made.data
    return made if _copy(filled, tensor, non_blocking) else NotImplemented


def _gpu_or_host(target: Any) -> Any:
    """The device that an argument names: the host, or a GPU that exists; else None."""
    if isinstance(target, bool) or not isinstance(target, (torch.device, str, int)):
        return None
    if not torch.cuda.is_initialized():
        return None  # PyTorch's call initialises it, or says why that is not possible
    try:
        device = torch.device("cuda", target) if isinstance(target, int) else torch.device(target)
    except RuntimeError:
        return None
    if device.type == "cpu":
        return device if device.index is None else None
    if device.type != "cuda":
        return None
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.device("cuda", index) if index < torch.cuda.device_count() else None


def _has_plain_type(tensor: Any) -> bool:
    return type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter


def _is_plain(tensor: Any) -> bool:
    """Whether the tensor is one gapless range of memory that holds its values as they are."""
    return (
        tensor.dtype in DTYPES
        and _is_dense(tensor)
        and not tensor.is_conj()
        and not tensor.is_neg()
        and not tensor._is_zerotensor()
        and not tensor.has_names()
        and tensor.data_ptr() != 0  # its memory may have been resized
    )


def _is_dense(tensor: Any) -> bool:
    if tensor.is_contiguous():
        return True
    dense = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != dense:
                return False
            dense *= size
    return True


def _have_one_order(one: Any, other: Any) -> bool:
    """Whether the elements of two tensors of one shape are in the same order in memory."""
    return bool(one.stride() == other.stride() or (one.is_contiguous() and other.is_contiguous()))


def _is_unobserved(*tensors: Any) -> bool:
    """Whether nothing of PyTorch records, traces, replaces or forbids the copy."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return False
    try:
        return bool(
            torch.cuda.is_initialized()
            and torch._C._len_torch_dispatch_stack() == 0
            and torch._C._functorch.peek_interpreter_stack() is None
            and torch._C._get_tracing_state() is None
            and torch.autograd.forward_ad._current_level < 0
            and not getattr(torch.compiler, "is_compiling", bool)()  # from 2.3 on
            and not torch.cuda.is_current_stream_capturing()
            and torch.cuda.get_sync_debug_mode() == 0
        )
    except AttributeError as error:
        _warn_once(f"this PyTorch does not show what it does with a copy: {error}")
        return False


def _copy(destination: Any, source: Any, non_blocking: bool) -> bool:
    """Copies as PyTorch's call does, unless that is a plain copy for the library too. Returns
    whether it has copied."""
    host = source if source.device.type == "cpu" else destination
    if non_blocking and host.is_pinned():
        return False
    try:
        if transfer.copy_method(destination, source) == "plain":
            return False
        if non_blocking:
            transfer.copy(destination, source)
        else:
            # Other streams and threads may use the destination without waiting.
            transfer.copy_async(destination, source).result()
    except TransferError as error:
        _warn_once(str(error))
        return False
    return True


_warned = False


def _warn_once(why: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"waywiser.transfer.torch.patch: PyTorch makes a copy that the library could not make: "
            f"{why}",
            stacklevel=5,
        )
