"""Where bytes are: places, and kinds of memory at them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from waywiser.words.errors import WordError
from waywiser.words.numbers import MOST_GPUS, MOST_INDEX, whole_number
from waywiser.words.settings import format_settings, parse_word
from waywiser.words.value import Value

_Index = Annotated[int, msgspec.Meta(ge=0, le=MOST_INDEX)]

MOST_TOGETHER = MOST_GPUS
"""The most places of one collective."""


class Place(Value, frozen=True):
    """Where memory is: a NUMA node or GPU by index, a file by path, or a process of a parallel
    program by its rank, as other tools name it; several GPUs or ranks in a collective."""

    kind: Literal["numa", "gpu", "file", "rank"]
    index: _Index = 0
    """The first of several."""
    file: str = ""
    last: _Index | msgspec.UnsetType = msgspec.UNSET
    """The last of several; not set for one place, whose JSON does not name it."""

    def __post_init__(self) -> None:
        if self.last is not msgspec.UNSET and not (
            self.kind in ("gpu", "rank") and 0 < self.last - self.index < MOST_TOGETHER
        ):
            raise ValueError("several places are GPUs or ranks, from the first to the last")

    def __str__(self) -> str:
        if self.kind == "file":
            return f"file:{self.file}"
        last = "" if self.last is msgspec.UNSET else f"-{self.last}"
        return f"{self.kind}:{self.index}{last}"

    @property
    def is_several(self) -> bool:
        """Whether it is several places, as of the memory that a collective is over."""
        return self.last is not msgspec.UNSET

    @property
    def each(self) -> tuple[Place, ...]:
        """The single places, itself if it is one."""
        if self.last is msgspec.UNSET:
            return (self,)
        return tuple(Place(self.kind, n) for n in range(self.index, self.last + 1))

    @classmethod
    def parse(cls, text: str) -> Place:
        kind, separator, rest = text.strip().partition(":")
        if separator and kind == "file" and rest:
            return cls("file", file=rest)
        first, dash, end = rest.partition("-")
        index, last = whole_number(first, MOST_INDEX), whole_number(end, MOST_INDEX)
        if separator and kind in ("numa", "gpu", "rank") and index is not None and not dash:
            return cls(kind, index=index)  # type: ignore[arg-type]
        is_range = index is not None and last is not None and 0 < last - index < MOST_TOGETHER
        if kind in ("gpu", "rank") and is_range:
            return cls(kind, index=index or 0, last=last or 0)  # type: ignore[arg-type]
        raise WordError(
            f"{text!r} is not a place",
            remedy="write numa:N, gpu:N or file:PATH, as in numa:0; gpu:0-7 for a collective",
        )


class Memory(Value, frozen=True, omit_defaults=True):
    """A kind of memory at a place, with the variant of that kind (huge pages, say)."""

    kind: str
    place: Place
    variant: dict[str, str] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind}{format_settings(self.variant)}@{self.place}"

    @property
    def each(self) -> tuple[Memory, ...]:
        """The single memories, itself if it is one."""
        return tuple(Memory(self.kind, place, self.variant) for place in self.place.each)

    @classmethod
    def parse(cls, text: str) -> Memory:
        head, place = divided(text, "a memory", "KIND@PLACE, as in pinned@numa:0")
        kind, variant = parse_word(head, "a kind of memory")
        return cls(kind, Place.parse(place), variant)


def divided(text: str, what: str, form: str) -> tuple[str, str]:
    """What stands before the place in a text that ends with one, and the place."""
    head, separator, place = text.strip().partition("@")
    if not separator:
        raise WordError(f"{text!r} is not {what}", remedy=f"write {form}")
    return head, place
