"""The profile file: one crash-safe SQLite database per machine that anyone can query."""

from waywiser.profile.errors import (
    DamagedProfile,
    ExistingFile,
    LockedProfile,
    MissingProfile,
    NewerProfile,
    NotAProfile,
    NotWritable,
    OlderProfile,
    ProfileError,
)
from waywiser.profile.name import default_name
from waywiser.profile.profile import Profile
from waywiser.profile.rows import VisitRow
from waywiser.profile.runs import Run, RunHealth
from waywiser.profile.schema import SCHEMA_VERSION
from waywiser.profile.writable import WritableProfile

__all__ = [
    "SCHEMA_VERSION",
    "DamagedProfile",
    "ExistingFile",
    "LockedProfile",
    "MissingProfile",
    "NewerProfile",
    "NotAProfile",
    "NotWritable",
    "OlderProfile",
    "Profile",
    "ProfileError",
    "Run",
    "RunHealth",
    "VisitRow",
    "WritableProfile",
    "default_name",
]
