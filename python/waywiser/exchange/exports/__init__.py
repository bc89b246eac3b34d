"""Profiles, comparisons and checks in the formats of other programs."""
