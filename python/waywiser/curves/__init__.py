"""Curves of profiles: their names, classes and headlines, their points, and how they are
selected."""
