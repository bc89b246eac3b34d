"""Statistics of plain numbers: order statistics, noise, decisions, fits.

What may happen here: arithmetic on numbers, arrays and frozen values of this package.

Types to know:

- `Interval` (`stats.order`): a 95 % interval; non-parametric for medians.
- `Noise` (`stats.noise_model`): the variance between surveys, processes and samples, measured and
  pooled over paths with the same kind of noise.
- `Effect` and `Decision` (`stats.decision`): the one rule that decides whether two sides differ,
  are equivalent, or show no change, with the detectable effect.

Never here: profiles, machines, names of executors, the native library. A process is the replicate;
nothing is assumed of an executor or of a machine, but one thing: the noise between surveys, if
there are few of them and few paths.
"""

from typing import TYPE_CHECKING

from waywiser.words import lazy_root

if TYPE_CHECKING:
    from waywiser.stats.decision import (
        FALSE_LOSSES,
        THRESHOLD,
        Decision,
        Effect,
        TestOutcome,
        decide,
    )
    from waywiser.stats.distributions import student_quantile
    from waywiser.stats.irregular import Irregularity
    from waywiser.stats.level_changes import SeriesNoise
    from waywiser.stats.level_shift import returned_from_none, returned_of_rows
    from waywiser.stats.line_ranges import ProtocolRange
    from waywiser.stats.method_choice import FastestRange, Timed
    from waywiser.stats.night_rows import medians_without_outliers, row_medians
    from waywiser.stats.noise_model import (
        ENOUGH_FREEDOM,
        LEAST_VARIANCE,
        SURVEYS_FOR_VARIANCE,
        Contrast,
        Noise,
        Surveys,
        Variance,
        are_outliers,
        averaged,
        combined,
        median_share,
        noise_between_surveys,
        of_difference,
        process_variance,
        share_beside_surveys,
        shared,
        survey_median,
        survey_noise_of,
        survey_variance,
        without_outliers,
    )
    from waywiser.stats.order import (
        CONFIDENCE,
        INTERVAL_SAMPLES,
        Interval,
        median,
        median_interval,
        relative,
    )
    from waywiser.stats.pairwise import PairGroup, SizeRatios, decide_groups
    from waywiser.stats.postal import Postal, robust_lines
    from waywiser.stats.scatter import LEAST_SIZES, CurveBlocks
else:
    __getattr__ = lazy_root(__name__)
