"""Where bytes are: places, and kinds of memory at them."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from waywiser.words.errors import WordError
from waywiser.words.numbers import MOST_INDEX, whole_number
from waywiser.words.settings import format_settings, parse_word
from waywiser.words.value import Value


class Place(Value, frozen=True):
    """Where memory is: a NUMA node or GPU by index, a file by path, or a process of a parallel
    program by its rank, as other tools name it."""

    kind: Literal["numa", "gpu", "file", "rank"]
    index: Annotated[int, msgspec.Meta(ge=0, le=MOST_INDEX)] = 0
    file: str = ""

    def __str__(self) -> str:
        return f"file:{self.file}" if self.kind == "file" else f"{self.kind}:{self.index}"

    @classmethod
    def parse(cls, text: str) -> Place:
        kind, separator, rest = text.strip().partition(":")
        if separator and kind == "file" and rest:
            return cls("file", file=rest)
        index = whole_number(rest, MOST_INDEX)
        if separator and kind in ("numa", "gpu", "rank") and index is not None:
            return cls(kind, index=index)  # type: ignore[arg-type]
        raise WordError(
            f"{text!r} is not a place", remedy="write numa:N, gpu:N or file:PATH, as in numa:0"
        )


class Memory(Value, frozen=True, omit_defaults=True):
    """A kind of memory at a place, with the variant of that kind (huge pages, say)."""

    kind: str
    place: Place
    variant: dict[str, str] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind}{format_settings(self.variant)}@{self.place}"

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
