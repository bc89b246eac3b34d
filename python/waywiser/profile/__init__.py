"""The profile file: one crash-safe SQLite database per machine that anyone can query.

What may happen here: visits are written at once and read back; series become arrays, estimates and
quality flags.

Types to know:

- `Profile` and `WritableProfile`: a file, open for reading, or for a survey.
- `SeriesFrame` (`profile.series_frame`): all series of one or several profiles, read in one pass;
  statistics of all blocks are made at once, with arrays. A property test compares them, to the bit,
  with those of each visit alone.
- `Estimate` (`profile.estimate`): the median of a series with its interval, from processes as
  replicates.

A profile stores samples and no statistics, so that no estimate can be out of date. What follows
from it is kept in the user's cache (`profile.derived`), and nothing needs that. Files come from
anyone: every row has a checksum, since SQLite finds a broken page and not a changed value; values
that no survey stores are damage, reported with file and place (`profile.validation`), so that
packages above need no checks. A reader takes one version of the schema; another version is an error
with the remedy.

Never here: curves, comparisons, predictions, or text for the terminal.
"""

from typing import TYPE_CHECKING

from waywiser.words import lazy_root

if TYPE_CHECKING:
    from waywiser.profile.arrow_batches import arrow_schema
    from waywiser.profile.block import BlockEstimate, BlockSummary, Slowdown, standard_error
    from waywiser.profile.cluster_folder import (
        ClusterFolder,
        ClusterResult,
        is_cluster_folder,
        read_cluster,
    )
    from waywiser.profile.cluster_validation import possible_counters, require_valid_node
    from waywiser.profile.errors import (
        DamagedProfile,
        ExistingFile,
        LockedProfile,
        MissingProfile,
        NewerProfile,
        NotAProfile,
        NotReadable,
        NotWritable,
        OlderProfile,
        ProfileError,
    )
    from waywiser.profile.estimate import Estimate, worst_stop
    from waywiser.profile.file_name import default_name, profiles_in, unused_file, why_no_profile
    from waywiser.profile.header import is_profile
    from waywiser.profile.health import HealthReport, errors_of, health_report, readings
    from waywiser.profile.layout_crossover import LayoutCrossover, layout_crossovers
    from waywiser.profile.locality import Sides, decide_sides
    from waywiser.profile.output_file import (
        STANDARD_OUTPUT,
        OutputKind,
        make_folder,
        require_one_output,
        require_output,
        require_profile_name,
        write_output,
    )
    from waywiser.profile.planned import resume_command, stored_request
    from waywiser.profile.profile import Profile, is_finished
    from waywiser.profile.quality_flags import Origin, are_crowded, gpus_fed_by_host, remedy_of
    from waywiser.profile.rows import VisitRow
    from waywiser.profile.runs import Run, RunHealth
    from waywiser.profile.sample_rows import rows_of
    from waywiser.profile.schema import SCHEMA_VERSION
    from waywiser.profile.series_frame import SeriesBlocks, SeriesFrame
    from waywiser.profile.trace_file import (
        Timeline,
        Trace,
        TracedProcess,
        TraceError,
        is_trace,
        read_trace,
    )
    from waywiser.profile.validation import InvalidRecord
    from waywiser.profile.writable import WritableProfile
else:
    __getattr__ = lazy_root(__name__)
