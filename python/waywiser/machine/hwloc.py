"""Reads hwloc's XML, of every version, into one tree.

hwloc 1 nests everything below NUMA nodes and calls packages sockets; 2 hangs NUMA nodes beside
the tree; 3 moves some information to the root. What is needed here is written alike in all.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import NamedTuple

from waywiser.words import WaywiserError


class TopologyError(WaywiserError):
    """A text that is not a topology in hwloc's XML."""


_MOST_STATED = 1 << 48
_NUMBERS = ("os_index", "gp_index", "depth", "cache_size", "local_memory")


class HwlocObject:
    """One object of the tree: its type in hwloc 2's words, attributes, infos and children.

    Raises ValueError where an attribute is not what it should be.
    """

    def __init__(self, element: ElementTree.Element, parent: HwlocObject | None = None) -> None:
        self.attributes = element.attrib
        self.type = _modern_type(element)
        self.parent = parent
        self.infos = {i.get("name", ""): i.get("value", "") for i in element.findall("info")}
        self._numbers = {name: int(element.attrib[name]) for name in _NUMBERS if element.get(name)}
        self.os_index = self._numbers.get("os_index", -1)
        self.link_speed = float(element.get("pci_link_speed") or 0)
        """GB/s of a PCI device's link when the file was written, 0 if unknown."""
        self.cpus = parse_bitmap(element.get("cpuset", ""))
        """Logical CPUs of the object that the capturing process was allowed to see."""
        self.nodes = parse_bitmap(element.get("nodeset", ""))
        """NUMA nodes near the object, by the system's numbers."""
        self.children = [HwlocObject(child, self) for child in element.findall("object")]

    def number(self, attribute: str) -> int:
        """A numeric attribute, 0 if it is missing."""
        return self._numbers.get(attribute, 0)

    def walk(self) -> Iterator[HwlocObject]:
        """The object and everything below it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def below(self, kind: str) -> list[HwlocObject]:
        """All objects of the type at or below this one, in the order of the file."""
        return [found for found in self.walk() if found.type == kind]

    def ancestors(self) -> Iterator[HwlocObject]:
        """Parent, its parent, and so on up to the machine."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent


class Distances(NamedTuple):
    """A matrix that hwloc was given: ``keys[i]`` names an object, ``values[i][j]`` from i to j."""

    name: str
    keys: list[str]
    values: list[list[int]]


class StatedValue(NamedTuple):
    """What CPUs find at a NUMA node: MiB per second of a bandwidth, nanoseconds of a latency."""

    name: str
    """The attribute of memory: ``Bandwidth``."""
    node: int
    """The object's number in the file."""
    cpus: frozenset[int]
    value: int


class HwlocTree(NamedTuple):
    machine: HwlocObject
    infos: dict[str, str]
    """The infos of the root, wherever this version of hwloc writes them."""
    distances: list[Distances]
    stated: list[StatedValue]


def read_xml(text: str, where: str = "hwloc XML") -> HwlocTree:
    """The tree of a topology file's text. Raises `TopologyError` naming ``where``."""
    if "<!ENTITY" in text:
        raise TopologyError("entities are not allowed in a topology", where=where)
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise TopologyError(
            f"not XML: {error}", where=where, remedy="write it again with 'lstopo FILE.xml'"
        ) from error
    top = root.find("object")
    if root.tag != "topology" or top is None:
        raise TopologyError(
            f"XML, but not a topology of hwloc: its root is <{root.tag}>",
            where=where,
            remedy="write one with 'lstopo FILE.xml'",
        )
    try:
        machine = HwlocObject(top)
        if not machine.below("PU"):
            raise TopologyError("a topology without any processor", where=where)
        infos = {i.get("name", ""): i.get("value", "") for i in root.findall("info")}
        distances = [_distances(part) for part in root if part.tag.startswith("distances2")]
        stated = [value for part in root.findall("memattr") for value in _stated(part)]
    except (ValueError, RecursionError) as error:
        raise TopologyError(f"not a topology of hwloc: {error}", where=where) from error
    return HwlocTree(machine, machine.infos | infos, distances, stated)


def parse_bitmap(text: str) -> frozenset[int]:
    """hwloc's ``0x0000ffff,,0x1``: 32-bit words, the highest first, an empty word is zero.

    Raises ValueError for anything else.
    """
    bits = 0
    for word in text.split(","):
        if word == "0xf...f":  # an infinite set; only complete sets are written so
            continue
        bits = (bits << 32) | (int(word, 16) if word.strip() else 0)
    return frozenset(index for index in range(bits.bit_length()) if bits >> index & 1)


def _modern_type(element: ElementTree.Element) -> str:
    kind = element.get("type", "")
    if kind == "Socket":
        return "Package"
    if kind == "Cache":
        instruction = "i" if element.get("cache_type") == "2" else ""
        return f"L{element.get('depth', '0')}{instruction}Cache"
    return kind


def _stated(element: ElementTree.Element) -> Iterator[StatedValue]:
    for found in element.findall("memattr_value"):
        value = int(found.get("value", "0"))
        if not 0 <= value < _MOST_STATED:
            raise ValueError(f"an attribute of memory of {value}")
        if cpus := parse_bitmap(found.get("initiator_cpuset", "")):
            node = int(found.get("target_obj_gp_index", "-1"))
            yield StatedValue(element.get("name", ""), node, cpus, value)


def _distances(element: ElementTree.Element) -> Distances:
    size = int(element.get("nbobjs", "0"))
    # A matrix of one type writes bare numbers, a mixed one writes TYPE:number.
    prefix = f"{element.get('type')}:" if element.get("type") else ""
    keys = [
        prefix + word for piece in element.findall("indexes") for word in (piece.text or "").split()
    ]
    flat = [
        int(word) for piece in element.findall("u64values") for word in (piece.text or "").split()
    ]
    if len(keys) != size or len(flat) != size * size:
        raise ValueError(f"a matrix of {size} objects with {len(flat)} values")
    rows = [flat[start : start + size] for start in range(0, len(flat), size)] if size else []
    return Distances(element.get("name", ""), keys, rows)
