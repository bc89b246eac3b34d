"""How bytes move: a path, how they lie, and how many there are."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import msgspec

from waywiser.words.collective import COLLECTIVE, bus_factor, collective_of, said_by
from waywiser.words.errors import WordError
from waywiser.words.memory import Memory, Place
from waywiser.words.numbers import MOST_BYTES, whole_number
from waywiser.words.settings import format_settings, parse_word
from waywiser.words.sizes import nearest_power_of_two, parse_bytes
from waywiser.words.value import Value


class Path(Value, frozen=True, omit_defaults=True):
    """Source memory to destination memory by an executor: one logical communication path."""

    source: Memory
    destination: Memory
    executor: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.destination} by {self.executor}"

    @property
    def ends(self) -> tuple[Memory, Memory]:
        """The source and the destination."""
        return self.source, self.destination

    @property
    def places(self) -> tuple[Place, Place]:
        """Where the source is, and where the destination is."""
        return self.source.place, self.destination.place

    @property
    def is_among_several(self) -> bool:
        """Whether it is over several memories: of a collective, and not from one to another."""
        lasts = (self.source.place.last, self.destination.place.last)
        return lasts != (msgspec.UNSET, msgspec.UNSET)

    @property
    def kinds(self) -> str:
        """``pinned -> device by sm``: the path without places and variants."""
        return f"{self.source.kind} -> {self.destination.kind} by {self.executor}"

    @property
    def opposite(self) -> Path:
        """The path with source and destination exchanged, by the same executor."""
        return Path(self.destination, self.source, self.executor)

    def is_back_of(self, other: Path) -> bool:
        """Whether it is the other path back: of a path within one memory there is none."""
        return self == other.opposite and self != other

    @property
    def is_plain(self) -> bool:
        """Whether both memories are what their kinds are by default, without a variant."""
        return not self.source.variant and not self.destination.variant

    @classmethod
    def parse(cls, text: str) -> Path:
        transfer = Transfer.parse(text)
        if transfer.parameters or transfer.bytes or transfer.layout:
            raise WordError(f"{text!r} says more than a path", remedy="remove [...], 'as' and 'of'")
        return transfer.path


class Layout(Value, frozen=True, omit_defaults=True):
    """How the bytes of a transfer lie where they are not contiguous, on both sides alike.

    ``list``
        pieces of ``piece`` bytes each, scattered over a pool that is half in use, in an order that
        is shuffled and the same everywhere; ``scattered`` is ``both`` (the default), ``source`` or
        ``destination``, and the other side is contiguous.
    ``box``
        of a 3-D array: rows of ``width`` bytes, ``height`` rows to a plane, as many planes as the
        transfer has bytes for; from row to row are ``pitch`` bytes (twice the width), from plane
        to plane ``rows`` rows (twice the height).
    """

    kind: Literal["box", "list"]
    settings: dict[str, str] = msgspec.field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind}{format_settings(self.settings)}"

    @property
    def run(self) -> int:
        """Bytes that lie together; 0 if the settings do not say."""
        name = {"list": "piece", "box": "width"}.get(self.kind, "")
        return whole_number(self.settings.get(name, "")) or 0

    @property
    def scattered(self) -> Literal["", "source", "destination"]:
        """The side with the scattered pieces of a list whose other side is contiguous; empty if
        both sides are scattered or regular."""
        found = self.settings.get("scattered", "")
        return found if found in ("source", "destination") else ""  # type: ignore[return-value]

    @property
    def unit(self) -> int:
        """Bytes that a transfer of this layout is a whole number of."""
        if self.kind != "box":
            return self.run or 1
        height = whole_number(self.settings.get("height", ""))
        return max(self.run, 1) * (1 if height is None else height)

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Raises `WordError` for a layout that is none; sizes may be written with units."""
        kind, settings = parse_word(text, "a layout")
        if kind not in ("box", "list"):
            raise WordError(
                f"{kind!r} is not a layout", remedy="write list[piece=28KiB] or box[...]"
            )
        sized = {
            key: str(parse_bytes(value)) if value[0].isdigit() else value
            for key, value in settings.items()
        }
        return cls(kind, sized)  # type: ignore[arg-type]


MOST_BETWEEN = 4.0
"""Factor between a size of pieces and its measured neighbours up to which views interpolate it."""


def piece_between(low: int, high: int) -> int | None:
    """The size of pieces that views interpolate between two measured ones: the power of two in the
    middle; None if these are at most `MOST_BETWEEN` apart, or more than that from it."""
    middle = nearest_power_of_two(math.sqrt(low * high))
    if high / low <= MOST_BETWEEN or max(middle / low, high / middle) > MOST_BETWEEN:
        return None
    return middle


class Transfer(Value, frozen=True, omit_defaults=True):
    """A path, how many bytes it moves, the executor's parameters, and how the bytes lie."""

    path: Path
    bytes: Annotated[int, msgspec.Meta(ge=0, le=MOST_BYTES)] = 0
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    layout: Layout | None = None
    """None if they are contiguous."""

    def __str__(self) -> str:
        return f"{self.way}{self.size_text}"

    @property
    def collective(self) -> str:
        """What several memories do together; empty for a copy from one to another."""
        if not self.path.is_among_several:
            return ""
        return collective_of(self.path.executor, self.parameters)

    @property
    def collective_setting(self) -> dict[str, str]:
        """The setting that says what several memories do; none of a copy, and of an executor whose
        name says it."""
        said = not self.path.is_among_several or said_by(self.path.executor)
        return {} if said else {COLLECTIVE: self.collective}

    @property
    def bus_factor(self) -> float:
        """`waywiser.words.collective.bus_factor` of a collective; 1 for a copy."""
        if not self.path.is_among_several:
            return 1.0
        return bus_factor(self.collective, len(self.path.source.place.each))

    @property
    def size_text(self) -> str:
        """What follows the way in the text: `` of 4096``, or nothing if no size is named."""
        return f" of {self.bytes}" if self.bytes else ""

    @property
    def is_sparse(self) -> bool:
        """Whether it touches its range only here and there: how much of it moves then is the
        driver's to decide, and no rate shows it."""
        if "stride" not in self.parameters:  # as of nearly all
            return False
        chunk, stride = (whole_number(self.parameters.get(n, "")) for n in ("chunk", "stride"))
        return (stride or 0) > (chunk or 0)

    @property
    def is_contiguous(self) -> bool:
        """Whether it moves every byte of one range."""
        return self.layout is None and not self.is_sparse

    @property
    def way(self) -> str:
        """The text without the size: what is one curve."""
        layout = f" as {self.layout}" if self.layout else ""
        return f"{self.path}{format_settings(self.parameters)}{layout}"

    @classmethod
    def parse(cls, text: str) -> Transfer:
        source, arrow, rest = text.partition("->")
        destination, by, tail = rest.partition(" by ")
        if not arrow or not by:
            raise WordError(
                f"{text.strip()!r} is not a path",
                remedy="write MEMORY -> MEMORY by EXECUTOR, "
                "as in pinned@numa:0 -> device@gpu:0 by copy-engine",
            )
        head, _, size = tail.partition(" of ")
        head, _, layout = head.partition(" as ")
        executor, parameters = parse_word(head, "an executor")
        path = Path(Memory.parse(source), Memory.parse(destination), executor)
        return cls(
            path,
            parse_bytes(size) if size else 0,
            parameters,
            Layout.parse(layout) if layout else None,
        )
