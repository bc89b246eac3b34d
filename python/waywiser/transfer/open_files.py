"""Open safetensors files, with the interface of `safetensors.safe_open`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from importlib import import_module
from types import TracebackType
from typing import Any, NamedTuple, Self
from weakref import WeakSet

from waywiser.transfer.checkpoint import Selection, TensorNotFoundError, open_checkpoint
from waywiser.transfer.errors import InvalidOperand, InvalidTransfer
from waywiser.transfer.loading import BackgroundMaker, load, require_names, slices_of
from waywiser.transfer.prefetching import PrefetchLoader
from waywiser.transfer.safetensors_header import TensorEntry
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.tensor_slices import TensorIndex, tensor_slice

CALL = "safe_open"
FRAMEWORKS = {
    **dict.fromkeys(("pt", "torch", "pytorch"), "waywiser.transfer.torch"),
    **dict.fromkeys(("np", "numpy"), "waywiser.transfer.numpy"),
}
"""The module that makes the arrays of a framework."""


MakerOf = Callable[[Iterable[Selection], Any], BackgroundMaker]
"""Makes arrays of the types of selected tensors, on a device."""


class TensorMeta(NamedTuple):
    """What the header says of a tensor, without reading its bytes."""

    dtype: str
    """As the format writes it: ``BF16``."""
    shape: list[int]
    data_offsets: tuple[int, int]
    """From the first byte after the header of its file."""


class SafeOpen:
    """Open safetensors files: a file, an index, a folder, or several of them.

    A context manager; at its end the files are closed. Thread safe. Errors are those of
    ``waywiser.transfer.torch.load_files``.
    """

    def __init__(
        self,
        filename: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        framework: str,
        device: Any = "cpu",
    ) -> None:
        self._maker = _maker_of(framework, device)
        self._device = device
        self._is_closed = False
        self._files = ExitStack()
        self._selections = self._files.enter_context(open_checkpoint(filename))
        self._loaders: WeakSet[PrefetchLoader] = WeakSet()
        self._files.callback(self._close_loaders)
        self._of = {
            entry.name: (selection, entry)
            for selection in self._selections
            for entry in selection.entries
        }

    def keys(self) -> list[str]:
        """The names of the tensors, sorted."""
        self._require_open()
        return sorted(self._of)

    def offset_keys(self) -> list[str]:
        """The names of the tensors in the order of the files and of their bytes."""
        self._require_open()
        return list(self._of)

    def metadata(self) -> dict[str, str] | None:
        """The free texts of the header; of several files those of all, of which the first counts.
        None if there are none."""
        self._require_open()
        found: dict[str, str] = {}
        for selection in reversed(self._selections):
            found |= selection.file.header.metadata
        return found or None

    def get_tensor_meta(self, name: str) -> TensorMeta:
        """The type, the shape and the place of a tensor."""
        selection, entry = self._found(name)
        first = next(iter(selection.file.header.tensors.values()))  # in the order of their bytes
        begin = entry.offset - first.offset
        return TensorMeta(entry.dtype, list(entry.shape), (begin, begin + entry.nbytes))

    def get_tensor(self, name: str, device: Any = None) -> Any:
        """A whole tensor. ``device``: another one than that of `safe_open`."""
        return self._load(name, ..., device)

    def get_tensors(self) -> dict[str, Any]:
        """All tensors by name, in the order of `offset_keys`, read many at once."""
        self._require_open()
        return load(self._selections, self._maker(self._selections, self._device))

    def get_slice(self, name: str) -> SafeSlice:
        """A tensor to index: only what the index needs is read."""
        _, entry = self._found(name)
        return SafeSlice(entry, lambda index, device: self._load(name, index, device))

    def prefetch(
        self,
        plan: Mapping[str, TensorIndex | None] | None = None,
        *,
        device: Any = None,
        threads: int = 8,
    ) -> PrefetchLoader:
        """Starts to load tensors in the background, as safetensors 0.9 does.

        Args:
            plan: what to load: None for a whole tensor, or a part of it, by its name; None for all
                tensors. A part is any index that `get_slice` takes.
            device: another one than that of `safe_open`.
            threads: is there for callers of safetensors; the threads are those of all transfers.

        The files are closed after the loader.
        """
        self._require_open()
        chosen = dict.fromkeys(self._of) if plan is None else plan
        if not isinstance(chosen, Mapping):
            raise InvalidOperand(
                f"plan is of type {type(chosen).__name__}, not a dict",
                where=CALL,
                remedy="pass plan={'name': None} or plan={'name': slice(0, 10)}",
            )
        require_names(chosen, self._of, "plan", CALL)
        indices = {name: index for name, index in chosen.items() if index is not None}
        selections = [
            Selection(file, tuple(each for each in entries if each.name in chosen))
            for file, entries in self._selections
        ]
        make = self._maker(selections, self._device if device is None else device)
        loader = PrefetchLoader(selections, make, slices_of(selections, indices, CALL))
        self._loaders.add(loader)
        return loader

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._files.close()
        self._is_closed = True

    def _close_loaders(self) -> None:
        for each in list(self._loaders):
            each.close()

    def _require_open(self) -> None:
        """Raises `InvalidTransfer` after the end of the context."""
        if self._is_closed:
            raise InvalidTransfer(
                "the files are closed", where=CALL, remedy="use them inside its with statement"
            )

    def _found(self, name: str) -> tuple[Selection, TensorEntry]:
        self._require_open()
        if not isinstance(name, str) or name not in self._of:
            raise TensorNotFoundError(
                f"no file has a tensor {clipped(name)}", where=CALL, remedy="see keys()"
            )
        return self._of[name]

    def _load(self, name: str, index: Any, device: Any) -> Any:
        selection, entry = self._found(name)
        own = [Selection(selection.file, (entry,))]
        make = self._maker(own, self._device if device is None else device)
        return load(own, make, {name: tensor_slice(index, entry)})[name]


class SafeSlice:
    """A tensor in a file that is read where it is indexed."""

    def __init__(self, entry: TensorEntry, load_index: Callable[[Any, Any], Any]) -> None:
        self._entry = entry
        self._load = load_index

    def get_shape(self) -> list[int]:
        """The shape of the whole tensor."""
        return list(self._entry.shape)

    def get_dtype(self) -> str:
        """The type as the format writes it."""
        return self._entry.dtype

    def to(self, device: Any, index: TensorIndex) -> Any:
        """The part at an index, on another device than that of `safe_open`."""
        return self._load(index, device)

    def __getitem__(self, index: TensorIndex) -> Any:
        """The part at integers, slices with a step from 1 on, and one ellipsis."""
        return self._load(index, None)


def safe_open(
    filename: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    framework: str,
    device: Any = "cpu",
) -> SafeOpen:
    """Opens safetensors files, as `safetensors.safe_open` does.

    Args:
        filename: a file, an index (``model.safetensors.index.json``), a folder with one of them,
            or several.
        framework: ``"pt"`` for torch, ``"np"`` for numpy.
        device: where tensors go, as ``load_files`` takes it; ``"cpu"`` for numpy.

    Raises `InvalidOperand` for another framework, and what ``load_files`` raises.
    """
    return SafeOpen(filename, framework, device)


def _maker_of(framework: str, device: Any) -> MakerOf:
    """Imports the framework. Raises for a device that it does not have."""
    if not isinstance(framework, str) or framework not in FRAMEWORKS:
        raise InvalidOperand(
            f"framework is {clipped(framework)}", where=CALL, remedy="pass 'pt' or 'np'"
        )
    maker_of: MakerOf = import_module(FRAMEWORKS[framework]).maker_of
    maker_of((), device)
    return maker_of
