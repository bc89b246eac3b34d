"""Which pairs of nodes are tested in which round, under the limits of up-links."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Pair = tuple[int, int]

UNLIMITED = 1 << 30


def next_tests(
    pairs: Sequence[Pair], group_of: Sequence[int], uplink_pairs: int, most: int = UNLIMITED
) -> list[Pair]:
    """Returns the pairs of the next round: each, in the given order, whose nodes are free, and for
    which the up-links of both groups carry one more pair; at most ``most``."""
    free = bytearray(b"\1") * len(group_of)
    crossing: dict[int, int] = {}
    chosen: list[Pair] = []
    left = len({node for pair in pairs for node in pair}) - 1
    for a, b in pairs:
        if not (free[a] and free[b]):
            continue
        ga, gb = group_of[a], group_of[b]
        if ga != gb:
            if max(crossing.get(ga, 0), crossing.get(gb, 0)) >= uplink_pairs:
                continue
            crossing[ga] = crossing.get(ga, 0) + 1
            crossing[gb] = crossing.get(gb, 0) + 1
        free[a] = free[b] = 0
        chosen.append((a, b))
        left -= 2
        if left <= 0 or len(chosen) >= most:
            break
    return chosen


def round_robin(members: Sequence[int], rounds: int | None = None) -> list[list[Pair]]:
    """Returns rounds in which every member meets every other once; or the first of them."""
    ring: list[int] = [*members, *([-1] if len(members) % 2 else [])]
    size = len(ring)
    result = []
    for turn in range(size - 1 if rounds is None else min(rounds, size - 1)):
        turned = [ring[0], *(ring[1 + (n + turn) % (size - 1)] for n in range(size - 1))]
        pairs = [(turned[n], turned[size - 1 - n]) for n in range(size // 2)]
        result.append([each for each in pairs if -1 not in each])
    return result


def matchings(members: Sequence[int], rounds: int, rng: np.random.Generator) -> list[list[Pair]]:
    """Returns rounds of random pairs without a repeated partner, all pairs if there are not more:
    a round robin of the members in random order, of which the rounds are drawn."""
    shuffled = [int(each) for each in rng.permutation(np.asarray(members, dtype=np.int64))]
    size = len(shuffled) + len(shuffled) % 2
    if size < 2:
        return []
    turns = rng.permutation(size - 1)[: min(rounds, size - 1)]
    ring = shuffled + [-1] * (size - len(shuffled))
    result = []
    for turn in turns.tolist():
        rest = ring[1:]
        turned = [ring[0], *rest[turn:], *rest[:turn]]
        pairs = zip(turned[: size // 2], reversed(turned[size // 2 :]), strict=True)
        result.append([each for each in pairs if -1 not in each])
    return result


def neighbours(members: Sequence[int], distance: int) -> list[Pair]:
    """Returns the pairs of members that are so many places apart, in the order
    of two rounds."""
    pairs = [
        (n, n + distance) for n in range(len(members) - distance)
    ]  # ordered so that the first round is as full as possible
    pairs.sort(key=lambda pair: ((pair[0] // distance) % 2, pair[0]))
    return [(members[a], members[b]) for a, b in pairs]


def crossing_pairs(
    groups: Sequence[Sequence[int]], tests: int, rng: np.random.Generator
) -> list[Pair]:
    """Returns random pairs of nodes of different groups, about ``tests`` for each node."""
    group_of = {node: number for number, group in enumerate(groups) for node in group}
    members = list(group_of)
    result: list[Pair] = []
    for _ in range(tests if len(groups) > 1 else 0):
        left = [members[n] for n in rng.permutation(len(members)).tolist()]
        # Pairs of one group are mixed again; at last they are sorted by group, and paired with
        # what is half the length away.
        for attempt in range(4):
            half = len(left) // 2
            if attempt == 3:
                left.sort(key=lambda node: group_of[node])
            pairs = list(zip(left[:half], left[half : 2 * half], strict=True))
            result += [(a, b) for a, b in pairs if group_of[a] != group_of[b]]
            same = [node for a, b in pairs if group_of[a] == group_of[b] for node in (a, b)]
            rest = [*same, *left[2 * half :]]
            left = [rest[n] for n in rng.permutation(len(rest)).tolist()]
    return result
