"""What can be wrong with a profile file: typed, one line each, with the remedy."""

from __future__ import annotations

from waywiser.words import WaywiserError


class ProfileError(WaywiserError):
    """Base of everything that can be wrong with a profile."""


class MissingProfile(ProfileError):
    """There is no such file."""


class NotAProfile(ProfileError):
    """The file is something else: empty, not SQLite, or another program's database."""


class DamagedProfile(ProfileError):
    """It was a profile: it is truncated, a byte has changed, or its values are impossible."""


class OlderProfile(ProfileError):
    """Written by an earlier version of the schema than this program reads."""


class NewerProfile(ProfileError):
    """Written by a later version of the schema than this program reads."""


class NotReadable(ProfileError):
    """The disk, the network or another program keeps the file from being read."""


class NotWritable(ProfileError):
    """The file, its folder or its disk does not take what is to be written."""


class LockedProfile(ProfileError):
    """Another survey is writing to it."""


class ExistingFile(ProfileError):
    """A file of that name exists, and nothing is ever overwritten."""
