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
from waywiser.profile.file_name import default_name
from waywiser.profile.profile import Profile
from waywiser.profile.rows import VisitRow
from waywiser.profile.runs import Run, RunHealth
from waywiser.profile.schema import SCHEMA_VERSION
from waywiser.profile.writable import WritableProfile
