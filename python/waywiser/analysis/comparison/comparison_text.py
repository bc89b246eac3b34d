"""The wording of comparisons, checks and fleets: each sentence is made here, once.

A size whose figures are times has a change of time: ``takes 5.3% longer``, and a share of
bandwidth that is lost is that much more time.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from waywiser.analysis.comparison.part_change import (
    FEWEST_SIZES,
    PartChange,
    SizeChange,
    certain_level,
)
from waywiser.analysis.comparison.path_change import (
    PATH_REASONS,
    REGIMES,
    WITHOUT_CHANGE,
    PathChange,
    ProfileComparison,
)
from waywiser.analysis.comparison.path_parts import MachineNoise
from waywiser.curves import in_order, percent
from waywiser.curves.headline import headline_label
from waywiser.profile.block import STANDARD_ERRORS
from waywiser.stats import SURVEYS_FOR_VARIANCE, Effect, Interval, Variance, median
from waywiser.words import (
    Reason,
    by_wording,
    count,
    format_rate,
    format_time,
    grouped,
    size_of,
    with_units,
)

NOT_DECIDABLE = (
    "the noise is not known, and a change not decidable: nothing repeats it, and no "
    f"{FEWEST_SIZES} sizes of one kind show how it scatters"
)
"""What is said of a path whose noise is not known."""


def change(ratio: float, *, of_time: bool) -> float:
    """The relative change, by the ratio of bandwidths, now over before."""
    return 1 / ratio - 1 if of_time else ratio - 1


def change_text(size: SizeChange) -> str:
    """``-5.1%`` of a bandwidth, ``latency +5.4%`` of a latency, ``time +5.4%`` of another time."""
    return _named(size, f"{change(size.decision.ratio, of_time=size.is_time):+.1%}")


def _named(size: SizeChange, text: str) -> str:
    if not size.is_time:
        return text
    return f"{'latency' if size.regime == 'latency' else 'time'} {text}"


def interval_of_change(interval: Interval, *, of_time: bool) -> Interval:
    """The same of an interval of the ratio."""
    ends = sorted(change(end, of_time=of_time) for end in (interval.low, interval.high))
    return Interval(*ends)


def slower_by(size: SizeChange | None) -> str:
    """``is 5.1% slower`` of a bandwidth, ``takes 5.4% longer`` of a time."""
    if size is None or not size.is_time:
        return f"is {1 - (size.decision.ratio if size else 1.0):.1%} slower"
    return f"takes {change(size.decision.ratio, of_time=True):.1%} longer"


def loss(share: float, *, of_time: bool) -> float:
    """A share of bandwidth that is lost; in time what it adds."""
    return share / (1 - share) if of_time and share < 1 else share


def loss_text(share: float, *, of_time: bool, digits: int = 1) -> str:
    """``a loss of 3.1%``, ``a time that is 3.2% longer``."""
    text = f"{loss(share, of_time=of_time):.{digits}%}"
    return f"a time that is {text} longer" if of_time else f"a loss of {text}"


def detectable_text(
    share: float | None, *, hides: bool = False, has_changed: bool = False, of_time: bool = False
) -> str:
    """``a loss of 3.1% or more would have been found``; of a path that is not decided, that the
    noise ``hides`` smaller ones; without a loss, that the noise is not known."""
    if share is None:
        return NOT_DECIDABLE
    least = f"{loss(share, of_time=of_time):.1%}"
    if hides:
        below = f"extra time below {least}" if of_time else f"losses below {least}"
        return f"the noise hides {below}"
    if has_changed:
        return f"smallest detectable {'extra time' if of_time else 'loss'} {least}"
    return f"{loss_text(share, of_time=of_time)} or more would have been found"


def sizes_text(size: SizeChange) -> str:
    """``64 MiB``; ``64 MiB to 512 MiB`` of sizes that differ before and now."""
    return str(size.other_size) if size.other_size else size_of(size.series)


def figures_before_and_now(size: SizeChange) -> tuple[str, str]:
    """``55.3 GB/s`` or ``2.2 µs`` of each side, with as many digits as the interval allows."""
    # Half the width of a 95 % interval. Of a change, both sides have the same share.
    relative = STANDARD_ERRORS * size.decision.deviation / math.sqrt(2)
    # The two show their change, also one that is within the interval.
    apart = abs(math.log(size.seconds_now / size.seconds_before)) / DIGITS_OF_A_CHANGE
    relative = min(relative, max(apart, LEAST_DIGITS))
    before, now = (
        format_time(seconds, relative)
        if size.is_time
        else f"{format_rate(size.rated_bytes / seconds, relative)} GB/s"
        for seconds in (size.seconds_before, size.seconds_now)
    )
    return before, now


GONE = "is gone"
ONLY_IN_BASE = "is only in the machine of the base"
"""What is said of a GPU that the new files lack: of the same machine, and of another one."""

UNNAMED = "is not named by the results"
"""What is said of a GPU of which results of other tools say nothing."""

DIGITS_OF_A_CHANGE = 4
"""Digits of both sides resolve this share of their change."""

LEAST_DIGITS = 0.001
"""The relative error of numbers whose change is smaller: they show that they are equal."""

OF_ANOTHER_MACHINE = "so a difference can be the other machine, not a fault"
"""What follows if the two sides are of different machines."""

NOT_DECIDED: Reason = "not decided"
"""What is said of a path without a change also if its noise is too large for a verdict."""

FEW_SIZES = f"fewer than {FEWEST_SIZES} sizes of one kind (small, intermediate or large)"
"""The reason for a path whose sizes do not show its noise."""

NOT_IN_EACH = "its new surveys do not all show it"
"""What is said of a change that is significant over all new surveys, and not in each."""

ONE_EACH = 1, 1
"""Processes of a path of which only its sizes show the noise."""

NEW_BASELINE = "make a new baseline while the machine is healthy and nothing else uses it"
MEASURE_AGAIN = "measure again while nothing else uses the machine"
REMEDIES: Mapping[tuple[bool, bool], str] = {
    (True, False): NEW_BASELINE,
    (False, True): MEASURE_AGAIN,
    (True, True): f"{NEW_BASELINE}, then measure again",
}
"""What to do, by `ProfileComparison.noisy_sides`."""


def label(path: PathChange) -> str:
    """The name of a path, of a headline path after its group. `--only` takes it."""
    return headline_label(path.headline, path.name)


def _shown(path: PathChange) -> str:
    """Its label with sizes as people read them."""
    return with_units(label(path))


def slower(path: PathChange) -> str:
    """``H2D pinned… -> device… is 5.1% slower (bandwidth)``, ``takes 5.4% longer (latency)``."""
    return f"{_shown(path)} {slower_by(path.size)} ({path.why})"


def _is_time(size: SizeChange | None) -> bool:
    return size is not None and size.is_time


def suspicion(path: PathChange) -> str:
    """``… is 5.1% slower (bandwidth): suspected, since one new survey alone shows it``; of a loss
    below what is detectable, why it is suspected all the same, and how the processes scatter."""
    text = f"{slower(path)}: suspected, since {why_suspected(path)}"
    if path.decision is None or not path.is_below_detectable:
        return text
    scatter = f": {scatter_text(path.part)}" if path.part else ""
    smallest = loss_text(path.decision.detectable or 0.0, of_time=_is_time(path.size))
    return (
        f"{text}; this loss is significant, although only {smallest} or more is found "
        f"with a probability of 80 %{scatter}"
    )


def why_suspected(path: PathChange) -> str:
    """Why a loss is suspected and no regression, as a clause; empty for another verdict."""
    size = path.size
    if path.verdict != "suspected" or size is None:
        return ""
    if size.decision.p is None:
        few = f", and it has {FEW_SIZES}" if path.most_sizes < FEWEST_SIZES else ""
        return f"no survey measured it in two processes{few}"
    _, surveys = size.surveys
    if surveys == 1:
        return "one new survey alone shows it"
    return f"its {surveys} new surveys together do not confirm it"


def suspected_lines(found: ProfileComparison) -> Iterator[str]:
    """One line for each reason of a suspicion, with how many paths have it."""
    suspected = ((why_suspected(path), path) for path in found.of("suspected"))
    for reason, paths in grouped(suspected).items():
        below = sum(path.is_below_detectable for path in paths)
        smaller = (
            f"; of these significant, but below the smallest detectable loss: {below}"
            if below
            else ""
        )
        yield f"suspected, since {reason}: {count(len(paths), 'path')}{smaller}"


def could_miss(path: PathChange, needed: str = "") -> str:
    """How large a loss of the path could have been missed, and how its processes scatter;
    ``needed`` says how small a loss has to be found."""
    if path.detectable is None:
        return (
            f"{_shown(path)}: no survey measured it in two processes, and its noise is not "
            f"known{needed}"
        )
    largest = path.parts[-1].typical
    share = f"{loss(path.detectable, of_time=largest.is_time):.0%}"
    could = f"a loss of up to {share} would not be found{needed}"
    if largest.is_time:
        could = f"a time up to {share} longer would not be found{needed}"
    return f"{_shown(path)}: {could}: {scatter_text(path.parts[-1])}"


def scatter_text(part: PartChange) -> str:
    """``its processes deviate by 9.1% in the baseline and by 1.3% now, and its surveys by
    1.0%``."""
    before, now = (side.deviation for side in part.noise)
    if before is not None and now is not None and part.processes == ONE_EACH:
        return f"its sizes deviate from a line by {before:.1%} in the baseline and by {now:.1%} now"
    if before is None or now is None:
        side = "of the baseline" if before is None else "now"
        return f"no survey {side} measured it in two processes"
    return (
        f"its processes deviate by {before:.1%} in the baseline and by {now:.1%} now, "
        f"and its surveys by {part.between_surveys:.1%}"
    )


def slow_processes_text(slow: int, of: int, when: str, slowest: str, ratio: float) -> str:
    """A note on ``slow`` of ``of`` processes; ``ratio`` is that of the slowest to the others."""
    were, among = ("was", "") if slow == 1 else ("were", "the slowest: ")
    return (
        f"{slow} of {of} processes {when} {were} much slower than the others and {were} not used "
        f"({among}{slowest}, {1 - ratio:.0%} slower): another program used the machine, or a link "
        "fails at times; if nothing else ran, measure again"
    )


def disturbed_text(path: PathChange) -> str:
    """What is said of a path of `ProfileComparison.disturbed`."""
    share, largest = 1 - path.parts[-1].ratio_with_outliers, path.parts[-1].typical
    lost = f"the loss is {share:.0%}"
    if largest.is_time:
        lost = f"the time is {loss(share, of_time=True):.0%} longer"
    return (
        f"{_shown(path)}: some processes were much slower than the others; if they count, {lost}: "
        f"{MEASURE_AGAIN}"
    )


def ran_below(device: str, below: str) -> str:
    """What is said of a link that ran ``below`` its best, as `LoadedLink.below` writes it."""
    return f"{device} ran at {below} under load"


def unfinished(file: str) -> str:
    return f"{file} is unfinished: its survey still runs, or was stopped"


def copy_text(copy: str, of: str) -> str:
    return f"{copy} is a copy of {of}"


def no_repetition(fact: str) -> str:
    return f"{fact}, and is not a repetition"


def answer_lines(found: ProfileComparison) -> Iterator[str]:
    """The answer and what the slower paths have in common; then, indented, the headline paths and
    what could be missed on them."""
    if found.another_machine:
        yield (
            f"before and now are of different machines ({found.another_machine}), "
            f"{OF_ANOTHER_MACHINE}"
        )
    gone = ONLY_IN_BASE if found.another_machine else GONE
    yield from (f"{gpu} {gone}" for gpu in found.missing_gpus)
    if whole := whole_machine(found):
        yield whole
    yield "; ".join(filter(None, (summary(found), _worst(found))))
    if found.in_common:
        yield found.in_common
    yield from headline_lines(found)


def _worst(found: ProfileComparison) -> str:
    """The path with the largest loss, of those with at least half of it a single transfer first: a
    set waits for its slowest. Empty if no loss was found."""
    paths = found.of("regression") or found.of("suspected")
    most = max((1 - path.ratio for path in paths), default=0.0)
    large = [path for path in paths if 1 - path.ratio >= most / 2]
    worst = min(large, key=lambda path: (path.curve.count(";"), path.ratio), default=None)
    return slower(worst) if worst else ""


def note_lines(found: ProfileComparison, more: str = "") -> Iterator[str]:
    """The notes; ``more`` says where the paths are that changed by their own interval alone."""
    yield from (f"note: {line}" for line, _ in by_wording(found.notes))
    if alone := changed_alone(found):
        yield f"note: {alone}{more}"


def summary(found: ProfileComparison) -> str:
    """``2 regressions, 86 no change, 2 not decided, of 90 paths, at a threshold of 3 %``."""
    counts = counts_text(found)
    head = f"{counts}, of {count(len(found.paths), 'path')}" if counts else "no path in common"
    return f"{head}, at a threshold of {found.threshold * 100:.3g} %"


def counts_text(found: ProfileComparison) -> str:
    """``2 regressions, 86 no change, 2 not decided``; empty without paths."""
    counts = Counter(verdict_text(found, path) for path in found.paths)
    return ", ".join(f"{counts[word]} {plural(word, counts[word])}" for word in PATH_REASONS
                     if word in counts)  # fmt: skip


def hidden_text(found: ProfileComparison) -> str:
    """``a loss below 12.7 % could hide on a headline path``: the largest that one of the headline
    paths without a change could hide, or one of all; empty if there are none."""
    paths = found.may_hide
    if not paths:
        return ""
    where = "on a headline path" if any(path.headline for path in paths) else "on a path"
    known = [path.detectable for path in paths if path.detectable is not None]
    if len(known) < len(paths):
        return f"a loss of any size could hide {where}"
    return f"a loss below {max(known) * 100:.1f} % could hide {where}"


def verdict_text(found: ProfileComparison, path: PathChange) -> str:
    """The verdict on a path; of one whose noise is too large for it, that it is not decided."""
    return path.verdict if found.is_decided(path) else NOT_DECIDED


def changed_alone(found: ProfileComparison) -> str:
    """How many paths have no change although their own interval excludes none; empty without."""
    paths = found.changed_alone
    if not paths:
        return ""
    directions = Counter("slower" if path.ratio < 1 else "faster" for path in paths)
    kinds = ", ".join(f"{number} {word}" for word, number in sorted(directions.items()))
    ((most, number),) = directions.most_common(1)
    it = "it is" if len(paths) == 1 else "they are"
    why = "among so many paths some seem to change by chance; a second survey shows which do again"
    if len(paths) >= SEVERAL and number >= ONE_SIDED * len(paths):
        why = f"but most are {most}: the whole machine may be {most}; a second survey shows it"
    return (
        f"{len(paths)} of {count(len(found.measured), 'path')} changed by more than the threshold, "
        f"each tested alone ({kinds}); tested with all others {it} not significant: "
        f"{why}"
    )


def headline_lines(found: ProfileComparison) -> Iterator[str]:
    """A line for each group of headline paths: the verdict, the member with the lowest ratio, and
    which losses are found; then what decides those that are not decided."""
    paths = [path for path in found.measured if path.headline]
    undecided: list[PathChange] = []
    for group in in_order(path.headline for path in paths if path.headline):
        members = [path for path in paths if path.headline == group]
        worst = min(members, key=lambda path: path.ratio)
        unclear = [path for path in members if not found.is_decided(path)]
        verdict: str = worst.verdict
        if verdict in WITHOUT_CHANGE and unclear:
            verdict = NOT_DECIDED
            undecided += unclear
        known = [path.detectable for path in members if path.detectable is not None]
        most = max(known) if len(known) == len(members) else None
        hidden = detectable_text(
            most,
            hides=verdict == NOT_DECIDED,
            has_changed=verdict != "no change",
            of_time=worst.parts[-1].typical.is_time,
        )
        if worst.verdict == "no change" and worst.changes:
            hidden = NOT_IN_EACH
        elif worst.verdict == NOT_DECIDED:
            hidden = worst.why
        lowest = f"lowest of {len(members)} " if len(members) > 1 else ""
        # What is detectable holds for the largest sizes; the lowest ratio may be of others.
        elsewhere = worst.decision and worst.decision != worst.parts[-1].decision
        large = "at the largest sizes " if elsewhere and worst.why else ""
        shown = change_text(worst.size) if worst.size else "+0.0%"
        where = f" ({worst.why})" if large and not shown.startswith(worst.why) else ""
        change = f"{shown}{where} {lowest}".rstrip()
        yield f"  {group:<17} {verdict}: {change}; {large}{hidden}"
    if undecided:
        yield f"  {to_decide(found, undecided)}"


def to_decide(found: ProfileComparison, paths: Sequence[PathChange]) -> str:
    """What to measure so that paths are decided whose verdict is `NOT_DECIDED`."""
    head = "for a verdict where it is 'not decided', "
    if all(path.verdict == NOT_DECIDED for path in paths):
        return f"{head}{several_runs(found)}"
    if found.tools:
        tools = " and ".join(found.tools)
        return f"{head}compare several files of {tools} of before with several of now"
    sides = [found.noisy_sides(path) for path in paths]
    remedy = REMEDIES[any(before for before, _ in sides), any(now for _, now in sides)]
    groups = in_order(path.headline for path in paths if path.headline)
    names = [*groups, *(path.name for path in paths if not path.headline)]
    only = " ".join(f"--only {shlex.quote(name)}" for name in names)
    survey = shlex.join(["waywiser", "survey", "--preset", "full", *found.launch])
    return f"{head}{remedy}: {survey} {only}"


def several_runs(found: ProfileComparison) -> str:
    """What decides a path of which one side has one value."""
    files = f"files of {' and '.join(found.tools)}" if found.tools else "surveys"
    return f"compare several {files}: waywiser compare BASE... -- NEW..."


def plural(verdict: str, count: int) -> str:
    return f"{verdict}s" if verdict in ("regression", "improvement") and count != 1 else verdict


def survey_noise_notes(parts: Sequence[PartChange], paths: Sequence[PathChange]) -> Iterator[str]:
    """A note on the noise between surveys if no side has `SURVEYS_FOR_VARIANCE` of them: that it is
    assumed, or what it is beside a suspected loss, and which loss would be confirmed."""
    few = [
        (path, part)
        for path in paths
        for part in path.parts
        if max(part.surveys) < SURVEYS_FOR_VARIANCE and part.decision.freedom > 0
    ]
    if not few:
        return
    machine = MachineNoise(parts).regimes
    if assumed := [part for _, part in few if not machine[part.regime].contrasts]:
        deviation = machine[assumed[0].regime].variance.deviation
        yield (
            f"the noise between surveys is assumed to be {deviation:.1%}, since fewer than "
            f"{SURVEYS_FOR_VARIANCE} surveys of a side and too few paths show it"
        )
    suspected = [each for each in few if each[0].verdict == each[1].verdict == "suspected"]
    if suspected:
        path, part = min(suspected, key=lambda each: each[1].decision.ratio)
        variance = Variance(part.decision.deviation**2, part.decision.freedom)
        effect = Effect(0.0, variance, path.headline is not None, parts[0].threshold)
        tested = sum((each.headline is not None) == effect.headline for each, _ in few)
        least = effect.detectable(certain_level(effect) / tested) or 1.0
        deviation = machine[part.regime].variance.deviation
        yield (
            f"between surveys the paths of this machine deviate by {deviation:.1%} "
            f"({REGIMES[part.regime]}): so few surveys confirm "
            f"{loss_text(least, of_time=part.typical.is_time)} or more, and "
            f"{SURVEYS_FOR_VARIANCE} baselines a smaller one"
        )


SEVERAL = 10
"""Paths below which a common change is not distinguished from one of few paths."""

ONE_SIDED = 0.9
"""The share of paths that have to change to one side."""

DEVIATIONS = 3.0
"""Standard errors of one path that the median change has to exceed."""


class _CommonChange(NamedTuple):
    shift: float
    """The median over all paths, as a logarithm; below 0 it is a loss."""
    paths: int
    same: list[SizeChange]
    """Those of the paths that changed to the same side."""
    is_between_ranks: bool


def whole_machine(found: ProfileComparison) -> str:
    """``the whole machine is 3.0 % slower: …``, if nearly all paths changed to one side; empty
    otherwise."""
    change = _common_change(found)
    return _text(change, found.message_settings) if change is not None else ""


def whole_loss(found: ProfileComparison) -> str:
    """`whole_machine`, if it is slower; empty otherwise."""
    change = _common_change(found)
    if change is None or change.shift >= 0:
        return ""
    return _text(change, found.message_settings)


def _common_change(found: ProfileComparison) -> _CommonChange | None:
    """The amount is the median over the paths. The noise of a process is common to its paths, so
    that it counts as that of one path, and not less for their number. Changes below half of the
    threshold are none."""
    compared = [path for path in found.measured if path.verdict != "not decided"]
    sizes = [path.size for path in compared if path.size is not None]
    if len(sizes) < SEVERAL:
        return None
    logs = [math.log(each.decision.ratio) for each in sizes]
    shift = median(logs)
    least = DEVIATIONS * median([each.decision.deviation for each in sizes])
    same = [size for size, each in zip(sizes, logs, strict=True) if each * shift > 0]
    if abs(shift) < max(math.log1p(found.threshold) / 2, least):
        return None
    if len(same) < ONE_SIDED * len(logs):
        return None
    is_between_ranks = are_between_ranks(size.series for size in sizes)
    return _CommonChange(shift, len(sizes), same, is_between_ranks)


def _text(change: _CommonChange, message_settings: str) -> str:
    shift, paths, same, is_between_ranks = change
    what = "messages between ranks" if is_between_ranks else "the whole machine"
    be = "are" if is_between_ranks else "is"
    of = f"{len(same)} of {count(paths, 'path')}"
    if all(size.is_time for size in same):
        side = "longer" if shift < 0 else "shorter"
        text = f"the latencies of {what} are {percent(math.expm1(-shift))} {side}: so"
    else:
        side = "slower" if shift < 0 else "faster"
        text = f"{what} {be} {percent(math.expm1(shift))} {side}:"
    cause = look_for(is_between_ranks)
    if is_between_ranks and message_settings:
        cause = f"settings of the MPI library differ ({message_settings}): make them equal"
    return f"{text} {of} are, and this is their median; {cause} and measure again"


def are_between_ranks(texts: Iterable[str]) -> bool:
    """Whether all series or paths are of ranks."""
    return all("@rank:" in text for text in texts)


def look_for(is_between_ranks: bool) -> str:
    """What can slow all paths: of messages it is their library first, and not the hardware."""
    if is_between_ranks:
        return "look at the MPI library's transport and settings (UCX_*, OMPI_MCA_*)"
    return "look for a common cause (clocks, power, other work, settings)"
