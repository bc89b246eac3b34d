"""The version of this package. It imports nothing: all modules may import it."""

__version__ = "0.1.0"
"""The only place of the version: the build, the command line and the profile read it here."""
