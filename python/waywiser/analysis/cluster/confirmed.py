"""Which suspicions tests alone have confirmed: of nodes, of groups and of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from waywiser.analysis.cluster.controls import (
    MOST_TIMES,
    beside_controls,
    confirm_limit,
    lacks_controls,
    least_limit,
    may_be_slow,
)
from waywiser.analysis.cluster.known_pairs import known_pairs
from waywiser.analysis.cluster.levels import THRESHOLD, below_interval
from waywiser.analysis.cluster.pair_tests import Bools, Floats, Ints, NodeRows, PairTests, node_rows
from waywiser.analysis.cluster.schedule import Pair
from waywiser.analysis.cluster.state import ClusterState

Channel = tuple[int, int]
"""Rail, and sending or receiving."""

LEAST_MEMBERS = 3
"""Two nodes that are slow to all others, and fast to one another, are two slow nodes."""

USUAL_SHARE = 0.9
"""The median of the tests alone is above this share of the threshold."""

CLEAR = 2.0
"""Tests alone that are this many times the limit above the usual time confirm at once: then not
noise and the slowness of a usual node together exceed the limit."""

MOST_OF_NODES = 0.25

FAST_SCALES = 6.0
"""A node that is slower than this many times the noise of a test is by chance nearly never half as
slow to another."""

LEAST_FAST, LEAST_FAST_SHARE = 2, 0.1
"""The least number and share of others to which a node is fast that is not slow to everyone."""

LEAST_TIMES = 3
MOST_GROUP_ROUNDS = 100


def _outcome(rows: NodeRows, state: ClusterState, tried: Ints) -> tuple[Bools, Bools]:
    """Returns where repeated tests are still open, and where they confirm: at once if they are far
    above the limit, else after `MOST_TIMES` times as many. As long as more may come, only the usual
    noise refutes, and not a few late controls."""
    limit, repeats = confirm_limit(state), state.rounds.repeats
    most, may_be_fast = repeats
    near = rows.count(rows.y < CLEAR * limit[None, :, None])
    times = rows.count(~np.isnan(rows.y))
    is_clear = (near <= may_be_fast) & (tried >= most)[:, None, None]
    is_over = (tried >= MOST_TIMES * most)[:, None, None]
    is_open = may_be_slow(rows, least_limit(state.rounds), repeats) & ~(is_clear | is_over)
    confirms = may_be_slow(rows, limit, repeats) & (is_clear | is_over)
    return is_open, confirms & (times >= LEAST_TIMES)


@lru_cache(maxsize=1)
def _suspects(state: ClusterState) -> tuple[Bools, Bools, Bools]:
    """Returns where suspicions are open, where tests alone confirm them, and where a node needs
    more tests, and not only more controls."""
    rounds = state.rounds
    tried = state.attempts.of("alone").count_of_nodes(len(state.names))
    tests, _ = beside_controls(state, "alone")
    rows, limit = node_rows(tests, len(state.names)), confirm_limit(state)
    open_, confirmed = _outcome(rows, state, tried)
    if rounds.may_cross_unseen:
        confirmed &= _is_slow_on_both_sides(rows, limit)
    # The usual test alone stands out too.
    is_usual = rows.quantile(0.5) > USUAL_SHARE * THRESHOLD if len(rows.y) else confirmed
    confirmed &= rounds.suspects & is_usual & _is_above_usual(rows)
    needs_tests = rounds.suspects & open_
    if lacks_controls(state, "alone"):
        open_, confirmed = open_ | confirmed, np.zeros_like(confirmed)
    return rounds.suspects & open_, confirmed, needs_tests


def _is_slow_on_both_sides(rows: NodeRows, limit: Floats) -> Bools:
    """Whether most tests with nodes before it by name are slow, and most with nodes after it: those
    of one side may cross a switch that the run does not know."""
    fast = rows.y < limit[None, :, None]
    has_time = ~np.isnan(rows.y)
    slow = np.ones((rows.rows, *fast.shape[1:]), dtype=bool)
    for side in (rows.partner < rows.row, rows.partner > rows.row):
        chosen = side[:, None, None] & has_time
        count = rows.count(chosen)
        slow &= (count < LEAST_TIMES) | (2 * rows.count(fast & chosen) < count)
    return np.asarray(slow)


def _is_above_usual(rows: NodeRows) -> Bools:
    """Whether the 95 % interval of tests alone is above the usual time."""
    times = rows.count(~np.isnan(rows.y))
    return np.asarray(rows.count(rows.y <= 0) <= below_interval(times))


@lru_cache(maxsize=1)
def is_unblamed(state: ClusterState) -> Bools:
    """Returns the nodes that may be tested, and of which no suspicion is open or confirmed: neither
    of the node nor of what it shares with others."""
    open_, slow, _ = _suspects(state)
    unblamed = ~(open_ | slow).any(axis=(1, 2)) & state.testable
    for members in [*shared_sets(state), *members_of_slow_groups(state)]:
        unblamed[members] = False
    return np.asarray(unblamed)


def open_suspects(state: ClusterState) -> list[int]:
    """Returns the nodes that stand out, and need more tests alone or more controls."""
    return _testable(state, _suspects(state)[0])


def suspects_to_test(state: ClusterState) -> list[int]:
    """Returns those of them that need more tests."""
    return _testable(state, _suspects(state)[2])


def _testable(state: ClusterState, where: Bools) -> list[int]:
    return [int(n) for n in np.flatnonzero(where.any(axis=(1, 2)) & state.testable)]


def confirmed(state: ClusterState) -> Bools:
    """Returns where a node is slow, alone too: node, rail, sending or receiving."""
    return _suspects(state)[1]


def has_fast_partners(state: ClusterState) -> Bools:
    """Returns where confirmed nodes are fast to some others, though they are so slow alone that
    noise does not explain it: these may be below one switch that the run does not know."""
    slow = confirmed(state)
    found = np.zeros_like(slow)
    if not state.rounds.may_cross_unseen or not slow.any():
        return found
    level = node_rows(beside_controls(state, "alone")[0], len(state.names)).quantile(0.5)
    pairs = known_pairs(state)
    low, high = np.divmod(pairs.keys, len(state.names))
    for n, rail, way in np.argwhere(slow & (level > FAST_SCALES * state.rounds.noise[:, None])):
        of_pairs = [pairs.best[low == n, rail, way], pairs.best[high == n, rail, 1 - way]]
        beside = np.concatenate(of_pairs)
        fast = int(np.sum(beside < level[n, rail, way] / 2))
        found[n, rail, way] = fast >= max(LEAST_FAST, LEAST_FAST_SHARE * len(beside))
    return found


def confirmed_nodes(state: ClusterState) -> dict[Channel, list[int]]:
    """Returns the confirmed suspects of each rail and direction."""
    slow = confirmed(state)
    return {
        (rail, way): [int(n) for n in np.flatnonzero(slow[:, rail, way])]
        for rail in range(slow.shape[1])
        for way in range(2)
    }


def _group_outcomes(state: ClusterState) -> tuple[Bools, Bools]:
    """Returns where groups that stand out are still open, and where tests alone confirm it."""
    levels = state.rounds.group_levels
    is_first = levels.joined == np.arange(len(levels.joined))
    out = levels.stands_out & is_first[:, None, None]
    tests, _ = beside_controls(state, "alone", with_groups=True)
    usual = ~state.rounds.is_suspect
    ga, gb = state.rounds.switch_of[tests.a], state.rounds.switch_of[tests.b]
    slow_group: Bools = np.asarray(out.any(axis=(1, 2)))
    kept = (ga != gb) & (slow_group[ga] != slow_group[gb]) & usual[tests.a] & usual[tests.b]
    of_groups = PairTests(ga, gb, tests.y, tests.phase, tests.round).where(kept)
    rows = node_rows(of_groups, len(out))
    open_, confirms = _outcome(rows, state, rows.lengths)
    return out & open_, out & confirms


def open_groups(state: ClusterState) -> list[int]:
    """Returns the groups that stand out, and need more tests alone."""
    if not state.rounds.group_levels.stands_out.any():
        return []
    # A test that failed is no test: so many rounds are the most.
    rounds = np.unique(state.attempts.of("alone").round)
    if len(rounds) > MOST_GROUP_ROUNDS:
        return []
    return np.flatnonzero(_group_outcomes(state)[0].any(axis=(1, 2))).tolist()


def slow_groups(state: ClusterState) -> dict[int, list[Channel]]:
    """Returns the groups that are slow to other groups, with the rails and directions."""
    if not state.rounds.group_levels.stands_out.any():
        return {}
    slow = _group_outcomes(state)[1]
    return {
        int(group): [(int(rail), int(way)) for rail, way in np.argwhere(slow[group])]
        for group in np.flatnonzero(slow.any(axis=(1, 2)))
    }


def members_of_slow_groups(state: ClusterState) -> list[list[int]]:
    """Returns the nodes of each group that is slow to other groups."""
    switch_of = state.rounds.switch_of
    return [np.flatnonzero(switch_of == group).tolist() for group in slow_groups(state)]


def among_tested(state: ClusterState) -> set[Pair]:
    """Returns the pairs that were tested among suspects, the lower index first."""
    return set(state.attempts.of("among").pairs)


def _among_ratios(state: ClusterState) -> dict[Pair, Floats]:
    """Returns by pair tested among suspects, the lower index first: rail, direction from the lower
    index first. The fastest test counts, of the rounds too: something else may delay a test."""
    ratios: dict[Pair, Floats] = {}
    for phase in ("among", "pairs"):
        tests = state.rounds.beside_usual(state.all_tests.of(phase))
        for n, (a, b) in enumerate(zip(tests.a.tolist(), tests.b.tolist(), strict=True)):
            pair, y = (min(a, b), max(a, b)), tests.y[n] if a < b else tests.y[n][:, ::-1]
            if phase == "among" or pair in ratios:
                ratios[pair] = np.fmin(y, ratios.get(pair, y))
    return ratios


@lru_cache(maxsize=1)
def shared_of_channel(state: ClusterState) -> dict[Channel, list[list[int]]]:
    """Returns, by rail and direction, the sets of confirmed suspects that are fast among
    themselves: most pairs of a set that were tested are fast. Few tests of a pair may all be late a
    little: it is fast too if it is nearer to the usual time than to that by which both nodes are
    slow."""
    confirmed_of = confirmed_nodes(state)
    if max(map(len, confirmed_of.values()), default=0) < LEAST_MEMBERS:
        return {}
    ratios = _among_ratios(state)
    limit = np.maximum(THRESHOLD, state.rounds.noise)
    level = state.rounds.levels.level
    result: dict[Channel, list[list[int]]] = {}
    for (rail, way), nodes in confirmed_of.items():
        inside = set(nodes)
        edges = {
            pair: bool(np.all(y[rail] < max(limit[rail], level[list(pair), rail, way].min() / 2)))
            for pair, y in ratios.items()
            if inside.issuperset(pair)
        }
        sets = [each for each in _components(nodes, edges) if len(each) >= LEAST_MEMBERS]
        if sets:
            result[rail, way] = [_with_others(state, each, rail, ratios, limit) for each in sets]
    return result


def _components(nodes: Sequence[int], edges: dict[Pair, bool]) -> list[list[int]]:
    """Returns the sets of nodes that fast pairs connect, and in which most pairs are fast."""
    neighbours: dict[int, set[int]] = {node: set() for node in nodes}
    for (a, b), is_fast in edges.items():
        if is_fast:
            neighbours[a].add(b)
            neighbours[b].add(a)
    left, found = set(nodes), []
    while left:
        todo = [left.pop()]
        component = set(todo)
        while todo:
            for other in neighbours[todo.pop()] & left:
                left.discard(other)
                component.add(other)
                todo.append(other)
        tested = [fast for pair, fast in edges.items() if component.issuperset(pair)]
        if 2 * sum(tested) > len(tested):
            found.append(sorted(component))
    return found


def _with_others(
    state: ClusterState, members: list[int], rail: int, ratios: dict[Pair, Floats], limit: Floats
) -> list[int]:
    """Adds the nodes that are fast to most members they were tested with."""
    inside = set(members)
    fast: Counter[int] = Counter()
    tested: Counter[int] = Counter()
    for (a, b), y in ratios.items():
        if (a in inside) != (b in inside):
            other = b if a in inside else a
            tested[other] += 1
            fast[other] += bool(np.all(y[rail] < limit[rail]))
    more = [n for n in tested if tested[n] >= 2 and 2 * fast[n] > tested[n]]
    return sorted({*members, *more})


def is_a_crossing(state: ClusterState, members: Sequence[int], channel: Channel) -> bool:
    """Returns whether members of a set are slow by so little that it may be only because their
    tests cross a switch that the run does not know; how many they are does not matter."""
    level = state.rounds.levels.level[list(members), channel[0], channel[1]]
    crossing = state.rounds.unseen_crossing
    return crossing > 0 and float(np.median(level)) <= THRESHOLD + crossing


def may_be_one_of_two(state: ClusterState, members: Sequence[int]) -> bool:
    """Returns whether a set is so large a part of nodes of unknown groups that the others may share
    something slow as well: of two groups neither can be blamed, however slow they are."""
    rounds = state.rounds
    is_large = len(members) > MOST_OF_NODES * int(rounds.tested.sum())
    return rounds.may_cross_unseen and not rounds.has_groups and is_large


def shared_sets(state: ClusterState) -> list[list[int]]:
    """Returns the sets of all rails and directions, each once."""
    sets = {tuple(each) for sets in shared_of_channel(state).values() for each in sets}
    return [list(each) for each in sorted(sets)]


def possible_members(state: ClusterState, members: Sequence[int]) -> list[int]:
    """Returns the nodes outside a set of which the rounds do not show that they are as fast as
    usual: at most as many as the set has, the slowest first."""
    worst = np.where(np.isfinite(state.rounds.levels.worst), state.rounds.levels.worst, -np.inf)
    known = {n for nodes in confirmed_nodes(state).values() for n in nodes}
    order = np.argsort(-worst, kind="stable").tolist()
    others = [
        n
        for n in order
        if state.testable[n]
        and n not in known
        and n not in members
        and (state.rounds.is_suspect[n] or worst[n] > THRESHOLD / 2)
    ]
    return others[: len(members)]
