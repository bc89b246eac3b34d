"""Tensors of open files that load in the background, with the interface of safetensors 0.9."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from waywiser.transfer.checkpoint import Selection, TensorNotFoundError
from waywiser.transfer.errors import InvalidTransfer, TransferCancelled
from waywiser.transfer.loading import BackgroundMaker, load
from waywiser.transfer.strict_json import clipped
from waywiser.transfer.tensor_slices import TensorSlice

CALL = "prefetch"


class PrefetchLoader:
    """Tensors that load in the background. Each is handed out once, by `take` or by iterating.

    A tensor has memory of its own, and is complete on every stream. Its memory may be dropped once
    the stream that was current when it was handed out has used it; wait for other streams first. A
    context manager: at its end it is closed. Thread safe.
    """

    def __init__(
        self,
        selections: Sequence[Selection],
        make: BackgroundMaker,
        slices: Mapping[str, TensorSlice],
    ) -> None:
        self._make = make
        self._names = [entry.name for _, entries in selections for entry in entries]
        self._awaited = set(self._names)
        """Tensors that have not landed."""
        self._landed: dict[str, Any] = {}
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        self._is_closed = False
        self._thread = threading.Thread(
            target=self._load, args=(selections, slices), name="prefetch", daemon=True
        )
        self._thread.start()

    def names(self) -> list[str]:
        """The names of all its tensors, in the order of the files and of their bytes."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def take(self, name: str) -> Any:
        """A tensor, for which it waits. Raises what loading failed with, `TensorNotFoundError` for
        a tensor that it does not load, and `InvalidTransfer` for one that was taken."""
        with self._changed:
            if name not in self._names:
                raise TensorNotFoundError(
                    f"tensor {clipped(name)} is not loaded here", where=CALL, remedy="see names()"
                )
            self._changed.wait_for(lambda: name not in self._awaited or self._has_ended())
            return self._hand_out(name)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The names and tensors that are not taken yet, as they land."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._landed or not self._awaited or self._has_ended()
                )
                if not self._landed and not self._awaited:
                    return
                name = next(iter(self._landed), "")
                tensor = self._hand_out(name)
            yield name, tensor

    def close(self) -> None:
        """Stops loading, and frees what was not taken. What was taken stays."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        self._landed.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _has_ended(self) -> bool:
        return self._is_closed or self._error is not None

    def _hand_out(self, name: str) -> Any:
        if self._is_closed:
            raise InvalidTransfer("it is closed", where=CALL, remedy="take tensors before close()")
        if name not in self._landed:
            if self._error is not None and (not name or name in self._awaited):
                raise self._error
            raise InvalidTransfer(
                f"tensor {clipped(name)} was taken before",
                where=CALL,
                remedy="keep what take() returns, or start another prefetch",
            )
        tensor = self._landed.pop(name)
        self._make.hand_out(tensor)
        return tensor

    def _load(self, selections: Sequence[Selection], slices: Mapping[str, TensorSlice]) -> None:
        try:
            with self._make.beside():
                load(selections, self._make, slices, self._land)
        except BaseException as error:
            with self._changed:
                self._error = error
                self._changed.notify_all()

    def _land(self, name: str, tensor: Any) -> None:
        self._make.wait()
        with self._changed:
            if self._is_closed:
                raise TransferCancelled("the loader was closed", where=CALL)
            self._landed[name] = tensor
            self._awaited.discard(name)
            self._changed.notify_all()
