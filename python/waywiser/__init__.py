"""Waywiser measures every way bytes can move in a machine with CPUs and GPUs."""

__version__ = "0.1.0"
"""The only home of the version: the build, the command line and the profile read it here."""
