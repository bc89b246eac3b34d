"""The bounds of values of a cluster, which come from files and from agents of other nodes.

One schema for all of them: what an agent states is checked on arrival by the functions that the
reader and the writer of a folder use, so that what is stored can be read. What uses the values
trusts that the names of nodes are names of files, that times are positive, that a pair has two
nodes, and that a rail costs little memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import ip_address

from msgspec.structs import replace

from waywiser.profile.validation import (
    LEAST_SECONDS,
    MOST,
    MOST_INDEX,
    MOST_SECONDS,
    InvalidRecord,
    are_moments,
    shown,
)
from waywiser.words import (
    MOST_HOSTS,
    ClusterNode,
    ClusterPlan,
    FinishedTest,
    PlannedTest,
    RailTime,
    is_host_name,
)

LONGEST_NODE_NAME = 200
"""Characters: the name is part of a file's name, and file systems have names of 255."""

MOST_RAILS = 1024
"""More GPUs than a node has. An array of tests has a column for each rail."""

MOST_WORDS = 4096
"""More counters than the interfaces of a node have."""

LONGEST_WORD = 256
"""Characters of the name of a counter, an interface or a program, or of a version."""

LONGEST_TEXT = 2**16
"""Characters of a reason, many times as many as `LONGEST_STORED_TEXT`."""

LONGEST_STORED_TEXT = 4000
"""Characters of a reason that is stored."""


def require_valid_plan(plan: ClusterPlan) -> None:
    """Raises `InvalidRecord`."""
    require_count("bytes", plan.bytes)
    require_count("pairs", plan.uplink_pairs)
    require_count("as the seed", plan.seed)
    require_words("words", (plan.transport, plan.groups_from, *plan.groups), MOST_HOSTS)
    for nodes in plan.groups.values():
        _names(nodes)


def require_valid_node(node: ClusterNode) -> None:
    """Raises `InvalidRecord`."""
    _names((node.name,))
    _require(not node.address or _is_address(node.address), f"{node.address[:80]!r} is no address")
    _text(node.reason)
    indices = [rail.index for rail in node.rails]
    _require(len(indices) <= MOST_RAILS, f"{len(indices)} rails, and at most {MOST_RAILS} are used")
    _require(len(set(indices)) == len(indices), "one rail twice")
    for rail in node.rails:
        _require_rail(rail.index, MOST_RAILS)
        _require(-1 <= rail.gpu < MOST_INDEX, f"GPU {shown(rail.gpu)}")
        if rail.interface is not None:
            require_words("interfaces", (rail.interface.name,))
            require_count("bytes per second", rail.interface.bytes_per_second)
            _require(
                -1 <= rail.interface.numa < MOST_INDEX, f"NUMA node {shown(rail.interface.numa)}"
            )
    require_words("versions", (*node.versions, *node.versions.values()))
    for counters in (node.counters, node.new_errors):
        require_words("counters", counters)
        for count in counters.values():
            require_count("errors", count)


def possible_counters(counters: Mapping[str, int]) -> dict[str, int]:
    """Those that can be counts: all bits are 1 in what is read of a card that fell off its bus."""
    return {name: count for name, count in counters.items() if 0 <= count <= MOST}


def require_valid_test(test: FinishedTest) -> None:
    """Raises `InvalidRecord`."""
    _planned(test.test)
    require_words("transports", (test.transport,))
    _require(are_moments([test.started]), f"{test.started[:40]!r} is no moment")
    require_count("bytes", test.bytes)
    require_count("seconds", test.setup_seconds)
    require_count("seconds", test.elapsed_seconds)
    _require(bool(test.times) != (test.failed is not None), "neither times nor a failure, or both")
    require_valid_times(test.times, ("", *test.test.nodes), MOST_RAILS)
    if test.failed is not None:
        _require(test.failed.node in ("", *test.test.nodes), "a failure of another node")
        _require(-1 <= test.failed.rank < MOST_INDEX, f"rank {shown(test.failed.rank)}")
        require_words("kinds of a failure", (test.failed.failure.kind,))
        _text(test.failed.failure.reason)
        _text(test.failed.doing)


def require_valid_times(times: Collection[RailTime], senders: Collection[str], rails: int) -> None:
    """Checks the times of a test of so many rails, from these senders. Raises `InvalidRecord`."""
    for time in times:
        _require_rail(time.rail, rails)
        _require(time.sender in senders, "a time of another node")
        for seconds in (time.low, time.seconds, time.high):
            if not LEAST_SECONDS <= seconds <= MOST_SECONDS:  # of many, and the text is dear
                raise InvalidRecord(f"a time of {seconds:g} s")
        _require(time.low <= time.seconds <= time.high, "a time outside of its interval")
        if not 1 <= time.n <= MOST:
            raise InvalidRecord(f"{shown(time.n)} samples")
        if time.crossed is not None:
            require_count("of the bytes", time.crossed)
    places = {(time.rail, time.sender) for time in times}
    _require(len(places) == len(times), "one rail twice")


def require_words(what: str, words: Collection[str], most: int = MOST_WORDS) -> None:
    """Checks the number and the length of words. Raises `InvalidRecord`."""
    _require(len(words) <= most, f"{len(words)} {what}")
    for word in words:
        _require(len(word) <= LONGEST_WORD, f"{word[:40]!r} and {len(word) - 40} characters more")


def require_count(what: str, value: float) -> None:
    """Raises `InvalidRecord` for what is no count of anything."""
    if not 0 <= value <= MOST:
        raise InvalidRecord(f"{shown(value)} {what}")


def storable_node(node: ClusterNode) -> ClusterNode:
    """The node as a reader takes it: with a short reason, and excluded if it is impossible."""
    node = replace(node, reason=short_text(node.reason))
    try:
        require_valid_node(node)
    except InvalidRecord as error:
        return ClusterNode(
            node.name, "excluded", f"what it states of itself is impossible: {error}"
        )
    return node


def short_text(text: str) -> str:
    """The text, without its middle if it is longer than is stored."""
    half = LONGEST_STORED_TEXT // 2
    return text if len(text) <= LONGEST_STORED_TEXT + 3 else f"{text[:half]} … {text[-half:]}"


def _planned(test: PlannedTest) -> None:
    _names(test.nodes)
    _require(0 <= test.round < MOST_INDEX, f"round {shown(test.round)}")
    is_pair = test.phase != "collective"
    _require(len(test.nodes) == 2 if is_pair else len(test.nodes) > 0, "a pair that is none")
    _require(len(set(test.nodes)) == len(test.nodes), "one node twice in a test")


def _require_rail(rail: int, rails: int) -> None:
    if not 0 <= rail < rails:
        raise InvalidRecord(f"rail {shown(rail)}, and rails are 0 to {rails - 1}")


def _names(names: tuple[str, ...]) -> None:
    for name in names:
        is_name = is_host_name(name) and len(name) <= LONGEST_NODE_NAME
        _require(is_name, f"{name[:80]!r} is no name of a node")


def _is_address(text: str) -> bool:
    if is_host_name(text):
        return True
    try:
        ip_address(text)
    except ValueError:
        return False
    return len(text) <= LONGEST_WORD


def _text(text: str) -> None:
    _require(len(text) <= LONGEST_TEXT, f"a text of {len(text)} characters")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise InvalidRecord(what)
