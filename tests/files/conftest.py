"""What tests of files share."""

from files.other_file_systems import preloaded

__all__ = ["preloaded"]
