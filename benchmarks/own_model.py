"""Loads a model of the user by each loader that is installed: what `loading.py MODEL` does.

Each loader loads all tensors once, and they are compared with the bytes of the files. Then all
take turns in random order: cold, when the files have been dropped from the page cache, and warm.
`slices` is what one of four ranks of a tensor-parallel model loads: a quarter of each matrix, of
its columns if it has more columns than rows, and all other tensors whole. The ranks take turns too.

Times include opening the files. On a GPU they end when all its work is done, and in host memory
when one byte of each page was read: safetensors maps files and reads nothing before that.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import importlib.util
import json
import mmap
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from waywiser.transfer.checkpoint import open_checkpoint
from waywiser.transfer.errors import TransferError

OURS = "waywiser load_files"
RANKS = 4
WHOLE, SLICES = "whole", "slices"
COLD, WARM = "cold", "warm"
COLD_ENOUGH = 0.02
"""The part of the files that the page cache may still have when a load is called cold."""
SHARD = 5 * 10**9
PAGE = mmap.PAGESIZE

Index = tuple[slice, ...]
Load = Callable[[], dict[str, Any]]


class Stored(NamedTuple):
    """A tensor in a file."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


class Model:
    """The files of a model, and what is loaded of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tensors: dict[str, Stored] = {}
        with open_checkpoint(path) as selections:
            for file, entries in selections:
                for each in entries:
                    self.tensors[each.name] = Stored(
                        file.path, each.dtype, each.shape, each.offset, each.nbytes
                    )
        self.files = list(dict.fromkeys(each.path for each in self.tensors.values()))

    def slices(self, rank: int) -> dict[str, Index]:
        """What a rank loads of each matrix."""
        found = {}
        for name, each in self.tensors.items():
            if len(each.shape) == 2 and min(each.shape) >= RANKS:
                rows, columns = each.shape
                size = max(rows, columns) // RANKS
                own = slice(rank * size, (rank + 1) * size)
                found[name] = (own, slice(None)) if rows >= columns else (slice(None), own)
        return found

    def nbytes(self, slices: dict[str, Index]) -> int:
        return sum(
            each.nbytes // max(each.shape) * (max(each.shape) // RANKS)
            if name in slices
            else each.nbytes
            for name, each in self.tensors.items()
        )

    def of_file(self) -> Iterator[tuple[Path, list[str]]]:
        for path in self.files:
            yield path, [name for name, each in self.tensors.items() if each.path == path]

    def drop(self) -> None:
        """Drops the files from the page cache."""
        for path in self.files:
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)

    def read(self) -> None:
        """Brings the files into the page cache."""
        block = bytearray(2**24)
        for path in self.files:
            with path.open("rb", buffering=0) as file:
                while file.readinto(block):
                    pass

    def cached(self) -> float:
        """The part of the files that the page cache has."""
        libc = ctypes.CDLL(None, use_errno=True)
        found = total = 0
        for path in self.files:
            nbytes = path.stat().st_size
            pages = -(-nbytes // PAGE)
            state = (ctypes.c_ubyte * pages)()
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as all_,
            ):
                begin = ctypes.c_char.from_buffer(all_)
                if libc.mincore(ctypes.byref(begin), ctypes.c_size_t(nbytes), state) != 0:
                    raise OSError(ctypes.get_errno(), "mincore")
                del begin
            found += sum(each & 1 for each in state)
            total += pages
        return found / total


class Library:
    """What loads, compares and waits: torch on a device, or numpy where there is no torch."""

    def __init__(self, model: Model, device: str) -> None:
        self.model = model
        self.device = device

    def loaders(self) -> Iterator[tuple[str, str, Load | None, Callable[[int], Load] | None]]:
        """The name of each, its package, and what loads all and the slices of a rank."""
        raise NotImplementedError

    def require_equal(self, found: dict[str, Any], slices: dict[str, Index]) -> None:
        """Raises `ValueError` for a tensor that does not have the bytes of the files."""
        if found.keys() != self.model.tensors.keys():
            raise ValueError(f"{len(found)} of {len(self.model.tensors)} tensors were loaded")
        for name, each in self.model.tensors.items():
            with each.path.open("rb") as file:
                file.seek(each.offset)
                data = file.read(each.nbytes)
            if not self.is_equal(found[name], data, each, slices.get(name)):
                raise ValueError(f"tensor {name!r} is not that of the file")

    def is_equal(self, tensor: Any, data: bytes, stored: Stored, index: Index | None) -> bool:
        import numpy

        item = stored.nbytes // max(numpy.prod(stored.shape, dtype=int), 1)
        kind = numpy.dtype(f"V{item}") if item else numpy.dtype("u1")
        expected = numpy.frombuffer(data, kind).reshape(stored.shape)
        if index is not None:
            expected = expected[index]
        return self.bytes_of(tensor) == numpy.ascontiguousarray(expected).tobytes()

    def bytes_of(self, tensor: Any) -> bytes:
        raise NotImplementedError

    def finish(self, loaded: dict[str, Any]) -> None:
        """Waits until all is loaded."""
        raise NotImplementedError

    def clean(self) -> None:
        """Frees what the next loader would use."""


class Numpy(Library):
    def loaders(self) -> Iterator[tuple[str, str, Load | None, Callable[[int], Load] | None]]:
        from waywiser.transfer.numpy import load_files

        model = self.model
        yield (
            OURS,
            "waywiser",
            lambda: load_files(model.path),
            lambda rank: lambda: load_files(model.path, slices=model.slices(rank)),
        )
        yield (
            "safetensors",
            "safetensors",
            lambda: opened_whole(model, "np", "cpu"),
            lambda rank: lambda: opened_slices(model, "np", "cpu", rank),
        )

    def bytes_of(self, tensor: Any) -> bytes:
        return bytes(tensor.tobytes())

    def finish(self, loaded: dict[str, Any]) -> None:
        for each in loaded.values():
            each.reshape(-1).view("u1")[::PAGE].sum()


class Torch(Library):
    def loaders(self) -> Iterator[tuple[str, str, Load | None, Callable[[int], Load] | None]]:
        from waywiser.transfer.torch import load_files

        model, device = self.model, self.device
        yield (
            OURS,
            "waywiser",
            lambda: load_files(model.path, device),
            lambda rank: lambda: load_files(model.path, device, slices=model.slices(rank)),
        )
        yield (
            "safetensors load_file",
            "safetensors",
            self._safetensors,
            lambda rank: lambda: opened_slices(model, "pt", device, rank),
        )
        if device == "cpu":
            return
        yield "safetensors prefetch", "safetensors", self._prefetch, self._prefetch_slices
        yield "fastsafetensors", "fastsafetensors", self._fastsafetensors, None
        yield "InstantTensor", "instanttensor", self._instanttensor, None

    def _safetensors(self) -> dict[str, Any]:
        from safetensors.torch import load_file

        found: dict[str, Any] = {}
        for path in self.model.files:
            found |= load_file(path, device=self.device)
        return found

    def _prefetch(self) -> dict[str, Any]:
        return self._prefetched({})

    def _prefetch_slices(self, rank: int) -> Load:
        return lambda: self._prefetched(self.model.slices(rank))

    def _prefetched(self, slices: dict[str, Index]) -> dict[str, Any]:
        """Rows by a plan; a plan has no columns, so that such matrices come whole and are cut."""
        from safetensors import safe_open

        if not hasattr(safe_open, "prefetch"):
            raise ImportError("python -m pip install 'safetensors>=0.9.0rc1'")
        found: dict[str, Any] = {}
        for path, names in self.model.of_file():
            plan = {
                name: slices[name][0] if name in slices and slices[name][0].stop else None
                for name in names
            }
            with (
                safe_open(path, framework="pt", device=self.device) as file,
                file.prefetch(plan) as loader,
            ):
                for name, tensor in loader:
                    cut = plan[name] is None and name in slices
                    found[name] = tensor[slices[name]].contiguous() if cut else tensor
        return found

    def _fastsafetensors(self) -> dict[str, Any]:
        from fastsafetensors import SafeTensorsFileLoader, SingleGroup

        loader = SafeTensorsFileLoader(SingleGroup(), self.device, nogds=True)
        loader.add_filenames({0: [str(path) for path in self.model.files]})
        loaded = loader.copy_files_to_device()
        found = {name: loaded.get_tensor(name) for name in loaded.key_to_rank_lidx}
        self._kept = loader, loaded  # the memory of the tensors
        return found

    def _instanttensor(self) -> dict[str, Any]:
        import instanttensor

        names = [str(path) for path in self.model.files]
        with instanttensor.safe_open(names, framework="pt", device=0) as file:
            # A tensor lies in a buffer that is used again: its documentation says to clone it.
            return {name: tensor.clone() for name, tensor in file.tensors()}

    def bytes_of(self, tensor: Any) -> bytes:
        import torch

        row = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
        return bytes(row.numpy().tobytes())

    def finish(self, loaded: dict[str, Any]) -> None:
        import torch

        if self.device != "cpu":
            torch.cuda.synchronize()
            return
        for each in loaded.values():
            each.contiguous().view(-1).view(torch.uint8)[::PAGE].sum()

    def clean(self) -> None:
        import torch

        self._kept: Any = None
        if self.device != "cpu":
            torch.cuda.empty_cache()


def opened_whole(model: Model, framework: str, device: str) -> dict[str, Any]:
    from safetensors import safe_open

    found = {}
    for path, names in model.of_file():
        with safe_open(path, framework=framework, device=device) as file:
            found |= {name: file.get_tensor(name) for name in names}
    return found


def opened_slices(model: Model, framework: str, device: str, rank: int) -> dict[str, Any]:
    from safetensors import safe_open

    found, slices = {}, model.slices(rank)
    for path, names in model.of_file():
        with safe_open(path, framework=framework, device=device) as file:
            for name in names:
                if (index := slices.get(name)) is None:
                    found[name] = file.get_tensor(name)
                else:
                    found[name] = file.get_slice(name)[index]
    return found


def measure(model: Model, library: Library, rounds: int, ends_at: float) -> dict[str, Any]:
    """The bandwidths of each loader, or why it has none."""
    slices = [model.slices(rank) for rank in range(RANKS)]
    found: dict[str, Any] = {}
    calls: dict[tuple[str, str], Callable[[int], Load]] = {}
    for name, package, whole, sliced in library.loaders():
        found[name] = {"rates": {f"{part}, {state}": [] for part in (WHOLE, SLICES)
                                 for state in (COLD, WARM)}}  # fmt: skip
        if importlib.util.find_spec(package) is None:
            found[name]["missing"] = f"not installed: python -m pip install {package}"
            continue
        with suppress(importlib.metadata.PackageNotFoundError):  # a clone that is not installed
            found[name]["version"] = importlib.metadata.version(package)
        for part, load, own in ((WHOLE, whole, {}), (SLICES, sliced and sliced(0), slices[0])):
            if load is None:
                continue
            try:
                loaded = load()
                library.finish(loaded)
                library.require_equal(loaded, own)
            except Exception as error:
                found[name]["missing"] = f"{type(error).__name__}: {error}"[:200]
                break
            finally:
                loaded = None
                library.clean()
            calls[name, part] = (
                (lambda _, load=load: load) if part == WHOLE else sliced  # type: ignore[misc]
            )
    order = random.Random(1)
    least = 0.0
    for number in range(rounds):
        begin = time.monotonic()
        if begin + least > ends_at:
            break
        for (name, part), state in order.sample(
            [(call, state) for call in calls for state in (COLD, WARM)], 2 * len(calls)
        ):
            rank = number % RANKS
            if state == COLD:
                model.drop()
                if (left := model.cached()) > COLD_ENOUGH:
                    found[name]["not cold"] = f"the page cache keeps {left:.0%} of the files"
                    continue
            else:
                model.read()
            rate = timed(library, calls[name, part](rank))
            nbytes = model.nbytes(slices[rank] if part == SLICES else {})
            found[name]["rates"][f"{part}, {state}"].append(nbytes / rate)
        least = time.monotonic() - begin
    return found


def timed(library: Library, load: Load) -> float:
    """Seconds of a load."""
    begin = time.perf_counter()
    loaded = load()
    library.finish(loaded)
    spent = time.perf_counter() - begin
    del loaded
    library.clean()
    return spent


def table(result: dict[str, Any]) -> str:
    states = [f"{part}, {state}" for part in (WHOLE, SLICES) for state in (COLD, WARM)]
    lines = [
        f"{result['model']}: {result['tensors']} tensors, {result['bytes'] / 1e9:.2f} GB in "
        f"{result['files']} files, to {result['device']}; GB/s, median (smallest to largest)",
        "",
        f"| loader | {' | '.join(states)} |",
        f"|---|{'---|' * len(states)}",
    ]
    for name, each in result["loaders"].items():
        cells = []
        for state in states:
            rates = [rate / 1e9 for rate in each["rates"][state]]
            cell = ""
            if rates:
                cell = f"{statistics.median(rates):.2f} ({min(rates):.2f} to {max(rates):.2f})"
            elif COLD in state and "not cold" in each:
                cell = each["not cold"]
            cells.append(cell)
        if "missing" in each:
            cells[0] = each["missing"]
        version = f" {each['version']}" if "version" in each else ""
        lines.append(f"| {name}{version} | {' | '.join(cells)} |")
    return "\n".join(lines)


@contextmanager
def generated(folder: Path, gib: float) -> Iterator[Path]:
    """A model with the shapes of a Llama in float16, in shards of 5 GB, which is removed."""
    import numpy

    from waywiser.transfer.safetensors_layout import (
        SizedTensor,
        index_of,
        lay_out,
        split_into_shards,
    )

    width, inner, layer = 2048, 5632, 2 * (4 * 2048**2 + 3 * 2048 * 5632)
    while gib * 2**30 < 4 * layer:
        width, inner, layer = width // 2, inner // 2, layer // 4
    listed = [SizedTensor("model.embed_tokens.weight", "F16", (8 * width, width), 16 * width**2)]
    for number in range(max(round((gib * 2**30 - listed[0].nbytes) / layer), 1)):
        for name, shape in (
            *((f"self_attn.{each}_proj", (width, width)) for each in "qkvo"),
            ("mlp.gate_proj", (inner, width)),
            ("mlp.up_proj", (inner, width)),
            ("mlp.down_proj", (width, inner)),
            ("input_layernorm", (width,)),
            ("post_attention_layernorm", (width,)),
        ):
            nbytes = 2 * int(numpy.prod(shape))
            listed.append(SizedTensor(f"model.layers.{number}.{name}.weight", "F16", shape, nbytes))
    values = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory(dir=folder, prefix="waywiser-model-") as made:
        shards = split_into_shards(listed, SHARD)
        for name, tensors in shards.items():
            layout = lay_out(tensors, {"format": "pt"})
            with (Path(made) / name).open("wb") as file:
                file.write(layout.start)
                for each in layout.entries:
                    file.write(values.bytes(each.nbytes))
        if len(shards) > 1:
            (Path(made) / "model.safetensors.index.json").write_bytes(index_of(shards))
        yield Path(made)


def run(wanted: argparse.Namespace) -> int:
    if wanted.generate is not None:
        with generated(Path(wanted.folder), wanted.generate) as path:
            return run_on(path, wanted)
    return run_on(wanted.model, wanted)


def run_on(path: Path, wanted: argparse.Namespace) -> int:
    begin = time.monotonic()
    try:
        model = Model(path)
    except (TransferError, ValueError, OSError, LookupError) as error:
        print(f"loading.py: {error}", file=sys.stderr)
        return 2
    library, device = library_of(model, wanted.device)
    result = {
        "model": str(path),
        "files": len(model.files),
        "tensors": len(model.tensors),
        "bytes": model.nbytes({}),
        "device": device,
        "loaders": measure(model, library, wanted.rounds, begin + wanted.within),
    }
    print(table(result))
    if wanted.json:
        wanted.json.write_text(json.dumps(result, indent=1) + "\n")
    return 0


def library_of(model: Model, device: str | None) -> tuple[Library, str]:
    """torch on a GPU if it finds one, else in host memory; numpy where it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return Numpy(model, "cpu"), "host memory, numpy"
    import torch

    on_gpu = device == "cuda" or (device is None and torch.cuda.is_available())
    place = "cuda:0" if on_gpu else "cpu"
    name = torch.cuda.get_device_name() if on_gpu else "host memory"
    return Torch(model, place), f"{name}, torch {torch.__version__}"
