"""Parts of a fleet on the workers of a Dask scheduler, which read the data set themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from waywiser.analysis.dataset.engines import engine
from waywiser.analysis.dataset.parts import Map, PartsError
from waywiser.words import WaywiserError

PARTS_PER_THREAD = 4
"""Parts for each thread of a worker: one that is lost costs little."""

CONNECT_SECONDS = 60


class DaskParts(NamedTuple):
    """What calls a function for each part, and how many parts there should be."""

    each_part: Map
    parts: int


@contextmanager
def dask_parts(address: str) -> Iterator[DaskParts]:
    """Connects to a scheduler, ``tcp://scheduler:8786``. What a worker that ends had to do is done
    by the others. Raises `NoEngine`, `PartsError`."""
    distributed = engine("distributed")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise PartsError(
            f"no Dask scheduler answers: {error}",
            where=address,
            remedy="dask scheduler starts one, and dask worker a worker of it",
        ) from error

    def each_part(function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        futures = [client.submit(function, *each, pure=False) for each in arguments]
        try:
            found: list[Any] = client.gather(futures)
        except WaywiserError:
            raise
        except Exception as error:  # whatever a worker or the connection has
            raise PartsError(
                f"a part was not checked: {type(error).__name__}: {error}",
                where=address,
                remedy="see the output of the workers, whose Waywiser must be of this version",
            ) from error
        return found

    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError as error:
            raise PartsError(
                f"the Dask scheduler has no worker after {CONNECT_SECONDS} s",
                where=address,
                remedy=f"dask worker {address} starts one",
            ) from error
        threads = sum(client.nthreads().values())
        yield DaskParts(each_part, PARTS_PER_THREAD * max(threads, 1))
