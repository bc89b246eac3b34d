"""The curves of a profile: names, classes, headlines, selection, and what is said of them.

What may happen here: a profile becomes curves of points that everybody reads in one form; curves
are named as people call them, grouped by the symmetry of the machine, and selected by patterns.

Types to know:

- `Point`: one series with what each process measured of it, its estimate and its bound.
- `Curve`: the points of one path over sizes.
- `Subject`: a profile, read once: its curves and all that it says beside them.
- `Finding` (`curves.answer`): one thing worth knowing, with evidence and remedy. `Answer` holds
  those of one question.
- `Sheet` (`curves.sheet`): a table of an answer or a report.

Never here: a question about a machine (`analysis`), a prediction (`model`), the form of a page
(`render`). `curves.headline` has the groups of headline paths and `curves.terms` the terms that
``--only`` takes: both follow from the ends, the size and the links of a transfer.
"""

from typing import TYPE_CHECKING

from waywiser.words import lazy_root

if TYPE_CHECKING:
    from waywiser.curves.answer import (
        CRASHED,
        MATTERS,
        MOST_EXHIBITS,
        MOST_FINDINGS,
        UNDECIDED,
        Answer,
        Device,
        Exhibit,
        Finding,
        Mark,
        Sheet,
        SheetCell,
        at_least,
        practical,
        ranked,
        table,
    )
    from waywiser.curves.bystanders import bystander_of
    from waywiser.curves.classes import Classes, representatives
    from waywiser.curves.curve import (
        COLLECTIVES,
        FAMILIES,
        Curve,
        Point,
        by_family,
        curves_of,
        outliers_text,
        points_of,
    )
    from waywiser.curves.figure_range import range_of
    from waywiser.curves.gpu_numbers import Devices, device_of, devices_on, gpus_of
    from waywiser.curves.headline import Group, group_of, in_order
    from waywiser.curves.headlines import HeadlineRow, headline_groups, headline_rows
    from waywiser.curves.imported import imported_from, origin_of
    from waywiser.curves.kinds import Kind, kind_of
    from waywiser.curves.methods import (
        PlaceGroup,
        PlacePair,
        counted_copies,
        executor_text,
        memory_text,
        method_text,
        place_groups,
    )
    from waywiser.curves.name import SETS, label_of, name_of
    from waywiser.curves.named_workloads import has_name, with_paths
    from waywiser.curves.normal import (
        NO_BASELINE,
        NormalPath,
        below_findings,
        normal_paths,
        normal_paths_of,
        path_document,
        verdicts_text,
    )
    from waywiser.curves.normal_table import NormalValue, read_table, shipped_values
    from waywiser.curves.overview import Overview
    from waywiser.curves.reasons import ReasonGroup
    from waywiser.curves.regimes import BANDWIDTH_BYTES, START_BYTES, Regime, regime_of
    from waywiser.curves.select import asks_for_latency, matches_any, require_match, texts_of
    from waywiser.curves.series_rows import SERIES_TYPES
    from waywiser.curves.sizes import SMALL_BYTES, parse_sizes
    from waywiser.curves.subject import (
        LoadedLink,
        Subject,
        as_compared,
        is_copy,
        read_subject,
        subject_of,
        without_copies,
    )
    from waywiser.curves.texts import (
        EQUIVALENT_WITHIN,
        NOT_DETERMINED,
        amount,
        capital,
        hidden_loss,
        of_pairs,
        percent,
        size_ranges,
        size_span,
        survey_again,
    )
    from waywiser.curves.who_copies import who_copies_sentences
else:
    __getattr__ = lazy_root(__name__)
